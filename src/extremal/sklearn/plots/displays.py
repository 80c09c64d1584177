"""Pictures of fitted estimators, in scikit-learn's Display style: paths, convergence, coefficients.

A display holds the numbers that it draws. ``from_estimator`` takes them from a fitted estimator and draws; ``plot`` draws again,
into other axes say. Matplotlib is imported when something is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from extremal import checks
from extremal.checks import InputError
from extremal.run.result import Trace
from extremal.sklearn.plots.drawing import (  # fmt: skip
    COLOURS,
    GREY,
    axes_for,
    bounds_of,
    fitted,
    named,
    names_of,
    positive_curve,
    row_of,
    run_names,
    standard_error,
    tolerance,
    traces_of,
)

ACROSS = {"passes": "passes over the data", "seconds": "seconds", "iter": "iterations"}


class CoefficientsDisplay:
    """The coefficients of a fitted model by feature name, with the bounds that they were held to.

        bars of x_j for the largest |x_j|, the largest on top;   | at lower_j and upper_j where lower_j <= x_j <= upper_j

    `from_estimator` draws a fitted model; the constructor takes numbers of your own. Bounds come from a `Box`, a `LinfBall` or
    a simplex, and are drawn where they lie within twice the largest coefficient.

    Parameters
    ----------
    coef : array of shape (d,)
        The coefficients.
    feature_names : sequence of str, optional
        x0, x1, ... if left out.
    lower, upper : float or array of shape (d,), optional
        Bounds; infinite where there are none.
    title : str
        Written above.

    Attributes
    ----------
    ax_, figure_ : Axes and Figure of matplotlib
        Where it was drawn.
    lines_ : list of artists
        The bars, or the dots, from the largest to the smallest.
    shown_ : array of int
        The features that are drawn, in the same order.

    Examples
    --------
    >>> display = CoefficientsDisplay([0.5, -2.0, 0.0], ["age", "debt", "noise"], lower=-2.0, upper=2.0).plot(max_features=2)
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['debt', 'age']
    """

    def __init__(
        self,
        coef: ArrayLike,
        feature_names: Sequence[str] | None = None,
        *,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        title: str = "",
    ):
        self.coef = np.asarray(coef, dtype=float).reshape(-1)
        self.feature_names = named(feature_names, self.coef.size)
        self.lower = np.broadcast_to(-np.inf if lower is None else np.asarray(lower, float), self.coef.shape)
        self.upper = np.broadcast_to(np.inf if upper is None else np.asarray(upper, float), self.coef.shape)
        self.title = title

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        max_features: int = 20,
        kind: str = "bar",
        target: Any = None,
        feature_names: Any = None,
        ax: Any = None,
    ) -> CoefficientsDisplay:
        """Draw the coefficients of a fitted linear model; of the class ``target``, if there are several."""
        call = "CoefficientsDisplay.from_estimator"
        coef = np.atleast_2d(fitted(call, estimator, "coef_"))
        row, title = row_of(call, estimator, len(coef), target)
        lower, upper = bounds_of(getattr(estimator, "constraint_", None), coef.shape, row)
        made = cls(coef[row], names_of(estimator, feature_names), lower=lower, upper=upper, title=title)
        return made.plot(ax, max_features=max_features, kind=kind)

    def plot(self, ax: Any = None, *, max_features: int = 20, kind: str = "bar", **style: Any) -> CoefficientsDisplay:
        """Draw; ``kind`` is "bar" or "dot", further keywords go to matplotlib's ``barh`` or ``plot``."""
        call = "CoefficientsDisplay.plot"
        checks.whole(call, "max_features", max_features, 1)
        checks.one_of(f"`{call}(kind=...)`", kind, ("bar", "dot"))
        (self.ax_,) = axes_for(call, ax)
        self.figure_ = self.ax_.figure
        self.shown_ = np.argsort(-np.abs(self.coef), kind="stable")[:max_features]
        x, y = self.coef[self.shown_], np.arange(self.shown_.size)
        colours = [COLOURS[0] if value >= 0 else COLOURS[1] for value in x]
        if kind == "bar":
            self.lines_ = list(self.ax_.barh(y, x, **{"color": colours, "height": 0.7} | style))
        else:
            self.lines_ = [
                self.ax_.plot(value, at, **{"marker": "o", "linestyle": "none", "color": colour} | style)[0]
                for value, at, colour in zip(x, y, colours, strict=True)
            ]
            self.ax_.hlines(y, 0, x, colors=colours, linewidth=1)
        self._draw_bounds(y)
        self._label(y)
        return self

    def _draw_bounds(self, y: np.ndarray) -> None:
        """A tick across each row at its bounds, where they are near."""
        reach = 2 * (np.abs(self.coef).max(initial=0.0) or 1.0)
        near = [(bound[self.shown_], np.abs(bound[self.shown_]) <= reach) for bound in (self.lower, self.upper)]
        at, rows = np.concatenate([b[ok] for b, ok in near]), np.concatenate([y[ok] for _, ok in near])
        if at.size:
            self.ax_.vlines(at, rows - 0.45, rows + 0.45, colors="#000000", linewidth=1.5, label="bounds")
            self.ax_.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False)
        self.ax_.axvline(0, color=GREY, linewidth=0.8, zorder=0)

    def _label(self, y: np.ndarray) -> None:
        some = self.shown_.size < self.coef.size
        text = f"the {self.shown_.size} largest of {self.coef.size} coefficients" if some else "coefficient"
        self.ax_.set(yticks=y, ylim=(y.size - 0.4, -0.6), xlabel=text, title=self.title)
        self.ax_.set_yticklabels([str(self.feature_names[j]) for j in self.shown_])


