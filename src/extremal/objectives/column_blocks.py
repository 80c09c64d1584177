"""f on some of its coordinates, with its Hessian: the contract, and columns of a linear model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from extremal.data.parts import PerRow
from extremal.data.rows import RowData, rows_elsewhere
from extremal.kernels.arguments import kernels, locked
from extremal.losses.margin import compiled
from extremal.quadratic.search import is_definite
from extremal.quadratic.solver import Quadratic
from extremal.support.kinds import Operator, Symmetric

if TYPE_CHECKING:
    from extremal.objectives.margins import MarginModel

FORMED_COLUMNS = 400  # columns from which on a Hessian of sparse rows is not formed
WIDE = 1500  # the same for dense rows, and for sparse ones of which
FULL = 0.25  # a share of all entries is stored
LONG_COLUMNS, LONG_SHARE = 2000, 400.0  # columns of sparse rows, and their cube by all entries, up to which it is formed
COMPILED_COLUMNS = 64  # columns up to which the master problem is solved by compiled steps
SHORT_ROWS = 10_000  # rows up to which a look at all coordinates takes longer than a step on some of them
MASTER_STEPS = 20  # of these, at most
COPIED_ENTRIES = 2**22  # of all columns, up to which those in use are copied
ROOTED = 2e9  # rows times columns squared, up to which a factor of the Hessian is computed


@dataclass(frozen=True)
class Slice(ABC):
    """f on the coordinates W: margins of steps along them, and the second derivatives."""

    f: Any  # what it is a slice of
    W: np.ndarray  # the coordinates, increasing

    def of(self, f: Any) -> Slice:
        """The same coordinates of another objective, or of one that counts on."""
        return self if f is self.f else f.on_columns(self.W)

    @abstractmethod
    def dot(self, d: np.ndarray) -> PerRow:
        """A_W d, for one number per coordinate of W."""

    @abstractmethod
    def hessian(self, z: PerRow, far: bool = False, width: float = 0.0) -> Symmetric:
        """(1/n) A_W' diag phi''(z) A_W."""

    def root(self, z: PerRow, far: bool = False, width: float = 0.0) -> np.ndarray | None:
        """B with B'B = that; None if there is no factor."""
        return None

    def solve(self, place: np.ndarray, scale: np.ndarray, w: np.ndarray, x: np.ndarray, z: PerRow, tol: float) -> Any:
        """Newton steps over weights in compiled code, see `ColumnBlock`; None if there are none."""
        return None


@dataclass(frozen=True)
class HessianProducts:
    """A Hessian of some columns by its products: each reads the columns once."""

    columns: Any
    h: PerRow

    def __matmul__(self, u: np.ndarray) -> np.ndarray:
        return self.columns.gram_product(u, self.h) / len(self.h)

    def diagonal(self) -> np.ndarray:
        return self.columns.moments(self.h)[1] / len(self.h)


@dataclass(frozen=True)
class Less:
    """A Hessian by its products, less v v'."""

    whole: Operator
    v: np.ndarray

    def __matmul__(self, u: np.ndarray) -> np.ndarray:
        return self.whole @ u - self.v * float(self.v @ u)

    def diagonal(self) -> np.ndarray:
        """Its diagonal, which rounding may not make negative."""
        whole = self.whole.diagonal()
        return np.maximum(whole - np.square(self.v), 1e-12 * whole)


def plus(a: Any, b: Any) -> Symmetric:
    """The sum of two Hessians of one kind."""
    return a + b if isinstance(a, np.ndarray) else replace(a, h=a.h + b.h)


