"""The units of work: a run of a method, and the certified minimum of a problem. Each is plain data and returns arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from extremal.methods import Tuned, recipe
from extremal.run import Record, minimize
from extremal_lab.reproduction.reference import reference
from extremal_lab.reproduction.sources import Source, constraint, objective

COLUMNS = ("passes", "lmos", "cpu", "value", "gap")


class Task(Protocol):
    """The work of a worker: its fields contain everything that decides the outcome."""

    @property
    def cost(self) -> float:
        """Rough seconds, to estimate the time left."""
        ...

    def execute(self) -> dict[str, np.ndarray]:
        """The outcome."""
        ...


@dataclass(frozen=True)
class Run:
    """One run of one method from one seed, until its budget is spent."""

    source: Source
    loss: str
    set: str
    method: str  # with its parameters
    batch: int | None  # None: the method's own
    factor: float  # multiplies the method's own step
    seed: int
    passes: float  # the budget, in full gradients
    rows: int  # points of the curve

    @property
    def cost(self) -> float:
        """Some seconds for each million non-zeros, and some for each iteration."""
        iterations = self.passes * self.source.n / (self.batch or math.sqrt(self.source.n))
        return 1e-8 * self.passes * self.source.nnz + 6e-5 * iterations

    def execute(self) -> dict[str, np.ndarray]:
        """The curve on an even grid of component gradients: at each place the first iterate that has spent as much.

        The result also has the batch, 0 if it changes or there is none, and whether the steps were projections.
        """
        f, C = objective(self.source, self.loss), constraint(self.source, self.set)
        method = Tuned(recipe(self.method, None if self.batch is None else min(self.batch, f.n)), self.factor)
        record = Record(every=self.passes / self.rows)
        r = minimize(f, C, method, seed=self.seed, tol=0, atol=0, max_grads=max(1, round(self.passes * f.n)), record=record)
        grid = np.linspace(0, self.passes, self.rows + 1)
        at = np.searchsorted(r.trace.passes, grid * (1 - 1e-12))  # the first iterate that has spent that much
        at = np.minimum(at, len(r.trace) - 1)
        curve = {column: np.asarray(r.trace[column], dtype=np.float64)[at] for column in COLUMNS}
        return curve | {"batch": np.asarray(_batch(r.method.gradient)), "projects": np.asarray(r.method.move.projects)}


def _batch(gradient: Any) -> int:
    """The batch of an estimator, or of the estimator that it wraps; 0 if there is none or it changes."""
    inner = getattr(gradient, "gradient", None)
    batch = getattr(gradient, "batch", 0) if inner is None else _batch(inner)
    return batch if isinstance(batch, int) else 0


@dataclass(frozen=True)
class Minimum:
    """The least value of a problem, certified by a method of another kind."""

    source: Source
    loss: str
    set: str

    @property
    def cost(self) -> float:
        """Some tens of Newton steps."""
        return 0.5 + 1e-6 * self.source.nnz * max(1.0, self.source.nnz / self.source.n / 30)

    def execute(self) -> dict[str, np.ndarray]:
        """The value, the gap, the method, and whether f is convex."""
        found = reference(objective(self.source, self.loss), constraint(self.source, self.set))
        keep = {"value": found.value, "gap": found.gap, "how": found.how, "convex": found.convex, "x": found.x}
        return {name: np.asarray(item) for name, item in keep.items()}
