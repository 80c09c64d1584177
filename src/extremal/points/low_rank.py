"""Vertices of matrices: of rank one, or of a few more."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from extremal.points.vertex import dot64


@dataclass(frozen=True)
class _InFactors:
    """What they share: v = left right', of shape (m, n)."""

    left: np.ndarray  # m x r, or of length m; carries the scale
    right: np.ndarray  # n x r, or of length n
    low: float | None = None  # <g, s> >= low for all s of the set, if the oracle that answered is not exact

    @property
    def shape(self) -> tuple[int, ...]:
        """(m, n)."""
        return len(self.left), len(self.right)

    def dot(self, g: np.ndarray) -> float:
        """<g, v> = <left, g right>: r products with g."""
        return dot64(self.left, g @ self.right)


class RankOne(_InFactors):
    """A matrix of rank one, v = left right': m + n numbers in the place of m n.

    Examples
    --------
    >>> import numpy as np
    >>> v = RankOne(np.array([2.0, 0.0]), np.array([0.6, 0.8]))
    >>> v.to_array(), round(v.norm2, 12)
    (array([[1.2, 1.6],
           [0. , 0. ]]), 4.0)
    """

    @property
    def norm2(self) -> float:
        """|v|^2 = |left|^2 |right|^2."""
        return dot64(self.left, self.left) * dot64(self.right, self.right)

    @property
    def key(self) -> Hashable:
        """The bytes of the two factors."""
        return (self.left + 0.0).tobytes(), (self.right + 0.0).tobytes()

    def add_to(self, x: np.ndarray, w: float) -> None:
        """x += w v in place."""
        x += np.multiply.outer(w * self.left, self.right)

    def to_array(self) -> np.ndarray:
        """A dense copy."""
        return np.multiply.outer(self.left, self.right)


class LowRank(_InFactors):
    """A matrix of rank r at most, v = left right', from m x r and n x r factors.

    Examples
    --------
    >>> import numpy as np
    >>> q = np.eye(3)[:, :2]
    >>> LowRank(q, q).norm2
    2.0
    """

    @property
    def norm2(self) -> float:
        """|v|^2 = <left'left, right'right>."""
        return dot64(self.left.T @ self.left, self.right.T @ self.right)

    @property
    def key(self) -> Hashable:
        """The bytes of the matrix: factors are not unique."""
        return (self.to_array() + 0.0).tobytes()

    def add_to(self, x: np.ndarray, w: float) -> None:
        """x += w v in place."""
        x += (w * self.left) @ self.right.T

    def to_array(self) -> np.ndarray:
        """A dense copy."""
        return self.left @ self.right.T
