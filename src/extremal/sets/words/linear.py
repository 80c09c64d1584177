"""Bounds and linear inequalities: in words, by feature and between features, or as matrices of numpy and scipy."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from extremal import checks
from extremal.checks import InputError
from extremal.sets.words.names import SIGNS, without_hyphens
from extremal.sets.words.pieces import Features, Piece, linear, refuse_strict, refused
from extremal.support.kinds import DataFrame

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?inf"
BOUNDS = "Bounds read '>=0', '<= 1.5', '==0', '[0, 1]', 'nonneg', 'nonpos' or 'free', (low, high) with None for none, or a number"
LINEAR = "Inequalities read 'x1 <= x2', 'x1 + 2*x2 <= 3' or 'sum == 1'; put names with other characters in quotes"
KEYS = ("A_ub", "b_ub", "A_eq", "b_eq", "bounds")  # keys of a dict in the notation of scipy.optimize.linprog


def interval(value: object, given: object) -> tuple[float, float]:
    """The bounds that a value of a dict means."""
    if isinstance(value, str):
        found = interval_of(value)
        if found is None:
            refuse_strict(value, given)
            raise refused(given, f"cannot read the bounds {value!r}", BOUNDS)
    elif value is None:
        found = SIGNS["free"]
    elif isinstance(value, Real) and not isinstance(value, (bool, np.bool_)):
        found = float(value), float(value)
    else:
        found = pair_of(value, given)
    low, high = found
    if math.isnan(low) or math.isnan(high) or low == math.inf or high == -math.inf:
        raise refused(given, f"{value!r} are not bounds", BOUNDS)
    if low > high:
        raise refused(given, f"the bounds {value!r} leave no number between them", BOUNDS)
    return found


def pair_of(value: Any, given: object) -> tuple[float, float]:
    """The bounds in a pair."""
    try:
        low, high = value
        return -math.inf if low is None else float(low), math.inf if high is None else float(high)
    except (TypeError, ValueError):
        raise refused(given, f"cannot read the bounds {value!r}", BOUNDS) from None


def interval_of(text: str) -> tuple[float, float] | None:
    """The bounds that a text means, alone or joined by '&'; None if the text does not describe bounds."""
    low, high = SIGNS["free"]
    for part in text.split("&"):
        found = _interval(part.strip())
        if found is None:
            return None
        low, high = max(low, found[0]), min(high, found[1])
    return low, high


def _interval(text: str) -> tuple[float, float] | None:
    if without_hyphens(text) in SIGNS:
        return SIGNS[without_hyphens(text)]
    if match := re.fullmatch(rf"\[\s*({NUMBER})\s*,\s*({NUMBER})\s*\]", text):
        return float(match[1]), float(match[2])
    if match := re.fullmatch(rf"(<=|>=|==?)\s*({NUMBER})", text):
        value = float(match[2])
        return (-math.inf if match[1] == "<=" else value), (math.inf if match[1] == ">=" else value)
    return None


def by_feature(given: dict[object, object], features: Features) -> Piece:
    """Read bounds from a dict with features by name or position; other features are free."""
    lower, upper = np.full(features.count, -np.inf), np.full(features.count, np.inf)
    seen: dict[int, object] = {}
    for key, value in given.items():
        j = features.find(key, given)
        if j in seen:
            raise refused(given, f"{seen[j]!r} and {key!r} are the same feature", "Name each once")
        seen[j] = key
        lower[j], upper[j] = interval(value, given)
    first = [f"{key}: {value if isinstance(value, str) else repr(value)}" for key, value in list(given.items())[:6]]
    shown = ", ".join(first) + (", ..." if len(given) > 6 else "")
    return Piece("{" + shown + "}", features.spread(lower), features.spread(upper))


def is_relation(text: str) -> bool:
    """Whether a text contains a comparison."""
    return re.search(r"[<>=]", text) is not None


def relation(text: str, features: Features) -> Piece:
    """The inequalities between expressions, one per neighbouring pair: '0 <= x1 <= x2' is two."""
    sides: list[tuple[np.ndarray, float]] = []
    signs: list[str] = []
    for tokens, sign in _sides(text, features):
        sides.append(_expression(tokens, text, features))
        signs += [sign] if sign else []
    if not signs or len(sides) != len(signs) + 1:
        raise refused(text, "cannot read it as an inequality", LINEAR)
    rows, below, above = [], [], []
    for (left, c), (right, e), sign in zip(sides[:-1], sides[1:], signs, strict=True):
        if sign in "<>":
            raise refused(text, f"write {sign}= for {sign}: coefficients may lie on a boundary", LINEAR)
        rows.append(left - right)
        below.append(-math.inf if sign == "<=" else e - c)
        above.append(math.inf if sign == ">=" else e - c)
    return linear(text, np.array(rows), np.array(below), np.array(above), features)


def _sides(text: str, features: Features) -> Iterator[tuple[list[tuple[str, str]], str]]:
    """The tokens between comparison signs, each with the sign that follows."""
    side: list[tuple[str, str]] = []
    for kind, token in _tokens(text, features):
        if kind == "sign":
            yield side, "==" if token == "=" else token
            side = []
        else:
            side.append((kind, token))
    yield side, ""


def _tokens(text: str, features: Features) -> Iterator[tuple[str, str]]:
    names = sorted((n for n in features.known if not re.fullmatch(NUMBER, n) and n.strip()), key=len, reverse=True)
    wide = "|".join(map(re.escape, names)) if features.names and len(names) <= 10_000 else r"(?!)"
    patterns = (
        ("space", r"\s+"),
        ("quoted", r"'[^']*'|\"[^\"]*\"|`[^`]*`"),
        ("sign", r"<=|>=|==|=|<|>"),
        ("known", rf"(?:{wide})(?!\w)"),
        ("number", r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])|inf\b"),
        ("name", r"[A-Za-z_]\w*"),
        ("mark", r"[-+*/]"),
    )
    pattern, at = re.compile("|".join(f"(?P<{kind}>{p})" for kind, p in patterns)), 0
    while at < len(text):
        match = pattern.match(text, at)
        if match is None:
            raise refused(text, f"cannot read it from {text[at:]!r} on", LINEAR)
        kind, token = match.lastgroup or "", match[0]
        if kind != "space":
            yield ("name", token[1:-1]) if kind == "quoted" else ("name" if kind == "known" else kind, token)
        at = match.end()


def _expression(tokens: list[tuple[str, str]], text: str, features: Features) -> tuple[np.ndarray, float]:
    """A sum of multiples of coefficients, and a number."""
    row, constant = np.zeros(features.count), 0.0
    if not tokens:
        raise refused(text, "one side of the inequality is empty", LINEAR)
    while tokens:
        factor, place, tokens = _term(tokens, text, features)
        if place is None:
            constant += factor
        else:
            row[place] += factor
    return row, constant


def _term(
    tokens: list[tuple[str, str]], text: str, features: Features
) -> tuple[float, int | slice | None, list[tuple[str, str]]]:
    """The first term: its number, its features (None for a number), and the remaining tokens."""
    factor, place, at = 1.0, None, 0
    while at < len(tokens) and tokens[at] in (("mark", "+"), ("mark", "-")):
        factor, at = (-factor if tokens[at][1] == "-" else factor), at + 1
    divide = False
    while True:
        kind, token = tokens[at] if at < len(tokens) else ("end", "")
        if kind == "number":
            value = float(token)
            if divide and value == 0:
                raise refused(text, "it divides by 0", LINEAR)
            factor = factor / value if divide else factor * value
        elif kind == "name" and place is None and not divide:
            everything = token == "sum" and token not in features.known
            place = slice(None) if everything else features.find(token, text)
        else:
            raise refused(text, f"cannot read it at {token!r}: terms are numbers, features, and a number times a feature", LINEAR)
        at += 1
        if at < len(tokens) and tokens[at] in (("mark", "*"), ("mark", "/")):
            divide, at = tokens[at][1] == "/", at + 1
            continue
        if at < len(tokens) and tokens[at] not in (("mark", "+"), ("mark", "-")):
            raise refused(text, f"cannot read it at {tokens[at][1]!r}: a sign is missing before it", LINEAR)
        return factor, place, tokens[at:]


# as matrices


def by_matrices(given: Any, features: Features) -> Piece:
    """Read a pair (A, b), or a dict in the notation of `scipy.optimize.linprog`."""
    parts = {"A_ub": given[0], "b_ub": given[1]} if isinstance(given, (tuple, list)) else given
    rows, below, above = [], [], []
    for kind in ("ub", "eq"):
        A, b = parts.get(f"A_{kind}"), parts.get(f"b_{kind}")
        if (A is None) != (b is None):
            raise refused(given, f"A_{kind} and b_{kind} must be given together", "")
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
    """Read a `scipy.optimize.LinearConstraint` or `Bounds`."""
    from scipy.optimize import LinearConstraint  # already imported by the caller

    if isinstance(given, LinearConstraint):
        A = _matrix(given.A, features, given)
        below, above = (np.broadcast_to(np.asarray(side, np.float64), A.shape[0]) for side in (given.lb, given.ub))
        return linear(f"linear constraints ({A.shape[0]} rows)", A, below, above, features)
    return by_bounds(given.lb, given.ub, "bounds", features)


def by_bounds(lower: ArrayLike, upper: ArrayLike, text: str, features: Features) -> Piece:
    """One bound for all features, or one per feature."""
    try:
        ends = [features.spread(np.asarray(end, np.float64)) for end in (lower, upper)]
    except ValueError:
        raise refused(text, f"bounds must be one number, or one for each of the {features.count} features", BOUNDS) from None
    if any(np.isnan(end).any() for end in ends):
        raise refused(text, "bounds must be without NaN", BOUNDS)
    return Piece(text, ends[0], ends[1])


def _ends(value: Any, features: Features, given: object) -> tuple[np.ndarray, np.ndarray]:
    """Bounds in the notation of `scipy.optimize.linprog`: a pair, or a pair per feature."""
    if value is None:
        return np.full(features.count, -np.inf), np.full(features.count, np.inf)
    pairs = list(value)
    one = len(pairs) == 2 and all(end is None or np.ndim(end) == 0 for end in pairs)
    ends = [pair_of(pair, given) for pair in ([pairs] * features.count if one else pairs)]
    if len(ends) != features.count:
        raise refused(given, f"bounds must be a pair, or a pair for each of the {features.count} features, got {len(ends)}", "")
    return np.array([low for low, _ in ends]), np.array([high for _, high in ends])


def _matrix(A: Any, features: Features, given: object) -> Any:
    """A as a sparse matrix with a column per feature; the columns of a data frame are matched by name."""
    if isinstance(A, DataFrame):
        places = [features.find(name, given) for name in A.columns]
        full = np.zeros((len(A), features.count))
        full[:, places] = A.to_numpy()
        A = full
    if not checks.is_sparse(A):
        try:
            A = np.atleast_2d(np.asarray(A, np.float64))
        except (TypeError, ValueError):
            raise refused(given, "A must be a matrix of numbers", "") from None
    if A.ndim != 2 or A.shape[1] != features.count or A.shape[0] == 0:
        raise refused(given, f"A must have a column for each of the {features.count} features, got shape {A.shape}", "")
    A = sp.csr_array(A, dtype=np.float64)
    if not np.isfinite(A.data).all():
        raise refused(given, "A must be finite", "")
    return A


def _side(b: object, count: int, given: object) -> np.ndarray:
    try:
        side = np.asarray(b, np.float64)
        side = np.broadcast_to(side.reshape(-1) if side.ndim else side, count)
    except (TypeError, ValueError) as error:
        raise refused(given, f"b must be a number, or one for each of the {count} rows of A", "") from error
    if np.isnan(side).any():
        raise InputError("`constraint=(A, b)`: b must be without NaN")
    return side
