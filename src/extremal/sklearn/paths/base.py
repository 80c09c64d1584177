"""Shared parts of classifiers over many balls: parameters, rows with classes and weights, predictions at a radius, results.

Annotations are evaluated here, so that the constructors of estimators in other modules have types instead of strings.
"""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import validate_data

from extremal import checks
from extremal.checks import InputError
from extremal.losses.margin import Logistic
from extremal.objectives.held_targets import against_rest
from extremal.rounding.exact import violation
from extremal.sets.norms.balls import L1Ball
from extremal.sklearn.answer import Answer
from extremal.sklearn.classes import LinearClassifier, positives
from extremal.sklearn.fitting import model_of
from extremal.sklearn.held import brings_targets, check_alone, check_columns
from extremal.sklearn.mistakes import told
from extremal.sklearn.options import ClassWeight, Options, RandomState, read_options, read_weights
from extremal.sklearn.paths.balls import BallPath, Problem, grid
from extremal.support.kinds import MatrixLike


@dataclass(frozen=True)
class PathRows:
    """Checked data: a class number and a weight for each row."""

    X: Any  # array or CSR
    y: np.ndarray  # labels as given
    classes: np.ndarray  # the classes of rows with a positive weight
    codes: np.ndarray  # class number of each row
    given: np.ndarray | None  # weights of the rows, as given
    weights: np.ndarray | None  # weights of the rows times those of their classes

    def take(self, rows: np.ndarray) -> Self:
        """Some of the rows."""
        given, weights = (None if w is None else w[rows] for w in (self.given, self.weights))
        return type(self)(self.X[rows], self.y[rows], self.classes, self.codes[rows], given, weights)

    def weighted(self, rows: Any = slice(None)) -> np.ndarray:
        """The indices of the rows, without rows of weight 0."""
        found = np.arange(len(self.codes))[rows]
        return found if self.weights is None else found[self.weights[found] > 0]

    def used(self) -> Self:
        """The rows of positive weight; X is copied only if some rows have weight 0."""
        return self if self.weights is None or self.weights.all() else self.take(self.weighted())

    def problems(self, intercept: bool) -> list[Problem]:
        """The problem of two classes, or one problem for each class against the rest; all rows have a positive weight.

        If all rows are of one class, as may happen in a fold, half a row of the other class is assumed as well.
        """
        total, found = len(self.codes) if self.weights is None else float(self.weights.sum()), []
        for k in positives(len(self.classes)):
            y = against_rest(self.codes, k)
            alone = intercept and abs(y.sum()) == len(y)
            f = model_of(Logistic(), self.X, y, self.weights, intercept)
            found.append(Problem(f, y[0] * math.log(2 * total + 1) if alone else None))
        return found


