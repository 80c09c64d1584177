"""The call `compare`: anyone's methods on anyone's problems, by the mechanism of the paper's figures."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from extremal import checks
from extremal.checks import InputError
from extremal.files import terminal
from extremal_lab.comparing.entries import Entries
from extremal_lab.comparing.metrics import METRICS
from extremal_lab.comparing.result import Comparison
from extremal_lab.comparing.tuning import read_tuning
from extremal_lab.reproduction import sources
from extremal_lab.reproduction.own import held
from extremal_lab.reproduction.plan import Contest, Panel, Work
from extremal_lab.reproduction.progress import shown
from extremal_lab.reproduction.spec import Figure
from extremal_lab.reproduction.store import Store, Unkept

DEFAULT = ("auto", "sarah-fw", "saga-sarah-fw", "negiar-sfw")


def compare(
    problems: Any,
    methods: Any = DEFAULT,
    *,
    passes: float | None = None,
    seconds: float | None = None,
    seeds: int = 3,
    first_seed: int = 0,
    batch: int | str | None = None,
    tune: bool | Mapping[str, Any] | None = None,
    unequal: bool = False,
    test: Any = None,
    metrics: Sequence[str] | None = None,
    rows: int = 50,
    workers: int = 1,
    cache: str | Path | None = None,
    fetch: Callable[[str], object] | None = None,
    title: str = "",
    verbose: int = 0,
    run: Callable[[Figure], Sequence[Panel]] | None = None,
) -> Comparison:
    """Run methods on problems, and measure all of them alike.

    Where f is convex, a problem gets a certified minimum by a method of another kind. All methods have the same budget and the
    same seeds, and are recorded at the same numbers of component gradients.

    Parameters
    ----------
    problems : dict or list
        Each problem is (f, set) with an objective, (A, y, loss, set) with arrays, or (data, loss, set), (data, set) or `Problem`
        with names as on the command line. The keys of a dict are names in tables.
    methods : dict or list
        Each method is a name such as "sarah-fw:batch=10", a recipe such as ``ex.SarahFW()``, a `Method`, an object or a class of
        your own with ``prepare(f, C, budget)``, a generator function (f, C, x, rng) that yields points (see `Loop`), or
        "module:name".
    passes, seconds : float, optional
        The budget of each run: component gradients / n, and seconds on the clock of the run. Default: 50 passes.
    seeds, first_seed : int
        Runs of each method, and the seed of the first.
    batch : int or str, optional
        A number, "n/100" or "sqrt" for all methods whose batch is open. Default: each method's own.
    tune : True or dict, optional
        True: also steps times one of 14 constants. A dict has trials over any parameters: ``{"sarah-fw": {"batch": [10, 30]}}``;
        "factor" is a constant before the step. Trials have a seed of their own, and the one with the lowest f is shown.
    unequal : bool
        Whether methods may have different numbers of trials; pages then say so.
    test : (A, y), float, objective or dict, optional
        For the test loss: rows, a share of the rows that is held out, or an objective; a dict has one for each problem's name.
    metrics : sequence of str, optional
        The columns of tables, from ``extremal_lab.METRICS``. Default: all. Non-zeros keep ``rows`` points of a run in memory.
    rows : int
        Points of a curve.
    workers : int
        Processes. Objects that another process cannot have (lambdas, classes of a notebook) run in this one.
    cache : path, optional
        A folder for finished runs of named data, methods, losses and sets. Default: nothing is kept.
    fetch : callable, optional
        Fetches a data set by its name, such as ``ex.datasets.fetch``. Default: nothing is downloaded, and a generated stand-in
        takes the place of a data set that is not here, with a warning.
    title : str
        The title of the curves on a page.
    verbose : int
        1 shows the progress on the terminal.
    run : callable, optional
        Runs the figure that the comparison is and returns its panels, in the place of ``workers``, ``cache`` and ``fetch``.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> from extremal_lab import compare
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((200, 10))
    >>> y = np.sign(A[:, 0] + 0.5 * rng.standard_normal(200))
    >>> found = compare({"mine": (A, y, "logistic", "l1:3")}, ["frank-wolfe", ex.TrackedFW()], passes=10, seeds=2)
    >>> plain, tracked = found.rows()
    >>> tracked["method"], tracked["excess"] < plain["excess"]
    ('TrackedFW', True)
    """
    names = _names(metrics)
    entries = Entries()
    found, texts = entries.problems(problems, test), entries.methods(methods)
    if len({problem.key for problem in found}) < len(set(found)):
        raise InputError("`compare(problems=...)` must have different names for different problems")
    factors, tuning = read_tuning(tune, texts, entries, checks.flag("compare", "unequal", unequal))
    figure = Figure(
        "compare", title or "Comparison", found, texts,
        passes=50.0 if passes is None and seconds is None else passes, seconds=seconds,
        seeds=checks.whole("compare", "seeds", seeds, 1), first_seed=checks.whole("compare", "first_seed", first_seed, 0),
        batch=None if batch is None else str(batch), factors=factors, tuning=tuning, rows=rows, points="nonzeros" in names,
    )  # fmt: skip
    work = Work(Unkept() if cache is None else Store(Path(cache)), checks.whole("compare", "workers", workers, 1), fetch)
    with held(entries.objects):
        sources.objective.cache_clear()  # objects of an earlier comparison may have had the same texts
        panels = _panels(figure, work, verbose) if run is None else run(figure)
    if run is None:
        _warn_of_stand_ins(panels)
    return Comparison.of(figure, panels, () if metrics is None else names)


def _warn_of_stand_ins(panels: Sequence[Panel]) -> None:
    """Warn that generated data took the place of data that are not here."""
    names = dict.fromkeys(panel.source.name for panel in panels if panel.source.origin == "stand-in")
    if names:
        said = f"not the real data: {', '.join(names)} not found, and generated stand-ins were used; see `compare(fetch=...)`"
        warnings.warn(said, UserWarning, stacklevel=3)


def _panels(figure: Figure, work: Work, verbose: int) -> Sequence[Panel]:
    """Run a figure, with its progress on the terminal if that is wanted."""
    contest = Contest(figure, work)
    contest.check()
    if not verbose:
        return contest.panels()
    with shown(terminal(), figure.title, contest.cost) as seen:
        return contest.panels(seen)


def _names(metrics: Sequence[str] | None) -> tuple[str, ...]:
    """Metrics by their names; all if none is named."""
    if isinstance(metrics, str):
        raise InputError(f"`compare(metrics=...)` must be a sequence such as ['excess', 'cpu'], got {metrics!r}")
    return tuple(checks.one_of("metric", name, METRICS) for name in (METRICS if metrics is None else metrics))
