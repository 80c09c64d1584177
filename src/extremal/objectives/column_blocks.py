"""f on some coordinates, with its Hessian: the contract, and columns of a linear model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from extremal.data.parts import PerRow
from extremal.data.rows import InMemory, RowData, rows_elsewhere
from extremal.kernels.arguments import kernels, locked
from extremal.losses.margin import compiled
from extremal.losses.weighted import unweighted
from extremal.quadratic.search import is_definite
from extremal.quadratic.solver import Quadratic
from extremal.support.kinds import Operator, Symmetric

if TYPE_CHECKING:
    from extremal.objectives.margins import MarginModel

FORMED_COLUMNS = 400  # the Hessian of sparse rows is formed up to this many columns
WIDE = 1500  # the same for dense rows, and for sparse rows
FULL = 0.25  # that store at least this share of all entries
LONG_COLUMNS, LONG_SHARE = 2000, 100.0  # most columns, and most columns^3 per entry, of a formed sparse Hessian
COMPILED_COLUMNS = 64  # compiled steps solve master problems of at most this many columns
SHORT_ROWS = 10_000  # up to this many rows, a pass over all coordinates takes longer than a step on some of them
MASTER_STEPS = 20  # maximum number of compiled steps
COPIED_ENTRIES = 2**22  # up to this many entries, columns of dense rows are copied for one Hessian
EXPENSIVE = 2500  # rows of at least this many columns are expensive to read, compared with Hessians of the columns in use
ROOTED = 2e9  # a factor of the Hessian is computed up to this many rows times columns squared


@dataclass(frozen=True)
class Slice(ABC):
    """f on the coordinates W: margins of steps along them, and second derivatives."""

    f: Any  # the sliced objective
    W: np.ndarray  # the coordinates, increasing

    @property
    def constant(self) -> bool:
        """Whether the Hessian is the same everywhere."""
        return False

    @property
    def copied(self) -> bool:
        """Whether products with the columns are cheap, because they stand alone."""
        return True

    @property
    def light(self) -> bool:
        """Whether a new Hessian takes little time, compared with a pass over the rows."""
        return False

    def of(self, f: Any) -> Slice:
        """The same coordinates of another objective, or of one with other counters."""
        return self if f is self.f else f.on_columns(self.W)

    @abstractmethod
    def dot(self, d: np.ndarray) -> PerRow:
        """A_W d, for one number per coordinate of W."""

    @abstractmethod
    def hessian(self, z: PerRow, far: bool = False, width: float = 0.0) -> Symmetric:
        """(1/n) A_W' diag phi''(z) A_W."""

    def cross(self, J: np.ndarray) -> np.ndarray | None:
        """The columns J of a constant Hessian; None if computing all of it is no worse."""
        return None

    def root(self, z: PerRow, far: bool = False, width: float = 0.0) -> np.ndarray | None:
        """B with B'B = the Hessian; None if there is no factor."""
        return None

    def solve(self, place: np.ndarray, scale: np.ndarray, w: np.ndarray, x: np.ndarray, z: PerRow, tol: float) -> Any:
        """Newton steps over weights in compiled code, see `ColumnBlock`; None if they are not available."""
        return None


@dataclass(frozen=True)
class HessianProducts:
    """The Hessian of some columns as an operator; each product reads the columns once."""

    columns: Any
    h: PerRow

    def __matmul__(self, u: np.ndarray) -> np.ndarray:
        return self.columns.gram_product(u, self.h) / len(self.h)

    def diagonal(self) -> np.ndarray:
        return self.columns.moments(self.h)[1] / len(self.h)


@dataclass(frozen=True)
class Less:
    """A Hessian as an operator, minus v v'."""

    whole: Operator
    v: np.ndarray

    def __matmul__(self, u: np.ndarray) -> np.ndarray:
        return self.whole @ u - self.v * float(self.v @ u)

    def diagonal(self) -> np.ndarray:
        """The diagonal, kept positive under rounding."""
        whole = self.whole.diagonal()
        return np.maximum(whole - np.square(self.v), 1e-12 * whole)


