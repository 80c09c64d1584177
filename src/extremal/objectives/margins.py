"""Models of margins, a loss of the products of rows with x: the shared part of linear models with and without an intercept."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from extremal import checks
from extremal.checks import InputError
from extremal.data.accept import as_data
from extremal.data.contract import Data
from extremal.data.kept import Derived, Stored
from extremal.data.parts import KeptNumbers, PerRow
from extremal.data.rows import InMemory, RowData, rows_elsewhere
from extremal.data.works import RowProducts
from extremal.losses.base import Loss, check_targets, is_multi, majorant_of
from extremal.losses.margin import compiled
from extremal.losses.weighted import unweighted, with_held_weights, with_weights
from extremal.objectives.alike import check_held, first_total
from extremal.objectives.base import RowIndex, Segment
from extremal.objectives.column_blocks import SHORT_ROWS, ColumnBlock, Slice
from extremal.objectives.expansion import Expansion, expansion_of
from extremal.objectives.on_atoms import OnMargins, OnPoints, Restriction
from extremal.objectives.on_columns_multi import OutputSlice
from extremal.objectives.slabs import Slab, read_slab
from extremal.objectives.works import AtMargins
from extremal.points.active import ActiveSet
from extremal.points.composed import Chord
from extremal.points.vertex import Vertex

M = TypeVar("M", bound="MarginModel")

ONE_PASS = 2**16  # stored entries of rows up to which a pass over all of them is as good as a pass over one
_COLUMNS_READY: set[Hashable] = set()  # kinds of models whose kernels for columns this process has compiled or loaded


class MarginModel(AtMargins, ABC):
    """f(x) = the mean of a loss at the margins <a_i, x>, shifted by `lifted` if there is an intercept.

    The model reads its rows only by works on their parts (`extremal.data.parts`). Arrays of one number per row (margins, targets,
    derivatives) are passed around, and only works look inside.
    """

    is_finite_sum: bool  # whether each component depends on its own row alone
    dtype = np.dtype(np.float64)  # of x; float32 rows are not converted
    blocks: bool = False  # batches may be blocks of consecutive rows, see `LinearModel.shuffled`

    def __init__(self, loss: Loss, A: Any, y: Any = None, weights: ArrayLike | None = None):
        if checks.lacks(loss, "deriv"):
            raise InputError(f"`LinearModel(loss=...)` must be a loss such as Logistic(), got {loss!r}")
        self.loss: Loss = loss
        self.data: Data = as_data(A)
        self.deriv_shape: tuple[int, ...] = _outputs(loss, self.data)
        self.y: PerRow
        if y is None:
            self.loss, self.y = self._held(loss, weights)
        elif isinstance(y, KeptNumbers):
            self.loss, y = cast(Any, (loss, y) if weights is None else with_held_weights(loss, y, weights))
            self.y = self._stored(y)
        else:
            self.y = check_targets(loss, checks.array("LinearModel", "y", y), self.data.shape[0])
            if weights is not None:
                self.loss, self.y = with_weights(loss, self.y, weights)

    def _held(self, loss: Loss, weights: object) -> tuple[Loss, Any]:
        """The loss and the targets that come with the rows, checked part by part, including their weights if there are any."""
        y, w = (self.data.targets, self.data.weights) if isinstance(self.data, RowData) else (None, None)
        if y is None:
            shape = self.n, *(loss.target_shape if is_multi(loss) else ())
            raise InputError(f"`LinearModel(y=...)` must be given, with shape {shape}: no targets come with these rows")
        if weights is not None:
            raise InputError(
                "`LinearModel(weights=...)` needs y, too: the weights of rows that bring their targets come with them"
            )
        check_held(cast(RowData, self.data), loss, y)
        return (loss, y) if w is None else with_held_weights(loss, y, w)

    def _stored(self, y: KeptNumbers) -> PerRow:
        """Targets that every pass would recompute are computed once, and stored where the rows are."""
        if not isinstance(y, Derived):
            return cast(Any, y)
        kept, bounds = self.filled(np.positive, cast(Any, y)), cast(RowData, self.data).bounds
        return kept if isinstance(kept, KeptNumbers) or bounds is None else cast(Any, Stored(kept, tuple(bounds), kept.shape))

    def on_rows(self, rows: Data, kind: type[M]) -> M:
        """A model of the given kind on other rows, with the same loss, targets and weights, which need no second check."""
        new = kind.__new__(kind)
        new.loss, new.data, new.deriv_shape, new.y = self.loss, rows, self.deriv_shape, self.y
        return new

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of x."""
        return *self.data.shape[1:], *self.deriv_shape

    @property
    def factored(self) -> bool:
        """Whether x may be a matrix in factors."""
        return getattr(self.data, "factored", False)

    @property
    def by_rows(self) -> bool:
        """Whether a sample of the rows can replace them: not for matrix entries, nor for rows elsewhere in their own order."""
        return isinstance(self.data, RowData) and (self.data.bounds is None or self.data.head(self.n) is not None)

    @property
    def elsewhere(self) -> bool:
        """Whether every request reads the rows anew, and numbers of rows are stored where the rows are."""
        return rows_elsewhere(self.data)

    def dense(self: M) -> M:
        """The same model with gradients as arrays."""
        return self._with(cast(Any, self.data).dense(), self.y) if self.factored else self

    def sample(self: M, rows: np.ndarray) -> M:
        """The mean over some of the components: a copy of these rows."""
        return self._some(self._ordered("sample").rows(rows), self._targets(rows))

    def sampled(self: M, size: int, draw: Callable[[], np.ndarray]) -> M:
        """The mean over about ``size`` components: the first of each part if the rows are in random order, else those drawn."""
        head = self._ordered("sample").head(size)
        return self.sample(draw()) if head is None else self._some(head, self.y)

    @property
    def in_slabs(self) -> bool:
        """Whether rows can be read slab by slab, each slab a sample, and the loss has a second derivative that changes slowly."""
        rows = isinstance(self.data, RowData) and self.data.bounds is not None and self.data.head(self.n) is not None
        smooth = self.is_finite_sum and self.loss.convex and hasattr(self.loss, "self_concordance")
        return rows and smooth and isinstance(self.y, KeptNumbers) and majorant_of(cast(Any, self.loss)) is None

    def slab(self, size: int, after: int, x: np.ndarray, W: np.ndarray) -> Slab:
        """The rows of a head of ``size`` rows beyond one of ``after``: value, gradient and Hessian on W at x, in one read."""
        return read_slab(self, size, after, x, W)

    def noise(self, z: PerRow) -> np.ndarray:
        """The root mean square of c_i a_ij for every column j at given margins: how far one row's gradient may stray."""
        squares = self.filled(np.square, self.derivs_at(z))
        return np.sqrt(cast(RowData, self.data).moments(squares)[1] / self.n)

    def _targets(self, idx: np.ndarray) -> np.ndarray:
        """The targets of some rows."""
        return cast(RowData, self.data).numbers_of(self.y, idx) if isinstance(self.y, KeptNumbers) else self.y[idx]

    def _some(self: M, data: Data, y: PerRow) -> M:
        """A model of some of the rows."""
        new = self._with(data, y)
        for name in ("_lambda_max", "blocks", "order"):  # these refer to all rows, or to their order
            vars(new).pop(name, None)
        return new

    def _ordered(self, call: str) -> RowData:
        if not isinstance(self.data, RowData):
            raise InputError(f"`{call}` takes dense and sparse rows, got {self.data!r}")
        return self.data

    def _with(self: M, data: Data, y: np.ndarray) -> M:
        """The same rows in another form or order."""
        new = copy.copy(self)
        new.data, new.y = data, y
        vars(new).pop("row_smoothness", None)
        return new

    def value(self, x: np.ndarray) -> float:
        """f(x), in one pass; at x = 0 the targets suffice, without a pass."""
        if isinstance(x, np.ndarray) and not x.any():
            return self.value_at(self.zero)
        return self._look(x, valued=True)[0]

    def grad(self, x: np.ndarray) -> np.ndarray:
        """The full gradient, in one pass."""
        return self._look(x, graded=True)[1]

    def value_and_grad(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """The value and the gradient, in one pass."""
        return self._look(x, valued=True, graded=True)

    def value_grad_margins(self, x: np.ndarray) -> tuple[float, np.ndarray, PerRow]:
        """f(x), its gradient and the margins A x, in one pass."""
        z = self.data.parts.numbers(*self.deriv_shape)
        return *self._look(x, valued=True, graded=True, z=z), z

    @abstractmethod
    def _look(self, x: np.ndarray, valued: bool = False, graded: bool = False, z: PerRow | None = None) -> tuple[float, Any]:
        """f(x) and grad f(x), as requested; stores the margins A x in z."""

    def margins(self, x: np.ndarray, idx: RowIndex = None) -> PerRow:
        """<a_i, x> for i in idx, or the rows a_i' x."""
        if idx is not None or not isinstance(self.data, RowData):
            return self.data.dot(x, idx)
        z = self.data.parts.numbers(*self.deriv_shape)
        first_total(self.data, RowProducts(np.ascontiguousarray(x), z))
        return z

    def vertex_margins(self, s: Vertex, idx: RowIndex = None) -> PerRow:
        """<a_i, s> for i in idx: one entry per row if s is a coordinate and the rows are local."""
        if idx is None and self.elsewhere:
            return self.margins(s.to_array())
        return self.data.dot_vertex(s, idx)

    def along(self, x: np.ndarray, s: Vertex | Chord) -> Segment:
        """f on the segment to s, from the margins of its ends; a probe costs O(n) and no product."""
        z, chord = self.margins(x), Chord.to(s)
        if self.elsewhere:  # one more read, because numbers elsewhere cannot be combined here
            return self.between(z, self.margins(chord.image(x, lambda v: v.to_array())))
        return self.between(z, chord.image(z, self.data.dot_vertex))

    def on_columns(self, W: np.ndarray) -> Slice:
        """f on the coordinates W, with second derivatives, for losses that define them."""
        return (OutputSlice if self.deriv_shape else ColumnBlock)(self, W)

    def on_atoms(self, atoms: ActiveSet, images: dict[Hashable, np.ndarray]) -> Restriction:
        """f on the hull of the atoms, given the images that an earlier restriction stored."""
        return OnPoints(self, atoms) if self.elsewhere else OnMargins.of(self, atoms, images)

    def expansion(self) -> Expansion | None:
        """f around 0, if f is quadratic: values and gradients from one Hessian, which takes a read of the rows.

        None if rounding may have lost the least curvature of f.
        """
        return expansion_of(self, self)

    def ready(self) -> None:
        """Compile the products with some rows."""
        self.data.ready(*self.deriv_shape)

    def ready_columns(self) -> bool:
        """Compile full gradients, and the operations for second derivatives on columns, by passes over one row in memory.

        This happens once for each kind of model. The answer is False if rows are not at hand, or the loss is not compiled.
        """
        data = self.data
        at_hand = isinstance(data, InMemory) or (isinstance(data, RowData) and data.bounds is not None)
        if self.deriv_shape or not at_hand or compiled(self.loss) is None:
            return False
        kind = type(self), type(self.loss), type(data), data.dtype, self.n <= SHORT_ROWS
        if kind in _COLUMNS_READY:
            return True
        row = self if self.is_finite_sum and cast(RowData, data).nnz <= ONE_PASS else self.sample(np.zeros(1, np.intp))
        row.value_grad_margins(np.zeros(self.shape))
        part = ColumnBlock(row, np.zeros(1, np.intp))
        z = row._alone(part.dot(np.zeros(1, self.dtype)))
        row.derivs_at(z)
        row.between(z, z).value(1.0)
        part.ready(z, short=self.n <= SHORT_ROWS)
        _COLUMNS_READY.add(kind)
        return True

    def _alone(self, z: PerRow) -> PerRow:
        """The margin of a model of one row, ready for evaluation."""
        return z

    @property
    def smoothness(self) -> float:
        """L = curvature * lambda_max(A' diag(w) A) / n for any number of outputs, by an eigenvalue or Lanczos; computed once."""
        return unweighted(self.loss).curvature * self._lambda_max / self.n

    @cached_property
    def _lambda_max(self) -> float:
        return self.data.lambda_max(self.weights)

    @cached_property
    def row_smoothness(self) -> np.ndarray:
        """L_i = curvature * |a_i|^2; the paper's Lt is the root mean square of the L_i."""
        rows = unweighted(self.loss).curvature * self.data.row_norms2().astype(np.float64)
        return rows if self.weights is None else rows * self.here(self.weights)


def has_slices(f: object) -> bool:
    """Whether f is a linear model of arrays with a loss that defines its second derivative.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> has_slices(ex.LinearModel(ex.Logistic(), np.eye(2), np.array([1.0, -1.0])))
    True
    """
    if not isinstance(f, MarginModel) or f.factored:
        return False
    return hasattr(f.loss, "curvature_rows" if f.deriv_shape else "second")  # isinstance of a protocol does not ask a property


def _outputs(loss: Loss, data: Data) -> tuple[int, ...]:
    """Shape of a row of margins."""
    if not is_multi(loss):
        return ()
    if len(data.shape) != 2:
        raise InputError(f"`LinearModel(loss=...)`: {loss!r} has several outputs, and takes rows of features only as data")
    return (loss.outputs,)
