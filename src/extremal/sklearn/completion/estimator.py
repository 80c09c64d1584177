"""Complete matrices with some known entries by a matrix of small nuclear norm, for scikit-learn."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.metrics import r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from extremal import checks
from extremal.checks import InputError
from extremal.losses.margin import Huber, Squared
from extremal.objectives.completion import Centre, MatrixCompletion
from extremal.points.factored import FactoredMatrix
from extremal.points.iterates import inner
from extremal.points.matrix import wide
from extremal.run.front import minimize
from extremal.sets.spectral.nuclear import NuclearBall
from extremal.sklearn.answer import GAP_ROUNDING, Answer, CertifiedEstimator, answer_at
from extremal.sklearn.completion.filling import Filling, chosen_radius, mean_square, rounded_factors
from extremal.sklearn.completion.pairs import EntryArrays, kind_of, known_entries, labels_of, places_of, sides_of, with_gaps
from extremal.sklearn.options import Options, RandomState, is_fitted, read_options
from extremal.support.kinds import MatrixLike

FLOATS = (np.float64, np.float32)
LARGEST_FILL = 4 * 2**30  # bytes of a filled matrix


def _on_pairs(self: LowRankCompletion) -> bool:
    """Whether ``predict`` is available: after a fit on a matrix, it is not."""
    if (self.input_ if is_fitted(self, "input_") else self.input) == "matrix":
        raise AttributeError("predict and score take (row, col) pairs, and need a fit on pairs; use reconstruct(rows, cols)")
    return True


@dataclass(eq=False, repr=False)
class LowRankCompletion(OneToOneFeatureMixin, TransformerMixin, CertifiedEstimator):
    """Complete a matrix with some known entries by a matrix of small nuclear norm.

        min over |Z|_* <= radius of  f(Z) = (1/n) sum over known (i, j) of phi(Z_ij, X_ij - mean - row_i - col_j)

    For ratings (users and items), sensors with gaps, tables of measurements. |Z|_* is the sum of the singular values; a bound on
    it makes Z of low rank. Z is stored as factors U diag(s) V', and a fit allocates nothing of the size of the matrix.

    ``fit(X)`` takes a matrix: an array with NaN for missing entries, or a sparse matrix whose stored entries are known. A stored
    zero is a known 0. ``transform(X)`` fills each row from its own known entries, and takes rows that the fit has not seen. The
    factor of a row minimises

        sum over known j of phi(<w, v_j>, x_j - mean - row - col_j) + (n mu / 2) |w|^2,     v_j = s^(1/2) V_j

    where mu is the multiplier of the nuclear norm. A row of the fit thus gets its own row of Z back, up to ``tol``. Known entries
    stay unchanged. ``fit(pairs, values)`` takes pairs (row, col) as the rows of X: positions, or labels such as names of users
    and items. ``predict(pairs)`` returns the values there, and cross-validation over pairs works. Rows and columns without known
    entries are predicted by the offsets alone.

    Cost: a few dozen passes over the known entries, O(n r) each for rank r, and (rows + columns) r^2. Choosing a radius costs
    several times as much. ``transform`` costs k r^2 + r^3 for each row with k known entries.

    Parameters
    ----------
    radius : float, optional
        Bound on the nuclear norm of Z. If omitted, a tenth of the entries is held back, and radii are tried from small to large,
        each 1.5 times the last. The search ends when the error on these entries has risen twice in a row, or all entries are met.
        Two more radii around the best follow, and the best one is used for all entries. With fewer than 20 entries, the radius is
        a quarter of the largest useful one, sqrt(min side) |centred values|.
    input : "auto", "matrix" or "pairs"
        The kind of X. "auto": pairs if y is given and X has two columns without fractions and NaN; otherwise a matrix. A column
        of pairs holds positions from 0 if its entries are numbers of any type. It holds labels if they are anything else, or
        categorical in a data frame.
    rank : int, optional
        Z is cut to this rank after the fit. The gap is then that of the cut matrix, and ``tol`` is not enforced.
    loss, delta : "squared" or "huber", and float
        The loss phi. "huber" limits the pull of outliers: it turns from a parabola to a line at delta.
    offsets : "rows+cols", "mean" or None
        The offsets to subtract first. "mean" is the mean of the known entries. "rows+cols" adds an offset for every column, then
        one for every row: the mean of the remainder there together with five zeros.
    shape : (int, int), optional
        Shape of the matrix, if X holds pairs. Default: one more than the largest row and column.
    clip : bool
        Whether to clip predictions and fillings to the range of the known entries. This is right for ratings from 1 to 5, and
        wrong for measurements whose extremes may be missing. The fit and its certificate do not change.
    tol, max_iter : float and int
        The fit ends when the certified gap is at most tol f, or after max_iter iterations.
    warm_start : bool
        Whether to start at the last Z, if its shape matches and its norm is within the radius.
    random_state : int, RandomState or None
        Seed for the entries that are held back to choose a radius; None means 0.
    verbose : int
        1 shows the progress of the fit, as `extremal.minimize` does. The last line is the certificate.

    Attributes
    ----------
    row_factors_, singular_values_, components_ : arrays of shape (rows, r), (r,) and (r, columns)
        Z = row_factors_ diag(singular_values_) components_.
    mean_, row_offsets_, col_offsets_ : float and arrays of shape (rows,) and (columns,)
        The offsets that were subtracted.
    rank_, radius_, shape_, input_
        Rank of Z, the radius, the shape, and "matrix" or "pairs".
    row_labels_, col_labels_ : arrays of object, or None
        The labels of rows and columns, if X holds pairs of labels; None for positions.
    range_ : (float, float)
        The smallest and the largest known entry.
    dual_gap_ : float
        Frank-Wolfe gap at Z, in float64: f is at most this much above its minimum. `NuclearBall` states the assumptions.
    constraint_violation_ : float
        The excess of |Z|_* over the radius: 0.0.
    objective_, n_iter_, n_grads_, status_, constraint_, certificate_, trace_
        f, iterations, gradients of single entries, "tol" or the reason for an earlier end, the set, the certificate in words, and
        the history of the run.

    References
    ----------
    Candes, Recht (2009), Exact matrix completion via convex optimization, arXiv:0805.4471. Jaggi, Sulovsky (2010), A simple
    algorithm for nuclear norm regularized problems, ICML. Hastie, Mazumder, Lee, Zadeh (2015), Matrix completion and low-rank
    SVD via fast alternating least squares, JMLR 16 (factors as ridge regressions).

    Examples
    --------
    >>> import numpy as np
    >>> from extremal.sklearn import LowRankCompletion
    >>> rng = np.random.default_rng(0)
    >>> M = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 40))
    >>> X = np.where(rng.random(M.shape) < 0.5, M, np.nan)
    >>> filled = LowRankCompletion().fit_transform(X)
    >>> missing = np.isnan(X)
    >>> bool(np.abs(filled - M)[missing].mean() < 0.15 * np.abs(M).mean()), bool((filled == M)[~missing].all())
    (True, True)
    >>> pairs = np.argwhere(~missing)
    >>> model = LowRankCompletion(radius=80.0).fit(pairs, M[~missing])
    >>> model.predict([[0, 1], [5, 39]]).shape, model.constraint_violation_, model.dual_gap_ <= 1e-4 * model.objective_
    ((2,), 0.0, True)
    >>> named = LowRankCompletion(5.0, clip=True).fit([["ann", "tea"], ["ann", "rum"], ["bob", "tea"]], [5, 1, 4])
    >>> named.predict([["bob", "rum"], ["eve", "tea"]]).round(1), named.range_        # eve is new: what offsets say of tea
    (array([2.7, 3.7]), (1.0, 5.0))
    """

    radius: float | None = None
    _: KW_ONLY
    input: Literal["auto", "matrix", "pairs"] = "auto"
    rank: int | None = None
    loss: Literal["squared", "huber"] = "squared"
    delta: float = 1.0
    offsets: Centre = "rows+cols"
    shape: tuple[int, int] | None = None
    clip: bool = False
    tol: float = 1e-4
    max_iter: int = 200
    warm_start: bool = False
    random_state: RandomState = None
    verbose: int = 0

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.input != "pairs"
        tags.target_tags.required = self.input == "pairs"
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> LowRankCompletion:
        """Complete the matrix X, an array with NaN or a sparse matrix; y is then ignored.

        Or complete the matrix with values y at X, an array or a data frame of positions or labels (row, col); see ``input``.
        """
        self._check_parameters()
        options = read_options(self)
        kind = kind_of(X, y) if self.input == "auto" else self.input
        self.row_labels_ = self.col_labels_ = None
        rows, cols, values, shape = self._read_pairs(X, y) if kind == "pairs" else self._read_matrix(X)
        if len(values) == 0:
            raise InputError("`LowRankCompletion.fit(X)` must have at least one known entry, got none: all of them are missing")
        loss = Squared() if self.loss == "squared" else Huber(self.delta)
        given: dict[str, Any] = {"centre": self.offsets, "loss": loss, "seed": options.seed}
        less = partial(MatrixCompletion, rows, cols, values, shape, **given)  # with a share of the entries held back
        problem = less(validation=0.0)
        self.input_, self.range_ = kind, (float(values.min()), float(values.max()))
        dtype = np.dtype(np.float32 if values.dtype == np.float32 else np.float64)
        with self._shown():
            radius = float(self.radius) if self.radius is not None else chosen_radius(problem, values, less)
            self._store(self._complete(problem, NuclearBall(radius).on(shape), dtype, options))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Fill the missing entries row by row; known entries stay unchanged. The result is dense, also if X is sparse.

        The columns are those of the fit; the rows may differ.
        """
        check_is_fitted(self)
        if self.input_ == "pairs":
            raise InputError("`LowRankCompletion.transform` fills matrices; after a fit on pairs use predict(pairs)")
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=FLOATS, ensure_all_finite="allow-nan")
        if math.prod(X.shape) * X.dtype.itemsize > LARGEST_FILL:
            raise InputError(
                f"`LowRankCompletion.transform(X)` would make {X.shape[0]} x {X.shape[1]} numbers; use reconstruct(rows, cols)"
            )
        return self._filling().fill(with_gaps(X) if sp.issparse(X) else np.array(X))

    @available_if(_on_pairs)
    def predict(self, X: Any) -> np.ndarray:
        """Values at pairs X[t] = (row, col). The offsets alone predict rows and columns that the fit has not seen."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=None)
        return self._filling().at(*self._places("LowRankCompletion.predict", X))

    @available_if(_on_pairs)
    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R^2 of ``predict(X)``."""
        return r2_score(y, self.predict(X), sample_weight=sample_weight)

    def reconstruct(self, rows: ArrayLike, cols: ArrayLike) -> np.ndarray:
        """The completed matrix at positions or labels, known or not; rows and cols are broadcast.

        The cost is r products for each entry.

        Examples
        --------
        >>> import numpy as np
        >>> model = LowRankCompletion(radius=1.0).fit(np.array([[1.0, np.nan], [3.0, 4.0]]))
        >>> model.reconstruct(np.arange(2)[:, None], np.arange(2)).shape
        (2, 2)
        """
        check_is_fitted(self)
        rows = places_of("reconstruct", "rows", rows, self.row_labels_)
        return self._filling().at(*np.broadcast_arrays(rows, places_of("reconstruct", "cols", cols, self.col_labels_)))

    def _check_parameters(self) -> None:
        name = type(self).__name__
        checks.one_of(f"{name}(input=...)", self.input, ("auto", "matrix", "pairs"))
        checks.one_of(f"{name}(loss=...)", self.loss, ("squared", "huber"))
        if self.offsets not in ("rows+cols", "mean", None):
            raise InputError(f"`{name}(offsets=...)` must be 'rows+cols', 'mean' or None, got {self.offsets!r}")
        checks.positive(name, "delta", self.delta)
        checks.flag(name, "clip", self.clip)
        if self.radius is not None:
            checks.positive(name, "radius", self.radius)
        if self.rank is not None:
            checks.whole(name, "rank", self.rank, 1)

    def _places(self, call: str, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The positions of the pairs in the rows of X."""
        return places_of(call, "X", X[:, 0], self.row_labels_), places_of(call, "X", X[:, 1], self.col_labels_)

    def _filling(self) -> Filling:
        phi = None if self.loss == "squared" else float(self.delta)
        offsets = self.mean_, self.row_offsets_, self.col_offsets_
        factors, ends = (self.row_factors_, self.singular_values_, self.components_), self.range_ if self.clip else None
        return Filling(*factors, *offsets, self._penalty, self.offsets, phi, ends)

    def _read_matrix(self, X: Any) -> EntryArrays:
        X = validate_data(self, X, accept_sparse=("csr", "csc", "coo"), dtype=FLOATS, ensure_all_finite="allow-nan")
        return known_entries(X)

    def _read_pairs(self, X: Any, y: Any) -> EntryArrays:
        if y is None:
            raise InputError('`LowRankCompletion(input="pairs").fit(X, y)` requires y: the values at the positions, got None')
        pairs: Any
        pairs, y = validate_data(self, X, y, dtype=None, y_numeric=True)
        self.row_labels_, self.col_labels_ = labels_of(pairs, X)
        rows, cols = self._places("LowRankCompletion.fit", pairs)
        return rows, cols, y, sides_of(rows, cols, self.shape)

    def _complete(self, problem: MatrixCompletion, C: NuclearBall, dtype: np.dtype, options: Options) -> Answer:
        """Z in factors, and its certificate. If Z is cut to a rank, ``tol`` is not enforced."""
        f, size = problem.objective, mean_square(problem)
        atol = GAP_ROUNDING[dtype.itemsize] * size
        r = minimize(f, C, x0=self._warm(C), tol=options.tol, atol=atol, max_iter=options.max_iter)
        x, (U, s, Vt) = rounded_factors(r.x, C, self.rank, dtype)
        rounded = 2 * C.radius * float(np.finfo(dtype).eps) * math.sqrt(size / f.n)  # gap due to the last digits of Z's entries
        slack = max(atol, rounded) if self.rank is None else math.inf
        answer = answer_at(f, C, x, options.tol, slack, r, "low-rank corrective Frank-Wolfe")
        self._penalty = f.n * max(0.0, -inner(wide(x), answer.g)) / max(float(s.sum()), np.finfo(np.float64).tiny)
        self.row_factors_, self.singular_values_, self.components_, self.rank_ = U, s, Vt, len(s)
        self.mean_, self.radius_, self.shape_ = float(problem.mean), C.radius, problem.shape
        self.row_offsets_, self.col_offsets_ = problem.row_offsets.astype(dtype), problem.col_offsets.astype(dtype)
        return answer

    def _warm(self, C: NuclearBall) -> Any:
        """The last Z, if this fit is to start there."""
        fitting = self.warm_start and is_fitted(self, "shape_") and self.shape_ == C.shape
        if not fitting or float(self.singular_values_.sum()) > C.radius:
            return None
        return FactoredMatrix(self.row_factors_ * self.singular_values_, self.components_.T).astype(np.float64)
