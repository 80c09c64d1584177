"""Quadratic functions under linear constraints: rows, bounds, equations, and a limit of the l1 norm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from extremal.kernels.arguments import kernels
from extremal.quadratic.search import longest_step, workable
from extremal.support import clock

UNIT_RIDGE = 1e-11  # added to a diagonal of ones, so that the minimiser is unique
STEEPER = 100.0  # factor of the ridge if rounding makes the matrix indefinite
ROUNDS_EACH = 20  # rounds for each constraint and each coordinate, before the solver gives up
CURVELESS = 1e-250  # a diagonal entry of this size
LENGTH_SHARE = 2.0**-24  # share of a cost that the length of a vertex may weigh
SNAP = 1e-13  # a coordinate this near to 0 or to a bound, relative to the largest, is there


@dataclass(frozen=True)
class Inequalities:
    """{w : A w <= b, with equality in the first rows, lower <= w <= upper, |w|_1 <= radius}, for flat w.

    Examples
    --------
    >>> import numpy as np
    >>> C = Inequalities.of(2, A_ub=np.array([[1.0, -1.0]]), b_ub=np.zeros(1), radius=1.0)
    >>> C.minimiser(np.eye(2), np.array([-2.0, -1.0]), np.zeros(2))[0].round(12)
    array([0.5, 0.5])
    """

    A: np.ndarray  # rows are divided by their largest entry
    b: np.ndarray
    equations: int
    lower: np.ndarray
    upper: np.ndarray
    radius: float

    @classmethod
    def of(
        cls,
        size: int,
        A_ub: Any = None,
        b_ub: Any = None,
        A_eq: Any = None,
        b_eq: Any = None,
        lower: float | np.ndarray = -math.inf,
        upper: float | np.ndarray = math.inf,
        radius: float = math.inf,
    ) -> Inequalities:
        """The constraints in the notation of `scipy.optimize.linprog`, for ``size`` coordinates; rows may be sparse."""
        rows = [
            np.zeros((0, size)) if A is None else np.asarray(A.toarray() if hasattr(A, "toarray") else A) for A in (A_eq, A_ub)
        ]
        A, b = np.vstack(rows), np.concatenate([np.zeros(0) if b is None else b for b in (b_eq, b_ub)])
        top = np.abs(A).max(axis=1, initial=0.0)
        top[top == 0] = 1.0
        low, high = (np.broadcast_to(np.ravel(a) if np.ndim(a) else a, size).astype(np.float64) for a in (lower, upper))
        return cls(A / top[:, None], b / top, len(rows[0]), low, high, float(radius))

    @cached_property
    def _short(self) -> np.ndarray:
        """J for a length that hardly counts beside a cost of 1."""
        ends = np.abs(np.concatenate([self.b, self.lower, self.upper, [self.radius]]))
        size = float(np.max(ends, where=np.isfinite(ends), initial=0.0)) or 1.0
        return np.eye(self.size) * math.sqrt(size / LENGTH_SHARE)

    @cached_property
    def _sizes(self) -> np.ndarray:
        return np.abs(self.A).sum(axis=1)

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return self.lower.size

    def corner(self, cost: np.ndarray) -> np.ndarray | None:
        """The vertex with the smallest <cost, w>, for a largest cost of 1; None if there are several, or if no proof is found.

        The vertex is the shortest w with nearly the smallest <cost, w>. Multipliers that make up the cost prove that it has the
        smallest one: cost + N'y = 0 for the normals N that meet in it, and y >= 0 for inequalities.
        """
        found = self._minimiser(self._short.copy(), cost, np.zeros(self.size), None)
        if found is None or len(found[1].kinds) != self.size:
            return None
        w, (kinds, N) = found[0], (found[1].kinds, found[1].normals)
        try:
            y = -np.linalg.solve(N.T, cost)
        except np.linalg.LinAlgError:
            return None
        y = np.where((kinds >= 0) & (kinds < self.equations), y, np.maximum(y, 0.0))
        rounding = 4 * self.size * np.finfo(np.float64).eps * (np.abs(y) @ np.abs(N) + np.abs(cost))
        return w if (np.abs(y @ N + cost) <= rounding).all() else None

    def minimiser(
        self, H: np.ndarray, g: np.ndarray, x: np.ndarray, held: Holding | None = None
    ) -> tuple[np.ndarray, Holding] | None:
        """The step d from x that minimises <g, d> + d'Hd / 2, and the constraints that hold it; None if rounding prevents it.

        The solver begins with the constraints ``held`` by an earlier step. For k coordinates, it takes O(k^3) once, and O(k^2)
        for each constraint that comes or goes. A small ridge makes the step unique, and short where H has no curvature.

        References
        ----------
        Goldfarb, Idnani (1983), A numerically stable dual method for solving strictly convex quadratic programs, Math. Prog. 27.
        """
        clock.check()
        return self._minimiser(inverse_root(workable(H)), workable(g), x, held)

    def _minimiser(self, J: np.ndarray, g: np.ndarray, x: np.ndarray, held: Holding | None) -> tuple[np.ndarray, Holding] | None:
        """The same for J with J'HJ = 1, which the solver changes."""
        solver, k, rows = kernels("dual_set"), self.size, len(self.b)
        across = np.concatenate([self.A @ J, J])
        squares = np.einsum("ij,ij->i", across, across)
        metric = np.sqrt(np.append(squares, squares[rows:].sum()) + 1e-300)
        problem = solver.PolyhedralProblem(
            g, x, self.A, self.b - self.A @ x, self._sizes, metric, self.lower - x, self.upper - x, self.radius,
            self.equations,
        )  # fmt: skip
        work = self._working(solver, J, held)
        if not solver.dual_minimum(problem, work, ROUNDS_EACH * (rows + 3 * k)) or not np.isfinite(work.d).all():
            return None
        q = int(work.sizes[0])
        return work.d, Holding(work.kinds[:q], work.N[:q])

    def _working(self, solver: Any, J: np.ndarray, held: Holding | None) -> Any:
        """Room for the solver, with the equations and the constraints ``held`` as the first to look at."""
        k, kinds, normals = self.size, np.arange(self.equations), self.A[: self.equations]
        if held is not None:
            own = (held.kinds < 0) | (held.kinds >= self.equations)
            kinds, normals = np.append(kinds, held.kinds[own]), np.vstack([normals, held.normals[own]])
        size = max(k, len(kinds)) + 1
        N, places = np.empty((size, k)), np.empty(size, np.int64)
        N[: len(kinds)], places[: len(kinds)] = normals, kinds
        right, weights, r = np.zeros((3, size))
        return solver.Working(np.zeros(k), J, np.zeros((k, k)), places, N, right, weights, np.zeros(k), r, np.array([len(kinds)]))

    def longest(self, x: np.ndarray, d: np.ndarray) -> float:
        """A multiple of d that stays inside, if d does, and at least 1: the longest, or a safe one if the l1 norm is limited."""
        across = self.A[self.equations :] @ np.stack([x, d], axis=1)
        t = longest_step(across[:, 0], across[:, 1], -np.inf, self.b[self.equations :], most=math.inf)
        t = longest_step(x, d, self.lower, self.upper, most=t)
        if self.radius < math.inf:
            t = min(t, (self.radius - float(np.abs(x).sum())) / max(float(np.abs(d).sum()), 1e-300))
        return max(1.0, t)

    def snapped(self, x: np.ndarray) -> np.ndarray:
        """x with the coordinates that rounding keeps from a bound, or from 0 if the l1 norm is limited, exactly there."""
        near = SNAP * float(np.abs(x).max(initial=0.0))
        for end in self._ends:
            x = np.where(np.abs(x - end) <= near, end, x)
        return x

    @cached_property
    def _ends(self) -> list[np.ndarray]:
        """The ends that entries may stop at."""
        zero = [] if self.radius == math.inf else [np.zeros(1)]
        return [end for end in (self.lower, self.upper) if np.isfinite(end).any()] + zero


@dataclass(frozen=True)
class Holding:
    """The constraints that hold a minimiser: its equations, and inequalities."""

    kinds: np.ndarray  # as in `extremal.kernels.dual_set`
    normals: np.ndarray  # in rows


def inverse_root(H: np.ndarray) -> np.ndarray:
    """J with J'HJ = 1, up to a ridge relative to the diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> inverse_root(np.diag([4.0, 16.0])).round(9)
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    squares, ridge = np.diagonal(H), UNIT_RIDGE
    if not squares.min() > CURVELESS:
        seen = squares > CURVELESS
        squares = np.where(seen, squares, squares[seen].min() if seen.any() else 1.0)
    unit = 1.0 / np.sqrt(squares)
    scaled = unit[:, None] * H * unit
    while True:
        scaled.flat[:: len(H) + 1] += ridge
        try:
            L = np.linalg.cholesky(scaled)
        except np.linalg.LinAlgError:
            ridge *= STEEPER
        else:
            return np.ascontiguousarray(unit[:, None] * np.linalg.inv(L).T)
