"""Logistic regression under a constraint."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if

from extremal.losses.base import expit
from extremal.losses.margin import Logistic
from extremal.sklearn.fitting import solve_fit
from extremal.sklearn.hints import ClassWeight, Constraint, FeatureMatrix, Radius, RandomState, SolverHint
from extremal.sklearn.shared import ConstrainedClassifier, streams
from extremal.sklearn.streams import Stream


class ConstrainedLogisticRegression(ConstrainedClassifier):
    """Logistic regression whose coefficients lie in a set, without exception.

        min over w in C, and b, of  f(w, b) = sum_i s_i log(1 + exp(-y_i (<x_i, w> + b))) / sum_i s_i,   y_i in {-1, 1}

    s are the sample weights times the class weights. The intercept b is outside of the constraint, and the constraint holds
    exactly in floating point. ``dual_gap_`` is the Frank-Wolfe gap at the answer: no w in C and b have an f that is lower by
    more (over cones, no w up to the bounds that ``constraint_`` shows). With more than two classes there is one such problem for
    each class against the rest, every class's coefficients in C; for one joint model see `ConstrainedMultinomialRegression`.

    The default solver makes Newton steps on the coefficients in use, the first of them on samples of the rows: some ten passes
    over the data, and n k^2 for k coefficients in use.

    Parameters
    ----------
    constraint : str, ConvexSet, dict, pair (A, b), or a list of these
        "l1", "l1:10", "simplex", "nonneg", "box:0,1", "monotone", {"income": ">=0", "debt": "<=0"}, (A, b) for A w <= b, ...
    radius : float or str, optional
        The radius of a constraint that is named without one; 10 if left out. "30%" is that share of the norm of the
        unconstrained solution.
    fit_intercept : bool
        Whether there is an intercept.
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
        As for `ConstrainedLinearRegression`; with more than two classes sums over the classes (the violation is the largest).

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

    def __init__(
        self,
        constraint: Constraint = "l1",
        *,
        radius: Radius = None,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        solver: SolverHint = "auto",
        tol: float = 1e-6,
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

    def fit(self, X: FeatureMatrix, y: ArrayLike, sample_weight: ArrayLike | None = None) -> ConstrainedLogisticRegression:
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
        rows, d = (1 if len(self.classes_) == 2 else len(self.classes_)), data.shape[1]
        plan, earlier = self._plan((d,)), self._earlier((rows, d))
        fits = [
            solve_fit(Logistic(), data, sign(codes, i, rows), plan, options, weights, None if earlier is None else earlier[i])
            for i in range(rows)
        ]
        self.coef_ = np.stack([fit.coef for fit in fits])
        self.intercept_ = np.array([fit.intercept for fit in fits], self.coef_.dtype)
        self._end_streams()
        self._take(fits)
        return self

    @available_if(streams)
    def partial_fit(
        self, X: FeatureMatrix, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> ConstrainedLogisticRegression:
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
        options, first = self._options(), not hasattr(self, "streams_")
        X, y = self._validated(X, y, reset=first and not hasattr(self, "coef_"))
        data, weights, kept = self._used(X, sample_weight)
        codes = self._known_classes(classes, y if kept is None else y[kept])
        weights = self._weights(codes, weights)
        rows, d = (1 if len(self.classes_) == 2 else len(self.classes_)), data.shape[1]
        if first:
            plan = self._plan((d,))
            new = Stream.new(plan, (d,), data.dtype, (), options.name)
            fitted = hasattr(self, "coef_")
            self.streams_ = [new.at(self.coef_[i], self.intercept_[i]) if fitted else new for i in range(rows)]
        self.streams_ = [
            stream.after(Logistic(), data, sign(codes, i, rows), weights, options.intercept)
            for i, stream in enumerate(self.streams_)
        ]
        self.coef_ = np.stack([stream.coef for stream in self.streams_])
        self.intercept_ = np.array([stream.level for stream in self.streams_], self.coef_.dtype)
        self._streamed(self.streams_)
        return self

    def predict_proba(self, X: FeatureMatrix) -> np.ndarray:
        """Probabilities of the classes; with more than two, each class's against the rest, divided by their sum."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        p = np.maximum(expit(scores), np.finfo(scores.dtype).tiny)
        return p / p.sum(axis=1, keepdims=True)


def sign(codes: np.ndarray, i: int, rows: int) -> np.ndarray:
    """1 for the second of two classes, or for class i against the rest; -1 for the others."""
    return np.where(codes == (1 if rows == 1 else i), 1.0, -1.0)
