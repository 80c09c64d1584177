"""Matrices of low rank: vertices of rank one or slightly more, and buffers in which two factors grow."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from extremal.kernels.arguments import kernels
from extremal.points.vertex import dot64


@dataclass(frozen=True)
class _InFactors:
    """The common base: v = left right', of shape (m, n)."""

    left: np.ndarray  # m x r, or a vector of length m; includes the scale
    right: np.ndarray  # n x r, or a vector of length n
    low: float | None = None  # <g, s> >= low for all s in the set, if the oracle is not exact

    @property
    def shape(self) -> tuple[int, ...]:
        """(m, n)."""
        return len(self.left), len(self.right)

    def dot(self, g: np.ndarray) -> float:
        """<g, v> = <left, g right>: r products with g."""
        return dot64(self.left, g @ self.right)


class RankOne(_InFactors):
    """A matrix of rank one, v = left right', stored as m + n numbers instead of m n.

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
    """A matrix of rank at most r, v = left right', from m x r and n x r factors.

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
        """The bytes of the matrix, because factors are not unique."""
        return (self.to_array() + 0.0).tobytes()

    def add_to(self, x: np.ndarray, w: float) -> None:
        """x += w v in place."""
        x += (w * self.left) @ self.right.T

    def to_array(self) -> np.ndarray:
        """A dense copy."""
        return self.left @ self.right.T


class FactorBuffer:
    """Two factors with equal column counts. A version of a matrix is left[:, :rank] right[:, :rank]', times a number.

    New columns are appended, into room that doubles when it is full. So a step costs only its own columns, and earlier
    versions stay valid. The buffer also caches the results that versions compute repeatedly, and updates them.
    """

    def __init__(self, left: np.ndarray, right: np.ndarray, limit: int | None = None):
        self.left, self.right = left, right  # m and n x capacity; only ever replaced by larger arrays with the same columns
        self.used = left.shape[1]
        fit = 2 * self.used + min(64, len(left), len(right))
        self.limit = fit if limit is None else limit  # beyond this number of columns, a check of the rank is due
        self.images: WeakKeyDictionary[object, tuple[int, np.ndarray]] = WeakKeyDictionary()  # column count, their entries
        self.norms = 0, 0.0  # column count, their |left right'|^2
        self.lock = threading.Lock()

    def saved_state(self) -> dict[str, Any]:
        """What a checkpoint keeps of it."""
        kept = {name: getattr(self, name) for name in ("left", "right", "used", "limit", "norms")}
        return kept | {"images": [(key, *found) for key, found in self.images.items()]}

    def restore_state(self, state: dict[str, Any]) -> None:
        """Take a saved state."""
        self.__init__(state["left"], state["right"], state["limit"])
        self.used, self.norms = state["used"], state["norms"]
        self.images.update({key: (count, total) for key, count, total in state["images"]})

    def append(self, rank: int, left: np.ndarray, right: np.ndarray) -> tuple[FactorBuffer, int]:
        """Append columns after the first ``rank``, or in a copy if the place is taken; return the buffer and its rank."""
        new = rank + left.shape[1]
        with self.lock:
            if self.used == rank:
                self._grow(new)
                self.left[:, rank:new], self.right[:, rank:new] = left, right
                self.used = new
                return self, new
            copy = FactorBuffer(self.left[:, :rank], self.right[:, :rank], self.limit)  # without spare room: it will grow first
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
        """Entries at positions that every version needs: the sum over the columns so far is cached."""
        with self.lock:
            count, total = self.images.get(key, (0, None))
            earlier = total is not None and count > rank  # an older version: the sum of the newest one stays cached
            if total is None or earlier:
                count, total = 0, np.zeros(len(rows), self.left.dtype)
            self._add(count, rank, rows, cols, total)
            if earlier:
                return total
            self.images[key] = rank, total
            return total.copy()

    def _add(self, first: int, last: int, rows: np.ndarray, cols: np.ndarray, out: np.ndarray) -> None:
        """Add entries of these columns; copy a single column (a step to a vertex) first, because the copy fits the cache."""
        if last == first + 1:
            kernels("positions").add_at(self.left[:, first].copy(), self.right[:, first].copy(), rows, cols, out)
        elif last > first:
            some = (np.ascontiguousarray(a[:, first:last]) for a in (self.left, self.right))
            kernels("positions").entries(*some, rows, cols, out)

    def norm2(self, rank: int) -> float:
        """|left right'|^2, updated from the earlier columns."""
        with self.lock:
            count, total = self.norms if self.norms[0] <= rank else (0, 0.0)
            for j in range(count, rank):
                cross = _products(self.left, j) * _products(self.right, j)
                total += 2.0 * float(cross[:j].sum()) + float(cross[j])
            self.norms = rank, total
            return total


def _products(a: np.ndarray, j: int) -> np.ndarray:
    """Products of column j with the columns up to j."""
    return a[:, : j + 1].T.astype(np.float64, copy=False) @ a[:, j].astype(np.float64, copy=False)
