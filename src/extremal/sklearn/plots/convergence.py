"""Plots of the convergence of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from extremal import checks
from extremal.checks import InputError
from extremal.run.result import Trace
from extremal.sklearn.options import is_fitted, numbered
from extremal.sklearn.plots.drawing import OUTSIDE, Canvas, axes_for, fitted_model, labels_of_rows
from extremal.support.palette import GREY, colours_of_series

ACROSS = {"passes": "passes over the data", "seconds": "seconds", "iter": "iterations"}


class ConvergenceDisplay:
    """Plot the progress of runs: the certified gap, and the distance to the best value, against passes or seconds.

        gap(x_k) >= f(x_k) - f*,   f(x_k) - best,   best = the smallest value of all the runs that are drawn

    The vertical axis is logarithmic. Gaps are solid lines, and values, if requested, are dashed. Values of several runs are
    comparable only if the runs minimise the same function; gaps always are. A pass is n component gradients. The constructor
    takes runs by name, and the requested gap ``tol``, which is drawn as a line.

    Attributes
    ----------
    ax_, figure_, lines_ : Axes and Figure of matplotlib, and list of Line2D
        The axes and the figure, and the curves run by run: the gap, then the value.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([1.0, 3.0]))
    >>> runs = {m: ex.minimize(f, ex.Simplex(), m, max_iter=50, record=1).trace for m in ("frank-wolfe", "pairwise-fw")}
    >>> display = ConvergenceDisplay(runs).plot(y="gap")
    >>> [line.get_label() for line in display.lines_]
    ['frank-wolfe', 'pairwise-fw']
    """

    def __init__(self, traces: Mapping[str, Trace], *, tol: float | None = None):
        self.traces, self.tol = dict(traces), tol

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator, *, name: str | None = None, **options: object) -> ConvergenceDisplay:
        """Plot the run of one fitted estimator; options as for `plot`."""
        return cls.from_estimators([estimator], names=None if name is None else [name], **options)

    @classmethod
    def from_estimators(cls, estimators: Any, *, names: Any = None, **options: Any) -> ConvergenceDisplay:
        """Plot the runs of several fitted estimators, given as a sequence or as a mapping from names; options as for `plot`."""
        if isinstance(estimators, Mapping):
            estimators, names = list(estimators.values()), list(estimators)
        estimators = list(estimators)
        names = numbered([type(model).__name__ for model in estimators], " ") if names is None else [str(name) for name in names]
        if len(names) != len(estimators) or len(set(names)) < len(names):
            raise InputError(f"`ConvergenceDisplay(names=...)` must have a different name for each estimator, got {names}")
        traces = {}
        for name, estimator in zip(names, estimators, strict=True):
            traces |= traces_of(name, estimator, fitted_model("ConvergenceDisplay.from_estimators", estimator, "trace_"))
        return cls(traces, tol=common_tolerance(estimators)).plot(**options)

    def plot(self, ax: Canvas = None, *, x: str = "passes", y: str = "gap", **style: object) -> ConvergenceDisplay:
        """Plot ``y``, "gap", "value" or "both", against ``x``, "passes", "seconds" or "iter"; keywords go to matplotlib."""
        call = "ConvergenceDisplay.plot"
        checks.one_of(f"`{call}(x=...)`", x, ACROSS)
        checks.one_of(f"`{call}(y=...)`", y, ("gap", "value", "both"))
        (self.ax_,) = axes_for(call, ax)
        self.figure_, self.lines_ = self.ax_.figure, []
        best = min((np.nanmin(t.value, initial=np.inf) for t in self.traces.values()), default=np.inf)
        looks = colours_of_series(self.traces)
        for name, trace in self.traces.items():
            look = {"color": looks[name][0], "marker": ".", "linewidth": 1.6} | style
            if y != "value":
                label = name if y == "gap" else f"{name}: gap"
                self.lines_.append(positive_curve(self.ax_, trace[x], trace.gap, label=label, **look))
            if y != "gap":
                look |= {"linestyle": "--", "label": name if y == "value" else f"{name}: value - best"}
                self.lines_.append(positive_curve(self.ax_, trace[x], trace.value - best, **look))
        if self.tol and y != "value":
            self.ax_.axhline(self.tol, color=GREY, linestyle=":", linewidth=1.2, label="tolerance")
        self.ax_.set(xlabel=ACROSS[x], ylabel={"gap": "certified gap", "value": "value - best"}.get(y, "distance to the optimum"))
        self.ax_.set_yscale("log")
        self.ax_.legend(**OUTSIDE)
        return self


def plot_convergence(*estimators: object, **options: object) -> ConvergenceDisplay:
    """Plot the runs of fitted estimators, or of a mapping from names to estimators: `ConvergenceDisplay.from_estimators`.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from extremal.sklearn import ConstrainedLogisticRegression
    >>> X, y = make_classification(random_state=0)
    >>> display = plot_convergence(ConstrainedLogisticRegression("l1:2").fit(X, y), y="gap")
    >>> display.ax_.get_ylabel()
    'certified gap'
    """
    named = len(estimators) == 1 and isinstance(estimators[0], Mapping)
    return ConvergenceDisplay.from_estimators(estimators[0] if named else estimators, **options)


def traces_of(name: str, estimator: object, trace: Trace | Sequence[Trace]) -> dict[str, Trace]:
    """The runs of one estimator by name: one, or one for each class or target."""
    if isinstance(trace, Trace):
        return {name: trace}
    labels = labels_of_rows(estimator, len(trace))
    return {name if len(trace) == 1 else f"{name}, {label}": one for label, one in zip(labels, trace, strict=True)}


def common_tolerance(estimators: Sequence[BaseEstimator]) -> float | None:
    """The requested gap tol |f(x)|, if it is the same for all estimators."""
    gaps = [_tolerance(estimator) for estimator in estimators]
    return gaps[0] if gaps and 0 < max(gaps) <= 1.05 * min(gaps) else None


def _tolerance(estimator: Any) -> float:
    """tol |f(x)|, or 0 for an estimator without a tolerance or with several values."""
    known = is_fitted(estimator, "objective_") and np.ndim(estimator.objective_) == 0
    return estimator.get_params().get("tol", 0.0) * abs(float(estimator.objective_)) if known else 0.0


def positive_curve(ax: Any, x: np.ndarray, y: np.ndarray, **look: Any) -> Any:
    """A curve through the points that a logarithmic axis can show."""
    seen = np.isfinite(y) & (y > 0)
    return ax.plot(x[seen], y[seen], **look)[0]
