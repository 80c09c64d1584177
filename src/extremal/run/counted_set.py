"""The wrapper that counts what a set is asked."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar, cast

import numpy as np

from extremal.points.vertex import Vertex
from extremal.run.result import Calls
from extremal.sets.base import Bounded, ConvexSet, Faced, Spikes, Warm
from extremal.support.asked import Unsure, counted
from extremal.support.clock import check

CHECKS = 50  # calls of an oracle, and a tenth of those of the run, that it may take to tell whether a point is in the set
T = TypeVar("T")


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

    def may_contain(self, x: np.ndarray) -> bool:
        """The same; yes, where only the oracle knows and a moderate number of calls cannot tell."""
        try:
            return self._apart(lambda: self.inner.contains(x), CHECKS + max(math.prod(x.shape), self.calls.lmos) // 10)
        except Unsure:
            return True

    def holds(self, x: np.ndarray) -> bool:
        """Whether x is known to be in the set, without a tolerance and without a call of its oracle."""
        with counted(0):
            try:
                return self.inner.contains(x, 0.0)
            except Unsure:
                return False

    def spikes(self) -> Spikes | None:
        """The vertices of a set that is all spikes; None of others."""
        return self.inner.spikes()

    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """The bounds of a box."""
        return cast(Bounded, self.inner).limits()

    def _apart(self, ask: Callable[[], T], limit: float = math.inf) -> T:
        """What a set says of itself; where it asks its oracle for it, the calls count as a certificate's."""
        with counted(limit) as asked:
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
        return self.inner.gap(x, g, self.lmo_at(g) if s is None else s)

    def lmo_at(self, g: np.ndarray, x: np.ndarray | None = None) -> Vertex:
        """The oracle, for a certificate; sets on manifolds are asked at x."""
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
    return cast(Warm, C).lmo_from(g, near) if C.is_warm else C.lmo(g)
