"""Multinomial logistic regression with constraints on the matrix of coefficients."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if

from extremal.losses.multi import Multinomial
from extremal.sklearn.fitting import solve_fit
from extremal.sklearn.hints import ClassWeight, Constraint, FeatureMatrix, Radius, RandomState, SolverHint
from extremal.sklearn.shared import ConstrainedClassifier, streams
from extremal.sklearn.streams import Stream


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

    def __init__(
        self,
        constraint: Constraint = "nuclear",
        *,
        radius: Radius = None,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        solver: SolverHint = "auto",
        tol: float = 1e-4,
        max_iter: int = 1000,
        warm_start: bool = False,
        random_state: RandomState = None,
        verbose: int = 0,
    ):
        self.constraint = constraint
        self.radius = radius
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: FeatureMatrix, y: ArrayLike, sample_weight: ArrayLike | None = None) -> ConstrainedMultinomialRegression:
        """Fit the model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            float32 stays float32; C-ordered arrays are not copied.
        y : array of shape (n_samples,)
            Classes, of any kind.
        sample_weight : array of shape (n_samples,), optional
            Weights of the rows: a row of weight 2 is a row twice.

        Returns
        -------
        self
        """
        options = self._options()
        X, y = self._validated(X, y)
        data, weights, kept = self._used(X, sample_weight)
        codes, weights = self._labels(y, weights, kept)
        shape = data.shape[1], len(self.classes_)
        earlier = self._earlier(shape[::-1])
        start = None if earlier is None else earlier.T
        fit = solve_fit(Multinomial(shape[1]), data, codes, self._plan(shape), options, weights, start)
        self.coef_ = np.ascontiguousarray(fit.coef.T)
        self.intercept_ = np.broadcast_to(fit.intercept, shape[1:]).astype(self.coef_.dtype)
        self._end_streams()
        self._take([fit])
        return self

    @available_if(streams)
    def partial_fit(
        self, X: FeatureMatrix, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> ConstrainedMultinomialRegression:
        """Go on with a batch of rows that are seen once, by steps along averaged gradients; see the user guide for its limits.

        Parameters
        ----------
        X, y, sample_weight
            As for ``fit``.
        classes : array, optional
            All classes that will come; needed with the first batch.

        Returns
        -------
        self
        """
        options, first = self._options(), not hasattr(self, "stream_")
        X, y = self._validated(X, y, reset=first and not hasattr(self, "coef_"))
        data, weights, kept = self._used(X, sample_weight)
        codes = self._known_classes(classes, y if kept is None else y[kept])
        weights = self._weights(codes, weights)
        shape = data.shape[1], len(self.classes_)
        if first:
            new = Stream.new(self._plan(shape), shape, data.dtype, shape[1:], options.name)
            self.stream_ = new.at(self.coef_.T, self.intercept_) if hasattr(self, "coef_") else new
        self.stream_ = self.stream_.after(Multinomial(shape[1]), data, codes, weights, options.intercept)
        self.coef_ = np.ascontiguousarray(self.stream_.coef.T)
        self.intercept_ = np.broadcast_to(self.stream_.level, shape[1:]).astype(self.coef_.dtype)
        self._streamed([self.stream_])
        return self