class ConvergenceDisplay:
    """How runs went: the certified gap, and what is left to the best value, against passes over the data or seconds.

        gap(x_k) >= f(x_k) - f*,   f(x_k) - best,   best = the smallest value of all the runs that are drawn

    On a logarithmic axis, gaps as full lines and values, if they are asked for, as broken ones. Values of several runs are
    comparable if the runs minimise the same function; the gap always is. A pass is n component gradients.

    Parameters
    ----------
    traces : mapping of str to Trace
        The runs by name.
    tol : float, optional
        The gap that was asked for, drawn as a line.

    Attributes
    ----------
    ax_, figure_ : Axes and Figure of matplotlib
        Where it was drawn.
    lines_ : list of Line2D
        The curves, run by run: the gap, then the value.

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
    def from_estimator(cls, estimator: Any, *, name: str | None = None, **options: Any) -> ConvergenceDisplay:
        """Draw the run of one fitted estimator; options as for `plot`."""
        return cls.from_estimators([estimator], names=None if name is None else [name], **options)

    @classmethod
    def from_estimators(cls, estimators: Any, *, names: Any = None, **options: Any) -> ConvergenceDisplay:
        """Draw the runs of several fitted estimators, given as a sequence, or by name as a mapping; options as for `plot`."""
        if isinstance(estimators, Mapping):
            estimators, names = list(estimators.values()), list(estimators)
        estimators = list(estimators)
        names = run_names(estimators) if names is None else [str(name) for name in names]
        if len(names) != len(estimators) or len(set(names)) < len(names):
            raise InputError(f"`ConvergenceDisplay(names=...)` must have a different name for each estimator, got {names}")
        traces = {}
        for name, estimator in zip(names, estimators, strict=True):
            traces |= traces_of(name, estimator, fitted("ConvergenceDisplay.from_estimators", estimator, "trace_"))
        return cls(traces, tol=tolerance(estimators)).plot(**options)

    def plot(self, ax: Any = None, *, x: str = "passes", y: str = "gap", **style: Any) -> ConvergenceDisplay:
        """Draw ``y``, "gap", "value" or "both", against ``x``, "passes", "seconds" or "iter"; keywords go to matplotlib."""
        call = "ConvergenceDisplay.plot"
        checks.one_of(f"`{call}(x=...)`", x, ACROSS)
        checks.one_of(f"`{call}(y=...)`", y, ("gap", "value", "both"))
        (self.ax_,) = axes_for(call, ax)
        self.figure_, self.lines_ = self.ax_.figure, []
        best = min((np.nanmin(t.value, initial=np.inf) for t in self.traces.values()), default=np.inf)
        for i, (name, trace) in enumerate(self.traces.items()):
            look = {"color": COLOURS[i % len(COLOURS)], "marker": ".", "linewidth": 1.6} | style
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
        self.ax_.legend(frameon=False)
        return self


class PathDisplay:
    """The coefficients of a path against the radius, with the cross-validated score below if there is one.

        x_r = argmin of f(x) subject to |x|_1 <= r,   one curve for each feature that is ever used

    The radius that was chosen is marked by a vertical line; the band around the score is one standard error of its mean.

    Parameters
    ----------
    radii : array of shape (n_radii,)
        Increasing.
    coefs : array of shape (n_radii, d)
        The solutions.
    feature_names : sequence of str, optional
        x0, x1, ... if left out.
    radius : float, optional
        The one that was chosen.
    scores : array of shape (n_folds, n_radii), optional
        Scores of the folds.
    score_name : str
        What they are.
    title : str
        Written above.

    Attributes
    ----------
    ax_, figure_ : Axes and Figure of matplotlib
        Where the coefficients were drawn.
    score_ax_ : Axes or None
        Where the score was drawn.
    lines_ : list of Line2D
        A curve for each of the features in ``shown_``.
    shown_ : array of int
        The features that are not 0 everywhere, the largest first.

    Examples
    --------
    >>> display = PathDisplay([1.0, 2.0], [[1.0, 0.0, 0.0], [1.5, -0.5, 0.0]], ["age", "debt", "noise"], radius=2.0).plot()
    >>> [line.get_label() for line in display.lines_]
    ['age', 'debt']
    """

    def __init__(
        self,
        radii: ArrayLike,
        coefs: ArrayLike,
        feature_names: Sequence[str] | None = None,
        *,
        radius: float | None = None,
        scores: ArrayLike | None = None,
        score_name: str = "score",
        title: str = "",
    ):
        self.radii, self.coefs = np.asarray(radii, dtype=float), np.asarray(coefs, dtype=float)
        self.feature_names, self.radius = named(feature_names, self.coefs.shape[1]), radius
        self.scores = None if scores is None else np.asarray(scores, dtype=float)
        self.score_name, self.title = score_name, title

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, target: Any = None, feature_names: Any = None, max_labels: int = 10, ax: Any = None
    ) -> PathDisplay:
        """Draw the path of a fitted `SparseLogisticPath` or `SparseLogisticPathCV`, of class ``target`` if there are several."""
        call = "PathDisplay.from_estimator"
        coefs = np.asarray(fitted(call, estimator, "coefs_"))
        coefs = coefs[:, None] if coefs.ndim == 2 else coefs
        row, title = row_of(call, estimator, coefs.shape[1], target)
        made = cls(
            estimator.radii_,
            coefs[:, row],
            names_of(estimator, feature_names),
            radius=estimator.radius_ if hasattr(estimator, "scores_") else None,
            scores=getattr(estimator, "scores_", None),
            score_name=str(getattr(estimator, "scoring", None) or "minus log loss"),
            title=title,
        )
        return made.plot(ax, max_labels=max_labels)

    def plot(self, ax: Any = None, *, max_labels: int = 10, **style: Any) -> PathDisplay:
        """Draw into ``ax``: one for the coefficients, or two, the second for the score; ``max_labels`` features are named."""
        checks.whole("PathDisplay.plot", "max_labels", max_labels, 0)
        axes = axes_for("PathDisplay.plot", ax, heights=(1,) if self.scores is None else (2, 1))
        self.ax_, self.figure_ = axes[0], axes[0].figure
        self.score_ax_ = axes[1] if len(axes) > 1 and self.scores is not None else None
        size = np.abs(self.coefs).max(axis=0)
        self.shown_ = np.argsort(-size, kind="stable")[: np.count_nonzero(size)]
        self.lines_ = [self._curve(place, j, max_labels, style) for place, j in enumerate(self.shown_)]
        self.ax_.axhline(0, color=GREY, linewidth=0.8, zorder=0)
        self.ax_.set(ylabel="coefficient", title=self.title)
        if self.score_ax_ is not None:
            self._draw_scores(self.score_ax_, np.asarray(self.scores))
        for axes_ in filter(None, (self.ax_, self.score_ax_)):
            axes_.set_xscale("log")
            if self.radius is not None:
                axes_.axvline(self.radius, color="#000000", linestyle="--", linewidth=1, label=f"radius {self.radius:.3g}")
        (self.score_ax_ or self.ax_).set_xlabel("radius of the l1 ball")
        self.ax_.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize="small")
        return self

    def _curve(self, place: int, j: int, max_labels: int, style: dict[str, Any]) -> Any:
        """One feature: the first have a colour and a name, the rest are thin and grey."""
        named = place < max_labels
        dash = ("-", "--", ":")[place // len(COLOURS) % 3]
        look = {"color": COLOURS[place % len(COLOURS)], "linestyle": dash, "linewidth": 1.6} if named else {}
        rest = {} if named else {"color": GREY, "linewidth": 0.5, "alpha": 0.6, "zorder": 1}
        label = str(self.feature_names[j]) if named else "_" + str(self.feature_names[j])
        x = self.coefs[:, j]
        near = x != 0
        near[1:], near[:-1] = near[1:] | (x[:-1] != 0), near[:-1] | (x[1:] != 0)  # flat stretches at 0 would cover one another
        return self.ax_.plot(self.radii, np.where(near, x, np.nan), **{"label": label} | look | rest | style)[0]

    def _draw_scores(self, axes: Any, scores: np.ndarray) -> None:
        mean, error = scores.mean(axis=0), standard_error(scores)
        axes.plot(self.radii, mean, color=COLOURS[0], marker=".", linewidth=1.6)
        axes.fill_between(self.radii, mean - error, mean + error, color=COLOURS[0], alpha=0.2, linewidth=0)
        axes.set_ylabel(self.score_name)
