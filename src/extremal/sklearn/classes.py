"""Shared parts of linear classifiers: classes, their weights, decisions and probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from extremal.data.rows import RowData
from extremal.losses.base import Loss
from extremal.objectives.held_targets import HeldClasses
from extremal.sklearn.held import OwnScore
from extremal.sklearn.mistakes import check_gaps
from extremal.sklearn.options import is_fitted
from extremal.sklearn.shared import ConstrainedModel, RowsEstimator, streams
from extremal.support.kinds import MatrixLike


def positives(classes: int) -> Sequence[int]:
    """The classes that have their own coefficients: the second of two, or each of several."""
    return (1,) if classes == 2 else range(classes)


class LinearClassifier(OwnScore, ClassifierMixin, RowsEstimator):
    """Classes, their weights, and decisions."""

    class_weight: Any
    classes_: np.ndarray
    coef_: np.ndarray
    intercept_: np.ndarray
    _joint = False  # whether one model scores all classes, instead of one model for each class against the rest

    def _labels(self, y: np.ndarray) -> np.ndarray:
        """The classes of the rows as numbers from 0."""
        check_gaps(self, y)
        self.classes_ = np.unique(y)
        if len(self.classes_) != 2 or y.ndim > 1:
            check_classification_targets(y)  # this takes longer than a pass, and two values are always classes
        self._check_classes()
        return (y == self.classes_[1]).astype(np.intp) if len(self.classes_) == 2 else np.searchsorted(self.classes_, y)

    def _check_classes(self) -> None:
        """Refuse rows of a single class."""
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs rows of at least two classes (with a positive weight), the data has one class: "
                f"{self.classes_[0]!r}"
            )

    def _held_classes(self, data: RowData) -> tuple[Any, Any]:
        """Class numbers and weights for rows that bring their own targets."""
        found = HeldClasses.of(f"{type(self).__name__}.fit", data)
        self.classes_ = found.labels
        self._check_classes()
        return found.codes(data), found.weights(data, self._each(lambda: found.totals))

    def _weights(self, codes: np.ndarray, sample_weight: np.ndarray | None) -> np.ndarray | None:
        """Weights of the rows times those of their classes. Rows of weight 0 do not count."""
        each = self._each(lambda: np.bincount(codes, sample_weight, len(self.classes_)))  # a row of weight 2 counts as two rows
        return sample_weight if each is None else each[codes] * (1.0 if sample_weight is None else sample_weight)

    def _each(self, totals: Callable[[], np.ndarray]) -> np.ndarray | None:
        """The weight of each class, given the total weight of its rows; None without class weights."""
        if self.class_weight is None:
            return None
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            total = totals()
            each = total.sum() / (len(total) * np.where(total > 0, total, 1.0))
        else:
            each = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_)
        if not (np.isfinite(each) & (each > 0)).all():
            name = type(self).__name__
            raise InputError(f"`{name}(class_weight=...)` must be positive; to leave a class out, leave its rows out; got {each}")
        return each

    def _told(self, X: MatrixLike, function: Callable[[np.ndarray], np.ndarray] | None = None, radius: Any = None) -> np.ndarray:
        """Apply a function to the scores <x, w> + b: (n,) for two classes, positive for the second; (n, classes) otherwise."""
        check_is_fitted(self)
        return self._of_rows(X, *self._teller(function, radius))

    def _predictor(self) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        return self._teller(self._class_of)

    def _teller(
        self, function: Callable[[np.ndarray], np.ndarray] | None, radius: Any = None
    ) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        """The coefficients, and a function of the products with them."""
        coef, intercept = self._at(radius)

        def told(z: np.ndarray) -> np.ndarray:
            scores = z + intercept
            if len(self.classes_) == 2:
                scores = scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]
            return scores if function is None else function(scores)

        return coef.T, told

    def _at(self, radius: float | None) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients and intercepts. Classifiers with many radii return those of one radius."""
        return self.coef_, self.intercept_

    def _class_of(self, scores: np.ndarray) -> np.ndarray:
        """The class with the largest score in each row."""
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def _logs(self, scores: np.ndarray) -> np.ndarray:
        """Log-probabilities of the classes, one row for each row of X.

        p = (1 - s(z), s(z)) for two classes,   s(z) = 1 / (1 + exp(-z))
        p_k = s(z_k) / sum_j s(z_j) for several, each against the rest;   p_k = exp(z_k) / sum_j exp(z_j) in one model
        """
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return log_softmax(scores if self._joint else log_expit(scores), axis=1)

    def _shares(self, scores: np.ndarray) -> np.ndarray:
        """Probabilities of the classes, one row for each row of X."""
        return np.exp(self._logs(scores))

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Margins <x, w> + b: (n,) for two classes, positive for the second; (n, classes) otherwise."""
        return self._told(X)

    def predict(self, X: MatrixLike) -> np.ndarray:
        """The class with the largest margin."""
        return self._told(X, self._class_of)

    def predict_log_proba(self, X: MatrixLike) -> np.ndarray:
        """Log-probabilities, one row for each row of X; the columns follow the order of ``classes_``."""
        return self._told(X, self._logs)

    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Probabilities, one row for each row of X; the columns follow the order of ``classes_``."""
        return self._told(X, self._shares)


class ConstrainedClassifier(LinearClassifier, ConstrainedModel):
    """A classifier under a constraint."""

    @available_if(streams)
    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Update the fit with a batch that is seen once, by steps along averaged gradients; the user guide lists the limits.

        ``classes`` lists all classes that will ever occur. The first batch requires it.
        """
        self._go_on(X, y, sample_weight, classes)
        return self

    def _read(self, y: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
        codes = self._labels(y)
        return codes, self._weights(codes, weights)

    def _held(self, data: RowData) -> tuple[Loss, list[Any], Any]:
        codes, weights = self._held_classes(data)
        return self._loss(codes, weights), self._targets(codes), weights

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
