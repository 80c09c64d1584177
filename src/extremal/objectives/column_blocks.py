"""Some columns of a linear model, with their Hessian: of rows, of an array, of entries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

from extremal.kernels import parts
from extremal.kernels.views import locked
from extremal.losses.margin import compiled
from extremal.losses.weighted import unweighted
from extremal.objectives.hessians import HessianProducts, Less, WholeProducts, plus
from extremal.objectives.linear import LinearModel
from extremal.objectives.slices import Slice, sliced
from extremal.quadratic.updates import is_definite
from extremal.support import clock
from extremal.support.kinds import Symmetric

FORMED_COLUMNS = 400  # columns from which on a Hessian of sparse rows is not formed
WIDE = 1500  # the same for dense rows, and for sparse ones of which
FULL = 0.25  # a share of all entries is stored
COMPILED_COLUMNS = 64  # columns up to which the master problem is solved by compiled steps
SMALL_BLOCK = 2**20  # entries of dense columns, up to which these go to compiled loops; matrix products are faster from there on
FAR_ROW = 20.0  # phi'^2 / phi'' of rows that are far out
SHORT_ROWS = 10_000  # rows up to which a look at all coordinates takes longer than a step on some of them
MASTER_STEPS = 20  # of these, at most
ROOTED = 2e9  # rows times columns squared, up to which a factor of the Hessian is computed


@dataclass(frozen=True)
class ColumnBlock(ABC):
    """The columns W of a linear model."""

    f: LinearModel
    W: np.ndarray

    @property
    def formed(self) -> bool:
        """Whether a Hessian is an array, and not known by its products."""
        return len(self.W) <= FORMED_COLUMNS

    def of(self, f: Any) -> Slice:
        """The same coordinates of another objective."""
        return self if f is self.f else sliced(f, self.W)

    @abstractmethod
    def _rows(self) -> tuple[np.ndarray, ...] | None:
        """The columns W as sparse rows, for compiled loops; None if there are too many."""

    def solve(
        self, place: np.ndarray, scale: np.ndarray, w: np.ndarray, x: np.ndarray, z: np.ndarray, tol: float
    ) -> tuple[np.ndarray, int, int] | None:
        """Newton steps over the weights w of the vertices scale_a e_{place_a}, until the gap over these is ``tol``.

        Answers the new point on W, how many gradients and Hessians it took, and how many values. None if there are too many
        columns, or if the loss is not one of this library's: then it is up to the caller to make such steps.
        """
        code, rows = compiled(self.f.loss), self._rows() if len(self.W) <= COMPILED_COLUMNS else None
        if code is None or rows is None or not self.f.is_finite_sum:
            return None
        from extremal.kernels import master

        x, w, z = x.copy(), w.copy(), z.astype(np.float64)
        steps, grads, values = master.master(
            *rows, locked(self.f.y), *code, self.f.convex, locked(place), locked(scale), w, x, z, float(tol), MASTER_STEPS
        )
        return (x, grads, values) if steps else None

    def hessian(self, z: np.ndarray, far: bool = False, width: float = 0.0) -> Symmetric:
        """(1/n) A_W' diag phi''(z) A_W; with |phi''| for phi'' if that is not positive semidefinite.

        ``far`` from a solution, rows that are far out on a line of their loss (phi'' vanishes, phi' does not) are given some
        curvature, phi'^2 / 20, if the loss is of size one: they would leave the steps without a bound that they will have to
        turn around for. With a ``width``, phi'' is its mean within that of z: a model of f for steps that change margins by
        about as much.
        """
        h = self._second(z, far, width)
        if not self.f.is_finite_sum:
            return self._without_level(h)
        if self.f.convex or not (h < 0).any():
            return self.gram(h)
        up, down = (self.gram(part) for part in (np.maximum(h, 0), np.maximum(-h, 0)))
        return up - down if isinstance(up, np.ndarray) and is_definite(up - down) else plus(up, down)

    def _second(self, z: np.ndarray, far: bool, width: float) -> np.ndarray:
        h, most = self.f.second_at(z, width), unweighted(self.f.loss).curvature
        if not (far and self.f.convex and most <= 1):
            return h
        w = 1.0 if self.f.weights is None else self.f.weights  # a row of weight 2 is a row twice
        slopes = np.square(self.f.derivs_at(z)) / np.where(w > 0, w, 1.0)
        return np.maximum(h, np.minimum(slopes / FAR_ROW, most * w))

    def root(self, z: np.ndarray, far: bool = False, width: float = 0.0) -> np.ndarray | None:
        """B with B'B = the Hessian, by QR factorisations of blocks of rows; None if it has none, or if that takes too long.

        Where the Hessian itself is known by its products only, there is always one, with |phi''| for phi''.
        """
        h, k = self._second(z, far, width), len(self.W)
        if self.formed and ((h < 0).any() or self.f.n * float(k) ** 2 > ROOTED):
            return None
        h = np.abs(h)
        total, R = float(h.sum()), np.zeros((0, k))
        mean = self.f.data.tdot(h)[self.W] / total if not self.f.is_finite_sum and total > 0 else 0.0
        size = max(4 * k, 256)
        for start in range(0, self.f.n, size):
            clock.check()
            rows = slice(start, min(start + size, self.f.n))
            R = np.vstack([R, (self._block(rows) - mean) * np.sqrt(h[rows, None] / self.f.n)])
            R = np.asarray(np.linalg.qr(R, mode="r")) if len(R) > 2 * k else R
        return R

    @abstractmethod
    def _block(self, rows: slice) -> np.ndarray:
        """Some rows of the columns W, dense."""

    def _without_level(self, h: np.ndarray) -> Symmetric:
        """(1/n) (A' D A - A'D1 1'DA / 1'D1) on W, D = diag h: what is left to x where an intercept follows it."""
        total = float(h.sum(dtype=np.float64))
        if not total > 0:
            return self.gram(h)
        sums = self.f.data.tdot(h)[self.W].astype(np.float64)
        return self._about(h, sums / total, sums / np.sqrt(total * self.f.n))

    def _about(self, h: np.ndarray, mean: np.ndarray, v: np.ndarray) -> Symmetric:
        """(1/n) (A_W - 1 mean')' diag h (A_W - 1 mean') = the gram of h less v v'."""
        H = self.gram(h)
        return H - np.outer(v, v) if isinstance(H, np.ndarray) else Less(H, v)

    @abstractmethod
    def gram(self, h: np.ndarray) -> Symmetric:
        """(1/n) A_W' diag h A_W, for h >= 0."""

    @abstractmethod
    def dot(self, d: np.ndarray) -> np.ndarray:
        """A_W d."""


class RowBlock(ColumnBlock):
    """Sparse rows: the entries of the columns W are copied once."""

    @property
    def formed(self) -> bool:
        """Also of more columns if the rows are nearly full: their products cost as much as those of dense rows."""
        k = len(self.W)
        return k <= FORMED_COLUMNS or (k <= WIDE and len(self._entries[1]) >= FULL * self.f.n * k)

    @cached_property
    def _entries(self) -> tuple[np.ndarray, ...]:
        entries, (n, d) = self.f.data.entries, self.f.data.shape  # type: ignore[attr-defined]
        if len(self.W) == d:
            return entries
        place = np.full(d, -1, np.int32)
        place[self.W] = np.arange(len(self.W), dtype=np.int32)
        starts = np.empty(n + 1, entries[0].dtype)
        columns, values = (np.empty(len(entries[1]) + 1, a.dtype) for a in entries[1:])
        used = _kernels().compact(*entries, place, starts, columns, values)
        return locked(starts), locked(columns[:used]), locked(values[:used])

    def _rows(self) -> tuple[np.ndarray, ...] | None:
        return self._entries

    def _block(self, rows: slice) -> np.ndarray:
        return self.f.data.block(rows, self.W)  # type: ignore[attr-defined]

    def dot(self, d: np.ndarray) -> np.ndarray:
        """A_W d: costs the entries of these columns."""
        from extremal.kernels import full

        return full.dot(self._entries, d, len(self.W))  # type: ignore[arg-type]

    def gram(self, h: np.ndarray) -> Symmetric:
        """Row by row: the sum over rows of the squared number of their entries in W; products only for many columns."""
        k, h, kernel, entries = len(self.W), locked(h), _kernels().gram, self._entries
        if not self.formed:
            return HessianProducts(entries, h, k)

        def part(first: int, last: int) -> tuple[float, np.ndarray]:
            out = np.zeros((k, k))
            kernel(*entries, h, first, last, out)
            return 0.0, out

        many = parts.count(len(entries[1]), k * k)
        low = parts.sums_of_parts(part, [self.f.n * i // many for i in range(many + 1)])[1] / self.f.n
        return low + np.tril(low, -1).T


class ArrayBlock(ColumnBlock):
    """A dense array: the columns W are copied, block by block as they are needed."""

    @property
    def formed(self) -> bool:
        """Matrix products are fast."""
        return len(self.W) <= WIDE

    def _rows(self) -> tuple[np.ndarray, ...] | None:
        return None if self.f.n * len(self.W) > SMALL_BLOCK else self._listed

    @cached_property
    def _listed(self) -> tuple[np.ndarray, ...]:
        n, k = self.f.n, len(self.W)
        starts, columns = np.arange(0, n * k + 1, k, dtype=np.int32), np.tile(np.arange(k, dtype=np.int32), n)
        values = np.ascontiguousarray(self.f.data.block(slice(0, n), self.W))  # type: ignore[attr-defined]
        return locked(starts), locked(columns), locked(values.reshape(-1))

    def _block(self, rows: slice) -> np.ndarray:
        return self.f.data.block(rows, self.W)  # type: ignore[attr-defined]

    @cached_property
    def _whole(self) -> bool:
        return len(self.W) == self.f.data.shape[1]

    def dot(self, d: np.ndarray) -> np.ndarray:
        """A_W d."""
        x = np.zeros(self.f.data.shape[1], self.f.dtype)
        x[self.W] = d
        return self.f.data.dot(x)

    def _about(self, h: np.ndarray, mean: np.ndarray, v: np.ndarray) -> Symmetric:
        """The same from columns without their mean, where differences do not cancel."""
        return self.gram(h, mean) if self.formed else super()._about(h, mean, v)

    def gram(self, h: np.ndarray, mean: np.ndarray | None = None) -> Symmetric:
        """By blocks of rows, as products of matrices: n |W|^2 multiplications; products only for many columns."""
        if not self.formed:
            return WholeProducts(self, h)
        data, total = self.f.data, np.zeros((len(self.W),) * 2)
        root = np.sqrt(h).astype(data.dtype, copy=False)
        size = max(1, 2**18 // len(self.W))
        for start in range(0, self.f.n, size):
            clock.check()
            rows = slice(start, min(start + size, self.f.n))
            block = data.array[rows] if self._whole else data.block(rows, self.W)  # type: ignore[attr-defined]
            block = (block if mean is None else block - mean) * root[rows, None]
            total += block.T @ block
        return total / self.f.n


class EntryBlock(ColumnBlock):
    """Entries of a matrix: its Hessian is diagonal."""

    def _rows(self) -> None:
        return None

    def root(self, z: np.ndarray, far: bool = False, width: float = 0.0) -> np.ndarray | None:
        """The roots of the diagonal."""
        h = self._second(z, far, width)
        return None if (h < 0).any() else np.sqrt(self.gram(h))

    def _block(self, rows: slice) -> np.ndarray:
        raise AssertionError("entries have no rows")

    def dot(self, d: np.ndarray) -> np.ndarray:
        """The step at the positions."""
        x = np.zeros(self.f.shape)
        x.reshape(-1)[self.W] = d
        return self.f.data.dot(x)

    def gram(self, h: np.ndarray) -> np.ndarray:
        """The sum of h at each position."""
        at, (m, n) = self.f.data.positions, self.f.shape  # type: ignore[attr-defined]
        total = np.bincount(at.rows.astype(np.intp) * n + at.cols, h, m * n)[self.W]
        return np.diag(total / self.f.n)


def _kernels() -> ModuleType:
    from extremal.kernels import newton  # numba: imported when first needed

    return newton
