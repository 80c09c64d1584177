"""The main job on embedded data: l1-constrained logistic regression by three methods, a table and a picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from extremal.checks import InputError
from extremal.driver import minimize
from extremal.experiments import standins
from extremal.losses import Logistic
from extremal.objective import LinearModel
from extremal.result import Record, Result
from extremal.sets import L1Ball

PASSES, RADIUS = 100, 10.0
METHODS = {"frank-wolfe": "#7f7f7f", "sarah-fw": "#0b6e99", "saga-sarah-fw": "#d1495b"}  # and their colours
PROBLEMS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "breast cancer": standins.breast_cancer,
    "digits": standins.digits,
    "like w8a": partial(standins.stand_in, "w8a"),
}


@dataclass
class Line:
    """One run as the table shows it."""

    problem: str
    method: str
    row: dict[str, Any] | None = None  # the newest row of its trace
    result: Result | None = None  # once it is done


def run(out: Path, console: Console | None = None) -> list[Line]:
    """Solve every problem by every method, show progress, print the table, save the picture to ``out``."""
    console = console or Console()
    _check_extras()
    lines = [Line(problem, method) for problem in PROBLEMS for method in METHODS]
    console.print(f"min (1/n) sum log(1 + exp(-y a.x))  subject to  |x|_1 <= {RADIUS:g};  {PASSES} passes each")
    console.print("data: two sets bundled with scikit-learn, and a generated one with the shape of w8a\n")
    with _display(console, lines) as refresh:
        for name, load in PROBLEMS.items():
            f = LinearModel(Logistic(), *load())
            for line in (line for line in lines if line.problem == name):
                record = Record(every=1.0, watch=partial(_watch, line, refresh))
                line.result = minimize(f, L1Ball(RADIUS), line.method, max_grads=PASSES * f.n, tol=1e-6, record=record)
                refresh(line)
    if not console.is_terminal:
        console.print(_table(lines))
    _picture(lines, out)
    console.print(f"\nThe gap is exact: no point of the set is better by more than it. Picture: {out}", soft_wrap=True)
    return lines


def _watch(line: Line, refresh: Callable[[Line], object], row: dict[str, Any]) -> None:
    line.row = row
    refresh(line)


@contextmanager
def _display(console: Console, lines: list[Line]) -> Iterator[Callable[[Line], object]]:
    """A live table on a terminal; elsewhere a plain line now and then."""
    if console.is_terminal:
        with Live(_table(lines), console=console, refresh_per_second=8) as live:
            yield lambda line: live.update(_table(lines))
            return
    yield partial(_plain, console, {})


def _plain(console: Console, shown: dict[int, int], line: Line) -> None:
    quarter = 0 if line.row is None else int(line.row["passes"] // (PASSES / 4))
    if line.result is None and line.row is not None and shown.get(id(line)) != quarter:
        shown[id(line)] = quarter
        console.print(
            f"{line.problem}: {line.method}: {line.row['passes']:5.1f} passes, "
            f"value {line.row['value']:.6f}, gap {line.row['gap']:.2e}",
            soft_wrap=True,
        )


def _table(lines: list[Line]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for column, justify in [
        ("data", "left"), ("method", "left"), ("value", "right"), ("exact gap", "right"), ("grads/n", "right"),
        ("LMOs", "right"), ("seconds", "right"), ("stopped by", "left"),
    ]:  # fmt: skip
        table.add_column(column, justify=justify, no_wrap=True)  # pyright: ignore[reportArgumentType]
    for i, line in enumerate(lines):
        first = i == 0 or lines[i - 1].problem != line.problem
        state = line.result.status.value if line.result else ("running" if line.row else "waiting")
        table.add_row(line.problem if first else "", line.method, *_numbers(line.row), state)
    return table


def _numbers(row: dict[str, Any] | None) -> tuple[str, ...]:
    if row is None:
        return ("",) * 5
    return (
        f"{row['value']:.6f}", f"{row['gap']:.2e}", f"{row['passes']:.1f}", f"{row['lmos']}", f"{row['seconds']:.2f}"
    )  # fmt: skip


def _picture(lines: list[Line], out: Path) -> None:
    """Certified gap against passes, a panel for each problem."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(PROBLEMS), 3.8), layout="constrained")
    for axes, problem in zip(figure.subplots(1, len(PROBLEMS)), PROBLEMS, strict=True):
        for line in (line for line in lines if line.problem == problem and line.result):
            trace = line.result.trace  # type: ignore[union-attr]
            axes.semilogy(trace.passes, trace.gap, label=line.method, color=METHODS[line.method], linewidth=1.6)
        axes.set(title=problem, xlabel="passes (component gradients / n)", ylabel="certified Frank-Wolfe gap")
        axes.grid(alpha=0.25)
        axes.legend(frameon=False)
    figure.savefig(out, dpi=150)


def _check_extras() -> None:
    for module in ("sklearn", "matplotlib"):
        try:
            __import__(module)
        except ImportError:
            raise InputError(f"the demonstration needs {module}: pip install 'extremal[demo]'") from None
