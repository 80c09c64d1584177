"""Objectives and sets that count for themselves what they are really asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import extremal as ex


@dataclass
class Seen:
    """What has arrived."""

    grads: int = 0  # component gradients; looks at second derivatives are counted as these
    values: int = 0
    lmos: int = 0
    block_lmos: int = 0
    entries: int = field(default=0, repr=False, compare=False)  # of parts of gradients, times components
    inside: int = field(default=0, repr=False)  # calls that are being answered: one that leads to others is counted once
    at: Any = field(default=None, repr=False)  # the margins of the last look at second derivatives


@dataclass(frozen=True)
class OwnLogistic(ex.Logistic):
    """A loss that no compiled loop knows, and a witness of derivatives that tables take from it past the model's questions."""

    seen: Seen | None = field(default=None, repr=False, compare=False)

    def deriv(self, z, y):
        return self._looked(super().deriv(z, y))

    def second(self, z, y):
        return self._looked(super().second(z, y))

    def _looked(self, found):
        if self.seen is not None and not self.seen.inside:
            self.seen.grads += len(found)
        return found


def separable(seen: Seen, A: np.ndarray, y: np.ndarray, convex: bool = True) -> ex.Separable:
    """A logistic model by callables."""

    def grad(x, idx):
        seen.grads += len(idx)
        return (-y[idx] / (1 + np.exp(y[idx] * (A[idx] @ x))))[:, None] * A[idx]

    def value(x, idx):
        seen.values += len(idx)
        return np.logaddexp(0, -y[idx] * (A[idx] @ x))

    L = 0.25 * float(np.linalg.norm(A, 2)) ** 2 / len(A)
    return ex.Separable(len(A), A.shape[1], grad, value, convex=convex, smoothness=L)


QUESTIONS = {  # of a linear model, and what they cost
    "value": "values", "grad": "grads", "value_and_grad": "grads values", "value_grad_margins": "grads values", "derivs": "grads",
    "values": "values", "value_at": "values", "derivs_at": "grads", "second_at": "grads", "curvature_rows_at": "grads",
    "curvature_sums_at": "grads", "tail_ratio": "values",
}  # fmt: skip


def counting(kind: type) -> type:
    """A linear model that counts every question by its own definition: those that it puts to itself are not counted."""

    def question(name: str, costs: list[str]):
        def ask(self, a, *more):
            seen = self.seen
            m = len(more[0]) if more and isinstance(more[0], np.ndarray) else self.n  # some rows, or all of them
            if not seen.inside:
                again = name == "derivs_at" and seen.at is a  # first derivatives where second ones are known
                for cost in costs:
                    setattr(seen, cost, getattr(seen, cost) + (0 if again else m))
                seen.at = a if name in ("second_at", "curvature_rows_at", "curvature_sums_at") else None
            seen.inside += 1
            try:
                return getattr(super(Counting, self), name)(a, *more)
            finally:
                seen.inside -= 1

        return ask

    class Counting(kind):
        def __init__(self, seen: Seen, *args, **options):
            super().__init__(*args, **options)
            self.seen = seen

        def part(self, z, place):
            self.seen.inside += 1
            g = super().part(z, place)
            self.seen.inside -= 1
            self.seen.entries += self.n * g.size
            return g

        def between(self, z, dz):
            return Segment(super().between(z, dz), self.n, self.seen)

    for name, costs in QUESTIONS.items():
        setattr(Counting, name, question(name, costs.split()))
    return Counting


@dataclass(frozen=True)
class Segment:
    """A line that counts its values and slopes, which look at every margin."""

    inner: Any
    n: int
    seen: Seen
    grads_per_slope: int = 0

    def value(self, t: float) -> float:
        return self._asked(self.inner.value, t)

    def slope(self, t: float) -> float:
        return self._asked(self.inner.slope, t)

    def _asked(self, question, t: float) -> float:
        self.seen.values += self.n
        self.seen.inside += 1
        try:
            return question(t)
        finally:
            self.seen.inside -= 1


def product(seen: Seen, *sets: ex.ConvexSet) -> ex.ConvexSet:
    """A product of sets that counts calls of all its blocks, and calls of one block by another number."""
    return watched(seen, ex.Product(*(watched(seen, C, "block_lmos") for C in sets)))


def watched(seen: Seen, C: ex.ConvexSet, number: str = "lmos") -> ex.ConvexSet:
    """The same set, of a class that counts linear minimisations, whoever asks for them."""
    names = [name for name in ("lmo", "lmo_from", "lmo_at", "away") if hasattr(type(C), name)]

    def question(name):
        def ask(self, *args):
            setattr(seen, number, getattr(seen, number) + (not seen.inside))
            seen.inside += 1
            try:
                return getattr(super(kind, self), name)(*args)
            finally:
                seen.inside -= 1

        return ask

    kind = type(type(C).__name__, (type(C),), {name: question(name) for name in names})
    new = object.__new__(kind)
    new.__dict__.update(C.__dict__)
    return new


def oracle(seen: Seen, C: ex.ConvexSet, contains: bool) -> ex.Oracle:
    """A user's own functions for a set."""

    def lmo(g):
        seen.lmos += 1
        return C.lmo(np.asarray(g)).to_array()

    return ex.Oracle(lmo, C.diameter, shape=C.shape, contains=C.contains if contains else None)
