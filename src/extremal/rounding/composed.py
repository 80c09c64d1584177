"""Sets made of sets: part by part."""

from __future__ import annotations

import math

import numpy as np

from extremal.rounding.base import Pairs, broken, settled
from extremal.sets.made.blocks import Product, Rows
from extremal.sets.made.by_columns import Columns
from extremal.sets.made.cuts import AffineCut
from extremal.sets.made.sums import ScaledSet, ShiftedSet


@settled.register
def _(C: Product, x: np.ndarray) -> np.ndarray:
    return C.join([settled(part, block) for part, block in zip(C.sets, C.split(x), strict=True)])


@broken.register
def _(C: Product, x: np.ndarray) -> Pairs:
    for part, block in zip(C.sets, C.split(x), strict=True):
        yield from broken(part, block)


@settled.register
def _(C: Rows, x: np.ndarray) -> np.ndarray:
    return np.stack([settled(C.C, row) for row in x])


@broken.register
def _(C: Rows, x: np.ndarray) -> Pairs:
    for row in x:
        yield from broken(C.C, row)


@settled.register
def _(C: Columns, x: np.ndarray) -> np.ndarray:
    return np.stack([settled(C.C, np.ascontiguousarray(column)) for column in x.T], axis=1)


@broken.register
def _(C: Columns, x: np.ndarray) -> Pairs:
    for column in x.T:
        yield from broken(C.C, np.ascontiguousarray(column))


@settled.register
def _(C: ScaledSet, x: np.ndarray) -> np.ndarray:
    c = x.dtype.type(C.factor)
    return settled(C.C, x / c) * c if abs(math.frexp(C.factor)[0]) == 0.5 else x  # other factors round again


@broken.register
def _(C: ScaledSet, x: np.ndarray) -> Pairs:
    for amount, size in broken(C.C, x / x.dtype.type(C.factor)):
        yield amount * abs(C.factor), size * abs(C.factor)


@broken.register
def _(C: ShiftedSet, x: np.ndarray) -> Pairs:
    return broken(C.C, x.astype(np.float64) - C.offset)


@broken.register
def _(C: AffineCut, x: np.ndarray) -> Pairs:
    yield from broken(C.C, x)
    yield C.violation(x), C.diameter
