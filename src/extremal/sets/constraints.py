"""What describes a polytope, as `scipy.optimize.linprog` takes it: checked, and kept as values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from extremal import checks
from extremal.checks import InputError
from extremal.sets.base import ConvexSet, brief, refuse_non_finite
from extremal.vertices import Vertex


class SparseMatrix(NamedTuple):
    """A sparse matrix as a value that can be compared and hashed.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> A = SparseMatrix.of(sp.eye_array(2))
    >>> A, A.array().toarray()
    (<2 x 2 sparse array>, array([[1., 0.],
           [0., 1.]]))
    """

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    shape: tuple[int, int]

    @classmethod
    def of(cls, a: Any) -> SparseMatrix:
        """From one of scipy, in rows with increasing indices and without zeros."""
        a = sp.csr_array(a, dtype=np.float64, copy=True)
        a.sum_duplicates()
        a.eliminate_zeros()
        parts = a.data, a.indices.astype(np.int64), a.indptr.astype(np.int64)
        for part in parts:
            part.flags.writeable = False
        return cls(*parts, a.shape)

    def array(self) -> sp.csr_array:
        """The matrix, for scipy."""
        return sp.csr_array((self.data, self.indices, self.indptr), shape=self.shape)

    def __repr__(self) -> str:
        return f"<{self.shape[0]} x {self.shape[1]} sparse array>"


def constraints(call: str, A_ub: Any, b_ub: Any, A_eq: Any, b_eq: Any, bounds: Any) -> dict[str, Any]:
    """The fields that describe a polytope as `scipy.optimize.linprog` does, checked; bounds as a d x 2 array."""
    fields: dict[str, Any] = {}
    for kind, A, b in (("ub", A_ub, b_ub), ("eq", A_eq, b_eq)):
        if (A is None) != (b is None):
            raise InputError(f"`{call}(A_{kind}=..., b_{kind}=...)` must be given together")
        fields[f"A_{kind}"] = None if A is None else _matrix(call, f"A_{kind}", A)
        fields[f"b_{kind}"] = None if A is None else _vector(call, f"b_{kind}", b, fields[f"A_{kind}"].shape[0])
    widths = {A.shape[1] for A in (fields["A_ub"], fields["A_eq"]) if A is not None}
    if len(widths) > 1:
        raise InputError(f"`{call}(A_ub=..., A_eq=...)` must have as many columns as each other, got {widths}")
    return fields | {"bounds": _bounds(call, bounds, widths.pop() if widths else None)}


def _matrix(call: str, name: str, value: Any) -> np.ndarray | SparseMatrix:
    if sp.issparse(value):
        checks.finite(call, name, value.tocoo().data)
        return SparseMatrix.of(value)
    return reals(call, name, value, 2)


def _vector(call: str, name: str, value: Any, length: int) -> np.ndarray:
    v = reals(call, name, value, 1)
    if len(v) != length:
        raise InputError(f"`{call}({name}=...)` must have one number for each of the {length} rows, got {len(v)}")
    return v


def reals(call: str, name: str, value: Any, ndim: int) -> np.ndarray:
    """A vector or a matrix of finite numbers, copied, that nobody changes."""
    a = checks.array(call, name, value)
    if a.dtype.kind not in "biuf" or a.ndim != ndim or not a.size:
        what = "a matrix of real numbers" if ndim == 2 else "a vector of real numbers"
        raise InputError(f"`{call}({name}=...)` must be {what}, got shape {a.shape}, {a.dtype}")
    a = checks.finite(call, name, a.astype(np.float64))
    a.flags.writeable = False
    return a


def _bounds(call: str, value: Any, d: int | None) -> np.ndarray:
    """One pair for all variables or a pair for each; None is no bound."""
    pairs = np.array((None, None) if value is None else value, dtype=object)
    if pairs.ndim == 1 and d is not None:
        pairs = np.tile(pairs, (d, 1))
    wanted = f"`{call}(bounds=...)` must be a pair (lower, upper), or one for each of the {d or ''} variables"
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs) or (d or len(pairs)) != len(pairs):
        raise InputError(f"{wanted}, got {brief(value)}".replace("  ", " "))
    for k, none in enumerate((-np.inf, np.inf)):
        pairs[:, k] = [none if end is None else end for end in pairs[:, k]]
    try:
        a = pairs.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{wanted}, numbers or None, got {brief(value)}".replace("  ", " ")) from None
    if not ((a[:, 0] <= a[:, 1]).all() and (a[:, 0] < np.inf).all() and (a[:, 1] > -np.inf).all()):
        raise InputError(f"`{call}(bounds=...)` must have lower <= upper for each variable, got {brief(value)}")
    a.flags.writeable = False
    return a


def support(x: np.ndarray, size: float) -> np.ndarray:
    """Where x > 0, up to rounding at its size."""
    return x > 64 * np.finfo(np.float64).eps * size


def not_in(C: ConvexSet) -> InputError:
    """What to raise if no vertex has its non-zero entries where x has."""
    return InputError(f"`{type(C).__name__}.away(g, x)` must be asked at a point x of the set")


def ratio(x: np.ndarray, s: Vertex, a: Vertex) -> float:
    """The largest t <= 1 with x + t (s - a) >= 0, for x >= 0."""
    down = a.to_array() - s.to_array()
    falling = down > 0
    return min(1.0, max(0.0, float(np.min(x[falling] / down[falling], initial=1.0))))


def scaled(C: ConvexSet, g: np.ndarray) -> np.ndarray:
    """g / max|g| in float64, so that sums do not overflow; zero stays zero, and what is not finite is refused."""
    top = float(np.abs(g).max())
    refuse_non_finite(C, top)
    return g.astype(np.float64) / top if top > 0 else g.astype(np.float64)
