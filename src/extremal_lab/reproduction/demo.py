"""A demonstration on data that need no download: a constraint by feature names, then methods side by side."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from rich.console import Console
from rich.table import Table

from extremal.files import terminal, whole_file
from extremal.losses import Logistic
from extremal.objectives import LinearModel
from extremal.run import Record, Result, minimize
from extremal.sets import L1Ball
from extremal.support.palette import LATER, colours_of_methods
from extremal_lab.reproduction import standins
from extremal_lab.reproduction.extras import check_extra

BUDGET = "l1:12"  # the l1 budget of the coefficients
PASSES, RADIUS, DATA = 100, 20.0, "w8a"
METHODS = {  # and their names in the picture
    "auto": "auto (what minimize picks)", "sarah-fw": "Sarah Frank-Wolfe", "saga-sarah-fw": "Saga Sarah Frank-Wolfe",
    "frank-wolfe": "Frank-Wolfe",
}  # fmt: skip
TITLE: dict[str, Any] = {"loc": "left", "fontsize": 11, "fontweight": "bold"}
LEGEND: dict[str, Any] = {"frameon": False, "loc": "upper center", "bbox_to_anchor": (0.5, -0.13), "ncols": 2}  # hides nothing
FREE, HELD = LATER[3][1], LATER[1][0]  # the colours of the two models, distinct from those of the methods


@dataclass(frozen=True)
class Fit:
    """A model under a constraint, beside a model without it."""

    model: Any
    free: Any
    names: list[str]
    rows: int
    score: tuple[float, float]  # on held-out rows: with the constraint, without

    @property
    def wrong(self) -> list[str]:
        """The coefficients of the free model whose sign the constraint forbids."""
        return [f"{name} {value:.2f}" for name, value in zip(self.names, self.free.coef_[0], strict=True) if value < 0]


def run(out: Path, console: Console | None = None) -> None:
    """Fit the model, run the methods, print at most twenty lines, and save the picture to ``out``."""
    console = console or terminal()
    check_extra("demo")
    with console.status("fitting ..."):  # visible on terminals only
        fit = _fit()
    _tell(fit, console)
    f = LinearModel(Logistic(), *standins.stand_in(DATA))
    console.print(
        f"\nThe mean logistic loss over |x|_1 <= {RADIUS:g}, {f.n} x {f.shape[0]} generated rows like {DATA}; {PASSES} passes "
        "each, or a gap of 1e-6 f:", soft_wrap=True, highlight=False,
    )  # fmt: skip
    results = {}
    for name in METHODS:
        with console.status(f"{name} ..."):
            record = Record(every=0.5)
            results[name] = minimize(f, L1Ball(RADIUS), name, max_grads=PASSES * f.n, tol=1e-6, record=record)
    console.print(_table(results, f.n))
    _draw(fit, results, out)
    console.print(f"\nNo point of the set is better by more than the gap. The picture: {out}", soft_wrap=True, highlight=False)


def _fit() -> Fit:
    """Is a tumour malignant? Each of ten measurements of its worst cells may only raise the risk."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split

    from extremal.sklearn import ConstrainedLogisticRegression

    X, benign = cast(Any, load_breast_cancer(return_X_y=True, as_frame=True))
    X = X[[name for name in X if name.startswith("worst ")]].rename(columns=lambda name: name.removeprefix("worst "))
    X, y = (X - X.mean()) / X.std(), benign == 0
    train, test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    names = list(X)
    model = ConstrainedLogisticRegression([dict.fromkeys(names, ">= 0"), BUDGET]).fit(train, y_train)
    free = LogisticRegression(C=1e10, max_iter=10_000).fit(train, y_train)
    return Fit(model, free, names, len(train), (model.score(test, y_test), free.score(test, y_test)))


def _tell(fit: Fit, console: Console) -> None:
    """Print the constraint, its effect, and the certificate."""
    model, norm = fit.model, float(np.abs(fit.model.coef_).sum())
    first = ", ".join(f'"{name}": ">= 0"' for name in fit.names[:3])
    with_it, without = fit.score
    for line in (
        f"Is a tumour malignant? {fit.rows} x {len(fit.names)} measurements (scikit-learn's), none of which may lower the risk:",
        f"  model = ConstrainedLogisticRegression([{{{first}, ...}}, '{BUDGET}']).fit(X, y)",
        f"  without a constraint   {len(fit.wrong)} of {len(fit.names)} signs are wrong: {', '.join(fit.wrong)}",
        f"  with it                none is; violation {model.constraint_violation_:g}, l1 norm {norm:g}; right on {with_it:.1%} "
        f"of other rows (without: {without:.1%})",
        f"  its certificate        loss {model.objective_:.6f}; no model that keeps the constraint is lower by more than "
        f"{model.dual_gap_:.1e}",
    ):
        console.print(line, soft_wrap=True, highlight=False, markup=False)


def _table(results: dict[str, Result], n: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("  method", "f", "certified gap", "passes", "LMO calls", "seconds", "stopped by"):
        table.add_column(column, justify="left" if column in ("  method", "stopped by") else "right", no_wrap=True)
    for name, r in results.items():
        counts = f"{r.calls.grads / n:.1f}", f"{r.calls.lmos}", f"{r.seconds:.2f}"
        table.add_row(f"  {name}", f"{r.value:.6f}", f"{r.gap:.1e}", *counts, r.status.value)
    return table


def _draw(fit: Fit, results: dict[str, Result], out: Path) -> Any:
    """Draw the coefficients with and without the constraint, and the certified gap of each method."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.5, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
    _coefficients(left, fit)
    _gaps(right, results)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    with whole_file(out) as temporary:
        figure.savefig(temporary, format=out.suffix.lstrip(".") or "png", dpi=160)
    return figure


def _coefficients(axes: Any, fit: Fit) -> None:
    free, held = (model.coef_[0] for model in (fit.free, fit.model))
    order = np.argsort(free)
    places = np.arange(len(order))
    axes.barh(places + 0.2, free[order], height=0.38, color=FREE, label="no constraint")
    axes.barh(places - 0.2, held[order], height=0.38, color=HELD, label=f'each ">= 0", and {BUDGET}')
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(places, [fit.names[j] for j in order])
    axes.set_xlabel("coefficient (standardised feature)")
    axes.set_title("No measurement may lower the risk", **TITLE)
    axes.legend(**LEGEND)


def _gaps(axes: Any, results: dict[str, Result]) -> None:
    looks = colours_of_methods(METHODS)
    for name, r in results.items():
        passes, gap, colour = r.trace.passes, np.maximum(r.trace.gap, 1e-12), looks[name][0]
        axes.semilogy(passes, gap, label=METHODS[name], color=colour, linewidth=2)
        axes.plot(passes[-1], gap[-1], "o", color=colour, clip_on=False)  # its last point
    axes.set(xlabel="passes over the data (component gradients / n)", ylabel="certified gap")
    axes.set_title(f"The gap that each method proves ($|x|_1$ ≤ {RADIUS:g})", **TITLE)
    axes.grid(alpha=0.25)
    axes.legend(**LEGEND)
