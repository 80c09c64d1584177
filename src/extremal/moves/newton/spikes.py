"""Newton steps on the coordinates in use: second-order corrective moves over sets whose vertices have one entry each."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from extremal.checks import InputError
from extremal.gradients.base import Estimate, SomeGradient
from extremal.moves.base import FlatMove, MoveOracle, Point
from extremal.moves.newton.model import Hessian, Memory, NewtonState, Root
from extremal.objectives.base import Objective, is_factored
from extremal.objectives.column_blocks import COMPILED_COLUMNS, FORMED_COLUMNS, SHORT_ROWS
from extremal.objectives.expansion import Expansion
from extremal.points.iterates import freeze
from extremal.quadratic.search import longest_step
from extremal.quadratic.solver import ROUNDS, Quadratic
from extremal.sets.base import ConvexSet, Spikes
from extremal.sets.shared import least_products
from extremal.steps.base import Step

MASTER = 1e-3  # share of the gap left over the coordinates in use at which the other coordinates are examined again
MASTER_OF_ALL = 1e-8  # the same share if there are no others: a compiled step takes less time than a state of the loop
WIDE_START = 400  # number of non-zeros in a starting point above which a vertex is the better start
EARLY = 10  # largest number of rounds of the quadratic problem while the gap exceeds f
FAR_ROUNDS, FAR_LONGEST = 4, 5  # rounds if problems use products with the Hessian, and iterations per round
INNER = 0.01  # share of the gap to which the quadratic problem is solved
NEWCOMERS = 2, 50  # coordinates that may enter at once: a multiple of those in use, and at least this number
SAMPLED = 1, 20  # the same while g comes from a sample
BESIDE = 0.1  # share of the coordinates in use to copy beside those of a large model, because the next steps may want them
ALL_KNOWN = 200  # up to this many coordinates of a known quadratic function are in its first model
WORTH_NEW = 0.25  # share of the gap that a coordinate must promise to be worth a new Hessian
REST = 1e-12  # a smaller weight of the origin is the rounding of a sum of weights


@dataclass(frozen=True)
class SpikeNewton(FlatMove):
    """A Newton step over the part of the set spanned by some coordinates W, for l1 balls and simplices.

        u = argmin over C, u_j = 0 for j outside W, of <g, u - x> + (u - x)' H (u - x) / 2
        x <- x + t (u - x),   H = (1/n) A_W' diag phi''(A x) A_W,   t = 1, 1/2, ... by Armijo, or 2, 4, ... while f falls

    W holds the coordinates in use and those of the most promising vertices. The quadratic problem is over weights of the vertices
    at W. An active-set method solves it, and drops coordinates that do not help. The move keeps a Hessian as long as every
    step reduces the gap fivefold, unless a new one takes less time than a pass over the rows. f never increases. If H is not
    positive definite, |phi''| replaces phi''. The step rule is not used. A quadratic f whose Hessian is known
    (`gradients.Expanded`) is minimised by the first step.

    A step takes one LMO and one product with the columns W for t. A new Hessian takes the sum over rows of their squared entries
    in W, counts as n component gradients, and costs O(k^3) for k = |W|. If W has more than 400 columns of sparse data, conjugate
    gradients use products with the Hessian, which count as n component gradients each.

    References
    ----------
    Liu, Cevher, Tran-Dinh (2022), A Newton Frank-Wolfe method for constrained self-concordant minimization, J. Global Optim.;
    Carderera, Pokutta (2020), Second-order conditional gradient sliding, arXiv:2002.08907; Yuan, Ho, Lin (2012), An improved
    GLMNET for l1-regularized logistic regression, JMLR 13.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(3), np.array([0.6, 0.4, -1.0]))
    >>> r = ex.minimize(f, ex.Simplex(), ex.Method(ex.gradients.Growing(), ex.steps.FullStep(), SpikeNewton()), tol=1e-9)
    >>> r.x.round(6), r.n_iter
    (array([0.6, 0.4, 0. ]), 1)
    """

    spikes: Spikes | None = field(default=None, repr=False, compare=False)  # the set's, if the caller has asked already
    growth: tuple[int, int] = field(default=NEWCOMERS, repr=False, compare=False)  # as `NEWCOMERS`, for data of another shape

    def check(self, gradient: SomeGradient, f: Objective, C: ConvexSet) -> None:
        super().check(gradient, f, C)
        check_dense("SpikeNewton", f, C)
        if self.spikes is None and spikes_of(C) is None:
            raise InputError(f"SpikeNewton needs a set whose vertices have one entry each, such as L1Ball or Simplex, got {C}")

    def first(self, C: MoveOracle) -> np.ndarray:
        """The set's own starting point, or a vertex if that point has many non-zeros."""
        start = C.start()
        return C.lmo(np.zeros_like(start)).to_array() if np.count_nonzero(start) > WIDE_START else start

    def advance(self, k: int, f: Objective, C: MoveOracle, point: Point, estimate: Estimate, step: Step) -> Point:
        """One Newton step."""
        at = NewtonState.of(f, C, point.x, estimate)
        spikes = spikes_of(C) if self.spikes is None else self.spikes
        assert spikes is not None
        far = at.outward(spikes)
        if far > 1:
            x, memory = far * at.x, point.memory
        else:
            memory = self._model(at, point.memory, spikes, self.growth if estimate.exact else SAMPLED)
            solve = self._solved if point.memory is None and isinstance(at.f, Expansion) else self._step
            x, memory = solve(at, memory, spikes)
        x = at.moved(point.x, x, memory)
        return Point(x, x, memory=memory)

    def _solved(self, at: NewtonState, memory: Memory, spikes: Spikes) -> tuple[np.ndarray, Memory]:
        """The minimiser of a known quadratic f over the model's coordinates, to the accuracy that the run asks for."""
        W, x = memory.part.W, at.x.copy()
        place, scale, w = spread_over(x[W], spikes, W)
        H = memory.part.hessian(at.z) if memory.H is None else memory.H
        q = Quadratic.over_weights(H, at.g[W], x[W], place, scale)
        new = q.minimise(w, at.f.within(at.value))
        x[W] = q.point(new / new.sum())
        return x, memory

    def _step(self, at: NewtonState, memory: Memory, spikes: Spikes) -> tuple[np.ndarray, Memory]:
        """x after a Newton step on the model's coordinates; if these are few, after several steps in compiled loops."""
        W, x = memory.part.W, at.x.copy()
        place, scale, w = spread_over(x[W], spikes, W)
        share = MASTER if len(W) < x.size else MASTER_OF_ALL
        found = memory.part.solve(place, scale, w, x[W], at.z, share * at.gap) if memory.H is None else None
        if found is not None and found[0] is not None:
            x[W] = found[0]
            return x, memory
        H = memory.part.hessian(at.z, at.far) if memory.H is None else memory.H
        q = Quadratic.over_weights(at.tailed(H, W), at.g[W], x[W], place, scale)
        inner, rounds = INNER, EARLY if at.far else ROUNDS
        if not isinstance(q.H, np.ndarray):
            inner, rounds = 10 * INNER, FAR_ROUNDS if at.far else EARLY
            q = replace(q, longest=FAR_LONGEST if at.far else q.longest)

        def solve(H: Hessian) -> tuple[np.ndarray, np.ndarray, float]:
            other = q if H is q.H else replace(q, H=H, root=H.B.T if isinstance(H, Root) else None)
            new = other.minimise(w, inner * at.gap, rounds)
            return q.point(new) - x[W], new, longest_step(w, new - w, most=math.inf)

        def end(new: np.ndarray) -> np.ndarray:
            there = x.copy()
            there[W] = q.point(new / new.sum())
            return there

        found = at.descend(memory, q.H, solve, end)
        if found.t == 0 and isinstance(q.H, np.ndarray) and (B := memory.part.root(at.z)) is not None:  # is rounding at fault?
            found = at.descend(memory, Root(B), solve, end)
        if found.x is not None:
            x = found.x
        elif found.t > 0:
            x[W] = q.point(between(w, found.kept, found.t))
        return x, memory.after(found)

    def _model(self, at: NewtonState, memory: Memory | None, spikes: Spikes, growth: tuple[int, int]) -> Memory:
        """The quadratic model of the last step if it is still good, otherwise a new one."""
        if at.learns:
            return Memory.new(at.f.on_columns(np.arange(at.x.size)), at) if memory is None else memory.learnt(at)
        if memory is None and isinstance(at.f, Expansion) and at.x.size <= ALL_KNOWN:
            return Memory.new(at.f.on_columns(np.arange(at.x.size)), at)
        promise, used = promises(at, spikes), at.x.nonzero()[0]
        if memory is not None and memory.fits(at) and among(memory.part.W, used, promise > WORTH_NEW * at.gap):
            return memory.again(at)
        most = max(growth[0] * len(used), growth[1])
        W = coordinates(promise, used, 0.01 * at.gap, most)
        near = memory is not None and memory.part.f is at.f and len(memory.part.W) <= 1.5 * len(W)
        if near and memory is not None and among(memory.part.W, W):
            part = memory.part  # its columns are already copied
        else:
            most = min(most, len(W) - len(used) + int(BESIDE * len(used))) if len(W) > FORMED_COLUMNS else 0
            part = at.f.on_columns(coordinates(promise, used, -at.gap, most) if most else W)
        short = at.exact and at.f.n <= SHORT_ROWS and len(part.W) <= COMPILED_COLUMNS and (memory is None or memory.width == 0)
        short = short and (memory is None or memory.H is not None or at.gap <= 0.5 * memory.gap)  # the last steps were worth it
        return Memory.of(part, None, at, memory) if short else Memory.new(part, at, memory)


