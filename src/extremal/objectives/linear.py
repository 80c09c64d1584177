"""Linear models: a loss of the products of rows with x."""

from __future__ import annotations

import copy
import math
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from extremal import checks
from extremal.checks import InputError
from extremal.data.accept import as_data
from extremal.data.base import Data
from extremal.data.csr import CSR
from extremal.data.dense import Dense
from extremal.data.norms import lambda_max
from extremal.kernels import parts
from extremal.losses.base import Loss, check_targets
from extremal.losses.margin import compiled
from extremal.losses.multi import CurvatureRows
from extremal.losses.over_rows import ROWS_AT_ONCE, Along, derivs_of, mean_of, mean_second_of, second_of
from extremal.losses.weighted import unweighted, weights_of, with_weights
from extremal.objectives.base import RowIndex, Segment
from extremal.objectives.protocols import Known, Ordered, outputs_of
from extremal.points.composed import Chord
from extremal.points.vertex import Vertex

BLOCK_NUMBERS = 2**17  # of a block of a dense matrix: 1 MiB, which stays in the cache, and for which BLAS starts no threads


class LinearModel:
    """A loss of linear predictions.

        f(x) = (1/n) sum_i phi(<a_i, x>, y_i),   grad f(x) = (1/n) A' c,   c_i = phi'(<a_i, x>, y_i)

    A full gradient costs one pass over A, on all cores if A is large; b components cost 2b rows. Sums over all rows are in
    float64 and do not depend on the number of threads. Tables of component gradients hold n numbers.

    With a loss of k margins (`Multinomial`, `MultiTask`) x is a matrix of shape (d, k), one column per output, a_i' x takes
    the place of <a_i, x>, grad f(x) = (1/n) A' c for the n x k matrix c, and tables hold n k numbers.

    Parameters
    ----------
    loss : Loss or MultiLoss
        `Logistic`, `NonlinearLeastSquares`, `Squared`, `Huber`, `Multinomial`, `MultiTask` or your own.
    A : array or scipy sparse matrix of shape (n, d)
        One row per component. float32 rows stay float32, and are read as they are: x and all sums are in float64.
    y : array of shape (n,), or (n, k) for `MultiTask`
        Targets; the loss says which it takes.
    weights : array of shape (n,), optional
        Non-negative weights of the rows: f(x) = sum_i w_i phi(<a_i, x>, y_i) / sum_i w_i. A row of weight 2 is a row twice.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(2), np.array([1.0, 3.0]))
    >>> f.value(np.zeros(2)), f.grad(np.zeros(2))
    (2.5, array([-0.5, -1.5]))
    >>> f.smoothness
    0.5
    """

    is_finite_sum: bool = True  # whether each component is known by its own row alone
    blocks: bool = False  # batches may be blocks of consecutive rows, see `shuffled`
    order: np.ndarray | None = None  # which row of the model that was shuffled each row has been

    def __init__(self, loss: Loss, A: Any, y: Any, weights: ArrayLike | None = None):
        if checks.lacks(loss, "deriv"):
            raise InputError(f"`LinearModel(loss=...)` must be a loss such as Logistic(), got {loss!r}")
        self.loss: Loss = loss
        self.data: Data = as_data(A)
        self.deriv_shape: tuple[int, ...] = outputs_of(loss, self.data)
        self.y = check_targets(loss, checks.array("LinearModel", "y", y), self.data.shape[0])
        if weights is not None:
            self.loss, self.y = with_weights(loss, self.y, weights)

    def on_rows(self, rows: Data, kind: type[LinearModel]) -> LinearModel:
        """A model of other rows, of the kind, with this loss and these targets and weights: they need no second check."""
        new = kind.__new__(kind)
        new.loss, new.data, new.deriv_shape, new.y = self.loss, rows, self.deriv_shape, self.y
        return new

    @property
    def n(self) -> int:
        """Number of components (rows)."""
        return self.data.shape[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of x."""
        return *self.data.shape[1:], *self.deriv_shape

    @property
    def dtype(self) -> np.dtype:
        """Float type of x: float64, also for float32 rows, which are read as they are."""
        return np.dtype(np.float64)

    @property
    def convex(self) -> bool:
        """Whether the loss is."""
        return self.loss.convex

    @property
    def factored(self) -> bool:
        """Whether x may be a matrix in factors."""
        return getattr(self.data, "factored", False)

    def dense(self) -> LinearModel:
        """The same model with gradients that are arrays."""
        return self._with(cast(Any, self.data).dense(), self.y) if self.factored else self

    def shuffled(self, seed: int = 0) -> LinearModel:
        """The same sum with its rows in random order, so that batches may be blocks of consecutive rows.

            f(x) = (1/n) sum_i phi(<a_i, x>, y_i) = (1/n) sum_t phi(<a_order[t], x>, y_order[t])

        Reading consecutive rows is several times faster than reading rows here and there, once the data exceed the cache.
        Over a random order a block has the variance of a batch drawn without replacement; but the blocks of a run share one
        order, where batches are drawn anew. Costs a copy of the data, once, and 8 bytes a row for ``order``.

        Parameters
        ----------
        seed : int
            Same seed, same order.

        Examples
        --------
        >>> import numpy as np, extremal as ex
        >>> f = ex.LinearModel(ex.Squared(), np.eye(3), np.array([1.0, 2.0, 3.0])).shuffled(seed=0)
        >>> f.order, f.y, f.blocks
        (array([2, 0, 1]), array([3., 1., 2.]), True)
        """
        if not isinstance(self.data, Ordered):
            raise InputError(f"`shuffled` takes dense and sparse rows, got {self.data!r}")
        order = np.random.default_rng(checks.whole("shuffled", "seed", seed, 0)).permutation(self.n)
        new = self._with(self.data.take(order), self.y[order])
        new.blocks, new.order = True, order if self.order is None else self.order[order]
        return new

    def _with(self, data: Data, y: np.ndarray) -> LinearModel:
        """The same rows in another form or order."""
        new = copy.copy(self)
        new.data, new.y = data, y
        new.__dict__.pop("row_smoothness", None)
        return new

    def value(self, x: np.ndarray) -> float:
        """f(x), one pass."""
        return self._pass(x, value=True)[0]

    def grad(self, x: np.ndarray) -> np.ndarray:
        """Full gradient, one pass."""
        return self._pass(x, grad=True)[1]

    def value_and_grad(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Both, in one pass."""
        return self._pass(x, value=True, grad=True)

    def derivs(self, x: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        """c_i = phi'(<a_i, x>, y_i) for i in idx."""
        if idx is not None:
            return self.loss.deriv(self.data.dot(x, idx), self.y[idx])
        code = compiled(self.loss)
        if code is None or not isinstance(self.data, CSR):
            return derivs_of(self.loss, self.data.dot(x), self.y)
        c = np.empty(self.n, np.result_type(self.dtype, x.dtype))
        self.data.model(code, self.y, x, False, False, c)
        return c

    def _pass(self, x: np.ndarray, value: bool = False, grad: bool = False) -> tuple[float, np.ndarray]:
        """f(x) and grad f(x), as asked for: rows of arrays and of sparse matrices are read from memory once."""
        code = compiled(self.loss)
        if isinstance(self.data, CSR) and code is not None:
            total, g = self.data.model(code, self.y, x, value, grad)
        elif isinstance(self.data, Dense) and math.prod(self.data.shape) > 4 * BLOCK_NUMBERS:
            total, g = self._blocks(self.data, x, value, grad)
        else:
            z = self.data.dot(x)
            mean = mean_of(self.loss.value, z, self.y) if value else 0.0
            return mean, self.combine(derivs_of(self.loss, z, self.y)) if grad else z
        g /= self.n
        return total / self.n, g.astype(np.result_type(self.dtype, x.dtype), copy=False)

    def _blocks(self, A: Dense, x: np.ndarray, value: bool, grad: bool) -> tuple[float, np.ndarray]:
        """The sums over all rows of f_i and of its gradient, by blocks that are in the cache for the second product."""
        shape, size = self.shape if grad else (0,), max(1, min(ROWS_AT_ONCE, BLOCK_NUMBERS // A.shape[1]))
        many = parts.count(math.prod(A.shape), math.prod(self.shape))

        def part(first: int, last: int) -> tuple[float, np.ndarray]:
            total, g = 0.0, np.zeros(shape)
            for start in range(first, last, size):
                rows = slice(start, min(start + size, last))
                block, y = A.part(rows), self.y[rows]
                z = block.dot(x)
                total += float(self.loss.value(z, y).sum(dtype=np.float64)) if value else 0.0
                if grad:
                    g += block.tdot(self.loss.deriv(z, y))
            return total, g

        bounds = [self.n * i // many for i in range(many + 1)]
        return parts.sums_of_parts(part, bounds, alone=compiled(self.loss) is None)  # a user's loss may not be made for threads

    def combine(self, c: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        """(1/b) sum over idx of c_i a_i, or of a_i c_i'."""
        return self.data.tdot(c, idx) / len(c)

    def values(self, x: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        """f_i(x) for i in idx."""
        return self.loss.value(self.data.dot(x, idx), self.y if idx is None else self.y[idx])

    def margins(self, x: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        """<a_i, x> for i in idx, or the rows a_i' x."""
        return self.data.dot(x, idx)

    def vertex_margins(self, s: Vertex, idx: RowIndex = None) -> np.ndarray:
        """<a_i, s> for i in idx: one entry a row if s is a coordinate."""
        return self.data.dot_vertex(s, idx)

    def value_at(self, z: np.ndarray) -> float:
        """The mean of phi(z_i, y_i): the value at given margins."""
        return mean_of(self.loss.value, z, self.y)

    def derivs_at(self, z: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        """phi'(z_i, y_i) for i in idx: derivatives at given margins, which need not be those of any x."""
        return self.loss.deriv(z, self.y if idx is None else self.y[idx])

    def along(self, x: np.ndarray, s: Vertex | Chord) -> Segment:
        """f on the segment to s, from the margins of its ends: a probe costs O(n) and no product."""
        z = self.data.dot(x)
        return self.between(z, Chord.to(s).image(z, self.data.dot_vertex))

    def between(self, z: np.ndarray, dz: np.ndarray) -> Segment:
        """f along a line of margins, t -> mean of phi(z + t dz)."""
        return Along(self.loss, self.y, z, dz)

    def second_at(self, z: np.ndarray, width: float = 0.0) -> np.ndarray:
        """phi''(z_i, y_i): second derivatives at given margins, of losses that know them; their mean within a width of these."""
        h = second_of(self.loss, z, self.y)
        return mean_second_of(self.loss, z, width, self.y, h) if width > 0 else h

    def curvature_rows_at(self, z: np.ndarray, width: float = 0.0) -> Any:
        """`CurvatureRows` of the loss at the margins z; means within a width, if outputs do not mix."""
        curvature_rows = CurvatureRows(*self.loss.curvature_rows(z, self.y))  # type: ignore[attr-defined]
        smooth = width == 0 or curvature_rows.P is not None
        return curvature_rows if smooth else CurvatureRows(mean_second_of(self.loss, z, width, self.y, curvature_rows.D), None)

    def tail_ratio(self, z: np.ndarray) -> float:
        """The mean of phi'^2 / phi'' at given margins; infinite where phi'' vanishes and phi' does not."""
        c, h = (a.astype(np.float64) for a in (derivs_of(self.loss, z, self.y), second_of(self.loss, z, self.y)))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return float(np.where(c == 0, 0.0, np.square(c) / h).mean())

    def value_grad_margins(self, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """f(x), its gradient and the margins A x, in one pass over sparse rows."""
        code = compiled(self.loss)
        if not isinstance(self.data, CSR) or code is None:
            z = self.data.dot(x)
            return mean_of(self.loss.value, z, self.y), self.combine(derivs_of(self.loss, z, self.y)), z
        z = np.empty(self.n, np.result_type(self.dtype, x.dtype))
        total, g = self.data.model(code, self.y, x, True, True, None, z)
        return total / self.n, (g / self.n).astype(z.dtype, copy=False), z

    def sample(self, rows: np.ndarray) -> LinearModel:
        """The mean over some of the components alone: a copy of these rows."""
        if not isinstance(self.data, Ordered):
            raise InputError(f"`sample` takes dense and sparse rows, got {self.data!r}")
        new = self._with(self.data.take(rows), self.y[rows])
        new.blocks, new.order = False, None
        new.__dict__.pop("_lambda_max", None)
        return new

    def ready(self) -> None:
        """Compile the products with some rows."""
        self.data.ready(*self.deriv_shape)

    @property
    def smoothness(self) -> float:
        """L = curvature * lambda_max(A' diag(w) A) / n for any number of outputs, by an eigenvalue or Lanczos; computed once."""
        return unweighted(self.loss).curvature * self._lambda_max / self.n

    @property
    def weights(self) -> np.ndarray | None:
        """The weights of the rows, of mean 1; None if there are none."""
        return weights_of(self.loss, self.y)

    @cached_property
    def _lambda_max(self) -> float:
        known = isinstance(self.data, Known) and self.weights is None
        return self.data.lambda_max() if known else lambda_max(self.data, self.weights)  # type: ignore[attr-defined]

    @cached_property
    def row_smoothness(self) -> np.ndarray:
        """L_i = curvature * |a_i|^2; the paper's Lt is the root of the mean of their squares."""
        rows = unweighted(self.loss).curvature * self.data.row_norms2().astype(np.float64)
        return rows if self.weights is None else rows * self.weights
