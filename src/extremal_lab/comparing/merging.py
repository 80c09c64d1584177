"""Comparisons of several machines as one: the same problems, the same budgets, and runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from extremal.checks import InputError
from extremal_lab.reproduction.own import shown
from extremal_lab.reproduction.plan import Curve, Panel
from extremal_lab.reproduction.spec import Figure

Part = tuple[Figure, Sequence[Panel]]
BUDGET = ("passes", "seconds", "rows", "batch", "factors")
CLOSE = 1e-6  # numbers of one problem on two machines agree to this, relative to their sizes


def merged(parts: Sequence[Part]) -> tuple[Figure, list[Panel]]:
    """One figure with all problems, methods and runs."""
    figures = [figure for figure, _ in parts]
    for name in BUDGET:
        found = {getattr(figure, name) for figure in figures}
        if len(found) > 1:
            raise InputError(f"comparisons with different {name} cannot be merged, got {' and '.join(map(str, found))}")
    panels: dict[str, Panel] = {}
    for panel in (panel for _, held in parts for panel in held):
        before = panels.get(panel.problem.key)
        panels[panel.problem.key] = panel if before is None else _together(before, panel)
    problems = tuple(panel.problem for panel in panels.values())
    methods = tuple(dict.fromkeys(method for figure in figures for method in figure.methods))
    tuning = tuple({method: trials for figure in reversed(figures) for method, trials in figure.tuning}.items())
    seeds = max(len(curve.runs) for panel in panels.values() for curve in panel.curves)
    figure = replace(figures[0], problems=problems, methods=methods, tuning=tuning, seeds=seeds)
    return figure, [_lowest(panel) for panel in panels.values()]


def _together(one: Panel, two: Panel) -> Panel:
    """Two panels of one problem; refuse panels of different problems under one name."""
    name = one.problem.key
    same = len(one.fingerprint) == len(two.fingerprint) and np.allclose(one.fingerprint, two.fingerprint, rtol=CLOSE, atol=1e-12)
    if not same or one.problem.test != two.problem.test or one.convex != two.convex:
        raise InputError(f"the problem {name!r} is not the same in all comparisons: its sizes, values, gaps or test rows differ")
    curves = {(curve.method, curve.steps): curve for curve in one.curves}
    for curve in two.curves:
        before = curves.get((curve.method, curve.steps))
        curves[curve.method, curve.steps] = curve if before is None else _all_runs(name, before, curve)
    best = min(one, two, key=lambda panel: panel.minimum)
    return replace(best, curves=tuple(curves.values()))


def _all_runs(problem: str, one: Curve, two: Curve) -> Curve:
    """The runs of two curves, by seed; of runs that are there twice, the first."""
    for name in ("factor", "trial", "trials", "batch"):
        if getattr(one, name) != getattr(two, name):
            raise InputError(
                f"the {one.steps} steps of {shown(one.method)} on {problem!r} differ in {name}: "
                f"{getattr(one, name)} and {getattr(two, name)} cannot be merged"
            )
    runs = dict(two.seeded) | dict(one.seeded)
    seeds = tuple(sorted(runs))
    return replace(one, runs=tuple(runs[seed] for seed in seeds), seeds=seeds)


def _lowest(panel: Panel) -> Panel:
    """The panel with the lowest value of its runs as minimum, if a run of another machine ended below."""
    lowest = min(float(np.nanmin(run["value"])) for curve in panel.curves for run in curve.runs)
    return replace(panel, minimum=min(panel.minimum, lowest))
