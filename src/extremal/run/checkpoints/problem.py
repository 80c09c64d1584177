"""The problem of a run in words: what a checkpoint compares with the new call, and the names of what belongs to the call."""

from __future__ import annotations

import hashlib
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from extremal.run.checkpoints.codec import ATOMIC, attributes_of, caches_of

FOREIGN = {"asyncio", "dask", "distributed", "highspy", "numba", "tornado"}  # packages whose objects are no part of a problem
SUMMED_BYTES = 2**16  # bytes of a row of an array, as its checksum sees it


def walked(root: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Each object that is reachable from ``root``, once, with its path; what caches have added does not count."""
    seen, todo = dict[int, Any](), [(name, root)]
    while todo:
        path, item = todo.pop()
        if type(item) not in ATOMIC:
            if id(item) in seen:
                continue
            seen[id(item)] = item  # which stays alive: an id must not be used twice
        yield path, item
        todo += [(f"{path}{key}", value) for key, value in reversed(_inside(item))]


def _inside(item: Any) -> list[tuple[str, Any]]:
    """The parts of an object, by their names."""
    if isinstance(item, (tuple, list)):
        names = getattr(item, "_fields", None)
        return [(f".{names[i]}" if names else f"[{i}]", one) for i, one in enumerate(item)]
    if isinstance(item, dict):
        return [(f"[{key!r}]", one) for key, one in item.items()]
    if isinstance(item, (np.ndarray, np.generic, np.dtype, type, types.ModuleType, types.FunctionType, *ATOMIC)):
        return []
    if hasattr(item, "in_problem"):
        return [(f".{key}", one) for key, one in item.in_problem().items()]
    home = type(item).__module__.partition(".")[0]
    if home in FOREIGN or home in sys.stdlib_module_names:
        return []
    own = getattr(type(item), "__getstate__", None)  # a class with caches names what is not one
    held = item.__getstate__() if home == "extremal" and own is not object.__getstate__ else attributes_of(item)
    names = [field.name for field in fields(item)] if is_dataclass(item) else sorted(held.keys() - caches_of(type(item)))
    return [(f".{key}", held[key] if key in held else getattr(item, key, None)) for key in names]


def words_of(item: Any) -> str | None:
    """A leaf of a problem in words; None for what is only made of other parts."""
    if type(item) in ATOMIC:
        return repr(item)
    if isinstance(item, np.ndarray):
        shape = " x ".join(map(str, item.shape)) or "one"
        return f"{shape} numbers of {item.dtype.name}, checksum {checksum(item)}"
    if isinstance(item, (np.generic, np.dtype, range, slice)):
        return repr(item)
    if isinstance(item, (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, np.ufunc)):
        return f"{item.__module__ if hasattr(item, '__module__') else ''}.{getattr(item, '__qualname__', item)}"
    if hasattr(item, "in_problem"):
        return None
    if isinstance(item, (tuple, list, dict, set, frozenset)):
        return f"{type(item).__name__} of {len(item)}"
    return f"{type(item).__module__}.{type(item).__qualname__}"


def described(root: Any, name: str) -> dict[str, str]:
    """Every part of an object in words, by its path."""
    return {path: words for path, item in walked(root, name) if (words := words_of(item)) is not None}


def names_of(roots: Mapping[str, Any]) -> tuple[dict[int, str], dict[str, Any]]:
    """The names of all objects of a call by their ids, and the objects by name."""
    by_name = {path: item for name, root in roots.items() for path, item in walked(root, name) if type(item) not in ATOMIC}
    by_name = {path: item for path, item in by_name.items() if not (type(item) in (tuple, list, dict) and not item)}
    return {id(item): path for path, item in reversed(by_name.items())}, by_name


def difference(before: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    """The first part that differs, in words; None if all are the same."""
    for path in [*before, *(path for path in now if path not in before)]:
        old, new = before.get(path), now.get(path)
        if old != new:
            return f"`{path}` was {_brief(old)} there, and is {_brief(new)} now"
    return None


def _brief(words: str | None) -> str:
    return "absent" if words is None else words if len(words) <= 100 else f"{words[:97]}..."


def checksum(a: np.ndarray) -> str:
    """A checksum of the numbers of an array in C order: sums over its rows and its columns, at the speed of memory.

    Examples
    --------
    >>> a = np.arange(6.0)
    >>> checksum(a) == checksum(a.copy()), checksum(a) == checksum(a[::-1])
    (True, False)
    """
    digest = hashlib.sha256()
    if a.dtype == object:
        digest.update(repr(a.reshape(-1).tolist()).encode())
        return digest.hexdigest()[:16]
    flat = np.ascontiguousarray(a.T if a.flags.f_contiguous else a).reshape(-1).view(np.uint8)
    digest.update(b"F" if a.flags.f_contiguous and not a.flags.c_contiguous else b"C")
    whole = len(flat) // SUMMED_BYTES * SUMMED_BYTES
    digest.update(flat[whole:].tobytes())
    if whole:
        for part in np.array_split(flat[:whole].view(np.uint64).reshape(-1, SUMMED_BYTES // 8), max(1, whole >> 24)):
            digest.update(part.sum(axis=0).tobytes())
            digest.update(part.sum(axis=1).tobytes())
    return digest.hexdigest()[:16]
