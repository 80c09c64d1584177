"""Non-negative weights of sum one for the predictions of several models, for scikit-learn."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import check_cv, cross_val_predict
from sklearn.utils import ClassifierTags, RegressorTags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    assert_all_finite,
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from extremal.checks import InputError
from extremal.data.dense import Dense
from extremal.objectives.linear import LinearModel
from extremal.run.front import minimize
from extremal.sets.simplices.plain import Simplex
from extremal.sklearn.answer import Answer, CertifiedEstimator, answer_at
from extremal.sklearn.held import check_in_memory
from extremal.sklearn.mistakes import check_gaps
from extremal.sklearn.options import Folds, Models, Options, is_fitted, numbered, read_options, read_weights
from extremal.sklearn.simplex.mixtures import MixtureLogLoss, aligned, with_weights_of
from extremal.sklearn.simplex.solving import SimplexRows, solve_simplex
from extremal.support.kinds import MatrixLike

FOLDS = 5
LOG_ATOL = 1e-12  # gaps of the mean log loss below this are negligible


def _of_classifiers(self: StackingWeights) -> bool:
    return self._kind() == "classifier"


@dataclass(eq=False, repr=False)
class StackingWeights(CertifiedEstimator):
    """Predict with the weighted mean of several models, with non-negative weights that sum to one.

        regressors:    w = argmin of 1/2 mean_i s_i (sum_m w_m p_m(x_i) - y_i)^2           over the simplex
        classifiers:   w = argmin of -mean_i s_i log sum_m w_m p_m(y_i | x_i)               over the simplex

    p_m is the prediction of model m for rows that it was not fitted on. It comes from cross-validation or, with ``cv="prefit"``,
    from data X that the fitted models have not seen. Both problems are convex, and ``dual_gap_`` bounds the distance from the
    best objective. Regressors of several outputs share their weights; classifiers mix probabilities. Under the log loss a model
    that is confidently wrong costs much, and gets little weight. A class that a fitted model has not seen gets probability 0 from
    it.

    Cost: the fits of the models, then some passes over a table of n rows with one column per model.

    Parameters
    ----------
    estimators : list of models, or of (name, model)
        All regressors, or all classifiers with ``predict_proba``. Models without a name are named after their class.
    loss : "auto", "squared" or "log_loss"
        "squared" for regressors, "log_loss" for classifiers.
    cv : int, splitter, iterable of splits, None or "prefit"
        A number of folds (None is 5), a splitter or splits: each model, fitted or not, is refitted on the other folds for its
        predictions, and then on all of X. "prefit" uses the fitted models unchanged. X of ``fit`` must then be data that they
        have not seen: on known rows, the model that overfits most gets all the weight. ``clone``, and thus cross-validation of
        this estimator, makes models unfitted again. Models in a ``FrozenEstimator`` always stay fitted, and need unseen data,
        too.
    tol, max_iter, verbose
        As for `SimplexRegression`.

    Attributes
    ----------
    weights_ : dict of str to float
        The weights by name, in the order of ``estimators``.
    coef_ : array of shape (n_estimators,)
        The weights as an array.
    estimators_, named_estimators_ : list, dict
        The fitted models.
    classes_ : array
        Class labels, for classifiers.
    dual_gap_, objective_, constraint_violation_, constraint_, n_iter_, n_grads_, status_, certificate_, trace_
        As for `SimplexRegression`.

    References
    ----------
    Breiman (1996), Stacked regressions, Machine Learning 24. van der Laan, Polley, Hubbard (2007), Super learner, Stat. Appl.
    Genet. Mol. Biol. 6. Yao, Vehtari, Simpson, Gelman (2018), Using stacking to average predictive distributions, Bayesian Anal.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from extremal.sklearn import StackingWeights
    >>> X, y = make_regression(300, 5, noise=5.0, random_state=0)
    >>> models = [("linear", LinearRegression().fit(X[:200], y[:200])), ("tree", DecisionTreeRegressor().fit(X[:200], y[:200]))]
    >>> stack = StackingWeights(models).fit(X, y)                                  # five folds: all models are fitted anew
    >>> stack.weights_["linear"] > 0.95, sum(stack.weights_.values()), stack.predict(X[:3]).shape
    (True, 1.0, (3,))
    >>> held_out = StackingWeights(models, cv="prefit").fit(X[200:], y[200:])      # as they are, on data that they have not seen
    >>> held_out.weights_["linear"] > 0.95, held_out.estimators_[0] is models[0][1]
    (True, True)
    """

    estimators: Models
    _: KW_ONLY
    loss: Literal["auto", "squared", "log_loss"] = "auto"
    cv: Folds | Literal["prefit"] = FOLDS
    tol: float = 1e-6
    max_iter: int = 1000
    verbose: int = 0

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = self._kind()
        tags.target_tags.required = True
        if tags.estimator_type == "classifier":
            tags.classifier_tags = ClassifierTags()
        else:
            tags.regressor_tags = RegressorTags(poor_score=True)
            tags.target_tags.multi_output = self._takes_several()
        tags.input_tags.sparse = all(get_tags(model).input_tags.sparse for _, model in self._named())
        return tags

    def fit(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> StackingWeights:
        """Find the weights, and refit the models. With cv="prefit" the models stay, and X must hold rows that they have not seen.

        For regressors, y may have several columns. ``sample_weight`` weights the fit of the weights, and models that accept it.
        """
        (named, loss), options = self._check_parameters(), read_options(self)
        prefit = self._prefit(named)
        check_in_memory(
            "StackingWeights.fit", X, "hands rows in memory to its models, and takes", "give it some of the rows, as arrays"
        )
        validate_data(self, X, skip_check_array=True)  # the models check their input
        if y is None:
            raise ValueError("StackingWeights requires y to be passed, but the target y is None")
        y = self._targets(y, named, prefit, loss)
        check_consistent_length(X, y)
        weights = read_weights(self, sample_weight, X)
        if loss == "log_loss" and not prefit:
            used = np.unique(y if weights is None else y[weights > 0])
            if len(used) < 2:
                what = "must have rows of two classes, of positive weight"
                raise InputError(f"`StackingWeights.fit(y=...)` {what}, got {'one class' if len(used) else 'none'}")
        labels = y if loss == "squared" else self.classes_[y]
        table = self._table(X, y, labels, named, prefit, weights)
        models: Any = [model if prefit else clone(model) for _, model in named]
        self.estimators_ = models if prefit else [model.fit(X, labels, **with_weights_of(model, weights)) for model in models]
        self.named_estimators_ = {name: model for (name, _), model in zip(named, self.estimators_, strict=True)}
        with self._shown():
            answer = (weigh_squared if loss == "squared" else weigh_log)(table, y, weights, options)
            self.coef_ = answer.x
            self.weights_ = {name: float(w) for (name, _), w in zip(named, self.coef_, strict=True)}
            self._store(answer)
        return self

    def predict(self, X: MatrixLike) -> np.ndarray:
        """The weighted mean of the models' predictions; for classifiers, the class with the largest mean probability."""
        self._check_rows(X)
        if self._kind() == "classifier":
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        return self._mean(lambda model: np.asarray(model.predict(X)))

    @available_if(_of_classifiers)
    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """The weighted mean of the models' probabilities; the columns follow ``classes_``."""
        self._check_rows(X)
        return self._mean(lambda model: aligned(model, X, self.classes_))

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R^2 for regressors, accuracy for classifiers."""
        measure = accuracy_score if self._kind() == "classifier" else r2_score
        return measure(y, self.predict(X), sample_weight=sample_weight)

    def _mean(self, call: Any) -> np.ndarray:
        """sum_m w_m call(m), over the models with positive weight."""
        return np.sum([w * call(model) for w, model in zip(self.coef_, self.estimators_, strict=True) if w > 0], axis=0)

    def _check_rows(self, X: Any) -> None:
        check_is_fitted(self)
        if getattr(X, "ndim", 2) == 1:
            raise ValueError("Expected 2D array, got 1D array instead. Reshape your data: X.reshape(1, -1) is a single sample")
        validate_data(self, X, reset=False, skip_check_array=True)

    def _named(self) -> list[tuple[str, Any]]:
        """The models with names. Models without one get the name of their class, with a number if it repeats."""
        given: Any = self.estimators
        if not isinstance(given, (list, tuple)) or not len(given):
            what = "a list of models, or of (name, model)"
            raise InputError(f"`StackingWeights(estimators=...)` must be {what}, got {given!r}")
        if all(isinstance(item, tuple) and len(item) == 2 for item in given):
            return [(str(name), model) for name, model in given]
        names = numbered([type(model).__name__.lower() for model in given], "-")
        return list(zip(names, given, strict=True))

    def _takes_several(self) -> bool:
        """Whether all models take several outputs."""
        return all(get_tags(model).target_tags.multi_output for _, model in self._named())

    def _kind(self) -> str:
        return "classifier" if is_classifier(self._named()[0][1]) else "regressor"

    def _check_parameters(self) -> tuple[list[tuple[str, Any]], str]:
        """The models by name, and the loss."""
        named, kind = self._named(), self._kind()
        names = [name for name, _ in named]
        if len(set(names)) < len(names):
            raise InputError(f"`StackingWeights(estimators=...)` must have names of their own, got {names}")
        for name, model in named:
            if not (is_classifier(model) and hasattr(model, "predict_proba") if kind == "classifier" else is_regressor(model)):
                wanted = "a classifier with predict_proba" if kind == "classifier" else "a regressor"
                raise InputError(f"`StackingWeights(estimators=...)`: {name!r} must be {wanted}, as the first is, got {model!r}")
        losses = {"classifier": "log_loss", "regressor": "squared"}
        if self.loss not in ("auto", losses[kind]):
            raise InputError(f"`StackingWeights(loss=...)` must be 'auto' or {losses[kind]!r} for a {kind}, got {self.loss!r}")
        return named, losses[kind]

    def _prefit(self, named: list[tuple[str, object]]) -> bool:
        """Whether the fitted models are used unchanged."""
        if not isinstance(self.cv, str):
            return False
        if self.cv != "prefit":
            what = "a number of folds, a splitter, splits, or 'prefit' for models that are fitted on other data"
            raise InputError(f"`StackingWeights(cv=...)` must be {what}, got {self.cv!r}")
        unfitted = [name for name, model in named if not is_fitted(model)]
        if unfitted:
            hint = "fit all of them, or give a number of folds: cv=5"
            raise NotFittedError(f"`StackingWeights(cv='prefit')`: {', '.join(unfitted)} must be fitted; {hint}")
        return True

    def _targets(self, y: Any, named: list[tuple[str, Any]], prefit: bool, loss: str) -> np.ndarray:
        """Numbers unchanged, or labels as indices into ``classes_``."""
        if loss == "squared":
            y = check_array(y, ensure_2d=False, dtype="numeric", input_name="y")
            return y if self._takes_several() else column_or_1d(y, warn=True)
        y = column_or_1d(y, warn=True)
        check_gaps(self, y)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        seen = [model.classes_ for _, model in named] if prefit else []
        self.classes_, codes = np.unique(np.concatenate([y, *seen]), return_inverse=True)
        return codes[: len(y)]

    def _table(self, X: MatrixLike, y: Any, labels: object, named: Any, prefit: bool, weights: np.ndarray | None) -> np.ndarray:
        """One column per model: predictions for rows that it was not fitted on, or probabilities of the rows' classes."""
        proba = self._kind() == "classifier"
        folds = None if prefit else check_cv(cast(Any, self.cv), labels, classifier=proba)
        columns = []
        for _, model in named:
            p: Any
            if prefit:
                p = aligned(model, X, self.classes_) if proba else model.predict(X)
            else:
                how, params = "predict_proba" if proba else "predict", with_weights_of(model, weights)
                p = cross_val_predict(clone(model), X, labels, cv=folds, method=how, params=params)
            columns.append(p[np.arange(len(y)), y] if proba else np.asarray(p, np.float64).reshape(-1))
        table = np.column_stack(columns).astype(np.float64)
        assert_all_finite(table, input_name="predictions")
        return table


def weigh_squared(table: np.ndarray, y: np.ndarray, weights: np.ndarray | None, options: Options) -> Answer:
    """The weights by least squares. A row with k outputs counts as k rows."""
    each = None if weights is None else np.repeat(weights, y.size // len(y))
    rows = SimplexRows(Dense(table), y.reshape(-1, 1), each, centred=False)
    return solve_simplex(rows, Simplex().on(rows.columns), options, [None])[0]


def weigh_log(table: np.ndarray, y: np.ndarray, weights: np.ndarray | None, options: Options) -> Answer:
    """The weights that minimise the log loss."""
    f, C = LinearModel(MixtureLogLoss(), table, np.zeros(len(y)), weights), Simplex().on(table.shape[1])
    r = minimize(f, C, tol=options.tol, atol=LOG_ATOL, max_iter=options.max_iter)
    return answer_at(f, C, r.x, options.tol, LOG_ATOL, r)
