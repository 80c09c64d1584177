"""Bounds in words: an interval for a coefficient."""

from __future__ import annotations

import math
import re
from numbers import Real
from typing import Any

import numpy as np

from extremal.sets.words.pieces import refused

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?inf"
BOUNDS = "Bounds read '>=0', '<= 1.5', '==0', '[0, 1]', 'nonneg', 'nonpos' or 'free', (low, high) with None for none, or a number"
WORDS: dict[str, tuple[float, float]] = dict.fromkeys(("free", "none"), (-math.inf, math.inf))
WORDS |= dict.fromkeys(("nonneg", "nonnegative", "positive", "pos"), (0.0, math.inf))  # as in scikit-learn, positive has the 0
WORDS |= dict.fromkeys(("nonpos", "nonpositive", "negative", "neg"), (-math.inf, 0.0))


def interval(value: object, given: object) -> tuple[float, float]:
    """The bounds that a value of a dict stands for."""
    if isinstance(value, str):
        found = interval_of(value)
        if found is None:
            raise refused(given, f"cannot read the bounds {value!r}", BOUNDS)
    elif value is None:
        found = WORDS["free"]
    elif isinstance(value, Real) and not isinstance(value, (bool, np.bool_)):
        found = float(value), float(value)
    else:
        found = pair_of(value, given)
    low, high = found
    if math.isnan(low) or math.isnan(high) or low == math.inf or high == -math.inf:
        raise refused(given, f"{value!r} are no bounds", BOUNDS)
    if low > high:
        raise refused(given, f"the bounds {value!r} leave no number between them", BOUNDS)
    return found


def pair_of(value: Any, given: object) -> tuple[float, float]:
    """The bounds in a pair."""
    try:
        low, high = value
        return -math.inf if low is None else float(low), math.inf if high is None else float(high)
    except (TypeError, ValueError):
        raise refused(given, f"cannot read the bounds {value!r}", BOUNDS) from None


def interval_of(text: str) -> tuple[float, float] | None:
    """The bounds that a text stands for, alone or joined by '&'; None if it is no text of that kind."""
    low, high = WORDS["free"]
    for part in text.split("&"):
        found = _interval(part.strip())
        if found is None:
            return None
        low, high = max(low, found[0]), min(high, found[1])
    return low, high


def without_hyphens(text: str) -> str:
    """A word in one piece: non-negative, non_negative and Non negative are the same.

    Examples
    --------
    >>> without_hyphens("Non-negative")
    'nonnegative'
    """
    return re.sub(r"[-_\s]", "", text.lower())


def _interval(text: str) -> tuple[float, float] | None:
    if without_hyphens(text) in WORDS:
        return WORDS[without_hyphens(text)]
    if match := re.fullmatch(rf"\[\s*({NUMBER})\s*,\s*({NUMBER})\s*\]", text):
        return float(match[1]), float(match[2])
    if match := re.fullmatch(rf"(<=|>=|==?)\s*({NUMBER})", text):
        value = float(match[2])
        return (-math.inf if match[1] == "<=" else value), (math.inf if match[1] == ">=" else value)
    return None
