"""The end of a fit: a point of the set, how good it is, what it cost, and a warning where the tolerance was not met."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from extremal.losses.base import Loss
from extremal.losses.meaning import is_nonnegative
from extremal.objectives.intercept import InterceptModel
from extremal.objectives.margins import MarginModel
from extremal.points.matrix import wide
from extremal.rounding.exact import settle, violation
from extremal.run.progress import last_line, shown
from extremal.run.result import Result, Status, Trace
from extremal.sets.base import ConvexSet
from extremal.support.kinds import Numbers

GAP_ROUNDING = {8: 1e-12, 4: 2.5e-7}  # share of the mean square of centred targets that a gap may be by rounding, by bytes of x
HINTS = {
    "unbounded": "the loss keeps falling as coefficients grow (separable classes, for one), so that there is no best fit: "
    "add a bound to the constraint, such as constraint=[..., 'l1:10']",
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


@dataclass(frozen=True)
class Answer:
    """The end of a fit: a point of the set, and what is known of it."""

    x: Any  # in the set without exception, in the float type of the rows: an array, or a matrix in factors
    value: float  # f there
    gap: float  # its Frank-Wolfe gap: no x in the set, with any intercept, is better by more
    C: ConvexSet
    violation: float  # of the constraint, 0 but for equations that no rounded numbers solve
    status: str  # "tol"; "unbounded" if the loss keeps falling beyond every bound that was tried; or what ended the run
    n_iter: int
    n_grads: int  # component gradients, those of the certificate included
    n: int  # rows
    method: str  # what found it
    trace: Trace | None = None  # of the run
    intercept: Numbers = 0.0  # a float, or one for each output
    g: Any = field(default=None, repr=False)  # the gradient, in float64
    convex: bool = True

    @property
    def certificate(self) -> FitCertificate:
        """What is known, to be read."""
        passes, bounded = self.n_grads / self.n, self.status != "unbounded"
        return FitCertificate(self.value, self.gap, str(self.C), self.violation, passes, self.method, self.convex, bounded)


def answer_at(
    f: MarginModel, C: ConvexSet, x: Any, tol: float, atol: float, run: Result | None = None, method: str = ""
) -> Answer:
    """x rounded so that it lies in C exactly, and its certificate there: one pass over the rows, in float64.

    A matrix in factors is left as it is: whoever keeps the factors has rounded them. ``run`` is the run that has found x, if
    there was one. ``method`` is what the certificate calls it; the run's own words, if it is left out.

    Examples
    --------
    >>> import extremal as ex
    >>> f, C = ex.LinearModel(ex.Squared(), np.eye(2), np.array([1.0, 3.0])), ex.L1Ball(2.0)
    >>> found = answer_at(f, C, np.array([0.0, 2.0]), tol=1e-6, atol=0.0, method="a guess")
    >>> found.value, found.gap, found.violation, found.status
    (0.5, 0.0, 0.0, 'tol')
    """
    x = settle(C, np.ascontiguousarray(x, f.data.dtype)) if isinstance(x, np.ndarray) else x
    exact = wide(x)
    value, g, level = _looked(f, exact)
    gap = gap_bound(C, exact, g, value, f.loss)
    found = (Status.GAP, 0, 0, "", None) if run is None else (run.status, run.n_iter, run.calls.total_grads, run.why, run.trace)
    status, n_iter, grads, why, trace = found
    cost = n_iter, grads + f.n, f.n, (method or why).partition(":")[0], trace
    return Answer(x, value, gap, C, violation(C, x), ended(gap, value, tol, atol, status), *cost, level, g, f.convex)


def _looked(f: MarginModel, x: Any) -> tuple[float, Any, Numbers]:
    """f, its gradient and the intercept: with one, rows are read twice."""
    if not isinstance(f, InterceptModel):
        return *f.value_and_grad(x), np.zeros(f.deriv_shape)[()]
    value, g, z = f.value_grad_margins(x)
    return value, g, f.level(z)


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
    return min(gap, value) if is_nonnegative(loss) else gap


def ended(gap: float, value: float, tol: float, atol: float, status: Status) -> str:
    """What ``status_`` says: "tol" if the gap is small enough, otherwise what ended the run.

    A run that had met its tolerance has lost it when its answer was rounded. It is at the end of the numbers' precision then.
    """
    if gap <= 1.01 * tol * abs(value) + atol:
        return "tol"
    return "stalled" if status in (Status.GAP, Status.PRECISION) else status.value


def worst_status(statuses: Sequence[str]) -> str:
    """The first that is not "tol", or that."""
    return next((status for status in statuses if status != "tol"), "tol")


def together(answers: Sequence[Answer]) -> Answer:
    """Problems that were solved apart as one: the sum of the objectives, which the sum of the gaps certifies.

    The set, the trace and the method are those of the longest run.
    """
    return replace(
        max(answers, key=lambda answer: answer.n_iter),
        value=float(sum(answer.value for answer in answers)),
        gap=float(sum(answer.gap for answer in answers)),
        violation=float(max(answer.violation for answer in answers)),
        status=worst_status([answer.status for answer in answers]),
        n_grads=sum(answer.n_grads for answer in answers),
    )


class CertifiedEstimator(BaseEstimator):
    """An estimator whose fit ends with an answer."""

    tol: float
    verbose: int

    def _shown(self) -> AbstractContextManager[None]:
        """Inside, the progress of all runs is shown, if it is to be."""
        return shown(type(self).__name__, self.verbose)

    def _store(self, answer: Answer, words: str = "") -> None:
        """Keep the answer in the attributes; ``fit`` calls this itself, so that a warning shows its caller.

        It warns if the tolerance was not met (``words`` may say what gap there is). The certificate is the last line of what
        `_shown` shows.
        """
        self.objective_, self.dual_gap_ = answer.value, answer.gap
        self.constraint_, self.constraint_violation_ = answer.C, answer.violation
        self.status_, self.n_iter_, self.n_grads_ = answer.status, max(1, answer.n_iter), answer.n_grads
        self.certificate_ = answer.certificate
        if answer.trace is not None:
            self.trace_ = answer.trace
        name = type(self).__name__
        last_line(" ".join(repr(self.certificate_).split()))
        if answer.status == "tol":
            return
        gap = words or f"a certified gap of {answer.gap:.2g} at an objective of {answer.value:.3g}"
        missed = ":" if answer.status == "unbounded" else f" with {gap}, more than tol={self.tol:g} allows;"
        hint = HINTS.get(answer.status, "accept a larger tol")
        warnings.warn(f"{name} ended ({answer.status}){missed} {hint}", ConvergenceWarning, stacklevel=3)
