"""The data matrix A (n rows, d columns), in parts. Sparsity lives in this package and nowhere else.

x is a vector of d entries, or a matrix of d rows with a column for each of k outputs; c has n entries, or n rows of k.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from extremal.data.parts import Parts
from extremal.points.vertex import Vertex


class Data(Protocol):
    """What a model asks of its data; ``idx`` picks rows, in any order and with repeats, None all of them.

    Products keep the wider of the two float types: iterates are in float64, and float32 rows are read as they are. `RowData` has
    all of it but for ``shape``, ``dtype`` and ``parts``.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...  # (n, d)
    @property
    def dtype(self) -> np.dtype: ...  # float32 or float64
    @property
    def parts(self) -> Parts: ...  # where the rows are read
    def dot(self, x: np.ndarray, idx: np.ndarray | None = None) -> np.ndarray: ...  # A[idx] x
    def dot_vertex(self, v: Vertex, idx: np.ndarray | None = None) -> np.ndarray: ...  # A[idx] v
    def tdot(self, c: np.ndarray, idx: np.ndarray | None = None) -> np.ndarray: ...  # A[idx]' c
    def row_norms2(self) -> np.ndarray: ...  # |a_i|^2 for every row
    def columns(self, W: np.ndarray) -> Any: ...  # the columns W, as data; W increases
    def lambda_max(self, weights: np.ndarray | None = None) -> float: ...  # the largest eigenvalue of A' diag(weights) A
    def ready(self, *outputs: int) -> None: ...  # compile what products with some rows need, so that no run's clock pays for it
