"""Pictures of fitted estimators, in scikit-learn's Display style: paths, convergence, coefficients.

A display holds the numbers that it draws. ``from_estimator`` takes them from a fitted estimator and draws; ``plot`` draws again,
into other axes say. Matplotlib is imported when something is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from extremal import checks
from extremal.sklearn.options import fitted_names, is_fitted
from extremal.sklearn.plots.drawing import (  # fmt: skip
    COLOURS,
    GREY,
    Canvas,
    axes_for,
    bounds_of,
    fitted_model,
    name_features,
    row_of,
)


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
        self.feature_names = name_features(feature_names, self.coef.size)
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
        target: object = None,
        feature_names: Sequence[str] | None = None,
        ax: Canvas = None,
    ) -> CoefficientsDisplay:
        """Draw the coefficients of a fitted linear model; of the class ``target``, if there are several."""
        call = "CoefficientsDisplay.from_estimator"
        coef = np.atleast_2d(fitted_model(call, estimator, "coef_"))
        row, title = row_of(call, estimator, len(coef), target)
        lower, upper = bounds_of(estimator.constraint_ if is_fitted(estimator, "constraint_") else None, coef.shape, row)
        names = fitted_names(estimator) if feature_names is None else feature_names
        made = cls(coef[row], names, lower=lower, upper=upper, title=title)
        return made.plot(ax, max_features=max_features, kind=kind)

    def plot(self, ax: Canvas = None, *, max_features: int = 20, kind: str = "bar", **style: object) -> CoefficientsDisplay:
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


def plot_coefficients(estimator: BaseEstimator, **options: Any) -> CoefficientsDisplay:
    """Draw the coefficients of a fitted estimator: `CoefficientsDisplay.from_estimator`.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(random_state=0)
    >>> plot_coefficients(LogisticRegression().fit(X, y), max_features=3).shown_.size
    3
    """
    return CoefficientsDisplay.from_estimator(estimator, **options)
