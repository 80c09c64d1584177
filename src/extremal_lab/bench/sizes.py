"""The cost of a component gradient as the number of rows grows: random rows, and consecutive rows of a shuffled copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

from extremal.objectives import LinearModel
from extremal.support.memory import free_memory
from extremal_lab.bench.iterations import METHODS, power
from extremal_lab.bench.machine import largest_cache
from extremal_lab.bench.problems import Problem, generated, hundredth, per_pass, run
from extremal_lab.bench.timing import Found, Measurement, Skipped, enough, exponent, in_turns, seconds

PART = "sizes"
UNIT = "scipy full gradients for n component gradients"
BAR = 1.2  # the largest cost of a component gradient over the smallest, once the data exceed the cache
FROM = 100_000  # least number of rows for which costs are compared
D, PER_ROW, PASSES = 1000, 12, 6
ROW = 12 * PER_ROW + 4 + 8  # bytes of a row: entries and columns, its start, its target
KINDS: dict[str, Callable[[LinearModel], LinearModel]] = {"rows": lambda f: f, "blocks": lambda f: f.shuffled(seed=1)}
Key = tuple[str, str, int]  # method, rows or blocks, n


@dataclass(frozen=True)
class Sizes:
    """The sizes of a level of measurement."""

    rows: tuple[int, ...] = (10_000, 100_000, 500_000, 2_000_000)
    repeats: int = 5
    target: float = 0.05  # least CPU seconds of a run


LEVELS = {
    "smoke": Sizes((500, 2_000), 2, 0.001),
    "quick": Sizes((10_000, 100_000, 300_000), 3),
    "default": Sizes(),
    "full": Sizes((10_000, 100_000, 500_000, 2_000_000, 10_000_000), 7),
}


def measure(level: str) -> Found:
    """Measure the ratios at every size, and the growth of the cost of a component gradient."""
    sizes = LEVELS[level]
    rows = [n for n in sizes.rows if fits(n, free_memory())]
    for n in set(sizes.rows) - set(rows):
        yield Skipped(PART, f"n = {power(n)}", f"it needs {needed(n) / 1e9:.1f} GB of free memory")
    ratios, costs = _all_in_turns(rows, sizes)
    for (method, kind, n), found in ratios.items():
        yield Measurement.of(PART, f"{method}: n = {power(n)}, {kind}", found, unit=UNIT)
    for method in METHODS:
        for kind in KINDS:
            yield from _growth(method, kind, {n: costs[method, kind, n] for n in rows})
        pairs = zip(costs[method, "blocks", rows[-1]], costs[method, "rows", rows[-1]], strict=True)
        name = f"blocks over rows: {method}, n = {power(rows[-1])}"
        yield Measurement.of(PART, name, [blocks / each for blocks, each in pairs], unit="times the CPU time of random rows")


def needed(n: int) -> int:
    """Bytes for n rows, their shuffled copy, and the arrays of a run, with half of that for smaller sizes."""
    return round(1.5 * n * (2 * ROW + 48))


def fits(n: int, free: int | None) -> bool:
    """Whether n rows can be measured; if the free memory is not known, up to 2 million.

    Examples
    --------
    >>> fits(10_000_000, 10**9), fits(10_000_000, 2 * 10**10), fits(10_000_000, None), fits(1000, None)
    (False, True, False, True)
    """
    return n <= 2_000_000 if free is None else needed(n) < free


def _all_in_turns(rows: list[int], sizes: Sizes) -> tuple[dict[Key, list[float]], dict[Key, list[float]]]:
    """Ratios and CPU seconds of a component gradient. All sizes take part in each turn, so that they can be compared."""
    turns = [_Turn(generated(n, D, PER_ROW), sizes) for n in rows]
    for seed in range(sizes.repeats):
        for turn in turns:
            turn.take(seed)
    ratios, costs = {}, {}
    for turn in turns:
        ratios |= turn.ratios
        costs |= turn.costs
    return ratios, costs


class _Turn:
    """All methods at one size. With the same seed Sarah's coins are the same at every n, because b/n and p do not change."""

    def __init__(self, problem: Problem, sizes: Sizes):
        n = self.n = problem.n
        gradient = problem.scipy_gradient()
        times = enough(gradient, sizes.target / 5)
        self.base = lambda: seconds(gradient, times)
        self.runs = max(1, round(sizes.target / (PASSES * seconds(gradient, times))))
        models = {kind: make(problem.f) for kind, make in KINDS.items()}
        self.models = {(method, kind, n): f for method in METHODS for kind, f in models.items()}
        self.ratios: dict[Key, list[float]] = {key: [] for key in self.models}
        self.costs: dict[Key, list[float]] = {key: [] for key in self.models}
        for key in self.models:
            self._cost(key, 0, runs=1)  # compiled and warm

    def take(self, seed: int) -> None:
        """Measure one more ratio of each."""
        contenders = {"/".join(map(str, key)): lambda key=key: self._kept(key, seed) for key in self.models}
        for key, found in zip(self.models, in_turns(self.base, contenders, 1).values(), strict=True):
            self.ratios[key] += found

    def _kept(self, key: Key, seed: int) -> float:
        cost = self._cost(key, seed, self.runs)
        self.costs[key].append(cost / self.n)
        return cost

    def _cost(self, key: Key, seed: int, runs: int) -> float:
        """CPU seconds of n component gradients: the mean over some runs from one seed, all of the same length."""
        recipe = METHODS[key[0]](hundredth(self.n))
        return sum(per_pass(run(self.models[key], recipe, seed=seed, max_grads=PASSES * self.n)) for _ in range(runs)) / runs


def _growth(method: str, kind: str, costs: dict[int, list[float]]) -> Iterator[Measurement | Skipped]:
    """The exponent of n in the cost of n component gradients, and the spread of the cost of one beyond the cache."""
    if len(costs) > 1:
        slopes = [1 + exponent(list(costs), at) for at in zip(*costs.values(), strict=True)]
        unit = "exponent of n in the CPU time of n component gradients"
        yield Measurement.of(PART, f"exponents: {method}, of n by {kind}", slopes, unit=unit)
    large = [found for n, found in costs.items() if n >= FROM and n * ROW > largest_cache()]
    name = f"beyond the cache: {method}, {kind}"
    if len(large) < 2:
        yield Skipped(PART, name, "fewer than two sizes exceed the cache")
        return
    middle = [median(found) for found in large]
    ratio = max(middle) / min(middle)
    each = [max(at) / min(at) for at in zip(*large, strict=True)]  # an upper bound, because noise makes the largest larger
    unit = "largest cost of a component gradient over the smallest"
    yield Measurement(PART, name, ratio, min(*each, ratio), max(*each, ratio), len(each), unit, BAR)
