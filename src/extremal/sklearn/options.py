"""What estimators are told, read and checked: options of the run, weights of rows, names of features, earlier fits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from extremal import checks
from extremal.checks import InputError
from extremal.sklearn.hints import RandomState, SolverHint
from extremal.support.kinds import MatrixLike


@dataclass(frozen=True)
class Options:
    """How to fit: what estimators are told by their parameters. An estimator without one of them has its value here."""

    name: str  # of the estimator, for messages
    tol: float
    max_iter: int
    intercept: bool = False
    solver: SolverHint = "auto"
    seed: int = 0
    verbose: int = 0


def read_options(model: BaseEstimator) -> Options:
    """The options of an estimator; those that make no sense are refused.

    Examples
    --------
    >>> from extremal.sklearn import SimplexRegression
    >>> read_options(SimplexRegression(tol=1e-3))
    Options(name='SimplexRegression', tol=0.001, max_iter=1000, intercept=False, solver='auto', seed=0, verbose=0)
    """
    name, given = type(model).__name__, model.get_params(deep=False)
    tol, max_iter = checks.positive(name, "tol", given["tol"]), checks.whole(name, "max_iter", given["max_iter"], 1)
    checks.flag(name, "warm_start", given.get("warm_start", False))
    intercept, verbose = checks.flag(name, "fit_intercept", given.get("fit_intercept", False)), given.get("verbose", 0)
    if isinstance(verbose, str) or not 0 <= verbose:
        raise InputError(f"`{name}(verbose=...)` must be a whole number of at least 0, got {verbose!r}")
    return Options(name, tol, max_iter, intercept, given.get("solver", "auto"), seed_of(given.get("random_state")), verbose)


def seed_of(random_state: RandomState) -> int:
    """A seed: 0 for None, a whole number as it is, a draw from a generator."""
    if random_state is None:
        return 0
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def read_weights(model: object, sample_weight: ArrayLike | None, X: MatrixLike) -> np.ndarray | None:
    """Sample weights in float64, refusing negative ones and those that are all zero; None if none were given."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if not (weights >= 0).all() or not weights.any():
        least = f"a least of {weights.min():g} and a largest of {weights.max():g}"
        raise InputError(f"`{type(model).__name__}.fit(sample_weight=...)` must be non-negative and not all zero, got {least}")
    return weights


def is_fitted(model: object, attribute: str | None = None) -> bool:
    """Whether it has been fitted, and then has the attribute."""
    try:
        check_is_fitted(model, attribute)
    except NotFittedError:
        return False
    return True


def fitted_names(model: object) -> list[str] | None:
    """The names of the columns that it was fitted to, if these had any."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else list(names)
