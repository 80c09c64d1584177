"""The cost of n component gradients of each method, in scipy full gradients: by compiled bursts, and by the readable loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

from extremal.methods import (
    SVFW,
    FrankWolfe,
    LuFreundSFW,
    MomentumSFW,
    NegiarSFW,
    OneSampleSFW,
    Recipe,
    SagaFW,
    SagaSarahFW,
    SarahFW,
)
from extremal_lab.bench.problems import Problem, hundredth, named, per_pass, run
from extremal_lab.bench.timing import Found, Measurement, enough, in_turns, seconds

PART = "methods"
UNIT = "scipy full gradients for n component gradients"
OURS = ("SarahFW", "SagaSarahFW")
METHODS: dict[str, Callable[[int], Recipe]] = {
    "SarahFW": lambda b: SarahFW(batch=b),
    "SagaSarahFW": lambda b: SagaSarahFW(batch=b),
    "NegiarSFW": lambda b: NegiarSFW(batch=b),
    "SagaFW": lambda b: SagaFW(batch=b),
    "SVFW": lambda b: SVFW(batch=b),
    "OneSampleSFW": lambda b: OneSampleSFW(batch=b),
    "MomentumSFW": lambda b: MomentumSFW(batch=b),
    "LuFreundSFW": lambda b: LuFreundSFW(batch=b),
    "FrankWolfe": lambda b: FrankWolfe(),
}
BATCHES: dict[str, Callable[[int], int]] = {"b = n/100": hundredth, "b = 1": lambda n: 1}
LOOP, WHOLE = "loop", "whole call"


@dataclass(frozen=True)
class Sizes:
    """The sizes of a level of measurement."""

    data: tuple[str, ...] = ("a8a", "w8a", "mushrooms")
    methods: tuple[str, ...] = tuple(METHODS)
    slow: tuple[str, ...] = ("mushrooms",)  # data sets on which the readable loop is also measured at b = 1
    repeats: int = 5
    target: float = 0.1  # approximate CPU seconds of a run
    most: int = 40  # most passes of a run


LEVELS = {
    "smoke": Sizes(("mushrooms",), ("SarahFW", "FrankWolfe"), (), 2, 0.002, 4),
    "quick": Sizes(methods=OURS, slow=(), repeats=3, target=0.05, most=20),
    "default": Sizes(),
    "full": Sizes(slow=("a8a", "w8a", "mushrooms"), repeats=9, target=0.2),
}


def measure(level: str) -> Found:
    """Measure the ratios of every method on every data set."""
    sizes = LEVELS[level]
    for name in sizes.data:
        yield from on(named(name), name, sizes)


def on(problem: Problem, data: str, sizes: Sizes) -> Iterator[Measurement]:
    """All methods on one data set, in turns with scipy's gradient."""
    gradient = problem.scipy_gradient()
    times = enough(gradient, sizes.target / 10)
    contenders = dict(_contenders(problem, data, sizes))
    for name, ratios in in_turns(lambda: seconds(gradient, times), contenders, sizes.repeats).items():
        yield Measurement.of(PART, f"{problem.name}: {name}", ratios, unit=UNIT, bar=_bar(data, name))


def _contenders(problem: Problem, data: str, sizes: Sizes) -> Iterator[tuple[str, Callable[[], float]]]:
    for method in sizes.methods:
        for batch, law in BATCHES.items():
            recipe = METHODS[method](law(problem.n))
            if method == "FrankWolfe" and batch == "b = 1":
                continue  # it has no batch
            said = f"{method}, {batch}" if method != "FrankWolfe" else f"{method}, b = n"
            yield said, cost(problem, recipe, sizes, loop=False)
            if batch != "b = 1" or data in sizes.slow:
                yield f"{said}, {LOOP}", cost(problem, recipe, sizes, loop=True)
        if method in OURS:
            yield f"{method}, b = n/100, {WHOLE}", _whole(problem, METHODS[method](hundredth(problem.n)), sizes.most)


def cost(problem: Problem, recipe: Recipe, sizes: Sizes, loop: bool) -> Callable[[], float]:
    """CPU seconds of n component gradients, as a callable with a new seed each time; compiled and warm."""
    passes = budget(per_pass(run(problem.f, recipe, loop=loop, max_grads=2 * problem.n)), sizes)
    seeds = count()
    return lambda: per_pass(run(problem.f, recipe, loop=loop, seed=next(seeds), max_grads=passes * problem.n))


def budget(cost: float, sizes: Sizes) -> int:
    """The number of passes that take about the target time, one of them for the start; at least four, for Sarah's full gradients.

    Examples
    --------
    >>> budget(0.01, Sizes(target=0.1, most=40)), budget(10.0, Sizes()), budget(1e-9, Sizes(most=40))
    (11, 4, 40)
    """
    return max(4, min(sizes.most, 1 + round(sizes.target / max(cost, 1e-9))))


def _whole(problem: Problem, recipe: Recipe, passes: int) -> Callable[[], float]:
    """The same for the whole call of a user: with its preparation, its first gradient and its certificates."""
    return lambda: seconds(lambda: run(problem.f, recipe, max_grads=passes * problem.n)) / passes


def _bar(data: str, name: str) -> float | None:
    """The bar of the readable loop, or of the bursts of our methods."""
    method, batch, *rest = name.split(", ")
    if method not in OURS or WHOLE in rest:
        return None
    if rest == [LOOP]:
        return 4.0 if (data, batch) == ("w8a", "b = n/100") else None
    return 1.2 if batch == "b = n/100" else 4.0 if data == "a8a" else None
