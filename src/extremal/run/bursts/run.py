"""Run bursts: take a point and an estimate of the loop to those of many iterations later."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal.checks import InputError, NonFiniteError
from extremal.data.csr import CSR
from extremal.data.dense import Dense
from extremal.gradients.base import Estimate, Phase
from extremal.kernels import arguments
from extremal.kernels.arguments import SHIFT, TABLE, kernels, locked
from extremal.losses.margin import compiled
from extremal.methods.method import Method
from extremal.moves.base import Point
from extremal.moves.vertex import VertexMove
from extremal.objectives.base import Sampler
from extremal.objectives.linear import LinearModel
from extremal.points.iterates import freeze
from extremal.run.bursts.estimators import NONE, BurstEstimator, part
from extremal.run.counting import CountedObjective, CountedSet
from extremal.sets.shared import CompiledOracle, compiled_oracle
from extremal.steps.base import schedule
from extremal.support.kinds import Numbers


@dataclass(frozen=True)
class Reach:
    """How far a burst may go before the driver needs a state."""

    grads: float = math.inf  # up to the first iterate with this many component gradients
    iterations: float = math.inf  # up to this iteration
    over: Callable[[], bool] = lambda: False  # whether time is up; asked between compiled calls


def make(f: CountedObjective, C: CountedSet, method: Method, sampler: Sampler) -> Burst | None:
    """A burst for this run, or None if one of its parts has no compiled form."""
    model, known, estimator, steps = f.inner, compiled_oracle(C.inner), part(method.gradient), schedule(method.step)
    if known is None or estimator is None or steps is None or type(method.move) is not VertexMove:
        return None
    if not has_loops(model):
        return None
    return Burst(f, C, known, estimator, steps, sampler)


def has_loops(f: Any) -> bool:
    """Whether there are compiled loops for the rows and the loss of an objective."""
    return type(f) is LinearModel and type(f.data) in (CSR, Dense) and not f.deriv_shape and compiled(f.loss) is not None


class Burst:
    """Iterations of one run, many at a time.

    If a burst resumes from the very state it showed last, it continues from its own numbers, because the state holds rounded
    ones. Looking at a run therefore changes no bit of it.
    """

    def __init__(
        self,
        f: CountedObjective,
        C: CountedSet,
        known: CompiledOracle,
        estimator: BurstEstimator,
        steps: Callable[[Numbers, Phase | None], Numbers],
        sampler: Sampler,
    ):
        self.f, self.C, self.part, self.steps, self.sampler = f, C, estimator, steps, sampler
        self._shown: tuple[Point | None, Estimate | None] = None, None  # the point and the estimate last given to the loop
        self.interrupted = False  # Ctrl-C came and is yet to be raised
        self.iterations = 0  # iterations made so far
        model: Any = f.inner
        d, b, sparse = model.data.shape[1], estimator.gradient.batch, isinstance(model.data, CSR)
        loss, parameter = compiled(model.loss) or (0, 0.0)
        self._model = arguments.BurstModel(
            burst_rows(model.data), locked(model.y), loss, parameter, sparse and uneven_rows(model.data)
        )
        indexed = known.single and sparse and _worth_it(model.data, b, estimator.kind >= TABLE)
        self._oracle = _oracle(known, d, -(-d >> SHIFT) if indexed else 0)
        self._empty, layout = np.zeros(0, f.dtype), "C" if sparse else "F"
        X, G = (np.empty((d, 2), order=layout) for _ in range(2))  # type: ignore
        vertex, old, order = NONE if known.single else np.empty(d), np.empty(b), np.empty(b + COUNTED_LENGTHS, np.int64)
        room, last = np.empty((_PLACES, piece_of(model.data))), np.empty(b * (1 if estimator.second is None else 2), np.int64)
        tables = self._empty, self._empty
        self._state = arguments.BurstState(np.ones(3), X, G, *tables, vertex, order, old, room, last)
        work = 2 * b * (model.data.nnz / f.n if sparse else d) + (0 if indexed else d)
        self._longest = max(1, int(CALL_WORK / work))  # iterations per compiled call

    def run(self, k: int, point: Point, estimate: Estimate, reach: Reach) -> tuple[int, Point, Estimate]:
        """Continue from iteration k; return the iterations made (possibly none) and the point and the estimate after them."""
        if self.interrupted:
            raise KeyboardInterrupt  # the loop has already shown the last state
        cost = self.part.cost * self.part.gradient.batch
        wanted = min(reach.iterations - k, math.ceil(min((reach.grads - self.f.calls.grads) / cost, STRIDE)), STRIDE)
        most = self.part.most(k, self.sampler, estimate, int(wanted))
        if most < 1:
            return 0, point, estimate
        self._state.scales[2] = 0.0
        if point is not self._shown[0] or estimate is not self._shown[1]:
            self._load(point, estimate)
        try:
            while self._made < most and (self._made == 0 or not reach.over()):
                self._call(k, most, estimate)
        except KeyboardInterrupt:  # it arrives between calls: the loop goes on and shows the iterations made so far
            if not self._made:
                raise
            self.interrupted = True
        finally:
            self.iterations += self._made
            self.f.calls.grads += self._made * cost
            self.f.calls.rows += self._made * cost
            self.C.asked(self._made, estimate.g)
        if self._made:
            self._shown = point, estimate = self._save(estimate)
        return self._made, point, estimate

    def saved_state(self) -> dict[str, Any]:
        """What a checkpoint keeps of it: its own numbers, because the state holds rounded ones, and no workspace."""
        own = {name: getattr(self._state, name) for name in _OWN}
        index = {"blocks": self._oracle.blocks, "groups": self._oracle.groups}
        return {"shown": self._shown, "iterations": self.iterations, "state": own, "index": index}

    def restore_state(self, state: dict[str, Any]) -> None:
        """Take a saved state, with arrays of the sizes and types that compiled code expects."""
        for held, fresh in ((state["state"], self._state), (state["index"], self._oracle)):
            for name, found in held.items():
                check_alike(
                    name, found, getattr(fresh, name), (self.f.n,) if name in ("table", "margins") and found.size else None
                )
        check_places(state["state"]["last"], -1, self.f.n)
        self._shown, self.iterations = tuple(state["shown"]), int(state["iterations"])
        self._state = self._state._replace(**{name: state["state"][name] for name in _OWN})
        self._oracle = self._oracle._replace(**{name: state["index"][name] for name in ("blocks", "groups")})

    @property
    def _made(self) -> int:
        return int(self._state.scales[2])

    def ready(self) -> None:
        """Compile, or load from the cache, before the clock of the run starts."""
        self._state.scales[:] = 1.0, 1.0, 0.0
        self._kernel(np.empty((0, 1), np.int64), _NO_ROWS, NONE, NONE, NONE)
        self._rebuild()

    def _load(self, point: Point, estimate: Estimate) -> None:
        """Load x = v, g = M + V."""
        mean, state = self.part.mean(estimate), self._state
        state.scales[:2] = 1.0
        state.X[:, 0], state.X[:, 1] = point.x, self.part.snapshot(estimate)
        state.G[:, 0] = estimate.g if mean is None else estimate.g - mean
        state.G[:, 1] = 0.0 if mean is None else mean
        state.last[:] = -1
        table, margins = (a if a.size else self._empty for a in self.part.arrays(estimate))
        self._state = state._replace(table=table, margins=margins)
        self._rebuild()

    def _rebuild(self) -> None:
        if self._oracle.blocks.size:
            g = arguments.ScaledPair(self._state.G, self.part.kind >= TABLE, 1.0)
            kernels("oracles").rebuild_index(self._oracle, g)

    def _call(self, k: int, most: int, estimate: Estimate) -> None:
        """Make as many iterations as there are draws at hand."""
        part, before = self.part, self._made
        now, batch, replace = k + before, part.gradient.batch, part.gradient.replace
        rows = self.sampler.ahead(now + part.late, batch, replace)[: min(most - before, self._longest)]
        others = _NO_ROWS if part.second is None else self.sampler.ahead(now, batch, replace, part.second)[: len(rows)]
        ks = np.arange(now, now + len(rows), dtype=np.float64)  # floats, as laws expect them
        eta = _one_each(self.steps(ks, part.phase(estimate, np.arange(before, before + len(rows)))), len(rows))
        if not (eta.min() >= 0 and eta.max() <= 1):  # as in steps.take
            bad = int(np.argmin((eta >= 0) & (eta <= 1)))
            raise InputError(f"a step rule gave eta = {eta[bad]!r} at iteration {now + bad}; it must be a number in [0, 1]")
        self._kernel(rows, others, eta, *(_one_each(law, len(rows)) for law in part.weights(ks, self.f.n)))
        if self._made < before + len(rows):
            raise NonFiniteError(f"the gradient estimate of iteration {k + self._made + 1} has a NaN or an infinite entry")

    def _kernel(self, rows: np.ndarray, others: np.ndarray, *laws: np.ndarray) -> None:
        flat, second = locked(rows.reshape(-1)), locked(others.reshape(-1))
        steps = arguments.BurstSteps(self.part.kind, self.part.gradient.batch, flat, second, *laws)
        kernels("burst").burst(self._model, self._oracle, steps, self._state)

    def _save(self, estimate: Estimate) -> tuple[Point, Estimate]:
        """The point and the estimate that the loop would have made."""
        (xi, sigma, _), G, dtype = self._state.scales, self._state.G, self.f.dtype
        x = freeze((xi * self._state.X[:, 0]).astype(dtype, copy=False))
        two = self.part.mean(estimate) is not None
        mean = G[:, 1].astype(dtype) if two else None
        g = sigma * G[:, 0]
        g = (g + G[:, 1] if two else g).astype(dtype, copy=False)
        return Point(x, x), self.part.after(estimate, g, mean, self._made)


def check_alike(name: str, found: Any, fresh: np.ndarray, shape: tuple[int, ...] | None = None) -> None:
    """Refuse an array of a checkpoint that differs from that of a new burst in its type, or in its size if no other is given."""
    same = isinstance(found, np.ndarray) and found.dtype == fresh.dtype and found.flags.writeable
    if not same or found.shape != (shape or fresh.shape) or (shape is None and found.strides != fresh.strides):
        raise ValueError(f"the array {name} does not fit the run")


def check_places(places: np.ndarray, low: int, high: int) -> None:
    """Refuse places of a checkpoint outside of [low, high): compiled code does not look."""
    if places.size and not (places.min() >= low and places.max() < high):
        raise ValueError("a place outside of an array")


_OWN = "scales", "X", "G", "table", "margins", "last"  # the parts of its state that are no workspace
STRIDE = 2**16  # iterations between two states shown to the loop
CALL_WORK = 10**7  # entries that a compiled call reads or writes, about ten milliseconds: the clock and Ctrl-C wait for it
_NO_ROWS = np.zeros((0, 0), np.int64)
COUNTED_LENGTHS, _PLACES = 64, 5  # counts and places in the workspace of `extremal.kernels.passes`
_PIECE, _NEAREST = 64, 2**11  # most rows at a time; entries that stay in the nearest cache beside the vectors


def burst_rows(data: CSR | Dense) -> arguments.SparseRows | arguments.DenseRows:
    """Rows in the form of compiled loops; if all values are equal, as in 0/1 data, one value stands for all."""
    if isinstance(data, Dense):
        return arguments.DenseRows(locked(data.array))
    starts, indices, values = data.entries
    same = len(values) > 0 and bool((values == values[0]).all())
    return arguments.SparseRows(*map(locked, (starts, indices, np.array(values[0]) if same else values)))


def piece_of(data: CSR | Dense) -> int:
    """How many rows are read for their margins before their sums are made: as many as stay in the nearest cache."""
    n, d = data.shape
    entries = data.nnz / n if isinstance(data, CSR) else d
    return int(min(_PIECE, max(1, _NEAREST // max(1.0, entries))))


def uneven_rows(data: CSR) -> bool:
    """Whether many rows differ in length, so that the processor cannot predict where a loop over a row ends."""
    return float(np.diff(data.entries[0]).std()) > 1.0


def _oracle(known: CompiledOracle, d: int, blocks: int) -> arguments.BurstOracle:
    """The oracle over d coordinates, with an index of ``blocks`` blocks."""
    lower, upper = (locked(np.array(a, np.float64).reshape(-1)) for a in (known.lower, known.upper))
    order = np.empty(d if known.kind == "fill" else 0, np.int64)
    index = np.empty(blocks), np.empty(-(-blocks >> SHIFT))
    return arguments.BurstOracle(arguments.ORACLE_CODES[known.kind], float(known.size), lower, upper, order, *index)


def _worth_it(data: CSR, b: int, two: bool) -> bool:
    """Whether a batch touches so few of the d coordinates that the index is cheaper than a scan of all.

    With M and V the bounds of the index are looser, so it pays only for larger d.
    """
    n, d = data.shape
    return d >= (8192 if two else 512) and 3 * b * data.nnz < d * n


def _one_each(law: Numbers, count: int) -> np.ndarray:
    out = np.empty(count)
    out[:] = law
    return out
