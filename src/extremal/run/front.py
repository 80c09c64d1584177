"""The user's calls: `minimize`, and `path`, which solves over a family of sets and starts each run from the last solutions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.data.threads import steady
from extremal.methods.method import Budget, Recipe
from extremal.objectives.base import Smooth
from extremal.points.active import ActiveSet
from extremal.run.driver import Driver
from extremal.run.loop import Setup, State, check_objective, prepare
from extremal.run.progress import check_verbose, last_line, next_part, shown
from extremal.run.result import Record, Result
from extremal.run.saving import run_inside, saving
from extremal.run.starts import PathProblem
from extremal.sets.base import ConvexSet

if TYPE_CHECKING:
    from extremal.run.checkpoints.keeper import Keeper


def minimize(
    f: Smooth,
    C: ConvexSet,
    method: Recipe | str | None = None,
    *,
    x0: np.ndarray | ActiveSet | None = None,
    seed: int = 0,
    tol: float = 1e-4,
    atol: float = 1e-10,
    max_grads: int | None = None,
    max_iter: int | None = None,
    max_seconds: float | None = None,
    callback: Callable[[State], object] | None = None,
    record: Record | float | None = None,
    bursts: bool | None = None,
    verbose: int = 0,
    checkpoint: str | Path | None = None,
    checkpoint_seconds: float | None = None,
) -> Result:
    """Minimise a finite sum over a convex set, and certify the answer.

        min over x in C of  f(x) = (1/n) sum_i f_i(x)

    The run stops at the first iterate where the certified gap is small enough, a budget is spent, or the callback asks for it.
    Only an exact gap stops a run. It comes free whenever the method's gradient is exact. Otherwise it costs n component
    gradients, counted separately, first after 10 passes, then each time the passes have grown by a quarter (by at least 10).
    `minimize` returns the last iterate with its exact value and gap; after Ctrl-C or a NaN, the best certified point.

    Parameters
    ----------
    f : Objective
        `LinearModel`, `Separable` or your own.
    C : ConvexSet
        `L1Ball`, `Simplex`, ...
    method : method or str, optional
        Default: `Auto`, with which the library chooses and says why in ``result.why``.
    x0 : array or ActiveSet, optional
        A feasible starting point, or the atoms of an earlier run (``result.atoms``). It is not changed. Default:
        ``C.start()``, and a vertex for methods that keep atoms.
    seed : int
        The same seed gives the same result.
    tol, atol : float
        Stop when gap <= tol * |f(x)| + atol. Set both to zero to run until a budget is spent.
    max_grads : int, optional
        Stop at the first iterate at which the method has computed this many component gradients, including the estimate
        at that iterate: P n component gradients are P - 1 iterations of `FrankWolfe`.
    max_iter : int, optional
        Stop after this many iterations.
    max_seconds : float, optional
        Stop after this time on the run's clock. Recording and callbacks pause the clock; with tol = atol = 0, certificates do
        too. Without any of the three budgets, max_grads is 1000 n, and step rules take their anytime form. If no method is
        named, small problems get 5000 n as long as the run makes few oracle calls. A run that is still converging then gets
        half of its work again: the last third of the work has lowered the gap, or f, tenfold.
    callback : callable, optional
        Called with the `State` of each iteration (but see ``bursts``); a true return value stops the run.
    record : float or Record, optional
        Passes between rows of the trace, or a `Record`. Default: the trace holds the certificates.
    bursts : bool, optional
        Run many iterations at once in compiled code where the combination allows it. The model must be linear, with data in
        memory and a loss of this library. The estimator needs a fixed batch, the steps must be fixed in advance, and the set
        must be one such as `L1Ball`, `Simplex`, `Box` or `CappedSimplex`. The iterates are the same up to rounding. Default:
        True unless there is a callback. With True, a callback sees only the states between bursts, some milliseconds apart;
        False selects the readable loop. ``result.compiled`` counts the iterations made in bursts.
    verbose : int
        1 shows passes, f, the gap and seconds during the run: one live line on a terminal (with rich), one output in a
        notebook, lines on standard error elsewhere. A run shorter than a second writes only its last line. The counts, the
        clock and every bit of the result stay the same.
    checkpoint : path, optional
        A file from which the same call goes on after it was stopped or killed, with the bits of a run that was never stopped. A
        file of another problem is refused, with the difference. A call that had ended returns its result at once. Budgets may
        be raised from call to call. See docs/checkpoints.md.
    checkpoint_seconds : float, optional
        Least time between two writes of this file. Default: 60, and more if a write takes more than 1 % of the time.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((500, 10))
    >>> y = A @ np.array([0.7, 0.3] + [0] * 8) + rng.standard_normal(500)
    >>> f = ex.LinearModel(ex.Squared(), A, y)
    >>> r = ex.minimize(f, ex.Simplex(), method=ex.FrankWolfe(step=ex.steps.LineSearch()), tol=1e-3)
    >>> r.status, r.x.round(1)[:3]
    (<Status.GAP: 'gap'>, array([0.6, 0.3, 0. ]))
    """
    tol, atol = checks.at_least("minimize", "tol", tol, 0), checks.at_least("minimize", "atol", atol, 0)
    if bursts is not None:
        checks.flag("minimize", "bursts", bursts)
    if callback is not None and not callable(callback):
        raise InputError(f"`minimize(callback=...)` must be a callable (state) -> bool, got {callback!r}")
    budget = check_budget("minimize", max_grads, max_iter, max_seconds)
    in_bursts = callback is None if bursts is None else bursts
    verbose = check_verbose("minimize", verbose)
    with (
        shown("minimize", verbose),
        steady(f),
        saving("minimize", checkpoint, checkpoint_seconds),
        run_inside("minimize", budget) as keeper,
    ):
        first = budget if keeper is None else keeper.first
        setup = prepare("minimize", f, C, method, x0, seed, first, in_bursts, (tol, atol))
        setup = setup if keeper is None else keeper.bind(setup, seed, record, (tol, atol))
        return Driver(setup, tol, atol, budget, callback, record, keeper).drive()[0]


def path(
    f: Smooth,
    sets: Iterable[ConvexSet],
    method: Recipe | str | None = None,
    *,
    seed: int = 0,
    tol: float = 1e-4,
    atol: float = 1e-10,
    max_grads: int | None = None,
    max_iter: int | None = None,
    max_seconds: float | None = None,
    verbose: int = 0,
    checkpoint: str | Path | None = None,
    checkpoint_seconds: float | None = None,
) -> list[Result]:
    """Minimise f over each of several sets, such as a regularisation path, and certify every answer.

        x_r = argmin over C_r of f(x),   r = 1, 2, ...

    The sets are solved from the largest to the smallest (by diameter), and the results come in the order of the sets. Each
    run starts from an extrapolation of the last three solutions, with the atoms and the quadratic model of the last run, if
    the method keeps them. For quadratic losses over l1 balls and simplices, it starts at the minimiser of that model.
    If neighbouring sets differ little, a solution costs a few passes over the data.

    Parameters
    ----------
    f : Objective
        As for `minimize`.
    sets : iterable of ConvexSet
        Sets of one kind and different sizes: ``[L1Ball(r) for r in radii]``.
    method, seed, tol, atol, max_grads, max_iter, max_seconds
        As for `minimize`, for each set.
    verbose : int
        As for `minimize`, for all sets together.
    checkpoint, checkpoint_seconds
        As for `minimize`, for all sets together.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((200, 10))
    >>> f = ex.LinearModel(ex.Squared(), A, A @ np.array([2.0, -1.0] + [0] * 8) + rng.standard_normal(200))
    >>> results = ex.path(f, [ex.L1Ball(r) for r in (0.5, 1.0, 2.0, 4.0)])
    >>> [int(np.count_nonzero(r.x)) for r in results]
    [1, 1, 2, 10]
    >>> all(r.converged for r in results)
    True
    """
    tol, atol = checks.at_least("path", "tol", tol, 0), checks.at_least("path", "atol", atol, 0)
    budget = check_budget("path", max_grads, max_iter, max_seconds)
    if isinstance(sets, ConvexSet) or not isinstance(sets, Iterable):
        raise InputError(f"`path(sets=...)` must be several sets, such as [L1Ball(1.0), L1Ball(2.0)], got {sets!r}")
    check_objective("path", f)
    if f.dtype.kind == "O":
        raise InputError("`path(f=...)` rounds numbers between two sets: call `minimize` for each set of an exact run")
    sets = list(sets)
    for C in sets:
        if not isinstance(C, ConvexSet):
            raise InputError(f"`path(sets=...)` must hold sets such as L1Ball(20.0), got {C!r}")
    fitted = [C.on(f.shape) for C in sets]
    problem = PathProblem(f, method, seed, (tol, atol))
    results: dict[int, Result] = {}
    share = replace(budget, sets=len(sets))
    seen: list[tuple[float, State]] = []
    with shown("path", check_verbose("path", verbose)), steady(f), saving("path", checkpoint, checkpoint_seconds):
        for at, i in enumerate(sorted(range(len(fitted)), key=lambda i: -fitted[i].diameter), 1):
            next_part(f"set {at} of {len(sets)}")
            with run_inside("path", budget) as keeper:
                setup = _next(problem, fitted[i], share, seen, keeper)
                results[i], last = Driver(setup, tol, atol, budget, keeper=keeper).drive()
            seen = [*seen[-2:], (fitted[i].diameter, last)]
        met = sum(result.converged for result in results.values())
        last_line(f"{met} of {len(sets)} sets are within the tolerance", costs=True)
    return [results[i] for i in range(len(sets))]


def _next(problem: PathProblem, C: ConvexSet, budget: Budget, seen: list[tuple[float, State]], keeper: Keeper | None) -> Setup:
    """The next run of a path. A run that is in the checkpoint begins where the checkpoint says."""
    if keeper is None:
        return problem.after(C, budget, seen)[1]
    x0, setup = problem.after(C, budget, seen) if keeper.old is None else (keeper.start, None)
    setup = problem.setup(C, budget, x0) if setup is None else setup
    return keeper.bind(setup, problem.seed, None, problem.accuracy, start=(x0,))


def check_budget(call: str, max_grads: int | None, max_iter: int | None, max_seconds: float | None) -> Budget:
    """Check the arguments of a budget, and return the budget."""
    if max_grads is not None:
        checks.whole(call, "max_grads", max_grads, 1)
    if max_iter is not None:
        checks.whole(call, "max_iter", max_iter, 0)
    if max_seconds is not None:
        checks.positive(call, "max_seconds", max_seconds)
    return Budget(max_grads, max_iter, max_seconds)
