"""The log loss of a mixture of probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LEAST_PROBABILITY = 1e-12  # probability below which -log goes on as a parabola


@dataclass(frozen=True)
class MixtureLogLoss:
    """-log of the probability that a mixture gives to what has happened; targets are not looked at.

        phi(z) = -log z for z >= floor,   below that the parabola with the same value, slope and curvature at the floor

    z = <a_i, w> with a_im the probability that model m gave to the class of row i. Convex, twice differentiable, and finite
    where all models were sure of another class.

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
        """-log z, or its parabola."""
        u = np.minimum(z / self.floor - 1.0, 0.0)
        return -np.log(np.maximum(z, self.floor)) - u + 0.5 * u * u

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """-1 / z, or the parabola's slope."""
        u = np.minimum(z / self.floor - 1.0, 0.0)
        return -1.0 / np.maximum(z, self.floor) + u / self.floor

    def second(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """1 / z^2, 1 / floor^2 at most."""
        return 1.0 / np.square(np.maximum(z, self.floor))