@dataclass(eq=False, repr=False)
class PathClassifier(LinearClassifier):
    """A linear classifier that is fitted for many radii."""

    radii: ArrayLike | None = None
    _: KW_ONLY
    n_radii: int = 30
    eps: float = 1e-3
    fit_intercept: bool = True
    class_weight: ClassWeight = None
    tol: float = 1e-6
    max_iter: int = 1000
    random_state: RandomState = None
    verbose: int = 0

    def decision_function(self, X: MatrixLike, radius: float | None = None) -> np.ndarray:
        """<a, x> + b for each row a and the given radius, one of ``radii_``; (n,) for two classes, (n, K) for more."""
        return self._told(X, radius=radius)

    def predict(self, X: MatrixLike, radius: float | None = None) -> np.ndarray:
        return self._told(X, self._class_of, radius)

    def predict_log_proba(self, X: MatrixLike, radius: float | None = None) -> np.ndarray:
        return self._told(X, self._logs, radius)

    def predict_proba(self, X: MatrixLike, radius: float | None = None) -> np.ndarray:
        """Probabilities of the classes, of shape (n, K). More than two classes: each against the rest, scaled to sum to 1."""
        return self._told(X, self._shares, radius)

    def _options(self) -> Options:
        """The options of a fit; invalid parameters are refused."""
        name = type(self).__name__
        checks.whole(name, "n_radii", self.n_radii, 1)
        if not 0 < checks.positive(name, "eps", self.eps) < 1:
            raise InputError(f"`{name}(eps=...)` must be a number in (0, 1), got {self.eps!r}")
        return read_options(self)

    def _problems(self, X: Any, y: Any, sample_weight: ArrayLike | None, intercept: bool) -> tuple[list[Problem], int]:
        """The problems of the arguments of `fit`, and their number of rows."""
        if not brings_targets(X):
            rows = self._read_rows(X, y, sample_weight).used()
            return rows.problems(intercept), len(rows.codes)
        check_alone(f"{type(self).__name__}.fit", y=y, sample_weight=sample_weight)
        check_columns(self, X, reset=True)
        codes, weights = self._held_classes(X)
        each = (against_rest(codes, k) for k in positives(len(self.classes_)))
        return [Problem(model_of(Logistic(), X, targets, weights, intercept), None) for targets in each], X.shape[0]

    def _read_rows(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> PathRows:
        """Check the arguments of `fit`, and set the classes."""
        X, y = told(self, X, y, lambda: validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32]))
        given = read_weights(self, sample_weight, X)
        self._labels(y if given is None else y[given > 0])
        classes = self.classes_
        codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)  # rows of weight 0 may have another label
        weights = self._weights(codes, given)
        if weights is not None and len(np.unique(codes[weights > 0])) < len(classes):
            name = type(self).__name__
            raise InputError(f"`{name}(class_weight=...)` must be positive for all classes, got {self.class_weight!r}")
        return PathRows(X, y, classes, codes, given, weights)

    def _grid(self, ps: Sequence[Problem]) -> np.ndarray:
        """The given radii, sorted and without repeats, or the grid of the problems."""
        if self.radii is None:
            return grid(ps, self.n_radii, self.eps, self.tol)
        name = type(self).__name__
        found = np.unique(checks.finite(name, "radii", checks.array(name, "radii", self.radii).astype(float).reshape(-1)))
        if not found.size or found[0] <= 0:
            raise InputError(f"`{name}(radii=...)` must hold positive numbers, got {self.radii!r}")
        return found

    def _keep(self, classes: np.ndarray, radii: np.ndarray, found: BallPath) -> None:
        """Store a path in the attributes."""
        two = len(classes) == 2
        self.classes_, self.radii_ = classes, radii
        self.coefs_, self.intercepts_ = (a[:, 0] if two else a for a in (found.coefs, found.intercepts))
        self.objectives_, self.dual_gaps_ = (a[:, 0] if two else a for a in (found.objectives, found.gaps))
        self.n_nonzero_ = np.count_nonzero(found.coefs.any(axis=1), axis=1)

    def _choose(self, i: int, found: BallPath, n: int, others: Sequence[BallPath] = ()) -> Answer:
        """Let the solution at index i of the radii predict.

        The answer counts the cost of all work on n rows: the path itself, and the other paths that were needed.
        """
        self.radius_ = float(self.radii_[i])
        self.coef_, self.intercept_ = self._at(self.radius_)
        C, paths = L1Ball(self.radius_).on(self.coef_.shape[1:]), (found, *others)
        value, gap = float(np.sum(found.objectives[i])), float(np.sum(found.gaps[i]))
        cost = sum(p.n_iter for p in paths), sum(p.n_grads for p in paths), n, f"a path over {len(self.radii_)} balls"
        return Answer(self.coef_, value, gap, C, max(violation(C, row) for row in self.coef_), found.status, *cost)

    def _at(self, radius: float | None) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients of shape (K, d) and intercepts of shape (K,) of one radius. Default: those that predict."""
        if radius is None:
            return self.coef_, self.intercept_
        same = np.flatnonzero(np.isclose(self.radii_, radius, rtol=1e-6, atol=0))
        if not same.size:
            near = ", ".join(f"{r:.6g}" for r in self.radii_[np.argsort(np.abs(self.radii_ - radius))[:3]])
            many = len(self.radii_)
            raise InputError(f"`radius` must be one of the {many} in `radii_`, the nearest are {near}; got {radius!r}")
        return np.atleast_2d(self.coefs_[same[0]]), np.atleast_1d(self.intercepts_[same[0]])
