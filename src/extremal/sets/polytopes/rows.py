"""What describes a polytope, as `scipy.optimize.linprog` takes it: checked, and kept as values."""

from __future__ import annotations

from typing import Any

import numpy as np

from extremal.checks import InputError
from extremal.sets.arguments import matrix_argument, numbers
from extremal.sets.base import brief_array


def constraints(call: str, A_ub: object, b_ub: object, A_eq: object, b_eq: object, bounds: object) -> dict[str, Any]:
    """The fields that describe a polytope as `scipy.optimize.linprog` does, checked; bounds as a d x 2 array."""
    fields: dict[str, Any] = {}
    for kind, A, b in (("ub", A_ub, b_ub), ("eq", A_eq, b_eq)):
        if (A is None) != (b is None):
            raise InputError(f"`{call}(A_{kind}=..., b_{kind}=...)` must be given together")
        fields[f"A_{kind}"] = None if A is None else matrix_argument(call, f"A_{kind}", A)
        fields[f"b_{kind}"] = None if A is None else _vector(call, f"b_{kind}", b, fields[f"A_{kind}"].shape[0])
    widths = {A.shape[1] for A in (fields["A_ub"], fields["A_eq"]) if A is not None}
    if len(widths) > 1:
        raise InputError(f"`{call}(A_ub=..., A_eq=...)` must have as many columns as each other, got {widths}")
    return fields | {"bounds": _bounds(call, bounds, widths.pop() if widths else None)}


def _vector(call: str, name: str, value: object, length: int) -> np.ndarray:
    v = numbers(call, name, value, "a vector of numbers")
    if len(v) != length:
        raise InputError(f"`{call}({name}=...)` must have one number for each of the {length} rows, got {len(v)}")
    return v


def _bounds(call: str, value: object, d: int | None) -> np.ndarray:
    """One pair for all variables or a pair for each; None is no bound."""
    pairs = np.array((None, None) if value is None else value, dtype=object)
    if pairs.ndim == 1 and d is not None:
        pairs = np.tile(pairs, (d, 1))
    each = "each variable" if d is None else f"each of the {d} variables"
    wanted = f"`{call}(bounds=...)` must be a pair (lower, upper), or one for {each}"
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs) or (d or len(pairs)) != len(pairs):
        raise InputError(f"{wanted}, got {brief_array(value)}")
    for k, none in enumerate((-np.inf, np.inf)):
        pairs[:, k] = [none if end is None else end for end in pairs[:, k]]
    try:
        a = pairs.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{wanted}, numbers or None, got {brief_array(value)}") from None
    if not ((a[:, 0] <= a[:, 1]).all() and (a[:, 0] < np.inf).all() and (a[:, 1] > -np.inf).all()):
        raise InputError(f"`{call}(bounds=...)` must have lower <= upper for each variable, got {brief_array(value)}")
    a.flags.writeable = False
    return a
