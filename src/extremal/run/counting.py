"""Counting oracle calls: one wrapper around the objective and one around the set, so that no method can miscount."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from extremal.gradients.base import Counting
from extremal.objectives.base import Objective, RowIndex, Segment
from extremal.objectives.linear import LinearModel
from extremal.objectives.on_atoms import Restriction, restrict
from extremal.objectives.on_columns import Slice, has_slices, sliced
from extremal.points.active import ActiveSet
from extremal.points.composed import Chord
from extremal.points.vertex import Vertex
from extremal.run.result import Calls
from extremal.support.clock import check
from extremal.support.kinds import Symmetric


class CountedObjective(Counting):
    """An objective that counts each component gradient and value asked of it."""

    def __init__(self, f: Objective, calls: Calls):
        self.inner, self.calls = f, calls
        self.n, self.shape, self.dtype = f.n, f.shape, f.dtype
        self.convex, self.deriv_shape = f.convex, f.deriv_shape
        self.columns = has_slices(f)  # whether it has Hessians by columns

    @property
    def smoothness(self) -> float:
        return self.inner.smoothness

    @property
    def weights(self) -> np.ndarray | None:
        return self.inner.weights if isinstance(self.inner, LinearModel) else None

    def _count(self, grads: int = 0, values: int = 0) -> None:
        """Count component gradients and values that are about to be made; if the time of the run is over, none are."""
        check()
        self.calls.grads += grads
        self.calls.values += values

    def value(self, x: np.ndarray) -> float:
        self._count(values=self.n)
        return self.inner.value(x)

    def grad(self, x: np.ndarray) -> np.ndarray:
        self._count(grads=self.n)
        return self.inner.grad(x)

    def value_and_grad(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        self._count(grads=self.n, values=self.n)
        return self.inner.value_and_grad(x)

    def derivs(self, x: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        self._count(grads=self.n if idx is None else len(idx))
        return self.inner.derivs(x, idx)

    def combine(self, c: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        return self.inner.combine(c, idx)

    def values(self, x: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        self._count(values=self.n if idx is None else len(idx))
        return self.inner.values(x, idx)

    def margins(self, x: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        return self._linear.margins(x, idx)

    def vertex_margins(self, s: Vertex, idx: RowIndex = None) -> np.ndarray:
        return self._linear.vertex_margins(s, idx)

    def value_grad_margins(self, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        self._count(grads=self.n, values=self.n)
        return self._linear.value_grad_margins(x)

    def tail_ratio(self, z: np.ndarray) -> float:
        self._count(values=self.n)
        return self._linear.tail_ratio(z)

    def sample(self, rows: np.ndarray) -> CountedObjective:
        return CountedObjective(self._linear.sample(rows), self.calls)

    def between(self, z: np.ndarray, dz: np.ndarray) -> Segment:
        return _CountedSegment(self._linear.between(z, dz), self.n, self.calls)

    def derivs_at(self, z: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        self._count(grads=len(z))
        return self._linear.derivs_at(z, idx)

    @property
    def _linear(self) -> LinearModel:
        return cast(LinearModel, self.inner)  # methods that ask for margins are refused on other objectives, see `Method`

    def ready(self) -> None:
        self.inner.ready()

    def along(self, x: np.ndarray, s: Vertex | Chord) -> Segment:
        return _CountedSegment(self.inner.along(x, s), self.n, self.calls)


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


@restrict.register
def _(f: CountedObjective, atoms: ActiveSet, images: dict[Hashable, np.ndarray]) -> Restriction:
    return _CountedRestriction(restrict(f.inner, atoms, images), f.n, f.calls)


@dataclass(frozen=True)
class _CountedRestriction:
    inner: Restriction
    n: int
    calls: Calls

    @property
    def images(self) -> dict[Hashable, np.ndarray]:
        return self.inner.images

    def value(self, w: np.ndarray) -> float:
        check()
        self.calls.values += self.n
        return self.inner.value(w)

    def slopes(self, w: np.ndarray) -> np.ndarray:
        check()
        self.calls.grads += self.n
        return self.inner.slopes(w)

    def hessian(self, w: np.ndarray) -> np.ndarray | None:
        """Every row has been looked at, if there is one."""
        check()
        H = self.inner.hessian(w)
        self.calls.grads += 0 if H is None else self.n
        return H


@sliced.register
def _(f: CountedObjective, W: np.ndarray) -> Slice:
    return _CountedSlice(f, sliced(f.inner, W))


@dataclass(frozen=True)
class _CountedSlice:
    f: CountedObjective
    inner: Slice

    @property
    def W(self) -> np.ndarray:
        return self.inner.W

    def of(self, f: CountedObjective) -> Slice:
        return self if f is self.f else _CountedSlice(f, self.inner if self.inner.f is f.inner else sliced(f.inner, self.W))

    def dot(self, d: np.ndarray) -> np.ndarray:
        return self.inner.dot(d)

    def solve(self, place: np.ndarray, scale: np.ndarray, w: np.ndarray, x: np.ndarray, z: np.ndarray, tol: float) -> Any:
        found = self.inner.solve(place, scale, w, x, z, tol)
        if found is not None:
            self.f.calls.grads += found[1] * self.f.n
            self.f.calls.values += found[2] * self.f.n
        return found

    def hessian(self, z: np.ndarray, far: bool = False, width: float = 0.0) -> Symmetric:
        """Every row is looked at, once or in every product: as much as n component gradients."""
        self.f.calls.grads += self.f.n
        H = self.inner.hessian(z, far, width)
        return H if isinstance(H, np.ndarray) else _CountedProducts(H, self.f)

    def root(self, z: np.ndarray, far: bool = False, width: float = 0.0) -> np.ndarray | None:
        """The same, if there is a factor."""
        B = self.inner.root(z, far, width)
        self.f.calls.grads += 0 if B is None else self.f.n
        return B


@dataclass(frozen=True)
class _CountedProducts:
    inner: Any
    f: CountedObjective

    def __matmul__(self, u: np.ndarray) -> np.ndarray:
        self.f.calls.grads += self.f.n
        return self.inner @ u

    def diagonal(self) -> np.ndarray:
        return self.inner.diagonal()
