"""Balls of norms: all x of a norm of at most ``radius``."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from extremal import checks
from extremal.sets.base import ConvexSet, refuse_non_finite
from extremal.vertices import Coordinate, DenseVertex


@dataclass(frozen=True, eq=False, repr=False)
class L1Ball(ConvexSet):
    """The l1 ball: a budget on the sum of magnitudes; its solutions are sparse.

        {x : sum_j |x_j| <= radius},   lmo(g) = -radius sign(g_j) e_j,  j = argmax |g_j|

    One pass over g; the vertex is two numbers. Diameter 2 radius. Ties go to the smallest j, and g = 0 to radius e_0.

    Parameters
    ----------
    radius : float
        Positive.
    shape : int or tuple of int, optional
        Shape of the points; any if left out.

    Examples
    --------
    >>> import numpy as np
    >>> L1Ball(2.0).lmo(np.array([1.0, -3.0])).to_array()
    array([0., 2.])
    """

    radius: float
    shape: tuple[int, ...] | None = None

    def __post_init__(self):
        self._fix(radius=checks.positive("L1Ball", "radius", self.radius))

    def lmo(self, g: np.ndarray) -> Coordinate:
        """-radius sign(g_j) e_j at the largest |g_j|."""
        j = int(np.abs(g).argmax())  # a NaN counts as largest, so looking at g_j is enough
        top = float(g.flat[j])
        refuse_non_finite(self, top)
        return Coordinate(j, -self.radius if top > 0 else self.radius, g.shape)

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """sum |x_j| <= radius (1 + tol)."""
        return float(np.abs(x).sum(dtype=np.float64)) <= self.radius * (1 + tol)

    @property
    def diameter(self) -> float:
        """2 radius."""
        return 2 * self.radius

    def start(self) -> np.ndarray:
        """The centre, 0."""
        return np.zeros(self._known_shape("start()"))


@dataclass(frozen=True, eq=False, repr=False)
class L2Ball(ConvexSet):
    """The Euclidean ball.

        {x : |x|_2 <= radius},   lmo(g) = -radius g / |g|

    One pass over g, a dense vertex. Diameter 2 radius. g = 0 gives radius e_0.

    Parameters
    ----------
    radius : float
        Positive.
    shape : int or tuple of int, optional
        Shape of the points; any if left out.

    Examples
    --------
    >>> import numpy as np
    >>> L2Ball(1.0).lmo(np.array([3.0, -4.0])).to_array()
    array([-0.6,  0.8])
    """

    radius: float
    shape: tuple[int, ...] | None = None

    def __post_init__(self):
        self._fix(radius=checks.positive("L2Ball", "radius", self.radius))

    def lmo(self, g: np.ndarray) -> DenseVertex | Coordinate:
        """-radius g / |g|."""
        top = float(np.abs(g).max())
        refuse_non_finite(self, top)
        if top == 0:
            return Coordinate(0, self.radius, g.shape)
        u = g / top  # scaled first, so that squares neither overflow nor vanish
        return DenseVertex(u * (-self.radius / math.sqrt(float(np.vdot(u, u)))))

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """|x| <= radius (1 + tol)."""
        return float(np.linalg.norm(x.reshape(-1).astype(np.float64))) <= self.radius * (1 + tol)

    @property
    def diameter(self) -> float:
        """2 radius."""
        return 2 * self.radius

    def start(self) -> np.ndarray:
        """The centre, 0."""
        return np.zeros(self._known_shape("start()"))


@dataclass(frozen=True, eq=False, repr=False)
class LinfBall(ConvexSet):
    """The maximum-norm ball: every entry in [-radius, radius].

        {x : max_j |x_j| <= radius},   lmo(g) = -radius sign(g)  (radius where g_j = 0)

    One pass over g, a dense vertex. Diameter 2 radius sqrt(dimension). For other bounds see `Box`.

    Parameters
    ----------
    radius : float
        Positive.
    shape : int or tuple of int, optional
        Shape of the points; any if left out.

    Examples
    --------
    >>> import numpy as np
    >>> LinfBall(2.0).lmo(np.array([3.0, -4.0])).to_array()
    array([-2.,  2.])
    """

    radius: float
    shape: tuple[int, ...] | None = None

    def __post_init__(self):
        self._fix(radius=checks.positive("LinfBall", "radius", self.radius))

    def lmo(self, g: np.ndarray) -> DenseVertex:
        """-radius sign(g)."""
        refuse_non_finite(self, float(np.abs(g).max()))
        kind = np.result_type(g, np.float32)
        return DenseVertex(np.where(g > 0, kind.type(-self.radius), kind.type(self.radius)))

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """max |x_j| <= radius (1 + tol)."""
        return float(np.abs(x).max()) <= self.radius * (1 + tol)

    @property
    def diameter(self) -> float:
        """2 radius sqrt(dimension)."""
        return 2 * self.radius * math.sqrt(math.prod(self._known_shape("diameter")))

    def start(self) -> np.ndarray:
        """The centre, 0."""
        return np.zeros(self._known_shape("start()"))
