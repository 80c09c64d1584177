"""Linear models of several outputs on some of their coordinates: products with these, and their Hessian."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from extremal.losses.multi import CurvatureRows
from extremal.objectives.column_blocks import WIDE, Slice
from extremal.quadratic.search import is_definite
from extremal.support import clock
from extremal.support.kinds import Symmetric

if TYPE_CHECKING:
    from extremal.objectives.margins import MarginModel

FORMED = 3e10  # from this many rows times coordinates squared on, the Hessian is an operator
ROW_BLOCK = 2**19  # numbers in a block of rows


@dataclass(frozen=True)
class OutputSlice(Slice):
    """f on the coordinates W of x, flat: coordinate j k + c is feature j for output c."""

    f: MarginModel

    def dot(self, d: np.ndarray) -> np.ndarray:
        x = np.zeros(self.f.shape, self.f.dtype)
        x.reshape(-1)[self.W] = d
        return self.f.data.dot(x)

    def hessian(self, z: np.ndarray, far: bool = False, width: float = 0.0) -> Symmetric:
        """(1/n) sum_i (diag D_i - P_i P_i') x a_i a_i' on W, minus the part that intercepts remove; an operator if it is large.

        Uses |D_i| if f is not convex and the Hessian is not positive definite.
        """
        bend = self.f.curvature_rows_at(z, width)
        H = self._sum(bend)
        if self.f.convex or not (bend.D < 0).any() or (isinstance(H, np.ndarray) and is_definite(H)):
            return H
        return self._sum(replace(bend, D=np.abs(bend.D)))

    def _sum(self, bend: CurvatureRows) -> Symmetric:
        k = len(self.W)
        if k > WIDE or self.f.n * float(k) ** 2 > FORMED:
            return OutputProducts(self, bend)
        H, V = np.zeros((k, k)), np.zeros((k, self.outputs))
        for rows, B in self._blocks():
            clock.check()
            self._add(H, V, B, CurvatureRows(bend.D[rows], None if bend.P is None else bend.P[rows]))
        if not self.f.is_finite_sum:
            H -= V @ bend.inverse @ V.T
        return H / self.f.n

    def _add(self, H: np.ndarray, V: np.ndarray, B: np.ndarray, bend: CurvatureRows) -> None:
        """Add the sums over a block of rows: the Hessian, and its part between coefficients and intercepts."""
        for c, idx, place in self._by_output:
            own = B[:, place]
            bent = own * bend.D[:, c, None]
            H[np.ix_(idx, idx)] += bent.T @ own
            V[idx, c] += bent.sum(axis=0)
        if bend.P is not None:
            M = B[:, self._place] * bend.P[:, self.W % self.outputs]
            H -= M.T @ M
            V -= M.T @ bend.P

    @property
    def outputs(self) -> int:
        return self.f.shape[1]

    @cached_property
    def _features(self) -> np.ndarray:
        return np.unique(self.W // self.outputs)

    @cached_property
    def _place(self) -> np.ndarray:
        return np.searchsorted(self._features, self.W // self.outputs)

    @cached_property
    def _by_output(self) -> list[tuple[int, np.ndarray, np.ndarray]]:
        """For each output in use, its coordinates in W and the places of their features."""
        own = self.W % self.outputs
        mine = [(int(c), np.flatnonzero(own == c)) for c in np.unique(own)]
        return [(c, idx, self._place[idx]) for c, idx in mine]

    def _blocks(self) -> Any:
        """Blocks of rows, with their entries in the features of W as dense arrays."""
        return self.f.data.columns(self._features).arrays(max(1, ROW_BLOCK // max(len(self._features), len(self.W))))


@dataclass(frozen=True)
class OutputProducts:
    """The Hessian of many coordinates as an operator; each product costs two products with all of A."""

    part: OutputSlice
    bend: CurvatureRows

    def __matmul__(self, u: np.ndarray) -> np.ndarray:
        f, C = self.part.f, self.bend.dot(self.part.dot(u))
        if not f.is_finite_sum:
            C = C + self.bend.dot(np.broadcast_to(self.bend.follow(C), C.shape))
        return f.data.tdot(C.astype(f.dtype, copy=False)).reshape(-1)[self.part.W].astype(np.float64) / f.n

    def diagonal(self) -> np.ndarray:
        """The diagonal, as if there were no intercepts."""
        part, D, P = self.part, self.bend.D, self.bend.P
        total = np.zeros((len(part._features), part.outputs))
        for rows, B in part._blocks():
            total += np.square(B).T @ (D[rows] if P is None else D[rows] - np.square(P[rows]))
        return total[part._place, part.W % part.outputs] / part.f.n
