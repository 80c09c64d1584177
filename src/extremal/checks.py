"""Validation shared by all constructors: one clear sentence per mistake, which names the call."""

from __future__ import annotations

import difflib
import math
import os
import sys
from collections.abc import Iterable, Sequence
from numbers import Integral, Rational, Real
from pathlib import Path
from typing import Protocol

import numpy as np

from extremal.support.rational import Rounded, as_fractions


class InputError(ValueError):
    """A mistake in the caller's input: the message names it and says what is accepted.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.L1Ball(-1)
    Traceback (most recent call last):
        ...
    extremal.checks.InputError: `L1Ball(radius=...)` must be a positive finite number, got -1
    """


class NonFiniteError(ValueError):
    """A NaN or an infinity appeared in a gradient or a value during a run."""


class OutsideError(InputError):
    """An iterate is outside its set: a move, a step rule or an oracle is wrong. `minimize` falls back to a point inside."""


class UnsolvedError(RuntimeError):
    """A sub-problem of a step reached its limit of LMOs before its tolerance. `minimize` ends the run there."""


def _number(value: object) -> float:
    """The value as a float, or NaN if it is not a real number, so that every comparison refuses it."""
    if type(value) is float:
        return value
    if isinstance(value, Rounded):
        return value
    if isinstance(value, Rational) and not isinstance(value, Integral):
        return Rounded.of(value)
    return float(value) if isinstance(value, Real) and not isinstance(value, (bool, np.bool_)) else math.nan


def flag(call: str, name: str, value: object) -> bool:
    """Return ``value`` as a bool, refusing other types."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"`{call}({name}=...)` must be True or False, got {value!r}")
    return bool(value)


def fix_flags(instance: object, *names: str) -> None:
    """Refuse fields of a frozen dataclass that are neither True nor False, and store them as bools."""
    fix(instance, **{name: flag(type(instance).__name__, name, getattr(instance, name)) for name in names})


def fix(instance: object, **fields: object) -> None:
    """Store checked fields in a frozen dataclass."""
    for name, value in fields.items():
        object.__setattr__(instance, name, value)


def positive(call: str, name: str, value: object) -> float:
    """Return ``value`` as a float, refusing everything but positive finite numbers."""
    number = _number(value)
    if not 0 < number < math.inf:
        raise InputError(f"`{call}({name}=...)` must be a positive finite number, got {value!r}")
    return number


def at_least(call: str, name: str, value: object, low: float) -> float:
    """Return ``value`` as a float, refusing everything but finite numbers of at least ``low``."""
    number = _number(value)
    if not low <= number < math.inf:
        raise InputError(f"`{call}({name}=...)` must be a finite number of at least {low}, got {value!r}")
    return number


def within(call: str, name: str, value: object, low: float, high: float) -> float:
    """Return ``value`` as a float, refusing everything but numbers in (low, high]."""
    number = _number(value)
    if not low < number <= high:
        raise InputError(f"`{call}({name}=...)` must be a number in ({low}, {high}], got {value!r}")
    return number


def whole(call: str, name: str, value: object, low: int, high: int | None = None) -> int:
    """Return ``value`` as an int, refusing everything but whole numbers in [low, high]."""
    number = int(value) if isinstance(value, Integral) and not isinstance(value, (bool, np.bool_)) else None
    if number is None or number < low or (high is not None and number > high):
        span = f"of at least {low}" if high is None else f"between {low} and {high}"
        raise InputError(f"`{call}({name}=...)` must be a whole number {span}, got {value!r}")
    return number


def one_of(what: str, given: object, accepted: Iterable[str]) -> str:
    """Return ``given`` if accepted, otherwise refuse it and suggest the nearest name."""
    names = sorted(accepted)
    if isinstance(given, str) and given in names:
        return given
    near = difflib.get_close_matches(str(given).lower(), names, n=1, cutoff=0.4)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    raise InputError(f"unknown {what} {given!r}{hint} Accepted: {', '.join(names)}")


class Finite(Protocol):
    """A matrix that is not an array, see extremal.points.matrix."""

    def all_finite(self) -> bool: ...  # whether every entry is finite


def all_finite(a: np.ndarray | Finite) -> bool:
    """Whether every entry is finite, without a temporary of the size of ``a``.

    A sum of squares is finite only if all its terms are. Finite terms can overflow, hence the second test.
    """
    if not isinstance(a, np.ndarray):
        return a.all_finite()
    if a.dtype.kind == "O":  # of fractions
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        if a.dtype.kind == "f" and a.flags.forc:
            flat = a.ravel("K")
            return math.isfinite(flat.dot(flat)) or bool(np.isfinite(a).all())
        return bool(np.isfinite(a.sum()) or np.isfinite(a).all())


def finite(call: str, name: str, a: np.ndarray) -> np.ndarray:
    """Return ``a``, refusing NaN and infinity; the message names the first index."""
    if not all_finite(a):
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(a))[0])
        place = where[0] if len(where) == 1 else where
        raise InputError(f"`{call}({name}=...)` must be finite, got {a[where]} at index {place}")
    return a


def array(call: str, name: str, value: object) -> np.ndarray:
    """Return ``value`` as an array, refusing ragged lists and masked arrays."""
    if np.ma.isMaskedArray(value):
        raise InputError(f"`{call}({name}=...)` must be a plain array, got a masked one; fill or drop the masked entries")
    try:
        return np.asarray(value)
    except ValueError:
        raise InputError(f"`{call}({name}=...)` must be a rectangular array, got lists of unequal length") from None


def fractions(what: str, value: object) -> np.ndarray:
    """Return ``value`` as an array of fractions, refusing floats: they would make an exact run inexact."""
    found = as_fractions(value)
    if found is None:
        other = next(v for v in np.asarray(value, object).flat if as_fractions(v) is None)
        raise InputError(f"{what} must hold whole numbers and fractions.Fraction for an exact run, got {other!r}")
    return found


def is_sparse(a: object) -> bool:
    """Whether ``a`` is a scipy sparse matrix or array; false as long as scipy.sparse is not imported."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(a)


