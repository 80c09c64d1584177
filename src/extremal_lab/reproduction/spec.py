"""The experiments as plain data: problems, figures, methods, constants.

A new experiment is a new line here, or a line of your own: ``replace(FIGURES["fig1"], methods=("sarah-fw", "svrf"))``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path

from extremal import checks
from extremal.checks import InputError
from extremal_lab.reproduction.own import shown

FACTORS = tuple(10.0 ** (half / 2) for half in range(-12, 2))  # 1e-6 to 3.2: the constants that every method is tuned over
TUNING_SEED = 10_000  # trials draw other batches than the runs that are shown
METHODS = {  # the curves of the paper's figures, in the order of its list, with the names there
    "momentum-sfw": "Mokhtari et al.",
    "copt-momentum-sfw": "Mokhtari et al. (copt's code)",
    "negiar-sfw": "Negiar et al.",
    "lu-freund-sfw": "Lu & Freund",
    "most-fw": "Akhtar & Rajawat",
    "spider-rfw": "Weber & Sra",
    "sarah-fw": "Algorithm 1 (Sarah)",
    "saga-sarah-fw": "Algorithm 2 (Saga Sarah)",
}
OURS = ("sarah-fw", "saga-sarah-fw")
FREE = {  # methods without a parameter, of this library: nothing of them is tuned
    "tracked-fw": "TrackedFW (no parameter)",
    "saga-face-fw": "SagaFaceFW (no parameter)",
}
FADING = {"sarah-fw": 8.0, "saga-sarah-fw": 16.0}  # passes of a run that divide the remaining error of the start by e
INSIDE = 0.05  # a larger remaining share of the start's error is inside the transient


def is_ours(method: str) -> bool:
    """Whether the method is one of the paper's two, with any parameters.

    Examples
    --------
    >>> is_ours("sarah-fw:batch=10"), is_ours("svrf")
    (True, False)
    """
    return method.split(":")[0] in OURS


def transient(method: str, passes: float) -> float:
    """The share of the start's error that the steps of Theorems 1 and 3 leave after ``passes`` passes; it hides the rate.

    The constant steps 1/d of the first K/2 iterations leave exp(-K / 2d). With d = 2/p and 4bn / (n + 2b) component gradients an
    iteration that is exp(-N / 8n) for Algorithm 1; with d = 4n/b and 2b an iteration, exp(-N / 16n) for Algorithm 2.

    Examples
    --------
    >>> round(transient("sarah-fw", 20), 3), round(transient("saga-sarah-fw", 20), 3), round(transient("saga-sarah-fw", 100), 3)
    (0.082, 0.287, 0.002)
    """
    return math.exp(-passes / FADING[method])


@dataclass(frozen=True)
class Problem:
    """A loss, a data set and a constraint set.

    Parameters
    ----------
    data : str
        A name of the catalogue (`extremal data list`), or a file.
    loss, set : str
        As on the command line.
    test : str
        "0.2" for that share of the rows, which are then held out for the test loss.
    name : str
        Its name in tables. Default: data, loss and set.

    Examples
    --------
    >>> Problem("w8a", set="l1:20")
    Problem(data='w8a', loss='logistic', set='l1:20')
    """

    data: str
    loss: str = "logistic"
    set: str = "l1:2000"
    test: str = field(default="", repr=False)
    name: str = field(default="", repr=False)

    @property
    def key(self) -> str:
        """A short name."""
        return self.name or ", ".join(shown(text) for text in (Path(self.data).name, self.loss, self.set) if text)


@dataclass(frozen=True)
class Trial:
    """A candidate of the tuning.

    Examples
    --------
    >>> Trial("sarah-fw:batch=10", said="batch=10").factor
    1.0
    """

    method: str  # with its parameters
    factor: float = 1.0  # multiplies the method's own step
    said: str = ""  # the parameters, for tables


@dataclass(frozen=True)
class Figure:
    """A comparison: every method on every problem, with its own steps and with tuned ones.

    Parameters
    ----------
    name, title : str
        The name of the files, and the title.
    problems : sequence of Problem
        The panels.
    methods : sequence of str
        The curves: names of methods, with optional parameters, as in "sarah-fw:batch=10".
    passes : float or None
        The budget of each run, in full gradients (component gradients / n).
    seeds : int
        Runs of each curve.
    batch : str, optional
        "n/100" for ceil(n/100), "sqrt" for ceil(sqrt n), or a number, for every method that has batches. None: each method's
        own, which its theory sets.
    factors : sequence of float
        The trials of the tuning, one run each: the method's own step times each of these. Empty: no tuning.
    rows : int
        Points of a curve, evenly spaced in component gradients.
    added : sequence of str
        More curves. The paper's claims are judged without them.
    seconds : float, optional
        Another budget of each run, on its clock. The first of the two ends a run.
    first_seed : int
        The seed of the first run of each curve.
    tuning : sequence of (method, trials)
        The trials of methods that are not tuned over ``factors``.
    points : bool
        Whether to count the non-zeros of each point.

    Examples
    --------
    >>> Figure("mine", "two radii", (Problem("w8a", set="l1:20"), Problem("w8a", set="l1:200")), passes=10).batch_size(49749)
    498
    """

    name: str
    title: str
    problems: tuple[Problem, ...]
    methods: tuple[str, ...] = tuple(METHODS)
    passes: float | None = 100.0
    seeds: int = 5
    batch: str | None = "n/100"
    factors: tuple[float, ...] = FACTORS
    rows: int = 50
    added: tuple[str, ...] = ()
    seconds: float | None = None
    first_seed: int = 0
    tuning: tuple[tuple[str, tuple[Trial, ...]], ...] = ()
    points: bool = False

    def __post_init__(self):
        if self.passes is None and self.seconds is None:
            raise InputError("`Figure(passes=..., seconds=...)` must set a budget: passes, seconds or both")
        for name in ("passes", "seconds"):
            if getattr(self, name) is not None:
                checks.positive("Figure", name, getattr(self, name))
        checks.whole("Figure", "seeds", self.seeds, 1)
        checks.whole("Figure", "rows", self.rows, 1)
        if not self.problems or not self.methods:
            raise InputError("`Figure(problems=..., methods=...)` must name at least one problem and one method")
        checks.fix(self, problems=tuple(dict.fromkeys(self.problems)), methods=tuple(dict.fromkeys(self.methods)))
        checks.fix(self, added=tuple(name for name in dict.fromkeys(self.added) if name not in self.methods))
        self.batch_size(1000)

    def trials(self, method: str) -> tuple[Trial, ...]:
        """The candidates of a method's tuning; none for a method without a parameter."""
        given = dict(self.tuning)
        if method in given:
            return given[method]
        return () if method in FREE else tuple(Trial(method, factor) for factor in self.factors)

    @property
    def tuned(self) -> bool:
        """Whether anything is tuned."""
        return bool(self.factors or any(trials for _, trials in self.tuning))

    @property
    def budget(self) -> str:
        """The budget of a run in words.

        Examples
        --------
        >>> Figure("mine", "two budgets", (Problem("w8a"),), passes=10, seconds=0.5).budget
        '10 full gradients or 0.5 seconds'
        """
        parts = (self.passes, "full gradients"), (self.seconds, "seconds")
        return " or ".join(f"{limit:g} {unit}" for limit, unit in parts if limit is not None)

    def batch_size(self, n: int) -> int | None:
        """The batch size for n rows; None if each method chooses its own."""
        return None if self.batch is None else batch_size(self.batch, n)


