"""What classifiers over many balls share: rows with classes and weights, predictions at a radius, what a fit leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted, validate_data

from extremal import checks
from extremal.checks import InputError
from extremal.rounding.exact import violation
from extremal.sets.norms.balls import L1Ball
from extremal.sklearn.answer import Answer
from extremal.sklearn.classes import LinearClassifier
from extremal.sklearn.options import Options, read_options, read_weights
from extremal.sklearn.paths import balls
from extremal.sklearn.paths.balls import BallPath, Problem
from extremal.support.kinds import MatrixLike


class PathClassifier(LinearClassifier):
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

    verbose = 0  # a path writes nothing

    def decision_function(self, X: MatrixLike, radius: float | None = None) -> np.ndarray:
        """<a, x> + b for each row a and the given radius, one of ``radii_``; (n,) for two classes, (n, K) for more."""
        return self._scores(X, *at_radius(self, radius))

    def predict(self, X: MatrixLike, radius: float | None = None) -> np.ndarray:
        """The class of the largest score for each row."""
        return self._class_of(self.decision_function(X, radius))

    def predict_log_proba(self, X: MatrixLike, radius: float | None = None) -> np.ndarray:
        """Logarithms of the probabilities, of shape (n, K)."""
        return self._logs(self.decision_function(X, radius))

    def predict_proba(self, X: MatrixLike, radius: float | None = None) -> np.ndarray:
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
    model._labels(y if given is None else y[given > 0])
    classes = model.classes_
    codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)  # rows without a weight may be of no class
    weights = model._weights(codes, given)
    if weights is not None and len(np.unique(codes[weights > 0])) < len(classes):
        raise InputError(
            f"`{type(model).__name__}(class_weight=...)` must be positive for all classes, got {model.class_weight!r}"
        )
    return PathRows(X, y, classes, codes, given, weights)


def read_path_options(model: PathClassifier) -> Options:
    """The options that fits over many balls share, checked."""
    call = type(model).__name__
    checks.whole(call, "n_radii", model.n_radii, 1)
    if not 0 < checks.positive(call, "eps", model.eps) < 1:
        raise InputError(f"`{call}(eps=...)` must be a number in (0, 1), got {model.eps!r}")
    return read_options(model)


def radii_for(model: PathClassifier, ps: list[Problem]) -> np.ndarray:
    """The radii that were given, or the grid of the problems."""
    if model.radii is None:
        return balls.grid(ps, model.n_radii, model.eps, model.tol)
    return balls.read_radii(type(model).__name__, model.radii)


def keep_path(model: PathClassifier, classes: np.ndarray, radii: np.ndarray, found: BallPath) -> None:
    """Keep a path in the attributes of an estimator."""
    two = len(classes) == 2
    model.classes_, model.radii_ = classes, radii
    model.coefs_, model.intercepts_ = (a[:, 0] if two else a for a in (found.coefs, found.intercepts))
    model.objectives_, model.dual_gaps_ = (a[:, 0] if two else a for a in (found.objectives, found.gaps))
    model.n_nonzero_ = np.count_nonzero(found.coefs.any(axis=1), axis=1)


def choose(model: PathClassifier, i: int, found: BallPath, n: int, others: Sequence[BallPath] = ()) -> Answer:
    """Make the solution of radius number i the one that predicts.

    Its answer has cost all that was done for n rows: the path itself, and others that were needed.
    """
    model.radius_ = float(model.radii_[i])
    model.coef_, model.intercept_ = at_radius(model, model.radius_)
    C, paths = L1Ball(model.radius_).on(model.coef_.shape[1:]), (found, *others)
    return Answer(
        model.coef_,
        float(np.sum(found.objectives[i])),
        float(np.sum(found.gaps[i])),
        C,
        max(violation(C, row) for row in model.coef_),
        found.status,
        n_iter=sum(p.n_iter for p in paths),
        n_grads=sum(p.n_grads for p in paths),
        n=n,
        method=f"a path over {len(model.radii_)} balls",
    )


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


def worst_gap(found: BallPath, radii: np.ndarray) -> str:
    """The largest gap of a path, in words."""
    gaps = (found.gaps / np.maximum(found.objectives, 1e-300)).max(axis=1)
    i = int(gaps.argmax())
    return f"a certified gap of {gaps[i]:.2g} of the objective at radius {radii[i]:.4g}"
