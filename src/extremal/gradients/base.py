"""The contract of a gradient estimator."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

import numpy as np

from extremal import checks
from extremal.objectives.base import Objective, Sampler
from extremal.points.composed import Place
from extremal.points.manifolds import Manifold
from extremal.points.vertex import Vertex

COUNTED = 2**17  # maximum number of iterations whose costs are added one by one
Steps = tuple[tuple[float, Vertex], ...]  # the (eta, s) that led from x_prev to x, in order


class Estimate(Protocol):
    """The state that an estimator passes from step to step; each estimator adds its own fields."""

    @property
    def g(self) -> np.ndarray: ...  # the estimate of grad f(x)
    @property
    def exact(self) -> bool: ...  # g was computed as the full gradient at x: only then is its gap a certificate


class Counting:
    """Base of objectives that count component gradients: the wrapper of the solver, and its parts."""

    calls: Any  # the counts; None for a part of an objective that does not count
    notes: dict[Any, Any]  # what the step rules of the run have learnt, by rule
    batch_bends: Callable[[Any, Any], Any]  # second derivatives along a direction, of the last batch

    @abstractmethod
    def sent(self, numbers: int, size: int) -> None:
        """Count numbers that workers or agents have sent to others, and their bytes."""


@dataclass(frozen=True)
class Phase:
    """The position of an estimator in its epochs. Its estimates are `InEpochs`, for steps and moves that depend on epochs."""

    epoch: int  # number of the epoch, from 0
    k: int  # position of the coming iteration in it, from 0
    length: int  # iterations of this epoch

    def next(self, length: Callable[[int], int]) -> Phase:
        """The phase after one iteration; ``length`` returns the length of an epoch."""
        if self.k + 1 < self.length:
            return Phase(self.epoch, self.k + 1, self.length)
        return Phase(self.epoch + 1, 0, length(self.epoch + 1))


class InEpochs:
    """Base of the estimates of an estimator with epochs."""

    phase: Any  # the `Phase` of the coming iteration; None for a wrapper of an estimator without epochs


class Bending:
    """Base of estimates that know curvature along directions, for step rules that ask for it."""

    @abstractmethod
    def curvature(self, f: Any, d: np.ndarray) -> float:
        """An estimate of d' H d, with a majorant of the Hessian if f is not convex."""

    @abstractmethod
    def share(self, f: Any, d: np.ndarray, gap: float) -> float:
        """The share of a step along d that the noise of g allows, in (0, 1]; gap = -<g, d>. A step asks once."""


class KnowsParts:
    """Base of estimates that know the gradient at x part by part, for moves that ask for one part."""

    z: Any  # the margins of x

    @abstractmethod
    def part(self, f: Any, place: Place) -> np.ndarray:
        """grad f(x)[place]."""


@dataclass(frozen=True)
class Shift:
    """A step of one block, as estimates that know parts read it: x[place] + eta way, and the change of the margins by way."""

    place: Place
    way: np.ndarray
    margins: Any


class Renewing:
    """Base of estimates of estimators that give a full gradient on request."""

    @abstractmethod
    def renew(self) -> None:
        """Let the next estimate be the full gradient."""


@dataclass(frozen=True)
class PlainEstimate:
    """An estimate without further state."""

    g: np.ndarray  # estimate of grad f(x)
    exact: bool  # whether it was computed as the full gradient


@dataclass(frozen=True)
class Looked(PlainEstimate):
    """An estimate that includes the value of f at x, or the value of a sample of its components."""

    value: float  # the mean of the sample at x
    z: np.ndarray  # its margins
    model: Any  # the sample as an objective, or an expansion of it
    slack: float = 0.0  # a bound on the rounding of a gap with g, which a certificate adds


@dataclass(frozen=True)
class Facts:
    """Theoretical facts about an estimator on n components: its cost, and the steps that its error recursion allows."""

    start: float  # component gradients of init
    per_step: float | Callable[[int], float]  # mean component gradients of an update, or of update k = 0, 1, ...
    d: float | None = None  # convex f: steps of at most 1/d keep the recursion of the proof contracting; None: no such proof
    c: float = 1.0  # non-convex f: step relative to 1/sqrt K that balances the terms of the proof, at most 1
    epochs: bool = False  # whether estimates are `InEpochs`
    needs: tuple[str, ...] = ()  # attributes that the objective must have beyond the contract
    one_vertex: bool = False  # whether updates read the one vertex of a plain move
    m: float | None = None  # n/b, for steps that depend on it
    agents: int | None = None  # number of agents with their own estimates, if any
    one_point: bool = False  # whether it only adds gradients of one point, so that a manifold needs no transport
    manifold: Manifold | None = None  # transports gradients of several points; None: they are added without transport
    columns: bool = False  # whether it suits moves that need second derivatives on columns
    passes: bool = False  # whether its batches go through the rows pass by pass: the run draws them so
    bends: bool = False  # whether it keeps second derivatives of rows
    parts: bool = False  # whether its estimates are `KnowsParts`, and give parts of the gradient only
    penalty: bool = False  # whether it pulls toward the bounds of an `AffineCut`

    def iterations(self, grads: float) -> int:
        """The mean number of iterations that this many component gradients pay for; at least 1."""
        left = grads - self.start
        if not callable(self.per_step):
            return max(1, round(left / self.per_step))
        k, whole = 0, max(left, 1.0)
        while left >= self.per_step(k) and k < COUNTED:
            left -= self.per_step(k)
            k += 1
        rest = k * left / (whole - left) if k == COUNTED else 0.0  # extrapolates the mean cost of these to all others
        return max(1, k + math.floor(rest))


