"""Estimators in the form of compiled loops: their starting arrays, their weights, and the estimate they leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from extremal.gradients.base import Phase, PlainEstimate, SomeGradient
from extremal.kernels.arguments import AVERAGE, BOTH, FOLLOW, RECURSE, REFRESH, SNAPSHOT, TABLE
from extremal.objectives.base import SECOND, Sampler
from extremal.points.manifolds import Euclidean
from extremal.support.kinds import Numbers

if TYPE_CHECKING:
    from extremal.gradients.reduced import EpochEstimate
    from extremal.gradients.substitute import SubstituteEstimate
    from extremal.gradients.table import TableEstimate

NONE = np.zeros(0)
Plain = TypeVar("Plain", bound=PlainEstimate)
Tabular = TypeVar("Tabular", "TableEstimate", "SubstituteEstimate")


class BurstEstimator(Generic[Plain]):
    """The facts that a burst needs about an estimator and its first estimate.

    In a burst g = M + sigma V: ``mean`` is M, or None if V is all of g.
    """

    kind: int
    cost = 1  # component gradients per iteration and row of the batch
    late = 0  # iteration k uses the batch of draw k + late
    second: int | None = None  # the stream of a second batch, if there is one
    alpha, beta = 1.0, 0.0  # constant weights

    def __init__(self, gradient: Any):
        self.gradient = gradient

    def most(self, k: int, sampler: Sampler, estimate: Plain, wanted: int) -> int:
        """How many of the ``wanted`` iterations from k on can be made before a full gradient is due."""
        return wanted

    def weights(self, k: np.ndarray, n: int) -> tuple[Numbers, Numbers]:
        """alpha and beta of the iterations k."""
        return self.alpha, self.beta

    def mean(self, estimate: Plain) -> np.ndarray | None:
        """M, or None if V is all of g."""
        return None

    def arrays(self, estimate: Plain) -> tuple[np.ndarray, np.ndarray]:
        """The table and the margins, which a burst changes in place."""
        return NONE, NONE

    def snapshot(self, estimate: Plain) -> Numbers:
        """The snapshot w, or 0."""
        return 0.0

    def phase(self, estimate: Plain, made: Numbers) -> Phase | None:
        """The phase of the epoch after ``made`` iterations."""
        return None

    def after(self, estimate: Plain, g: np.ndarray, mean: np.ndarray | None, made: int) -> Plain:
        """The estimate after ``made`` iterations."""
        return replace(estimate, g=g, exact=False)


class _Sarah(BurstEstimator[PlainEstimate]):
    kind, cost = RECURSE, 2

    def most(self, k: int, sampler: Sampler, estimate: PlainEstimate, wanted: int) -> int:
        made = 0
        while made < wanted:
            full = sampler.coins(k + made) < self.gradient.p
            if full.any():
                return min(wanted, made + int(full.argmax()))
            made += len(full)
        return wanted


class _Storm(BurstEstimator[PlainEstimate]):
    kind, cost, late = RECURSE, 2, 1

    def weights(self, k: np.ndarray, n: int) -> tuple[Numbers, Numbers]:
        return 1.0 - _weight(self.gradient.rho, k + 1), 0.0


class _Momentum(BurstEstimator[PlainEstimate]):
    kind, late = AVERAGE, 1

    def weights(self, k: np.ndarray, n: int) -> tuple[Numbers, Numbers]:
        rho = _weight(self.gradient.rho, k + 1)
        return 1.0 - rho, rho


class _Tabled(BurstEstimator[Tabular]):
    def arrays(self, estimate: Tabular) -> tuple[np.ndarray, np.ndarray]:
        return estimate.table.c, NONE

    def mean(self, estimate: Tabular) -> np.ndarray | None:
        return estimate.table.mean

    def after(self, estimate: Tabular, g: np.ndarray, mean: np.ndarray | None, made: int) -> Tabular:
        estimate.table.mean = g if mean is None else mean
        return super().after(estimate, g, mean, made)


class _Sag(_Tabled[Tabular]):
    kind, late = REFRESH, 1

    def mean(self, estimate: Tabular) -> np.ndarray | None:
        return None  # the mean is g

    def weights(self, k: np.ndarray, n: int) -> tuple[Numbers, Numbers]:
        return 1.0, 1.0 if self.gradient.rho is None else _weight(self.gradient.rho, k + 1)


class _Substitute(_Sag["SubstituteEstimate"]):
    kind, late = FOLLOW, 0

    def weights(self, k: np.ndarray, n: int) -> tuple[Numbers, Numbers]:
        m = n / self.gradient.batch
        return 1.0, np.minimum(1.0, self.gradient.scale * 2 * m / (2 * m + k + 1))

    def arrays(self, estimate: SubstituteEstimate) -> tuple[np.ndarray, np.ndarray]:
        return estimate.table.c, estimate.sigma


class _Saga(_Tabled["TableEstimate"]):
    kind, alpha = TABLE, 0.0

    def __init__(self, gradient: Any):
        super().__init__(gradient)
        if gradient.two_batches:
            self.second, self.cost = SECOND, 2


class _SagaSarah(_Tabled["TableEstimate"]):
    kind, cost = BOTH, 2

    def weights(self, k: np.ndarray, n: int) -> tuple[Numbers, Numbers]:
        return 1.0 - self.gradient.lam, self.gradient.lam


class _Svrg(BurstEstimator["EpochEstimate"]):
    kind, cost, alpha = SNAPSHOT, 2, 0.0

    def most(self, k: int, sampler: Sampler, estimate: EpochEstimate, wanted: int) -> int:
        return min(wanted, estimate.phase.length - estimate.phase.k - 1)

    def mean(self, estimate: EpochEstimate) -> np.ndarray | None:
        return estimate.gw

    def snapshot(self, estimate: EpochEstimate) -> Numbers:
        return estimate.w

    def phase(self, estimate: EpochEstimate, made: Numbers) -> Phase | None:
        return replace(estimate.phase, k=estimate.phase.k + made)

    def after(self, estimate: EpochEstimate, g: np.ndarray, mean: np.ndarray | None, made: int) -> EpochEstimate:
        return replace(estimate, g=g, exact=False, phase=self.phase(estimate, made))


_KNOWN: dict[str, type[BurstEstimator]] = {  # by name, so that estimators are imported only if used
    kind.__name__.removeprefix("_"): kind for kind in (_Sarah, _Storm, _Momentum, _Sag, _Substitute, _Saga, _SagaSarah, _Svrg)
}


def part(gradient: SomeGradient) -> BurstEstimator | None:
    """The estimator in the form of compiled loops; None if it has no such form or its batch size changes.

    Examples
    --------
    >>> import extremal as ex
    >>> part(ex.gradients.Sarah(batch=10, p=0.1)).cost, part(ex.gradients.Full())
    (2, None)
    """
    known = _KNOWN.get(type(gradient).__name__) if type(gradient).__module__.startswith("extremal.gradients.") else None
    flat = known is not _Svrg or isinstance(gradient.manifold, Euclidean)  # type: ignore
    return known(gradient) if known is not None and flat and isinstance(gradient.batch, int) else None  # type: ignore


def _weight(rho: Callable[[np.ndarray], Numbers], j: np.ndarray) -> np.ndarray:
    return np.minimum(1.0, rho(j))
