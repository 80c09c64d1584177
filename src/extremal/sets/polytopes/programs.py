"""Linear programs over one polytope for many costs, solved by HiGHS."""

from __future__ import annotations

import math
import re
import threading
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp

from extremal.checks import InputError
from extremal.points.vertex import DenseVertex, SparseVertex, Vertex
from extremal.sets.polytopes.rows import ProgramRows, parts
from extremal.sets.shared import few, power
from extremal.support import linalg

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

TOLERANCE = 1e-10  # HiGHS's tolerance for feasibility and reduced costs, the smallest it accepts; the program is scaled to size 1
COSTS = 2.0**13  # the largest cost passed to HiGHS, so that the tolerance for reduced costs is below rounding
GAPS = 2.0**20  # the same for mixed-integer programs, which stop at a gap of 1e-6
GRID = 2.0**-46  # entries of answers are multiples of GRID times the size, so that equal vertices mostly have equal keys
SMALL_PROGRAM = 100  # largest number of variables for which the box is computed; beyond it, finite bounds count as tight
OPTIONS = {"primal_feasibility_tolerance": TOLERANCE, "dual_feasibility_tolerance": TOLERANCE}


class Program:
    """min <g, x> over {x : A_ub x <= b_ub, A_eq x = b_eq, lower <= x <= upper}, for a sequence of g.

    ProgramRows are divided by their largest entry, and x by a power of two near the polytope's size, so that HiGHS's absolute
    tolerances become relative. With the package highspy, the program keeps one model and can start from the basis of an
    earlier answer; without it, each program is a call of scipy. An answer depends only on g and that basis, not on other
    callers. Copies and pickles do not include the model.
    """

    def __init__(self, rows: ProgramRows, folds: bool = False):
        A_ub, b_ub, A_eq, b_eq, bounds = rows
        self.folds = folds  # whether the variables are the positive and the negative parts of the points
        ub, eq = (sp.csr_array((0, len(bounds))) if rows is None else sp.csr_array(rows) for rows in (A_ub, A_eq))
        A, self.upto = sp.csr_array(sp.vstack([ub, eq])), len(b_ub) if b_ub is not None else 0  # A[:upto] x <= b[:upto]
        b = np.concatenate([v if v is not None else np.zeros(0) for v in (b_ub, b_eq)])
        top = abs(A).max(axis=1).toarray().reshape(-1) if len(b) else np.ones(0)
        top[top == 0] = 1.0
        self.A: Any = sp.csr_array(sp.diags_array(1 / top) @ A) if len(b) else A
        self.b = b / top
        self.lower, self.upper = bounds[:, 0], bounds[:, 1]
        ends = np.abs(np.concatenate([self.b, bounds.reshape(-1)]))
        self.size = self.unit = power(float(np.max(ends, where=np.isfinite(ends), initial=0.0)))
        self._renew()

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name not in ("_lock", "_model", "_bases")}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self._renew()

    def examine(self, call: str) -> None:
        """Refuse empty or unbounded constraints, and measure the size by the two ends of a random direction."""
        g = np.random.default_rng(0).standard_normal(len(self.lower))
        ends = [self._linprog(g)]
        if ends[0].status != 0 and (found := self._linprog(np.zeros(len(g)))).status != 0:
            raise InputError(f"`{call}(...)` must have a feasible point, but HiGHS calls its constraints: {_word(found)}")
        if (ray := self._ray()) is not None:
            j, word = int(np.abs(ray).argmax()), _word(self._linprog(-ray))
            raise InputError(f"`{call}(...)` must be bounded, but HiGHS calls it: {word} (variable {j} has no limit)")
        ends.append(self._linprog(-g))
        self.size = self.unit * max(float(np.abs(_answer(found)).max()) for found in ends)
        self.unit = power(self.size)

    def ask(self, g: np.ndarray, near: Vertex | None = None) -> Vertex:
        """A vertex with the smallest <g, x>, from the basis of ``near`` if that is an answer of this program."""
        cost = _cost(g, COSTS)
        cost = np.concatenate([cost, -cost]) if self.folds else cost
        with self._lock:
            if self._model is None:
                self._model = _model(self)
            y = self._kept(self._model, cost, self._basis(near)) if self._model else None
            x = self._tidy(self._cold(cost) if y is None else y)
            found = vertex(x[: g.size] - x[g.size :] if self.folds else x, g.shape)
            if self._model and y is not None:
                self._keep(found, self._model.basis)
            return found

    def _basis(self, near: Vertex | None) -> object:
        """The basis that led to an answer; None for vertices from elsewhere."""
        owner, basis = self._bases.get(id(near), (lambda: None, None))
        return basis if near is not None and owner() is near else None

    def _keep(self, found: Vertex, basis: object) -> None:
        """Keep the basis of an answer for the lifetime of the answer."""
        key, bases = id(found), self._bases
        bases[key] = weakref.ref(found, lambda _: bases.pop(key, None)), basis

    def _cold(self, cost: np.ndarray) -> np.ndarray:
        """An optimal vertex, without a start; if HiGHS gets stuck with tight tolerances, with its own ones."""
        found = self._linprog(cost)
        return _answer(found if found.status == 0 else self._linprog(cost, options={}))

    def integer(self, g: np.ndarray, integrality: np.ndarray) -> np.ndarray | str:
        """A point with the smallest <g, x>, with integers where integrality is 1; HiGHS's word if there is none.

        Integers are rounded. A linear program with these integers fixed then determines the other variables.
        """
        cost = _cost(g, GAPS)
        found = self._milp(cost, integrality)
        if found.status != 0:
            return _word(found)
        whole = integrality == 1
        x = np.where(whole, np.round(found.x), found.x) + 0.0
        if whole.all():
            return x
        fixed = np.column_stack([np.where(whole, x, self.lower), np.where(whole, x, self.upper)])
        found = self._linprog(cost, bounds=fixed / self.unit)
        return np.where(whole, x, self._tidy(found.x)) if found.status == 0 else _word(found)

    def holds(self, x: np.ndarray, slack: float) -> bool:
        """Whether x satisfies every constraint up to ``slack``, with each row divided by its largest entry."""
        x = x.reshape(-1).astype(np.float64, copy=False)
        x = parts(x) if self.folds else x
        over = self.A @ x - self.b
        inside = (x >= self.lower - slack) & (x <= self.upper + slack)
        return bool((over[: self.upto] <= slack).all() and (np.abs(over[self.upto :]) <= slack).all() and inside.all())

    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """A box around the polytope, by one program per side; with many variables, finite bounds are used as they are."""
        ends, near = np.array([self.lower, self.upper]), None
        for k, j in zip(*np.nonzero((len(self.lower) <= SMALL_PROGRAM) | np.isinf(ends)), strict=True):
            near = self.ask(np.bincount([j], [1.0 - 2 * k], len(self.lower)), near)
            ends[k, j] = near.to_array()[j]
        return ends[0], ends[1]

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._model: _Highs | Literal[False] | None = None  # False if highspy is not installed
        self._bases: dict[int, tuple[Callable[[], object], object]] = {}  # the bases of answers that are still alive

    def _ray(self) -> np.ndarray | None:
        """A direction in which the polyhedron is unbounded, or None.

        Rays r satisfy A_ub r <= 0, A_eq r = 0, and the signs of one-sided bounds. For them the sum of -A_ub r and of |r_j| for
        one-sided j has terms of one sign only. So one program, bounded by |r_j| <= 1, decides whether any term differs from 0.
        If none does, rays are the null space of the columns without bounds.
        """
        below, above = np.isfinite(self.lower), np.isfinite(self.upper)
        if (below & above).all():
            return None
        signs = below.astype(float) - above
        cone = np.column_stack([np.where(below, 0.0, -1.0), np.where(above, 0.0, 1.0)])
        found = self._linprog(self.A[: self.upto].sum(axis=0) - signs, np.zeros_like(self.b), cone)
        if found.status == 0 and found.fun < -1e-7:
            return found.x
        free = np.flatnonzero(~below & ~above)
        if not free.size:
            return None
        square = np.vstack([self.A[:, free].toarray(), np.zeros((free.size, free.size))])  # at least as many rows as columns
        _, s, v = linalg.svd(square, full_matrices=False)
        null = v[s <= 1e-10]
        return None if not len(null) else np.bincount(free, null[0], len(self.lower))

    def _kept(self, model: _Highs, cost: np.ndarray, basis: object) -> np.ndarray | None:
        """The answer of the kept model; if updates of its factorisation have lost too many digits, from a new one."""
        y = model.solve(cost, basis)
        if y is None:
            return None
        over = self.A @ y - self.b / self.unit  # violations of rows, in HiGHS's units
        off = max(np.max(over[: self.upto], initial=0.0), np.max(np.abs(over[self.upto :]), initial=0.0))
        return y if off <= TOLERANCE else model.refresh()

    def _linprog(
        self, cost: np.ndarray, b: np.ndarray | None = None, bounds: np.ndarray | None = None, options: dict[str, float] = OPTIONS
    ) -> OptimizeResult:
        from scipy.optimize import linprog

        b = self.b / self.unit if b is None else b
        bounds = np.column_stack([self.lower, self.upper]) / self.unit if bounds is None else bounds
        ub, eq = self.A[: self.upto], self.A[self.upto :]
        return linprog(cost, ub, b[: self.upto], eq, b[self.upto :], bounds, method="highs-ds", options=options)

    def _milp(self, cost: np.ndarray, integrality: np.ndarray) -> OptimizeResult:
        from scipy.optimize import Bounds, LinearConstraint, milp

        below = np.where(np.arange(len(self.b)) < self.upto, -np.inf, self.b)
        rows = [LinearConstraint(self.A, below, self.b)] if len(self.b) else []  # pyright: ignore[reportArgumentType]
        bounds = Bounds(self.lower, self.upper)  # pyright: ignore[reportArgumentType]
        return milp(cost, integrality=integrality, bounds=bounds, constraints=rows, options={"mip_rel_gap": 0.0})

    def _tidy(self, y: np.ndarray) -> np.ndarray:
        """The answer in the original units."""
        return self.rounded(y * self.unit, self.lower, self.upper)

    def rounded(self, x: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """x rounded to the grid, and moved to a bound if it is next to one."""
        x = np.round(x / (GRID * self.unit)) * (GRID * self.unit)
        for bound in (lower, upper):
            x = np.where(np.abs(x - bound) <= 2 * GRID * self.unit, bound, x)
        return np.clip(x, lower, upper) + 0.0


class _Highs:
    """A model kept by highspy, in which only the costs change."""

    def __init__(self, module: ModuleType, program: Program):
        self._costs = np.arange(len(program.lower), dtype=np.int32)
        self._optimal = module.HighsModelStatus.kOptimal
        self._highs = module.Highs()
        for name, value in ({"output_flag": False, "solver": "simplex"} | OPTIONS).items():
            self._highs.setOptionValue(name, value)
        self._highs.passModel(_lp(module, program))

    def solve(self, cost: np.ndarray, basis: object) -> np.ndarray | None:
        """The vertex, from a basis if given; None if HiGHS did not find one."""
        self._highs.clearSolver()  # no trace of earlier calls remains
        if basis is not None:
            self._highs.setBasis(basis)
        self._highs.setOptionValue("simplex_strategy", 1 if basis is None else 4)  # primal if a basis is given
        self._highs.changeColsCost(len(cost), self._costs, cost)
        return self._run()

    @property
    def basis(self) -> object:
        """The basis of the last answer."""
        return self._highs.getBasis()

    def refresh(self) -> np.ndarray | None:
        """Solve again, from a new factorisation of the last basis."""
        self._highs.setBasis(self._highs.getBasis())
        return self._run()

    def _run(self) -> np.ndarray | None:
        self._highs.run()
        return np.array(self._highs.getSolution().col_value) if self._highs.getModelStatus() == self._optimal else None


def _model(program: Program) -> _Highs | Literal[False]:
    """A model, or False if highspy is not installed."""
    try:
        import highspy  # pyright: ignore[reportMissingImports]
    except ImportError:
        return False
    return _Highs(highspy, program)


def _lp(module: ModuleType, program: Program) -> object:
    lp, columns = module.HighsLp(), program.A.tocsc()
    lp.num_row_, lp.num_col_ = len(program.b), len(program.lower)
    lp.col_cost_ = np.zeros(lp.num_col_)
    lp.col_lower_, lp.col_upper_ = program.lower / program.unit, program.upper / program.unit
    lp.row_upper_ = program.b / program.unit
    lp.row_lower_ = np.where(np.arange(lp.num_row_) < program.upto, -np.inf, lp.row_upper_)
    lp.a_matrix_.format_ = module.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = columns.indptr, columns.indices, columns.data
    return lp


def vertex(x: np.ndarray, shape: tuple[int, ...]) -> SparseVertex | DenseVertex:
    """x as a vertex, sparse if that is smaller."""
    return few(np.arange(x.size), x, shape)


def in_box(lmo: Callable[[np.ndarray], Vertex], lower: np.ndarray, upper: np.ndarray) -> float:
    """A bound on the distance of two points of a set in a box: x - l >= 0, hence |x - y|^2 <= |x - l|^2 + |y - l|^2."""
    w = upper - lower
    if not w.any():
        return 0.0
    most, least = float(w @ (lmo(-w).to_array() - lower)), float(w @ (upper - lmo(w).to_array()))
    return min(float(np.linalg.norm(w)), math.sqrt(2 * most), math.sqrt(2 * least))


def middle(lmo: Callable[[np.ndarray], Vertex], d: int) -> np.ndarray:
    """The mean of two opposite answers."""
    g = np.random.default_rng(0).standard_normal(d)
    return (lmo(g).to_array() + lmo(-g).to_array()) / 2


def _cost(g: np.ndarray, most: float) -> np.ndarray:
    """g, flat and scaled to the largest magnitude ``most``; zero stays zero."""
    return g.reshape(-1).astype(np.float64) / (float(np.abs(g).max()) or 1.0) * most


def _answer(found: OptimizeResult) -> np.ndarray:
    if found.status != 0:
        raise RuntimeError(f"HiGHS found no vertex of the polytope: {_word(found)}")
    return found.x


def _word(found: OptimizeResult) -> str:
    """HiGHS's own status, from scipy's message."""
    match = re.search(r"model_status is ([^;)]*)", found.message)
    return match[1] if match else found.message
