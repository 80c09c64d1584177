"""Linear models: a loss of the products of rows with x."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.data.parts import PerRow
from extremal.data.rows import InMemory, RowData
from extremal.objectives.alike import first_total
from extremal.objectives.base import RowIndex
from extremal.objectives.margins import MarginModel
from extremal.objectives.row_parts import part_product, product_part
from extremal.objectives.works import Look
from extremal.points.composed import Place
from extremal.support.memory import room


class LinearModel(MarginModel):
    """A loss of linear predictions.

        f(x) = (1/n) sum_i phi(<a_i, x>, y_i),   grad f(x) = (1/n) A' c,   c_i = phi'(<a_i, x>, y_i)

    A full gradient costs one pass over A, on all cores if A is large; b components cost 2b rows. Sums over all rows are in
    float64 and do not depend on the number of threads. Tables of component gradients hold n numbers.

    With a loss of k margins (`Multinomial`, `MultiTask`), x is a matrix of shape (d, k), one column per output. The product a_i'
    x replaces <a_i, x>, grad f(x) = (1/n) A' c for the n x k matrix c, and tables hold n k numbers.

    Parameters
    ----------
    loss : Loss or MultiLoss
        `Logistic`, `NonlinearLeastSquares`, `Squared`, `Huber`, `Multinomial`, `MultiTask` or your own.
    A : array or scipy sparse matrix of shape (n, d), or data of your own
        One row per component. float32 rows stay float32 and are not converted; x and all sums are in float64.
    y : array of shape (n,), or (n, k) for `MultiTask`
        Targets, of the kind that the loss takes.
    weights : array of shape (n,), optional
        Non-negative weights of the rows: f(x) = sum_i w_i phi(<a_i, x>, y_i) / sum_i w_i. A row of weight 2 counts as two rows.

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
    order: np.ndarray | None = None  # index of each row in the model that was shuffled

    def shuffled(self, seed: int = 0) -> LinearModel:
        """The same sum with its rows in random order, so that batches may be blocks of consecutive rows.

            f(x) = (1/n) sum_i phi(<a_i, x>, y_i) = (1/n) sum_t phi(<a_order[t], x>, y_order[t])

        Once the data exceed the cache, consecutive rows are read several times faster than scattered rows. In a random order, a
        block has the variance of a batch drawn without replacement. However, the blocks of a run share one order, while batches
        are drawn anew. The cost is one copy of the data, and 8 bytes per row for ``order``.

        Parameters
        ----------
        seed : int
            The same seed gives the same order.

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
        n, (total, g) = self.n, first_total(self.data, Look(self.loss, self.y, x, valued, graded, z))
        if graded:
            g /= n  # in place, because x may have many entries
        return total / n, g if graded else None

    def derivs(self, x: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        """c_i = phi'(<a_i, x>, y_i) for i in idx; for all rows, they are in a mapped file if memory is short."""
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

    def part(self, z: PerRow, place: Place) -> np.ndarray:
        """grad f(x)[place] from the margins of x: one product with the columns of the block, which are copied once for all."""
        return product_part(self._columns("part"), place, cast(np.ndarray, self.derivs_at(z))) / self.n

    def part_margins(self, place: Place, way: np.ndarray) -> np.ndarray:
        """The change of the margins if x[place] changes by way."""
        return part_product(self._columns("part_margins"), place, way, (self.n, *self.deriv_shape))

    def _columns(self, call: str) -> InMemory:
        if not isinstance(self.data, InMemory):
            raise InputError(f"`{call}` takes rows in memory, got {self.data!r}: use a method of full gradients")
        return self.data.by_columns

    def derivs_at(self, z: PerRow, idx: RowIndex = None) -> PerRow:
        """phi'(z_i, y_i) for i in idx, at given margins, which need not belong to any x."""
        return super().derivs_at(z) if idx is None else self.loss.deriv(z, self._targets(idx))
