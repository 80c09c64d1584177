"""The choice of `minimize` against every method of Table 1: f - f*, or the gap, after 60 passes and after their time.

The problems are logistic regression, and non-linear least squares with targets 0 and 1, over l1 balls of radius 2, 20, 200 and
2000. A method of Table 1 has the batch ceil(n/100), the steps of its theory, and knows its budget. Each runs once, and the best
run from several seeds. Scores below 1e-10 count as solved, for every method.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from extremal.losses import NonlinearLeastSquares
from extremal.methods import Recipe, recipe
from extremal.objectives import LinearModel
from extremal.sets import L1Ball
from extremal_lab.bench.equal import Case, Contest, Ran, Solver, at_gradients, at_times, solver
from extremal_lab.bench.problems import Problem, hundredth, named
from extremal_lab.bench.timing import Found, Measurement
from extremal_lab.reproduction.reference import reference

PART = "practical"
SOLVED = 1e-10
TINY = 1e-16  # smallest f - f* that is reported
BOTH = (
    "frank-wolfe", "sfw", "svfw", "saga-fw", "spider-fw", "momentum-sfw", "one-sample-sfw", "negiar-sfw", "lu-freund-sfw",
    "most-fw", "riemannian-sfw", "svrfw", "spider-rfw", "dmfw", "sarah-fw", "saga-sarah-fw",
)  # fmt: skip
CONVEX = (*BOTH, "online-fw", "scgs", "cgs", "svrf")
OTHER = (*BOTH, "ncgs", "ncgs-vr", "fcgs")  # the zeroth-order ones are these and spider-fw, at 2d values for a gradient
KINDS = {"logistic": CONVEX, "non-linear": OTHER}
WHAT = {"logistic": "f - f*", "non-linear": "Frank-Wolfe gap"}
BUDGETS = {"gradients": "after 60 n component gradients", "CPU": "after the CPU time of 60 scipy full gradients"}


@dataclass(frozen=True)
class Sizes:
    """The sizes of a level of measurement."""

    data: tuple[str, ...] = ("a8a", "w8a", "mushrooms", "breast-cancer_scale")
    radii: tuple[float, ...] = (2.0, 20.0, 200.0, 2000.0)
    kinds: Mapping[str, Sequence[str]] = field(default_factory=lambda: KINDS)
    seeds: int = 5
    finalists: int = 4  # number of methods that run from all seeds
    limit: float = 10.0  # most seconds of a run: sliding for non-convex f can take hours
    passes: float = 60.0


_ONE = {"logistic": ("sarah-fw", "frank-wolfe"), "non-linear": ("saga-sarah-fw",)}
_FEW = ("negiar-sfw", "momentum-sfw", "saga-sarah-fw", "lu-freund-sfw")
LEVELS = {
    "smoke": Sizes(("breast-cancer_scale",), (2.0,), _ONE, 2, 1, 2.0, 5.0),
    "quick": Sizes(kinds=dict.fromkeys(KINDS, _FEW), seeds=3, finalists=2),
    "default": Sizes(),
    "full": Sizes(seeds=9, finalists=6, limit=60.0),
}


@dataclass(frozen=True)
class Outcome:
    """One case at one budget: the solver's scores over its seeds, and the contest of the other methods."""

    case: str
    kind: str
    ours: Sequence[Ran]
    others: Contest
    method: str

    @property
    def best(self) -> str:
        """The best method of Table 1."""
        return self.others.order[0]

    @property
    def score(self) -> float:
        """The solver's median score over the seeds."""
        return median(run.score for run in self.ours)

    @property
    def ratios(self) -> list[float]:
        """The solver's scores over the best method's; scores below the limit of a solved problem are raised to it.

        Examples
        --------
        >>> runs = {s: Ran(s, 0.0, 1, 1.0, 0.0, 1.0) for s in (1e-13, 1e-9, 1e-6)}
        >>> Outcome("", "logistic", [runs[1e-13], runs[1e-9]], Contest({"a": [runs[1e-6]]}), "").ratios
        [0.0001, 0.001]
        """
        against = max(self.others.score(self.best), SOLVED)
        return [max(run.score, SOLVED) / against for run in self.ours]

    @property
    def ratio(self) -> float:
        """The median ratio; zero if the solver has solved the problem, because nothing is left to gain."""
        return 0.0 if self.score <= SOLVED else median(self.ratios)


def measure(level: str) -> Found:
    """Measure both kinds of f, all data and radii, and both budgets; then the bars over all cases."""
    yield from compared(LEVELS[level])


