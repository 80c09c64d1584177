"""The shared parts of steps by a quadratic model: how far to go, and how to learn the Hessian from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np

from extremal.checks import NonFiniteError
from extremal.support.kinds import Numbers

SUFFICIENT = 1e-4  # share of the slope that counts as a sufficient decrease
UNSEEN = 1e-15, 1e-10  # shares of f: its rounding error, and the largest decrease that rounding may hide
LEARN = 1e-10  # a change of the gradient below this share of the expected curvature is rounding
ROOT_RIDGE = 1e-13  # added to columns of length 1, so that the solution is unique
SLOPE_HALVINGS = 40  # largest number of halvings in a search for a zero of the slope

Found = TypeVar("Found")
T = TypeVar("T", float, np.ndarray)


class OnLine(Protocol):
    """A function on a line that starts at t = 0."""

    def value(self, t: float) -> float: ...  # the value at t
    def slope(self, t: float) -> float: ...  # the derivative at t


def longest_step(x: np.ndarray, d: np.ndarray, lower: Numbers = 0.0, upper: Numbers = math.inf, most: float = 1.0) -> float:
    """The largest t in [0, most] with lower <= x + t d <= upper: the ratio test.

    Examples
    --------
    >>> import numpy as np
    >>> longest_step(np.array([0.5, 0.5]), np.array([-1.0, 1.0]))
    0.5
    """
    room, speed = np.maximum(np.where(d > 0, upper - x, x - lower), 0.0), np.abs(d)
    short = room < most * speed if most < math.inf else (speed > 0) & (room < math.inf)
    with np.errstate(over="ignore"):
        return float((room[short] / speed[short]).min(initial=most))


def first_decrease(
    look: Callable[[float], tuple[float, Found]],
    limit: float,
    slope: float,
    t: float = 1.0,
    shorter: float = 0.5,
    least: float = 1e-12,
    blur: float = UNSEEN[0],
) -> tuple[float, float, Found] | None:
    """Find the first of t, t/2, t/4, ... at which a value is sufficiently below ``limit``; return t and the answer of ``look``.

    ``look(t)`` returns the value and the data that belong to it. The result is None if no t of at least ``least`` is
    sufficient. This is Armijo's rule, up to rounding of a share ``blur``.

    Examples
    --------
    >>> first_decrease(lambda t: ((2 * t - 1) ** 2, "there"), 1.0, -4.0)
    (0.5, 0.0, 'there')
    """
    while t >= least:
        value, found = look(t)
        if value <= limit + SUFFICIENT * t * slope + blur * abs(limit):
            return t, value, found
        t *= shorter
    return None


def armijo(line: OnLine, value: float, slope: float, bend: float, most: float, scale: float = 0.0) -> float:
    """t = 1 if f falls enough there, else 1/2, 1/4, ...; or 2, 4, ... up to ``most`` while f falls more than the model says.

    If rounding of f, or of terms of size ``scale`` in it, hides the decrease, slopes decide instead of values.
    """
    t, scale = min(1.0, most), max(abs(value), scale)
    first = t, line.value(t)
    if -slope <= UNSEEN[1] * scale and first[1] <= value + 10 * UNSEEN[0] * scale:
        for _ in range(SLOPE_HALVINGS):
            if line.slope(t) <= -0.9 * slope:  # f still falls there, or rises less steeply than it fell
                return t
            t /= 2
        return 0.0
    found = first_decrease(lambda t: (first[1] if t == first[0] else line.value(t), None), value, slope, t)
    if found is None:
        return 0.0
    t, now, _ = found
    while value - now < -0.7 * t * (slope + t * bend):  # less than the model says: a shorter step may do
        if not (then := line.value(0.5 * t)) < now:
            break
        t, now = 0.5 * t, then
    if t == 1.0 and value - now > 1.1 * -(slope + bend):
        while t < most:
            further = min(2 * t, most)
            if not (then := line.value(further)) < now:
                break
            t, now = further, then
    return t


def workable(a: T) -> T:
    """The same numbers; refuse numbers that are not finite."""
    if not np.isfinite(a).all():
        raise NonFiniteError("the second derivatives of f are not finite, or too large to work with")
    return a


def bfgs(H: np.ndarray, s: np.ndarray, y: np.ndarray, least: float = 1e-3) -> np.ndarray:
    """The positive semidefinite matrix near H that maps the step s to the change y of the gradient; H if none exists."""
    Hs, sy = H @ s, float(s @ y)
    sHs = float(s @ Hs)
    if not (sHs > 0 and sy > least * sHs):
        return H
    return H + np.outer(y / sy, y) - np.outer(Hs / sHs, Hs)


def learn(H: np.ndarray, s: np.ndarray, y: np.ndarray, first: bool = False) -> np.ndarray:
    """The same for an H that is known only from such changes, and may have far too much curvature.

    The first change scales all of H. If the gradient shows almost no curvature along s, H keeps a fifth of its own.
    """
    Hs, sy = H @ s, float(s @ y)
    sHs = float(s @ Hs)
    if not 0 < sHs < np.inf or not np.isfinite(sy):
        return H
    if first and sy > 0:
        H, Hs, sHs = H * (sy / sHs), Hs * (sy / sHs), sy
    if sy < LEARN * sHs:
        y, sy = 0.2 * Hs, 0.2 * sHs
    return H + np.outer(y / sy, y) - np.outer(Hs / sHs, Hs)


def is_definite(H: np.ndarray) -> bool:
    """Whether H is positive definite, by a Cholesky factor."""
    try:
        np.linalg.cholesky(H)
    except np.linalg.LinAlgError:
        return False
    return True


def root_of(H: np.ndarray) -> np.ndarray:
    """B with B'B = H, for an H that is positive semidefinite up to rounding.

    Examples
    --------
    >>> import numpy as np
    >>> root_of(np.diag([4.0, 9.0]))
    array([[2., 0.],
           [0., 3.]])
    """
    try:
        return np.linalg.cholesky(H).T
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(H)
        return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T


def least_point(B: np.ndarray, g: np.ndarray) -> np.ndarray:
    """The d that minimises <g, d> + |B d|^2 / 2, by a QR factorisation of B, which keeps small parts of B'B.

    Examples
    --------
    >>> import numpy as np
    >>> least_point(np.diag([1.0, 2.0]), np.array([-1.0, 4.0])).round(12)
    array([ 1., -1.])
    """
    squares = workable(np.einsum("ij,ij->j", B, B))
    unit = 1.0 / np.sqrt(np.where(squares > 1e-250, squares, 1.0))
    R = np.asarray(np.linalg.qr(np.vstack([B * unit, ROOT_RIDGE * np.eye(len(g))]), mode="r"))
    return -unit * np.linalg.solve(R, np.linalg.solve(R.T, unit * g))
