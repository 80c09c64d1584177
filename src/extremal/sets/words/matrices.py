"""Linear constraints as matrices: of numpy, of scipy, in the notation of linprog."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from extremal import checks
from extremal.checks import InputError
from extremal.sets.words.linear import BOUNDS, pair_of
from extremal.sets.words.pieces import Features, Piece, linear, refused
from extremal.support.kinds import DataFrame

KEYS = ("A_ub", "b_ub", "A_eq", "b_eq", "bounds")  # of a dict in the notation of scipy.optimize.linprog


def by_matrices(given: Any, features: Features) -> Piece:
    """From a pair (A, b), or a dict in the notation of `scipy.optimize.linprog`."""
    parts = {"A_ub": given[0], "b_ub": given[1]} if isinstance(given, (tuple, list)) else given
    rows, below, above = [], [], []
    for kind in ("ub", "eq"):
        A, b = parts.get(f"A_{kind}"), parts.get(f"b_{kind}")
        if (A is None) != (b is None):
            raise refused(given, f"A_{kind} and b_{kind} must be given together")
        if A is not None:
            rows.append(_matrix(A, features, given))
            above.append(_side(b, rows[-1].shape[0], given))
            below.append(above[-1] if kind == "eq" else np.full(len(above[-1]), -np.inf))
    if not rows:
        return by_bounds(*_ends(parts.get("bounds"), features, given), "bounds", features)
    A: Any = sp.csr_array(sp.vstack(rows))
    piece = linear(f"A w <= b ({A.shape[0]} rows)", A, np.concatenate(below), np.concatenate(above), features)
    if parts.get("bounds") is None:
        return piece
    lower, upper = _ends(parts["bounds"], features, given)
    return Piece(piece.text, features.spread(lower), features.spread(upper), rows=piece.rows)


def by_scipy(given: Any, features: Features) -> Piece:
    """From `scipy.optimize.LinearConstraint` or `Bounds`."""
    from scipy.optimize import LinearConstraint  # whoever has given one has imported it

    if isinstance(given, LinearConstraint):
        A = _matrix(given.A, features, given)
        below, above = (np.broadcast_to(np.asarray(side, np.float64), A.shape[0]) for side in (given.lb, given.ub))
        return linear(f"linear constraints ({A.shape[0]} rows)", A, below, above, features)
    return by_bounds(given.lb, given.ub, "bounds", features)


def by_bounds(lower: ArrayLike, upper: ArrayLike, text: str, features: Features) -> Piece:
    """A bound for all features, or for each."""
    try:
        ends = [features.spread(np.asarray(end, np.float64)) for end in (lower, upper)]
    except ValueError:
        raise refused(text, f"bounds must be one number, or one for each of the {features.count} features", BOUNDS) from None
    if any(np.isnan(end).any() for end in ends):
        raise refused(text, "bounds must be without NaN", BOUNDS)
    return Piece(text, ends[0], ends[1])


def _ends(value: Any, features: Features, given: object) -> tuple[np.ndarray, np.ndarray]:
    """Bounds as `scipy.optimize.linprog` takes them: a pair, or a pair for each feature."""
    if value is None:
        return np.full(features.count, -np.inf), np.full(features.count, np.inf)
    pairs = list(value)
    one = len(pairs) == 2 and all(end is None or np.ndim(end) == 0 for end in pairs)
    ends = [pair_of(pair, given) for pair in ([pairs] * features.count if one else pairs)]
    if len(ends) != features.count:
        raise refused(given, f"bounds must be a pair, or a pair for each of the {features.count} features, got {len(ends)}")
    return np.array([low for low, _ in ends]), np.array([high for _, high in ends])


def _matrix(A: Any, features: Features, given: object) -> Any:
    """A as a sparse matrix with a column for each feature; columns of a data frame go by their names."""
    if isinstance(A, DataFrame):
        places = [features.find(name, given) for name in A.columns]
        full = np.zeros((len(A), features.count))
        full[:, places] = A.to_numpy()
        A = full
    if not checks.is_sparse(A):
        try:
            A = np.atleast_2d(np.asarray(A, np.float64))
        except (TypeError, ValueError):
            raise refused(given, "A must be a matrix of numbers") from None
    if A.ndim != 2 or A.shape[1] != features.count or A.shape[0] == 0:
        raise refused(given, f"A must have a column for each of the {features.count} features, got shape {A.shape}")
    A = sp.csr_array(A, dtype=np.float64)
    if not np.isfinite(A.data).all():
        raise refused(given, "A must be finite")
    return A


def _side(b: object, count: int, given: object) -> np.ndarray:
    try:
        side = np.asarray(b, np.float64)
        side = np.broadcast_to(side.reshape(-1) if side.ndim else side, count)
    except (TypeError, ValueError) as error:
        raise refused(given, f"b must be a number, or one for each of the {count} rows of A") from error
    if np.isnan(side).any():
        raise InputError("`constraint=(A, b)`: b must be without NaN")
    return side
