"""What the estimators of constrained linear models share: parameters, data, attributes of the fit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from extremal import checks
from extremal.checks import InputError
from extremal.data.accept import as_data
from extremal.data.base import Data
from extremal.sets.words.read import Reading, read_constraint
from extremal.sklearn.certified import FitCertificate, check_options, read_weights, report, seed_of
from extremal.sklearn.fitting import Fit, Options
from extremal.sklearn.hints import FeatureMatrix, SolverHint
from extremal.sklearn.streams import Stream

SPARSE = ["csr", "csc", "coo"]


def streams(model: Any) -> bool:
    """Whether ``partial_fit`` makes sense: the set is bounded, its radius known beforehand, and so are the classes' weights."""
    if isinstance(getattr(model, "class_weight", None), str):
        return False
    if not (model.constraint is None or isinstance(model.constraint, str)):
        return True
    try:
        plan = model._plan(getattr(model, "coef_", np.zeros(4)).T.shape[:1])
    except InputError:
        return True  # it will be said when it is called
    return plan.bounded and plan.fraction is None


class ConstrainedModel(BaseEstimator):
    """Parameters and plumbing of a linear model under a constraint."""

    constraint: Any
    radius: Any
    fit_intercept: bool
    solver: SolverHint
    tol: float
    max_iter: int
    warm_start: bool
    random_state: Any
    verbose: int

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _options(self) -> Options:
        check_options(self)
        checks.flag(type(self).__name__, "fit_intercept", self.fit_intercept)
        seed = seed_of(self.random_state)
        name = type(self).__name__
        return Options(name, self.fit_intercept, self.solver, self.tol, self.max_iter, seed, self.verbose)

    def _plan(self, shape: tuple[int, ...]) -> Reading:
        """The constraint, read for coefficients of a shape."""
        names = getattr(self, "feature_names_in_", None)
        return read_constraint(self.constraint, self.radius, shape, None if names is None else list(names))

    def _validated(self, X: FeatureMatrix, y: ArrayLike, reset: bool = True, **how: Any) -> tuple[np.ndarray, np.ndarray]:
        kinds = {"dtype": [np.float64, np.float32], "accept_sparse": SPARSE, "accept_large_sparse": True}
        return validate_data(self, X, y, reset=reset, **kinds, **how)  # type: ignore[return-value]

    def _rows(self, X: Any) -> Any:
        """Rows to predict for."""
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=[np.float64, np.float32], accept_sparse=SPARSE, accept_large_sparse=True)

    def _used(self, X: Any, sample_weight: ArrayLike | None) -> tuple[Data, np.ndarray | None, np.ndarray | None]:
        """The rows that have weight, their weights, and which they are (None for all)."""
        weights = read_weights(self, sample_weight, X)
        if weights is None or weights.all():
            return as_data(X), weights, None
        kept = np.flatnonzero(weights)
        return as_data(X.tocsr()[kept] if hasattr(X, "tocsr") else X[kept]), weights[kept], kept

    def _earlier(self, shape: tuple[int, ...]) -> np.ndarray | None:
        """The coefficients of the last fit, if this one is to begin there."""
        coef = getattr(self, "coef_", None)
        return coef if self.warm_start and coef is not None and coef.shape == shape else None

    def _take(self, fits: list[Fit]) -> None:
        """The attributes of the fit; of several the sum of the objectives, which the sum of the gaps certifies."""
        longest = max(fits, key=lambda fit: fit.n_iter)
        worst = next((fit.status for fit in fits if fit.status != "tol"), "tol")
        self.objective_, self.dual_gap_ = float(sum(fit.value for fit in fits)), float(sum(fit.gap for fit in fits))
        self.constraint_violation_ = float(max(fit.violation for fit in fits))
        self.n_grads_, self.n_iter_ = sum(fit.n_grads for fit in fits), longest.n_iter
        self.status_, self.constraint_, self.trace_ = worst, longest.C, longest.trace
        self.certificate_ = FitCertificate.of(self, longest.n, longest.method, longest.convex)
        report(self)

    def _streamed(self, streams: list[Stream]) -> None:
        """The attributes after a batch: no certificate, which only all rows can give."""
        for name in ("certificate_", "trace_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        self.objective_ = self.dual_gap_ = float("nan")
        self.n_iter_, self.n_grads_ = max(s.k for s in streams), sum(s.seen for s in streams)
        self.status_, self.constraint_ = "partial", streams[0].C
        self.constraint_violation_ = float(max(s.violation for s in streams))

    def _end_streams(self) -> None:
        """A fit begins anew: batches that come after it go on from its coefficients."""
        for name in ("stream_", "streams_", "stream_loss_"):
            self.__dict__.pop(name, None)


class ConstrainedClassifier(ClassifierMixin, ConstrainedModel):
    """Classes, their weights, and decisions."""

    class_weight: Any
    classes_: np.ndarray
    coef_: np.ndarray
    intercept_: np.ndarray

    def _labels(self, y: Any, sample_weight: np.ndarray | None, kept: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """The rows' classes as numbers from 0, and their weights with those of the classes; only rows in use count."""
        y = y if kept is None else y[kept]
        self.classes_ = np.unique(y)
        if len(self.classes_) != 2 or y.ndim > 1:
            check_classification_targets(y)  # it takes longer than a pass, and two values are classes in any case
        codes = (y == self.classes_[1]).astype(np.intp) if len(self.classes_) == 2 else np.searchsorted(self.classes_, y)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs rows of at least two classes (with a positive weight), the data has one class: "
                f"{self.classes_[0]!r}"
            )
        return codes, self._weights(codes, sample_weight)

    def _weights(self, codes: np.ndarray, sample_weight: np.ndarray | None) -> np.ndarray | None:
        """Weights of rows with those of their classes; rows of no weight count for nothing."""
        if self.class_weight is None:
            return sample_weight
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            total = np.bincount(codes, sample_weight, len(self.classes_))  # as if rows of weight 2 were there twice
            each = total.sum() / (len(total) * np.where(total > 0, total, 1.0))
        else:
            each = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_)
        if not (np.isfinite(each) & (each > 0)).all():
            name = type(self).__name__
            raise InputError(f"`{name}(class_weight=...)` must be positive; to leave a class out, leave its rows out; got {each}")
        return each[codes] * (1.0 if sample_weight is None else sample_weight)

    def decision_function(self, X: FeatureMatrix) -> np.ndarray:
        """Margins <x, w> + b: (n,) for two classes, positive for the second; (n, classes) otherwise."""
        X = self._rows(X)
        scores = np.asarray(X @ self.coef_.T) + self.intercept_
        if len(self.classes_) > 2:
            return scores
        return scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]

    def predict(self, X: FeatureMatrix) -> np.ndarray:
        """The class of the largest margin."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def predict_proba(self, X: FeatureMatrix) -> np.ndarray:
        """Probabilities of the classes, a row each; their order is that of ``classes_``."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros_like(scores), scores])
        scores = scores - scores.max(axis=1, keepdims=True)
        e = np.exp(scores)
        return e / e.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X: FeatureMatrix) -> np.ndarray:
        """Their logarithms."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return np.log(self.predict_proba(X))

    def _known_classes(self, classes: Any, y: np.ndarray) -> np.ndarray:
        """The classes of a stream, given with its first batch."""
        if not hasattr(self, "classes_"):
            if classes is None:
                raise InputError(f"`{type(self).__name__}.partial_fit(classes=...)` must be given with the first batch")
            self.classes_ = np.unique(classes)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise InputError(
                f"`{type(self).__name__}.partial_fit(classes=...)` must be those of the first batch, {self.classes_}"
            )
        codes = np.searchsorted(self.classes_, y)
        strange = (codes == len(self.classes_)) | (self.classes_[np.minimum(codes, len(self.classes_) - 1)] != y)
        if strange.any():
            raise InputError(
                f"`{type(self).__name__}.partial_fit(y=...)` has {y[strange][0]!r}, which is none of {self.classes_}"
            )
        return codes
