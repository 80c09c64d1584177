"""Gradients from values alone: a wrapper for any estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.base import Counting, Estimate, Facts, SomeGradient, Steps, Wrapper, count_sent
from extremal.objectives.base import Objective, RowIndex, Sampler


class FiniteDifferences(Counting):
    """An objective with central differences of component values as component gradients.

        grad f_i(x) ~ sum_j [f_i(x + mu e_j) - f_i(x - mu e_j)] / (2 mu) e_j

    Each needs 2d values. An estimate also counts as one component gradient, so that budgets apply to it.
    """

    def __init__(self, f: Objective, mu: float):
        self.inner, self.mu = f, mu
        self.n, self.shape, self.dtype, self.convex = f.n, f.shape, f.dtype, f.convex
        self.deriv_shape = f.shape
        self.calls = f.calls if isinstance(f, Counting) else None

    @property
    def smoothness(self) -> float:
        return self.inner.smoothness

    def value(self, x: np.ndarray) -> float:
        return self.inner.value(x)

    def grad(self, x: np.ndarray) -> np.ndarray:
        """Differences of f itself: 2d full sums."""
        self._count(self.n)
        return self._differences(x, lambda u: np.array(self.inner.value(u)))

    def value_and_grad(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        return self.value(x), self.grad(x)

    def derivs(self, x: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        self._count(self.n if idx is None else len(idx))
        return self._differences(x, lambda u: self.inner.values(u, idx))

    def combine(self, c: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        return c.mean(axis=0)

    def _differences(self, x: np.ndarray, values: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Central differences along every coordinate; the coordinates are the last axes."""
        columns = []
        for j in range(x.size):
            ahead, behind = np.array(x, np.float64), np.array(x, np.float64)
            ahead.flat[j] += self.mu
            behind.flat[j] -= self.mu
            columns.append((values(ahead) - values(behind)) / (2 * self.mu))
        table = np.stack(columns, axis=-1).astype(self.dtype)
        return table.reshape(*table.shape[:-1], *self.shape)

    def sent(self, numbers: int, size: int) -> None:
        count_sent(self.inner, numbers, size)

    def _count(self, grads: int) -> None:
        if self.calls is not None:
            self.calls.grads += grads


@dataclass(frozen=True)
class ZerothOrder(Wrapper[Estimate]):
    """Any estimator with values only: central differences replace each component gradient.

    Each component gradient costs 2d component values; no gradient is computed, and none is exact. The counts show an estimated
    gradient as one of ``grads``, and its 2d values in ``values``.

    Parameters
    ----------
    gradient : Gradient
        The estimator to run; estimators that need margins are refused.
    mu : float
        Half the width of the differences, positive.

    References
    ----------
    Gao, Huang (2020), Can stochastic zeroth-order Frank-Wolfe method converge faster for non-convex problems?, ICML.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.gradients.ZerothOrder(ex.gradients.Full(), mu=1e-3)
    ZerothOrder(gradient=Full(), mu=0.001)
    """

    gradient: SomeGradient
    mu: float

    like: ClassVar[str] = "Full()"

    def __post_init__(self):
        super().__post_init__()
        checks.fix(self, mu=checks.positive("ZerothOrder", "mu", self.mu))

    def facts(self, n: int) -> Facts:
        facts = self.gradient.facts(n)
        if facts.needs:
            raise InputError(f"ZerothOrder cannot feed {type(self.gradient).__name__}, which needs {', '.join(facts.needs)}")
        return replace(facts, manifold=None)  # differences assume flat space

    def init(self, f: Objective, x: np.ndarray, sampler: Sampler) -> Estimate:
        return replace(self.gradient.init(self._on(f), x, sampler), exact=False)

    def update(
        self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: object, sampler: Sampler
    ) -> Estimate:
        return replace(self.gradient.update(self._on(f), k, x_prev, x, steps, state, sampler), exact=False)

    def _on(self, f: Objective) -> Objective:
        return cast(Objective, FiniteDifferences(f, self.mu))