def compared(sizes: Sizes, method: Recipe | str | None = None) -> Iterator[Measurement]:
    """The same for any sizes and any method instead of the choice of `minimize`."""
    for kind, names in sizes.kinds.items():
        outcomes: dict[str, list[Outcome]] = {budget: [] for budget in BUDGETS}
        for data in sizes.data:
            problem = named(data)
            for radius in sizes.radii:
                for budget, outcome in _contests(_case(problem, kind, radius, sizes.passes), kind, names, method, sizes):
                    outcomes[budget].append(outcome)
                    yield from told(outcome, budget)
        for budget, found in outcomes.items():
            yield from verdicts(found, kind, budget)


def _case(problem: Problem, kind: str, radius: float, passes: float) -> Case:
    C, gradient = L1Ball(radius), problem.scipy_gradient()
    name = f"{problem.name} R = {radius:g}"
    if kind == "non-linear":
        f: Any = LinearModel(NonlinearLeastSquares(), problem.A, (problem.y > 0).astype(float))
        return Case(name, f, C, lambda value, gap: gap, gradient, passes)
    least = reference(problem.f, C).value
    return Case(name, problem.f, C, lambda value, gap: max(value - least, TINY), gradient, passes)


def _contests(
    case: Case, kind: str, names: Sequence[str], method: Recipe | str | None, sizes: Sizes
) -> Iterator[tuple[str, Outcome]]:
    recipes = {name: recipe(name, hundredth(case.f.n)) for name in names}
    counted = at_gradients(case, recipes, sizes.seeds, sizes.finalists, sizes.limit)
    ours: Solver = solver(case, method, sizes.seeds)
    yield "gradients", Outcome(case.name, kind, ours.gradients, counted, ours.method)
    timed = at_times(case, recipes, counted, sizes.seeds, sizes.finalists, sizes.limit)
    yield "CPU", Outcome(case.name, kind, ours.times, timed, ours.method)


def told(outcome: Outcome, budget: str) -> Iterator[Measurement]:
    """A case: the solver's score, the best method's with its name, and their ratio with its bar."""
    head, unit = f"{outcome.kind}, {budget}", f"{WHAT[outcome.kind]} {BUDGETS[budget]}"
    best, others = outcome.best, outcome.others
    runs = {"auto": (outcome.ours, outcome.method), f"best: {best}": (others.runs[best], _rest(others))}
    for name, (found, note) in runs.items():
        scores, values = [run.score for run in found], median(run.value for run in found)
        note = f"f = {values:.6g}, {median(run.passes for run in found):.3g} passes of CPU; {note}"
        yield Measurement.of(PART, f"{head}: {outcome.case}, {name}", scores, unit=unit, note=note)
    said = f"{WHAT[outcome.kind]} over that of the best method of Table 1, {BUDGETS[budget]}; below {SOLVED:g} is {SOLVED:g}"
    yield Measurement.of(PART, f"{head}, ratio: {outcome.case}", outcome.ratios, unit=said, bar=1.0)


def _rest(others: Contest) -> str:
    return "then " + ", ".join(f"{name} {others.score(name):.2g}" for name in others.order[1:])


def verdicts(found: Sequence[Outcome], kind: str, budget: str) -> Iterator[Measurement]:
    """The bars over all cases: never worse; and for convex f a tenth in three cases of four, a thousandth in the median case.

    Examples
    --------
    >>> others = Contest({"a": [Ran(1e-3, 0.0, 1, 1.0, 0.0, 1.0)]})
    >>> cases = [Outcome("", "logistic", [Ran(s, 0.0, 1, 1.0, 0.0, 1.0)], others, "") for s in (2e-3, 1e-9, 1e-5, 1e-11)]
    >>> [(m.name, round(m.ratio, 6), m.verdict) for m in verdicts(cases, "logistic", "CPU")]  # doctest: +NORMALIZE_WHITESPACE
    [('logistic, CPU, bars: cases that are worse', 1.0, 'missed'),
     ('logistic, CPU, bars: cases above a tenth', 1.0, 'met'),
     ('logistic, CPU, bars: median ratio', 0.005, 'missed')]
    """
    head, ratios = f"{kind}, {budget}, bars", [outcome.ratio for outcome in found]

    def bar(name: str, value: float, most: float, unit: str) -> Measurement:
        return Measurement.of(PART, f"{head}: {name}", [value], unit=unit, bar=most)

    unit = f"cases of {len(found)}, {BUDGETS[budget]}; a solved one is neither"
    yield bar("cases that are worse", float(sum(r > 1 for r in ratios)), 0.0, unit)
    if kind == "logistic":
        yield bar("cases above a tenth", float(sum(r > 0.1 for r in ratios)), len(found) / 4, unit)
        yield bar("median ratio", median(ratios), 1e-3, f"{WHAT[kind]} over the best method's, {BUDGETS[budget]}; 0 if solved")
