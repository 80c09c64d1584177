"""The pictures of the README and of docs/start.md: ``python docs/front_picture.py`` draws them into docs/_static.

front.png, left: coefficients without and with a constraint. Right: how a certificate closes in on the best possible loss. The
background is transparent and the text grey, so that the picture stands on white and on dark pages. start.png is the model of
docs/start.md, as a reader sees it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LogisticRegression

import extremal as ex
from extremal.sklearn import ConstrainedLinearRegression, ConstrainedLogisticRegression, plot_coefficients
from extremal.sklearn.plots.drawing import COLOURS

OUT = Path(__file__).parent / "_static"
HELD, WRONG, FINE, TEXT = COLOURS[0], COLOURS[1], "#a8a8a8", "#7a7a7a"
BUDGET = 12.0
TITLE: dict[str, Any] = {"loc": "left", "fontsize": 11, "fontweight": "bold", "color": TEXT}


def measurements() -> tuple[Any, np.ndarray]:
    """Ten measurements of the cells of 569 tumours, standardised, and whether each tumour is malignant."""
    X, benign = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X[[name for name in X if name.startswith("worst ")]].rename(columns=lambda name: name.removeprefix("worst "))
    return (X - X.mean()) / X.std(), np.asarray(benign) == 0


def draw_coefficients(axes: Any, names: list[str], free: np.ndarray, held: np.ndarray) -> None:
    """Bars of both fits, those of the free fit in orange where their sign is wrong."""
    order = np.argsort(free)
    at = np.arange(len(order))
    axes.barh(at + 0.2, free[order], 0.38, color=np.where(free[order] < 0, WRONG, FINE))
    axes.barh(at - 0.2, held[order], 0.38, color=HELD)
    for colour, label in ((WRONG, "free fit: wrong sign"), (FINE, "free fit"), (HELD, 'each ">= 0", budget 12')):
        axes.barh(0, 0, color=colour, label=label)
    axes.axvline(0, color=TEXT, linewidth=0.8)
    axes.set_yticks(at, [names[j] for j in order])
    axes.set_xlabel("coefficient")
    axes.set_title("The constraint holds exactly", **TITLE)
    axes.legend(frameon=False, loc="lower right", labelcolor=TEXT, fontsize=9)


def draw_certificate(axes: Any, X: np.ndarray, malignant: np.ndarray) -> None:
    """The loss of the model and the proven bound below it, pass by pass, by plain steps that can be watched."""
    f = ex.LinearModel(ex.Logistic(), X, np.where(malignant, 1.0, -1.0))
    run = ex.minimize(f, ex.UnitSimplex(BUDGET), method=ex.PairwiseFW(), max_grads=35 * f.n, tol=0, atol=0, record=1)
    passes, value = run.trace.passes, run.trace.value
    bound = np.maximum.accumulate(value - run.trace.gap)
    axes.plot(passes, value, color=HELD, linewidth=2, label="loss of the model so far")
    axes.plot(passes, bound, color=WRONG, linewidth=2, label="no model under the constraint can be below")
    inside: dict[str, Any] = {"color": FINE, "alpha": 0.3, "linewidth": 0}
    axes.fill_between(passes, bound, value, **inside, label="the gap: the best possible loss is in here")
    axes.set(xlim=(1, 35), ylim=(0, 0.22), xlabel="passes over the data", ylabel="loss")
    axes.set_title("The proof closes in on the best possible loss", **TITLE)
    axes.legend(frameon=False, loc="upper right", labelcolor=TEXT, fontsize=9)


def in_grey(axes: Any) -> None:
    """Text and lines of the axes in a grey that can be read on white and on dark."""
    axes.set_facecolor("none")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(TEXT)
    axes.tick_params(colors=TEXT)
    axes.xaxis.label.set_color(TEXT)
    axes.yaxis.label.set_color(TEXT)


def front(figure: Any) -> None:
    """Two fits, and the certificate."""
    X, malignant = measurements()
    names = list(X)
    free = LogisticRegression(C=1e10, max_iter=10_000).fit(X, malignant).coef_[0]
    held = ConstrainedLogisticRegression([dict.fromkeys(names, ">=0"), f"l1:{BUDGET:g}"]).fit(X, malignant).coef_[0]
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.1))
    draw_coefficients(left, names, free, held)
    draw_certificate(right, X.to_numpy(), malignant)
    for axes in (left, right):
        in_grey(axes)


def start(figure: Any) -> None:
    """The coefficients of the model of docs/start.md."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    rules = {"bmi": ">=0", "bp": ">=0", "s1": ">=0", "s2": ">=0", "s3": "<=0"}
    plot_coefficients(ConstrainedLinearRegression(rules).fit(X, y), ax=figure.subplots())


def main() -> None:
    """Draw and save."""
    from matplotlib.figure import Figure

    for draw, size in ((front, (10.5, 3.9)), (start, (6.4, 3.4))):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        figure.savefig(OUT / f"{draw.__name__}.png", dpi=150, transparent=draw is front)


if __name__ == "__main__":
    main()
