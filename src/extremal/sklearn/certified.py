"""What estimators say of their fit: how good it is, what it cost, and a warning where the tolerance was not reached."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight

from extremal import checks
from extremal.checks import InputError
from extremal.losses.base import Loss
from extremal.losses.glm import Poisson, Quantile
from extremal.losses.margin import Huber, Logistic, Squared
from extremal.losses.multi import Multinomial
from extremal.losses.weighted import unweighted
from extremal.run.result import Status
from extremal.sets.base import ConvexSet
from extremal.sklearn.hints import FeatureMatrix, RandomState

POSITIVE = (Logistic, Squared, Huber, Quantile, Poisson, Multinomial)  # losses that are never below 0
HINTS = {
    "unbounded": "the loss goes on falling as coefficients grow (separable classes, for one), so that there is no best fit: "
    "give a bound, by radius= or in constraint=",
    "max_iter": "raise max_iter, or accept a larger tol",
    "max_grads": "raise max_iter, or accept a larger tol",
    "stalled": "this is as far as the precision of the numbers goes: use float64, scale the data, or accept a larger tol",
}


@dataclass(frozen=True, repr=False)
class FitCertificate:
    """How good a fit is: f is at most ``gap`` above its minimum over the set, and the coefficients are in the set.

    Examples
    --------
    >>> FitCertificate(0.5, 1e-9, "Simplex(total=1)", 0.0, 4.0, "newton")
    Certificate(f = 0.5, at most 1e-09 above the minimum (2e-09 of f)
      over Simplex(total=1), violated by 0
      by newton, in 4 passes over the rows)
    """

    value: float  # f at the answer
    gap: float  # its Frank-Wolfe gap
    set: str  # the set, as it reads
    violation: float  # how far the answer is from it
    passes: float  # component gradients over rows
    method: str  # what found it
    convex: bool = True  # otherwise the gap is 0 at stationary points, and bounds nothing
    bounded: bool = True  # whether there is a minimum

    @property
    def relative_gap(self) -> float:
        """gap / |f|; infinite if f is 0 and the gap is not."""
        return 0.0 if self.gap == 0 else float(np.divide(self.gap, abs(self.value))) if self.value else np.inf

    def __repr__(self) -> str:
        known = f"at most {self.gap:.3g} above the minimum ({self.relative_gap:.3g} of f)"
        if not self.bounded:
            known = "still falling at the bounds that were tried: there is no minimum"
        elif not self.convex:
            known = f"stationary up to a gap of {self.gap:.3g}; f is not convex, and may be lower elsewhere"
        return (
            f"Certificate(f = {self.value:.10g}, {known}\n"
            f"  over {self.set}, violated by {self.violation:g}\n"
            f"  by {self.method}, in {self.passes:.3g} passes over the rows)"
        )

    @classmethod
    def of(cls, model: Any, rows: int, method: str, convex: bool = True) -> FitCertificate:
        """Of a fitted estimator."""
        found = model.objective_, model.dual_gap_, str(model.constraint_), model.constraint_violation_, model.n_grads_ / rows
        return cls(*found, method, convex, model.status_ != "unbounded")


def gap_bound(C: ConvexSet, x: Any, g: Any, value: float, loss: Loss) -> float:
    """How much f can be above its minimum over C: its gap at x, but not more than f itself if the loss is never below 0.

    Examples
    --------
    >>> import extremal as ex
    >>> x, g = np.array([1.0, 0.0]), np.array([-1.0, 0.5])
    >>> gap_bound(ex.L1Ball(2.0), x, g, 3.0, ex.Squared()), gap_bound(ex.L1Ball(2.0), x, g, 0.25, ex.Squared())
    (1.0, 0.25)
    """
    gap = C.gap(x, g)
    return min(gap, value) if isinstance(unweighted(loss), POSITIVE) else gap


def ended(gap: float, value: float, tol: float, atol: float, status: Status) -> str:
    """What ``status_`` says: "tol" if the gap is small enough, otherwise what ended the run.

    A run that had met its tolerance has lost it when its answer was rounded, and is at the end of the numbers' precision.
    """
    if gap <= 1.01 * tol * abs(value) + atol:
        return "tol"
    return "stalled" if status in (Status.GAP, Status.CALLBACK) else status.value


def report(model: Any) -> None:
    """Warn if the tolerance was not reached, and write a line if the estimator is verbose."""
    name = type(model).__name__
    if model.verbose:
        sys.stdout.write(f"{name}: {model.certificate_!r}\n")
    if model.status_ == "tol":
        return
    c, hint = model.certificate_, HINTS.get(model.status_, "accept a larger tol")
    gap = f"with a certified gap of {c.gap:.2g} at an objective of {c.value:.3g}, more than tol={model.tol:g} allows"
    warnings.warn(
        f"{name} ended ({model.status_}): {hint}"
        if model.status_ == "unbounded"
        else f"{name} ended ({model.status_}) {gap}; {hint}",
        ConvergenceWarning,
        stacklevel=4,
    )


def check_options(model: Any) -> None:
    """Refuse options of the run that make no sense."""
    name = type(model).__name__
    checks.positive(name, "tol", model.tol)
    checks.whole(name, "max_iter", model.max_iter, 1)
    checks.flag(name, "warm_start", model.warm_start)
    if isinstance(model.verbose, str) or not 0 <= model.verbose:
        raise InputError(f"`{name}(verbose=...)` must be a whole number of at least 0, got {model.verbose!r}")


def read_weights(model: object, sample_weight: ArrayLike | None, X: FeatureMatrix) -> np.ndarray | None:
    """Sample weights in float64, refusing negative ones and those that are all zero; None if none were given."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if not (weights >= 0).all() or not weights.any():
        least = f"a least of {weights.min():g} and a largest of {weights.max():g}"
        raise InputError(f"`{type(model).__name__}.fit(sample_weight=...)` must be non-negative and not all zero, got {least}")
    return weights


def seed_of(random_state: RandomState) -> int:
    """A seed: 0 for None, a whole number as it is, a draw from a generator."""
    if random_state is None:
        return 0
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
