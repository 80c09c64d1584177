"""Parameters of estimators: their types, and how they are read and checked.

Annotations are evaluated here, so that the constructors of dataclasses in other modules have types instead of strings.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.random as random
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.optimize import Bounds, LinearConstraint
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from extremal import checks
from extremal.checks import InputError
from extremal.losses.base import Loss
from extremal.methods.method import Recipe
from extremal.run.progress import check_verbose
from extremal.sets.base import ConvexSet
from extremal.support.kinds import MatrixLike

Pair = tuple[float | None, float | None]
Bound = str | float | Pair | None  # bound on a coefficient: ">=0", 1.5, (0, None)
ByFeature = Mapping[str, Bound] | Mapping[int, Bound] | Mapping[str | int, Bound]
SparseMatrix = sp.sparray | sp.spmatrix
ProgramHint = Mapping[str, ArrayLike | SparseMatrix | Pair | Sequence[Pair]]  # A_ub, b_ub, A_eq, b_eq, bounds
OneConstraint = (
    ConvexSet | str | ByFeature | tuple[ArrayLike | SparseMatrix, ArrayLike] | ProgramHint | Bounds | LinearConstraint | None
)
Constraint = OneConstraint | Sequence[OneConstraint]

Radius = float | str | None  # "30%" is a share of the norm of the unconstrained solution
SolverHint = str | Recipe
NamedLoss = Literal["squared", "poisson", "logistic", "huber", "quantile"] | Loss
ClassWeight = Literal["balanced"] | Mapping[str, float] | Mapping[int, float] | None
RandomState = int | random.RandomState | None
Models = Sequence[BaseEstimator] | Sequence[tuple[str, BaseEstimator]]
Scoring = str | Callable[..., float] | None


class Splitter(Protocol):
    """A maker of folds, such as the KFold of scikit-learn."""

    def split(
        self, X: MatrixLike, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        """The rows to fit on and the rows to predict for, for each fold."""
        ...

    def get_n_splits(self, X: "MatrixLike | None" = None, y: ArrayLike | None = None, groups: ArrayLike | None = None) -> int:
        """The number of folds."""
        ...


Folds = int | Splitter | Iterable[tuple[ArrayLike, ArrayLike]] | None


@dataclass(eq=False, repr=False, kw_only=True)
class FitParameters:
    """The fit parameters of a constrained model."""

    radius: Radius = None
    fit_intercept: bool = True
    tol: float = 1e-6
    max_iter: int = 1000
    warm_start: bool = False
    random_state: RandomState = None
    verbose: int = 0


@dataclass(frozen=True)
class Options:
    """How to fit, as the parameters of an estimator say. Parameters that an estimator lacks have the defaults below."""

    name: str  # of the estimator, for messages
    tol: float
    max_iter: int
    intercept: bool = False
    solver: SolverHint = "auto"
    seed: int = 0
    verbose: int = 0


def read_options(model: BaseEstimator) -> Options:
    """The options of an estimator; invalid ones are refused.

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
    seed = seed_of(given.get("random_state"))
    return Options(name, tol, max_iter, intercept, given.get("solver", "auto"), seed, check_verbose(name, verbose))


def seed_of(random_state: RandomState) -> int:
    """A seed: 0 for None, a non-negative integer unchanged, or a draw from a generator."""
    if random_state is None:
        return 0
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def read_weights(model: object, sample_weight: ArrayLike | None, X: MatrixLike) -> np.ndarray | None:
    """Sample weights in float64, or None. Negative weights, and weights that are all zero, are refused."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if not (weights >= 0).all() or not weights.any():
        least = f"a smallest of {weights.min():g} and a largest of {weights.max():g}"
        raise InputError(f"`{type(model).__name__}.fit(sample_weight=...)` must be non-negative and not all zero, got {least}")
    return weights


def is_fitted(model: object, attribute: str | None = None) -> bool:
    """Whether the model is fitted, and has the attribute if one is named."""
    try:
        check_is_fitted(model, attribute)
    except NotFittedError:
        return False
    return True


def fitted_names(model: object) -> list[str] | None:
    """The names of the columns that the model was fitted to, if there were any."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else list(names)


def numbered(names: Sequence[str], mark: str) -> list[str]:
    """The names, with a mark and a number added to names that repeat."""
    return [name if names.count(name) == 1 else f"{name}{mark}{names[: i + 1].count(name)}" for i, name in enumerate(names)]