def sampler_of(facts: Facts) -> type[Sampler]:
    """The kind of draws that an estimator asks for."""
    if not facts.passes:
        return Sampler
    from extremal.objectives.passes import PassSampler  # only for estimators that ask for it

    return PassSampler


def phase_of(estimate: Estimate) -> Phase | None:
    """The position of the estimator in its epoch; None without epochs."""
    return estimate.phase if isinstance(estimate, InEpochs) else None


def value_of(estimate: Estimate) -> float | None:
    """f, or the mean of the sample, at x; None if the estimator does not compute it with the gradient."""
    return estimate.value if isinstance(estimate, Looked) else None


def slack_of(estimate: Estimate) -> float:
    """A bound on the rounding of a gap, for an estimate that does not come from the rows."""
    return estimate.slack if isinstance(estimate, Looked) else 0


def sample_of(estimate: Estimate) -> Objective | None:
    """The sample whose gradient is g, as an objective; None if there is none."""
    return estimate.model if isinstance(estimate, Looked) else None


E = TypeVar("E", bound=Estimate)


class Gradient(Protocol[E]):
    """The contract of an estimator: a start, and an update after each move."""

    def facts(self, n: int) -> Facts:
        """Cost and constants on n components; a batch that does not fit is refused."""
        ...

    def init(self, f: Objective, x: np.ndarray, sampler: Sampler) -> E:
        """Estimate at the starting point."""
        ...

    def update(self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: E, sampler: Sampler) -> E:
        """Estimate at x, after step k has moved there from x_prev."""
        ...


SomeGradient: TypeAlias = Gradient[Any]  # with any state


def check_gradient(call: str, gradient: object, like: str = "Full()") -> None:
    """Refuse objects that are not estimators."""
    checks.contract(call, "gradient", gradient, "gradient", like, ("facts", "init", "update"))


class OnePoint(Gradient[E]):
    """Base of estimators that evaluate f at the current point: estimate 0 at the start, estimate k + 1 after step k."""

    def init(self, f: Objective, x: np.ndarray, sampler: Sampler) -> E:
        return self._at(f, 0, x, None, sampler)

    def update(self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: E, sampler: Sampler) -> E:
        return self._at(f, k + 1, x, state, sampler)

    @abstractmethod
    def _at(self, f: Objective, j: int, x: np.ndarray, state: E | None, sampler: Sampler) -> E:
        """Estimate j, at x; ``state`` is the previous one, None at the start."""
        ...


class Batched(Gradient[E]):
    """Base of estimators that draw batches."""

    batch: Any  # rows of a batch, or a law
    replace: bool  # whether a row may be drawn twice

    def __post_init__(self):
        checks.fix_flags(self, "replace")
        checks.fix(self, batch=self._checked_batch(type(self).__name__))

    def _checked_batch(self, call: str) -> Any:
        """The batch; only estimators that override this accept laws."""
        return checks.whole(call, "batch", self.batch, 1)


class Wrapper(Gradient[E]):
    """Base of estimators that run another estimator."""

    gradient: SomeGradient
    like: ClassVar[str] = "Storm(batch=5)"  # the example of an estimator in messages

    def __post_init__(self):
        check_gradient(type(self).__name__, self.gradient, self.like)


def count_sent(f: object, numbers: int, size: int) -> None:
    """Count messages, if the objective counts."""
    if isinstance(f, Counting):
        f.sent(numbers, size)


def batched(gradient: SomeGradient) -> Batched[Any] | None:
    """The estimator that draws batches: this one, or the wrapped one; None if neither does."""
    wraps, draws = _kind(type(gradient))
    if wraps:
        return batched(gradient.gradient)  # type: ignore[attr-defined]
    return gradient if draws else None  # type: ignore[return-value]


@cache
def _kind(made: type) -> tuple[bool, bool]:
    """Whether an estimator of this type wraps another, and whether it draws; a test of protocols takes long."""
    return issubclass(made, Wrapper), issubclass(made, Batched)
