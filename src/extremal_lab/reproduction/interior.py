"""A primal-dual interior-point Newton method for linear models, which computes the reference minima.

    min f(x(w))  over  s(w) > 0   by   min phi_mu(w) = f(x(w)) - mu sum_i log s_i(w),   mu -> 0

A step solves (P'HP + J' diag(lam / s) J) dw = J' mu / s - P' grad f for dw, with H = A' diag(phi'') A / n. It goes as far along
dw as the boundary and Armijo's rule for phi_mu allow. The multipliers lam follow by dlam = mu / s - lam - (lam / s) ds. On the
path of minimisers the Frank-Wolfe gap is about m mu. Once the squared Newton decrement is below mu, mu is cut, at last
superlinearly. Where phi'' is a poor guide (it is negative, or the step had to be short), the weights `secant` replace it.
References: Boyd, Vandenberghe (2004), Convex Optimization, section 11.7; Waechter, Biegler (2006), On the implementation of an
interior-point filter line-search algorithm, for the safeguards.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit

from extremal import checks
from extremal.checks import NonFiniteError
from extremal.data import CSR, Data, Dense
from extremal.losses import Huber, Logistic, Loss, NonlinearLeastSquares, Squared
from extremal.objectives import LinearModel
from extremal.points import Coordinate
from extremal_lab.reproduction.lifts import Lift, to_boundary

STEPS = 300  # most Newton steps
PATIENCE = 20  # Newton steps at the smallest mu without a smaller gap
SAFEGUARD = 1e10  # lam stays within this factor of mu / s
SHORT = 0.3  # share of the way to the boundary, or of a Newton step, below which phi'' is a poor guide
DENSE = 0.25  # density above which a sparse matrix is no help

Gap = Callable[[np.ndarray, np.ndarray], float]  # (x, grad f(x)) -> max over s of <grad f(x), x - s>


def second(loss: Loss, z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """phi''(z, y): a formula for each of the library's losses, differences of phi' for any other.

    Examples
    --------
    >>> second(Logistic(), np.zeros(1), np.ones(1)), second(NonlinearLeastSquares(), np.zeros(1), np.ones(1))
    (array([0.25]), array([0.125]))
    """
    match loss:
        case Logistic():
            return expit(z) * expit(-z)
        case Squared():
            return np.ones_like(z)
        case Huber():
            return (np.abs(z - y) <= loss.delta).astype(np.float64)
        case NonlinearLeastSquares():
            p, q = expit(z), expit(-z)  # phi' = 2 (y - q) q p,  dq/dz = -q p,  p = 1 - q
            return 2.0 * p * q * (p * q - (y - q) * (p - q))
    h = 1e-5 * np.maximum(1.0, np.abs(z))
    slope = (loss.deriv(z + h, y) - loss.deriv(z - h, y)) / (2.0 * h)
    return np.clip(slope, 0.0 if loss.convex else -loss.curvature, loss.curvature)


def secant(loss: Loss, z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Positive weights for points where phi'' is negative or a poor model of phi: |phi''|, for Huber's loss phi' / r.

    With phi' / r the model is above phi everywhere: iteratively reweighted least squares. Huber (1981), Robust Statistics.

    Examples
    --------
    >>> secant(Huber(1.0), np.array([0.5, 4.0]), np.zeros(2))
    array([1.  , 0.25])
    """
    if isinstance(loss, Huber):
        return loss.delta / np.maximum(loss.delta, np.abs(z - y))
    return np.abs(second(loss, z, y))


class Curved:
    """A linear model with its Hessian, all in float64 and at margins z = A x.

        H(x) = (1/n) A' diag(phi''(z, y)) A

    The cost is one product, sparse if A is sparse: 40 ms for w8a (49749 x 300, 12 entries a row).

    Examples
    --------
    >>> f = Curved(LinearModel(Squared(), np.array([[1.0, 2.0], [0.0, 4.0]]), np.zeros(2)))
    >>> f.hessian(np.zeros(2))
    array([[ 0.5,  1. ],
           [ 1. , 10. ]])
    """

    def __init__(self, f: LinearModel):
        self.f, self.convex = f, f.convex
        self._A = matrix(f.data)
        self._At = sp.csr_array(self._A.T) if sp.issparse(self._A) else self._A.T

    def margins(self, x: np.ndarray) -> np.ndarray:
        """A x."""
        return self.f.margins(x)

    def value(self, z: np.ndarray) -> float:
        """f, the mean of phi(z_i, y_i)."""
        return float(self.f.loss.value(z, self.f.y).mean())

    def grad(self, z: np.ndarray) -> np.ndarray:
        """A' phi'(z, y) / n."""
        return self.f.combine(self.f.derivs_at(z))

    def hessian(self, z: np.ndarray, weights: Callable[..., np.ndarray] = second) -> np.ndarray:
        """A' diag(phi'') A / n, or with other weights."""
        c = weights(self.f.loss, z, self.f.y) / self.f.n
        if not sp.issparse(self._A):
            return self._At @ (self._A * c[:, None])
        At = self._At
        return (sp.csr_array((At.data * c[At.indices], At.indices, At.indptr), shape=At.shape) @ self._A).toarray()


