"""Dense rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.data.blocks import DenseBlock, checked_shape
from extremal.data.rows import InMemory


class Dense(InMemory):
    """Rows in a dense array.

    Products with some rows gather those rows first: O(b d) time and memory for b rows.

    Parameters
    ----------
    A : array of shape (n, d)
        float32 and float64 are kept and not copied; integers and bools become float64.

    Examples
    --------
    >>> import numpy as np
    >>> A = Dense(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> A.dot(np.array([1.0, 1.0]), idx=np.array([1]))
    array([7.])
    """

    def __init__(self, A: Any):
        if checks.is_sparse(A):
            raise InputError("`Dense(A=...)` must be a dense array; CSR takes sparse matrices")
        A = checked_shape(checks.array("Dense", "A", A))
        super().__init__(DenseBlock(np.ascontiguousarray(A, dtype=checks.floating("Dense", "A", A.dtype))))
        checks.finite("Dense", "A", self.array)

    @property
    def array(self) -> np.ndarray:
        """A itself, not copied."""
        return self.block.array()
