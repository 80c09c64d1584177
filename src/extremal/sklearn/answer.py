"""The end of a fit: a feasible point, its certificate, its cost, and a warning if the tolerance was missed."""

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

GAP_ROUNDING = {8: 1e-12, 4: 2.5e-7}  # share of the mean square of centred targets that a gap may owe to rounding, by bytes of x
GAP_SHOWN = 1e-15  # a gap below this share of f is rounding, and shown as this share
HINTS = {
    "unbounded": "the loss keeps falling as coefficients grow (for example, with separable classes), so there is no best fit: "
    "add a bound to the constraint, such as constraint=[..., 'l1:10']",
    "max_iter": "raise max_iter, or accept a larger tol",
    "max_grads": "raise max_iter, or accept a larger tol",
    "stalled": "the precision of the numbers allows no smaller gap: use float64, scale the data, or accept a larger tol",
}


@dataclass(frozen=True, repr=False)
class FitCertificate:
    """The quality of a fit: f is at most ``gap`` above its minimum over the set, and the coefficients lie in the set.

    Examples
    --------
    >>> FitCertificate(0.5, 1e-9, "Simplex(total=1)", 0.0, 4.0, "newton")
    Certificate(f = 0.5, at most 1e-09 above the minimum (2e-09 of f)
      over Simplex(total=1), violated by 0
      by newton, in 4 passes over the rows)
    """

    value: float  # f at the answer
    gap: float  # the Frank-Wolfe gap at the answer
    set: str  # the constraint as it was written, or the set
    violation: float  # distance of the answer from the set
    passes: float  # component gradients over rows
    method: str  # the method that found the answer
    convex: bool = True  # if False, the gap is 0 at stationary points and bounds nothing
    bounded: bool = True  # whether there is a minimum

    @property
    def relative_gap(self) -> float:
        """gap / |f|; infinite if f is 0 and the gap is positive."""
        return 0.0 if self.gap == 0 else float(np.divide(self.gap, abs(self.value))) if self.value else np.inf

    def __repr__(self) -> str:
        rounding = GAP_SHOWN * abs(self.value)
        known = f"at most {self.gap:.3g} above the minimum ({self.relative_gap:.3g} of f)"
        if self.gap < rounding:
            known = f"at most {rounding:.1g} above the minimum (rounding, {GAP_SHOWN:.0e} of f)"
        if not self.bounded:
            known = "still falling at the bounds that were tried: there is no minimum"
        elif not self.convex:
            known = f"stationary up to a gap of {self.gap:.3g}; f is not convex and may be lower elsewhere"
        return (
            f"Certificate(f = {self.value:.10g}, {known}\n"
            f"  over {self.set}, violated by {self.violation:g}\n"
            f"  by {self.method}, in {self.passes:.3g} passes over the rows)"
        )


@dataclass(frozen=True)
class Answer:
    """The end of a fit: a point of the set, and its certificate."""

    x: Any  # always in the set, in the float type of the rows: an array, or a matrix in factors
    value: float  # f at x
    gap: float  # the Frank-Wolfe gap at x: no x in the set, with any intercept, is better by more
    C: ConvexSet
    violation: float  # of the constraint; 0, except for equations that no rounded numbers solve
    status: str  # "tol"; "unbounded" if the loss falls beyond every bound that was tried; or the reason why the run ended
    n_iter: int
    n_grads: int  # component gradients, including those of the certificate
    n: int  # rows
    method: str  # the method that found x
    trace: Trace | None = None  # of the run
    intercept: Numbers = 0.0  # a float, or one number for each output
    g: Any = field(default=None, repr=False)  # the gradient, in float64
    convex: bool = True
    said: str = ""  # the constraint as the user wrote it; default: the set in words

    @property
    def certificate(self) -> FitCertificate:
        """The certificate in a readable form."""
        passes, bounded, words = self.n_grads / self.n, self.status != "unbounded", self.said or str(self.C)
        return FitCertificate(self.value, self.gap, words, self.violation, passes, self.method, self.convex, bounded)


def answer_at(
    f: MarginModel, C: ConvexSet, x: Any, tol: float, atol: float, run: Result | None = None, method: str = ""
) -> Answer:
    """Round x so that it lies in C exactly, and certify it there: one pass over the rows, in float64.

    A matrix in factors is left as it is, because its owner has already rounded the factors. ``run`` is the run that found x, if
    there was one. ``method`` is the name in the certificate. Default: the name that the run itself reports.

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
    """f, its gradient and the intercept. If the model has an intercept, the rows are read twice."""
    if not isinstance(f, InterceptModel):
        return *f.value_and_grad(x), np.zeros(f.deriv_shape)[()]
    value, g, z = f.value_grad_margins(x)
    return value, g, f.level(z)


def gap_bound(C: ConvexSet, x: Any, g: Any, value: float, loss: Loss) -> float:
    """Bound f(x) - min f over C: the gap at x, but at most f itself if the loss is never negative.

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
    """Return the value of ``status_``: "tol" if the gap is small enough, otherwise the reason why the run ended.

    If a run met its tolerance but its rounded answer does not, the numbers have no more precision: the status is "stalled".
    """
    if gap <= 1.01 * tol * abs(value) + atol:
        return "tol"
    return "stalled" if status in (Status.GAP, Status.PRECISION) else status.value


def worst_status(statuses: Sequence[str]) -> str:
    """The first status that is not "tol", or "tol" if there is none."""
    return next((status for status in statuses if status != "tol"), "tol")


def together(answers: Sequence[Answer]) -> Answer:
    """Combine problems that were solved separately: the sum of the gaps certifies the sum of the objectives.

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
    """An estimator whose fit ends with an `Answer`."""

    tol: float
    verbose: int

    def _shown(self) -> AbstractContextManager[None]:
        """Show the progress of all runs inside the context, if ``verbose`` asks for it."""
        return shown(type(self).__name__, self.verbose)

    def _store(self, answer: Answer, words: str = "") -> None:
        """Store the answer in the attributes. ``fit`` calls this directly, so that a warning points to the caller of ``fit``.

        The method warns if the tolerance was not met; ``words`` may describe the gap. The certificate is the last line of the
        output of `_shown`.
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
        if answer.status in ("max_iter", "max_grads") and self.get_params(deep=False).get("solver", "auto") not in (None, "auto"):
            hint = 'use solver="auto", ' + hint
        warnings.warn(f"{name} ended ({answer.status}){missed} {hint}", ConvergenceWarning, stacklevel=3)
