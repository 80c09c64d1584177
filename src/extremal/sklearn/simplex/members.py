"""What is asked of the members of an ensemble."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from extremal.support.kinds import MatrixLike


def with_weights_of(model: object, weights: np.ndarray | None) -> dict[str, np.ndarray]:
    """Sample weights, for models that take them."""
    return {"sample_weight": weights} if weights is not None and has_fit_parameter(model, "sample_weight") else {}


def fitted_copy(model: object, X: MatrixLike, y: ArrayLike, weights: np.ndarray | None) -> Any:
    """A copy of it, fitted."""
    fresh: Any = clone(model)
    return fresh.fit(X, y, **with_weights_of(model, weights))


def aligned(model: Any, X: MatrixLike, classes: np.ndarray) -> np.ndarray:
    """Probabilities with a column for each class; 0 for classes that the model does not know."""
    p = np.asarray(model.predict_proba(X), np.float64)
    if np.array_equal(model.classes_, classes):
        return p
    out = np.zeros((len(p), len(classes)))
    out[:, np.searchsorted(classes, model.classes_)] = p
    return out
