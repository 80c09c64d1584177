"""l1 logistic regression, time to relative 1e-4 and 1e-6: the choice of `minimize`, certified, against common packages.

Ours is a whole call, ``minimize(f, L1Ball(R), tol=1e-6)``, with its stopping test and its certificate. The model is made before,
and its cost is reported apart. The others (see `peer_l1`) get the penalty that belongs to R, or R if they accept it, and an
oracle stops them. Times are CPU seconds of one thread in scipy full gradients of the same data, measured in the same process.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from extremal.losses import Logistic
from extremal.methods import Recipe
from extremal.objectives import LinearModel
from extremal.run import minimize
from extremal.sets import L1Ball
from extremal_lab.bench.children import ChildError, output
from extremal_lab.bench.copt import environment
from extremal_lab.bench.l1_problems import RADII, L1Case, cases
from extremal_lab.bench.peer_l1 import PEERS, PRECISIONS
from extremal_lab.bench.projected import LogisticRows, accelerated, reached, spectral
from extremal_lab.bench.timing import Found, Measurement, Skipped, enough, seconds

PART = "l1_peers"
PACKAGES = ("scikit-learn==1.9.1", "skglm==0.5", "celer==0.7.4")
MORE = ("snapml==1.17.2",)  # closed source, and not for every system: skipped if it does not install
SCRIPT = Path(__file__).with_name("peer_l1.py")
UNIT = "CPU time in scipy full gradients"
AUTO = "auto"
PROJECTED = {"spectral projected gradient": spectral, "FISTA": accelerated}
RIVALS = ("liblinear", "saga", "skglm", "celer", *PROJECTED)  # snapml is reported without a bar
SEARCHES = {"search": tuple(PEERS), "search by open source": RIVALS}  # with snapml, and without
Times = dict[tuple[str, float, str], Sequence[float]]  # (case, precision, who) -> passes of each repeat


@dataclass(frozen=True)
class Sizes:
    """The sizes of a level of measurement."""

    radii: Mapping[str, tuple[float, ...]] = field(default_factory=lambda: RADII)
    repeats: int = 5
    most: float = 2500.0  # scipy gradients that a fit may cost before its sweep ends
    peers: tuple[str, ...] = tuple(PEERS)


LEVELS = {
    "smoke": Sizes({"w8a": (2.0,)}, 2, 50.0, ("liblinear",)),
    "quick": Sizes({"w8a": (7.363, 30.30)}, 3, 500.0, ("liblinear", "skglm")),
    "default": Sizes(),
    "full": Sizes(repeats=9),
}


def measure(level: str) -> Found:
    """Measure all problems of a level, with the bars at the end."""
    yield from compared(LEVELS[level])


def compared(sizes: Sizes, method: Recipe | str | None = None) -> Found:
    """The same for any sizes, and any method instead of the choice of `minimize`."""
    fits, searches = Times(), Times()
    try:
        python = _environment()
    except ChildError as error:
        python = None
        yield Skipped(PART, "others' packages", f"they do not install here: {error}")
    for data, radii in sizes.radii.items():
        found = list(cases(data, radii))
        yield wrapping(found[0], sizes.repeats)
        for case in found:
            fits |= ours(case, method, sizes.repeats) | by_projections(case, sizes)
        for item in () if python is None else theirs(found, python, sizes):
            if isinstance(item, Skipped):
                yield item
            else:
                (searches if item["kind"] == "search" else fits)[item["problem"], item["precision"], item["peer"]] = item[
                    "passes"
                ]
    yield from told(fits, "time")
    yield from told(searches, "time, given R only")
    yield from verdicts(fits, searches)


def ours(case: L1Case, method: Recipe | str | None, repeats: int) -> Times:
    """Whole calls of `minimize`, to a certified gap of each precision."""
    times = Times()
    for precision in PRECISIONS:

        def call(precision: float = precision) -> Any:
            return minimize(case.problem.f, L1Ball(case.radius), method, tol=precision, atol=0.0)

        r = call()  # compiled and warm
        if not r.converged or case.score(r.x) > precision:
            raise RuntimeError(f"{case.name}: {r.status} at {case.score(r.x):.1e}, and {precision:g} was asked for")
        times[case.name, precision, AUTO] = in_passes(case, call, repeats)
    return times


def in_passes(case: L1Case, work: Callable[[], object], repeats: int) -> list[float]:
    """CPU times of the work over those of scipy's gradient, measured before and after it."""
    gradient = case.problem.scipy_gradient()
    times, found = enough(gradient, 0.03), []
    for _ in range(repeats):
        before, spent = seconds(gradient, times), seconds(work)
        found.append(2 * spent / (before + seconds(gradient, times)))
    return found


