"""What callers may give and parts may share, as types that several rooms speak of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    import scipy.sparse as sp

MatrixLike: TypeAlias = "ArrayLike | sp.sparray | sp.spmatrix"
Numbers = float | np.ndarray  # one, or an array of them


class Products(Protocol):
    """A symmetric matrix that is known by its products."""

    def __matmul__(self, u: np.ndarray, /) -> np.ndarray:
        """H u."""
        ...


class Operator(Products, Protocol):
    """A symmetric matrix that is known by its products and its diagonal."""

    def diagonal(self) -> np.ndarray:
        """H_jj for every j."""
        ...


Symmetric = np.ndarray | Operator


@runtime_checkable
class DataFrame(Protocol):
    """A data frame, of pandas or polars."""

    @property
    def columns(self) -> Iterable[object]:
        """The names of its columns."""
        ...

    def __len__(self) -> int: ...

    def to_numpy(self) -> np.ndarray:
        """Its rows as an array."""
        ...
