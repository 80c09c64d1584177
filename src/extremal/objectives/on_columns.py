"""A linear model seen on some of its coordinates: products with these columns, and their Hessian."""

from __future__ import annotations

from typing import Any

import numpy as np

from extremal.data.csr import CSR
from extremal.data.dense import Dense
from extremal.losses.margin import compiled
from extremal.objectives.column_blocks import SHORT_ROWS, ArrayBlock, EntryBlock, RowBlock
from extremal.objectives.linear import LinearModel
from extremal.objectives.on_columns_multi import OutputSlice
from extremal.objectives.slices import Slice, sliced


def ready(f: Any) -> None:
    """Compile what the columns of f need, so that no run's clock pays for it."""
    if f.deriv_shape or is_entries(f) or compiled(f.loss) is None:
        return
    row = f.sample(np.zeros(1, np.intp))
    part = sliced(row, np.zeros(1, np.intp))
    z = part.dot(np.zeros(1, f.dtype))
    if not f.is_finite_sum:
        z.setflags(write=False)
        row._last = z, 0.0  # one row alone has no best intercept
    part.hessian(z)
    row.between(z, z).value(1.0)
    if f.n <= SHORT_ROWS:
        part.solve(np.zeros(1, np.intp), np.ones(1), np.ones(1), np.zeros(1), z, 1.0)


def has_slices(f: object) -> bool:
    """Whether f is a linear model with its data in memory and a loss that knows its second derivative.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> has_slices(ex.LinearModel(ex.Logistic(), np.eye(2), np.array([1.0, -1.0])))
    True
    """
    bent = "curvature_rows" if getattr(f, "deriv_shape", ()) else "second"  # isinstance of a protocol does not ask a property
    return isinstance(f, LinearModel) and (isinstance(f.data, (CSR, Dense)) or is_entries(f)) and hasattr(f.loss, bent)


def is_entries(f: Any) -> bool:
    """Whether f is about entries of a matrix that is an array; without importing `extremal.data.entries`, which takes long."""
    return hasattr(getattr(f, "data", None), "positions") and not f.factored


@sliced.register
def _(f: LinearModel, W: np.ndarray) -> Slice:
    if f.deriv_shape:
        return OutputSlice(f, W)
    if is_entries(f):
        return EntryBlock(f, W)
    return RowBlock(f, W) if isinstance(f.data, CSR) else ArrayBlock(f, W)
