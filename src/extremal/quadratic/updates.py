"""Hessians that are corrected by what steps show of them, and their roots."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from extremal.checks import NonFiniteError

T = TypeVar("T", float, np.ndarray)
LEARN = 1e-10  # share of the curvature that was thought to be there, below which a change of the gradient is rounding
ROOT_RIDGE = 1e-13  # beside columns of length 1, so that there is one solution


def workable(a: T) -> T:
    """The same numbers, refused if one is not finite."""
    if not np.isfinite(a).all():
        raise NonFiniteError("the second derivatives of f are not finite, or too large to work with")
    return a


def bfgs(H: np.ndarray, s: np.ndarray, y: np.ndarray, least: float = 1e-3) -> np.ndarray:
    """The positive semidefinite matrix near H that maps the step s to the change y of the gradient; H if there is none."""
    Hs, sy = H @ s, float(s @ y)
    sHs = float(s @ Hs)
    if not (sHs > 0 and sy > least * sHs):
        return H
    return H + np.outer(y / sy, y) - np.outer(Hs / sHs, Hs)


def learn(H: np.ndarray, s: np.ndarray, y: np.ndarray, first: bool = False) -> np.ndarray:
    """The same for an H that knows nothing but such changes: also where there is far less curvature than it says.

    The first change scales all of it. Where there is none, or less, a fifth of what H says is left along s.
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
    """The d that minimises <g, d> + |B d|^2 / 2, by a QR factorisation of B: what is small in B'B is not lost.

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
