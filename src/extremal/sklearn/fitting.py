"""From data and a constraint to a certified answer."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from extremal.checks import InputError
from extremal.data.rows import InMemory, RowData
from extremal.gradients.expanded import Expanded
from extremal.gradients.full import Full, Growing
from extremal.losses.base import Loss
from extremal.methods.auto import as_recipe
from extremal.methods.method import Budget, Recipe
from extremal.objectives.intercept import InterceptModel
from extremal.objectives.linear import LinearModel
from extremal.objectives.margins import MarginModel
from extremal.objectives.reach import CONSTANT
from extremal.run.front import minimize
from extremal.run.result import Calls, Result
from extremal.run.wide import Kept, least_within, with_radius
from extremal.sets.base import ConvexSet
from extremal.sets.made.blocks import Product
from extremal.sets.simplices.plain import Box
from extremal.sets.words.read import Reading
from extremal.sklearn.answer import Answer, answer_at
from extremal.sklearn.options import Options
from extremal.support.kinds import MatrixLike

SMALL_FIT = 10**5  # problems up to this many rows times coefficients are solved to rounding: this takes milliseconds
POLISH = 12  # maximum number of iterations for that
WORDS_SHOWN = 100  # a longer constraint is cut in the certificate
SEEN = 1000  # number of rows that decide whether a column is nearly constant
OFFSET = 1e3  # a column is nearly constant if |mean| > OFFSET * std
GAP_NOISE = {8: 1e-12, 4: 1e-5}  # rounding error of a gap, as a share of the loss without features, by bytes of a number
FAR_GAP = {8: 1e-9, 4: 1e-4}  # the same for bounds that are far out


def model_of(loss: Loss, X: MatrixLike | RowData, y: ArrayLike, weights: ArrayLike | None, intercept: bool) -> MarginModel:
    """The objective, with or without an intercept outside of the constraint."""
    return (InterceptModel if intercept else LinearModel)(loss, X, y, weights)


def solve_fit(
    loss: Loss,
    X: Any,
    y: ArrayLike,
    plan: Reading,
    options: Options,
    weights: ArrayLike | None = None,
    start: np.ndarray | None = None,
) -> Answer:
    """Minimise the mean loss over the constraint and an intercept, round the answer into the set exactly, and certify it.

    ``plan`` is the result of `read_constraint`, and ``start`` holds the coefficients of an earlier fit.
    """
    f, offset = centred(model_of(loss, X, y, weights, options.intercept))
    zero, size, spent = f.zero, f.data.dtype.itemsize, 0
    null = max(abs(f.value_at(zero)), CONSTANT**2 * abs(f.mean_at(zero)))
    kept = {"tol": options.tol, "atol": FAR_GAP[size] * null, "max_iter": options.max_iter, "seed": options.seed}
    if plan.fraction is not None:
        plan, free = _with_radius(f, plan, options, kept)
        spent = free.calls.total_grads
    if plan.bounded:
        kept["atol"] = GAP_NOISE[size] * null
    C, run, exists = least_within(f, plan, partial(_run, f, options), kept, start)
    asked = "" if run.why else options.solver if isinstance(options.solver, str) else type(options.solver).__name__
    fit = answer_at(f, C, np.asarray(run.x), options.tol, kept["atol"], run, asked)
    fit = fit if exists else replace(fit, status="unbounded")
    level = fit.intercept if offset is None else fit.intercept - offset @ fit.x.astype(np.float64)
    return replace(fit, n_grads=fit.n_grads + spent, intercept=level, said=said(plan))


def said(plan: Reading) -> str:
    """The constraint as it was written, cut if it is long. Over cones, a gap holds within the bounds in ``constraint_``."""
    words = str(plan) if len(str(plan)) <= WORDS_SHOWN else f"{str(plan)[: WORDS_SHOWN - 4]} ..."
    return words if plan.bounded else f"{words} (within the wide bounds of constraint_)"


def centred(f: MarginModel) -> tuple[MarginModel, np.ndarray | None]:
    """Shift nearly constant columns by their means; return the new model and the shift, or f itself and None.

    The intercept makes up for the shift. Without a shift, products with columns such as 10^6 + noise lose the digits that count.
    Rows in memory are copied. Rows in a directory are shifted shard by shard, each time a shard is read.
    """
    data = f.data
    if f.is_finite_sum or not isinstance(data, RowData) or data.fill < 1:
        return f, None
    if data.bounds is None and not isinstance(data, InMemory):  # rows of a user's own kind stay as they are
        return f, None
    some = next(data.rows(np.arange(min(SEEN, f.n))).arrays(SEEN))[1].astype(np.float64)
    offset = np.where(np.abs(some.mean(axis=0)) > OFFSET * some.std(axis=0), some.mean(axis=0), 0.0).astype(data.dtype)
    rows = data.shifted(offset) if offset.any() else None
    return (f, None) if rows is None else (f.on_rows(rows, type(f)), offset.astype(np.float64))


def _with_radius(f: MarginModel, plan: Reading, options: Options, kept: Kept) -> tuple[Reading, Result]:
    """The constraint with its radius as a number, and the unconstrained run behind it."""
    refusal = (
        f"`{options.name}(radius={plan.fraction:.0%})` is a fraction of the norm of the unconstrained solution, but there is "
        "none: the loss keeps falling (for example, with separable classes); give the radius as a number"
    )
    by_default = partial(_run, f, replace(options, solver="auto"))
    return with_radius(f, plan, by_default, kept | {"tol": min(options.tol, 1e-4)}, refusal)


def _run(f: MarginModel, options: Options, C: ConvexSet, x0: Any, kept: Kept) -> Result:
    """Run the default or the requested method. Methods that draw batches treat the intercept as one more coefficient."""
    method = None if options.solver in (None, "auto") else as_recipe(options.name, options.solver)
    if method is None:
        return _by_default(f, C, kept, x0)
    if not isinstance(f, InterceptModel) or _reads_all(method, f, C):
        return minimize(f, C, method, x0=x0, **kept)
    if len(f.shape) > 1:
        raise InputError(
            f"`{options.name}(solver={options.solver!r})` draws batches, and takes no intercepts of several classes: "
            'use fit_intercept=False or solver="auto"'
        )
    joint, both = _joint(f, C)
    r = minimize(joint, both, method, x0=None if x0 is None else np.append(x0, 0.0).astype(f.dtype), **kept)
    return replace(r, x=np.asarray(r.x)[:-1])


def _by_default(f: MarginModel, C: ConvexSet, kept: Kept, x0: Any) -> Result:
    """Run the default method; small problems are solved to rounding."""
    r = minimize(f, C, x0=x0, **kept)
    left = kept["max_iter"] - r.n_iter
    if r.converged and left > 0 and f.n * math.prod(f.shape) <= SMALL_FIT:
        more = minimize(f, C, x0=r.x, **kept | {"tol": 1e-15, "atol": 0.0, "max_iter": min(POLISH, left)})
        spent = Calls(grads=r.calls.grads + more.calls.grads, certificate=r.calls.certificate + more.calls.certificate)
        if more.value <= r.value and more.gap <= r.gap:
            r = replace(more, trace=r.trace, n_iter=r.n_iter + more.n_iter, status=r.status)
        r = replace(r, calls=spent)
    return r


def _reads_all(method: Recipe, f: Any, C: ConvexSet) -> bool:
    """Whether a method uses full gradients only."""
    try:
        return isinstance(method.prepare(f, C, Budget(max_iter=1)).gradient, (Full, Growing, Expanded))
    except InputError:
        return False


def _joint(f: MarginModel, C: ConvexSet) -> tuple[LinearModel, ConvexSet]:
    """The problem with the intercept as one more coefficient, scaled by a bound on the best intercept."""
    rows: Any = f.data
    most, norm2 = rows.extent(C.start().astype(f.dtype))
    far = most + C.diameter * math.sqrt(norm2)
    level = float(f.intercept(np.zeros(f.shape, f.dtype)))  # type: ignore[attr-defined]
    unit = 1.0 + abs(level) + min(far, 10.0 * (1.0 + abs(level)))
    return f.on_rows(rows.with_column(unit), LinearModel), Product(C, Box(-1.0, 1.0, shape=(1,)))
