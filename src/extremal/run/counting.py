"""Counting oracle calls: one wrapper around the objective and one around the set, so that no method can miscount."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np

from extremal.data.parts import PerRow, counting_rows
from extremal.gradients.base import Counting
from extremal.objectives.base import Objective, RowIndex, Segment, Smooth, check_batches
from extremal.objectives.margins import MarginModel, has_slices
from extremal.objectives.on_atoms import OnPoints, Restriction
from extremal.objectives.slices import Slice
from extremal.points.active import ActiveSet
from extremal.points.composed import Chord
from extremal.points.vertex import Vertex
from extremal.run.result import Calls
from extremal.support.clock import check
from extremal.support.kinds import Operator, Symmetric

T = TypeVar("T")


class CountedObjective(Counting):
    """An objective that counts each component gradient and value asked of it."""

    def __init__(self, f: Smooth, calls: Calls, columns: bool | None = None):
        self.inner, self.calls = f, calls
        self.n, self.shape, self.dtype = f.n, f.shape, f.dtype
        self.convex, self.deriv_shape = f.convex, f.deriv_shape
        self.columns = has_slices(f) if columns is None else columns  # whether it has Hessians by columns
        self._looked: tuple[Any, Any] = None, None  # the last point that was looked at, and the answer

    @property
    def smoothness(self) -> float:
        return self.inner.smoothness

    def _ask(self, question: Callable[..., T], *given: object, grads: int = 0, values: int = 0) -> T:
        """Count component gradients and values, and the rows that are read for them; if the time of the run is over, none are."""
        check()
        self.calls.grads += grads
        self.calls.values += values
        with counting_rows(self.calls):
            return question(*given)

    def value(self, x: np.ndarray) -> float:
        return self._ask(self.inner.value, x, values=self.n)

    def grad(self, x: np.ndarray) -> np.ndarray:
        return self._ask(self.inner.grad, x, grads=self.n)

    def value_and_grad(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        return self._ask(self.inner.value_and_grad, x, grads=self.n, values=self.n)

    def derivs(self, x: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        return self._ask(self._sum.derivs, x, idx, grads=self.n if idx is None else len(idx))

    def combine(self, c: np.ndarray, idx: RowIndex = None) -> np.ndarray:
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
        """Kept until the next look: a step that has looked ahead leaves it to the estimator."""
        if self._looked[0] is not x:
            self._looked = x, self._ask(self._linear.value_grad_margins, x, grads=self.n, values=self.n)
        return self._looked[1]

    def tail_ratio(self, z: PerRow) -> float:
        return self._ask(self._linear.tail_ratio, z, values=self.n)

    def sampled(self, size: int, draw: Callable[[], np.ndarray]) -> CountedObjective:
        return CountedObjective(self._ask(self._linear.sampled, size, draw), self.calls, self.columns)

    def between(self, z: PerRow, dz: PerRow) -> Segment:
        return _CountedSegment(self._linear.between(z, dz), self.n, self.calls)

    def change(self, z: PerRow, new: PerRow) -> PerRow:
        return self._linear.change(z, new)

    def length(self, dz: PerRow) -> float:
        return self._linear.length(dz)

    def derivs_at(self, z: PerRow, *idx: RowIndex) -> PerRow:
        return self._ask(self._linear.derivs_at, z, *idx, grads=len(z))

    def on_columns(self, W: np.ndarray) -> Slice:
        return _CountedSlice(self, W, self._ask(self._linear.on_columns, W))

    def on_atoms(self, atoms: ActiveSet, images: dict[Hashable, np.ndarray]) -> Restriction:
        f = self.inner
        found = self._ask(f.on_atoms, atoms, images) if isinstance(f, MarginModel) else OnPoints(f, atoms)
        return _CountedRestriction(found, self)

    @property
    def _linear(self) -> MarginModel:
        return cast(MarginModel, self.inner)  # methods that ask for margins are refused on other objectives, see `Method`

    @property
    def _sum(self) -> Objective:
        check_batches(self.inner)
        return cast(Objective, self.inner)

    def ready(self) -> None:
        self.inner.ready()

    def along(self, x: np.ndarray, s: Vertex | Chord) -> Segment:
        return _CountedSegment(self._ask(self.inner.along, x, s), self.n, self.calls)


@dataclass(frozen=True)
class _CountedSegment:
    inner: Segment
    n: int
    calls: Calls

    @property
    def grads_per_slope(self) -> int:
        return self.inner.grads_per_slope

    def value(self, t: float) -> float:
        check()
        self.calls.values += self.n
        return self.inner.value(t)

    def slope(self, t: float) -> float:
        """n values' worth of work on margins, or the gradients that it takes."""
        check()
        self.calls.grads += self.grads_per_slope
        self.calls.values += 0 if self.grads_per_slope else self.n
        return self.inner.slope(t)


@dataclass(frozen=True)
class _CountedRestriction:
    inner: Restriction
    f: CountedObjective

    @property
    def images(self) -> dict[Hashable, np.ndarray]:
        return self.inner.images

    def value(self, w: np.ndarray) -> float:
        return self.f._ask(self.inner.value, w, values=self.f.n)

    def slopes(self, w: np.ndarray) -> np.ndarray:
        return self.f._ask(self.inner.slopes, w, grads=self.f.n)

    def hessian(self, w: np.ndarray) -> np.ndarray | None:
        """Every row has been looked at, if there is one."""
        H = self.f._ask(self.inner.hessian, w)
        self.f.calls.grads += 0 if H is None else self.f.n
        return H


@dataclass(frozen=True)
class _CountedSlice(Slice):
    f: CountedObjective
    inner: Slice

    def of(self, f: CountedObjective) -> Slice:
        return self if f is self.f else _CountedSlice(f, self.W, self.inner.of(f.inner))

    def dot(self, d: np.ndarray) -> PerRow:
        return self.f._ask(self.inner.dot, d)

    def solve(self, place: np.ndarray, scale: np.ndarray, w: np.ndarray, x: np.ndarray, z: PerRow, tol: float) -> Any:
        found = self.f._ask(self.inner.solve, place, scale, w, x, z, tol)
        if found is not None:
            self.f.calls.grads += found[1] * self.f.n
            self.f.calls.values += found[2] * self.f.n
        return found

    def hessian(self, z: PerRow, far: bool = False, width: float = 0.0) -> Symmetric:
        """Every row is looked at, once or in every product: as much as n component gradients."""
        H = self.f._ask(self.inner.hessian, z, far, width, grads=self.f.n)
        return H if isinstance(H, np.ndarray) else _CountedProducts(H, self.f)

    def root(self, z: PerRow, far: bool = False, width: float = 0.0) -> np.ndarray | None:
        """The same, if there is a factor."""
        B = self.f._ask(self.inner.root, z, far, width)
        self.f.calls.grads += 0 if B is None else self.f.n
        return B


@dataclass(frozen=True)
class _CountedProducts:
    inner: Operator
    f: CountedObjective

    def __matmul__(self, u: np.ndarray) -> np.ndarray:
        return self.f._ask(self.inner.__matmul__, u, grads=self.f.n)

    def diagonal(self) -> np.ndarray:
        return self.f._ask(self.inner.diagonal)
