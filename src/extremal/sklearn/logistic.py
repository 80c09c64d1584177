"""Logistic regression under a constraint: each class against the rest, or all classes in one model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np

from extremal.losses.base import Loss
from extremal.losses.margin import Logistic
from extremal.losses.multi import Multinomial
from extremal.objectives.held_targets import against_rest
from extremal.sklearn.classes import ConstrainedClassifier, positives
from extremal.sklearn.options import ClassWeight, Constraint, SolverHint
from extremal.support.kinds import Numbers


@dataclass(eq=False, repr=False)
class ConstrainedLogisticRegression(ConstrainedClassifier):
    """Logistic regression with coefficients that always lie in a set.

        min over w in C, and b, of  f(w, b) = sum_i s_i log(1 + exp(-y_i (<x_i, w> + b))) / sum_i s_i,   y_i in {-1, 1}

    s are the sample weights times the class weights. The intercept b is not constrained, and the constraint on w holds exactly in
    floating point. ``dual_gap_`` is the Frank-Wolfe gap at the answer: no w in C and b lower f by more. For cones, this holds for
    all w within the bounds that ``constraint_`` shows. With more than two classes there is one such problem for each class
    against the rest, and the coefficients of every class lie in C. `ConstrainedMultinomialRegression` is the joint model.

    The default solver takes Newton steps on the coefficients in use, the first ones on samples of the rows. Its cost is about ten
    passes over the data, and n k^2 for k coefficients in use.

    Parameters
    ----------
    constraint : str, ConvexSet, dict, pair (A, b), or a list of these
        "l1", "l1:10", "simplex", "nonneg", "box:0,1", "monotone", {"income": ">=0", "debt": "<=0"}, (A, b) for A w <= b, ...
    radius : float or str, optional
        The radius of a constraint that is named without one. Default: 10. "30%" is that share of the norm of the unconstrained
        solution.
    fit_intercept : bool
        Whether to fit an intercept.
    class_weight : dict, "balanced" or None
        Weights of the classes.
    solver, tol, max_iter, warm_start, random_state, verbose
        As for `ConstrainedLinearRegression`.

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
    intercept_ : array of shape (1,) or (n_classes,)
    classes_ : array of shape (n_classes,)
    dual_gap_, objective_, constraint_violation_, certificate_, status_, n_iter_, n_grads_, constraint_, trace_
        As for `ConstrainedLinearRegression`. More than two classes: sums over the classes, and the largest violation.

    References
    ----------
    Jaggi (2013), Revisiting Frank-Wolfe (the gap); Yuan, Ho, Lin (2012), An improved GLMNET for l1-regularized logistic
    regression, JMLR 13.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from extremal.sklearn import ConstrainedLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = ConstrainedLogisticRegression("l1:5").fit(scale(X), y)
    >>> float(abs(model.coef_).sum()) <= 5, int((model.coef_ != 0).sum()), round(model.score(scale(X), y), 3)
    (True, 8, 0.972)
    >>> model.dual_gap_ <= 1e-6 * model.objective_, model.constraint_violation_
    (True, 0.0)
    """

    constraint: Constraint = "l1"
    _: KW_ONLY
    class_weight: ClassWeight = None
    solver: SolverHint = "auto"

    def _loss(self, y: np.ndarray, weights: np.ndarray | None) -> Loss:
        return Logistic()

    def _targets(self, y: np.ndarray) -> list[np.ndarray]:
        """1 for the second of two classes, or for each class in turn; -1 for the others."""
        return [against_rest(y, i) for i in positives(len(self.classes_))]

    def _parts(self) -> list[tuple[np.ndarray, Numbers]]:
        return list(zip(self.coef_, self.intercept_, strict=True))

    def _keep(self, coefs: Sequence[np.ndarray], intercepts: Sequence[Numbers]) -> None:
        self.coef_ = np.stack(coefs)
        self.intercept_ = np.array(intercepts, self.coef_.dtype)


@dataclass(eq=False, repr=False)
class ConstrainedMultinomialRegression(ConstrainedClassifier):
    """Multinomial logistic regression with a matrix of coefficients that always lies in a set.

        min over W in C, and b, of  sum_i s_i (log sum_j exp(z_ij) - z_{i, y_i}) / sum_i s_i,   z_i = x_i' W + b'

    W has one row per feature and one column per class. Sets of matrices couple the classes. "nuclear" is the trace norm: the
    classes share a few directions. "groups" is the sum of the norms of the rows: all classes use a feature, or none does. "l1",
    "l2", "box" and others work too. The intercepts b are not constrained. ``dual_gap_`` certifies the answer as in
    `ConstrainedLogisticRegression`.

    Parameters
    ----------
    constraint : str, ConvexSet, or a list
        "nuclear", "groups", "l1", "l2", "box:-1,1", or a set of matrices of shape (n_features, n_classes).
    radius : float or str, optional
        The radius of a constraint that is named without one. Default: 10.
    fit_intercept, class_weight, solver, tol, max_iter, warm_start, random_state, verbose
        As for `ConstrainedLogisticRegression`, but the default of tol is 1e-4.

    Attributes
    ----------
    coef_ : array of shape (n_classes, n_features)
        W transposed. For two classes there are two rows.
    intercept_ : array of shape (n_classes,)
        The intercepts, with sum 0.
    classes_, dual_gap_, objective_, constraint_violation_, certificate_, status_, n_iter_, n_grads_, constraint_, trace_
        As for `ConstrainedLogisticRegression`.

    References
    ----------
    Amit, Fink, Srebro, Ullman (2007), Uncovering shared structures in multiclass classification, ICML (the trace norm); Vincent,
    Hansen (2014), Sparse group lasso and high dimensional multinomial classification, Comput. Stat. Data Anal. 71.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from extremal.sklearn import ConstrainedMultinomialRegression
    >>> X, y = load_digits(return_X_y=True)
    >>> model = ConstrainedMultinomialRegression("nuclear:20").fit(X / 16, y)
    >>> model.coef_.shape, round(model.score(X / 16, y), 2), model.status_
    ((10, 64), 0.94, 'tol')
    """

    _joint = True

    constraint: Constraint = "nuclear"
    _: KW_ONLY
    class_weight: ClassWeight = None
    solver: SolverHint = "auto"
    tol: float = 1e-4

    def _loss(self, y: np.ndarray, weights: np.ndarray | None) -> Loss:
        return Multinomial(len(self.classes_))

    def _shape(self, d: int) -> tuple[int, ...]:
        return d, len(self.classes_)

    def _parts(self) -> list[tuple[np.ndarray, Numbers]]:
        return [(self.coef_.T, self.intercept_)]

    def _keep(self, coefs: Sequence[np.ndarray], intercepts: Sequence[Numbers]) -> None:
        self.coef_ = np.ascontiguousarray(coefs[0].T)
        self.intercept_ = np.broadcast_to(intercepts[0], len(self.classes_)).astype(self.coef_.dtype)
