"""Fractions in arrays: numbers for runs in rational arithmetic, and floats that know the fraction they were rounded from."""

from __future__ import annotations

from numbers import Rational
from typing import Any

import numpy as np


class Rounded(float):
    """A float that remembers the fraction from which it was rounded, such as the radius of a set."""

    exact: Any

    @classmethod
    def of(cls, value: Rational) -> Rounded:
        """The nearest float to a fraction."""
        new = cls(value)
        new.exact = value
        return new


class RoundedArray(np.ndarray):
    """The same for an array; arrays computed from it remember nothing."""

    exact: np.ndarray | None = None

    @classmethod
    def of(cls, exact: np.ndarray) -> RoundedArray:
        """The nearest floats to an array of fractions."""
        new = exact.astype(np.float64).view(cls)
        new.exact, exact.flags.writeable = exact, False
        return new

    def __reduce__(self) -> Any:
        return super().__reduce__() if self.exact is None else (RoundedArray.of, (self.exact,))

    def __deepcopy__(self, memo: dict[int, Any] | None) -> np.ndarray:
        return super().__deepcopy__(memo) if self.exact is None else self


def is_exact(a: Any) -> bool:
    """Whether an array holds fractions instead of floats."""
    return a.dtype.kind == "O"


def as_fractions(value: object) -> np.ndarray | None:
    """An array of whole numbers and fractions as one of fractions; None if it holds anything else."""
    a = np.asarray(value, object)
    if not all(isinstance(v, Rational | np.integer) and not isinstance(v, bool) for v in a.flat):
        return None
    return _array([fraction(v) for v in a.flat], a.shape)


def fraction(value: Any) -> Any:
    """A number as a fraction: the one that a float was rounded from, or that it is; the same for arrays."""
    from fractions import Fraction  # only exact runs need it

    if isinstance(value, np.ndarray):
        exact = value.exact if isinstance(value, RoundedArray) else None
        return _array([fraction(v) for v in value.flat], value.shape) if exact is None else exact
    value = int(value) if isinstance(value, np.integer) else value  # integers of numpy would overflow inside a fraction
    return Fraction(value.exact if isinstance(value, Rounded) else value)


def _array(values: list[Any], shape: tuple[int, ...]) -> np.ndarray:
    out = np.empty(len(values), object)
    out[:] = values
    return out.reshape(shape)
