"""The rows of a sum, divided among workers: each has its own part, its own estimator and its own draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from extremal.checks import InputError
from extremal.gradients.base import Counting, Estimate, Facts, SomeGradient, count_sent, sampler_of
from extremal.objectives.base import Objective, RowIndex, Sampler


def bounds(n: int, m: int) -> list[tuple[int, int]]:
    """The range [first, last) of rows of each of m workers: contiguous, with sizes that differ by at most one."""
    return [(n * i // m, n * (i + 1) // m) for i in range(m)]


class _Shard(Counting):
    """The mean over the rows of one worker, with the methods that estimators use: f_i = (1/n_i) sum over [first, last)."""

    def __init__(self, f: Objective, first: int, last: int):
        self.whole, self.first, self.n = f, first, last - first
        self.shape, self.dtype, self.convex, self.deriv_shape = f.shape, f.dtype, f.convex, f.deriv_shape
        self.calls = f.calls if isinstance(f, Counting) else None  # wrappers of the estimator may count as well

    def derivs(self, x: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        return self.whole.derivs(x, self._rows(idx))

    def combine(self, c: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        return self.whole.combine(c, self._rows(idx))

    def values(self, x: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        return self.whole.values(x, self._rows(idx))

    def value(self, x: np.ndarray) -> float:
        return float(self.values(x).mean(dtype=np.float64))

    def grad(self, x: np.ndarray) -> np.ndarray:
        return self.combine(self.derivs(x))

    def sent(self, numbers: int, size: int) -> None:
        count_sent(self.whole, numbers, size)

    def _rows(self, idx: RowIndex) -> np.ndarray:
        return np.arange(self.first, self.first + self.n) if idx is None else idx + self.first


@dataclass(frozen=True)
class Worker:
    """One of m workers: its estimator, its rows and its draws. It does the same in a simulation and in its own process."""

    gradient: SomeGradient
    f: Objective  # the mean over its rows
    weight: float  # m n_i / n, so that the mean of the f_i is f even for parts of unequal size
    sampler: Sampler

    @classmethod
    def of(
        cls, gradient: SomeGradient, m: int, f: Objective, i: int, sampler: Sampler | None = None, seed: int = 0, shard: int = 0
    ) -> Worker:
        """Worker i of m. If no sampler is given, the worker gets its own stream from the seed and the shard."""
        part = _Shard(f, *bounds(f.n, m)[i])
        draws = sampler or sampler_of(gradient.facts(part.n))(part.n, seed, shard * m + i)
        return cls(gradient, cast(Objective, part), m * part.n / f.n, draws)

    def init(self, x: np.ndarray) -> tuple[Estimate, np.ndarray]:
        """The state of its estimator, and y_i, its estimate of grad f_i."""
        own = self.gradient.init(self.f, x, self.sampler)
        return own, self.weight * own.g

    def update(self, k: int, x_prev: np.ndarray, x: np.ndarray, own: Estimate) -> tuple[Estimate, np.ndarray]:
        """The state and y_i at x."""
        own = self.gradient.update(self.f, k, x_prev, x, (), own, self.sampler)
        return own, self.weight * own.g


def shared_facts(call: str, name: str, who: str, gradient: SomeGradient, m: int, n: int, d: bool = True) -> Facts:
    """The sum of the workers' costs, and the worst of their constants; estimators that workers cannot run are refused.

    ``d`` says whether the errors of the workers are those of the whole, so that their constant d still holds.
    """
    if m > n:
        raise InputError(f"`{call}({name}=...)` must have at most one {who} per component, got {m} for {n}")
    each = [gradient.facts(last - first) for first, last in bounds(n, m)]
    first = each[0]
    if first.needs or first.one_vertex or first.bends:
        why = "which follows the one vertex of a plain move" if first.one_vertex else "which needs all rows of a linear model"
        raise InputError(f"{call} cannot run {type(gradient).__name__}, {why}")
    costs: list[Any] = [facts.per_step for facts in each]
    return Facts(
        start=sum(facts.start for facts in each),
        per_step=(lambda k: sum(cost(k) for cost in costs)) if callable(costs[0]) else sum(costs),
        d=None if first.d is None or not d else max(facts.d or 1.0 for facts in each),
        c=min(facts.c for facts in each),
        epochs=first.epochs,
    )
