"""Bursts of `TrackedFW` and `SagaFaceFW`: many steps within faces in one compiled call."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from extremal.checks import NonFiniteError
from extremal.data.parts import count_rows
from extremal.gradients.base import Estimate
from extremal.gradients.curved import FEW_DRAWN, LOUDEST, NOISY_SHARE, TRUST, CurvedEstimate, bent_rows
from extremal.gradients.reshuffled import Reshuffled
from extremal.gradients.tracked import FALLEN, TrackedEstimate, TrackedTable, renewed
from extremal.kernels import arguments
from extremal.kernels.arguments import ANEW, ENDED, FULL_ROOM, kernels, locked
from extremal.methods.method import Method
from extremal.moves.base import Point
from extremal.moves.in_face import InFacePairwise
from extremal.objectives.base import Sampler
from extremal.points.iterates import freeze
from extremal.run.bursts.face_parts import face_model, vertices_of, workspace
from extremal.run.bursts.run import CALL_WORK, STRIDE, Reach, check_alike, check_places
from extremal.run.counting import CountedObjective, CountedSet
from extremal.sets.base import Spikes
from extremal.sets.simplices.bounds import ROUNDING
from extremal.steps.curved import SelfConcordant

SHARES = arguments.Shares(NOISY_SHARE, TRUST, FEW_DRAWN, LOUDEST)


def make_in_faces(f: CountedObjective, C: CountedSet, method: Method, sampler: Sampler) -> FaceBurst | None:
    """A burst of steps within faces for this run, or None if one of its parts has no compiled form."""
    gradient: Any = method.gradient
    if isinstance(gradient, Reshuffled):
        gradient = gradient.gradient
    kind = BURSTS.get(type(gradient).__name__)
    if kind is None or type(method.move) is not InFacePairwise or type(method.step) is not SelfConcordant:
        return None
    model, spikes = face_model(f.inner), vertices_of(C)
    if model is None or spikes is None or gradient.replace or not kind.suits(gradient):
        return None
    return kind(f, C, spikes, model, gradient, sampler)


class FaceBurst(ABC):
    """Iterations of one run, many at a time; they change the table of the estimate."""

    late = 0  # iteration k uses the batch of draw k + late

    @property
    def _bent(self) -> int:
        """How many rows of a batch have their second derivatives computed."""
        return self.gradient.batch

    def __init__(self, f: CountedObjective, C: CountedSet, spikes: Spikes, model: Any, gradient: Any, sampler: Sampler):
        self.f, self.C, self.gradient, self.sampler, self.model = f, C, gradient, sampler, model
        self.interrupted, self.iterations = False, 0  # Ctrl-C came and is yet to be raised; iterations made so far
        both = bool(np.any(spikes.low))
        reach = locked(np.atleast_1d(np.asarray(spikes.high, np.float64)))
        none = locked(np.zeros(f.shape))
        self._set = arguments.FacedSet(reach, both, spikes.origin and not both, ROUNDING, none, f.bends.self_concordance)
        entries = f.inner.data.nnz / f.n  # type: ignore[attr-defined]
        self._work, self._marked = workspace(f.inner.data, gradient.batch), False  # type: ignore[attr-defined]
        self._last: Point | None = None  # the point last given to the loop, whose coordinates are listed in the workspace
        self._longest = max(1, int(CALL_WORK / (gradient.batch * self.work(entries) + 8 * math.prod(f.shape))))

    @staticmethod
    @abstractmethod
    def suits(gradient: Any) -> bool:
        """Whether the loops have the options of the estimator."""

    @staticmethod
    @abstractmethod
    def work(entries: float) -> float:
        """How many numbers a row with so many entries reads or writes."""

    @abstractmethod
    def some(self, x: np.ndarray, rows: np.ndarray, estimate: Any) -> tuple[int, bool]:
        """Make an iteration for each batch; return the number made, and whether the table is to be drawn anew."""

    @abstractmethod
    def after(self, x: np.ndarray, estimate: Any, anew: bool) -> Any:
        """The estimate after these iterations."""

    @abstractmethod
    def ready(self) -> None:
        """Compile, or load from the cache, before the clock of the run starts."""
        kernels("face_rows").mark(self.model.rows, np.zeros((0, 0), np.uint64))

    def run(self, k: int, point: Point, estimate: Any, reach: Reach) -> tuple[int, Point, Estimate]:
        """Continue from iteration k; return the iterations made (possibly none) and the point and the estimate after them."""
        if self.interrupted:
            raise KeyboardInterrupt  # the loop has already shown the last state
        paid = math.ceil(min((reach.grads - self.f.calls.grads) / (self.gradient.batch + self._bent), STRIDE))
        most, made, anew, x = int(min(reach.iterations - k, paid, STRIDE)), 0, False, np.array(point.x, np.float64)
        if most > 0 and not self._set.peaks.any():
            self._set = self._set._replace(peaks=locked(self.f.bends.peaks))
        if point is not self._last:
            self._work.support[-1] = -1
        if most > 0 and not self._marked:
            kernels("face_rows").mark(self.model.rows, self._work.marks)
            self._marked = True
        try:
            while made < most and not anew and (made == 0 or not reach.over()):
                rows = self.sampler.ahead(k + made + self.late, self.gradient.batch)[: min(most - made, self._longest)]
                some, anew = self.some(x, rows, estimate)
                made += some
        except KeyboardInterrupt:  # it arrives between calls: the loop goes on and shows the iterations made so far
            if not made:
                raise
            self.interrupted = True
        finally:
            self._count(made, estimate)
        if not made:
            return 0, point, estimate
        self._last = Point(freeze(x), x)
        return made, self._last, self.after(x, estimate, anew)

    def saved_state(self) -> dict[str, Any]:
        """What a checkpoint keeps of it. Entries of kept columns are set aside again, in the same order, by the next call."""
        return {"iterations": self.iterations, "peaks": self._set.peaks, "last": self._last, "support": self._work.support}

    def restore_state(self, state: dict[str, Any]) -> None:
        """Take a saved state."""
        support = state["support"]
        check_alike("support", support, self._work.support)
        check_places(support[-1:], -1, len(support))
        check_places(support[: max(support[-1], 0)], 0, len(support) - 1)
        self.iterations, self._set = int(state["iterations"]), self._set._replace(peaks=locked(state["peaks"]))
        self._last, self._work = state["last"], self._work._replace(support=support)

    def _count(self, made: int, estimate: Any) -> None:
        calls, rows = self.f.calls, made * self.gradient.batch
        self.iterations += made
        calls.grads += rows + made * self._bent
        calls.hessian_rows += made * self._bent
        calls.rows += rows
        calls.lmos += made  # the worst vertices
        self.C.asked(made, estimate.g)

    def _flat(self, rows: np.ndarray) -> np.ndarray:
        return locked(rows.reshape(-1))


class _Tracked(FaceBurst):
    late = 1

    @staticmethod
    def suits(gradient: Any) -> bool:
        return True

    @staticmethod
    def work(entries: float) -> float:
        return entries * entries + 4.0 * entries

    def __init__(self, *given: Any):
        super().__init__(*given)
        rows = self.model.rows
        if isinstance(rows, arguments.SparseRows):  # loops change the order of entries within rows
            own = [a.copy() if a.ndim else a for a in (rows.indices, rows.data)]
            self.model = self.model._replace(rows=arguments.SparseRows(rows.indptr, *own))

    def ready(self) -> None:
        some, d = np.zeros(1), math.prod(self.f.shape)
        table = arguments.TrackedArrays(
            some, some, some, some, np.ones(1, bool), np.zeros(d), np.zeros(d), np.zeros(d),
            np.zeros(d, np.int64), np.zeros(1, np.int64), np.zeros(2, np.int64), False,
        )  # fmt: skip
        x, none = np.zeros(d), self._flat(np.zeros((0, 1), np.int64))
        kernels("faces").tracked(self.model, self._set, table, self._work, x, none, 1, 1.0, 0.0)
        kernels("faces").renew(self.model, table, self._work, x, none, 1)
        super().ready()

    def some(self, x: np.ndarray, rows: np.ndarray, estimate: TrackedEstimate) -> tuple[int, bool]:
        table, b = estimate.table, self.gradient.batch
        kept = int(table.counts[0])
        made, why = kernels("faces").tracked(
            self.model, self._set, self._arrays(table), self._work, x, self._flat(rows), b, estimate.top, FALLEN
        )
        self.f.calls.rows += (int(table.counts[0]) - kept) * self.f.n * (2 if table.bounded else 1)
        if why == ENDED:
            raise NonFiniteError("the gradient estimate has a NaN or an infinite entry")
        if why == FULL_ROOM:
            table.grow()
        return made, why == ANEW

    def _arrays(self, t: TrackedTable) -> arguments.TrackedArrays:
        own = t.c, t.q, t.z, t.m, t.fresh, t.G, t.H.reshape(-1), t.M.reshape(-1), t.place, t.W, t.counts
        return arguments.TrackedArrays(*own, t.bounded)

    def after(self, x: np.ndarray, estimate: TrackedEstimate, anew: bool) -> TrackedEstimate:
        if anew:
            self.f._ask(self._renew, x, estimate.table, grads=self.f.n, bends=self.f.n)
            return renewed(estimate.table)
        return estimate.table.estimate(estimate.top)

    def _renew(self, x: np.ndarray, table: TrackedTable) -> None:
        """Draw all rows at x: the reads are those of `TrackedTable.renew`."""
        count_rows((3 if table.kept else 2) * self.f.n)
        rows = self._flat(np.arange(self.f.n))
        kernels("faces").renew(self.model, self._arrays(table), self._work, x, rows, self.gradient.batch)


class _Saga(FaceBurst):
    @staticmethod
    def suits(gradient: Any) -> bool:
        return gradient.curved and not gradient.two_batches

    @staticmethod
    def work(entries: float) -> float:
        return 8.0 * entries

    def __init__(self, *given: Any):
        super().__init__(*given)
        self._shown: np.ndarray | None = None  # the gradient of the last state, whose numbers the arrays hold
        self._arrays = self._room(np.zeros(1), np.zeros(1))

    @property
    def _bent(self) -> int:
        return bent_rows(self.gradient.batch)

    def saved_state(self) -> dict[str, Any]:
        return super().saved_state() | {"shown": self._shown, "arrays": self._arrays._asdict()}

    def restore_state(self, state: dict[str, Any]) -> None:
        super().restore_state(state)
        for name, fresh in self._arrays._asdict().items():
            check_alike(name, state["arrays"][name], fresh, (self.f.n,) if name in ("c", "m") and self._loaded(state) else None)
        check_places(state["arrays"]["last"], 0, self.f.n)
        check_places(state["arrays"]["drawn"], 0, self.gradient.batch + 1)
        self._shown, self._arrays = state["shown"], self._arrays._replace(**state["arrays"])

    @staticmethod
    def _loaded(state: dict[str, Any]) -> bool:
        return state["shown"] is not None

    def _room(self, c: np.ndarray, m: np.ndarray) -> arguments.CurvedArrays:
        d, b = math.prod(self.f.shape), self.gradient.batch
        last = np.zeros(b, np.int64), np.zeros(b), np.zeros(b), np.zeros(1, np.int64), np.zeros(1)
        return arguments.CurvedArrays(c, m, np.zeros(d), np.zeros((d, 4)), *last)

    def ready(self) -> None:
        self._call(np.zeros(self.f.shape), np.zeros((0, self.gradient.batch), np.int64))
        super().ready()

    def _call(self, x: np.ndarray, rows: np.ndarray) -> tuple[int, int]:
        return kernels("faces").saga(
            self.model, self._set, self._arrays, self._work, x, self._flat(rows), self.gradient.batch, self._bent, SHARES
        )

    def some(self, x: np.ndarray, rows: np.ndarray, estimate: CurvedEstimate) -> tuple[int, bool]:
        if estimate.g is not self._shown:
            self._load(estimate)
        made, why = self._call(x, rows)
        if why == ENDED:
            raise NonFiniteError("the gradient estimate has a NaN or an infinite entry")
        return made, False

    def _load(self, estimate: CurvedEstimate) -> None:
        table, (idx, m, w) = estimate.table, estimate.last
        self._arrays, self._shown = self._arrays._replace(c=table.c, m=table.m), estimate.g
        held = self._arrays
        held.S[:, 0] = table.mean
        held.g[...], held.S[:, 1], held.S[:, 2:], held.drawn[0] = estimate.g, table.mean, table.sums.T, len(idx)
        held.last[: len(idx)], held.weights[: len(idx)], held.changes[: len(idx)], held.noise[0] = idx, m, w, table.noise

    def after(self, x: np.ndarray, estimate: CurvedEstimate, anew: bool) -> CurvedEstimate:
        table, held = estimate.table, self._arrays
        table.mean, table.sums = held.S[:, 1].copy(), held.S[:, 2:].T.copy()
        table.last, table.noise = (held.last.copy(), held.weights.copy(), held.changes.copy()), float(held.noise[0])
        new = table.estimate(held.g.copy())
        self._shown = new.g
        return new


BURSTS: dict[str, type[FaceBurst]] = {"TrackedSag": _Tracked, "Saga": _Saga}
