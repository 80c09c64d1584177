"""Matrices of low rank: vertices of rank one or of a few more, and buffers in which two factors grow."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from extremal.kernels.arguments import kernels
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


class FactorBuffer:
    """Two factors with the same number of columns. A version of a matrix is left[:, :rank] right[:, :rank]', times a number.

    New columns go behind those that are there, into room that doubles when it is full, so that a step costs what its own
    columns do, and earlier versions stay true. What versions are asked again and again is kept here, and brought up to date.
    """

    def __init__(self, left: np.ndarray, right: np.ndarray, limit: int | None = None):
        self.left, self.right = left, right  # m and n x capacity; only ever exchanged for larger ones with the same columns
        self.used = left.shape[1]
        fit = 2 * self.used + min(64, len(left), len(right))
        self.limit = fit if limit is None else limit  # with more columns than that, a look at the rank is due
        self.images: WeakKeyDictionary[object, tuple[int, np.ndarray]] = WeakKeyDictionary()  # so many columns, their entries
        self.norms = 0, 0.0  # so many columns, their |left right'|^2
        self.lock = threading.Lock()

    def append(self, rank: int, left: np.ndarray, right: np.ndarray) -> tuple[FactorBuffer, int]:
        """These columns behind the first ``rank``, here or in a copy if another version has taken the place; and their number."""
        new = rank + left.shape[1]
        with self.lock:
            if self.used == rank:
                self._grow(new)
                self.left[:, rank:new], self.right[:, rank:new] = left, right
                self.used = new
                return self, new
            copy = FactorBuffer(self.left[:, :rank], self.right[:, :rank], self.limit)  # without room: it will grow first
        return copy.append(rank, left, right)

    def _grow(self, wanted: int) -> None:
        if wanted > self.left.shape[1]:
            left, right = (np.empty((len(a), max(8, wanted, 2 * self.used)), a.dtype) for a in (self.left, self.right))
            left[:, : self.used], right[:, : self.used] = self.left[:, : self.used], self.right[:, : self.used]
            self.left, self.right = left, right

    def gather(self, rank: int, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """Entries of left right' at some positions."""
        out = np.zeros(rows.shape, self.left.dtype)
        self._add(0, rank, rows.reshape(-1), cols.reshape(-1), out.reshape(-1))
        return out

    def image(self, rank: int, key: Hashable, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """Entries at positions that every version is asked for: the sum over the columns so far is kept."""
        with self.lock:
            count, total = self.images.get(key, (0, None))
            earlier = total is not None and count > rank  # a version that is no longer the last: the last one's sum is kept
            if total is None or earlier:
                count, total = 0, np.zeros(len(rows), self.left.dtype)
            self._add(count, rank, rows, cols, total)
            if earlier:
                return total
            self.images[key] = rank, total
            return total.copy()

    def _add(self, first: int, last: int, rows: np.ndarray, cols: np.ndarray, out: np.ndarray) -> None:
        """Add entries of these columns; of a single one (a step to a vertex) after a copy, which the nearest cache holds."""
        if last == first + 1:
            kernels("positions").add_at(self.left[:, first].copy(), self.right[:, first].copy(), rows, cols, out)
        elif last > first:
            some = (np.ascontiguousarray(a[:, first:last]) for a in (self.left, self.right))
            kernels("positions").entries(*some, rows, cols, out)

    def norm2(self, rank: int) -> float:
        """|left right'|^2, from that of the columns before."""
        with self.lock:
            count, total = self.norms if self.norms[0] <= rank else (0, 0.0)
            for j in range(count, rank):
                cross = _products(self.left, j) * _products(self.right, j)
                total += 2.0 * float(cross[:j].sum()) + float(cross[j])
            self.norms = rank, total
            return total


def _products(a: np.ndarray, j: int) -> np.ndarray:
    """Products of column j with those up to it."""
    return a[:, : j + 1].T.astype(np.float64, copy=False) @ a[:, j].astype(np.float64, copy=False)
