"""Sets and losses as words and numbers, and sets from these: plain data in files, from which nothing is executed."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from extremal import sets
from extremal.checks import InputError, is_sparse
from extremal.sets.base import ConvexSet
from extremal.sets.norms.groups import Groups

OWN = "extremal."  # modules whose kinds are known by their names alone
DEEPEST = 20  # sets made of sets made of ...


def plan_of(item: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A value as plain data; arrays go to ``arrays`` under a checksum, so that equal values have equal plans.

    Examples
    --------
    >>> import extremal as ex
    >>> plan_of(ex.L1Ball(2.0), {})
    {'kind': 'L1Ball', 'fields': {'radius': 2.0, 'shape': None, 'centre': None}}
    """
    item = item.item() if isinstance(item, np.generic) else item
    if item is None or isinstance(item, (bool, int, str)):
        return item
    if isinstance(item, float):
        return item if math.isfinite(item) else {"float": repr(item)}
    if isinstance(item, np.ndarray) and item.dtype.kind in "biufU":
        a = np.ascontiguousarray(item)
        name = "array " + hashlib.sha256(f"{a.dtype.str}{item.shape}".encode() + a.tobytes()).hexdigest()[:24]
        arrays[name] = a.reshape(item.shape)
        return {"array": name}
    if is_sparse(item):
        A: Any = sp.csr_array(item)
        A.sort_indices()
        parts = {name: plan_of(getattr(A, name), arrays) for name in ("indptr", "indices", "data")}
        return {"sparse": [*map(int, A.shape)], "parts": parts}
    if isinstance(item, (tuple, list)):
        return {"tuple": [plan_of(part, arrays) for part in item]}
    kind = type(item)
    name = kind.__name__ if kind.__module__.startswith(OWN) else f"{kind.__module__}.{kind.__qualname__}"
    if not dataclasses.is_dataclass(item) or isinstance(item, type):
        return {"kind": name if not callable(item) else getattr(item, "__qualname__", name)}
    given = [field.name for field in dataclasses.fields(item) if field.init]
    return {"kind": name, "fields": {field: plan_of(getattr(item, field), arrays) for field in given}}


def set_from(plan: Any, arrays: Mapping[str, np.ndarray]) -> ConvexSet:
    """The set that a plan describes: one of the library, whose constructor checks its numbers.

    Examples
    --------
    >>> import extremal as ex
    >>> arrays = {}
    >>> set_from(plan_of(ex.Box(np.zeros(2), np.ones(2)), arrays), arrays)
    Box(lower=<2 array>, upper=<2 array>, shape=(2,))
    >>> set_from({"kind": "os.system", "fields": {}}, {})
    Traceback (most recent call last):
        ...
    extremal.checks.InputError: no set of the library is called 'os.system'
    """
    made = _value(plan, arrays, DEEPEST)
    if not isinstance(made, ConvexSet):
        raise InputError(f"expected a set of the library, got {made!r}")
    return made


def _value(plan: Any, arrays: Mapping[str, np.ndarray], deep: int) -> Any:
    if not isinstance(plan, dict):
        return plan
    match plan:
        case _ if not deep:
            raise InputError(f"a set is made of sets more than {DEEPEST} deep")
        case {"float": ("inf" | "-inf" | "nan") as text}:
            return float(text)
        case {"array": str(name)} if name in arrays:
            return arrays[name]
        case {"sparse": [int(n), int(d)], "parts": {"indptr": starts, "indices": columns, "data": values}}:
            parts = [_value(part, arrays, deep - 1) for part in (values, columns, starts)]
            A = sp.csr_array(tuple(parts), shape=(n, d))
            A.check_format(full_check=True)
            return A
        case {"tuple": list(items)}:
            return tuple(_value(item, arrays, deep - 1) for item in items)
        case {"kind": str(name), "fields": dict(fields)}:
            return _made(name, {field: _value(value, arrays, deep - 1) for field, value in fields.items()})
    raise InputError(f"a set is described by {str(plan)[:100]!r}, which is no plain data of this format")


def _made(name: str, fields: dict[str, Any]) -> Any:
    if name == "Groups":
        starts, indices = np.asarray(fields["starts"]), np.asarray(fields["indices"])
        return Groups.joined(np.split(indices, starts[1:]))
    kind = getattr(sets, name, None) if name in dir(sets) else None
    if not (isinstance(kind, type) and issubclass(kind, ConvexSet)):
        raise InputError(f"no set of the library is called {name[:100]!r}")
    known = {field.name for field in dataclasses.fields(kind) if field.init}  # type: ignore[arg-type]
    if not set(fields) <= known:
        raise InputError(f"{name} has no field {sorted(set(fields) - known)[0]!r}")
    if "sets" in fields and "shape" in fields:  # a product has the shape of its parts
        fields = {"sets": fields["sets"]}
    return kind(**fields)
