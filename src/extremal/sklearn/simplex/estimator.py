"""Least squares with non-negative weights that sum to one, for scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from extremal import checks
from extremal.data.accept import as_rows
from extremal.sets.base import ConvexSet
from extremal.sets.simplices.plain import Simplex, UnitSimplex
from extremal.sklearn.answer import Answer, together
from extremal.sklearn.held import OwnScore, brings_targets, copied_targets
from extremal.sklearn.options import RandomState, is_fitted, read_options, read_weights
from extremal.sklearn.shared import RowsEstimator
from extremal.sklearn.simplex.solving import SimplexRows, solve_simplex

SUMS = {"equal": Simplex, "at_most": UnitSimplex}
SOLVERS = ("auto", "active_set", "newton")


@dataclass(eq=False, repr=False)
class SimplexRegression(OwnScore, MultiOutputMixin, RegressorMixin, RowsEstimator):
    """Least squares with non-negative weights that sum to ``total``.

        min over w >= 0, sum_j w_j = total, and b, of  f(w, b) = 1/2 sum_i s_i (<x_i, w> + b - y_i)^2 / sum_i s_i

    For ensembles (one column per model), forecast combinations, synthetic controls (one column per donor), mixtures of spectra. s
    are the sample weights. ``fit_intercept=True`` adds b, which is not constrained. Several targets are fitted at once, each with
    its own weights. The weights satisfy the constraint exactly, and ``dual_gap_`` bounds how much lower f could be.

    Cost: "active_set" makes one pass over the rows for all targets, O(n d^2) by matrix products. It then reaches the minimiser in
    about as many steps as there are non-zero weights. The certificate reads the rows once, and again if the products have lost
    digits. Small problems use an orthogonal factorisation, and reach the minimiser to rounding. "newton" makes some passes for
    each target, O(n d) each, and n k^2 for k weights in use. X is copied only for "newton", and only once, if it is in Fortran
    order, as most data frames are. Sparse rows stay sparse.

    Parameters
    ----------
    total : float
        Sum of the weights, positive.
    sum : "equal" or "at_most"
        Whether the weights sum to exactly ``total``, or to at most ``total``.
    fit_intercept : bool
        Whether to add a constant outside of the constraint.
    solver : "auto", "active_set" or "newton"
        "auto" takes the active-set method for small problems and for up to 1000 columns per target (at most 2000; fewer if X is
        sparse). It takes "newton" otherwise, and if the active-set method does not reach ``tol``.
    tol, max_iter : float and int
        The fit ends when the certified gap is at most tol f. "newton" also ends after max_iter iterations for a target.
    warm_start : bool
        Whether "newton" starts at the weights of the last fit.
    random_state : int, RandomState or None
        Seed for the rows that the first iterations of "newton" sample; None means 0. It does not change the minimiser.
    verbose : int
        1 shows the progress of the fit, as `extremal.minimize` does. The last line is the certificate.

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_targets, n_features)
        The weights, in the float type of X.
    intercept_ : float or array of shape (n_targets,)
        The constant; 0.0 without an intercept.
    dual_gap_ : float
        Frank-Wolfe gap at the weights, in float64: f is at most this much above its minimum. Several targets: the largest gap.
    dual_gaps_, objectives_ : arrays of shape (n_targets,)
        The gap and f of each target.
    objective_ : float
        f; with several targets, the mean of f over the targets.
    n_iter_, n_grads_ : int
        Iterations, the maximum over the targets; gradients of single rows, with certificates, the sum over the targets.
    trace_ : Trace
        The history of the run; with several targets, that of the largest gap.
    constraint_, constraint_violation_, status_, certificate_
        As for `ConstrainedLinearRegression`.

    References
    ----------
    Wolfe (1976), Finding the nearest point in a polytope, Mathematical Programming 11. Breiman (1996), Stacked regressions,
    Machine Learning 24. Abadie, Diamond, Hainmueller (2010), Synthetic control methods for comparative case studies, JASA 105.

    Examples
    --------
    >>> import numpy as np
    >>> from extremal.sklearn import SimplexRegression
    >>> rng = np.random.default_rng(0)
    >>> forecasts = rng.standard_normal((500, 4))
    >>> truth = forecasts @ [0.7, 0.3, 0.0, 0.0] + 0.1 * rng.standard_normal(500)
    >>> model = SimplexRegression().fit(forecasts, truth)
    >>> model.coef_.round(1) + 0.0, model.constraint_violation_, model.dual_gap_ <= 1e-6 * model.objective_
    (array([0.7, 0.3, 0. , 0. ]), 0.0, True)
    >>> many = SimplexRegression().fit(forecasts, np.column_stack([truth, forecasts[:, 3]]))
    >>> many.coef_.shape, many.predict(forecasts).shape
    ((2, 4), (500, 2))
    """

    total: float = 1.0
    _: KW_ONLY
    sum: Literal["equal", "at_most"] = "equal"
    fit_intercept: bool = False
    solver: Literal["auto", "active_set", "newton"] = "auto"
    tol: float = 1e-6
    max_iter: int = 1000
    warm_start: bool = False
    random_state: RandomState = None
    verbose: int = 0

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        if tags.regressor_tags is not None:
            tags.regressor_tags.poor_score = True  # weights that sum to one do not fit every target
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> SimplexRegression:
        """Find the weights for targets y of shape (n_samples,) or (n_samples, n_targets).

        X is an array, a sparse matrix or an `extremal.data.RowData`; float32 and float64 are kept. A row of weight 2 counts as
        two rows, and a row of weight 0 does not count. A `ShardDir` brings its own targets and weights, so y and sample_weight
        are omitted. Its targets and weights are copied to memory, its rows are not.
        """
        C, options = self._check_parameters(), read_options(self)
        if brings_targets(X):
            y, sample_weight = copied_targets(f"{type(self).__name__}.fit", X, y, sample_weight)
        X, y = self._validated(X, y, multi_output=True)
        if sp.issparse(y):
            y = y.toarray()
        weights = read_weights(self, sample_weight, X)
        rows = SimplexRows(as_rows(X), y.reshape(len(y), -1), weights, self.fit_intercept)
        with self._shown():
            answers = solve_simplex(rows, C.on(rows.columns), options, self._starts(rows))
            self._keep(answers, one=y.ndim == 1)
            worst, mean = max(answers, key=lambda answer: answer.gap), float(self.objectives_.mean())
            self._store(replace(together(answers), value=mean, gap=worst.gap, trace=worst.trace, method=worst.method))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """X coef_' + intercept_, of shape (n_samples,) or (n_samples, n_targets)."""
        check_is_fitted(self)
        return self._of_rows(X, *self._predictor())

    def _predictor(self) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        return self.coef_.T, lambda z: z + self.intercept_

    def _check_parameters(self) -> ConvexSet:
        """The set; invalid parameters are refused."""
        name = type(self).__name__
        kind = SUMS[checks.one_of(f"{name}(sum=...)", self.sum, SUMS)]
        checks.one_of(f"{name}(solver=...)", self.solver, SOLVERS)
        return kind(checks.positive(name, "total", self.total))

    def _starts(self, rows: SimplexRows) -> Sequence[np.ndarray | None]:
        """The weights of the last fit, if this fit is to start there and their shape matches."""
        last: Any = np.atleast_2d(self.coef_) if self.warm_start and is_fitted(self, "coef_") else np.empty(0)
        return list(last) if last.shape == (rows.targets, rows.columns) else [None] * rows.targets

    def _keep(self, answers: list[Answer], one: bool) -> None:
        coef, dtype = np.array([a.x for a in answers]), answers[0].x.dtype
        intercept = np.array([a.intercept for a in answers], dtype)
        self.coef_ = coef[0] if one else coef
        self.intercept_ = (intercept[0] if one else intercept) if self.fit_intercept else 0.0
        self.dual_gaps_, self.objectives_ = np.array([a.gap for a in answers]), np.array([a.value for a in answers])
