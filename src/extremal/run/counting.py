"""Counting oracle calls: one wrapper around the objective and one around the set, so that no method can miscount."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np

from extremal.objectives.base import Objective, Rows, Segment
from extremal.objectives.linear import LinearModel
from extremal.objectives.on_atoms import Restriction, restrict
from extremal.objectives.on_columns import Slice, has_slices, sliced
from extremal.points.active import ActiveSet
from extremal.points.composed import Chord
from extremal.points.vertex import Vertex
from extremal.run.result import Calls
from extremal.sets.base import Bounded, ConvexSet, Faced, Spikes, Unsure, counted
from extremal.support.clock import check

T = TypeVar("T")


class CountedObjective:
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
        return getattr(self.inner, "weights", None)

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

    def derivs(self, x: np.ndarray, idx: Rows = None) -> np.ndarray:
        self._count(grads=self.n if idx is None else len(idx))
        return self.inner.derivs(x, idx)

    def combine(self, c: np.ndarray, idx: Rows = None) -> np.ndarray:
        return self.inner.combine(c, idx)

    def values(self, x: np.ndarray, idx: Rows = None) -> np.ndarray:
        self._count(values=self.n if idx is None else len(idx))
        return self.inner.values(x, idx)

    def margins(self, x: np.ndarray, idx: Rows = None) -> np.ndarray:
        return self._linear.margins(x, idx)

    def vertex_margins(self, s: Vertex, idx: Rows = None) -> np.ndarray:
        return self._linear.vertex_margins(s, idx)

    def look(self, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        self._count(grads=self.n, values=self.n)
        return self._linear.look(x)

    def tail(self, z: np.ndarray) -> float:
        self._count(values=self.n)
        return self._linear.tail(z)

    def sample(self, rows: np.ndarray) -> CountedObjective:
        return CountedObjective(self._linear.sample(rows), self.calls)

    def between(self, z: np.ndarray, dz: np.ndarray) -> Segment:
        return _CountedSegment(self._linear.between(z, dz), self.n, self.calls)

    def derivs_at(self, z: np.ndarray, idx: Rows = None) -> np.ndarray:
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

    def solve(self, place: Any, scale: Any, w: np.ndarray, x: np.ndarray, z: np.ndarray, tol: float) -> Any:
        found = self.inner.solve(place, scale, w, x, z, tol)
        if found is not None:
            self.f.calls.grads += found[1] * self.f.n
            self.f.calls.values += found[2] * self.f.n
        return found

    def hessian(self, z: np.ndarray, far: bool = False, width: float = 0.0) -> Any:
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


class CountedSet:
    """A set that counts each linear minimisation asked of it.

    The last answer is kept: a certificate at an exact gradient asks what the method asks next, and it is computed once.
    It counts as the certificate's until the method uses it, and as the method's from then on.
    """

    def __init__(self, C: ConvexSet, calls: Calls):
        self.inner, self.calls = C, calls
        self._g: np.ndarray | None = None  # the last gradient; never changed in place by anyone
        self._s: Vertex | None = None  # the oracle's answer to it
        self._lent = False  # the answer has been counted as a certificate's only

    @property
    def diameter(self) -> float:
        """The set's."""
        return self._apart(lambda: self.inner.diameter)

    def start(self) -> np.ndarray:
        """The set's own starting point."""
        return self._apart(self.inner.start)

    def contains(self, x: np.ndarray) -> bool:
        """Whether x is in the set."""
        return self._apart(lambda: self.inner.contains(x))

    def holds(self, x: np.ndarray) -> bool:
        """Whether x is known to be in the set, without a tolerance and without a call of its oracle."""
        with counted(0):
            try:
                return self.inner.contains(x, 0.0)
            except Unsure:
                return False

    def spikes(self) -> Spikes | None:
        """The vertices of a set that is all spikes; None of others."""
        return self.inner.spikes() if hasattr(self.inner, "spikes") else None  # type: ignore[attr-defined]

    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """The bounds of a box."""
        return cast(Bounded, self.inner).limits()

    def _apart(self, ask: Callable[[], T]) -> T:
        """What a set says of itself; where it asks its oracle for it, the calls count as a certificate's."""
        with counted() as asked:
            try:
                return ask()
            finally:
                self.calls.certificate_lmos += asked.calls

    def lmo(self, g: np.ndarray, x: np.ndarray | None = None) -> Vertex:
        """The oracle, for the method; sets on manifolds are asked at x."""
        check()
        if self._s is not None and g is self._g and not self._lent:
            return self._s  # the method has asked for it just now
        self.calls.lmos += 1
        self.calls.certificate_lmos -= self._lent and g is self._g
        self._lent = False
        return self._ask(g, x)

    def asked(self, times: int, g: np.ndarray) -> None:
        """Count what a burst has asked by itself: at g first, then at gradients of its own."""
        self.calls.lmos += times
        if times:
            self.calls.certificate_lmos -= self._lent and g is self._g
            self._lent = False

    def away(self, g: np.ndarray, x: np.ndarray) -> Vertex:
        """The worst vertex of the face that holds x; counted as a linear minimisation, which it is."""
        self.calls.lmos += 1
        return cast(Faced, self.inner).away(g, x)

    def max_step(self, x: np.ndarray, s: Vertex, a: Vertex) -> float:
        """How far x can go in the direction s - a."""
        return cast(Faced, self.inner).max_step(x, s, a)

    def gap(self, x: np.ndarray, g: np.ndarray, s: Vertex | None = None) -> float:
        """The gap at x; a certificate's call, or none if s, the oracle's answer to g, is given."""
        return self.inner.gap(x, g, self._certify(g) if s is None else s)

    def lmo_at(self, g: np.ndarray, x: np.ndarray) -> Vertex:
        """The oracle of a set on a manifold, for a certificate."""
        return self._certify(g, x)

    def _certify(self, g: np.ndarray, x: np.ndarray | None = None) -> Vertex:
        if g is not self._g:
            self.calls.certificate_lmos += 1
            self._lent = True
        return self._ask(g, x)

    def _ask(self, g: np.ndarray, x: np.ndarray | None) -> Vertex:
        if self._s is None or g is not self._g:
            self._s, self._g = ask(self.inner, g, x, self._s), g
        return self._s


def ask(C: ConvexSet, g: np.ndarray, x: np.ndarray | None = None, near: Vertex | None = None) -> Vertex:
    """The oracle of a set: at g, or at g and x for sets on manifolds (they have ``lmo_at``); near its last answer, if it can."""
    if x is not None:
        return C.lmo_at(g, x)  # type: ignore[attr-defined]
    g = g if C.matrix_free else np.asarray(g)
    warm = getattr(C, "lmo_from", None)  # as isinstance(C, Warm) would, which takes as long as a small oracle
    return C.lmo(g) if warm is None else warm(g, near)
