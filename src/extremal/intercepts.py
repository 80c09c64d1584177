"""Linear models with an intercept that no set constrains: it is projected out."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from extremal import linalg
from extremal.checks import InputError, NonFiniteError
from extremal.iterates import freeze
from extremal.losses import Logistic, MultiLoss, compiled
from extremal.margins import Along, bent_of, derivs_of, mean_of, second_of
from extremal.multi_losses import Multinomial, MultiTask
from extremal.objective import LinearModel, Rows, Segment
from extremal.weighted import WeightedCurved, unweighted, weights_of

BALANCES, AWAY, SETTLED = 300, 40.0, 1e-6  # of scalings; margins of absent classes; derivatives that are nothing
TURNS, SWEEPS = 6, 3  # of Newton steps and of looks at class by class for several intercepts; of these, sweeps over all classes
FLAT = 1e-14  # curvature of which Newton steps make nothing
TRIES = 100  # looks at all margins, at most, for an intercept
LONGEST = 8.0  # no Newton step for an intercept is longer, in multiples of what has been seen of it
LITTLE = 1e-10  # share of the value that a step may promise where the next one is the last
EXACT = 8 * np.finfo(np.float64).eps  # share of the mean |phi'| that the mean of phi' may be


class InterceptModel(LinearModel):
    """A linear model with an intercept outside of the constraint.

        f(x) = min over b of (1/n) sum_i phi(<a_i, x> + b, y_i),   grad f(x) = (1/n) A' c,   c_i = phi'(<a_i, x> + b(x), y_i)

    b(x) is found to rounding by Newton steps on the margins, without a look at the data: some O(n). As f is the least over b,
    its gradient needs no derivative of b, it is convex if phi is, and a Frank-Wolfe gap of f bounds what is left to win in x
    and b together. Second derivatives lose what the intercept takes over:

        H = (1/n) (A' D A - A'D1 1'DA / 1'D1),   D = diag phi''

    It is no finite sum, since b depends on all rows: methods that draw batches refuse it. Convex losses only.

    Parameters
    ----------
    loss, A, y, weights
        As for `LinearModel`. With several outputs there is one intercept for each.

    References
    ----------
    Golub, Pereyra (1973), The differentiation of pseudo-inverses and nonlinear least squares problems whose variables
    separate, SIAM J. Numer. Anal. 10 (variable projection).

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> A, y = np.array([[0.0], [1.0], [2.0]]), np.array([5.0, 6.0, 7.0])
    >>> f = ex.InterceptModel(ex.Squared(), A, y)
    >>> r = ex.minimize(f, ex.Box(0.0, 0.5))
    >>> r.x, f.intercept(r.x)
    (array([0.5]), 5.5)
    """

    separate = False
    _last: tuple[np.ndarray | None, Any] | None = None  # margins, and their intercept: it is asked for several times in a step

    def __init__(self, loss: Any, A: Any, y: Any, weights: Any = None):
        super().__init__(loss, A, y, weights)
        if not self.loss.convex:
            raise InputError(f"`InterceptModel(loss=...)` must be convex, got {loss!r}; append a column of ones to A instead")
        inner = unweighted(self.loss)
        if isinstance(inner, MultiLoss) and not isinstance(inner, (Multinomial, MultiTask)):
            raise InputError(f"`InterceptModel(loss=...)` of several outputs must be Multinomial or MultiTask, got {loss!r}")

    def intercept(self, x: np.ndarray) -> Any:
        """b(x), the best intercept for x: a float, or one for each output."""
        return self.level(self.data.dot(x))

    def level(self, z: np.ndarray) -> Any:
        """The best intercept for given margins."""
        last = self._last
        if last is not None and last[0] is z:
            return last[1]
        w = self.weights
        mean = z.mean(axis=0, dtype=np.float64) if w is None else w @ z / w.sum()
        b = self._level(z, self._constant - mean)
        self._last = (z if not z.flags.writeable else None), b  # margins that may yet change are no key
        return b

    def _level(self, z: np.ndarray, near: Any) -> Any:
        """The best intercept, found from ``near``: a start that is a function of z alone, so that equal calls answer alike."""
        return _levels(self.loss, z, self.y, near) if self.deriv_shape else _level(self.loss, z, self.y, float(near))

    @cached_property
    def _constant(self) -> Any:
        """The best constant prediction."""
        return self._level(np.zeros((self.n, *self.deriv_shape)), 0.0)

    def __getstate__(self) -> dict[str, Any]:
        return {name: item for name, item in self.__dict__.items() if name != "_last"}

    def lifted(self, z: np.ndarray) -> np.ndarray:
        """The margins with their intercept."""
        return (z + self.level(z)).astype(z.dtype, copy=False)

    def _with(self, data: Any, y: np.ndarray) -> LinearModel:
        new = super()._with(data, y)
        for name in ("_last", "_constant"):
            new.__dict__.pop(name, None)
        return new

    def _pass(self, x: np.ndarray, value: bool = False, grad: bool = False) -> tuple[float, np.ndarray]:
        z = self.lifted(self.data.dot(x))
        return self._at(z) if grad else (mean_of(self.loss.value, z, self.y), z)

    def look(self, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """f(x), its gradient and the margins A x, without the intercept."""
        z = freeze(self.data.dot(x))
        return *self._at(self.lifted(z)), z

    def _at(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        """The mean and its gradient, at margins that have been lifted."""
        if compiled(self.loss) is None:
            return mean_of(self.loss.value, z, self.y), self.combine(derivs_of(self.loss, z, self.y))
        total, c, _ = bent_of(self.loss, z, self.y, valued=True)
        return total / self.n, self.combine(c.astype(z.dtype, copy=False))

    def derivs(self, x: np.ndarray, idx: Rows = None) -> np.ndarray:
        """c_i for all i."""
        return self.derivs_at(self.data.dot(x), idx)

    def derivs_at(self, z: np.ndarray, idx: Rows = None) -> np.ndarray:
        """phi' at given margins of all rows, lifted by their intercept."""
        _refuse_batches(idx)
        return derivs_of(self.loss, self.lifted(z), self.y)

    def value_at(self, z: np.ndarray) -> float:
        """The least mean of phi(z_i + b, y_i) over b."""
        return mean_of(self.loss.value, self.lifted(z), self.y)

    def values(self, x: np.ndarray, idx: Rows = None) -> np.ndarray:
        """The terms of f(x), at its intercept."""
        _refuse_batches(idx)
        return self.loss.value(self.lifted(self.data.dot(x)), self.y)

    def between(self, z: np.ndarray, dz: np.ndarray) -> Segment:
        """t -> mean of phi(z + b + t (dz + db)): not less than f, and equal at t = 0 up to second derivatives.

        The intercept moves on a line, to where Newton's step would take it. So f falls by what this says, or more.
        """
        at = self.lifted(z)
        if self.deriv_shape:
            bends = self.bends_at(z) if hasattr(self.loss, "bends") else None
            move = 0.0 if bends is None else bends.follow(bends.dot(dz))
            return Along(self.loss, self.y, at, (dz + move).astype(dz.dtype, copy=False))
        h = second_of(self.loss, at, self.y).astype(np.float64)
        total = float(h.sum())
        move = -float(h @ dz) / total if total > 0 else 0.0
        return Along(self.loss, self.y, at, (dz + move).astype(dz.dtype, copy=False))

    def second_at(self, z: np.ndarray, width: float = 0.0) -> np.ndarray:
        """phi'' at given margins, lifted by their intercept."""
        return super().second_at(self.lifted(z), width)

    def bends_at(self, z: np.ndarray, width: float = 0.0) -> Any:
        """D and P at given margins, lifted by their intercepts."""
        return super().bends_at(self.lifted(z), width)

    def tail(self, z: np.ndarray) -> float:
        """As of `LinearModel`, at the intercept of the margins."""
        return super()._tail(self.lifted(z))


