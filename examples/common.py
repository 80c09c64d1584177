"""What the examples share: the clock, the contest and its table, and the style of the pictures.

Each example puts one question to several tools. A `Contest` times them on one thread, asks of every answer how far it is
outside the constraint (`violation`), moves it inside (`repair`), and evaluates the objective there, by numpy alone. The fit by
extremal carries a certificate: no feasible point has a value below objective - gap. So the column "above minimum" bounds how much
any answer, of any tool, could still gain:

    (objective of the repaired answer - certified lower bound) / |certified lower bound|.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import sklearn
from rich import box
from rich.console import Console
from rich.table import Table
from scipy.special import xlogy

from extremal_lab.threads import one_thread_here

NEW = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)
L1 = {"l1_ratio": 1} if NEW else {"penalty": "l1"}  # an l1 penalty in LogisticRegression
GREEN, ORANGE, GREY, BLUE = "#0b6e4f", "#d1651f", "#9a9a9a", "#2f6fb0"


def arguments(argv: list[str] | None, description: str) -> argparse.Namespace:
    """--out DIR saves the picture there; --small is a size for tests."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--out", type=Path, metavar="DIR", help="save the picture in this directory")
    parser.add_argument("--small", action="store_true", help="a small size, for tests")
    return parser.parse_args(argv)


@dataclass
class Row:
    """One tool: its time, and its answer judged."""

    name: str
    cpu: float = np.nan  # seconds, all threads
    wall: float = np.nan
    violation: float = np.nan  # of the answer as it came
    objective: float = np.nan  # of the repaired answer
    notes: dict[str, str] = field(default_factory=dict)  # further columns
    answer: object = None
    skipped: str = ""  # why the tool was not run


class Contest:
    """Times tools on one problem and prints how they did.

    Parameters
    ----------
    objective : callable
        Of a point; the intercept is fitted inside, so that answers differ in the constrained part only.
    violation : callable
        The largest amount by which a point breaks the constraint; 0 inside.
    repair : callable
        A feasible point near a given one.
    notes : callable, optional
        Further columns of the table, from a point as it came.
    """

    def __init__(self, objective: Callable, violation: Callable, repair: Callable, notes: Callable = lambda x: {}, small=False):
        self.objective, self.violation, self.repair, self.notes = objective, violation, repair, notes
        self.small = small
        self.rows: list[Row] = []
        self.gap = np.nan

    def rival(self, name: str, fit: Callable[[], object]) -> object:
        """Run a tool that people use today. Its warnings are a remark in the table, its failure is one too."""
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            try:
                answer, cpu, wall = timed(fit, 1 if self.small else 3)
            except Exception as error:  # a rival that gives up is a result, not a mistake of the example
                self.skip(name, f"failed: {type(error).__name__}")
                return None
        late = any("converge" in str(w.message).lower() or "inaccurate" in str(w.message).lower() for w in heard)
        self._judge(name + (" (warns: not converged)" if late else ""), answer, cpu, wall)
        return answer

    def cvxpy(self, name: str, fit: Callable) -> object:
        """Run fit(cvxpy), or say that cvxpy is not installed."""
        if importlib.util.find_spec("cvxpy") is None:
            return self.skip(name, "not installed")
        import cvxpy

        return self.rival(name, lambda: fit(cvxpy))

    def skip(self, name: str, why: str) -> None:
        """A row for a tool that cannot be run here."""
        self.rows.append(Row(name, skipped=why))

    def ours(self, name: str, fit: Callable[[], object], read: Callable | None = None) -> object:
        """Run the estimator; what it certifies is what the others are judged by."""
        fit()  # the first call of a process loads or compiles kernels
        model, cpu, wall = timed(fit, 1 if self.small else 3)
        self._judge(name, model, cpu, wall, read)
        self.gap = float(np.mean([m.dual_gap_ for m in model]) if isinstance(model, list) else model.dual_gap_)
        return model

    def _judge(self, name: str, answer: object, cpu: float, wall: float, read: Callable | None = None) -> None:
        x = (read or point)(answer)
        off = float(self.violation(x))
        value = float(self.objective(x if off == 0 else self.repair(x)))
        self.rows.append(Row(name, cpu, wall, off, value, self.notes(x), answer))

    @property
    def best(self) -> Row:
        """The row of the estimator, which is the last one."""
        return self.rows[-1]

    @property
    def lower(self) -> float:
        """No feasible point has a smaller objective."""
        return self.best.objective - self.gap

    def above(self, row: Row) -> float:
        """Relative distance to the certified lower bound."""
        return max(row.objective - self.lower, 0.0) / abs(self.lower)

    def table(self, title: str, console: Console | None = None) -> None:
        """Print the table, in Markdown."""
        extra = list(self.best.notes)
        table = Table(title=title, title_justify="left", box=box.MARKDOWN)
        for column in ("tool", "CPU s", "wall s", "violation", "objective", "above minimum", *extra):
            table.add_column(column, justify="left" if column == "tool" else "right", no_wrap=True)
        for row in self.rows:
            if row.skipped:
                table.add_row(row.name, row.skipped)
                continue
            numbers = (f"{row.cpu:.3g}", f"{row.wall:.3g}", short(row.violation), f"{row.objective:.6g}", short(self.above(row)))
            table.add_row(row.name, *numbers, *(row.notes[key] for key in extra))
        (console or Console(width=200, highlight=False)).print(table)


