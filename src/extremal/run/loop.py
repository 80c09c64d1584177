"""The one loop: an endless generator of states. `extremal.run.driver` stops, certifies and records it."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from extremal import checks
from extremal.checks import InputError, NonFiniteError
from extremal.data.parts import counting_rows
from extremal.data.rows import RowData
from extremal.data.threads import steadily, steady
from extremal.gradients.base import Estimate, Facts, batched, phase_of, sampler_of, slack_of, value_of
from extremal.methods.auto import as_recipe
from extremal.methods.method import Budget, Method, Recipe
from extremal.moves.base import PartMove, Point, SomeMove
from extremal.objectives.base import Objective, Sampler, Smooth, is_factored
from extremal.objectives.expansion import Aim
from extremal.objectives.margins import MarginModel
from extremal.points.active import ActiveSet
from extremal.points.iterates import freeze, start
from extremal.points.matrix import wide
from extremal.run import bursts
from extremal.run.bursts import Burst, Reach
from extremal.run.counting import CountedObjective, CountedSet
from extremal.run.result import Calls, Certificate
from extremal.sets.base import ConvexSet
from extremal.support.clock import counted
from extremal.support.values import changed

if TYPE_CHECKING:
    from extremal.run.bursts.faces import FaceBurst


@dataclass(frozen=True)
class State:
    """The state of one iteration. x and g are values: they stay valid as the run goes on.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(2), np.array([1.0, 3.0]))
    >>> state = next(ex.iterate(f, ex.L1Ball(1.0), method=ex.FrankWolfe()))
    >>> state.k, state.x, state.g, state.exact
    (0, array([0., 0.]), array([-0.5, -1.5]), True)
    """

    k: int  # iterations made so far
    point: Point  # the iterate, and the data that the move keeps
    estimate: Estimate  # the gradient estimate at point.query, and the data that the estimator keeps
    calls: Calls  # oracle calls so far; the run keeps adding to this counter
    f: CountedObjective
    C: CountedSet
    move: SomeMove

    @property
    def x(self) -> np.ndarray:
        """The iterate, which is feasible."""
        return self.point.x

    @property
    def g(self) -> np.ndarray:
        """The gradient estimate."""
        return self.estimate.g

    @property
    def exact(self) -> bool:
        """Whether g is the full gradient at x."""
        return self.estimate.exact and self.point.query is self.point.x

    def gap(self, g: np.ndarray) -> float:
        """max over s of <g, x - s>; the LMO counts as a certificate's call, not the method's."""
        return self.move.gap(self.C, self.x, g)

    def measure(self) -> tuple[float, float]:
        """Value and gap at x, in float64, without counting; the gap is NaN if the gradient is not finite."""
        value, g = self.f.inner.value_and_grad(wide(self.x))
        return value, self.move.gap(self.C.inner, self.x, g) if checks.all_finite(g) else np.nan

    def certify(self) -> Certificate:
        """The exact value and gap at x, in float64, counted as calls of a certificate.

        The cost is n component gradients, or none if g is exact and in float64.

        Examples
        --------
        >>> import numpy as np, extremal as ex
        >>> f = ex.LinearModel(ex.Squared(), np.eye(2), np.array([1.0, 3.0]))
        >>> state = next(ex.iterate(f, ex.L1Ball(1.0), method=ex.FrankWolfe()))
        >>> state.certify().gap, state.calls.certificate
        (1.5, 0)
        """
        return counting_rows(self.calls, self._certified)

    def _certified(self) -> Certificate:
        if self.exact and self.f.dtype != np.float32:
            known = value_of(self.estimate)  # known to estimators that compute the value with the gradient
            value, g, slack = self.f.inner.value(self.x) if known is None else known, self.g, slack_of(self.estimate)
            self.calls.certificate_values += self.f.n if known is None else 0
        else:
            self.calls.certificate_values += self.f.n
            self.calls.certificate += self.f.n
            (value, g), slack = self.f.inner.value_and_grad(wide(self.x)), 0
        if not math.isfinite(value):
            raise NonFiniteError(f"the objective's value at iteration {self.k} is {value}")
        return Certificate(self.k, self.x, value, self.gap(g) + slack, self.point.active)


def iterate(
    f: Smooth,
    C: ConvexSet,
    method: Recipe | str | None = None,
    *,
    x0: np.ndarray | ActiveSet | None = None,
    seed: int = 0,
    horizon: int | None = None,
) -> Iterator[State]:
    """Run a method without end, one state at a time: the loop inside `minimize`, for drivers of your own.

    Parameters
    ----------
    f, C, method, x0, seed
        As for `minimize`.
    horizon : int, optional
        K, for step rules that need one. Default: such rules take their anytime form.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(2), np.array([1.0, 3.0]))
    >>> for state in ex.iterate(f, ex.L1Ball(2.0), method=ex.SagaSarahFW(batch=1), seed=0):
    ...     if state.k == 100:
    ...         break
    >>> state.calls.grads, state.calls.lmos
    (202, 100)
    """
    if horizon is not None:
        checks.whole("iterate", "horizon", horizon, 1)
    with steady(f):
        states = loop(prepare("iterate", f, C, method, x0, seed, Budget(max_iter=horizon)))
    return steadily(f, states)


@dataclass(frozen=True)
class Setup:
    """A run that is ready to begin."""

    f: CountedObjective  # the objective, with gradients in a form that the set can read
    method: Method  # the method, with every parameter filled in
    C: CountedSet  # the set, fitted to the objective, without the bounds of a cut
    whole: ConvexSet  # the same set, with these bounds
    point: Point  # the starting point
    sampler: Sampler  # draws the batches
    burst: Burst | FaceBurst | None  # many iterations at once, if wanted and possible
    epochs: bool  # whether the estimator has epochs
    estimate: Estimate | None = None  # the gradient at the point, if an earlier run left it
    k: int = 0  # iterations that led to the point, if the run goes on from a checkpoint


def loop(setup: Setup) -> Generator[State, Reach | None]:
    """The loop. At each yield, the estimate belongs to the point, and k moves have been made.

    A caller that sends a `Reach` lets the run go that far without a yield, and a burst makes these iterations at once if it can.
    If a burst cannot make the next one (for example, a full gradient is due), the lines below do: they are the reference.
    """
    f, C, point, sampler, burst, method = setup.f, setup.C, setup.point, setup.sampler, setup.burst, setup.method
    gradient, move, step = method.gradient, method.move, method.step
    estimate = first_estimate(setup) if setup.estimate is None else setup.estimate
    k = setup.k
    while True:
        freeze(estimate.g)
        reach = yield State(k, point, estimate, f.calls, f, C, move)
        if burst is not None and reach is not None:
            made, point, estimate = burst.run(k, point, estimate, reach)
            k += made
            if made:
                continue
        new = move.advance(k, f, C, point, estimate, step)
        estimate = gradient.update(f, k, point.query, new.query, new.steps, estimate, sampler)
        point, k = new, k + 1


def first_estimate(setup: Setup) -> Estimate:
    """The estimate at the starting point; refuse an estimate that steps and moves could not read later."""
    f, gradient = setup.f, setup.method.gradient
    estimate = gradient.init(f, setup.point.query, setup.sampler)
    if checks.lacks(estimate, "g", "exact"):
        raise InputError(f"{type(gradient).__name__}.init must return a state with g and exact, got {estimate!r}")
    if setup.epochs and phase_of(estimate) is None:
        raise InputError(f"{type(gradient).__name__} has epochs: its states must be gradients.InEpochs, with a phase")
    return estimate


def check_objective(call: str, f: Smooth) -> None:
    """Refuse an argument that is not an objective."""
    if checks.lacks(f, "value_and_grad"):
        raise InputError(f"`{call}(f=...)` must be an objective such as LinearModel(Logistic(), A, y), got {f!r}")


@np.errstate(all="ignore")  # the checks find numbers that are not finite
def prepare(
    call: str,
    f: Smooth,
    C: ConvexSet,
    method: Recipe | str | None,
    x0: object,
    seed: int,
    budget: Budget,
    in_bursts: bool = False,
    accuracy: tuple[float, float] = (0.0, 0.0),
) -> Setup:
    """Fit the set, the method and the starting point to the objective; refuse combinations that do not fit."""
    check_objective(call, f)
    if not isinstance(C, ConvexSet):
        raise InputError(f"`{call}(C=...)` must be a set such as L1Ball(20.0), got {C!r}")
    checks.whole(call, "seed", seed, 0)
    C = C.on(f.shape)
    if isinstance(f, MarginModel) and not C.matrix_free:
        f = f.dense()
    with counted() as asked:  # some methods ask for the diameter
        try:
            budget = budget if x0 is None else changed(budget, warm=True)
            prepared = as_recipe(call, method).prepare(cast(Objective, f), C, budget)
        except OverflowError:
            raise InputError(f"`{call}(C=...)`: {C} is too large for this method, whose constants overflow there") from None
    if not isinstance(prepared, Method):
        raise InputError(f"`{call}(method=...)`: {type(method).__name__}.prepare must return a Method, got {prepared!r}")
    if isinstance(prepared.move, PartMove):
        prepared = replace(prepared, move=prepared.move.seeded(seed))
    calls = Calls(grads=prepared.spent, certificate_lmos=asked.calls)
    counting = CountedObjective(f, calls, prepared.columns)
    oracle = CountedSet(_oracle(call, f, prepared, C), calls)  # the method approaches a cut by itself
    counting.aim = lambda: Aim(*accuracy, oracle.diameter if any(accuracy) else math.inf)
    point = _first_point(call, f, oracle, prepared.move, x0)
    rows = f.data if isinstance(f, MarginModel) else None
    bounds = rows.bounds if isinstance(rows, RowData) else None  # of parts that share every batch, if there are any
    facts = prepared.gradient.facts(f.n)
    sampler = sampler_of(facts)(f.n, seed, blocks=isinstance(f, MarginModel) and f.blocks, bounds=bounds)
    burst = (
        bursts.for_run(counting, oracle, prepared, sampler) if in_bursts and (prepared.move.one_vertex or facts.bends) else None
    )
    _make_ready(f, prepared, facts, sampler, burst)
    return Setup(counting, prepared, oracle, C, point, sampler, burst, facts.epochs)


def _oracle(call: str, f: Smooth, method: Method, C: ConvexSet) -> ConvexSet:
    """The set that the method asks: without the bounds of a cut, or in rational arithmetic if x is made of fractions."""
    if f.dtype.kind != "O":
        return C.relaxed
    from extremal.run.rationals import exact_oracle  # only for exact runs

    return exact_oracle(call, method, C)


def _make_ready(f: Smooth, method: Method, facts: Facts, sampler: Sampler, burst: Burst | FaceBurst | None) -> None:
    """Compile the kernels of a run, or load them from the cache, before its clock starts."""
    if not (facts.columns and isinstance(f, MarginModel) and f.ready_columns()):
        f.ready()
    if facts.bends and isinstance(f, MarginModel) and isinstance(f.data, RowData):
        f.data.ready_powers()
    drawn = batched(method.gradient)
    several = drawn is not None and drawn.batch != 1 and not drawn.replace  # a batch of distinct rows
    if several or (facts.columns and facts.start < f.n):  # the second kind of method begins on a sample
        sampler.ready()
    if burst is not None:
        burst.ready()


def _first_point(call: str, f: Smooth, oracle: CountedSet, move: SomeMove, x0: object) -> Point:
    C, given = oracle.inner, move.first(oracle) if x0 is None else x0
    atoms = given if isinstance(given, ActiveSet) else None
    factored = C.matrix_free and is_factored(f)  # neither set nor objective needs the whole matrix
    x = start(call, given if atoms is None else atoms.point, f.dtype, factored)
    if x.shape != f.shape:
        raise InputError(f"`{call}(x0=...)` must have shape {f.shape}, got {x.shape}")
    if not oracle.contains(x):
        if x0 is None:
            raise InputError(f"{C} does not contain its own starting point: its oracle, start() and contains() do not agree")
        raise InputError(f"`{call}(x0=...)` must lie in the set {C}; leave it out to start from C.start()")
    if move.atomic and atoms is not None and x0 is not None:
        _check_atoms(call, f, oracle, atoms, factored)
    point = move.start(x)
    if not isinstance(point, Point):
        raise InputError(f"{type(move).__name__}.start must return a moves.Point, got {point!r}")
    return replace(point, active=atoms) if move.atomic and atoms is not None else point


def _check_atoms(call: str, f: Smooth, oracle: CountedSet, atoms: ActiveSet, factored: bool) -> None:
    """Refuse atoms outside the set: a move may go to each of them, not only to their mean."""
    for i, v in enumerate(atoms.vertices):
        if not oracle.contains(start(call, ActiveSet.at(v).point, f.dtype, factored)):
            raise InputError(f"`{call}(x0=...)` must have all its atoms in the set {oracle.inner}: atom {i} is not")
