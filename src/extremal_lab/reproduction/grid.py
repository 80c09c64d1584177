"""The grid of parts: one run of every estimator with every move and every step rule, all with the same budget."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from extremal import gradients, moves, steps
from extremal.checks import InputError
from extremal.methods import Method
from extremal.run import minimize
from extremal_lab.reproduction.pool import Results
from extremal_lab.reproduction.rates import LOGISTIC
from extremal_lab.reproduction.sources import Source, constraint, objective
from extremal_lab.reproduction.spec import batch_size
from extremal_lab.reproduction.study import Finding, Look, Study, finding
from extremal_lab.reproduction.tasks import Minimum

ESTIMATORS: dict[str, Callable[[int, int], Any]] = {  # by n and b
    "Full": lambda n, b: gradients.Full(),
    "MiniBatch": lambda n, b: gradients.MiniBatch(b),
    "Svrg": lambda n, b: gradients.Svrg(b, epoch=math.ceil(n / b)),
    "Sarah": lambda n, b: gradients.Sarah(b, p=2 * b / (n + 2 * b)),
    "SagaSarah": lambda n, b: gradients.SagaSarah(b, lam=b / (2 * n)),
    "Sag": lambda n, b: gradients.Reshuffled(gradients.Sag(b)),
    "Saga": lambda n, b: gradients.Reshuffled(gradients.Saga(b)),
    "Saga, curved": lambda n, b: gradients.Reshuffled(gradients.Saga(b, curved=True)),
    "TrackedSag": lambda n, b: gradients.Reshuffled(gradients.TrackedSag(b)),
}
MOVES: dict[str, Callable[[], Any]] = {
    "VertexMove": moves.VertexMove,
    "Pairwise": moves.Pairwise,
    "InFacePairwise": moves.InFacePairwise,
    "InFaceBlended": moves.InFaceBlended,
}
STEPS: dict[str, Callable[[], Any]] = {
    "OpenLoop": steps.OpenLoop,
    "ShortStep": steps.ShortStep,
    "Backtracking": steps.Backtracking,
    "Secant": steps.Secant,
    "BatchCurvature": steps.BatchCurvature,
    "SelfConcordant": steps.SelfConcordant,
}
REFUSED = "-"  # in tables
ON_GRID = "l1:20"  # the set


@dataclass(frozen=True)
class Cell:
    """One run of a method made of three parts, by their names in the tables above."""

    source: Source
    loss: str
    set: str
    estimator: str
    move: str
    step: str
    batch: int
    seed: int
    passes: float  # the budget: component gradients / n, rows of second derivatives included

    @property
    def cost(self) -> float:
        """Some seconds for each million non-zeros, and some for each iteration."""
        return 1e-8 * self.passes * self.source.nnz + 3e-4 * self.passes * self.source.n / self.batch

    def execute(self) -> dict[str, np.ndarray]:
        """The last value; NaN and the reason if the parts do not go together."""
        f, C = objective(self.source, self.loss), constraint(self.source, self.set)
        b = min(self.batch, f.n)
        try:
            method = Method(ESTIMATORS[self.estimator](f.n, b), STEPS[self.step](), MOVES[self.move]())
            r = minimize(f, C, method, seed=self.seed, tol=0, atol=0, max_grads=max(1, round(self.passes * f.n)))
        except InputError as error:
            return {"value": np.asarray(np.nan), "refused": np.asarray(str(error))}
        return {"value": np.asarray(r.value), "refused": np.asarray("")}


def _cells(look: Look, quick: bool) -> dict[tuple[str, str, str], list[Cell]]:
    source, seeds, passes = (look.some(2000), 1, 10.0) if quick else (look.subject, 3, 60.0)
    batch = batch_size("n/100", source.n)
    return {
        names: [Cell(source, LOGISTIC, ON_GRID, *names, batch, seed, passes) for seed in range(seeds)]
        for names in product(ESTIMATORS, MOVES, STEPS)
    }


def _minimum(look: Look, quick: bool) -> Minimum:
    return Minimum(look.some(2000) if quick else look.subject, LOGISTIC, ON_GRID)


def _tasks(look: Look, quick: bool) -> list[Any]:
    return [*(cell for cells in _cells(look, quick).values() for cell in cells), _minimum(look, quick)]


def _grid(look: Look, quick: bool, results: Results) -> Finding:
    made, least = _cells(look, quick), results[_minimum(look, quick)]
    floor = max(float(least["gap"]), 1e-15)  # below, a difference has no meaning
    ends = {
        names: max(float(np.median([results[cell]["value"] for cell in cells]) - least["value"]), floor)
        for names, cells in made.items()
    }
    first = next(iter(made.values()))[0]
    reasons = dict.fromkeys(str(results[cell]["refused"]) for cells in made.values() for cell in cells)
    text = (
        f"f - f_min after {first.passes:g} passes (component gradients, and rows of second derivatives, over n), median of the "
        f"seeds, logistic loss over {ON_GRID}, batches of {first.batch}. {REFUSED} stands for parts that do not go together: "
        f"{'; '.join(filter(None, reasons))}. Values of f, which Backtracking asks for, are not part of the budget. "
        f"Data: {first.source.text}."
    )
    return finding("grid", "Every estimator, move and step", first.source.text, text, _table(ends), ends)


def _table(ends: dict[tuple[str, str, str], float]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows: a row for each estimator and move, with f - f_min for each step rule."""
    columns = ["estimator", "move", *STEPS]
    return columns, [
        [estimator, move, *(shown(ends[estimator, move, step]) for step in STEPS)] for estimator in ESTIMATORS for move in MOVES
    ]


def shown(end: float) -> str:
    """One number of the table.

    Examples
    --------
    >>> shown(1.234e-5), shown(float("nan"))
    ('1.2e-05', '-')
    """
    return REFUSED if math.isnan(end) else f"{end:.1e}"


GRID = Study(_tasks, _grid)
