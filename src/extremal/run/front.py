"""`minimize`: what a user calls, and what a run may spend."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.methods.base import Budget, Recipe
from extremal.objectives.base import Smooth
from extremal.points.active import ActiveSet
from extremal.run.driver import drive
from extremal.run.loop import State, prepare
from extremal.run.result import Record, Result
from extremal.sets.base import ConvexSet


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
) -> Result:
    """Minimise a finite sum over a convex set, and certify the answer.

        min over x in C of  f(x) = (1/n) sum_i f_i(x)

    The run stops at the first iterate at which the certified gap is small enough, a budget is spent, or the callback
    says so. Only an exact gap stops a run: it comes free whenever the method's gradient is exact, otherwise it is
    computed at growing intervals (after 10 passes, then after a quarter of the passes made so far, at least 10), for n
    component gradients that are counted apart. The last iterate is returned, with its exact value and gap; after Ctrl-C
    or a NaN, the best point that has been certified.

    Parameters
    ----------
    f : Objective
        `LinearModel`, `Separable` or your own.
    C : ConvexSet
        `L1Ball`, `Simplex`, ...
    method : method or str, optional
        `Auto` if left out: the library chooses, and says why in ``result.why``.
    x0 : array or ActiveSet, optional
        A feasible starting point, or the atoms of an earlier run (``result.atoms``); ``C.start()`` if left out, a vertex for
        methods that keep atoms. It is not changed.
    seed : int
        Same seed, same result.
    tol, atol : float
        Stop when gap <= tol * |f(x)| + atol. Zero both to run until a budget is spent.
    max_grads : int, optional
        Stop at the first iterate at which the method has asked for this many component gradients, those of the estimate at it
        included: P n are P - 1 iterations of `FrankWolfe`.
    max_iter : int, optional
        Stop after this many iterations.
    max_seconds : float, optional
        Stop after this time on the run's clock. Recording and callbacks stop the clock; with tol = atol = 0, certificates too.
        With none of the three budgets, max_grads is 1000 n, and step rules take their anytime form. Small problems have
        5000 n if no method is named and the oracle was asked little.
    callback : callable, optional
        Called with the `State` of each iteration (but see ``bursts``); a true answer stops the run.
    record : float or Record, optional
        Passes between rows of the trace, or a `Record`. Left out, the trace holds the certificates.
    bursts : bool, optional
        Make many iterations at once in compiled code where the combination allows: a linear model with data in memory and a
        loss of this library, an estimator with a fixed batch, steps that are fixed in advance, and a set such as `L1Ball`,
        `Simplex`, `Box` or `CappedSimplex`. The iterates are the same up to rounding. Left out, this is so unless there is a
        callback, which is to see every iteration; True lets a callback see the states between bursts only, some milliseconds
        apart; False is the readable loop. ``result.compiled`` says how many iterations were made so.

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
    setup = prepare("minimize", f, C, method, x0, seed, budget, in_bursts=callback is None if bursts is None else bursts)
    return drive(setup, tol, atol, budget, callback, record)[0]


def check_budget(call: str, max_grads: int | None, max_iter: int | None, max_seconds: float | None) -> Budget:
    """What a run may spend, checked."""
    if max_grads is not None:
        checks.whole(call, "max_grads", max_grads, 1)
    if max_iter is not None:
        checks.whole(call, "max_iter", max_iter, 0)
    if max_seconds is not None:
        checks.positive(call, "max_seconds", max_seconds)
    return Budget(max_grads, max_iter, max_seconds)
