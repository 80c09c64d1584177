"""What the displays share: axes, names, bounds, and clear words for what cannot be drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from extremal.checks import InputError
from extremal.run.result import Trace
from extremal.sets.norms.balls import LinfBall
from extremal.sets.simplices.plain import Box, Simplex, UnitSimplex
from extremal.sklearn.options import is_fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Canvas: TypeAlias = "Axes | Sequence[Axes] | None"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")  # also for colour-blind readers
GREY = "#767676"


def axes_for(call: str, ax: Any, heights: Sequence[float] = (1,)) -> list[Any]:
    """The axes that were given, or those of a new figure, one above the other."""
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
    """An attribute of a fitted estimator, or a refusal."""
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise InputError(f"`{call}` takes a fitted estimator, got {estimator!r}")
    check_is_fitted(estimator)
    if not is_fitted(estimator, attribute):
        raise InputError(f"`{call}` takes an estimator with `{attribute}`, which {type(estimator).__name__} has not")
    return getattr(estimator, attribute)


def labels_of_rows(estimator: object, rows: int) -> list[Any]:
    """The classes that rows of coefficients or runs belong to; their numbers, if there are no classes."""
    return list(getattr(estimator, "classes_", range(rows)))[-rows:]


def name_features(names: Iterable[object] | None, d: int) -> list[str]:
    """The names of d features; x0, x1, ... if none are given."""
    names = [f"x{j}" for j in range(d)] if names is None else [str(name) for name in names]
    if len(names) != d:
        raise InputError(f"`feature_names` must hold a name for each of the {d} features, got {len(names)}")
    return names


def row_of(call: str, estimator: object, rows: int, target: Any) -> tuple[int, str]:
    """Which row of coefficients belongs to the class ``target`` (the first if left out), and a title that says so."""
    classes = labels_of_rows(estimator, rows)
    if target is not None and target not in classes:
        raise InputError(f"`{call}(target=...)` must be one of {', '.join(map(str, classes))}, got {target!r}")
    row = 0 if target is None else classes.index(target)
    return row, f"class {classes[row]}" if rows > 1 else ""


def bounds_of(C: object, shape: tuple[int, ...], row: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The bounds that a set puts on each entry of a row of coefficients, None for none; the set may hold (d,) or (d, k)."""
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


def run_names(estimators: Sequence[object]) -> list[str]:
    """The estimators' kinds, numbered where they repeat."""
    kinds = [type(estimator).__name__ for estimator in estimators]
    return [kind if kinds.count(kind) == 1 else f"{kind} {kinds[: i + 1].count(kind)}" for i, kind in enumerate(kinds)]


def traces_of(name: str, estimator: object, trace: Trace | Sequence[Trace]) -> dict[str, Trace]:
    """The runs of one estimator by name: one, or one for each class or target."""
    if isinstance(trace, Trace):
        return {name: trace}
    labels = labels_of_rows(estimator, len(trace))
    return {name if len(trace) == 1 else f"{name}, {label}": one for label, one in zip(labels, trace, strict=True)}


def common_tolerance(estimators: Sequence[BaseEstimator]) -> float | None:
    """The gap tol |f(x)| that was asked for, if it is one and the same for all."""
    gaps = [_tolerance(estimator) for estimator in estimators]
    return gaps[0] if gaps and 0 < max(gaps) <= 1.05 * min(gaps) else None


def _tolerance(estimator: Any) -> float:
    """tol |f(x)|, or 0 for an estimator that does not say it, or has several values."""
    known = is_fitted(estimator, "objective_") and np.ndim(estimator.objective_) == 0
    return estimator.get_params().get("tol", 0.0) * abs(float(estimator.objective_)) if known else 0.0


def positive_curve(ax: Any, x: np.ndarray, y: np.ndarray, **look: Any) -> Any:
    """A curve through the points that a logarithmic axis can show."""
    seen = np.isfinite(y) & (y > 0)
    return ax.plot(x[seen], y[seen], **look)[0]


def standard_error(scores: np.ndarray) -> np.ndarray:
    """The standard error of the mean over the folds: std / sqrt(folds), 0 for one fold."""
    folds = len(scores)
    return scores.std(axis=0, ddof=1) / np.sqrt(folds) if folds > 1 else np.zeros(scores.shape[1:])