def batch_size(text: str, n: int) -> int:
    """The batch size that ``n/100``, ``sqrt`` or ``227`` means for n rows.

    Examples
    --------
    >>> batch_size("n/100", 683), batch_size("sqrt", 683), batch_size("5", 683)
    (7, 27, 5)
    """
    if text == "sqrt":
        return math.ceil(math.sqrt(n) - 1e-9)
    head, _, below = text.rpartition("/")
    if head not in ("", "n") or not below.isdecimal() or int(below) < 1:
        raise InputError(f"cannot read the batch size {text!r}: write a number, n/100 or sqrt")
    return -(-n // int(below)) if head else min(n, int(below))


_FIVE = ("a9a", "breast-cancer_scale", "madelon", "mushrooms", "w8a")
_FOUR = tuple(name for name in _FIVE if name != "madelon")


def _on(names: tuple[str, ...], loss: str, radius: str) -> tuple[Problem, ...]:
    return tuple(Problem(name, loss, f"l1:{radius}") for name in names)


FIGURES = {
    figure.name: figure
    for figure in (
        Figure("fig1", "Figure 1: logistic regression, l1 ball of radius 2000", _on(_FIVE, "logistic", "2000")),
        Figure("fig2", "Figure 2: non-linear least squares, radius 2000", _on(_FOUR, "nonlinear-least-squares", "2000")),
        Figure("fig3", "Figure 3: logistic regression, radius 200", _on(_FOUR, "logistic", "200")),
        Figure("fig4", "Figure 4: logistic regression, radius 20", _on(_FOUR, "logistic", "20")),
        Figure("fig5", "Figure 5: logistic regression, radius 2", _on(_FOUR, "logistic", "2")),
    )
}


def quick(figure: Figure) -> Figure:
    """A quick version of a figure: fewer passes, two seeds, three trials."""
    passes = min(figure.passes or math.inf, 20.0)
    return replace(figure, passes=passes, seeds=min(figure.seeds, 2), factors=figure.factors[6::3], rows=25)