def matrix(data: Data, columns: Any = slice(None)) -> Any:
    """Some columns of A in float64: an array, sparse if that helps. User-defined data are read column by column."""
    if not isinstance(data, Dense | CSR):
        wanted = np.arange(data.shape[1])[columns].tolist()
        return np.column_stack([data.dot_vertex(Coordinate(j, 1.0, data.shape[1:])) for j in wanted]).astype(np.float64)
    A: Any = data.array if isinstance(data, Dense) else _sparse(data)
    A = A[:, columns].astype(np.float64, copy=False)
    return A.toarray() if isinstance(data, CSR) and A.nnz > DENSE * math.prod(A.shape) else A


def _sparse(data: CSR) -> Any:
    starts, indices, values = data.entries
    return sp.csr_array((values, indices, starts), shape=data.shape)


@dataclass(frozen=True)
class Iterate:
    """A strictly feasible point. x is updated apart from w: it keeps its digits where u - v loses them."""

    w: np.ndarray  # unit coordinates
    x: np.ndarray  # the point
    lam: np.ndarray  # multipliers of the slacks
    mu: float  # weight of the barrier
    z: np.ndarray  # A x
    value: float  # f(x)
    g: np.ndarray  # grad f(x)
    short: bool = False  # whether the last step, by phi'', was short


@dataclass(frozen=True)
class Descent:
    """The end of a descent: a point with a small enough gap, else with the smallest gap (smallest value if f is not convex)."""

    x: np.ndarray
    steps: int  # Newton steps


def descend(
    f: Curved,
    lift: Lift,
    gap: Gap,
    tol: Callable[[float], float],
    w: np.ndarray | None = None,
    weight: float = 1.0,
) -> Descent:
    """Descend until the gap is within the tolerance, or rounding forbids more.

    Parameters
    ----------
    f, lift
        The sum, and the set.
    gap : callable
        (x, grad f(x)) -> the Frank-Wolfe gap.
    tol : callable
        f(x) -> the largest gap that is small enough.
    w : array, optional
        The start, inside the set, in unit coordinates. Default: the centre.
    weight : float
        The first mu is weight * gap / m: 1 from the centre, less to stay near another start.

    Examples
    --------
    >>> from extremal_lab.reproduction.lifts import lift
    >>> from extremal.sets import L2Ball
    >>> f, C = LinearModel(Squared(), np.eye(2), np.array([3.0, 4.0])), L2Ball(1.0)
    >>> found = descend(Curved(f), lift(C, 2), lambda x, g: x @ g - C.lmo(g).dot(g), tol=lambda value: 1e-9)
    >>> found.x.round(9)
    array([0.6, 0.8])
    """
    w = lift.centre() if w is None else w
    best = _at(f, w, lift.lowered(w), np.zeros(lift.m), 0.0)
    top = weight * gap(best.x, best.g) / lift.m  # the first mu
    it, least, idle, k = replace(best, mu=top, lam=top / lift.slacks(w)), math.inf, 0, 0
    while True:
        now, enough = gap(it.x, it.g), tol(it.value)
        if now <= enough:
            return Descent(it.x, k)
        idle = 0 if now < 0.9 * least or it.mu > enough / lift.m else idle + 1
        best = it if (now < least if f.convex else it.value < best.value) else best
        if idle == PATIENCE or k == STEPS:
            return Descent(best.x, k)
        least, k = min(least, now), k + 1
        it = _step(f, lift, it, lambda mu, floor=0.1 * enough / lift.m: _cut(mu, top, floor))


def _at(f: Curved, w: np.ndarray, x: np.ndarray, lam: np.ndarray, mu: float) -> Iterate:
    z = f.margins(x)
    return Iterate(w, x, lam, mu, z, f.value(z), f.grad(z))


def _cut(mu: float, top: float, floor: float) -> float:
    """The next mu: a fifth, and a smaller share near the end; never below the floor."""
    return max(floor, min(0.2 * mu, top * (mu / top) ** 1.5))


