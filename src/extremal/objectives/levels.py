"""The best intercepts for given margins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from extremal.checks import NonFiniteError
from extremal.data.parts import Sums
from extremal.losses.base import Loss
from extremal.losses.margin import Logistic
from extremal.losses.over_rows import bend_sums, derivs_of, sum_of
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


@dataclass(frozen=True)
class LevelSums:
    """Sums over all rows at margins z + b.

    ``ask(function, *rest)`` sums function(z, y, loss, *rest) over the rows, wherever these are.
    """

    loss: Any
    n: int
    ask: Callable[..., Sums]
    here: Callable[[], tuple[np.ndarray, np.ndarray]]  # the margins and the targets as local arrays

    @classmethod
    def local(cls, loss: Any, z: np.ndarray, y: np.ndarray) -> LevelSums:
        """The same for local arrays."""
        return cls(loss, len(z), lambda function, *rest: function(z, y, loss, *rest), lambda: (z, y))

    def value(self, b: np.ndarray) -> float:
        """The mean of the loss."""
        return self.ask(_value_at, b)[0] / self.n

    def slopes(self, b: np.ndarray) -> tuple[np.ndarray, float]:
        """The means of the derivatives, and of their absolute values."""
        total, size = self.ask(_slope_sums, b)
        return total / self.n, size / self.n

    def bends(self, b: np.ndarray) -> tuple[Any, ...]:
        """The means of the derivatives, of w p p', and of the weights w."""
        return tuple(found / self.n for found in self.ask(_softmax_sums, b))


def levels_of(sums: LevelSums, near: np.ndarray) -> np.ndarray:
    """One intercept for each output."""
    if not unweighted(sums.loss).target_shape:  # one target couples all outputs
        return _softmax_levels(sums, near.copy())
    return np.array([level_of(lambda b, j=j: sums.ask(_task_sums, j, b), start) for j, start in enumerate(near)])


def _task_sums(z: np.ndarray, y: np.ndarray, loss: Any, j: int, b: float) -> tuple[float, float, float]:
    w = weights_of(loss, y)
    return _weighted_sums(unweighted(loss).loss, z[:, j], y[:, j], np.ones(len(z)) if w is None else w, b)


def _weighted_sums(loss: Loss, z: np.ndarray, y: np.ndarray, w: np.ndarray, b: float) -> tuple[float, float, float]:
    return bend_sums(z, np.column_stack([y, w]), WeightedCurved(loss, 1.0), b)


def _value_at(z: np.ndarray, y: np.ndarray, loss: Loss, b: np.ndarray) -> tuple[float]:
    return (sum_of(lambda z, y: loss.value(z + b, y), z, y),)


def _slope_sums(z: np.ndarray, y: np.ndarray, loss: Loss, b: np.ndarray) -> tuple[np.ndarray, float]:
    c = derivs_of(z + b, y, loss)
    return c.sum(axis=0, dtype=np.float64), float(np.abs(c).mean(axis=1, dtype=np.float64).sum())


def _softmax_sums(z: np.ndarray, y: np.ndarray, loss: Loss, b: np.ndarray) -> Sums:
    at, w = z + b, weights_of(loss, y)
    c = derivs_of(at, y, loss)
    e = np.exp(at - at.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    products = (p if w is None else p * w[:, None]).T @ p
    return c.sum(axis=0, dtype=np.float64), products, float(len(z) if w is None else w.sum())


def _softmax_levels(sums: LevelSums, b: np.ndarray) -> np.ndarray:
    """The intercepts of all classes, with sum 0, by damped Newton steps; if these fail, other methods provide a new start."""
    for turn in range(LEVEL_TURNS):
        b, done = _softmax_steps(sums, b)
        if done and _settled(sums, b):
            return b - b.mean()
        z, y = sums.here()
        labels, w = y[:, 0] if y.ndim > 1 else y, weights_of(sums.loss, y)
        w = np.ones(len(z)) if w is None else w.astype(np.float64)
        match turn % 3:
            case 0:
                b = _cooled(sums.loss, z, y, b)
            case 1:
                b = _balanced(z, labels, w, b)
            case _:
                b = _class_by_class(z, labels, w, b)
    if not _settled(sums, b):
        raise NonFiniteError("the intercepts of the classes cannot be found: margins are too far apart")
    return b - b.mean()


def _settled(sums: LevelSums, b: np.ndarray) -> bool:
    """Whether the derivatives in the intercepts vanish relative to those of the rows."""
    mean, size = sums.slopes(b)
    return bool(np.abs(mean).max() <= SETTLED * size + 1e-12)


def _cooled(loss: Loss, z: np.ndarray, y: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Intercepts by Newton steps on margins divided by a temperature, which falls from their spread to one.

    A row that is far out has no curvature. After division it has some, and each solution is close to the next.
    """
    heat = max(1.0, float((z + b).max() - (z + b).min()))
    while np.isfinite(heat):
        b = heat * _softmax_steps(LevelSums.local(loss, z / heat, y), b / heat, COOLING_STEPS)[0]
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
            own = np.where(labels == j, 1.0, -1.0)
            b[j] = level_of(lambda t, m=m, own=own: _weighted_sums(Logistic(), m, own, w, t), float(b[j]))
    return b


def _softmax_steps(sums: LevelSums, b: np.ndarray, most: int = LEVEL_TRIES) -> tuple[np.ndarray, bool]:
    """Take steps until a step promises almost nothing, then one more; previous steps limit the length of each."""
    value, longest, last = sums.value(b), LONGEST_STEP * (1.0 + float(np.abs(b).max())), False
    for _ in range(most):
        g, H, weight = sums.bends(b)
        step = _softmax_step(g, H, weight)
        if not np.isfinite(step).all():
            return b, False
        step *= min(1.0, longest / max(float(np.abs(step).max()), 1e-300))
        t, slope = 1.0, float(g @ step)
        if last or -slope <= 1e-30:
            return (b + step if -slope <= LITTLE * value else b), True
        last = -slope <= LITTLE * value
        if not last:
            look = partial(_value_beyond, sums, b, step)
            found = first_decrease(look, value, slope, shorter=0.25, least=1e-6, blur=0.0)
            if found is None:
                return b, False
            t, value, _ = found
        b, longest = b + t * step, max(longest, LONGEST_STEP * t * float(np.abs(step).max()))
    return b, False


def _value_beyond(sums: LevelSums, b: np.ndarray, step: np.ndarray, t: float) -> tuple[float, None]:
    return sums.value(b + t * step), None


def _softmax_step(g: np.ndarray, products: np.ndarray, weight: float) -> np.ndarray:
    """The Newton step, with sum 0. Diagonal entries are minus the sums of the others, which keeps digits if p is nearly 1."""
    H = -products
    np.fill_diagonal(H, 0.0)
    np.fill_diagonal(H, -H.sum(axis=1))
    trace = float(np.trace(H))
    if not trace > NO_CURVATURE * weight:
        return np.full(len(g), np.nan)
    step = linalg.lstsq(H + trace / len(g) ** 2, -g)
    return step - step.mean()
