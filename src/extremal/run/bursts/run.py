"""Running bursts: from a point and an estimate of the loop to those of many iterations later."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from extremal.checks import InputError, NonFiniteError
from extremal.data.csr import CSR
from extremal.data.dense import Dense
from extremal.gradients.base import Estimate
from extremal.kernels.codes import ORACLE_CODES, SHIFT, TABLE
from extremal.kernels.views import locked
from extremal.losses.margin import compiled
from extremal.methods.base import Method
from extremal.moves.base import Point
from extremal.moves.vertex import VertexMove
from extremal.objectives.linear import LinearModel
from extremal.objectives.sampling import Sampler
from extremal.points.iterates import freeze
from extremal.run.bursts.estimators import NONE, BurstEstimator, part
from extremal.run.counted_set import CountedSet
from extremal.run.counting import CountedObjective
from extremal.sets.compiled import CompiledOracle, compiled_oracle
from extremal.steps.scaled import schedule


@dataclass(frozen=True)
class Reach:
    """How far a burst may go before somebody wants to look."""

    grads: float = math.inf  # to the first iterate at which this many component gradients were asked for
    iterations: float = math.inf  # to this iteration
    over: Callable[[], bool] = lambda: False  # asked between calls: whether time is up


def make(f: CountedObjective, C: CountedSet, method: Method, sampler: Sampler) -> Burst | None:
    """A burst for this run, or None if one of its parts has no compiled form."""
    model, known, estimator, steps = f.inner, compiled_oracle(C.inner), part(method.gradient), schedule(method.step)
    if known is None or estimator is None or steps is None or type(method.move) is not VertexMove:
        return None
    in_memory = type(model) is LinearModel and type(model.data) in (CSR, Dense) and not model.deriv_shape
    if not in_memory or compiled(model.loss) is None:  # type: ignore[attr-defined]
        return None
    burst = Burst(f, C, known, estimator, steps, sampler)
    burst.ready()
    return burst


class Burst:
    """Iterations of one run, many at a time.

    A burst that is asked to go on from the very state that it has shown last does so from its own numbers, and not from that
    state, in which they are rounded: who looks, and when, changes no bit of a run.
    """

    def __init__(
        self, f: CountedObjective, C: CountedSet, known: CompiledOracle, estimator: BurstEstimator, steps: Any, sampler: Sampler
    ):
        self.f, self.C, self.part, self.steps, self.sampler = f, C, estimator, steps, sampler
        self._shown: tuple[Any, Any] = None, None  # the point and the estimate that the loop was given last
        self.interrupted = False  # Ctrl-C came, and is still to be raised
        self.iterations = 0  # made so far
        model: Any = f.inner
        d = model.data.shape[1]
        b, sparse = estimator.gradient.batch, isinstance(model.data, CSR)
        empty = np.zeros(0, np.int64)
        entries = _entries(model.data) if sparse else (empty, empty, model.data.array)
        self._problem = *map(locked, (*entries, model.y)), *(compiled(model.loss) or ())
        bounds = (np.ascontiguousarray(np.atleast_1d(a).reshape(-1), np.float64) for a in (known.lower, known.upper))
        self._set = estimator.kind, ORACLE_CODES[known.kind], float(known.size), *map(locked, bounds)
        self._empty = np.zeros(0, f.dtype)
        self._scales = np.ones(3)  # xi, sigma, iterations made
        self._v, self._G = np.empty(d), np.empty((d, 2), order="C" if sparse else "F")
        self._s = NONE if known.single else np.empty(d)
        self._order = np.empty(d, np.int64) if known.kind == "fill" else empty
        self._b = b
        self._old, self._last = np.empty(b), np.empty(b * (1 if estimator.second is None else 2), np.int64)
        blocks = -(-d >> SHIFT) if known.single and sparse and _worth_it(model.data, b, estimator.kind >= TABLE) else 0
        self._blocks, self._groups = np.empty(blocks), np.empty(-(-blocks >> SHIFT))
        work = 2 * b * (model.data.nnz / f.n if sparse else d) + (0 if blocks else d)
        self._longest = max(1, int(_WORK / work))  # iterations of a compiled call

    def run(self, k: int, point: Point, estimate: Any, reach: Reach) -> tuple[int, Point, Any]:
        """Go on from iteration k: the iterations made, the point and the estimate after them; none if none can be made."""
        if self.interrupted:
            raise KeyboardInterrupt  # the loop has shown how far it came
        cost = self.part.cost * self.part.gradient.batch
        wanted = min(reach.iterations - k, math.ceil(min((reach.grads - self.f.calls.grads) / cost, _AT_MOST)), _AT_MOST)
        most = self.part.most(k, self.sampler, estimate, int(wanted))
        if most < 1:
            return 0, point, estimate
        self._scales[2] = 0.0
        if point is not self._shown[0] or estimate is not self._shown[1]:
            self._load(point, estimate)
        try:
            while self._made < most and (self._made == 0 or not reach.over()):
                self._call(k, most, estimate)
        except KeyboardInterrupt:  # it comes between calls: the loop goes on to show what was made by then
            if not self._made:
                raise
            self.interrupted = True
        finally:
            self.iterations += self._made
            self.f.calls.grads += self._made * cost
            self.C.asked(self._made, estimate.g)
        if self._made:
            self._shown = point, estimate = self._save(estimate)
        return self._made, point, estimate

    @property
    def _made(self) -> int:
        return int(self._scales[2])

    def ready(self) -> None:
        """Compile, or load what was compiled: before the clock of the run starts."""
        self._w, self._table, self._margins = locked(NONE), self._empty, self._empty
        self._scales[:] = 1.0, 1.0, 0.0
        self._kernel(np.empty((0, 1), np.int64), _NO_ROWS, NONE, NONE, NONE)
        if self._blocks.size:
            self._rebuild()

    def _load(self, point: Point, estimate: Estimate) -> None:
        """x = v, g = M + V."""
        mean = self.part.mean(estimate)
        self._scales[:2] = 1.0
        self._v[:] = point.x
        self._G[:, 0] = estimate.g if mean is None else estimate.g - mean
        self._G[:, 1] = 0.0 if mean is None else mean
        self._last[:] = -1
        self._w = locked(self.part.snapshot(estimate).astype(np.float64, copy=False))
        self._table, self._margins = (a if a.size else self._empty for a in self.part.arrays(estimate))
        if self._blocks.size:
            self._rebuild()

    def _rebuild(self) -> None:
        kind, code, _, weights, _ = self._set
        _kernels().oracles.rebuild_index(code, self._G, kind >= TABLE, 1.0, weights, self._blocks, self._groups)

    def _call(self, k: int, most: int, estimate: Any) -> None:
        """As many iterations as there are draws at hand."""
        part, before = self.part, self._made
        now, batch, replace = k + before, part.gradient.batch, part.gradient.replace
        rows = self.sampler.ahead(now + part.late, batch, replace)[: min(most - before, self._longest)]
        others = _NO_ROWS if part.second is None else self.sampler.ahead(now, batch, replace, part.second)[: len(rows)]
        ks = np.arange(now, now + len(rows), dtype=np.float64)  # as laws take them
        eta = _one_each(self.steps(ks, part.phase(estimate, np.arange(before, before + len(rows)))), len(rows))
        if not (eta.min() >= 0 and eta.max() <= 1):  # as in steps.take
            bad = int(np.argmin((eta >= 0) & (eta <= 1)))
            raise InputError(f"a step rule gave eta = {eta[bad]!r} at iteration {now + bad}; it must be a number in [0, 1]")
        self._kernel(rows, others, eta, *(_one_each(law, len(rows)) for law in part.weights(ks, self.f.n)))
        if self._made < before + len(rows):
            raise NonFiniteError(f"the gradient estimate of iteration {k + self._made + 1} has a NaN or an infinite entry")

    def _kernel(self, rows: np.ndarray, others: np.ndarray, *laws: np.ndarray) -> None:
        _kernels().burst(
            *self._problem, *self._set, self._b, locked(rows.reshape(-1)), locked(others.reshape(-1)), *laws, self._scales,
            self._v, self._G, self._w, self._table, self._margins, self._s, self._order, self._old, self._last, self._blocks,
            self._groups,
        )  # fmt: skip

    def _save(self, estimate: Estimate) -> tuple[Point, Any]:
        """What the loop would have made."""
        xi, sigma, dtype = self._scales[0], self._scales[1], self.f.dtype
        x = freeze((xi * self._v).astype(dtype, copy=False))
        two = self.part.mean(estimate) is not None
        mean = self._G[:, 1].astype(dtype) if two else None
        g = sigma * self._G[:, 0]
        g = (g + self._G[:, 1] if two else g).astype(dtype, copy=False)
        return Point(x, x), self.part.after(estimate, g, mean, self._made)


_AT_MOST = 2**16  # iterations between two looks of the loop
_WORK = 10**7  # entries that a compiled call reads or writes, some ten milliseconds: time and Ctrl-C wait for it
_NO_ROWS = np.zeros((0, 0), np.int64)


def _entries(data: CSR) -> tuple[np.ndarray, ...]:
    """The arrays of CSR data; if all values are one, as in data of zeros and ones, that one stands for all and is read once."""
    starts, indices, values = data.entries
    same = len(values) > 0 and bool((values == values[0]).all())
    return starts, indices, np.broadcast_to(values[0], len(values)) if same else values


def _worth_it(data: CSR, b: int, two: bool) -> bool:
    """Whether a batch touches so few of the d coordinates that the index is cheaper than a look at each.

    With M and V its bounds are looser, and it pays later.
    """
    n, d = data.shape
    return d >= (8192 if two else 512) and 3 * b * data.nnz < d * n


def _one_each(law: Any, count: int) -> np.ndarray:
    out = np.empty(count)
    out[:] = law
    return out


def _kernels() -> ModuleType:
    from extremal.kernels import burst  # numba: imported by the first burst

    return burst
