"""Shared parts of the displays: axes, names, and clear messages about inputs that cannot be drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from extremal.checks import InputError
from extremal.sklearn.options import is_fitted
from extremal.support.palette import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Canvas: TypeAlias = "Axes | Sequence[Axes] | None"
COLOURS = tuple(light for light, _ in PALETTE)
OUTSIDE: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1, 1), "frameon": False, "fontsize": "small"}  # of a legend


def axes_for(call: str, ax: Any, heights: Sequence[float] = (1,)) -> list[Any]:
    """The given axes, or those of a new figure, one above the other."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(f"`{call}` draws with matplotlib, which is not installed: pip install matplotlib") from error
    if ax is not None:
        return list(np.ravel(ax))
    size = (6.4, 4.8) if len(heights) == 1 else (7.0, 6.4)
    shape: Any = {"figsize": size, "height_ratios": heights, "sharex": True, "layout": "constrained"}
    return list(np.ravel(pyplot.subplots(len(heights), 1, **shape)[1]))


def fitted_model(call: str, estimator: object, attribute: str) -> Any:
    """An attribute of a fitted estimator; the call is refused if there is none."""
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise InputError(f"`{call}` takes a fitted estimator, got {estimator!r}")
    check_is_fitted(estimator)
    if not is_fitted(estimator, attribute):
        raise InputError(f"`{call}` takes an estimator with `{attribute}`, which {type(estimator).__name__} has not")
    return getattr(estimator, attribute)


def labels_of_rows(estimator: object, rows: int) -> list[Any]:
    """The classes of rows of coefficients or of runs; their numbers, if there are no classes."""
    return list(getattr(estimator, "classes_", range(rows)))[-rows:]


def name_features(names: Iterable[object] | None, d: int) -> list[str]:
    """The names of d features; x0, x1, ... if none are given."""
    names = [f"x{j}" for j in range(d)] if names is None else [str(name) for name in names]
    if len(names) != d:
        raise InputError(f"`feature_names` must hold a name for each of the {d} features, got {len(names)}")
    return names


def row_of(call: str, estimator: object, rows: int, target: Any) -> tuple[int, str]:
    """The row of coefficients of the class ``target`` (default: the first), and a title that names the class."""
    classes = labels_of_rows(estimator, rows)
    if target is not None and target not in classes:
        raise InputError(f"`{call}(target=...)` must be one of {', '.join(map(str, classes))}, got {target!r}")
    row = 0 if target is None else classes.index(target)
    return row, f"class {classes[row]}" if rows > 1 else ""


def standard_error(scores: np.ndarray) -> np.ndarray:
    """The standard error of the mean over the folds: std / sqrt(folds), 0 for one fold."""
    folds = len(scores)
    return scores.std(axis=0, ddof=1) / np.sqrt(folds) if folds > 1 else np.zeros(scores.shape[1:])
