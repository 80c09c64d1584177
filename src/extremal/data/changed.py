"""Parts that are changed when they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal.data.parts import Part, Parts, Sums, Work
from extremal.data.works import RowWork

Change = Callable[[Any], Any]  # of a block of rows, to another


@dataclass(frozen=True)
class PickColumns:
    """Some columns of a block."""

    W: np.ndarray

    def __call__(self, block: Any) -> Any:
        return block.columns(self.W)


@dataclass(frozen=True)
class AddColumn:
    """A block with one column more, of one value."""

    value: float

    def __call__(self, block: Any) -> Any:
        return block.with_column(self.value)


class ChangedParts(Parts):
    """The parts of another engine, each changed before a work looks at its rows."""

    def __init__(self, inner: Parts, change: Change):
        self.inner, self.change, self.n = inner, change, inner.n

    def answers(self, work: Work) -> tuple[int, Iterator[Sums]]:
        """Those of the other engine."""
        return self.inner.answers(_Changing(work, self.change) if work.reads else work)


@dataclass(frozen=True)
class _Changing(RowWork):
    """A work on parts that are changed first."""

    work: Work
    change: Change

    @property
    def alone(self) -> bool:
        return self.work.alone

    @property
    def sums(self) -> int:
        return self.work.sums

    def __call__(self, part: Part) -> Sums:
        return self.work(Part(self.change(part.rows), part.at))