def check_dense(call: str, f: Objective, C: ConvexSet) -> None:
    """Refuse iterates that are not arrays."""
    if C.matrix_free and is_factored(f):
        raise InputError(f"{call} needs iterates that are arrays, got matrices in factors over {C}: use LowRankFW")


def spikes_of(C: ConvexSet | MoveOracle) -> Spikes | None:
    """The vertices of a set, if each has one entry; otherwise None."""
    spikes = C.spikes()
    if spikes is None or (isinstance(spikes.low, float) and isinstance(spikes.high, float)):
        return spikes
    if not (np.ndim(spikes.low) > 1 or np.ndim(spikes.high) > 1):
        return spikes
    return replace(spikes, low=np.ravel(spikes.low), high=np.ravel(spikes.high))


def promises(at: NewtonState, spikes: Spikes) -> np.ndarray:
    """The promise of the best vertex at each coordinate; if a Hessian is known on some of them, only these may be promising.

    At an exact gradient this needs that no other coordinate is worth a new Hessian.
    """
    promise = at.here - least_products(spikes, at.g)
    if at.f.known is not None:
        others = np.ones(len(promise), bool)
        others[at.f.known] = False
        if not (at.exact and (promise[others] > WORTH_NEW * at.gap).any()):
            promise[others] = -np.inf
    return promise


