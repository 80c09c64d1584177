"""Numbers of rows that hosts keep: handles here, arrays there, and the works that have made them."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from extremal.data.parts import KeptNumbers, Part
from extremal.files.shards.engine import LocalShards
from extremal.kernels.arguments import locked

if TYPE_CHECKING:
    from extremal.scale.wire import Packed


@dataclass(frozen=True)
class Made:
    """A work that has filled some numbers: with the works behind those that it reads, enough to fill them again.

    It holds no handle, so that numbers are dropped with their last handle, and others can still be made again from it.
    """

    number: int  # in the order of works
    request: Packed
    fresh: tuple[str, ...]  # what it fills
    behind: tuple[Made, ...]


class RemoteNumbers(KeptNumbers):
    """A handle of numbers that hosts keep; the first work that it is in fills them, and no other."""

    def __init__(self, name: str, shape: tuple[int, ...]):
        self.name, self.shape = name, shape
        self.made: Made | None = None

    def of(self, part: Part) -> np.ndarray:
        """Those of a part are looked at by its host."""
        raise TypeError(f"the numbers {self.name} are with their hosts, and part {part.index} is not")


def history(made: Iterable[Made | None]) -> list[Made]:
    """All works behind some numbers, in the order in which they were done."""
    found: dict[int, Made] = {}
    todo = [one for one in made if one is not None]
    while todo:
        one = todo.pop()
        if one.number not in found:
            found[one.number] = one
            todo += one.behind
    return [found[number] for number in sorted(found)]


@dataclass
class Store:
    """The numbers that a host keeps for the rows of its own parts, by name; large ones are mapped from files without a name."""

    local: LocalShards  # of its own shards
    own: tuple[int, ...]  # which of all parts they are
    n: int  # rows of all parts
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    heads: dict[tuple[str, int], np.ndarray] = field(default_factory=dict)  # of the first rows of a part alone
    spare: dict[tuple[int, ...], list[np.ndarray]] = field(default_factory=dict)  # dropped by the last call, by shape
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        rows = [shard.n for shard in self.local.manifest.shards]
        self._first = dict(zip(self.own, accumulate([0, *rows[:-1]]), strict=True))

    def of(self, name: str, shape: tuple[int, ...], part: Part) -> np.ndarray:
        """Those of a part; there is room for them from the first time on that they are asked for."""
        with self.lock:
            if shape[0] < self.n:
                key = name, part.index
                return self.heads[key] if key in self.heads else self.heads.setdefault(key, self._room(part.n, *shape[1:]))
            if name not in self.arrays:
                self.arrays[name] = self._room(self.local.n, *shape[1:])
        first = self._first[part.index]
        return self.arrays[name][first : first + part.n]

    def drop(self, names: Iterable[str]) -> None:
        """Forget some of them."""
        gone = set(names)
        lost = [self.arrays.pop(name) for name in gone & set(self.arrays)]
        lost += [self.heads.pop(key) for key in list(self.heads) if key[0] in gone]
        self.spare = {} if lost else self.spare
        for a in lost:
            self.spare.setdefault(a.shape, []).append(a)

    def _room(self, *shape: int) -> np.ndarray:
        """Room for numbers; that of numbers that were dropped, as workers of Dask map new arrays page by page."""
        spare = self.spare.get(shape)
        return spare.pop() if spare else self.local.room(*shape)

    @property
    def names(self) -> list[str]:
        """What there is."""
        return sorted({*self.arrays, *(name for name, _ in self.heads)})


@dataclass(frozen=True)
class HostNumbers(KeptNumbers):
    """The same numbers for works that are done by the host; they can be written by the work that fills them only."""

    store: Store
    name: str
    shape: tuple[int, ...]
    fresh: bool

    def of(self, part: Part) -> np.ndarray:
        """Those of a part."""
        found = self.store.of(self.name, self.shape, part)
        return found if self.fresh else locked(found)
