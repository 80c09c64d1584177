"""Shared parts of constrained linear models: rows, constraints, and fits to all rows or to batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_regressor
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from extremal.checks import InputError
from extremal.data.accept import as_rows
from extremal.data.rows import RowData
from extremal.losses.base import Loss
from extremal.sets.words.read import Reading, read_constraint
from extremal.sklearn.answer import Answer, CertifiedEstimator, together
from extremal.sklearn.fitting import solve_fit
from extremal.sklearn.held import brings_targets, check_alone, check_columns, check_in_memory, each_row, rows_near
from extremal.sklearn.mistakes import told
from extremal.sklearn.options import FitParameters, SolverHint, fitted_names, is_fitted, read_options, read_weights
from extremal.sklearn.streams import Stream
from extremal.support.kinds import MatrixLike, Numbers

TAKEN_ROWS: dict[str, Any] = {
    "dtype": [np.float64, np.float32],
    "accept_sparse": ["csr", "csc", "coo"],
    "accept_large_sparse": True,
}  # kinds of rows that are used without conversion


class RowsEstimator(CertifiedEstimator):
    """An estimator that takes dense and sparse rows in float64 and float32."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _validated(self, X: Any, y: Any, reset: bool = True, **how: Any) -> tuple[Any, np.ndarray]:
        """Check the rows and targets of a fit."""
        if isinstance(X, RowData):
            check_columns(self, X, reset)
            y = told(self, X, y, lambda: validate_data(self, y=y, y_numeric=is_regressor(self), **how))
            check_consistent_length(X, y)
            return X, y  # type: ignore[return-value]
        how |= TAKEN_ROWS | {"reset": reset, "y_numeric": is_regressor(self)}
        return told(self, X, y, lambda: validate_data(self, X, y, **how))

    def _rows(self, X: Any) -> Any:
        """Check the rows of a prediction; all kinds have ``dot``."""
        check_is_fitted(self)
        if not isinstance(X, RowData):
            return told(self, X, None, lambda: validate_data(self, X, reset=False, **TAKEN_ROWS))
        check_columns(self, X, reset=False)
        return X

    def _of_rows(self, X: Any, coef: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Apply a function to the products with all rows; rows outside of memory are read part by part."""
        X = self._rows(X)
        return each_row(X, coef, function) if isinstance(X, RowData) else function(np.asarray(X.dot(coef)))


def streams(model: ConstrainedModel) -> bool:
    """Whether ``partial_fit`` is possible: a bounded set, with the radius and the class weights known in advance."""
    if isinstance(model.class_weight, str):
        return False
    if not (model.constraint is None or isinstance(model.constraint, str)):
        return True
    try:
        plan = model._plan((model.n_features_in_ if is_fitted(model, "coef_") else 4,))
    except InputError:
        return True  # the call itself will raise the error
    return plan.bounded and plan.fraction is None


class ConstrainedModel(RowsEstimator, FitParameters, ABC):
    """A linear model under a constraint: one problem, or several that are solved apart.

    ``_read``, ``_loss`` and ``_targets`` define the problems. ``_parts`` and ``_keep`` define how the coefficients are stored.
    """

    constraint: Any
    solver: SolverHint
    class_weight: Any = None
    n_features_in_: int
    _loss: Callable[..., Loss]  # a function of the targets and their weights
    _streams: tuple[Stream, ...] = ()  # one for each problem, since the last fit

    def fit(self, X: MatrixLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model to targets, or to classes of any kind. A row of weight 2 counts as two rows.

        X is an array, a sparse matrix or an `extremal.data.RowData`. float32 stays float32; C-ordered arrays are not copied.
        A `ShardDir` brings its own targets and weights, so y and sample_weight are omitted. X and y may be Dask collections.
        """
        with self._shown():
            with rows_near(X, y, sample_weight) as given:
                answer = self._solve(*given)
            self._store(answer)
        return self

    @abstractmethod
    def _read(self, y: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
        """Targets as numbers, and the weights of their rows."""

    @abstractmethod
    def _held(self, data: RowData) -> tuple[Loss, list[Any], Any]:
        """The loss, the targets of each problem and the weights, for rows that bring their own."""

    def _read_batch(self, y: np.ndarray, weights: np.ndarray | None, classes: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """Targets as numbers, and the weights of their rows, for a single batch."""
        return self._read(y, weights)

    def _targets(self, y: np.ndarray) -> list[np.ndarray]:
        """The targets of each problem."""
        return [y]

    def _shape(self, d: int) -> tuple[int, ...]:
        """The shape of the coefficients of a problem."""
        return (d,)

    @abstractmethod
    def _parts(self) -> list[tuple[np.ndarray, Numbers]]:
        """Fitted coefficients and intercept of each problem."""

    @abstractmethod
    def _keep(self, coefs: Sequence[np.ndarray], intercepts: Sequence[Numbers]) -> None:
        """Store coefficients and intercepts as the attributes that predict."""

    def _plan(self, shape: tuple[int, ...]) -> Reading:
        """The constraint, read for coefficients of the given shape."""
        return read_constraint(self.constraint, self.radius, shape, fitted_names(self))

    def _used(self, X: Any, y: np.ndarray, sample_weight: ArrayLike | None) -> tuple[RowData, np.ndarray, np.ndarray | None]:
        """The rows of positive weight, their targets and their weights."""
        data, weights = as_rows(X), read_weights(self, sample_weight, X)
        if weights is None or weights.all():
            return data, y, weights
        kept = np.flatnonzero(weights)
        return data.rows(kept), y[kept], weights[kept]

    def _starts(self, shape: tuple[int, ...], problems: int) -> Sequence[np.ndarray | None]:
        """The coefficients of the last fit, if this fit is to start there."""
        last = [coef for coef, _ in self._parts()] if self.warm_start and is_fitted(self, "coef_") else []
        return last if len(last) == problems and last[0].shape == shape else [None] * problems

    def _problems(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> tuple[RowData, Loss, list[Any], Any]:
        """The rows, the loss, the targets of each problem and the weights."""
        if brings_targets(X):
            check_alone(f"{type(self).__name__}.fit", y=y, sample_weight=sample_weight)
            check_columns(self, X, reset=True)
            return X, *self._held(X)
        X, y = self._validated(X, y)
        data, y, weights = self._used(X, y, sample_weight)
        y, weights = self._read(y, weights)
        return data, self._loss(y, weights), self._targets(y), weights

    def _solve(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Answer:
        """Fit to all rows. Later batches continue from the coefficients."""
        options = read_options(self)
        data, loss, targets, weights = self._problems(X, y, sample_weight)
        shape = self._shape(data.shape[1])
        plan, starts = self._plan(shape), self._starts(shape, len(targets))
        answers = [
            solve_fit(loss, data, part, plan, options, weights, start) for part, start in zip(targets, starts, strict=True)
        ]
        self._streams = ()
        self._keep([answer.x for answer in answers], [answer.intercept for answer in answers])
        return together(answers)

    def _go_on(self, X: MatrixLike, y: Any, sample_weight: ArrayLike | None, classes: Any = None) -> None:
        """Fit to a single batch, by steps that continue from the last batch or fit."""
        call = f"{type(self).__name__}.partial_fit"
        check_in_memory(call, X, "takes a batch of rows in memory, and", "use fit for all of them")
        options, first, fitted = read_options(self), not self._streams, is_fitted(self, "coef_")
        X, y = self._validated(X, y, reset=first and not fitted)
        data, y, weights = self._used(X, y, sample_weight)
        y, weights = self._read_batch(y, weights, classes)
        targets, shape = self._targets(y), self._shape(data.shape[1])
        if first:
            new = Stream.new(self._plan(shape), shape, data.dtype, self._loss(y, weights), options.name)
            self._streams = tuple(new.at(*part) for part in self._parts()) if fitted else (new,) * len(targets)
        self._streams = tuple(
            stream.after(data, part, weights, options.intercept) for stream, part in zip(self._streams, targets, strict=True)
        )
        self._keep([stream.coef for stream in self._streams], [stream.level for stream in self._streams])
        self._store_batch()

    def _store_batch(self) -> None:
        """Set the attributes after a batch. There is no certificate, because a gap needs all rows."""
        for name in ("certificate_", "trace_"):  # of an earlier fit
            vars(self).pop(name, None)
        self.objective_ = self.dual_gap_ = float("nan")
        self.n_iter_, self.n_grads_ = max(s.k for s in self._streams), sum(s.seen for s in self._streams)
        self.status_, self.constraint_ = "partial", self._streams[0].C
        self.constraint_violation_ = float(max(s.violation for s in self._streams))
