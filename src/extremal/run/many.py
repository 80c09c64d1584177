"""Solve many small least squares problems over the simplex in one call."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from extremal import checks
from extremal.checks import InputError
from extremal.data import parts
from extremal.kernels.arguments import kernels, locked
from extremal.sets.base import ConvexSet
from extremal.sets.norms.balls import L1Ball
from extremal.sets.simplices.plain import Simplex, UnitSimplex

CALL = "least_squares_many"


@dataclass(frozen=True, eq=False, repr=False)
class ManyResult:
    """The answers of `least_squares_many`: each array has one entry for each of the p problems.

    Value and gap come from the residual at x; ``rounding`` is the size of rounding errors in the gap.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> r = ex.least_squares_many(np.eye(2), np.array([[1.0, 3.0], [0.5, 0.5]]))
    >>> r.x.round(12), r.value.round(12), r.converged
    (array([[0. , 1. ],
           [0.5, 0.5]]), array([1.25, 0.  ]), array([ True,  True]))
    """

    x: np.ndarray  # (p, d), the points, feasible
    value: np.ndarray  # (p,), f_p(x_p)
    gap: np.ndarray  # (p,), Frank-Wolfe gaps: f_p(x_p) - f_p* <= gap_p
    rounding: np.ndarray  # (p,), the size of rounding errors in the gap
    converged: np.ndarray  # (p,), whether gap <= tol value + atol, or gap <= rounding
    n_iter: np.ndarray  # (p,), iterations of the active-set method

    def __repr__(self) -> str:
        p = len(self.value)
        if p == 0:
            return "ManyResult(0 problems)"
        relative = np.divide(self.gap, self.value, out=np.zeros(p), where=self.value > 0).max()
        return (
            f"ManyResult({p} problems, {np.count_nonzero(self.converged)} converged\n"
            f"  value {self.value.min():.10g} to {self.value.max():.10g}   largest gap {self.gap.max():.1e}, "
            f"relative {relative:.1e}   {self.n_iter.sum()} iterations)"
        )


def least_squares_many(
    A: ArrayLike, B: ArrayLike, C: ConvexSet | None = None, *, tol: float = 1e-8, atol: float = 0.0
) -> ManyResult:
    """Solve many small least squares problems over the simplex, each to rounding error and with a certificate.

        x_p = argmin over x in C of  f_p(x) = 1/(2m) |A_p x - b_p|^2,     p = 1, ..., P

    Each problem finds non-negative weights that sum to one, as in synthetic controls, forecast combinations, abundances of
    materials in pixels, and archetypes. Values and gaps agree with those of ``LinearModel(Squared(), A[p], B[p])``.

    The method is an active-set method. The oracle's vertex enters, the point goes to the minimiser over the affine hull of its
    vertices or to the boundary, and vertices of weight 0 leave. The method ends at the minimiser, not near it, after about as
    many iterations as the solution has non-zeros. The products of columns cost O(m d^2), once if all problems share A. Each
    problem then costs O(m d), and O(k d) per iteration for k non-zeros, O(k^3) if one leaves: 3 microseconds for m = 50, d = 10.
    If products of columns have lost digits, the gradient is recomputed from the residual. Columns may be equal, zero, dependent,
    or more than the rows. x is always non-negative, and its sum is right to a few units in the last place.

    All cores solve the problems in parts, and the bits do not depend on the number of cores. Beyond the answers, each core
    needs the memory of one part. All sums are in float64; float32 data are not copied as a whole.

    Parameters
    ----------
    A : array of shape (m, d) or (P, m, d)
        One matrix for all problems, or one for each; dense.
    B : array of shape (P, m)
        Targets, one row per problem.
    C : Simplex, UnitSimplex or L1Ball, optional
        Any total or radius, no centre. Default: ``Simplex()``.
    tol, atol : float
        Problem p has converged if gap_p <= tol f_p(x_p) + atol, or if gap_p is within rounding of 0. A problem that has not
        converged continues with recomputed gradients, as long as these help.

    Notes
    -----
    For weighted rows, multiply the rows of A and of B by the square roots of their weights.

    References
    ----------
    Wolfe (1976), Finding the nearest point in a polytope, Mathematical Programming 11.
    Lawson, Hanson (1974), Solving least squares problems, chapter 23.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> rng = np.random.default_rng(0)
    >>> donors = rng.standard_normal((1000, 50, 10))                # a thousand problems of 50 x 10
    >>> weights = np.array([0.6, 0.4] + [0] * 8)
    >>> r = ex.least_squares_many(donors, donors @ weights + 0.1 * rng.standard_normal((1000, 50)))
    >>> r.x.shape, bool(r.converged.all()), bool((r.gap < 1e-12 * r.value).all())
    ((1000, 10), True, True)
    >>> bool((r.x >= 0).all()), float(abs(r.x.sum(axis=1) - 1).max()) < 1e-15
    (True, True)
    >>> one = ex.least_squares_many(donors[0], donors[:, :, 0])     # one matrix, a thousand targets
    >>> one.x[0].round(12)
    array([1., 0., 0., 0., 0., 0., 0., 0., 0., 0.])
    """
    A, B = _stack(A, B)
    kind, total = _vertices(Simplex() if C is None else C, A.shape[2])
    tol, atol = checks.at_least(CALL, "tol", tol, 0), checks.at_least(CALL, "atol", atol, 0)
    p, d = len(B), A.shape[2]
    x, n_iter, converged = np.empty((p, d)), np.empty(p, np.int64), np.empty(p, np.bool_)
    value, gap, rounding = np.empty(p), np.empty(p), np.empty(p)

    def solve(first: int, last: int) -> None:
        some = slice(first, last)
        matrices = np.ascontiguousarray(A[some] if len(A) > 1 else A, checks.floating(CALL, "A", A.dtype))
        targets = np.ascontiguousarray(B[some], np.float64)
        out = x[some], value[some], gap[some], rounding[some], n_iter[some], converged[some]
        with np.errstate(over="ignore", invalid="ignore"):  # without a compiler, numpy would warn of input refused below
            kernels("small").solve_all(locked(matrices), locked(targets), kind, total, tol, atol, *out)

    list(parts.each_part(solve, list(pairwise(_bounds(p, A)))))
    if n_iter.size and n_iter.min() < 0:
        _refuse(A, B, int(n_iter.argmin()))
    return ManyResult(x, value, gap, rounding, converged, n_iter)


def _stack(A: ArrayLike, B: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """The matrices as a stack (of one, if it serves all problems) and the targets, with shapes that fit."""
    if checks.is_sparse(A) or checks.is_sparse(B):
        raise InputError(f"`{CALL}(A=..., B=...)` must be dense arrays, got a sparse one; these are problems of a few columns")
    A, B = checks.array(CALL, "A", A), checks.array(CALL, "B", B)
    if A.ndim not in (2, 3) or 0 in A.shape[-2:]:
        raise InputError(f"`{CALL}(A=...)` must have shape (m, d) or (P, m, d), m and d at least 1, got {A.shape}")
    problems = len(A) if A.ndim == 3 else "P"
    if B.ndim != 2 or B.shape[1] != A.shape[-2] or (A.ndim == 3 and len(B) != len(A)):
        hint = "; one row for each problem: pass B.T" if B.ndim == 2 and B.shape[0] == A.shape[-2] != B.shape[1] else ""
        raise InputError(f"`{CALL}(B=...)` must have shape ({problems}, {A.shape[-2]}), got {B.shape}{hint}")
    checks.floating(CALL, "A", A.dtype)
    checks.floating(CALL, "B", B.dtype)
    return A if A.ndim == 3 else A[np.newaxis], B


def _vertices(C: ConvexSet, d: int) -> tuple[int, float]:
    """The kind of vertices, as a number (see extremal.kernels.small), and the sum of their weights."""
    kind = {Simplex: 0, UnitSimplex: 1, L1Ball: 2}.get(type(C))
    if kind is None or (isinstance(C, L1Ball) and C.centre is not None):
        rest = "minimize(LinearModel(Squared(), A[p], B[p]), C) takes any set, one problem at a time"
        raise InputError(f"`{CALL}(C=...)` must be a Simplex, a UnitSimplex or an L1Ball without a centre, got {C!r}; {rest}")
    C.on(d)
    return kind, C.radius if isinstance(C, L1Ball) else cast(Simplex, C).total


def _bounds(p: int, A: np.ndarray) -> list[int]:
    """Where parts begin and end: about 2^20 numbers each, or enough problems to repay the products of a shared A."""
    _, m, d = A.shape
    size = max(1, parts.PART // (m * d), 32 * d if len(A) == 1 else 0)
    return [*range(0, p, size), p]


def _refuse(A: np.ndarray, B: np.ndarray, p: int) -> None:
    """Report a problem with numbers or products that are not finite."""
    checks.finite(CALL, "A", A if len(A) > 1 else A[0])
    checks.finite(CALL, "B", B)
    raise InputError(f"`{CALL}(A=..., B=...)`: in problem {p} squares exceed the largest float; divide A and B by their size")
