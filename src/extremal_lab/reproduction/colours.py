"""One colour for each method, wherever it is drawn: the pictures, the page and the demonstration take theirs from here."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle

from extremal_lab.reproduction.spec import OURS

Colour = tuple[str, str]  # on a light ground, on a dark one
# the first two of the strong ones and the first six others are far apart for colour-blind readers too: at least 15 in CIELAB
# for each of the three kinds, and 3:1 against the ground
STRONG: tuple[Colour, ...] = (("#0b4fd0", "#5a98ff"), ("#b92800", "#f5602c"), ("#5c6b00", "#c6d64a"))  # for those that are ours
OTHERS: tuple[Colour, ...] = (
    ("#2a3038", "#f0f4ea"), ("#008457", "#22e090"), ("#b683a9", "#c78391"), ("#d77e03", "#ffd60a"), ("#1a99ee", "#aae6fe"),
    ("#7b1fa2", "#c23aac"), ("#767600", "#cfcf52"), ("#8b6a4f", "#c9a88b"), ("#7b8794", "#9aa6b3"), ("#117a8b", "#5fc9d8"),
)  # fmt: skip


def is_ours(method: str) -> bool:
    """Whether it is one of the paper's two, with any parameters."""
    return method.split(":")[0] in OURS


def colours(methods: Iterable[str]) -> dict[str, Colour]:
    """A colour for each method, in the order of the list; they begin again if there are more methods than colours.

    Examples
    --------
    >>> colours(["auto", "sarah-fw", "svrf"])["sarah-fw"]
    ('#0b4fd0', '#5a98ff')
    """
    strong, others = iter(STRONG), cycle(OTHERS)
    return {method: (is_ours(method) and next(strong, None)) or next(others) for method in dict.fromkeys(methods)}
