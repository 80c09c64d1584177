"""Values of a run as plain data: a list of nodes in JSON, and arrays. Two references to one object stay two references to one.

A value is a number, a word, True, False, None, or ``[i]``: node i. A node begins with its kind. Objects that belong to the call
and not to the run (the data, the loss, the set, the method) are written by their names, and taken from the new call.
"""

from __future__ import annotations

import base64
import enum
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from extremal.checks import InputError
from extremal.data.kept import Stored
from extremal.data.parts import KeptNumbers, counting_rows
from extremal.run.checkpoints import arrays
from extremal.run.checkpoints.container import Contents
from extremal.run.checkpoints.kinds import name_of, state_class

ATOMIC = (type(None), bool, int, float, str)
SEQUENCES: dict[str, type] = {"tuple": tuple, "list": list, "set": set, "frozenset": frozenset, "deque": deque}
Nodes = list[list[Any]]


def caches_of(kind: type) -> set[str]:
    """The names of the cached properties of a class, which are computed again and not stored."""
    return {name for base in kind.__mro__ for name, item in vars(base).items() if isinstance(item, cached_property)}


def attributes_of(item: Any) -> dict[str, Any]:
    """The attributes of an object, those in slots included."""
    slots = (name for base in type(item).__mro__ for name in getattr(base, "__slots__", ()) if name != "__weakref__")
    return {name: getattr(item, name) for name in slots if hasattr(item, name)} | dict(getattr(item, "__dict__", {}))


def caches_in(item: Any) -> list[str]:
    """The names of the cached properties that an object of the library has computed."""
    own = type(item).__module__.startswith("extremal.") and getattr(item, "__dict__", None)
    return sorted(caches_of(type(item)) & own.keys()) if own else []


class Later(Exception):
    """A state that cannot be saved, though the next ones can."""


class StateWriter:
    """Turns values into nodes and arrays. ``given`` has the names of objects that are not stored, by their ids.

    Numbers of the rows of ``model`` that are on other machines are fetched.
    """

    def __init__(self, given: Mapping[int, str], model: Any = None):
        self._model = model
        self.nodes: Nodes = []
        self.blocks: list[np.ndarray] = []  # the bytes of arrays
        self._given, self._places = given, dict[int, int]()
        self._alive: list[Any] = []  # temporary objects: an id must not be used twice

    def put(self, item: Any) -> Any:
        """The value in JSON."""
        if type(item) in ATOMIC:
            return item
        at = self._places.get(id(item))
        return [self._new(item) if at is None else at]

    def _new(self, item: Any) -> int:
        at = self._places[id(item)] = len(self.nodes)
        self._alive.append(item)
        self.nodes.append([])
        self.nodes[at] = self._node(item)
        return at

    def _node(self, item: Any) -> list[Any]:
        if id(item) in self._given:
            return ["given", self._given[id(item)]]
        if isinstance(item, np.ndarray):
            return self._array(item)
        for word, kind in SEQUENCES.items():
            if type(item) is kind:
                return [word, getattr(item, "maxlen", None), *map(self.put, item)]
        if type(item) is dict:
            return ["dict", *(self.put(one) for pair in item.items() for one in pair)]
        return self._leaf(item) or self._object(item)

    def _leaf(self, item: Any) -> list[Any] | None:
        if isinstance(item, bytes):
            return ["bytes", base64.b64encode(item).decode()]
        if isinstance(item, np.generic):
            return ["number", self.put(np.asarray(item))]
        if isinstance(item, np.dtype):
            return ["dtype", item.str]
        if isinstance(item, slice):
            return ["slice", *map(self.put, (item.start, item.stop, item.step))]
        if type(item) is Fraction:
            return ["fraction", item.numerator, item.denominator]
        if isinstance(item, KeptNumbers) and name_of(type(item)) is None:
            if len(item) != self._model.n:
                raise Later("numbers of a sample of rows that are elsewhere")
            return ["numbers", self.put(counting_rows(None, self._model.here, item))]
        if isinstance(item, np.random.Generator) and item.bit_generator.state["bit_generator"] == "PCG64":
            return ["generator", self.put(item.bit_generator.state)]
        return None

    def _array(self, a: np.ndarray) -> list[Any]:
        if type(a) is not np.ndarray:
            raise InputError(f"an array of type {type(a).__name__} cannot be stored")
        if a.dtype == object:
            return ["objects", list(a.shape), a.flags.writeable, *(self.put(one) for one in a.reshape(-1))]
        owner = arrays.owner_of(a)
        if owner is not a:
            return ["part", self.put(owner), arrays.place_of(a, owner), a.flags.writeable]
        block, layout = arrays.layout_of(a)
        self.blocks.append(block)
        return ["array", len(self.blocks) - 1, layout, a.flags.writeable]

    def _object(self, item: Any) -> list[Any]:
        name = name_of(type(item))
        if name is None:
            what = type(item) if not isinstance(item, type) else item
            raise InputError(f"it has an object of {what.__module__}.{what.__qualname__}, which no checkpoint can hold")
        if isinstance(item, enum.Enum):
            return ["word", name, item.name]
        if isinstance(item, tuple):
            return ["named", name, *map(self.put, item)]
        held, caches = saved(item), caches_of(type(item))
        known = [key for key in held if key in caches]
        return ["object", name, known, *(self.put(one) for key in held if key not in caches for one in (key, held[key]))]


