"""The start of the next run of a path, and what the earlier runs leave to it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from extremal.gradients.base import sample_of, value_of
from extremal.methods.method import Budget, Recipe
from extremal.moves.newton.model import Memory
from extremal.objectives.base import Smooth
from extremal.objectives.expansion import Expansion
from extremal.points.iterates import farthest, freeze
from extremal.run.counting import CountedObjective
from extremal.run.loop import Setup, State, prepare
from extremal.run.result import Calls
from extremal.sets.base import ConvexSet, Projectable
from extremal.support.clock import counted
from extremal.support.values import changed


@dataclass(frozen=True)
class PathProblem:
    """What all runs of a path have in common."""

    f: Smooth
    method: Recipe | str | None
    seed: int
    accuracy: tuple[float, float]

    def setup(self, C: ConvexSet, budget: Budget, x0: Any = None) -> Setup:
        """The run over a set from a known start, or from that of the set."""
        return prepare("path", self.f, C, self.method, x0, self.seed, budget, accuracy=self.accuracy)

    def after(self, C: ConvexSet, budget: Budget, seen: list[tuple[float, State]]) -> tuple[Any, Setup]:
        """The start, and the run over the next set, with what the earlier runs leave to it."""
        if not seen:
            return None, self.setup(C, budget)
        with counted() as asked:
            x0, memory, spent = next_start(self.f, C, seen, *self.accuracy)
        setup = self.setup(C, budget, x0)
        calls = setup.C.calls
        calls.certificate_lmos += asked.calls
        calls.grads, calls.rows = calls.grads + spent.grads, calls.rows + spent.rows
        return x0, _resumed(setup, seen[-1][1], memory)


def next_start(
    f: Smooth, C: ConvexSet, seen: list[tuple[float, State]], tol: float, atol: float
) -> tuple[np.ndarray, Any, Calls]:
    """The start over the next set, the model of f that led there, and the calls for it.

    The start is the minimiser of a known quadratic function, or an extrapolation of the last solutions.
    """
    last = seen[-1][1]
    memory, counting = last.point.memory, CountedObjective(f, Calls(), last.f.columns)
    if isinstance(memory, Memory) and memory.part.f is last.f:
        memory = changed(memory, part=memory.part.of(counting))
    from extremal.moves.newton.onward import onward  # for paths only

    found = onward(counting, C, last.x, last.estimate, memory, tol, atol)
    x, memory = (ahead(C.diameter, seen), None) if found is None else found
    return moved_inside(C, x), memory, counting.calls


def ahead(size: float, seen: list[tuple[float, State]]) -> np.ndarray:
    """Extrapolate the last three solutions to the new size by a parabola; entries that would change sign become 0."""
    x, sizes = seen[-1][1].x, [size for size, _ in seen]
    if not isinstance(x, np.ndarray) or len(set(sizes)) < len(sizes):
        return x
    shares = [math.prod((size - b) / (a - b) for b in sizes if b != a) for a in sizes]  # Lagrange polynomials
    new = sum(share * state.x for share, (_, state) in zip(shares, seen, strict=True))
    return np.where(new * x > 0, new, 0).astype(x.dtype)


def moved_inside(C: ConvexSet, x: np.ndarray) -> np.ndarray:
    """x if it is in the set, else its projection, or the last feasible point on the segment from ``C.start()`` to x."""
    if C.contains(x):
        return x
    if isinstance(C, Projectable) and isinstance(x, np.ndarray):
        return C.project(x)
    start = C.start()
    return start + farthest(lambda t: C.contains(start + t * (x - start)), 1e-6) * (x - start)


def _resumed(setup: Setup, last: State, memory: Any) -> Setup:
    """Carry over the atoms, quadratic model and gradient of the last run, where they are still valid."""
    point = setup.point
    if type(point) is not type(last.point):
        return setup
    same = point.x.shape == last.x.shape and np.array_equal(np.asarray(point.x), np.asarray(last.x))
    kept: dict[str, Any] = {"active": last.point.active} if same and point.active is not None and _all_inside(setup, last) else {}
    memory = last.point.memory if memory is None else memory
    if memory is not None:
        kept["memory"] = changed(memory, gap=np.inf, part=memory.part.of(setup.f))
    if last.f.expanded is not None:
        model = sample_of(last.estimate)
        setup.f.expanded = changed(model if isinstance(model, Expansion) else last.f.expanded, rows=setup.f.inner)
        same = False  # a gradient costs less than its check
    estimate = last.estimate if same and last.exact and value_of(last.estimate) is not None else None
    if estimate is not None and sample_of(estimate) is not None:
        estimate = replace(estimate, model=setup.f)  # type: ignore[type-var]
        freeze(estimate.g)
    return changed(setup, point=changed(point, **kept), estimate=estimate)


def _all_inside(setup: Setup, last: State) -> bool:
    """Whether every atom of the last run is in the new set."""
    atoms = last.point.active
    return atoms is not None and all(setup.C.contains(v.to_array()) for v in atoms.vertices)