def floating(call: str, name: str, dtype: np.dtype) -> np.dtype:
    """The float type for computations: float32 and float64 stay, other numbers are widened; bytes are in this machine's order."""
    native = dtype.newbyteorder("=")
    if native in (np.float32, np.float64):
        return native
    if dtype.kind in "biu" or native == np.float16:
        return np.dtype(np.float32 if native == np.float16 else np.float64)
    raise InputError(f"`{call}({name}=...)` must hold float64, float32, integers or bools, got dtype {dtype}")


def lacks(part: object, *methods: str) -> bool:
    """Whether an argument is a class, or an object without one of these methods.

    Examples
    --------
    >>> lacks([], "append"), lacks(list, "append"), lacks([], "update")
    (False, True, True)
    """
    return bool(_missing(part, methods))


def _missing(part: object, members: Sequence[str]) -> list[str]:
    return list(members) if isinstance(part, type) else [name for name in members if not hasattr(part, name)]


def contract(call: str, name: str, given: object, what: str, like: str, members: Sequence[str]) -> None:
    """Refuse an object that is not a part of this kind, or lacks a member that such a part needs.

    Examples
    --------
    >>> contract("Method", "step", 3, "step rule", "LineSearch()", ("bind", "eta"))
    Traceback (most recent call last):
        ...
    extremal.checks.InputError: `Method(step=...)` must be a step rule such as LineSearch(), got 3
    """
    missing = _missing(given, members)
    if missing:
        hint = f", without {', '.join(missing)}: a {what} has {', '.join(members)}" if len(missing) < len(members) else ""
        raise InputError(f"`{call}({name}=...)` must be a {what} such as {like}, got {given!r}{hint}")


def check_out(path: Path) -> Path:
    """Return ``path`` if a file can be written there, otherwise raise an error: before the run, not after it."""
    if not path.parent.is_dir():
        raise InputError(f"{path}: cannot be written, there is no directory {path.parent}")
    if (path.exists() and not path.is_file()) or not os.access(path.parent, os.W_OK):
        raise InputError(f"{path}: cannot be written, it is not a file or its directory is read-only")
    return path
