"""Types of arguments and of shared parts that several packages use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    import scipy.sparse as sp

MatrixLike: TypeAlias = "ArrayLike | sp.sparray | sp.spmatrix"
Numbers = float | np.ndarray  # one number, or an array of numbers


class Products(Protocol):
    """A symmetric matrix known by its products."""

    def __matmul__(self, u: np.ndarray, /) -> np.ndarray:
        """H u."""
        ...


class Operator(Products, Protocol):
    """A symmetric matrix known by its products and its diagonal."""

    def diagonal(self) -> np.ndarray:
        """H_jj for every j."""
        ...


Symmetric = np.ndarray | Operator


@runtime_checkable
class DataFrame(Protocol):
    """A pandas or polars data frame."""

    @property
    def columns(self) -> Iterable[object]:
        """The names of the columns."""
        ...

    def __len__(self) -> int: ...

    def to_numpy(self) -> np.ndarray:
        """The rows as an array."""
        ...
