"""Exact gradients: of all components at every step, or of a sample that grows to all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from extremal import checks
from extremal.gradients.base import Facts, Gradient, Looked, OnePoint, PlainEstimate, Steps
from extremal.objectives.base import Objective, Sampler


@dataclass(frozen=True)
class Full(OnePoint[PlainEstimate]):
    """g = grad f(x): n component gradients per step, no memory; every gap is a certificate.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.Method(gradient=ex.gradients.Full(), step=ex.steps.OpenLoop())
    Method(gradient=Full(), step=OpenLoop(), move=VertexMove())
    """

    def facts(self, n: int) -> Facts:
        return Facts(start=n, per_step=n, d=1.0, one_point=True)

    def _at(self, f: Objective, j: int, x: np.ndarray, state: PlainEstimate | None, sampler: Sampler) -> PlainEstimate:
        return PlainEstimate(f.grad(x), exact=True)


@dataclass(frozen=True)
class GrowingEstimate(Looked):
    """The gradient, value and margins of a sample; exact once the sample has all components."""

    stage: int = 0  # number of times that the sample has grown


@dataclass(frozen=True)
class Growing(Gradient[GrowingEstimate]):
    """g = grad f_S(x), the mean over a random sample S of the rows, which grows from n / ``parts`` by ``factor`` to all.

    The first steps need no more accuracy than a small sample gives. The sample grows when a step gains less than the expected
    loss from choosing by m rows, which is (non-zeros of x) / m to leading order. Once the sample has all rows, every gap is a
    certificate. Cost: m component gradients per step; memory: a copy of the sample.

    Parameters
    ----------
    parts : int
        The first sample has n / parts rows, but at least 1000; 1 is the full gradient from the start.
    factor : int
        Growth factor of the sample, at least 2.

    References
    ----------
    Byrd, Chin, Nocedal, Wu (2012), Sample size selection in optimization methods for machine learning, Math. Program. 134.

    Examples
    --------
    >>> Growing()
    Growing(parts=16, factor=4)
    """

    parts: int = 16
    factor: int = 4
    rows_each: ClassVar[int] = 100  # a sample with fewer rows for each non-zero of x is too small

    def __post_init__(self):
        checks.whole("Growing", "parts", self.parts, 1)
        checks.whole("Growing", "factor", self.factor, 2)

    def facts(self, n: int) -> Facts:
        return Facts(start=self._size(n, 0), per_step=n, d=1.0, needs=("value_grad_margins", "sampled"), columns=True)

    def init(self, f: Objective, x: np.ndarray, sampler: Sampler) -> GrowingEstimate:
        return self._at(f, x, 0, sampler, None)

    def update(
        self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: GrowingEstimate, sampler: Sampler
    ) -> GrowingEstimate:
        new = self._at(f, x, state.stage, sampler, state.model)
        used = np.count_nonzero(x)
        if new.exact:
            return new
        if self.rows_each * used > new.model.n:
            return self._at(f, x, state.stage + 1, sampler, None)
        return self._solved(f, x, new, sampler) if state.value - new.value <= used / new.model.n else new

    def _solved(self, f: Any, x: np.ndarray, new: GrowingEstimate, sampler: Sampler) -> Any:
        """The next estimate after a sample that has no more to say."""
        return self._at(f, x, new.stage + 1, sampler, None)

    def _at(self, f: Any, x: np.ndarray, stage: int, sampler: Sampler, model: Any) -> GrowingEstimate:
        size = self._size(f.n, stage)
        if model is None:
            model = f if size == f.n else f.sampled(size, lambda: np.sort(sampler.fresh(stage, size)))
        value, g, z = model.value_grad_margins(x)
        return GrowingEstimate(g, size == f.n, value, z, model, stage=stage)

    def _size(self, n: int, stage: int) -> int:
        size = max(n // self.parts, 1000) * self.factor**stage
        return n if 2 * size > n else size
