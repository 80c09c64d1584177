"""Linear models: a loss of the products of rows with x."""

from __future__ import annotations

from typing import Any

import numpy as np

from extremal import checks
from extremal.data.parts import PerRow
from extremal.data.rows import RowData
from extremal.objectives.alike import first_total
from extremal.objectives.base import RowIndex
from extremal.objectives.margins import MarginModel
from extremal.objectives.works import Look
from extremal.support.memory import room


class LinearModel(MarginModel):
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
    A : array or scipy sparse matrix of shape (n, d), or data of your own
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

    is_finite_sum = True
    order: np.ndarray | None = None  # which row of the model that was shuffled each row has been

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
        order = np.random.default_rng(checks.whole("shuffled", "seed", seed, 0)).permutation(self.n)
        new = self._with(self._ordered("shuffled").rows(order), self._targets(order))
        new.blocks, new.order = True, order if self.order is None else self.order[order]
        return new

    def _look(self, x: np.ndarray, valued: bool = False, graded: bool = False, z: PerRow | None = None) -> tuple[float, Any]:
        total, g = first_total(self.data, Look(self.loss, self.y, x, valued, graded, z))
        return total / self.n, g / self.n if graded else None

    def derivs(self, x: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        """c_i = phi'(<a_i, x>, y_i) for i in idx; those of all rows are mapped if they would be much of the free memory."""
        if idx is not None:
            return self.loss.deriv(self.data.dot(x, idx), self._targets(idx))
        c = self.data.parts.numbers(*self.deriv_shape) if self.elsewhere else room((self.n, *self.deriv_shape))
        first_total(self.data, Look(self.loss, self.y, x, valued=False, graded=False, c=c))
        return self.data.numbers_of(c) if isinstance(self.data, RowData) else c

    def combine(self, c: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        """(1/b) sum over idx of c_i a_i, or of a_i c_i'."""
        return self.data.tdot(c, idx) / len(c)

    def values(self, x: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        """f_i(x) for i in idx."""
        return self.loss.value(self.data.dot(x, idx), self._targets(np.arange(self.n) if idx is None else idx))

    def derivs_at(self, z: PerRow, idx: RowIndex = None) -> PerRow:
        """phi'(z_i, y_i) for i in idx: derivatives at given margins, which need not be those of any x."""
        return super().derivs_at(z) if idx is None else self.loss.deriv(z, self._targets(idx))
