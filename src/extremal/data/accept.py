"""What is accepted as data."""

from __future__ import annotations

from typing import Any

from extremal import checks
from extremal.data.base import Data
from extremal.data.csr import CSR
from extremal.data.dense import Dense


def as_data(A: Any) -> Data:
    """Wrap an array or a scipy sparse matrix; anything that already keeps the contract passes as it is."""
    if checks.is_sparse(A):
        return CSR(A)
    if not checks.lacks(A, "dot_vertex", "tdot", "row_norms2"):
        return A
    return Dense(A)