def wrapping(case: L1Case, repeats: int) -> Measurement:
    """The cost of making the model of the rows, which is not part of our times."""
    p = case.problem
    costs = in_passes(case, lambda: LinearModel(Logistic(), p.A, p.y), repeats)
    return Measurement.of(PART, f"wrapping: {p.name}, LinearModel", costs, unit=UNIT)


def by_projections(case: L1Case, sizes: Sizes) -> Times:
    """Times of projected gradients, to the first iterate that reaches a precision; none if no iterate does."""
    rows, gradient = LogisticRows(case.problem.A, case.problem.y), case.problem.scipy_gradient()
    times: Times = {}
    for name, method in PROJECTED.items():
        found: dict[float, list[float]] = {precision: [] for precision in PRECISIONS}
        for _ in range(sizes.repeats):
            unit = seconds(gradient, enough(gradient, 0.03))
            for precision, spent in reached(method(rows, case.radius), case.score, PRECISIONS, sizes.most * unit).items():
                found[precision].append(spent / unit)
            if not found[PRECISIONS[-1]]:
                break  # its budget is spent
        times |= {(case.name, precision, name): passes for precision, passes in found.items() if passes}
    return times


def theirs(found: Sequence[L1Case], python: Path, sizes: Sizes) -> Iterator[dict[str, Any] | Skipped]:
    """The times of the packages on the problems of one data set, each in a process of its own; failures are reported."""
    p = found[0].problem
    given = {
        "names": [case.name for case in found], "radii": [case.radius for case in found],
        "lams": [case.lam for case in found], "least": [case.least for case in found],
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "data.npz")
        arrays = {"data": p.A.data, "indices": p.A.indices, "indptr": p.A.indptr, "shape": p.A.shape, "y": p.y}
        np.savez(file, **arrays, **given)  # type: ignore[arg-type]
        for peer in sizes.peers:
            try:
                said = _apart([str(python), str(SCRIPT), str(file), str(sizes.repeats), str(sizes.most), peer])
            except ChildError as error:
                yield Skipped(PART, f"{p.name}: {peer}", str(error))
                continue
            yield from map(_heard, filter(lambda line: line.startswith("{"), said.splitlines()))


def _heard(line: str) -> dict[str, Any] | Skipped:
    """A result, or the reason for its absence.

    Examples
    --------
    >>> _heard('{"peer": "saga", "problem": "w8a", "precision": 1e-06, "kind": "fit", "best": [64, 2900.0, 0.04]}').reason
    '1e-06 is not reached: 0.04 at the best'
    """
    item = json.loads(line)
    if "missing" in item:
        return Skipped(PART, item["peer"], item["missing"])
    if "passes" not in item:
        name = f"{item['problem']}, {item['precision']:g}: {item['peer']}, {item['kind']}"
        return Skipped(PART, name, f"{item['precision']:g} is not reached: {item['best'][2]:.2g} at the best")
    return item


def told(times: Times, what: str) -> Iterator[Measurement]:
    """A row for each case, precision and solver."""
    for (case, precision, who), passes in times.items():
        unit = f"{UNIT}, to relative {precision:g}" + what.removeprefix("time")
        yield Measurement.of(PART, f"{what}, {precision:g}: {case}, {who}", passes, unit=unit)


