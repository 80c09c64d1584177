"""The accepted kinds of data."""

from __future__ import annotations

from typing import Any

from extremal import checks
from extremal.data.contract import Data, RowBlock
from extremal.data.csr import CSR
from extremal.data.dense import Dense
from extremal.data.rows import InMemory, RowData


def as_data(A: Any) -> Data:
    """Wrap an array or a scipy sparse matrix; objects that fulfil the contract pass unchanged."""
    return as_rows(A) if checks.lacks(A, "dot_vertex", "tdot", "parts") else A


def as_rows(A: Any) -> RowData:
    """Wrap an array or a scipy sparse matrix; `RowData` passes unchanged."""
    return A if isinstance(A, RowData) else in_memory(A)


def in_memory(A: Any) -> InMemory:
    """Wrap an array or a scipy sparse matrix."""
    return CSR(A) if checks.is_sparse(A) else Dense(A)


def block_of(A: Any) -> RowBlock:
    """Wrap some rows, an array or a scipy sparse matrix, for a part of your own kind of data.

    Examples
    --------
    >>> import numpy as np
    >>> block_of([[1.0, 2.0]]).dot(np.ones(2))
    array([3.])
    """
    return in_memory(A).block