def saved(item: Any) -> dict[str, Any]:
    """The state of an object, by attribute."""
    return item.saved_state() if hasattr(item, "saved_state") else attributes_of(item)


class StateReader:
    """Makes the values again. ``given`` has the objects of the call by name, and ``file`` the bytes of arrays."""

    def __init__(self, nodes: Nodes, given: Mapping[str, Any], file: Contents):
        self._nodes, self._given, self._file = nodes, given, file
        self.model: Any = None  # the model whose rows are elsewhere
        self._made: dict[int, Any] = {}
        self._caches: list[tuple[Any, str]] = []

    def get(self, value: Any) -> Any:
        """The value of its JSON."""
        if type(value) in ATOMIC:
            return value
        (at,) = value
        if type(at) is not int or not 0 <= at < len(self._nodes):
            raise ValueError("a reference to nothing")
        if at not in self._made:
            self._make(at)
        return self._made[at]

    def note(self, item: Any, caches: Sequence[str]) -> None:
        """Let ``finish`` compute some cached properties of an object."""
        self._caches += [(item, name) for name in caches if name in caches_of(type(item))]

    def finish(self) -> None:
        """Compute the cached properties that objects had, without counting: steps may ask whether they are there."""
        for item, name in self._caches:
            counting_rows(None, getattr, item, name)
        self._caches.clear()

    def _make(self, at: int) -> None:
        word, *rest = self._nodes[at]
        if word == "object":
            self._object(at, *rest)
        else:
            self._made[at] = self._value(word, rest)

    def _value(self, word: str, rest: list[Any]) -> Any:
        if word in SEQUENCES:
            kind, items = SEQUENCES[word], [self.get(one) for one in rest[1:]]
            return deque(items, rest[0]) if kind is deque else kind(items)
        if word in ("array", "part", "objects"):
            return self._array(word, rest)
        if word == "given":
            if rest[0] not in self._given:
                raise ValueError(f"it refers to {rest[0]!r}, which the call does not have")
            return self._given[rest[0]]
        if word == "dict":
            items = [self.get(one) for one in rest]
            return dict(zip(items[::2], items[1::2], strict=True))
        if word == "named":
            return state_class(rest[0])._make(self.get(one) for one in rest[1:])  # type: ignore[attr-defined]
        return self._leaf(word, rest)

    def _leaf(self, word: str, rest: list[Any]) -> Any:
        if word == "bytes":
            return base64.b64decode(rest[0])
        if word == "number":
            return self.get(rest[0])[()]
        if word == "dtype":
            return np.dtype(str(rest[0]))
        if word == "slice":
            return slice(*map(self.get, rest))
        if word == "fraction":
            return Fraction(rest[0], rest[1])
        if word == "numbers":
            a, f = self.get(rest[0]), self.model
            return f.filled(np.positive, Stored(a, tuple(f.data.bounds), a.shape))
        if word == "generator":
            rng = np.random.default_rng(0)
            rng.bit_generator.state = self.get(rest[0])
            return rng
        if word == "word" and issubclass(kind := state_class(rest[0]), enum.Enum):
            return kind[rest[1]]
        raise ValueError(f"a node of kind {word!r}")

    def _array(self, word: str, rest: list[Any]) -> np.ndarray:
        if word == "objects":
            a = np.empty(len(rest) - 2, object)
            a[:] = [self.get(one) for one in rest[2:]]
            a, writable = a.reshape(rest[0]), rest[1]
        elif word == "part":
            a, writable = arrays.view_of(self.get(rest[0]), rest[1]), rest[2]
        else:
            a, held = arrays.empty_of(rest[1], self._file.size(rest[0]))
            self._file.fill(rest[0], held)
            writable = rest[2]
        if not writable:
            a.flags.writeable = False
        return a

    def _object(self, at: int, name: str, caches: Sequence[str], *rest: Any) -> None:
        kind = state_class(name)
        if issubclass(kind, (tuple, enum.Enum)):
            raise ValueError(f"an object of {name}")
        item = self._made[at] = object.__new__(kind)
        state = dict(zip(rest[::2], map(self.get, rest[1::2]), strict=True))
        restore(item, state)
        self.note(item, caches)


def restore(item: Any, state: Mapping[str, Any]) -> None:
    """Give an object the attributes of its state."""
    if hasattr(item, "restore_state"):
        item.restore_state(state)
        return
    known = {field.name for field in fields(item)} if is_dataclass(item) else None
    for key, value in state.items():
        if not key.isidentifier() or key.startswith("__") or (known is not None and key not in known):
            raise ValueError(f"an attribute {key!r} of {type(item).__name__}")
        object.__setattr__(item, key, value)
    if known is not None and known - set(state) - set(dir(type(item))):
        raise ValueError(f"a {type(item).__name__} without all of its parts")