def verdicts(fits: Times, searches: Times) -> Iterator[Measurement]:
    """The bars: no slower than any rival, half the time of the fastest in two cases, a quarter of a search for the penalty.

    Examples
    --------
    >>> fits = {("w8a", 1e-6, "auto"): [10.0], ("w8a", 1e-6, "saga"): [40.0], ("w8a", 1e-6, "snapml"): [5.0]}
    >>> [(m.name, m.ratio, m.verdict) for m in verdicts(fits, {("w8a", 1e-6, "celer"): [50.0]})]  # doctest: +NORMALIZE_WHITESPACE
    [('over the fastest rival, 1e-06: w8a, saga', 0.25, 'met'),
     ('over snapml, 1e-06: w8a', 2.0, ''),
     ('over the best search, 1e-06: w8a, celer', 0.2, 'met'),
     ('over the best search by open source, 1e-06: w8a, celer', 0.2, 'met'),
     ('bars, 1e-06: cases above half of the fastest rival', 0.0, 'met')]
    """
    halves = []
    for precision in sorted({precision for _, precision, _ in fits}, reverse=True):
        for case in dict.fromkeys(case for case, *_ in fits):
            mine = fits[case, precision, AUTO]
            if (rival := fastest(fits, case, precision, RIVALS)) is not None:
                name = f"over the fastest rival, {precision:g}: {case}, {rival}"
                found = _over(name, mine, fits[case, precision, rival], bar=1.0 if precision == PRECISIONS[-1] else None)
                halves += [found.ratio] if precision == PRECISIONS[-1] else []
                yield found
            if (case, precision, "snapml") in fits:
                yield _over(f"over snapml, {precision:g}: {case}", mine, fits[case, precision, "snapml"])
            for what, who in SEARCHES.items():
                if (peer := fastest(searches, case, precision, who)) is not None:
                    name = f"over the best {what}, {precision:g}: {case}, {peer}"
                    yield _over(name, mine, searches[case, precision, peer], bar=0.25)
    if halves:
        name = f"bars, {PRECISIONS[-1]:g}: cases above half of the fastest rival"
        most = float(max(0, len(halves) - 2))
        yield Measurement.of(PART, name, [float(sum(r > 0.5 for r in halves))], unit=f"cases of {len(halves)}", bar=most)


def _over(name: str, mine: Sequence[float], other: Sequence[float], bar: float | None = None) -> Measurement:
    return Measurement.of(PART, name, [m / median(other) for m in mine], unit="times their CPU time", bar=bar)


def fastest(times: Times, case: str, precision: float, who: Sequence[str]) -> str | None:
    """The solver with the least median, of those that reached the precision.

    Examples
    --------
    >>> fastest({("w8a", 1e-6, "saga"): [3.0], ("w8a", 1e-6, "celer"): [2.0, 9.0, 4.0]}, "w8a", 1e-6, ("saga", "celer"))
    'saga'
    """
    there = [name for name in who if (case, precision, name) in times]
    return min(there, key=lambda name: median(times[case, precision, name]), default=None)


def _environment() -> Path:
    """The interpreter of an environment with the packages, kept in the user's cache; with snapml if it installs."""
    try:
        from platformdirs import user_cache_path
    except ImportError:
        raise ChildError("it needs platformdirs: pip install 'extremal[data]'") from None
    folder = user_cache_path("extremal") / "peers" / f"l1-{sys.version_info.major}.{sys.version_info.minor}"
    try:
        return environment(folder, (*PACKAGES, *MORE))
    except ChildError:
        return environment(folder, PACKAGES)


def _apart(command: list[str]) -> str:
    """The output of a command within an hour, run without variables that lead to the packages of this environment."""
    led = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    return output(command, {name: value for name, value in os.environ.items() if name not in led}, minutes=60)