# time and answers


def timed(call: Callable[[], object], repeats: int) -> tuple[object, float, float]:
    """The answer, median CPU seconds, median wall seconds, on one thread; what takes over a second is run once."""
    cpus, walls = [], []
    with one_thread_here():
        for _ in range(repeats):
            wall, cpu = time.perf_counter(), time.process_time()
            answer = call()
            cpus.append(time.process_time() - cpu)
            walls.append(time.perf_counter() - wall)
            if walls[-1] > 1:
                break
    return answer, statistics.median(cpus), statistics.median(walls)


def point(answer: object) -> np.ndarray | list[np.ndarray]:
    """The constrained part of an answer: an array, the coefficients of a fitted model, or a list of such for several problems."""
    if isinstance(answer, list):
        return [point(a) for a in answer]
    return np.asarray(answer.coef_ if hasattr(answer, "coef_") else answer, dtype=float).squeeze()


def off_simplex(w: np.ndarray) -> float:
    """How far weights are from being non-negative with sum 1; the sum is rounded once."""
    return max(-float(np.min(w)), abs(math.fsum(w) - 1), 0.0)


def to_simplex(w: np.ndarray) -> np.ndarray:
    """The nearest point of the simplex (Held, Wolfe, Crowder 1974)."""
    u = np.sort(w)[::-1]
    level = (np.cumsum(u) - 1) / np.arange(1, len(u) + 1)
    return np.maximum(w - level[np.flatnonzero(u > level)[-1]], 0)


def short(value: float) -> str:
    """0 where it is exactly 0."""
    return "0" if value == 0 else f"{value:.1e}"


# objectives, by numpy and scipy alone: the mean loss with the best intercept


def squared_loss(X, y) -> Callable:
    """w -> min over b of |X w + b - y|^2 / (2 n)."""

    def value(w):
        r = X @ w - y
        return 0.5 * np.mean(np.square(r - r.mean()))

    return value


def logistic_loss(X, y) -> Callable:
    """w -> min over b of the mean of log(1 + exp(-s (<x, w> + b))), s = 1 for the class that is True, else -1."""
    sign = np.where(np.asarray(y, dtype=bool), 1.0, -1.0)

    def value(w):
        z, b = X @ w, 0.0
        for _ in range(100):  # Newton steps in one variable, no longer than 1
            p = 1 / (1 + np.exp(np.clip(sign * (z + b), -700, 700)))
            step = np.clip(np.sum(sign * p) / max(np.sum(p * (1 - p)), 1e-300), -1, 1)
            b += step
            if abs(step) < 1e-13 * max(1, abs(b)):
                break
        return np.mean(np.logaddexp(0, -sign * (z + b)))

    return value


def poisson_loss(X, y) -> Callable:
    """w -> min over b of half the mean deviance: the mean of exp(z) - y z + y log y - y, z = <x, w> + b."""
    perfect = np.mean(xlogy(y, y) - y)

    def value(w):
        z = X @ w
        z = z + np.log(np.mean(y) / np.mean(np.exp(z)))
        return np.mean(np.exp(z) - y * z) + perfect

    return value


# pictures


@contextmanager
def picture(path: Path, columns: int = 1, size: tuple[float, float] = (7.5, 3.2)) -> Iterator:
    """Axes to draw on, in one style; saved as a small PNG afterwards."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from PIL import Image

    style = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 9, "legend.frameon": False}
    with plt.rc_context(style):
        figure, axes = plt.subplots(1, columns, figsize=size, layout="constrained")
        yield axes
        drawn = io.BytesIO()
        figure.savefig(drawn, dpi=100)
        plt.close(figure)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.open(drawn).convert("RGB").quantize(64).save(path, optimize=True)
