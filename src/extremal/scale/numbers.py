"""Numbers of rows that hosts keep: handles on the driver, arrays on the hosts, and the works that have made them."""

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
    """A work that has filled some numbers. Together with the works behind its inputs, it suffices to fill them again.

    It holds no handle, so numbers are dropped with their last handle, and the work can still help to make others again.
    """

    number: int  # position in the order of works
    request: Packed
    fresh: tuple[str, ...]  # the numbers that it fills
    behind: tuple[Made, ...]


class RemoteNumbers(KeptNumbers):
    """A handle of numbers that hosts keep; only the first work that contains the handle fills them."""

    def __init__(self, name: str, shape: tuple[int, ...]):
        self.name, self.shape = name, shape
        self.made: Made | None = None

    def of(self, part: Part) -> np.ndarray:
        """Refused: only the host of a part can look at its numbers."""
        raise TypeError(f"the numbers {self.name} are on their hosts, and part {part.index} is not")


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
    """The numbers that a host keeps for the rows of its own parts, by name; large ones are mapped from unnamed files."""

    local: LocalShards  # the engine of the host's own shards
    own: tuple[int, ...]  # their indices among all parts
    n: int  # rows of all parts
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    heads: dict[tuple[str, int], np.ndarray] = field(default_factory=dict)  # numbers of the first rows of a part alone
    spare: dict[tuple[int, ...], list[np.ndarray]] = field(default_factory=dict)  # dropped by the last call, by shape
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        rows = [shard.n for shard in self.local.manifest.shards]
        self._first = dict(zip(self.own, accumulate([0, *rows[:-1]]), strict=True))

    def of(self, name: str, shape: tuple[int, ...], part: Part) -> np.ndarray:
        """The numbers of a part, allocated on first use."""
        with self.lock:
            if shape[0] < self.n:
                key = name, part.index
                return self.heads[key] if key in self.heads else self.heads.setdefault(key, self._room(part.n, *shape[1:]))
            if name not in self.arrays:
                self.arrays[name] = self._room(self.local.n, *shape[1:])
        first = self._first[part.index] + part.skipped
        return self.arrays[name][first : first + part.n]

    def drop(self, names: Iterable[str]) -> None:
        """Forget some numbers."""
        gone = set(names)
        lost = [self.arrays.pop(name) for name in gone & set(self.arrays)]
        lost += [self.heads.pop(key) for key in list(self.heads) if key[0] in gone]
        self.spare = {} if lost else self.spare
        for a in lost:
            self.spare.setdefault(a.shape, []).append(a)

    def _room(self, *shape: int) -> np.ndarray:
        """Room for numbers, reused from dropped ones if possible, because Dask's workers map new arrays page by page."""
        spare = self.spare.get(shape)
        return spare.pop() if spare else self.local.room(*shape)

    @property
    def names(self) -> list[str]:
        """The names of all numbers."""
        return sorted({*self.arrays, *(name for name, _ in self.heads)})


@dataclass(frozen=True)
class HostNumbers(KeptNumbers):
    """The same numbers for works on the host; only the work that fills the numbers can write them."""

    store: Store
    name: str
    shape: tuple[int, ...]
    fresh: bool

    def of(self, part: Part) -> np.ndarray:
        """The numbers of a part."""
        found = self.store.of(self.name, self.shape, part)
        return found if self.fresh else locked(found)