def _step(f: Curved, lift: Lift, it: Iterate, cut: Callable[[float], float]) -> Iterate:
    """One Newton step, after cuts of mu for as long as the iterate is near the minimiser of phi_mu."""
    s, mu = lift.slacks(it.w), it.mu
    factor = _factor(f, lift, it, s)
    r, dw, dx = _direction(lift, factor, it, mu, s)
    while r @ dw <= mu and cut(mu) < mu:
        mu = cut(mu)
        r, dw, dx = _direction(lift, factor, it, mu, s)
    t = _search(f, lift, it, mu, dw, dx, float(r @ dw))
    if t == 0.0:
        return replace(it, mu=cut(mu), short=not it.short)  # rounding does not let phi_mu fall further
    w, x = lift.settled(it.w + t * dw, it.x + t * dx)
    dlam = mu / s - it.lam - it.lam / s * lift.change(it.w, dw)
    lam, middle = it.lam + to_boundary(it.lam, dlam) * dlam, mu / lift.slacks(w)
    new = _at(f, w, x, np.clip(lam, middle / SAFEGUARD, middle * SAFEGUARD), mu)
    return replace(new, short=t < SHORT * lift.reach(it.w, dw) and not it.short)


def _direction(lift: Lift, factor: Any, it: Iterate, mu: float, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """r = -grad phi_mu and the steps dw, dx; r'dw is the squared Newton decrement."""
    r = lift.pull(it.w, it.g, mu / s)
    return r, *lift.solve(factor, it.w, it.lam, r)


def _search(f: Curved, lift: Lift, it: Iterate, mu: float, dw: np.ndarray, dx: np.ndarray, fall: float) -> float:
    """The first t of reach, reach/2, ... with phi_mu(w + t dw) <= phi_mu(w) - 1e-4 t fall, up to rounding; 0 if there is none."""
    dz, t = f.margins(dx), lift.reach(it.w, dw)
    logs = np.log(lift.slacks(it.w))
    rounding = 1e-14 * (abs(it.value) + mu * float(np.abs(logs).sum()))
    for _ in range(40):
        rise = f.value(it.z + t * dz) - it.value - mu * float((np.log(lift.slacks(it.w + t * dw)) - logs).sum())
        if rise <= rounding - 1e-4 * t * fall:
            return t
        t /= 2.0
    return 0.0


def _factor(f: Curved, lift: Lift, it: Iterate, s: np.ndarray) -> Any:
    """The Cholesky factor of the system with phi''; if it is not positive definite, with more and more of |phi''|."""
    H = f.hessian(it.z, secant if it.short else second)
    if not checks.all_finite(H):
        raise NonFiniteError("the second derivatives of the loss have a NaN or an infinity")
    M = lift.matrix(H, s, it.lam)
    factor = _cholesky(M)
    if factor is None and not f.convex:
        size = f.hessian(it.z, secant)
        for share in (0.25, 0.5, 1.0):
            M = lift.matrix(H + share * (size - H), s, it.lam)
            factor = factor or _cholesky(M)
    ridge = 1e-14
    while factor is None:  # positive semidefinite up to rounding
        factor, ridge = _cholesky(M + np.diag(ridge * np.diag(M))), 100.0 * ridge
    return factor


def _cholesky(M: np.ndarray) -> Any:
    try:
        return cho_factor(M, lower=True, check_finite=False)
    except LinAlgError:
        return None


def polish(f: Curved, x: np.ndarray, gap: Gap, inside: Callable[[np.ndarray], bool]) -> np.ndarray:
    """Newton steps inside the set in fewer and fewer coordinates, those with the smallest |x_j|; kept if the gap falls.

    The gap multiplies the remaining gradient by the size of the set. With columns of size 500 and a radius of 2000 the rounding
    of x alone leaves 1e-9. But small coordinates are rounded more finely, and can make up for the large ones.
    """
    H, order = f.hessian(f.margins(x)), np.argsort(np.abs(x))
    best = gap(x, f.grad(f.margins(x)))
    for size in (len(x) >> k for k in range(len(x).bit_length())):  # d, d/2, ..., 1
        new = _refined(f, H, x, order[:size])
        now = gap(new, f.grad(f.margins(new))) if inside(new) else math.inf
        x, best = (new, now) if now < best else (x, best)
    return x


def _refined(f: Curved, H: np.ndarray, x: np.ndarray, few: np.ndarray) -> np.ndarray:
    """x after a Newton step in a few coordinates; x itself if f is not convex in them."""
    factor = _cholesky(H[np.ix_(few, few)] * (1.0 + 1e-12 * np.eye(len(few))))
    new = x.copy()
    if factor is not None:
        new[few] -= cho_solve(factor, f.grad(f.margins(x))[few], check_finite=False)
    return new
