"""What classifiers over many balls share: rows with classes and weights, predictions at a radius, what a fit leaves."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from extremal import checks
from extremal.checks import InputError
from extremal.rounding.exact import violation
from extremal.sets.norms.balls import L1Ball
from extremal.sklearn.certified import HINTS, FitCertificate, read_weights, seed_of
from extremal.sklearn.hints import FeatureMatrix
from extremal.sklearn.paths import balls
from extremal.sklearn.paths.balls import BallPath, PathOptions, Problem
from extremal.sklearn.shared import ConstrainedClassifier


class PathClassifier(ConstrainedClassifier):
    """Predictions of a linear classifier that has been fitted for many radii."""

    n_features_in_: int
    radii: ArrayLike | None
    n_radii: int
    eps: float
    radius_: float
    radii_: np.ndarray
    coefs_: np.ndarray
    intercepts_: np.ndarray
    objectives_: np.ndarray
    dual_gaps_: np.ndarray
    n_nonzero_: np.ndarray

    def decision_function(self, X: FeatureMatrix, radius: float | None = None) -> np.ndarray:
        """<a, x> + b for each row a and the given radius, one of ``radii_``; (n,) for two classes, (n, K) for more."""
        coef, intercept = at_radius(self, radius)
        scores = np.asarray(self._rows(X) @ coef.T) + intercept
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: FeatureMatrix, radius: float | None = None) -> np.ndarray:
        """The class of the largest score for each row."""
        scores = self.decision_function(X, radius)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def predict_log_proba(self, X: FeatureMatrix, radius: float | None = None) -> np.ndarray:
        """Logarithms of the probabilities, of shape (n, K)."""
        return log_probabilities(self.decision_function(X, radius))

    def predict_proba(self, X: FeatureMatrix, radius: float | None = None) -> np.ndarray:
        """Probabilities of the classes, of shape (n, K); of more than two, one against the rest, made to sum to 1."""
        return np.exp(self.predict_log_proba(X, radius))


@dataclass(frozen=True)
class PathRows:
    """Checked data: a class number and a weight for each row."""

    X: Any  # array or CSR
    y: np.ndarray  # labels as they were given
    classes: np.ndarray  # those of rows with a weight
    codes: np.ndarray  # number of the class
    given: np.ndarray | None  # weights of the rows
    weights: np.ndarray | None  # times those of their classes

    def take(self, rows: np.ndarray) -> PathRows:
        """Some of the rows."""
        given, weights = (None if w is None else w[rows] for w in (self.given, self.weights))
        return PathRows(self.X[rows], self.y[rows], self.classes, self.codes[rows], given, weights)

    def weighted(self, rows: Any) -> np.ndarray:
        """The indices of the rows, of all if None, without those of weight 0."""
        found = np.arange(len(self.codes)) if rows is None else np.arange(len(self.codes))[rows]
        return found if self.weights is None else found[self.weights[found] > 0]

    def used(self) -> PathRows:
        """All rows with a weight; a copy of X only if some have none."""
        return self if self.weights is None or self.weights.all() else self.take(self.weighted(None))


def read_rows(model: PathClassifier, X: Any, y: Any, sample_weight: ArrayLike | None) -> PathRows:
    """Check what `fit` was given, and set the classes."""
    X, y = validate_data(model, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
    given = read_weights(model, sample_weight, X)
    model._labels(y, None if given is None else given[given > 0], None if given is None else np.flatnonzero(given))
    classes = model.classes_
    codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)  # rows without a weight may be of no class
    weights = model._weights(codes, given)
    if weights is not None and len(np.unique(codes[weights > 0])) < len(classes):
        raise InputError(
            f"`{type(model).__name__}(class_weight=...)` must be positive for all classes, got {model.class_weight!r}"
        )
    return PathRows(X, y, classes, codes, given, weights)


def log_probabilities(scores: np.ndarray) -> np.ndarray:
    """Logarithms of the probabilities of the classes: of two, or of one against the rest and then made to sum to 1.

    p = (1 - s(z), s(z)),   or   p_k = s(z_k) / sum_j s(z_j),   s(z) = 1 / (1 + exp(-z))
    """
    if scores.ndim == 1:
        return np.column_stack([log_expit(-scores), log_expit(scores)])
    logs = log_expit(scores)
    logs -= logs.max(axis=1, keepdims=True)
    return logs - np.log(np.exp(logs).sum(axis=1, keepdims=True))


def read_options(model: PathClassifier) -> PathOptions:
    """The options that fits over many balls share, checked."""
    call = type(model).__name__
    checks.whole(call, "n_radii", model.n_radii, 1)
    if not 0 < checks.positive(call, "eps", model.eps) < 1:
        raise InputError(f"`{call}(eps=...)` must be a number in (0, 1), got {model.eps!r}")
    tol, max_iter = checks.positive(call, "tol", model.tol), checks.whole(call, "max_iter", model.max_iter, 1)
    return PathOptions(checks.flag(call, "fit_intercept", model.fit_intercept), tol, max_iter, seed_of(model.random_state))


def radii_for(model: PathClassifier, ps: list[Problem]) -> np.ndarray:
    """The radii that were given, or the grid of the problems."""
    if model.radii is None:
        return balls.grid(ps, model.n_radii, model.eps, model.tol)
    return balls.read_radii(type(model).__name__, model.radii)


def store(
    model: PathClassifier, classes: np.ndarray, radii: np.ndarray, found: BallPath, others: Sequence[BallPath] = ()
) -> None:
    """Keep a path in the attributes of a fitted estimator, and the cost of others that were needed."""
    two = len(classes) == 2
    model.classes_, model.radii_ = classes, radii
    model.coefs_, model.intercepts_ = (a[:, 0] if two else a for a in (found.coefs, found.intercepts))
    model.objectives_, model.dual_gaps_ = (a[:, 0] if two else a for a in (found.objectives, found.gaps))
    model.n_nonzero_ = np.count_nonzero(found.coefs.any(axis=1), axis=1)
    model.n_iter_, model.n_grads_ = max(1, sum(p.n_iter for p in (found, *others))), sum(p.n_grads for p in (found, *others))
    model.status_ = found.status


def choose(model: PathClassifier, i: int, n: int) -> None:
    """Make the solution of radius number i the one that predicts; n is the number of rows."""
    model.radius_ = float(model.radii_[i])
    model.coef_, model.intercept_ = at_radius(model, model.radius_)
    model.objective_, model.dual_gap_ = float(np.sum(model.objectives_[i])), float(np.sum(model.dual_gaps_[i]))
    model.constraint_ = L1Ball(model.radius_).on(model.coef_.shape[1:])
    model.constraint_violation_ = max(violation(model.constraint_, row) for row in model.coef_)
    model.certificate_ = FitCertificate.of(model, n, f"a path over {len(model.radii_)} balls")


def at_radius(model: PathClassifier, radius: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of shape (K, d) and intercepts of shape (K,) of one radius; those that predict if it is left out."""
    check_is_fitted(model)
    if radius is None:
        return model.coef_, model.intercept_
    same = np.flatnonzero(np.isclose(model.radii_, radius, rtol=1e-6, atol=0))
    if not same.size:
        near = ", ".join(f"{r:.6g}" for r in model.radii_[np.argsort(np.abs(model.radii_ - radius))[:3]])
        raise InputError(f"`radius` must be one of the {len(model.radii_)} in `radii_`, the nearest are {near}; got {radius!r}")
    return np.atleast_2d(model.coefs_[same[0]]), np.atleast_1d(model.intercepts_[same[0]])


def warn(model: PathClassifier) -> None:
    """A warning if a gap is larger than it was to be."""
    if model.status_ == "tol":
        return
    gaps = np.atleast_2d(model.dual_gaps_.T / np.maximum(model.objectives_.T, 1e-300)).max(axis=0)
    i = int(gaps.argmax())
    hint = HINTS.get(model.status_, "accept a larger tol")
    warnings.warn(
        f"{type(model).__name__} ended ({model.status_}) with a certified gap of {gaps[i]:.2g} of the objective at radius "
        f"{model.radii_[i]:.4g}, more than tol={model.tol:g}: {hint}",
        ConvergenceWarning,
        stacklevel=3,
    )
