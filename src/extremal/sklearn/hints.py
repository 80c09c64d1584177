"""What the parameters of the estimators may be, as types, and those that constrained models share.

Annotations are evaluated here, so that the constructors of other modules' dataclasses have types, and not texts.
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

from extremal.losses.base import Loss
from extremal.methods.base import Recipe
from extremal.sets.base import ConvexSet
from extremal.support.kinds import MatrixLike

Pair = tuple[float | None, float | None]
Bound = str | float | Pair | None  # of a coefficient: ">=0", 1.5, (0, None)
ByFeature = Mapping[str, Bound] | Mapping[int, Bound] | Mapping[str | int, Bound]
SparseMatrix = sp.sparray | sp.spmatrix
ProgramHint = Mapping[str, ArrayLike | SparseMatrix | Pair | Sequence[Pair]]  # A_ub, b_ub, A_eq, b_eq, bounds
OneConstraint = (
    ConvexSet | str | ByFeature | tuple[ArrayLike | SparseMatrix, ArrayLike] | ProgramHint | Bounds | LinearConstraint | None
)
Constraint = OneConstraint | Sequence[OneConstraint]

Radius = float | str | None  # "30%" is a share of the norm without a constraint
SolverHint = str | Recipe
NamedLoss = Literal["squared", "poisson", "logistic", "huber", "quantile"] | Loss
ClassWeight = Literal["balanced"] | Mapping[str, float] | Mapping[int, float] | None
RandomState = int | random.RandomState | None
Models = Sequence[BaseEstimator] | Sequence[tuple[str, BaseEstimator]]
Scoring = str | Callable[..., float] | None


class Splitter(Protocol):
    """What makes folds: scikit-learn's KFold and its kind."""

    def split(
        self, X: MatrixLike, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        """The rows to fit on and those to predict for, of each fold."""
        ...

    def get_n_splits(self, X: "MatrixLike | None" = None, y: ArrayLike | None = None, groups: ArrayLike | None = None) -> int:
        """How many folds."""
        ...


Folds = int | Splitter | Iterable[tuple[ArrayLike, ArrayLike]] | None


@dataclass(eq=False, repr=False, kw_only=True)
class FitParameters:
    """How a constrained model is fitted."""

    radius: Radius = None
    fit_intercept: bool = True
    tol: float = 1e-6
    max_iter: int = 1000
    warm_start: bool = False
    random_state: RandomState = None
    verbose: int = 0