def coordinates(promise: np.ndarray, used: np.ndarray, threshold: float, most: int) -> np.ndarray:
    """The coordinates in use, and at most ``most`` others with the largest promise; in increasing order."""
    promise = promise.copy()
    promise[used] = -np.inf
    others = (promise > threshold).nonzero()[0]
    if len(others) == len(used) == 0:  # the gap overflows
        others = np.array([int(np.argmax(promise))])
    if len(others) > most:
        others = others[np.argpartition(-promise[others], most - 1)[:most]]
    return np.sort(np.concatenate([used, others]))


def among(W: np.ndarray, places: np.ndarray, more: np.ndarray | None = None) -> bool:
    """Whether W has all places, and those marked by True in ``more``.

    Examples
    --------
    >>> among(np.array([1, 4]), np.array([4]), np.array([False, True, False, False, False]))
    True
    """
    others = np.ones(max(W[-1], places[-1] if len(places) else 0) + 1 if more is None else len(more), bool)
    others[W] = False
    return not (others[places].any() or (more is not None and (others & more).any()))


def spread_over(x: np.ndarray, spikes: Spikes, W: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The vertices at W that form x: for each its place in W, its entry there, and its weight in x."""
    if isinstance(spikes.high, float) and isinstance(spikes.low, float):
        place, up, down = _usual_places(spikes.high != 0, spikes.low != 0, spikes.origin, len(W))
        scale = spikes.high * up + spikes.low * down
    else:
        place, scale = _places(_at(spikes.high, W), _at(spikes.low, W), spikes.origin)
    w, most = np.zeros(len(place)), len(place) - spikes.origin
    np.maximum(np.divide(x[place[:most]], scale[:most], out=w[:most]), 0.0, out=w[:most])
    if spikes.origin:
        rest = 1.0 - float(w.sum())
        w[-1] = rest if rest > REST else 0.0
    return place, scale, w / w.sum()


def _at(reach: float | np.ndarray, W: np.ndarray) -> np.ndarray:
    """The entries of the vertices at W."""
    return reach[W] if isinstance(reach, np.ndarray) and reach.ndim else np.full(len(W), float(reach))


def _places(high: np.ndarray, low: np.ndarray, origin: bool) -> tuple[np.ndarray, np.ndarray]:
    """Places and entries of the vertices that have an entry; the origin, if it is one, comes last with the entry 0."""
    up, down, zero = high.nonzero()[0], low.nonzero()[0], np.zeros(int(origin))
    return np.concatenate([up, down, zero.astype(np.intp)]), np.concatenate([high[up], low[down], zero])


@lru_cache(maxsize=64)
def _usual_places(high: bool, low: bool, origin: bool, size: int) -> tuple[np.ndarray, ...]:
    """The places if one size serves all coordinates, with 1 for the vertices of the upper size and for those of the lower."""
    place, sign = _places(np.full(size, float(high)), np.full(size, -float(low)), origin)
    return tuple(map(freeze, (place, np.maximum(sign, 0.0), np.maximum(-sign, 0.0))))


def between(w: np.ndarray, new: np.ndarray, t: float) -> np.ndarray:
    """w + t (new - w) as weights: non-negative, with sum 1 up to rounding even for large t."""
    weights = np.maximum(w + t * (new - w), 0.0)
    return weights / weights.sum()
