"""Matrix completion as a problem: from observed entries to an objective, predictions and their errors."""

from __future__ import annotations

import math
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from extremal import checks
from extremal.checks import InputError
from extremal.data.entries import Entries
from extremal.losses.base import Loss
from extremal.losses.margin import Squared
from extremal.objectives.linear import LinearModel
from extremal.points.entries_gradient import Positions, read_entries
from extremal.points.matrix import Iterate, check_positions

DAMPING = 5.0  # number of zeros added to each row and column: rows and columns with few entries stay near the mean
Centre = Literal["rows+cols", "mean"] | None


class MatrixCompletion:
    """Complete a matrix with some known entries by a matrix of small nuclear norm.

        min over |X|_* <= radius of  (1/n) sum_i phi(X[rows_i, cols_i], values_i - offset_i)

    The class subtracts the mean and the offsets of rows and columns, and holds some of the values back. The remaining values form
    an objective, for any method over a `NuclearBall`. Nothing of the size of the matrix is allocated, see `Entries`.

    Parameters
    ----------
    rows, cols : array of int of shape (n,)
        Positions of the values, in any order; repeats are allowed.
    values : array of shape (n,)
        The known entries.
    shape : (int, int), optional
        Shape of the matrix. Default: one more than the largest row and column.
    centre : "rows+cols", "mean" or None
        The offsets to subtract. "mean" is the mean of all values. "rows+cols" adds an offset for every column, then one for every
        row: the mean of the remainder there together with five zeros. Use None for losses of labels such as `Logistic`.
    validation : float
        Share of the values to hold back, from 0 to below 1.
    loss : Loss, optional
        The loss. Default: `Squared`.
    seed : int
        Seed for the choice of the values to hold back.

    Attributes
    ----------
    objective : LinearModel
        f over the centred values that are not held back. Its entries are sorted by row, then column.
    shape : (int, int)
        Shape of the matrix.
    mean, row_offsets, col_offsets : float and two arrays
        The offsets that were subtracted. They come from the values that are not held back.
    held_back : array of int
        Indices of the values that are held back.

    References
    ----------
    Candes, Recht (2009), Exact matrix completion via convex optimization, arXiv:0805.4471; Jaggi, Sulovsky (2010), A simple
    algorithm for nuclear norm regularized problems, ICML.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> rng = np.random.default_rng(0)
    >>> M = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 40))       # of rank 3
    >>> known = rng.random(M.shape) < 0.5
    >>> p = MatrixCompletion(*np.nonzero(known), M[known], centre=None)
    >>> method = ex.FrankWolfe(step=ex.steps.LineSearch())
    >>> r = ex.minimize(p.objective, ex.NuclearBall(0.45 * p.largest_radius), method, max_iter=150)
    >>> bool(p.rmse(r.x) < 0.1 * p.rmse(0 * r.x))         # of what was held back
    True
    >>> predicted = p.predict(r.x, *np.nonzero(~known))
    >>> bool(np.abs(predicted - M[~known]).mean() < 0.1)
    True
    """

    def __init__(
        self,
        rows: ArrayLike,
        cols: ArrayLike,
        values: ArrayLike,
        shape: tuple[int, int] | None = None,
        *,
        centre: Centre = "rows+cols",
        validation: float = 0.1,
        loss: Loss | None = None,
        seed: int = 0,
    ):
        given = Entries(rows, cols, _sides(rows, cols) if shape is None else shape).positions
        values, loss = _check_values(values, len(given)), Squared() if loss is None else loss
        self.shape, self.held_back = given.shape, _held_back(len(given), validation, seed)
        kept = np.delete(np.arange(len(given)), self.held_back)
        kept = kept[np.lexsort((given.cols[kept], given.rows[kept]))]  # products with gradients then need no further sorting
        train = given.take(kept)
        self.mean, self.row_offsets, self.col_offsets = _offsets(train, values[kept], _check_centre(centre, loss))
        centred = values[kept] - self.offsets(train.rows, train.cols)
        self.objective = LinearModel(loss, Entries(train.rows, train.cols, self.shape), centred)
        self._held = given.take(self.held_back), values[self.held_back]

    @classmethod
    def from_sparse(
        cls, A: Any, *, centre: Centre = "rows+cols", validation: float = 0.1, loss: Loss | None = None, seed: int = 0
    ) -> Self:
        """From a scipy sparse matrix. Its stored entries are known, including stored zeros; options as above.

        Examples
        --------
        >>> import numpy as np, scipy.sparse as sp
        >>> MatrixCompletion.from_sparse(sp.csr_array(np.array([[5.0, 0.0], [3.0, 1.0]])), validation=0)
        MatrixCompletion(2 x 2, 3 known, 0 held back)
        """
        if not sp.issparse(A):
            raise InputError(f"`MatrixCompletion.from_sparse(A=...)` must be a scipy sparse matrix, got {type(A).__name__}")
        A = A.tocoo()
        return cls(A.row, A.col, A.data, A.shape, centre=centre, validation=validation, loss=loss, seed=seed)

    @classmethod
    def from_dense(
        cls, A: ArrayLike, *, centre: Centre = "rows+cols", validation: float = 0.1, loss: Loss | None = None, seed: int = 0
    ) -> Self:
        """From an array with NaN for unknown entries; options as above.

        Examples
        --------
        >>> import numpy as np
        >>> MatrixCompletion.from_dense([[5.0, np.nan], [3.0, 1.0]], validation=0).mean
        3.0
        """
        A = checks.array("MatrixCompletion.from_dense", "A", A)
        if A.ndim != 2 or A.dtype.kind not in "biuf":
            what = f"shape {A.shape} and dtype {A.dtype}"
            raise InputError(
                f"`MatrixCompletion.from_dense(A=...)` must be a matrix of numbers, NaN for unknown ones, got {what}"
            )
        rows, cols = np.nonzero(~np.isnan(A))
        return cls(rows, cols, A[rows, cols], A.shape, centre=centre, validation=validation, loss=loss, seed=seed)

    def __repr__(self) -> str:
        m, n = self.shape
        return f"MatrixCompletion({m} x {n}, {self.objective.n} known, {len(self.held_back)} held back)"

    @property
    def largest_radius(self) -> float:
        """sqrt(min(m, n)) |centred values|: a ball of this radius contains an X with these entries, so larger radii are useless.

        Useful radii are mostly 2 to 50 times smaller. Choose one by the error on the values that are held back.
        """
        return math.sqrt(min(self.shape)) * float(np.linalg.norm(self.objective.y.astype(np.float64)))

    def offsets(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """The offsets at some positions."""
        return self.mean + self.row_offsets[rows] + self.col_offsets[cols]

    def predict(self, x: Iterate, rows: ArrayLike, cols: ArrayLike) -> np.ndarray:
        """The entries of x at some positions, with the offsets added back."""
        rows, cols = check_positions("predict", rows, cols, self.shape)
        flat = Positions(rows.reshape(-1), cols.reshape(-1), self.shape)
        return read_entries(x, flat, np.arange(len(flat))).reshape(rows.shape) + self.offsets(rows, cols)

    def rmse(self, x: Iterate, rows: Any = None, cols: Any = None, values: Any = None) -> float:
        """The root mean squared error of predictions, at the values that are held back or at given values."""
        if rows is None:
            positions, values = self._held
            if len(values) == 0:
                raise InputError(
                    "`rmse(x)` needs values that were held back: MatrixCompletion(validation=0.1), or give rows, ..."
                )
            rows, cols = positions.rows, positions.cols
        error = self.predict(x, rows, cols) - _check_values(values, len(rows), "rmse")
        return math.sqrt(float(np.mean(error**2, dtype=np.float64)))

    def complete(self, x: Iterate) -> np.ndarray:
        """All predictions as an array, for small matrices."""
        return np.asarray(x) + (self.mean + self.row_offsets[:, None] + self.col_offsets)


def _sides(rows: ArrayLike, cols: ArrayLike) -> tuple[int, int]:
    """One more than the largest row and column; at least 1, so that the positions get their own check."""
    m, n = (max(1, int(np.max(a)) + 1) if np.size(a) else 1 for a in (rows, cols))
    return m, n


def _check_values(values: ArrayLike, count: int, call: str = "MatrixCompletion") -> np.ndarray:
    values = checks.array(call, "values", values)
    if values.shape != (count,) or values.dtype.kind not in "biuf":
        what = f"shape {values.shape} and dtype {values.dtype}"
        raise InputError(f"`{call}(values=...)` must be {count} numbers, one for each position, got {what}")
    return checks.finite(call, "values", values.astype(np.float64))


def _check_centre(centre: Centre, loss: Loss) -> Centre:
    if centre not in ("rows+cols", "mean", None):
        raise InputError(f"`MatrixCompletion(centre=...)` must be 'rows+cols', 'mean' or None, got {centre!r}")
    if centre is not None and loss.labels is not None:
        raise InputError(f"`MatrixCompletion(centre=...)` must be None with {loss!r}, whose values are labels, got {centre!r}")
    return centre


def _held_back(n: int, share: float, seed: int) -> np.ndarray:
    """Indices of the values to hold back, increasing; at least one value remains."""
    checks.at_least("MatrixCompletion", "validation", share, 0)
    if share >= 1:
        raise InputError(f"`MatrixCompletion(validation=...)` must be a number from 0 to below 1, got {share!r}")
    rng = np.random.default_rng(checks.whole("MatrixCompletion", "seed", seed, 0))
    return np.sort(rng.choice(n, min(n - 1, round(share * n)), replace=False))


def _offsets(at: Positions, values: np.ndarray, centre: Centre) -> tuple[float, np.ndarray, np.ndarray]:
    """The mean, and the offsets of rows and columns."""
    m, n = at.shape
    if centre is None:
        return 0.0, np.zeros(m), np.zeros(n)
    mean = float(values.mean())
    if centre == "mean":
        return mean, np.zeros(m), np.zeros(n)
    cols = _damped(at.cols, values - mean, n)
    return mean, _damped(at.rows, values - mean - cols[at.cols], m), cols


def _damped(keys: np.ndarray, values: np.ndarray, size: int) -> np.ndarray:
    """For each key, the mean of its values together with some zeros."""
    return np.bincount(keys, values, size) / (np.bincount(keys, minlength=size) + DAMPING)
