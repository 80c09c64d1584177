"""Linear models of several outputs on some of their coordinates: products with these, and their Hessian."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from extremal.data.parts import Part, PerRow, RowWork, Sums
from extremal.data.rows import rows_elsewhere
from extremal.losses.base import Loss
from extremal.losses.margin import compiled
from extremal.losses.multi import CurvatureRows
from extremal.losses.over_rows import chunks, curvature_rows_of
from extremal.objectives.column_blocks import FULL, LONG_COLUMNS, WIDE, Slice
from extremal.quadratic.search import is_definite
from extremal.support import clock
from extremal.support.kinds import Symmetric

if TYPE_CHECKING:
    from extremal.objectives.margins import MarginModel

FORMED = 3e10  # from this many rows times coordinates squared on, the Hessian is an operator, if rows are in memory
ROW_BLOCK = 2**19  # numbers in a block of rows


@dataclass(frozen=True)
class OutputColumns:
    """Some coordinates of x, flat: coordinate j k + c is feature j for output c."""

    W: np.ndarray
    outputs: int  # k

    @cached_property
    def features(self) -> np.ndarray:
        """The features in use."""
        return np.unique(self.W // self.outputs)

    @cached_property
    def place(self) -> np.ndarray:
        """The place of the feature of each coordinate."""
        return np.searchsorted(self.features, self.W // self.outputs)

    @cached_property
    def by_output(self) -> list[tuple[int, np.ndarray, np.ndarray]]:
        """For each output in use, its coordinates in W and the places of their features."""
        own = self.W % self.outputs
        mine = [(int(c), np.flatnonzero(own == c)) for c in np.unique(own)]
        return [(c, idx, self.place[idx]) for c, idx in mine]


@dataclass(frozen=True)
class OutputWork(RowWork):
    """Base of works with the second derivatives of each row: of all rows in memory, or from the margins of a part."""

    loss: Loss
    y: PerRow
    z: PerRow  # margins, with intercepts
    width: float
    stored: CurvatureRows | None
    at: OutputColumns
    sums: int  # the size of the answer

    @property
    def alone(self) -> bool:  # type: ignore[override]
        """Whether to avoid threads: a user's own loss may not be thread-safe."""
        return compiled(self.loss) is None

    def bends(self, part: Part, rows: slice) -> CurvatureRows:
        """The second derivatives of some rows of a part."""
        clock.check()
        if self.stored is None:
            return curvature_rows_of(part.of(self.z)[rows], part.of(self.y)[rows], self.loss, self.width)
        D, P = self.stored.D, self.stored.P
        return CurvatureRows(part.of(D)[rows], None if P is None else part.of(P)[rows])


