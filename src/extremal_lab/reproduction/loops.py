"""Methods that are plain loops: generator functions that yield points, counted and certified like all others."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import InputError, UnsolvedError
from extremal.gradients import Facts
from extremal.methods import Budget, Method, Recipe
from extremal.moves import FlatMove, Point
from extremal.objectives import Objective
from extremal.sets import ConvexSet
from extremal.steps import OpenLoop


@dataclass(frozen=True)
class Loop:
    """A method from a plain loop.

    The loop is a generator function (f, C, x, rng). It yields points of C. Its calls of ``f.grad``, ``f.derivs``, ``C.lmo`` and
    so on are counted, and the run ends with the budget or with the loop.

    Parameters
    ----------
    points : callable
        The generator function.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> def plain(f, C, x, rng):
    ...     for k in range(1000):
    ...         x = x + 2 / (k + 2) * (C.lmo(f.grad(x)).to_array() - x)
    ...         yield x
    >>> f = ex.LinearModel(ex.Squared(), np.eye(2), np.array([1.0, 3.0]))
    >>> r = ex.minimize(f, ex.L1Ball(2.0), Loop(plain), max_iter=10, tol=0)
    >>> r.calls.grads, r.calls.lmos
    (20, 10)
    """

    points: Callable[..., Iterator[np.ndarray]]

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        """The loop as the move of a method that estimates no gradients."""
        return Method(_NoGradient(), OpenLoop(), _Yielded(self.points)).prepare(f, C, budget)


@dataclass(frozen=True)
class _Nothing:
    g: np.ndarray
    seed: int
    exact: bool = False


@dataclass(frozen=True)
class _NoGradient:
    """An estimator that asks for nothing: the loop asks for its own gradients."""

    def facts(self, n: int) -> Facts:
        return Facts(start=0, per_step=n)

    def init(self, f: Any, x: np.ndarray, sampler: Any) -> _Nothing:
        return _Nothing(np.zeros(f.shape), sampler.seed)

    def update(self, f: Any, k: int, x_prev: Any, x: Any, steps: Any, state: _Nothing, sampler: Any) -> _Nothing:
        return state


@dataclass(frozen=True)
class _Yielded(FlatMove):
    """The move to the next point of the loop."""

    points: Callable[..., Iterator[np.ndarray]]

    def advance(self, k: int, f: Any, C: Any, point: Point, estimate: Any, step: Any) -> Point:
        loop = point.memory if k else self.points(f, C, point.x, np.random.default_rng(estimate.seed))
        x = next(loop, None)
        if x is None:
            raise UnsolvedError("the loop has ended")
        x = np.array(x, dtype=np.float64)  # the loop may go on in its own array
        if x.shape != f.shape or not C.contains(x):
            raise InputError(
                f"the loop {self.points.__name__} must yield points of the set, of shape {f.shape}: point {k + 1} is not"
            )
        return Point(x, x, memory=loop)


def as_method(call: str, given: Any) -> Recipe:
    """A method from what users write: a recipe, a `Method`, a class of these, or a generator function."""
    if inspect.isgeneratorfunction(given):
        return Loop(given)
    method = given() if isinstance(given, type) else given
    if checks.lacks(method, "prepare"):
        raise InputError(
            f"`{call}` must be a method with prepare(f, C, budget), a class of such methods, or a generator function "
            f"(f, C, x, rng) that yields points, got {given!r}"
        )
    return method
