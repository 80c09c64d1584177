"""Rows that are read slab by slab: each slab once, at the best point known by then, and a quadratic model of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from extremal.data.parts import Part, PerRow, Sums
from extremal.data.rows import RowData
from extremal.losses.base import Loss
from extremal.losses.over_rows import second_of
from extremal.objectives.alike import first_total
from extremal.objectives.column_blocks import Slice
from extremal.objectives.quadratics import CentredQuadratic, SliceOfQuadratic
from extremal.objectives.works import Look, LossWork

if TYPE_CHECKING:
    from extremal.objectives.margins import MarginModel


class Slab(NamedTuple):
    """The means over some rows at the point at which they were read."""

    n: int  # the rows
    x: np.ndarray
    value: float
    g: np.ndarray
    H: np.ndarray  # the Hessian on some columns


@dataclass(frozen=True)
class SlabSums(LossWork):
    """The sums of phi, of phi' a, and of phi'' a_W a_W', in one read of the rows; margins are not kept."""

    loss: Loss
    y: PerRow
    x: np.ndarray
    W: np.ndarray
    sums: int  # the size of the last two

    def __call__(self, part: Part) -> Sums:
        y, z = part.of(self.y), np.empty(part.n)
        value, g = Look(self.loss, y, self.x, z=z)(replace(part, at=slice(0, part.n)))
        return value, g, part.rows.gram(self.W, second_of(z, y, self.loss))


def read_slab(f: MarginModel, size: int, after: int, x: np.ndarray, W: np.ndarray) -> Slab:
    """The rows of a head of ``size`` rows that a head of ``after`` rows lacks: value, gradient and Hessian at x in one read."""
    data = cast(RowData, cast(RowData, f.data).head(size, after))
    n = data.shape[0]
    value, g, H = first_total(data, SlabSums(f.loss, f.y, x, W, len(W) ** 2 + len(x)))
    return Slab(n, x, value / n, g / n, H / n)


@dataclass(frozen=True, eq=False)
class SlabModel(CentredQuadratic):
    """The mean of the Taylor expansions of slabs, with the Hessian of the last one for all.

        q(x) = sum_b w_b [f_b + <g_b, x - x_b> + (x - x_b)' H (x - x_b) / 2],   w_b the share of slab b

    Slabs of rows in random order have nearly the same Hessian: its noise times x - x_b is no larger than the third term of the
    expansion. Other columns than ``columns`` have the gradients of their slabs, as they were read.
    """

    n: int  # rows in all slabs
    shape: tuple[int, ...]
    columns: np.ndarray  # those of H
    H: np.ndarray
    c: np.ndarray
    value: float
    g: np.ndarray

    @classmethod
    def of(cls, slabs: Sequence[Slab], columns: np.ndarray) -> SlabModel:
        """The model around the point at which the last slab was read; ``columns`` are those of its Hessian."""
        n, c, H = sum(slab.n for slab in slabs), slabs[-1].x, slabs[-1].H
        model = cls(n, c.shape, columns, H, c, 0.0, np.zeros_like(c))
        value, g = 0.0, np.zeros_like(c)
        for slab in slabs:
            d = c - slab.x
            bent = model.bent(d)
            value += slab.n / n * (slab.value + float(d @ slab.g) + 0.5 * float(d @ bent))
            g += slab.n / n * (slab.g + bent)
        return replace(model, value=value, g=g)

    @property
    def known(self) -> np.ndarray:
        """The columns of H."""
        return self.columns

    def bent(self, d: np.ndarray) -> np.ndarray:
        out = np.zeros_like(d)
        out[self.columns] = self.H @ d[self.columns]
        return out

    def on_columns(self, W: np.ndarray) -> Slice:
        return _OnSlabs(self, W)


@dataclass(frozen=True)
class _OnSlabs(SliceOfQuadratic):
    """Some of the known coordinates."""

    f: SlabModel

    def hessian(self, z: Any, far: bool = False, width: float = 0.0) -> np.ndarray:
        place = np.searchsorted(self.f.columns, self.W)
        return self.f.H[np.ix_(place, place)]
