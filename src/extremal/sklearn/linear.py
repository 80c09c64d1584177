"""Linear regression and generalised linear models under a constraint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from extremal import checks
from extremal.checks import InputError
from extremal.data.kept import Derived
from extremal.data.rows import RowData
from extremal.losses.base import Loss, MultiLoss
from extremal.losses.glm import Quantile
from extremal.losses.margin import Huber, Squared
from extremal.losses.meaning import mean_target
from extremal.losses.named import named_loss, standard_deviation
from extremal.objectives.alike import check_held
from extremal.objectives.held_targets import check_numbers, signs_of, two_alike
from extremal.sklearn.held import OwnScore
from extremal.sklearn.options import Constraint, NamedLoss, SolverHint
from extremal.sklearn.shared import ConstrainedModel, streams
from extremal.support.kinds import MatrixLike, Numbers

REGRESSION_LOSSES = ("squared", "huber", "quantile")
GLM = (*REGRESSION_LOSSES, "poisson", "logistic")


class ConstrainedRegressor(OwnScore, RegressorMixin, ConstrainedModel):
    """The shared part of regressors."""

    coef_: np.ndarray
    intercept_: float

    @available_if(streams)
    def partial_fit(self, X: MatrixLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Update the fit with a batch that is seen once, by steps along averaged gradients; the user guide lists the limits."""
        self._go_on(X, y, sample_weight)
        return self

    def _read(self, y: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
        return y.astype(np.float64, copy=False), weights

    def _held(self, data: RowData) -> tuple[Loss, list[Any], Any]:
        check_numbers(f"{type(self).__name__}.fit", data)
        loss = self._loss(two_alike(data), None)
        y = self._held_targets(data, loss)
        check_held(data, loss, y)
        return loss, [y], data.weights

    def _held_targets(self, data: RowData, loss: Loss) -> Any:
        """The targets of rows that bring their own."""
        return data.targets

    def _parts(self) -> list[tuple[np.ndarray, Numbers]]:
        return [(self.coef_, self.intercept_)]

    def _keep(self, coefs: Sequence[np.ndarray], intercepts: Sequence[Numbers]) -> None:
        self.coef_, self.intercept_ = coefs[0], float(intercepts[0])

    def predict(self, X: MatrixLike) -> np.ndarray:
        """<x, w> + b for every row x."""
        check_is_fitted(self)
        return self._of_rows(X, *self._predictor())

    def _predictor(self) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        return self.coef_, self._mean

    def _mean(self, z: np.ndarray) -> np.ndarray:
        """The prediction for products with rows."""
        return z + self.coef_.dtype.type(self.intercept_)


@dataclass(eq=False, repr=False)
class ConstrainedLinearRegression(ConstrainedRegressor):
    """Linear regression with coefficients that always lie in a set.

        min over w in C, and b, of  f(w, b) = sum_i s_i phi(<x_i, w> + b, y_i) / sum_i s_i

    phi is half the squared error, Huber's loss, or the smoothed quantile loss; s are the sample weights. The intercept b is not
    constrained, and the constraint on w holds exactly in floating point. ``dual_gap_`` is the Frank-Wolfe gap at the answer: no w
    in C and b lower f by more. For cones, this holds for all w within the bounds that ``constraint_`` shows.

    The default solver takes Newton steps on the coefficients in use. Its cost is a few passes over the data, and n k^2 for k
    coefficients off their bounds. Cones such as "nonneg" are unbounded: the solver places bounds around the solution, and widens
    them as long as the solution touches them.

    Parameters
    ----------
    constraint : str, ConvexSet, dict, pair (A, b), or a list of these
        "nonneg", "l1:10", "simplex", "box:0,1", "monotone", {"income": ">=0"}, (A, b) for A w <= b, ...; None: no constraint.
    radius : float or str, optional
        The radius of a constraint that is named without one, such as "l1". Default: 10. "30%" is that share of the norm of the
        unconstrained solution.
    loss : "squared", "huber" or "quantile"
        The loss.
    delta : float
        Huber's loss: residuals beyond this many units of y pull with constant force.
    quantile : float
        The quantile, in (0, 1).
    width : float
        The corner of the quantile loss is rounded over this share of the standard deviation of y.
    fit_intercept : bool
        Whether to fit an intercept.
    solver : str or method of extremal
        "auto", or any method: "pairwise-fw", ``extremal.SarahFW(batch=100)``. Methods that draw batches suit a tol of 1e-2.
    tol : float
        Stop when the certified gap is at most tol times the objective.
    max_iter : int
        Maximum number of iterations of the solver.
    warm_start : bool
        Whether to start at the coefficients of the last fit.
    random_state : int, RandomState or None
        The seed of methods that draw. The default method draws rows for its first steps, with a fixed seed if this is None.
    verbose : int
        1 shows the progress of the fit, as `extremal.minimize` does. The last line is the certificate.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
    dual_gap_, objective_, constraint_violation_ : float
        The certified gap, f at the answer, and the violation of the constraint, which is 0.
    certificate_ : object
        The certificate in words.
    status_ : str
        "tol" if the tolerance was reached.
    n_iter_, n_grads_ : int
        Iterations, and component gradients (n_grads_ / n_samples are passes over the data).
    constraint_ : ConvexSet
        The set that was used.
    trace_ : extremal.run.Trace
        Values and gaps during the run.

    References
    ----------
    Bertsekas (1982), Projected Newton methods for optimization problems with simple constraints; Jaggi (2013), Revisiting
    Frank-Wolfe (the gap); Huber (1964), Robust estimation of a location parameter; Koenker, Bassett (1978), Regression quantiles.

    Examples
    --------
    >>> import numpy as np
    >>> from extremal.sklearn import ConstrainedLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 3))
    >>> y = X @ [1.0, -0.5, 2.0] + 4 + 0.1 * rng.standard_normal(200)
    >>> model = ConstrainedLinearRegression("nonneg").fit(X, y)
    >>> model.coef_.round(1), round(model.intercept_, 1), model.constraint_violation_
    (array([1., 0., 2.]), 4.0, 0.0)
    >>> bool(model.dual_gap_ <= 1e-6 * model.objective_)
    True
    >>> ConstrainedLinearRegression("l1", radius="50%").fit(X, y).coef_.round(1)
    array([0.4, 0. , 1.4])
    """

    constraint: Constraint = "nonneg"
    _: KW_ONLY
    loss: Literal["squared", "huber", "quantile"] = "squared"
    delta: float = 1.35
    quantile: float = 0.5
    width: float = 1e-2
    solver: SolverHint = "auto"

    def _loss(self, y: np.ndarray, weights: np.ndarray | None) -> Loss:
        kind = checks.one_of("`ConstrainedLinearRegression(loss=...)`", self.loss, REGRESSION_LOSSES)
        if kind == "squared":
            return Squared()
        if kind == "huber":
            return Huber(checks.positive("ConstrainedLinearRegression", "delta", self.delta))
        width = checks.positive("ConstrainedLinearRegression", "width", self.width)
        q = checks.within("ConstrainedLinearRegression", "quantile", self.quantile, 0, 1)
        return Quantile(q, width * standard_deviation(y, weights))


@dataclass(eq=False, repr=False)
class ConstrainedGLM(ConstrainedRegressor):
    """A generalised linear model with any loss, any constraint and any solver of this library.

        min over w in C, and b, of  sum_i s_i phi(<x_i, w> + b, y_i) / sum_i s_i

    ``predict`` returns the mean of y. This is exp of the margin for "poisson", the probability of 1 for "logistic", and the
    margin itself for the others. A loss of your own can define it as ``mean(z)``.

    Parameters
    ----------
    loss : "squared", "poisson", "logistic", "huber", "quantile", or a loss of extremal or of your own
        "logistic" takes targets in {0, 1} (or {-1, 1}). Parameters follow a colon, as in "huber:0.5" or "quantile:0.9". An object
        such as ``extremal.Huber(0.5)`` brings its own.
    constraint, radius, fit_intercept, solver, tol, max_iter, warm_start, random_state, verbose
        As for `ConstrainedLinearRegression`. The attributes are the same, too.

    References
    ----------
    Nelder, Wedderburn (1972), Generalized linear models, J. R. Stat. Soc. A 135.

    Examples
    --------
    >>> import numpy as np
    >>> from extremal.sklearn import ConstrainedGLM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((500, 3))
    >>> y = rng.poisson(np.exp(X @ [1.0, -1.0, 0.5] + 0.3))
    >>> model = ConstrainedGLM("poisson", "box:-0.5,2").fit(X, y)
    >>> model.coef_.round(1), model.status_
    (array([ 1.1, -0.5,  0.7]), 'tol')
    """

    loss: NamedLoss = "squared"
    constraint: Constraint = "nonneg"
    solver: SolverHint = "auto"

    def _loss(self, y: np.ndarray, weights: np.ndarray | None = None) -> Loss:
        if isinstance(self.loss, str):
            return named_loss(self.loss, y, weights, GLM, "`ConstrainedGLM(loss=...)`")
        if checks.lacks(self.loss, "deriv") or isinstance(self.loss, MultiLoss):
            raise InputError(
                f"`ConstrainedGLM(loss=...)` must be a name or a loss of one margin such as Huber(), got {self.loss!r}"
            )
        return self.loss

    def _validated(self, X: Any, y: Any, reset: bool = True, **how: Any) -> tuple[Any, np.ndarray]:
        X, y = super()._validated(X, y, reset, **how)
        if self._loss(np.ones(1)).labels == (-1.0, 1.0) and np.isin(y, (0, 1)).all():
            y = np.where(y > 0, 1.0, -1.0)
        return X, y

    def _held_targets(self, data: Any, loss: Loss) -> Any:
        two = loss.labels == (-1.0, 1.0) and data.classes is not None and set(data.classes) <= {0.0, 1.0}
        return Derived(signs_of, (data.targets,), data.shape[:1]) if two else data.targets

    def predict(self, X: MatrixLike) -> np.ndarray:
        """The mean of y for every row."""
        return super().predict(X)

    def _mean(self, z: np.ndarray) -> np.ndarray:
        return mean_target(self._loss(np.ones(1)), super()._mean(z))