def _refuse_batches(idx: Rows) -> None:
    if idx is not None:
        raise InputError("an InterceptModel has no batches, its intercept depends on all rows; use a method of full gradients")


def _level(loss: Any, z: np.ndarray, y: np.ndarray, near: float) -> float:
    """The zero of the mean of phi'(z + b, y), which increases in b: Newton steps, halving where these leave what is left."""
    z, bent = z.astype(np.float64, copy=False), bent_of if hasattr(loss, "second") else _differences
    low, high, b, reach = -np.inf, np.inf, near, 1.0 + abs(near)
    for _ in range(TRIES):
        _, c, h = bent(loss, z + b, y)
        total, size, bend = (float(a.sum(dtype=np.float64)) for a in (c, np.abs(c), h))
        if abs(total) <= EXACT * size:
            break
        low, high = (b, high) if total < 0 else (low, b)
        step = -total / bend if bend > 0 else np.copysign(np.inf, -total)
        longest = LONGEST * reach
        new = b + float(np.clip(step, -longest, longest))
        if not low < new < high:
            new = 0.5 * (low + high)
        if new in (low, high, b):
            break
        reach, b = max(reach, abs(new - b)), new
    return b


def _differences(loss: Any, z: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """phi' and phi'' of a loss that knows its first derivative only."""
    step = 1e-5
    return 0.0, derivs_of(loss, z, y), (derivs_of(loss, z + step, y) - derivs_of(loss, z - step, y)) / (2 * step)


def _levels(loss: Any, z: np.ndarray, y: np.ndarray, near: Any) -> np.ndarray:
    """One intercept for each output."""
    inner, w = unweighted(loss), weights_of(loss, y)
    w = np.ones(len(z)) if w is None else w.astype(np.float64)
    start = np.broadcast_to(np.asarray(near, np.float64), z.shape[1:]).copy()
    if isinstance(inner, Multinomial):
        return _softmax_levels(loss, z.astype(np.float64, copy=False), y, w, start)
    return np.array([_task_level(inner.loss, z[:, j], y[:, j], w, start[j]) for j in range(z.shape[1])])


def _task_level(loss: Any, z: np.ndarray, y: np.ndarray, w: np.ndarray, near: float) -> float:
    return _level(WeightedCurved(loss, 1.0), z, np.column_stack([y, w]), near)


def _softmax_levels(loss: Any, z: np.ndarray, y: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The intercepts of all classes, of sum 0: damped Newton steps; where these lead nowhere, class by class, and again."""
    labels = y[:, 0] if y.ndim > 1 else y
    for turn in range(TURNS):
        b, done = _softmax_steps(loss, z, y, w, b)
        if done and _settled(loss, z, y, b):
            return b - b.mean()
        b = _balanced(z, labels, w, b) if turn % 2 == 0 else _class_by_class(z, labels, w, b)
    if not _settled(loss, z, y, b):
        raise NonFiniteError("the intercepts of the classes cannot be found: margins are too far apart")
    return b - b.mean()


def _settled(loss: Any, z: np.ndarray, y: np.ndarray, b: np.ndarray) -> bool:
    """Whether the derivatives in the intercepts vanish, beside those of the rows."""
    c = derivs_of(loss, z + b, y)
    return bool(np.abs(c.mean(axis=0, dtype=np.float64)).max() <= SETTLED * float(np.abs(c).mean(dtype=np.float64)) + 1e-12)


def _balanced(z: np.ndarray, labels: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Intercepts at which every class is predicted about as often as it is there, by Sinkhorn's scaling of logarithms.

        b_j <- b_j + log sum_{i of class j} w_i - log sum_i w_i p_ij

    Each turn solves for all classes at once, given the rows' normalisers, however far margins are apart.
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
        away = (rows - z).min(axis=0) - AWAY  # for classes that are not there
        new = np.where(np.isfinite(wanted), b + wanted - found, np.minimum(b, away))
        moved, b = float(np.abs(new - b).max()), new
        if moved <= 1e-6:
            break
    return b


def _class_by_class(z: np.ndarray, labels: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The best intercept of each class in turn, given the others: that of a logistic loss, which bisection finds anywhere."""
    b, one = b.copy(), WeightedCurved(Logistic(), 1.0)
    for _ in range(SWEEPS):
        for j in range(len(b)):
            others = np.delete(z + b, j, axis=1)
            top = others.max(axis=1)
            m = z[:, j] - top - np.log(np.exp(others - top[:, None]).sum(axis=1))
            b[j] = _level(one, m, np.column_stack([np.where(labels == j, 1.0, -1.0), w]), float(b[j]))
    return b


def _softmax_steps(loss: Any, z: np.ndarray, y: np.ndarray, w: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, bool]:
    """Until a step promises next to nothing, and one step more; each as long as those before it allow."""
    value, longest, last = mean_of(loss.value, z + b, y), LONGEST * (1.0 + float(np.abs(b).max())), False
    for _ in range(TRIES):
        g = derivs_of(loss, z + b, y).mean(axis=0, dtype=np.float64)
        step = _softmax_step(z + b, w, g)
        if not np.isfinite(step).all():
            return b, False
        step *= min(1.0, longest / max(float(np.abs(step).max()), 1e-300))
        t, slope = 1.0, float(g @ step)
        if last or -slope <= 1e-30:
            return (b + step if -slope <= LITTLE * value else b), True
        last, new = -slope <= LITTLE * value, value
        while not last and (new := mean_of(loss.value, z + b + t * step, y)) > value + 1e-4 * t * slope and t > 1e-6:
            t /= 4
        if t <= 1e-6:
            return b, False
        b, value, longest = b + t * step, new, max(longest, LONGEST * t * float(np.abs(step).max()))
    return b, False


def _softmax_step(z: np.ndarray, w: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Newton's, of sum 0. Diagonal entries are minus the sums of the others, which keeps their digits where p is nearly 1."""
    e = np.exp(z - z.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    H = -(p * w[:, None]).T @ p / len(z)
    np.fill_diagonal(H, 0.0)
    np.fill_diagonal(H, -H.sum(axis=1))
    trace = float(np.trace(H))
    if not trace > FLAT * float(w.mean()):
        return np.full(len(g), np.nan)
    step = linalg.lstsq(H + trace / len(g) ** 2, -g)
    return step - step.mean()
