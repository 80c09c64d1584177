"""The memory of a run: the table of component gradients, measured."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from extremal.methods import recipe
from extremal.objectives import LinearModel, Separable
from extremal.run import minimize
from extremal.sets import L1Ball
from extremal_lab.reproduction.sources import Source, objective


@dataclass(frozen=True)
class Memory:
    """The memory that a run holds between its iterations, beyond the memory before the run."""

    METHODS: ClassVar = ("sarah-fw", "saga-sarah-fw", "negiar-sfw", "lu-freund-sfw")

    source: Source
    method: str
    kind: str  # "linear": a linear model; "separable": the same sum by callables, which hides its structure
    batch: int = 20

    @property
    def cost(self) -> float:
        """One second."""
        return 1.0

    def execute(self) -> dict[str, np.ndarray]:
        """Measure the bytes."""
        model = objective(self.source, "logistic")
        f = model if self.kind == "linear" else _separable(model)
        held: list[int] = []

        def look(state: object) -> None:
            held.append(tracemalloc.get_traced_memory()[0])

        def run() -> None:
            minimize(f, L1Ball(20.0), recipe(self.method, self.batch), max_iter=30, tol=0, atol=0, callback=look)

        run()  # compile and warm up first
        held.clear()
        tracemalloc.start()
        try:
            run()
        finally:
            tracemalloc.stop()
        return {"bytes": np.array(max(held))}


def _separable(model: LinearModel) -> Separable:
    """Component gradients as dense vectors."""

    def rows(idx: np.ndarray) -> np.ndarray:
        return np.stack([model.combine(np.ones(1), idx[i : i + 1]) for i in range(len(idx))])  # a_i

    return Separable(
        model.n, model.shape[0], grad=lambda x, idx: model.derivs(x, idx)[:, None] * rows(idx),
        value=lambda x, idx: model.values(x, idx), convex=True,
    )  # fmt: skip
