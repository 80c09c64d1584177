"""Multinomial logistic regression with constraints on the matrix of coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np

from extremal.losses.base import Loss
from extremal.losses.multi import Multinomial
from extremal.sklearn.classes import ConstrainedClassifier
from extremal.sklearn.hints import ClassWeight, Constraint, Radius, RandomState, SolverHint
from extremal.support.kinds import Numbers


@dataclass(eq=False, repr=False)
class ConstrainedMultinomialRegression(ConstrainedClassifier):
    """Multinomial logistic regression whose matrix of coefficients lies in a set, without exception.

        min over W in C, and b, of  sum_i s_i (log sum_j exp(z_ij) - z_{i, y_i}) / sum_i s_i,   z_i = x_i' W + b'

    W has a row for each feature and a column for each class. Sets of matrices tie the classes together: "nuclear" (trace norm:
    classes share a few directions), "groups" (the sum of the rows' norms: a feature is used by all classes or by none), "l1",
    "l2", "box", ... The intercepts b are outside of the constraint. ``dual_gap_`` certifies the answer as in
    `ConstrainedLogisticRegression`.

    Parameters
    ----------
    constraint : str, ConvexSet, or a list
        "nuclear", "groups", "l1", "l2", "box:-1,1", or a set of matrices of shape (n_features, n_classes).
    radius : float or str, optional
        The radius of a constraint that is named without one; 10 if that is left out too.
    fit_intercept, class_weight, solver, tol, max_iter, warm_start, random_state, verbose
        As for `ConstrainedLogisticRegression`; tol is 1e-4 here.

    Attributes
    ----------
    coef_ : array of shape (n_classes, n_features)
        W transposed. Two classes have two rows.
    intercept_ : array of shape (n_classes,)
        Of sum 0.
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
    radius: Radius = None
    fit_intercept: bool = True
    class_weight: ClassWeight = None
    solver: SolverHint = "auto"
    tol: float = 1e-4
    max_iter: int = 1000
    warm_start: bool = False
    random_state: RandomState = None
    verbose: int = 0

    def _loss(self, y: np.ndarray, weights: np.ndarray | None) -> Loss:
        return Multinomial(len(self.classes_))

    def _shape(self, d: int) -> tuple[int, ...]:
        return d, len(self.classes_)

    def _parts(self) -> list[tuple[np.ndarray, Numbers]]:
        return [(self.coef_.T, self.intercept_)]

    def _keep(self, coefs: Sequence[np.ndarray], intercepts: Sequence[Numbers]) -> None:
        self.coef_ = np.ascontiguousarray(coefs[0].T)
        self.intercept_ = np.broadcast_to(intercepts[0], len(self.classes_)).astype(self.coef_.dtype)