def plus(a: Any, b: Any) -> Symmetric:
    """The sum of two Hessians of the same kind."""
    return a + b if isinstance(a, np.ndarray) else replace(a, h=a.h + b.h)


@dataclass(frozen=True)
class ColumnBlock(Slice):
    """The columns W of a linear model."""

    f: MarginModel

    @cached_property
    def columns(self) -> Any:
        """The columns W as data."""
        return self.f.data.columns(self.W)

    @cached_property
    def _by_length(self) -> tuple[RowData, np.ndarray] | None:
        """The columns with their rows in another order, for many products with all rows."""
        return self.columns.by_length()

    @property
    def formed(self) -> bool:
        """Whether the Hessian is stored as an array, instead of as an operator.

        The array is cheaper for rows that are nearly full, and for enough rows that it costs less than a few products.
        """
        k, data = len(self.W), self.f.data
        if k <= FORMED_COLUMNS or (isinstance(data, RowData) and k <= LONG_COLUMNS and k**3 <= LONG_SHARE * data.nnz):
            return True
        if self._elsewhere:
            return k <= LONG_COLUMNS  # each product would read the rows
        return k <= WIDE and self.columns.fill >= FULL

    def dot(self, d: np.ndarray) -> PerRow:
        """A_W d. The cost is the entries of these columns, or a pass over the rows if they are not in memory."""
        if not self._elsewhere:
            return self.columns.dot(d)
        x = np.zeros(self.f.data.shape[1])
        x[self.W] = d
        return self.f.margins(x)

    @property
    def copied(self) -> bool:
        return "columns" in vars(self)

    @property
    def light(self) -> bool:
        """If it is an operator; or by n k^2 multiplications of matrices, which are several times as fast as n d in a pass."""
        k, data = len(self.W), self.f.data
        return not self.formed or (isinstance(data, InMemory) and data.fill >= FULL and EXPENSIVE <= data.shape[1] >= k * k / 4)

    @property
    def _elsewhere(self) -> bool:
        """Whether every request reads the rows anew."""
        return rows_elsewhere(self.f.data)

    def solve(
        self, place: np.ndarray, scale: np.ndarray, w: np.ndarray, x: np.ndarray, z: PerRow, tol: float
    ) -> tuple[np.ndarray | None, int, int] | None:
        """Newton steps over the weights w of the vertices scale_a e_{place_a}, until the gap over these is ``tol``.

        Return the new point on W, or None if no step was made, the number of gradients and Hessians, and the number of values.
        Return None if there are too many columns, or if the loss is not from this library. In both cases the caller has to make
        such steps itself.
        """
        code, rows = compiled(self.f.loss), self.columns.listed() if len(self.W) <= COMPILED_COLUMNS else None
        if code is None or rows is None or not self.f.is_finite_sum:
            return None
        x, w, z = x.copy(), w.copy(), z.astype(np.float64)
        steps, grads, values = kernels("master").master(
            *rows, locked(self.f.y), *code, self.f.convex, locked(place), locked(scale), w, x, z, float(tol), MASTER_STEPS
        )
        return x if steps else None, grads, values

    def ready(self, z: PerRow, short: bool) -> None:
        """Compile the operations on one column and the solvers on columns; compiled steps only if there are few rows."""
        self.hessian(z)
        cast(RowData, self.f.data).gram(self.W, np.ones(self.f.n))  # of rows as they are, without a copy of their columns
        if short and self.f.is_finite_sum:
            self.solve(np.zeros(1, np.intp), np.ones(1), np.ones(1), np.zeros(1), z, 1.0)
        else:
            Quadratic.over_weights(np.eye(1), np.zeros(1), np.zeros(1)).minimise(np.ones(1), 1.0)

    def hessian(self, z: PerRow, far: bool = False, width: float = 0.0) -> Symmetric:
        """(1/n) A_W' diag phi''(z) A_W, with |phi''| instead of phi'' if that is not positive semidefinite.

        ``far`` from a solution, rows far out on a linear part of their loss get some curvature. With a ``width``, phi'' is its
        mean within that distance of z: a model of f for steps that change margins by about as much. With an intercept, which
        follows x, the mean of the columns by the weights phi'' is subtracted.
        """
        h = self.f.second_at(z, width, far)
        if self.f.convex or not self.f.summed(_any_negative, h)[0]:
            return self._gram(h)
        up, down = (self._gram(self.f.filled(np.maximum, part, rest=(0.0,))) for part in (h, self.f.filled(np.negative, h)))
        return up - down if isinstance(up, np.ndarray) and is_definite(up - down) else plus(up, down)

    @property
    def constant(self) -> bool:
        return is_quadratic(self.f)

    def cross(self, J: np.ndarray) -> np.ndarray | None:
        """(1/n) A_W' diag phi'' A_J, by products with the columns J as dense arrays; for sums over rows in memory."""
        f = self.f
        if self._elsewhere or not f.is_finite_sum or f.n * len(J) > COPIED_ENTRIES:
            return None
        B = np.concatenate([rows for _, rows in f.data.columns(self.W[J]).arrays(f.n)])
        B = B * (unweighted(f.loss).curvature if f.weights is None else f.here(f.second_at(f.zero))[:, None])
        return self.columns.tdot(B) / f.n

    def root(self, z: PerRow, far: bool = False, width: float = 0.0) -> np.ndarray | None:
        """B with B'B = the Hessian, by QR factorisations of blocks of rows; None if there is none or it would take too long.

        If the Hessian is an operator, a factor always exists, with |phi''| instead of phi''.
        """
        h, n = self.f.second_at(z, width, far), self.f.n
        if self.formed and (self.f.summed(_any_negative, h)[0] or n * float(len(self.W)) ** 2 > ROOTED):
            return None
        h = self.f.filled(np.abs, h)
        R = self.columns.root(h, self.mean(h)[0])
        return None if R is None else R / np.sqrt(n)

    @property
    def _uncopied(self) -> RowData | None:
        """The data, if a Hessian is summed from their rows as they are: a copy of sparse columns costs as much as half of it."""
        data = self.f.data
        if self._elsewhere or not isinstance(data, RowData) or "columns" in vars(self):
            return data if self._elsewhere else None  # type: ignore[return-value]
        return data if data.fill < FULL or self.f.n * len(self.W) > COPIED_ENTRIES else None

    def mean(self, h: PerRow) -> tuple[np.ndarray | None, float]:
        """The mean of the columns by the weights h, which an intercept removes, and the sum of h."""
        total = 0.0 if self.f.is_finite_sum else self.f.summed(_sum, h)[0]
        if not total > 0:
            return None, total
        return (self.columns.tdot(h) if self._uncopied is None else self._uncopied.tdot(h)[self.W]) / total, total

    def _gram(self, h: PerRow) -> Symmetric:
        """(1/n) A_W' diag h A_W for h >= 0, as an array or as an operator, minus the part that an intercept removes."""
        mean, total = self.mean(h)
        if self.formed:
            H = self.columns.gram(None, h, mean) if self._uncopied is None else self._uncopied.gram(self.W, h, mean)
            return H / self.f.n
        H = HessianProducts(self.columns, h)
        if self._by_length is not None:
            columns, order = self._by_length
            H = HessianProducts(columns, h[order])
        return H if mean is None else Less(H, mean * np.sqrt(total / self.f.n))


def is_quadratic(f: MarginModel) -> bool:
    """Whether the Hessian of f is the same everywhere.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> [is_quadratic(ex.LinearModel(loss, np.eye(2), np.ones(2))) for loss in (ex.Squared(), ex.Huber())]
    [True, False]
    """
    return bool(getattr(f.loss, "quadratic", False)) and not f.deriv_shape and isinstance(f.data, RowData)


def _any_negative(h: np.ndarray) -> tuple[bool]:
    return (bool((h < 0).any()),)


def _sum(h: np.ndarray) -> tuple[float]:
    return (float(h.sum(dtype=np.float64)),)
