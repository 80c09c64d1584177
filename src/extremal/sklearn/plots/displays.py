"""Plots of coefficients in scikit-learn's Display style: of one fit, and along a path.

A display holds the numbers that it draws. ``from_estimator`` reads them from a fitted estimator and draws them. ``plot`` draws
them again, for example into other axes. Matplotlib is imported at the first plot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from extremal import checks
from extremal.sets.norms.balls import LinfBall
from extremal.sets.simplices.plain import Box, Simplex, UnitSimplex
from extremal.sklearn.options import fitted_names, is_fitted
from extremal.sklearn.plots.drawing import COLOURS, OUTSIDE, Canvas, axes_for, fitted_model, name_features, row_of, standard_error
from extremal.sklearn.shared import ConstrainedModel
from extremal.support.palette import GREY


class CoefficientsDisplay:
    """Plot the coefficients of a fitted model by feature name, with their bounds.

        bars of x_j for the largest |x_j|, the largest on top;   | at lower_j and upper_j where lower_j <= x_j <= upper_j

    `from_estimator` draws a fitted model; the constructor takes your own numbers. Features without names are x0, x1, ...
    Bounds come from a `Box`, a `LinfBall`, a simplex, or the bounds that were given for a cone. They are numbers or arrays of
    shape (d,), infinite if there are none, and are drawn only within twice the largest coefficient.

    Attributes
    ----------
    ax_, figure_ : Axes and Figure of matplotlib
        The axes and the figure.
    lines_, shown_ : list of artists and array of int
        The bars or dots, from the largest to the smallest, and the indices of their features.

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
        self.feature_names = name_features(feature_names, self.coef.size)
        self.lower = np.broadcast_to(-np.inf if lower is None else np.asarray(lower, float), self.coef.shape)
        self.upper = np.broadcast_to(np.inf if upper is None else np.asarray(upper, float), self.coef.shape)
        self.title = title

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, target: object = None, feature_names: Sequence[str] | None = None, **options: Any
    ) -> CoefficientsDisplay:
        """Plot the coefficients of a fitted linear model, of class ``target`` if there are several; options as for `plot`."""
        call = "CoefficientsDisplay.from_estimator"
        coef = np.atleast_2d(fitted_model(call, estimator, "coef_"))
        row, title = row_of(call, estimator, len(coef), target)
        lower, upper = own_bounds(estimator, coef.shape, row)
        names = fitted_names(estimator) if feature_names is None else feature_names
        return cls(coef[row], names, lower=lower, upper=upper, title=title).plot(**options)

    def plot(self, ax: Canvas = None, *, max_features: int = 20, kind: str = "bar", **style: object) -> CoefficientsDisplay:
        """Draw the plot. ``kind`` is "bar" or "dot"; further keywords go to matplotlib's ``barh`` or ``plot``."""
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
        """Draw a tick at the bounds of each row, if they are near."""
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


def plot_coefficients(estimator: BaseEstimator, **options: Any) -> CoefficientsDisplay:
    """Plot the coefficients of a fitted estimator: `CoefficientsDisplay.from_estimator`.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(random_state=0)
    >>> plot_coefficients(LogisticRegression().fit(X, y), max_features=3).shown_.size
    3
    """
    return CoefficientsDisplay.from_estimator(estimator, **options)


def own_bounds(estimator: Any, shape: tuple[int, ...], row: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The bounds on a row of coefficients that the user gave: not the wide bounds within which the solver looks over cones."""
    if isinstance(estimator, ConstrainedModel):
        plan = estimator._plan(estimator._shape(shape[1]))
        if not plan.bounded:
            lower, upper = (end if end.ndim == 1 else end[:, row] for end in plan.own_limits)
            return lower, upper
    return bounds_of(estimator.constraint_ if is_fitted(estimator, "constraint_") else None, shape, row)


def bounds_of(C: object, shape: tuple[int, ...], row: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The bounds of a set on each entry of a row of coefficients, or None. The set may have shape (d,) or (d, k)."""
    if isinstance(C, Box):
        lower, upper = C.lower, C.upper
    elif isinstance(C, LinfBall):
        lower, upper = -C.radius, C.radius
    elif isinstance(C, (Simplex, UnitSimplex)):
        lower, upper = 0.0, C.total
    else:
        return None, None
    k, d = shape
    matrix = C.shape is not None and len(C.shape) == 2 and C.shape == (d, k)
    pair = [np.broadcast_to(b, (d, k))[:, row] if matrix else np.broadcast_to(np.ravel(b), (d,)) for b in (lower, upper)]
    return pair[0], pair[1]


class PathDisplay:
    """Plot the coefficients of a path against the radius, with the cross-validated score below if there is one.

        x_r = argmin of f(x) subject to |x|_1 <= r,   one curve for each feature that is ever used

    A vertical line marks the chosen radius. The band around the score is one standard error of its mean. `from_estimator` draws a
    fitted model. The constructor takes increasing radii, coefficients of shape (n_radii, d), and scores of shape
    (n_folds, n_radii). Features without names are x0, x1, ...

    Attributes
    ----------
    ax_, figure_, score_ax_ : Axes, Figure and Axes of matplotlib
        The axes of the coefficients, the figure, and the axes of the score; None without scores.
    lines_, shown_ : list of Line2D and array of int
        The curves, and the indices of their features: those that are not 0 everywhere, the largest first.

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
        self.feature_names, self.radius = name_features(feature_names, self.coefs.shape[1]), radius
        self.scores = None if scores is None else np.asarray(scores, dtype=float)
        self.score_name, self.title = score_name, title

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, target: object = None, feature_names: Sequence[str] | None = None, **options: Any
    ) -> PathDisplay:
        """Plot the path of a fitted `SparseLogisticPath` or `SparseLogisticPathCV`, of class ``target`` if there are several.

        The options are those of `plot`.
        """
        call = "PathDisplay.from_estimator"
        coefs = np.asarray(fitted_model(call, estimator, "coefs_"))
        coefs = coefs[:, None] if coefs.ndim == 2 else coefs
        row, title = row_of(call, estimator, coefs.shape[1], target)
        choice: dict[str, Any] = {}
        if is_fitted(estimator, "scores_"):
            scoring = estimator.scoring or "minus log loss"
            choice = {"radius": estimator.radius_, "scores": estimator.scores_, "score_name": str(scoring)}
        names = fitted_names(estimator) if feature_names is None else feature_names
        return cls(estimator.radii_, coefs[:, row], names, title=title, **choice).plot(**options)

    def plot(self, ax: Canvas = None, *, max_labels: int = 10, **style: object) -> PathDisplay:
        """Draw into one or two ``ax``: coefficients, then the score. The ``max_labels`` largest features are labelled."""
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
        self.ax_.legend(**OUTSIDE)
        return self

    def _curve(self, place: int, j: int, max_labels: int, style: dict[str, object]) -> Any:
        """Draw one feature: the first have a colour and a label, the rest are thin and grey."""
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


def plot_path(estimator: BaseEstimator, **options: Any) -> PathDisplay:
    """Plot the path of a fitted estimator: `PathDisplay.from_estimator`.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from extremal.sklearn import SparseLogisticPath
    >>> X, y = make_classification(random_state=0)
    >>> plot_path(SparseLogisticPath(n_radii=5).fit(X, y)).radii.shape
    (5,)
    """
    return PathDisplay.from_estimator(estimator, **options)
