"""The best intercepts for given margins."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from extremal.checks import NonFiniteError
from extremal.losses.base import Loss
from extremal.losses.margin import Logistic
from extremal.losses.over_rows import bend_sums, derivs_of, mean_of
from extremal.losses.weighted import WeightedCurved, unweighted, weights_of
from extremal.quadratic.search import first_decrease
from extremal.support import linalg

BALANCES, AWAY, SETTLED = 300, 40.0, 1e-6  # scalings; margin of absent classes; relative derivatives that count as 0
LEVEL_TURNS, SWEEPS = 6, 3  # rounds of Newton steps and other ways for several intercepts; sweeps over all classes
COOLING, COOLING_STEPS = 4.0, 10  # factor by which the temperature falls; Newton steps at each temperature
NO_CURVATURE = 1e-14  # Newton steps fail below this curvature
LEVEL_TRIES = 100  # maximum number of passes over the margins for an intercept
LONGEST_STEP = 8.0  # maximum length of a Newton step for an intercept, in multiples of its range so far
LITTLE = 1e-10  # a step that promises less than this share of the value is followed by the last step
LEVEL_ROUNDING = 8 * np.finfo(np.float64).eps  # |mean of phi'| that is rounding, as a share of the mean |phi'|


def level_of(sums: Callable[[float], tuple[float, ...]], near: float) -> float:
    """The zero of the sum of phi'(z + b, y), which increases in b, by Newton steps; steps out of the bracket become bisections.

    ``sums`` returns the sums of phi', |phi'| and phi'' at b.
    """
    low, high, b, reach = -np.inf, np.inf, near, 1.0 + abs(near)
    for _ in range(LEVEL_TRIES):
        total, size, bend = sums(b)
        if abs(total) <= LEVEL_ROUNDING * size:
            break
        low, high = (b, high) if total < 0 else (low, b)
        step = -total / bend if bend > 0 else np.copysign(np.inf, -total)
        longest = LONGEST_STEP * reach
        new = b + float(np.clip(step, -longest, longest))
        if not low < new < high:
            new = 0.5 * (low + high)
        if new in (low, high, b):
            break
        reach, b = max(reach, abs(new - b)), new
    return b


def levels_of(loss: Loss, z: np.ndarray, y: np.ndarray, near: float | np.ndarray) -> np.ndarray:
    """One intercept for each output."""
    inner, w = unweighted(loss), weights_of(loss, y)
    w = np.ones(len(z)) if w is None else w.astype(np.float64)
    start = np.broadcast_to(np.asarray(near, np.float64), z.shape[1:]).copy()
    if not inner.target_shape:  # one target couples all outputs
        return _softmax_levels(loss, z.astype(np.float64, copy=False), y, w, start)
    return np.array([_task_level(inner.loss, z[:, j], y[:, j], w, start[j]) for j in range(z.shape[1])])


def _task_level(loss: Loss, z: np.ndarray, y: np.ndarray, w: np.ndarray, near: float) -> float:
    weighted, targets = WeightedCurved(loss, 1.0), np.column_stack([y, w])
    return level_of(lambda b: bend_sums(z, targets, weighted, b), near)


def _softmax_levels(loss: Loss, z: np.ndarray, y: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The intercepts of all classes, with sum 0, by damped Newton steps; if these fail, other methods provide a new start."""
    labels = y[:, 0] if y.ndim > 1 else y
    for turn in range(LEVEL_TURNS):
        b, done = _softmax_steps(loss, z, y, w, b)
        if done and _settled(loss, z, y, b):
            return b - b.mean()
        match turn % 3:
            case 0:
                b = _cooled(loss, z, y, w, b)
            case 1:
                b = _balanced(z, labels, w, b)
            case _:
                b = _class_by_class(z, labels, w, b)
    if not _settled(loss, z, y, b):
        raise NonFiniteError("the intercepts of the classes cannot be found: margins are too far apart")
    return b - b.mean()


def _settled(loss: Loss, z: np.ndarray, y: np.ndarray, b: np.ndarray) -> bool:
    """Whether the derivatives in the intercepts vanish relative to those of the rows."""
    c = derivs_of(z + b, y, loss)
    return bool(np.abs(c.mean(axis=0, dtype=np.float64)).max() <= SETTLED * float(np.abs(c).mean(dtype=np.float64)) + 1e-12)