@dataclass(frozen=True)
class ColumnBlock(Slice):
    """The columns W of a linear model."""

    f: MarginModel

    @cached_property
    def columns(self) -> Any:
        """These columns, as data."""
        return self.f.data.columns(self.W)

    @property
    def formed(self) -> bool:
        """Whether a Hessian is an array, and not known by its products.

        Products are as costly for rows that are nearly full; and for so many rows that the array costs less than some products.
        """
        k, data = len(self.W), self.f.data
        if k <= FORMED_COLUMNS or (isinstance(data, RowData) and k <= LONG_COLUMNS and k**3 <= LONG_SHARE * data.nnz):
            return True
        if self._elsewhere:
            return k <= LONG_COLUMNS  # each product would be a read
        return k <= WIDE and self.columns.fill >= FULL

    def dot(self, d: np.ndarray) -> PerRow:
        """A_W d: costs the entries of these columns; a read, if rows are not in memory."""
        if not self._elsewhere:
            return self.columns.dot(d)
        x = np.zeros(self.f.data.shape[1])
        x[self.W] = d
        return self.f.margins(x)

    @property
    def _elsewhere(self) -> bool:
        """Whether rows are read anew for each question."""
        return rows_elsewhere(self.f.data)

    def solve(
        self, place: np.ndarray, scale: np.ndarray, w: np.ndarray, x: np.ndarray, z: PerRow, tol: float
    ) -> tuple[np.ndarray, int, int] | None:
        """Newton steps over the weights w of the vertices scale_a e_{place_a}, until the gap over these is ``tol``.

        Answers the new point on W, how many gradients and Hessians it took, and how many values. None if there are too many
        columns, or if the loss is not one of this library's: then it is up to the caller to make such steps.
        """
        code, rows = compiled(self.f.loss), self.columns.listed() if len(self.W) <= COMPILED_COLUMNS else None
        if code is None or rows is None or not self.f.is_finite_sum:
            return None
        x, w, z = x.copy(), w.copy(), z.astype(np.float64)
        steps, grads, values = kernels("master").master(
            *rows, locked(self.f.y), *code, self.f.convex, locked(place), locked(scale), w, x, z, float(tol), MASTER_STEPS
        )
        return (x, grads, values) if steps else None

    def ready(self, z: PerRow, short: bool) -> None:
        """Compile what is asked of one column, and what solves problems on columns: compiled steps, if the rows are few."""
        self.hessian(z)
        if short and self.f.is_finite_sum:
            self.solve(np.zeros(1, np.intp), np.ones(1), np.ones(1), np.zeros(1), z, 1.0)
        else:
            Quadratic.over_weights(np.eye(1), np.zeros(1), np.zeros(1)).minimise(np.ones(1), 1.0)

    def hessian(self, z: PerRow, far: bool = False, width: float = 0.0) -> Symmetric:
        """(1/n) A_W' diag phi''(z) A_W; with |phi''| for phi'' if that is not positive semidefinite.

        ``far`` from a solution, rows that are far out on a line of their loss are given some curvature. With a ``width``, phi''
        is its mean within that of z: a model of f for steps that change margins by about as much. With an intercept, which
        follows x, the columns lose their mean by the weights phi''.
        """
        h = self.f.second_at(z, width, far)
        if self.f.convex or not self.f.summed(_any_negative, h)[0]:
            return self._gram(h)
        up, down = (self._gram(self.f.filled(np.maximum, part, rest=(0.0,))) for part in (h, self.f.filled(np.negative, h)))
        return up - down if isinstance(up, np.ndarray) and is_definite(up - down) else plus(up, down)

    def root(self, z: PerRow, far: bool = False, width: float = 0.0) -> np.ndarray | None:
        """B with B'B = the Hessian, by QR factorisations of blocks of rows; None if it has none, or if that takes too long.

        Where the Hessian itself is known by its products only, there is always one, with |phi''| for phi''.
        """
        h, n = self.f.second_at(z, width, far), self.f.n
        if self.formed and (self.f.summed(_any_negative, h)[0] or n * float(len(self.W)) ** 2 > ROOTED):
            return None
        h = self.f.filled(np.abs, h)
        R = self.columns.root(h, self._mean(h)[0])
        return None if R is None else R / np.sqrt(n)

    @property
    def _large(self) -> RowData | None:
        """The data, if these are so large that their columns are not copied for the one Hessian that is asked of most of them."""
        data = self.f.data
        large = isinstance(data, RowData) and data.nnz > COPIED_ENTRIES and "columns" not in vars(self)
        return data if large or self._elsewhere else None  # type: ignore[return-value]

    def _mean(self, h: PerRow) -> tuple[np.ndarray | None, float]:
        """What the columns lose where an intercept follows x, their mean by the weights h; and the sum of h."""
        total = 0.0 if self.f.is_finite_sum else self.f.summed(_sum, h)[0]
        if not total > 0:
            return None, total
        return (self.columns.tdot(h) if self._large is None else self._large.tdot(h)[self.W]) / total, total

    def _gram(self, h: PerRow) -> Symmetric:
        """(1/n) A_W' diag h A_W for h >= 0, as an array or by its products; less what an intercept takes over."""
        mean, total = self._mean(h)
        if self.formed:
            H = self.columns.gram(None, h, mean) if self._large is None else self._large.gram(self.W, h, mean)
            return H / self.f.n
        H = HessianProducts(self.columns, h)
        return H if mean is None else Less(H, mean * np.sqrt(total / self.f.n))


def _any_negative(h: np.ndarray) -> tuple[bool]:
    return (bool((h < 0).any()),)


def _sum(h: np.ndarray) -> tuple[float]:
    return (float(h.sum(dtype=np.float64)),)
