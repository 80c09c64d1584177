"""What linear classifiers share: classes, their weights, decisions and probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_expit, log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from extremal.checks import InputError
from extremal.sklearn.options import is_fitted
from extremal.sklearn.shared import ConstrainedModel, RowsEstimator, streams
from extremal.support.kinds import MatrixLike


def positives(classes: int) -> Sequence[int]:
    """The classes that have coefficients of their own: the second of two, or each against the rest."""
    return (1,) if classes == 2 else range(classes)


class LinearClassifier(ClassifierMixin, RowsEstimator):
    """Classes, their weights, and decisions."""

    class_weight: Any
    classes_: np.ndarray
    coef_: np.ndarray
    intercept_: np.ndarray
    _joint = False  # whether scores of several classes are those of one model, and not of each class against the rest

    def _labels(self, y: np.ndarray) -> np.ndarray:
        """The rows' classes as numbers from 0."""
        self.classes_ = np.unique(y)
        if len(self.classes_) != 2 or y.ndim > 1:
            check_classification_targets(y)  # it takes longer than a pass, and two values are classes in any case
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs rows of at least two classes (with a positive weight), the data has one class: "
                f"{self.classes_[0]!r}"
            )
        return (y == self.classes_[1]).astype(np.intp) if len(self.classes_) == 2 else np.searchsorted(self.classes_, y)

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

    def _scores(self, X: MatrixLike, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        """<x, w> + b: (n,) for two classes, positive for the second; (n, classes) otherwise."""
        scores = np.asarray(self._rows(X).dot(coef.T)) + intercept
        if len(self.classes_) > 2:
            return scores
        return scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]

    def _class_of(self, scores: np.ndarray) -> np.ndarray:
        """The class of the largest score of each row."""
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def _logs(self, scores: np.ndarray) -> np.ndarray:
        """Logarithms of the probabilities of the classes, a row each.

        p = (1 - s(z), s(z)) for two classes,   s(z) = 1 / (1 + exp(-z))
        p_k = s(z_k) / sum_j s(z_j) for several, each against the rest;   p_k = exp(z_k) / sum_j exp(z_j) in one model
        """
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return log_softmax(scores if self._joint else log_expit(scores), axis=1)

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Margins <x, w> + b: (n,) for two classes, positive for the second; (n, classes) otherwise."""
        check_is_fitted(self)
        return self._scores(X, self.coef_, self.intercept_)

    def predict(self, X: MatrixLike) -> np.ndarray:
        """The class of the largest margin."""
        return self._class_of(self.decision_function(X))

    def predict_log_proba(self, X: MatrixLike) -> np.ndarray:
        """Logarithms of the probabilities of the classes, a row each; their order is that of ``classes_``."""
        return self._logs(self.decision_function(X))

    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Probabilities of the classes, a row each; their order is that of ``classes_``."""
        return np.exp(self.predict_log_proba(X))


class ConstrainedClassifier(LinearClassifier, ConstrainedModel):
    """A classifier under a constraint."""

    @available_if(streams)
    def partial_fit(
        self, X: MatrixLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Go on with a batch of rows that are seen once, by steps along averaged gradients; see the user guide for its limits.

        ``classes`` are all classes that will come; they are needed with the first batch.
        """
        self._go_on(X, y, sample_weight, classes)
        return self

    def _read(self, y: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
        codes = self._labels(y)
        return codes, self._weights(codes, weights)

    def _read_batch(self, y: np.ndarray, weights: np.ndarray | None, classes: Any) -> tuple[np.ndarray, np.ndarray | None]:
        name = type(self).__name__
        if not is_fitted(self, "classes_"):
            if classes is None:
                raise InputError(f"`{name}.partial_fit(classes=...)` must be given with the first batch")
            self.classes_ = np.unique(classes)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise InputError(f"`{name}.partial_fit(classes=...)` must be those of the first batch, {self.classes_}")
        codes = np.searchsorted(self.classes_, y)
        strange = (codes == len(self.classes_)) | (self.classes_[np.minimum(codes, len(self.classes_) - 1)] != y)
        if strange.any():
            raise InputError(f"`{name}.partial_fit(y=...)` has {y[strange][0]!r}, which is none of {self.classes_}")
        return codes, self._weights(codes, weights)