def _cooled(loss: Loss, z: np.ndarray, y: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Intercepts by Newton steps on margins divided by a temperature, which falls from their spread to one.

    A row that is far out has no curvature. After division it has some, and each solution is close to the next.
    """
    heat = max(1.0, float((z + b).max() - (z + b).min()))
    while np.isfinite(heat):
        b = heat * _softmax_steps(loss, z / heat, y, w, b / heat, COOLING_STEPS)[0]
        if heat == 1.0:
            break
        heat = max(1.0, heat / COOLING)
    return b


def _balanced(z: np.ndarray, labels: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Intercepts that predict every class about as often as it occurs, by Sinkhorn scaling of logarithms.

        b_j <- b_j + log sum_{i of class j} w_i - log sum_i w_i p_ij

    Each round solves for all classes at once, given the normalisers of the rows, for margins at any distance.
    """
    with np.errstate(divide="ignore"):
        wanted, weights = np.log(np.bincount(labels.astype(np.intp), w, len(b))), np.log(w)[:, None]
    b = b.copy()
    for _ in range(BALANCES):
        u = z + b
        top = u.max(axis=1, keepdims=True)
        rows = top + np.log(np.exp(u - top).sum(axis=1, keepdims=True))
        terms = u - rows + weights
        high = np.maximum(terms.max(axis=0), -1e300)
        found = high + np.log(np.exp(terms - high).sum(axis=0))
        away = (rows - z).min(axis=0) - AWAY  # for absent classes
        new = np.where(np.isfinite(wanted), b + wanted - found, np.minimum(b, away))
        moved, b = float(np.abs(new - b).max()), new
        if moved <= 1e-6:
            break
    return b


def _class_by_class(z: np.ndarray, labels: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The best intercept of each class in turn, given the others. This is a logistic problem, which bisection always solves."""
    b = b.copy()
    for _ in range(SWEEPS):
        for j in range(len(b)):
            others = np.delete(z + b, j, axis=1)
            top = others.max(axis=1)
            m = z[:, j] - top - np.log(np.exp(others - top[:, None]).sum(axis=1))
            b[j] = _task_level(Logistic(), m, np.where(labels == j, 1.0, -1.0), w, float(b[j]))
    return b


def _softmax_steps(
    loss: Loss, z: np.ndarray, y: np.ndarray, w: np.ndarray, b: np.ndarray, most: int = LEVEL_TRIES
) -> tuple[np.ndarray, bool]:
    """Take steps until a step promises almost nothing, then one more; previous steps limit the length of each."""
    value, longest, last = mean_of(loss.value, z + b, y), LONGEST_STEP * (1.0 + float(np.abs(b).max())), False
    for _ in range(most):
        g = derivs_of(z + b, y, loss).mean(axis=0, dtype=np.float64)
        step = _softmax_step(z + b, w, g)
        if not np.isfinite(step).all():
            return b, False
        step *= min(1.0, longest / max(float(np.abs(step).max()), 1e-300))
        t, slope = 1.0, float(g @ step)
        if last or -slope <= 1e-30:
            return (b + step if -slope <= LITTLE * value else b), True
        last = -slope <= LITTLE * value
        if not last:
            look = partial(_value_beyond, loss, z + b, step, y)
            found = first_decrease(look, value, slope, shorter=0.25, least=1e-6, blur=0.0)
            if found is None:
                return b, False
            t, value, _ = found
        b, longest = b + t * step, max(longest, LONGEST_STEP * t * float(np.abs(step).max()))
    return b, False


def _value_beyond(loss: Loss, z: np.ndarray, step: np.ndarray, y: np.ndarray, t: float) -> tuple[float, None]:
    return mean_of(loss.value, z + t * step, y), None


def _softmax_step(z: np.ndarray, w: np.ndarray, g: np.ndarray) -> np.ndarray:
    """The Newton step, with sum 0. Diagonal entries are minus the sums of the others, which keeps digits if p is nearly 1."""
    e = np.exp(z - z.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    H = -(p * w[:, None]).T @ p / len(z)
    np.fill_diagonal(H, 0.0)
    np.fill_diagonal(H, -H.sum(axis=1))
    trace = float(np.trace(H))
    if not trace > NO_CURVATURE * float(w.mean()):
        return np.full(len(g), np.nan)
    step = linalg.lstsq(H + trace / len(g) ** 2, -g)
    return step - step.mean()
