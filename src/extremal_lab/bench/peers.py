"""Each kind of problem against the best tool for it, in one table, the worst ratio first.

A ratio is our CPU time over that of the other tool, on one thread and in turns. Our call is whole, with its stopping test and its
certificate. The other tool gets the right penalty and the loosest tolerance, in decades, that reaches the same precision. Of
several tools the fastest counts. The worst ratio stands first.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from extremal_lab.bench import methods, startup
from extremal_lab.bench.problems import hundredth, named
from extremal_lab.bench.timing import Found, Measurement, Skipped, enough, in_turns, seconds

PART = "peers"
UNIT = "times the CPU time of the best tool"
SECONDS = "CPU seconds of a fresh process"
TOLERANCES = tuple(10.0**-k for k in range(1, 14))
LONG: dict[str, Any] = {"atol": 0.0, "max_grads": 10**12, "max_seconds": 20.0}  # a reference has time
LIMIT = 5.0  # CPU seconds of one call of another tool: beyond it, tighter tolerances are not tried


@dataclass(frozen=True)
class Contest:
    """Our call, the calls of others at a tolerance, and the error of an answer, which must not exceed ``precision``."""

    name: str
    ours: Callable[[], Any]
    others: Mapping[str, Callable[[float], Any]]
    error: Callable[[Any], float]
    precision: float
    bar: float | None = None
    doubt: float = 0.0  # the certified relative gap of the least value that ``error`` refers to


@dataclass(frozen=True)
class Sizes:
    """The sizes of a level of measurement."""

    scale: str = "whole"  # of the problems
    data: tuple[str, ...] = ("a8a", "w8a", "mushrooms")
    repeats: int = 5
    target: float = 0.05
    cold: int = 1


LEVELS = {
    "smoke": Sizes("tiny", ("mushrooms",), 1, 0.001, 0),
    "quick": Sizes("half", ("w8a",), 3, cold=0),
    "default": Sizes(cold=5),
    "full": Sizes(repeats=9, cold=5),
}


def measure(level: str) -> Found:
    """Measure every contest, the component gradients and the first calls; see `worst_first`."""
    from extremal_lab.bench.peer_contests import contests

    sizes = LEVELS[level]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # others warn that loose tolerances do not converge
        for contest in contests(sizes.scale):
            yield held(contest, sizes)
    for name in sizes.data:
        yield from gradients(name, sizes)
    yield from first_calls(sizes)


def held(contest: Contest, sizes: Sizes) -> Measurement | Skipped:
    """The ratio to the fastest tool that reaches the precision; or who does not reach it."""
    if contest.doubt > contest.precision / 2:
        return Skipped(PART, contest.name, f"the least value is known to {contest.doubt:.1e} only")
    error = contest.error(contest.ours())
    if not error <= contest.precision:
        return Skipped(PART, contest.name, f"ours ends at {error:.1e}, and {contest.precision:g} was asked for")
    found = {name: matched(call, contest) for name, call in contest.others.items()}
    reached = {name: best for name, best in found.items() if best is not None}
    if not reached:
        return Skipped(PART, contest.name, f"not reached by {', '.join(contest.others) or 'any tool that is installed'}")
    best = min(reached, key=lambda name: reached[name][0])
    tolerance, call = reached[best][1], contest.others[best]
    ours, theirs = enough(contest.ours, sizes.target), enough(lambda: call(tolerance), sizes.target)
    ratios = in_turns(lambda: seconds(lambda: call(tolerance), theirs), {"": lambda: seconds(contest.ours, ours)}, sizes.repeats)[
        ""
    ]
    note = f"{best} at {tolerance:g}, to {contest.precision:g}"
    return Measurement.of(PART, f"{contest.name}, over {best}", ratios, unit=UNIT, bar=contest.bar, note=note)


def matched(call: Callable[[float], Any], contest: Contest) -> tuple[float, float] | None:
    """CPU seconds and tolerance of the loosest tolerance that reaches the precision, or nothing; the first call is not timed.

    Examples
    --------
    >>> matched(lambda tol: tol, Contest("", lambda: 0.0, {}, lambda x: 3 * x, 1e-4))[1]
    1e-05
    """
    for tolerance in TOLERANCES:
        answers: list[Any] = []
        spent = seconds(lambda tolerance=tolerance, answers=answers: answers.append(call(tolerance)))
        if contest.error(answers[0]) <= contest.precision:
            return min(spent, seconds(lambda tolerance=tolerance: call(tolerance))), tolerance
        if spent > LIMIT:
            return None
    return None


def gradients(data: str, sizes: Sizes) -> Iterator[Measurement]:
    """n component gradients at b = n/100 over one full gradient by scipy."""
    problem = named(data)
    gradient, of = problem.scipy_gradient(), methods.LEVELS["smoke" if sizes.scale == "tiny" else "default"]
    times = enough(gradient, of.target / 10)
    ours = {name: methods.cost(problem, methods.METHODS[name](hundredth(problem.n)), of, loop=False) for name in methods.OURS}
    for name, ratios in in_turns(lambda: seconds(gradient, times), ours, sizes.repeats).items():
        said = f"n component gradients, {problem.name} {name}, over a scipy gradient"
        yield Measurement.of(PART, said, ratios, unit=UNIT, bar=0.6)


def first_calls(sizes: Sizes) -> Iterator[Measurement]:
    """The first call of a process, with compiled code kept and without."""
    code = startup.CASES["first run, CSR"]
    startup.seconds(code)
    warm = [startup.seconds(code)[0] for _ in range(sizes.repeats)]
    yield Measurement.of(PART, "first call, code kept", warm, unit=SECONDS, bar=0.9)
    if sizes.cold:
        yield Measurement.of(
            PART, "first call, nothing kept", [startup.cold()[0] for _ in range(sizes.cold)], unit=SECONDS, bar=10.0
        )


def worst_first(items: Sequence[Measurement | Skipped]) -> list[Measurement | Skipped]:
    """What was not reached, then the ratios from the largest on, then the seconds.

    Examples
    --------
    >>> made = [Measurement.of("", name, [ratio], unit=UNIT) for name, ratio in (("a", 1.0), ("b", 3.0))]
    >>> [item.name for item in worst_first([*made, Skipped("", "c", "not reached")])]
    ['c', 'b', 'a']
    """

    def key(item: Measurement | Skipped) -> tuple[int, float]:
        return (0, 0.0) if isinstance(item, Skipped) else (1 + (item.unit == SECONDS), -item.ratio)

    return sorted(items, key=key)
