"""Count oracle calls: one wrapper around the objective and one around the set, so that no method can miscount."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np

from extremal.data.parts import PerRow, counting_rows
from extremal.objectives.base import InParts, Objective, Parabola, RowIndex, Segment, Smooth, check_batches
from extremal.objectives.column_blocks import Slice
from extremal.objectives.expansion import Aim, Expansion
from extremal.objectives.margins import MarginModel, has_slices
from extremal.objectives.on_atoms import OnPoints, Restriction
from extremal.objectives.quadratics import CentredQuadratic
from extremal.objectives.row_bends import BendsAlong, RowBends, bends_along
from extremal.objectives.slabs import Slab
from extremal.points.active import ActiveSet
from extremal.points.composed import Chord, Place
from extremal.points.vertex import Vertex
from extremal.run.counted_parts import CountedRestriction, CountedSegment, CountedSlice
from extremal.run.counted_states import KeptObjective, KeptSet
from extremal.run.result import Calls
from extremal.sets.base import Bounded, ConvexSet, Faced, Spikes
from extremal.support.clock import Unsure, check, counted

CHECKS = 50  # oracle calls that a membership test may make, plus a tenth of the run's own
T = TypeVar("T")


class CountedObjective(KeptObjective):
    """An objective that counts every component gradient and value it computes."""

    def __init__(self, f: Smooth, calls: Calls, columns: bool | None = None):
        self.inner, self.calls = f, calls
        self._linear = cast(MarginModel, f)  # `Method` refuses methods that need margins on other objectives
        self.n, self.shape, self.dtype = f.n, f.shape, f.dtype
        self.convex, self.deriv_shape = f.convex, f.deriv_shape
        self.columns = has_slices(f) if columns is None else columns  # whether f has Hessians by columns
        self.expanded: Expansion | None = None  # the inner f as a quadratic function, if a method asked for it
        self.aim: Callable[[], Aim] = Aim  # the accuracy that the run asks for
        self._shares = 0  # the rest of n component gradients, times the size of x, that parts of gradients have not counted yet
        self.notes = {}
        self._batch: RowIndex = None  # the rows of the last batch, once there is one
        self._looked: tuple[Any, Any] = None, None  # the last point of `value_grad_margins`, and its answer
        self.near: CentredQuadratic | None = None  # a model with a Hessian near that point, which an estimator has read
        self._drawn: tuple[Any, int, np.ndarray | None] | None = None  # of a sample: the whole, its size, and its rows

    @property
    def smoothness(self) -> float:
        return self.inner.smoothness

    def _ask(self, question: Callable[..., T], *given: object, grads: int = 0, values: int = 0, bends: int = 0) -> T:
        """Count component gradients, values and the rows read for them; raise before any work if the time is up."""
        check()
        self.calls.grads += grads + bends
        self.calls.hessian_rows += bends
        self.calls.values += values
        return counting_rows(self.calls, question, *given)

    def sent(self, numbers: int, size: int) -> None:
        self.calls.numbers += numbers
        self.calls.bytes += size

    def value(self, x: np.ndarray) -> float:
        return self._ask(self.inner.value, x, values=self.n)

    def grad(self, x: np.ndarray) -> np.ndarray:
        return self._ask(self.inner.grad, x, grads=self.n)

    def value_and_grad(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        return self._ask(self.inner.value_and_grad, x, grads=self.n, values=self.n)

    def derivs(self, x: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        return self._ask(self._sum.derivs, x, idx, grads=self.n if idx is None else len(idx))

    def combine(self, c: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        self._batch = self._batch if idx is None else idx
        return self._ask(self._sum.combine, c, idx)

    def values(self, x: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        return self._ask(self._sum.values, x, idx, values=self.n if idx is None else len(idx))

    def margins(self, x: np.ndarray, idx: RowIndex = None) -> PerRow:
        return self._ask(self._linear.margins, x, idx)

    def here(self, numbers: PerRow) -> np.ndarray:
        return self.inner.here(numbers) if isinstance(self.inner, MarginModel) else numbers

    def vertex_margins(self, s: Vertex, idx: RowIndex = None) -> PerRow:
        return self._ask(self._linear.vertex_margins, s, idx)

    def value_grad_margins(self, x: np.ndarray) -> tuple[float, np.ndarray, PerRow]:
        """Evaluate at x and keep the answer until the next point: a step that looked ahead saves the estimator a pass."""
        if self._looked[0] is not x:
            self._looked = x, self._ask(self._linear.value_grad_margins, x, grads=self.n, values=self.n)
            self.near = None
        return self._looked[1]

    @property
    def known(self) -> np.ndarray | None:
        """The columns with a Hessian that takes no read; None if there are none."""
        return None if self.near is None else self.near.known

    @property
    def in_slabs(self) -> bool:
        return self._linear.in_slabs

    def slab(self, size: int, after: int, x: np.ndarray, W: np.ndarray) -> Slab:
        """Rows of a larger head at x; their gradients and the rows of their Hessian count as component gradients."""
        n = size - after
        return self._ask(self._linear.slab, size, after, x, W, grads=2 * n, values=n)

    def noise(self, z: PerRow) -> np.ndarray:
        return self._ask(self._linear.noise, z, grads=self.n)

    def tail_ratio(self, z: PerRow) -> float:
        return self._ask(self._linear.tail_ratio, z, values=self.n)

    def sampled(self, size: int, draw: Callable[[], np.ndarray]) -> CountedObjective:
        rows: list[np.ndarray] = []
        found = self._ask(self._linear.sampled, size, lambda: rows.append(draw()) or rows[0])
        sample = CountedObjective(found, self.calls, self.columns)
        sample._drawn = self, size, rows[0] if rows else None
        return sample

    def expansion(self) -> Expansion | None:
        """f around 0, or around an earlier centre; the Hessian and the gradient count n component gradients each."""
        if self.expanded is None:
            self.expanded = self._ask(self._linear.expansion, grads=2 * self.n, values=self.n)
        return None if self.expanded is None else self.expanded.of(self, self.aim())

    def between(self, z: PerRow, dz: PerRow) -> Segment:
        return self._line(self._linear.between(z, dz), 1)

    def _line(self, line: Segment, values: int) -> Segment:
        """A line that counts its values; of a parabola only those that it took to find its three numbers."""
        self.calls.values += values if isinstance(line, Parabola) else 0
        return line if isinstance(line, Parabola) else CountedSegment(line, self)

    def part_margins(self, place: Place, way: np.ndarray) -> Any:
        return self._ask(cast(InParts, self.inner).part_margins, place, way)

    def part(self, z: Any, place: Place) -> np.ndarray:
        """A part of the gradient counts as its share of n component gradients; what is left of a division counts next time."""
        g = self._ask(cast(InParts, self.inner).part, z, place)
        grads, self._shares = divmod(self._shares + self.n * g.size, math.prod(self.shape))
        self.calls.grads += grads
        return g

    def change(self, z: PerRow, new: PerRow) -> PerRow:
        return self._linear.change(z, new)

    def length(self, dz: PerRow) -> float:
        return self._linear.length(dz)

    def derivs_at(self, z: PerRow, *idx: RowIndex) -> PerRow:
        return self._ask(self._linear.derivs_at, z, *idx, grads=len(z))

    def on_columns(self, W: np.ndarray) -> Slice:
        return CountedSlice(self, W, self._ask(self._linear.on_columns, W))

    def on_atoms(self, atoms: ActiveSet, images: dict[Hashable, np.ndarray]) -> Restriction:
        f = self.inner
        found = self._ask(f.on_atoms, atoms, images) if isinstance(f, MarginModel) else OnPoints(f, atoms)
        return CountedRestriction(found, self)

    @cached_property
    def bends(self) -> RowBends:
        return RowBends(self.inner, self._ask)

    def batch_bends(self, x: np.ndarray, d: Chord) -> BendsAlong:
        """Second derivatives along d of the rows of the last batch; of all rows before the first batch."""
        idx = np.arange(self.n) if self._batch is None else self._batch
        return self._ask(bends_along, self.inner, x, d, idx, bends=len(idx))

    @cached_property
    def _sum(self) -> Objective:
        check_batches(self.inner)
        return cast(Objective, self.inner)

    def ready(self) -> None:
        self.inner.ready()

    def along(self, x: np.ndarray, s: Vertex | Chord) -> Segment:
        return self._line(self._ask(self.inner.along, x, s), self.n)


class CountedSet(KeptSet):
    """A set that counts every linear minimisation.

    The wrapper keeps the last answer. At an exact gradient, the certificate and the method's next step ask the same question,
    and the oracle answers it once. The call counts as the certificate's until the method uses the answer, then as the method's.
    """

    def __init__(self, C: ConvexSet, calls: Calls):
        self.inner, self.calls, self._lent = C, calls, False  # lent: the answer has counted as a certificate's call only
        self._g: np.ndarray | None = None  # the last gradient; nobody changes it in place
        self._s: Vertex | None = None  # the oracle's answer to _g
        self._gap: tuple[Any, Any, float] = None, None, 0.0  # the last point, its gradient, and the gap there

    @property
    def diameter(self) -> float:
        return self._apart(lambda: self.inner.diameter)

    def start(self) -> np.ndarray:
        return self._apart(self.inner.start)

    def contains(self, x: np.ndarray) -> bool:
        return self._apart(lambda: self.inner.contains(x))

    def may_contain(self, x: np.ndarray) -> bool:
        """Whether x is in the set; True if only the oracle knows and a moderate number of calls cannot decide."""
        try:
            return self._apart(lambda: self.inner.contains(x), CHECKS + max(math.prod(x.shape), self.calls.lmos) // 10)
        except Unsure:
            return True

    def holds(self, x: np.ndarray) -> bool:
        """Whether x is certainly in the set, without a tolerance and without an oracle call."""
        with counted(0):
            try:
                return self.inner.contains(x, 0.0)
            except Unsure:
                return False

    def spikes(self) -> Spikes | None:
        return self.inner.spikes()

    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        return cast(Bounded, self.inner).limits()

    def _apart(self, ask: Callable[[], T], limit: float = math.inf) -> T:
        """Return ``ask()``; oracle calls inside it count as a certificate's."""
        with counted(limit) as asked:
            try:
                return ask()
            finally:
                self.calls.certificate_lmos += asked.calls

    def lmo(self, g: np.ndarray, x: np.ndarray | None = None) -> Vertex:
        """The oracle, for the method; a set on a manifold answers at x."""
        check()
        if self._s is None or g is not self._g or self._lent:  # otherwise the method has just asked this question
            self.asked(1, g)
        return self._ask(g, x)

    def asked(self, times: int, g: np.ndarray) -> None:
        """Count LMOs of the method; a burst asks by itself, first at g, then at gradients of its own."""
        self.calls.lmos += times
        if times:
            self.calls.certificate_lmos -= self._lent and g is self._g
            self._lent = False

    def n_blocks(self) -> int:
        return cast(Any, self.inner).n_blocks()  # the move has checked that the set is `Blocked`

    def block(self, i: int) -> tuple[Place, ConvexSet]:
        return cast(Any, self.inner).block(i)

    def block_lmo(self, i: int, g: np.ndarray) -> Vertex:
        """The oracle of block i, which counts as one call of a block."""
        check()
        self.calls.block_lmos += 1
        return self.block(i)[1].lmo(g)

    def away(self, g: np.ndarray, x: np.ndarray) -> Vertex:
        """The worst vertex of the face that holds x, which counts as a linear minimisation."""
        self.calls.lmos += 1
        return cast(Faced, self.inner).away(g, x)

    def max_step(self, x: np.ndarray, s: Vertex, a: Vertex) -> float:
        return cast(Faced, self.inner).max_step(x, s, a)

    def gap(self, x: np.ndarray, g: np.ndarray, s: Vertex | None = None) -> float:
        """The gap at x: a certificate's call, or no call if s, the oracle's answer to g, is given."""
        s = self.lmo_at(g) if s is None else s
        if not (s is self._s and x is self._gap[0] and g is self._gap[1]):
            self._gap = x, g, self.inner.gap(x, g, s)
        return self._gap[2]

    def lmo_at(self, g: np.ndarray, x: np.ndarray | None = None) -> Vertex:
        """The oracle, for a certificate; a set on a manifold answers at x."""
        if g is not self._g:
            self.calls.certificate_lmos += 1
            self._lent = True
        return self._ask(g, x)

    def _ask(self, g: np.ndarray, x: np.ndarray | None) -> Vertex:
        """The last answer or a new one; sets on manifolds (with ``lmo_at``) answer at x, warm oracles start from the last."""
        if self._s is not None and g is self._g:
            return self._s
        C: Any = self.inner
        a = g if C.matrix_free else np.asarray(g)
        s = C.lmo_at(g, x) if x is not None else C.lmo_from(a, self._s) if C.is_warm else C.lmo(a)
        self._s, self._g = s, g
        return s
