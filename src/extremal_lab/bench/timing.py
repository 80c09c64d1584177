"""CPU times as ratios, measured in turns, and the type of a measurement."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from extremal.checks import InputError

Clock = Callable[[], float]


@dataclass(frozen=True)
class Measurement:
    """A measured ratio: the median, the smallest and the largest of its repeats, and its bar.

    Examples
    --------
    >>> Measurement.of("methods", "a8a, SarahFW", [1.3, 1.0, 1.1], unit="scipy full gradients", bar=1.2).verdict
    'met'
    """

    part: str  # of the suite
    name: str
    ratio: float
    low: float
    high: float
    repeats: int
    unit: str  # what the ratio counts
    bar: float | None = None  # the ratio should not exceed it
    note: str = ""

    @classmethod
    def of(
        cls, part: str, name: str, ratios: Sequence[float], *, unit: str, bar: float | None = None, note: str = ""
    ) -> Measurement:
        """Median, least and largest of the ratios."""
        if not ratios or not all(math.isfinite(r) for r in ratios):
            raise ValueError(f"{part}, {name}: no finite ratios, got {list(ratios)}")
        values = [float(r) for r in ratios]
        return cls(part, name, median(values), min(values), max(values), len(values), unit, bar, note)

    @property
    def verdict(self) -> str:
        """Whether the median keeps the bar: "met", "missed", or "" without a bar."""
        if self.bar is None:
            return ""
        return "met" if self.ratio <= self.bar else "missed"

    def as_dict(self) -> dict[str, Any]:
        """The fields, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Skipped:
    """A measurement that was not made, and the reason.

    Examples
    --------
    >>> Skipped("copt", "copt", "it does not install").reason
    'it does not install'
    """

    part: str
    name: str
    reason: str


Found = Iterator[Measurement | Skipped]


def seconds(work: Callable[[], object], times: int = 1, clock: Clock = time.process_time) -> float:
    """CPU seconds of one call of ``work``: the mean over ``times`` calls in a row.

    Examples
    --------
    >>> ticks = iter([10.0, 16.0])
    >>> seconds(lambda: None, times=3, clock=lambda: next(ticks))
    2.0
    """
    start = clock()
    for _ in range(times):
        work()
    return (clock() - start) / times


def enough(work: Callable[[], object], target: float, most: int = 10_000, clock: Clock = time.process_time) -> int:
    """The number of calls of ``work`` that take about ``target`` CPU seconds; found by doubling, so that the last count is warm.

    Examples
    --------
    >>> ticks = iter([0.0, 1.0, 0.0, 2.0, 0.0, 4.0])     # a second for each call
    >>> enough(lambda: None, 4.0, clock=lambda: next(ticks))
    4
    """
    times = 1
    while times < most and seconds(work, times, clock) * times < target:
        times *= 2
    return min(times, most)


def in_turns(base: Callable[[], float], contenders: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, list[float]]:
    """The ratios of each contender to the base, in turns: base, first, base, second, base, ...

    Each callable returns its own CPU seconds per unit of work. A contender is divided by the mean of the bases before and
    after it, so a machine that slows down between the repeats slows down both.

    Examples
    --------
    >>> in_turns(lambda: 2.0, {"twice": lambda: 4.0, "half": lambda: 1.0}, repeats=2)
    {'twice': [2.0, 2.0], 'half': [0.5, 0.5]}
    """
    return against({"base": base}, contenders, repeats)["base"]


def against(
    bases: Mapping[str, Callable[[], float]], contenders: Mapping[str, Callable[[], float]], repeats: int
) -> dict[str, dict[str, list[float]]]:
    """The same with several bases, all measured before and after each contender: the ratios of the same runs to each base.

    Examples
    --------
    >>> against({"one": lambda: 1.0, "two": lambda: 2.0}, {"four": lambda: 4.0}, repeats=1)
    {'one': {'four': [4.0]}, 'two': {'four': [2.0]}}
    """
    ratios: dict[str, dict[str, list[float]]] = {base: {name: [] for name in contenders} for base in bases}
    before = {base: clock() for base, clock in bases.items()}
    for _ in range(repeats):
        for name, contender in contenders.items():
            spent = contender()
            after = {base: clock() for base, clock in bases.items()}
            for base, found in ratios.items():
                found[name].append(2 * spent / (before[base] + after[base]))
            before = after
    return ratios


@dataclass(frozen=True)
class Pair:
    """Our call, the call to compare it with, and the words for both."""

    name: str
    ours: Callable[[], object]
    other: Callable[[], object]
    unit: str
    bar: float | None = None


def compared(part: str, pair: Pair, repeats: int, target: float) -> Measurement:
    """The CPU time of our call over that of the other; each turn makes enough calls to take the target time."""
    ours, other = enough(pair.ours, target), enough(pair.other, target)
    contenders = {pair.name: lambda: seconds(pair.ours, ours)}
    ratios = in_turns(lambda: seconds(pair.other, other), contenders, repeats)
    return Measurement.of(part, pair.name, ratios[pair.name], unit=pair.unit, bar=pair.bar)


def keeping(kept: dict[str, list[float]], key: str, cost: Callable[[], float]) -> Callable[[], float]:
    """The same cost function, which also keeps each of its results under a key.

    Examples
    --------
    >>> kept = {}
    >>> keeping(kept, "a", lambda: 3.0)(), kept
    (3.0, {'a': [3.0]})
    """

    def measured() -> float:
        spent = cost()
        kept.setdefault(key, []).append(spent)
        return spent

    return measured


def watched(points: Iterator[Any], look: Callable[[Any], Any], clock: Clock = time.process_time) -> Iterator[tuple[float, Any]]:
    """CPU seconds so far, and ``look`` of each point; the look is off the clock.

    Examples
    --------
    >>> ticks = iter(range(100))
    >>> list(watched(iter("ab"), str.upper, clock=lambda: next(ticks)))
    [(1.0, 'A'), (2.0, 'B')]
    """
    spent, none = 0.0, object()
    while True:
        start = clock()
        x = next(points, none)
        if x is none:
            return
        spent += clock() - start
        yield spent, look(x)


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The slope of log cost over log size, by least squares: e with cost ~ size^e.

    Examples
    --------
    >>> round(exponent([1, 10, 100], [2, 20, 200]), 6)
    1.0
    """
    if len(sizes) < 2:
        raise InputError("a slope needs two sizes at least")
    x, y = [math.log(s) for s in sizes], [math.log(c) for c in costs]
    mx, my = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mx) * (b - my) for a, b in zip(x, y, strict=True)) / sum((a - mx) ** 2 for a in x)