@dataclass(frozen=True)
class OutputHessian(OutputWork):
    """The sum of (diag D_i - P_i P_i') x a_i a_i' on W, its part between coordinates and intercepts, and that of the brackets.

    The last answer is the first with 2 max(-D_i, 0) instead of D_i, because |D_i| is D_i plus this; None if no D_i is negative.
    """

    def __call__(self, part: Part) -> Sums:
        at, block = self.at, part.rows.columns(self.at.features)
        k, f = len(at.W), len(at.features)
        H, V, T, more = np.zeros((k, k)), np.zeros((k, at.outputs)), np.zeros((at.outputs, at.outputs)), None
        pairs = block.nnz < FULL * part.n * f  # of outputs, with sums over stored entries
        for rows in chunks(part.n, part.n if pairs else max(1, ROW_BLOCK // max(f, k))):
            bend = self.bends(part, rows)
            T += bend.total
            add = _add_pairs if pairs else _add_arrays
            add(at, H, V, block.part(rows), bend)
            if not self.loss.convex and (bend.D < 0).any():
                more = np.zeros((k, k)) if more is None else more
                add(at, more, np.zeros_like(V), block.part(rows), CurvatureRows(-2.0 * np.minimum(bend.D, 0.0), None))
        return H, V, T, more


def _add_arrays(at: OutputColumns, H: np.ndarray, V: np.ndarray, block: Any, bend: CurvatureRows) -> None:
    """Add the sums over a block of rows, by products of dense arrays."""
    B = block.array()
    for c, idx, place in at.by_output:
        own = B[:, place]
        bent = own * bend.D[:, c, None]
        H[np.ix_(idx, idx)] += bent.T @ own
        V[idx, c] += bent.sum(axis=0)
    if bend.P is not None:
        M = B[:, at.place] * bend.P[:, at.W % at.outputs]
        H -= M.T @ M
        V -= M.T @ bend.P


def _add_pairs(at: OutputColumns, H: np.ndarray, V: np.ndarray, block: Any, bend: CurvatureRows) -> None:
    """Add the same sums over stored entries, for each pair of outputs that are coupled."""
    for i, (c, idx, place) in enumerate(at.by_output):
        mixed = bend.mixed(c)
        V[idx] += block.tdot(np.ascontiguousarray(mixed))[place]
        for b, other, there in at.by_output[: i + 1] if bend.P is not None else [(c, idx, place)]:
            G = block.gram(None, np.ascontiguousarray(mixed[:, b]))[np.ix_(place, there)]
            H[np.ix_(idx, other)] += G
            if b != c:
                H[np.ix_(other, idx)] += G.T


@dataclass(frozen=True)
class OutputDiagonal(OutputWork):
    """The diagonal of `OutputHessian` for all outputs of the features, and its other sums; ``more`` is a number."""

    def __call__(self, part: Part) -> Sums:
        at, block, bend = self.at, part.rows.columns(self.at.features), self.bends(part, slice(0, part.n))
        V = np.zeros((len(at.W), at.outputs))
        diagonal = np.zeros(len(at.W))
        for c, idx, place in at.by_output:
            mixed = bend.mixed(c)
            V[idx] = block.tdot(np.ascontiguousarray(mixed))[place]
            diagonal[idx] = block.moments(np.ascontiguousarray(mixed[:, c]))[1][place]
        return diagonal, V, bend.total, int((bend.D < 0).any())


@dataclass(frozen=True, kw_only=True)
class OutputProduct(OutputWork):
    """The product of the Hessian with x, in one read of the rows."""

    x: np.ndarray
    absolute: bool  # |D_i| instead of D_i

    def __call__(self, part: Part) -> Sums:
        g = np.zeros(self.x.shape)
        for rows, piece in part.rows.pieces(self.x):
            bend = self.bends(part, rows)
            bend = replace(bend, D=np.abs(bend.D)) if self.absolute else bend
            g += piece.tdot(np.ascontiguousarray(bend.dot(piece.dot(self.x))))
        return (g,)


@dataclass(frozen=True)
class OutputSlice(Slice):
    """f on the coordinates W of x."""

    f: MarginModel

    def dot(self, d: np.ndarray) -> PerRow:
        x = np.zeros(self.f.shape, self.f.dtype)
        x.reshape(-1)[self.W] = d
        return self.f.margins(x)

    def hessian(self, z: PerRow, far: bool = False, width: float = 0.0) -> Symmetric:
        """(1/n) sum_i (diag D_i - P_i P_i') x a_i a_i' on W, minus the part that intercepts remove; an operator if it is large.

        Uses |D_i| if f is not convex and the Hessian is not positive definite.
        """
        f, k = self.f, len(self.W)
        stored = None if rows_elsewhere(f.data) else f.curvature_rows_at(z, width)
        given = f.loss, f.y, z if stored else f.lifted(z), width, stored, OutputColumns(self.W, f.shape[1])
        many = k > LONG_COLUMNS if stored is None else k > WIDE or f.n * float(k) ** 2 > FORMED
        if many:  # where rows are elsewhere, each product reads them
            return OutputProducts(f, given)
        H, V, T, more = f.data.parts.total(OutputHessian(*given, sums=k * k))
        H = H if f.is_finite_sum else H - V @ CurvatureRows.inverse_of(T) @ V.T
        return (H if more is None or is_definite(H) else H + more) / f.n


@dataclass(frozen=True)
class OutputProducts:
    """The Hessian of many coordinates as an operator."""

    f: MarginModel
    given: tuple[Any, ...]  # of its works

    @cached_property
    def _sums(self) -> Sums:
        return self.f.data.parts.total(OutputDiagonal(*self.given, sums=self._at.W.size))

    @property
    def _at(self) -> OutputColumns:
        return self.given[-1]

    @cached_property
    def _inverse(self) -> np.ndarray:
        """Of the sum of all second derivatives: intercepts follow by it."""
        return CurvatureRows.inverse_of(self._sums[2])

    def __matmul__(self, u: np.ndarray) -> np.ndarray:
        f = self.f
        x = np.zeros(f.shape)
        x.reshape(-1)[self._at.W] = u
        absolute = not f.convex and bool(self._sums[3])
        (g,) = f.data.parts.total(OutputProduct(*self.given, sums=x.size, x=x, absolute=absolute))
        g = g.reshape(-1)[self._at.W]
        if not f.is_finite_sum:
            V = self._sums[1]
            g = g - V @ (self._inverse @ (V.T @ u))
        return g / f.n

    def diagonal(self) -> np.ndarray:
        """The diagonal, as if there were no intercepts."""
        return self._sums[0] / self.f.n
