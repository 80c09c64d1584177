"""Mixtures of models: predictions of the members, and the log loss of mixed probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from extremal.support.kinds import MatrixLike

LEAST_PROBABILITY = 1e-12  # below this probability, -log continues as a parabola


def with_weights_of(model: object, weights: np.ndarray | None) -> dict[str, np.ndarray]:
    """Sample weights, for models that take them."""
    return {"sample_weight": weights} if weights is not None and has_fit_parameter(model, "sample_weight") else {}


def aligned(model: Any, X: MatrixLike, classes: np.ndarray) -> np.ndarray:
    """Probabilities with one column per class; 0 for classes that are unknown to the model."""
    p = np.asarray(model.predict_proba(X), np.float64)
    if np.array_equal(model.classes_, classes):
        return p
    out = np.zeros((len(p), len(classes)))
    out[:, np.searchsorted(classes, model.classes_)] = p
    return out


@dataclass(frozen=True)
class MixtureLogLoss:
    """-log of the probability that a mixture gives to the observed class; targets are ignored.

        phi(z) = -log z for z >= floor,   below that the parabola with the same value, slope and curvature at the floor

    z = <a_i, w>, where a_im is the probability that model m gave to the class of row i. phi is convex, twice differentiable,
    and finite even if all models were sure of another class.

    Examples
    --------
    >>> import numpy as np
    >>> MixtureLogLoss().value(np.array([1.0, 0.5]), np.zeros(2)).round(6) + 0.0
    array([0.      , 0.693147])
    """

    floor: float = LEAST_PROBABILITY
    convex = True
    labels = None

    @property
    def curvature(self) -> float:
        """1 / floor^2."""
        return 1.0 / self.floor**2

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """-log z, or the parabola below the floor."""
        u = np.minimum(z / self.floor - 1.0, 0.0)
        return -np.log(np.maximum(z, self.floor)) - u + 0.5 * u * u

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """-1 / z, or the slope of the parabola."""
        u = np.minimum(z / self.floor - 1.0, 0.0)
        return -1.0 / np.maximum(z, self.floor) + u / self.floor

    def second(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """1 / z^2, at most 1 / floor^2."""
        return 1.0 / np.square(np.maximum(z, self.floor))
