"""The picture of a path."""

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
    fitted_model,
    name_features,
    row_of,
    standard_error,
)


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
        self.feature_names, self.radius = name_features(feature_names, self.coefs.shape[1]), radius
        self.scores = None if scores is None else np.asarray(scores, dtype=float)
        self.score_name, self.title = score_name, title

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        target: object = None,
        feature_names: Sequence[str] | None = None,
        max_labels: int = 10,
        ax: Canvas = None,
    ) -> PathDisplay:
        """Draw the path of a fitted `SparseLogisticPath` or `SparseLogisticPathCV`, of class ``target`` if there are several."""
        call = "PathDisplay.from_estimator"
        coefs = np.asarray(fitted_model(call, estimator, "coefs_"))
        coefs = coefs[:, None] if coefs.ndim == 2 else coefs
        row, title = row_of(call, estimator, coefs.shape[1], target)
        choice: dict[str, Any] = {}
        if is_fitted(estimator, "scores_"):
            scoring = estimator.scoring or "minus log loss"
            choice = {"radius": estimator.radius_, "scores": estimator.scores_, "score_name": str(scoring)}
        names = fitted_names(estimator) if feature_names is None else feature_names
        made = cls(estimator.radii_, coefs[:, row], names, title=title, **choice)
        return made.plot(ax, max_labels=max_labels)

    def plot(self, ax: Canvas = None, *, max_labels: int = 10, **style: object) -> PathDisplay:
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

    def _curve(self, place: int, j: int, max_labels: int, style: dict[str, object]) -> Any:
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


def plot_path(estimator: BaseEstimator, **options: Any) -> PathDisplay:
    """Draw the path of a fitted estimator: `PathDisplay.from_estimator`.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from extremal.sklearn import SparseLogisticPath
    >>> X, y = make_classification(random_state=0)
    >>> plot_path(SparseLogisticPath(n_radii=5).fit(X, y)).radii.shape
    (5,)
    """
    return PathDisplay.from_estimator(estimator, **options)
