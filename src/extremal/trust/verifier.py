"""Check an answer by numpy alone: is x in the set, and are its value and its gap as stated?

Nothing of the solver is used here: the set is asked by ``C.lmo(g)`` and ``C.diameter`` only. Products are split without error
(Dekker 1971), and each sum is rounded once (`math.fsum`). docs/certificates.md has the bounds on the rounding of the check, and
the meaning of the verdicts. Rows come in blocks (starts, columns, values, targets): row i of a block has the entries
``starts[i]:starts[i + 1]``, with no column twice.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from extremal.sets.membership import HALF, exact_dot, exact_products, exact_total, excesses

Block = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
_TINY, _LEAST = 1e-307, 1e-292  # more than the error of a product that underflows, and of a sum of 10^15 of them
_LARGEST, _PART = 2**25, 2**16  # entries of x; rows with a checksum
_INSIDE = 1e-9  # x may break a constraint by this share of the diameter


@dataclass(frozen=True, repr=False)
class Verification:
    """The findings of a check: a verdict, its reasons, and the numbers behind it.

    Examples
    --------
    >>> Verification("proved", ("x is in the set",), (0.5, 0.5), (0.0, 1e-9), 0.0, (0.5, 1e-9))
    Verification(proved: x is in the set
      value 0.5, in [0.5, 0.5]; gap 1e-09, in [0.0e+00, 1.0e-09]; x breaks no constraint by more than 0.0e+00)
    """

    verdict: str  # "proved", "not proved" or "refuted"
    reasons: tuple[str, ...]  # a sentence for each finding
    value: tuple[float, float] = (-math.inf, math.inf)  # f(x) lies between these
    gap: tuple[float, float] = (0.0, math.inf)  # the gap at x lies between these
    outside: float = math.inf  # x breaks no constraint by more than this
    stated: tuple[float, float] = (math.nan, math.nan)  # the value and the gap that the answer states
    notes: tuple[str, ...] = ()  # conditions of the verdict

    def __repr__(self) -> str:
        (lo, hi), (low, high), (value, gap) = self.value, self.gap, self.stated
        numbers = f"value {value:.12g}, in [{lo:.12g}, {hi:.12g}]; gap {gap:.4g}, in [{low:.1e}, {high:.1e}]; "
        lines = [f"Verification({self.verdict}: {'; '.join(self.reasons)}", f"{numbers}x breaks no constraint by more than "]
        return "\n  ".join([*lines[:1], f"{lines[1]}{self.outside:.1e}", *(f"note: {note}" for note in self.notes)]) + ")"


def seal_of(held: Mapping[str, np.ndarray]) -> str:
    """A checksum of all arrays but the seal itself: their names, types, shapes and bytes."""
    total = hashlib.sha256()
    for name, a in sorted((name, np.asarray(held[name])) for name in set(held) - {"seal"}):
        total.update(f"{name} {a.dtype.str} {a.shape} ".encode() + a.tobytes())
    return total.hexdigest()


def fingerprint(rows: Callable[[], Iterable[Block]], columns: int) -> dict[str, Any]:
    """The number of rows and columns, and checksums of each 65536 rows and of their targets, in whatever format they come."""
    parts: list[list[Any]] = []
    n = 0
    for starts, place, values, y in rows():
        at, first, n = np.repeat(np.arange(len(y)), np.diff(starts)), n, n + len(y)
        kept = np.lexsort((place, at))
        kept = kept[values[kept] != 0]
        for i in range(first - first % _PART, n, _PART):
            parts += [] if i < first else [[hashlib.sha256() for _ in range(4)]]
            lo, hi = max(i, first) - first, min(i + _PART, n) - first
            some = kept[(at[kept] >= lo) & (at[kept] < hi)]
            counts = np.bincount(at[some] - lo, minlength=hi - lo)
            for total, part in zip(parts[-1], (counts, place[some], values[some], y[lo:hi]), strict=True):
                total.update(np.asarray(part, "<f8").tobytes())
    return {"rows": n, "columns": columns, "parts": ["".join(one.hexdigest()[:16] for one in part) for part in parts]}


def _sums(p: np.ndarray, e: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The sum of p + e over each range, rounded once."""
    p, e = p.tolist(), e.tolist()  # type: ignore[assignment]
    return np.array([math.fsum([*p[i:j], *e[i:j]]) for i, j in pairwise(starts.tolist())])


def _expit(u: np.ndarray) -> np.ndarray:
    e = np.exp(np.minimum(u, 40.0))
    return e / (1.0 + e)


def _terms(loss: dict[str, Any], z: np.ndarray, y: np.ndarray, user: Any) -> tuple[np.ndarray, ...]:
    """phi and phi' at z, bounds on the rounding of both, and a bound on |phi''| near z."""
    kind, has = loss["kind"], loss.get("fields", {})
    if kind.startswith("Weighted"):
        inner, w = has["loss"], y[:, -1]
        parts = _terms(inner, z, y[:, :-1] if inner["kind"] == "MultiTask" else y[:, 0], getattr(user, "loss", None))
        return tuple((w if part.ndim == 1 else w[:, None]) * part for part in parts)
    if kind == "MultiTask":
        v, c, dv, dc, h = _terms(has["loss"], z, y, getattr(user, "loss", None))
        return v.sum(axis=1), c, 1.01 * dv.sum(axis=1) + z.shape[1] * HALF * np.abs(v).sum(axis=1), dc, h
    if kind in ("Logistic", "SignedLogistic"):  # w log(1 + exp(-s z)) for y = s w
        w, t = np.abs(y), -np.sign(y) * z
        v, c, h = w * (np.maximum(t, 0.0) + np.log1p(np.exp(-np.abs(z)))), -y * _expit(t), w * np.minimum(0.25, _expit(t))
    elif kind == "NonlinearLeastSquares":
        t, s = np.where(y > 0.5, z, -z), np.where(y > 0.5, 2.0, -2.0)
        v, c = _expit(t) ** 2, s * _expit(t) ** 2 * _expit(-t)
        h = np.minimum(0.155, 2 * np.abs(c))
    elif kind in ("Squared", "Huber"):
        m = np.minimum(np.abs(z - y), has.get("delta", math.inf))
        v, c, h = m * (np.abs(z - y) - 0.5 * m), np.copysign(m, z - y), np.ones_like(z)
    elif kind == "Quantile":
        s = np.clip((y - z) / has["width"], has["q"] - 1.0, has["q"])
        v, c, h = s * (y - z - 0.5 * has["width"] * s), -s, np.full_like(z, 1.0 / has["width"])
    elif kind == "Poisson":
        mean, t, logs = np.exp(np.minimum(z, has["cap"])), np.maximum(z - has["cap"], 0.0), np.log(np.where(y > 0, y, 1.0))
        size = mean * (1 + t) ** 2 + y * (1 + np.abs(z) + np.abs(logs))
        v, c = mean * (1 + t + t * t / 2) - y * z - y + y * logs, mean * (1 + t) - y
        return v, c, 32 * HALF * size, 32 * HALF * (mean * (1 + t) + y), 1.01 * mean
    elif kind == "Multinomial":
        own, d = (np.arange(len(z)), y.astype(np.intp)), z - z.max(axis=1, keepdims=True)
        at, p = d[own], np.exp(d)
        p[own] = 0.0
        v, p = np.log1p(p.sum(axis=1) + np.expm1(at)) - at, p / (p.sum(axis=1) + np.exp(at))[:, None]
        dp, c = p * HALF * (32 + z.shape[1] + np.abs(d)) + _TINY, p.copy()
        c[own], dp[own] = -p.sum(axis=1), dp.sum(axis=1)
        return v, c, dp[own] + (32 + z.shape[1]) * HALF * (v - at), dp, 2.02 * np.abs(c)
    else:
        v, c, h = user.value(z, y), user.deriv(z, y), np.full_like(z, user.curvature)
        return v, c, 64 * HALF * np.abs(v), 64 * HALF * np.abs(c), h
    return v, c, 16 * HALF * np.abs(v) + _TINY, 16 * HALF * np.abs(c) + _TINY, h


def _margins(rows: Callable[[], Iterable[Block]], X: np.ndarray) -> list[np.ndarray]:
    """A x, the sums of |a_ij x_j|, and the targets."""
    found: list[tuple[np.ndarray, ...]] = []
    for starts, columns, values, y in rows():
        at = np.repeat(np.arange(len(y)), np.diff(starts))
        each = [exact_products(values, X[columns, k]) for k in range(X.shape[1])]
        sizes = [np.bincount(at, np.abs(p), len(y)) for p, _ in each]
        found.append((np.stack([_sums(p, e, starts) for p, e in each], axis=1), np.stack(sizes, axis=1), y))
    return [np.concatenate(parts) for parts in zip(*found, strict=True)]


def _gradient(rows: Callable[[], Iterable[Block]], c: np.ndarray, sizes: Sequence[np.ndarray], d: int) -> list[np.ndarray]:
    """A' c, a bound on the rounding of its sums, and |A|' s for each s of ``sizes``."""
    out, first = [np.zeros((d, c.shape[1])) for _ in range(2 + len(sizes))], 0
    for starts, columns, values, y in rows():
        order = np.argsort(columns, kind="stable")
        at, values, columns = np.repeat(np.arange(len(y)), np.diff(starts))[order] + first, values[order], columns[order]
        cuts = np.flatnonzero(np.diff(columns, prepend=-1, append=-1))
        place, first = columns[cuts[:-1]], first + len(y)
        for k in range(c.shape[1]):
            block = _sums(*exact_products(values, c[at, k]), cuts)
            out[0][place, k] += block
            out[1][place, k] += 1.01 * HALF * (np.abs(block) + np.abs(out[0][place, k])) + _TINY * len(values)
            for total, size in zip(out[2:], sizes, strict=True):
                total[:, k] += np.bincount(columns, np.abs(values) * size[at, k], d)
    return out


def _levels(terms: Callable[[Any], tuple[np.ndarray, ...]], b: np.ndarray, p: np.ndarray | None, w: Any) -> tuple[float, Any]:
    """How far f may lie below its value at the intercepts b, and by how much phi' may differ at the best intercepts."""
    _, c, _, dc, h = terms(b)
    n, k = c.shape
    slope = np.array([abs(exact_total(c[:, j])) + exact_total(dc[:, j]) for j in range(k)]) / n
    if p is not None:  # a multinomial f in b: on a line, its second derivative falls by a factor of exp(-2 t) at most
        H = (np.diag((w * p).sum(axis=0)) - (w * p).T @ p) / n + 1.0 / k
        t = 2.02 * float(np.linalg.norm(slope)) / max(float(np.linalg.eigvalsh(H)[0]), _TINY)
        far = -math.log1p(-t) / 2 if t < 1 else 300.0
        return float(np.linalg.norm(slope)) * far, np.expm1(2 * far) * np.abs(c) + _TINY
    lost, change = 0.0, np.zeros_like(c)
    for j, sign in ((j, sign) for j in range(k) for sign in (-1.0, 1.0)):  # phi' rises in b: its sum is 0 between two signs
        least = slope[j] / (h[:, j].mean() + _TINY) + HALF * abs(b[j]) + _TINY
        low, high, t = 0.0, math.inf, least
        while high - low > HALF * min(4 * high, 1e300) and 8 * least < high and t < 1e25 * least:  # double t, then halve the rest
            parts = terms(b + sign * t * (np.arange(k) == j))
            sure = sign * exact_total(parts[1][:, j]) > 1.01 * exact_total(parts[3][:, j])
            low, high = (low, t) if sure else (t, high)
            t = (low + high) / 2 if high < math.inf else 2 * t
        moved = terms(b + sign * high * (np.arange(k) == j)) if high < math.inf else (c, sign * math.inf + c, c, dc)
        change[:, j], lost = np.maximum(change[:, j], sign * (moved[1] - c)[:, j] + moved[3][:, j]), lost + slope[j] * high
    return lost, change


def _look(said: Any, held: Any, x: np.ndarray, rows: Any, user: Any) -> tuple[float, tuple[float, ...], list[np.ndarray]]:
    """f(x); how far f may lie below, above, and from a stated value; grad f(x), its error, and the size of its rounded terms."""
    if rows is None:
        value, g = user.value_and_grad(x)
        near = 64 * HALF * abs(float(value))
        return float(value), (near, near, near), [g := np.asarray(g, np.float64), 64 * HALF * np.abs(g), 256 * HALF * np.abs(g)]
    k, loss = max(1, said["outputs"]), said["loss"]
    z, sizes, y = _margins(rows, x.reshape(-1, k))
    n, b = len(z), np.asarray(held["intercept"], np.float64).reshape(-1) if said["intercept"] else np.zeros(k)

    def terms(b: np.ndarray) -> tuple[np.ndarray, ...]:
        at = z + b
        dz = 1.01 * HALF * (np.abs(z) + np.abs(at)) + _TINY * x.size
        parts = _terms(loss, at if said["outputs"] else at[:, 0], y, user)
        v, c, dv, dc, h = (np.asarray(part, np.float64).reshape(n, -1) for part in parts)
        h = h * np.exp(np.minimum(2 * dz, 700.0))
        return v, c, dv + ((np.abs(c) + h * dz) * dz).sum(axis=1, keepdims=True), dc + h * dz.max(axis=1, keepdims=True), h

    v, c, dv, dc, h = terms(b)
    lost, change = 0.0, np.zeros_like(c)
    if said["intercept"]:
        weighted = loss["kind"].startswith("Weighted")
        p = np.exp(z + b - (z + b).max(axis=1, keepdims=True)) if "'Multinomial'" in str(loss) else None
        w = y[:, -1:] if weighted else np.ones((n, 1))
        lost, change = _levels(terms, b, None if p is None else p / p.sum(axis=1, keepdims=True), w)
    sizes = sizes + np.abs(b) + np.abs(y).reshape(n, -1).max(axis=1, keepdims=True)
    rounds = 8 * HALF * (8 + math.sqrt(max(n, x.size)))  # of a sum in float64, of the sum of magnitudes (Higham, Mary 2019)
    parts = _gradient(rows, c, [dc + change, rounds * (np.abs(c) + h * sizes) + 8 * dc], x.size // k)
    g, rest, error, rounded = (part.reshape(x.shape) / n for part in parts)
    value, off = exact_total(v) / n, 1.01 * exact_total(dv) / n
    off += 4 * HALF * abs(value)
    curved = h * sizes * (1.0 if "'Squared'" in str(loss) else rounds)  # f may come from its expansion around 0
    loose = rounds * exact_total(np.abs(v).sum(axis=1) + ((np.abs(c) + curved) * sizes).sum(axis=1)) / n
    return value, (off + lost, off, loose), [g, 1.01 * (rest + error) + 2 * HALF * np.abs(g), rounded + 2 * HALF * np.abs(g)]


def _least(C: Any, g: np.ndarray) -> tuple[float, float, float]:
    """A lower bound on <g, s> over C; <g, s> at a point of C, the answer of the oracle; and a bound on the oracle's rounding."""
    v = C.lmo(g)
    s = v.to_array()
    reached, low, name = exact_dot(g, s), v.low, f"{type(C).__module__}.{type(C).__name__}"
    if name == "extremal.sets.spectral.nuclear.NuclearBall" and min(g.shape) <= 1000:
        low = -C.radius * float(np.linalg.norm(g, 2)) * (1 + 64 * max(g.shape) * HALF)
    slack = 64 * (1 + math.sqrt(g.size)) * HALF * float(np.linalg.norm(g)) * (C.diameter + float(np.linalg.norm(s)))
    return (reached - slack if low is None else float(low)), reached, slack


@np.errstate(all="ignore")  # numbers that are not finite are found below
def check_answer(
    held: Mapping[str, np.ndarray], C: Any, rows: Callable[[], Iterable[Block]] | None, user: Any = None, **facts: Any
) -> Verification:
    """Check an answer, the arrays of a file, against a set and the rows of data.

    ``user`` is a loss or, without rows, an objective that is not of the library: its numbers are taken as they are. ``facts`` are
    the set, the loss and the data that the reader expects, in the words of the file.

    Examples
    --------
    >>> import extremal as ex
    >>> from extremal.files.answers import arrays_of, row_blocks
    >>> f = ex.LinearModel(ex.Squared(), np.eye(2), np.array([1.0, 3.0]))
    >>> r = ex.minimize(f, ex.L1Ball(2.0))
    >>> check_answer(arrays_of(r), ex.L1Ball(2.0), row_blocks(f)).verdict
    'proved'
    """
    said, (value, gap, low) = json.loads(str(held["answer"])), (float(held[name]) for name in ("value", "gap", "low"))
    shape, found = tuple(said["shape"]), [f"the {name} is not that of the answer" for name in facts if said[name] != facts[name]]
    if seal_of(held) != str(held["seal"]):
        found = ["the file has changed since it was written: its seal is broken"]
    if found or math.prod(shape) > _LARGEST:
        verdict = "refuted" if found else "not proved"
        return Verification(verdict, tuple(found or [f"x has more than {_LARGEST} entries"]), stated=(value, gap))
    x = np.asarray(held["x"] if "x" in held else held["left"] @ held["right"].T, np.float64).reshape(shape)
    C, D = C.on(shape), 1.01 * C.on(shape).relaxed.diameter
    try:
        f, (below, above, loose), (g, error, rounded) = _look(said, held, x, rows, user)
        least, reached, own = _least(C.relaxed, g)
        off, rough = max(excesses(C, x), key=sum)
        start, size = exact_dot(g, x), exact_total(np.abs(x))
        wide, loosely, length = (float(np.linalg.norm(a)) for a in (error, rounded, x))
        inside, allowed = off + rough, _INSIDE * D + 64 * HALF * size
        trusted = off - rough <= allowed < inside and bool(C.contains(x, _INSIDE))
        bound = _LEAST + 8 * HALF * (abs(start) + abs(low) + abs(least))
        gaps = max(0.0, start - reached - wide * D - bound), max(0.0, start - least + wide * D + bound)
        slack, apart = 1.01 * (loosely * D + own + bound), abs(start - low - gap) - (loosely + wide) * (D + length) - bound
        if not math.isfinite(f) or any(map(math.isnan, (below, above, loose, *gaps, slack, apart, inside))):
            raise OverflowError("not all of them are finite")
    except (OverflowError, ValueError) as reason:
        return Verification("not proved", (f"numbers are too near the ends of float64 ({reason})",), stated=(value, gap))
    as_stated = "the gap is at most as stated" + f", up to what float64 can say here ({slack:.1e})" * (gap < gaps[1])
    checks = [  # a sentence, its opposite, whether the first is proved, whether it is refuted
        ("x is in the set", "x is outside the set", inside <= allowed or trusted, off - rough > allowed),
        ("f(x) is as stated", "f(x) is not as stated", abs(value - f) <= loose + above,
         not f - below - loose <= value <= f + above + loose),
        (as_stated, "the gap is larger than stated", gaps[1] <= gap + slack, gap + slack < gaps[0]),
        ("its bound belongs to it", "the stated bound over the set is not that of the stated gap", apart <= 0, apart > 0),
    ]  # fmt: skip
    refuted = tuple(no for _, no, _, wrong in checks if wrong)
    unsure = tuple(f"it stays open whether {yes}" for yes, _, right, _ in checks if not right)
    known = type(C).__module__.startswith("extremal.") and type(C).__name__ != "Oracle"
    notes = [
        (
            "f is not convex: a small gap means that x is nearly stationary, and bounds no distance to a minimum",
            not said["convex"],
        ),
        ("values and derivatives are those of the user's own code, taken as they are", user is not None),
        ("the set is known by the user's own oracle, taken at its word", not known),
        ("that x is in the set is the answer of the set's own test, C.contains", trusted),
        (f"a gap of {gap:.1e} is below what float64 can say here, {slack:.1e}", gap < slack),
    ]
    return Verification(
        "refuted" if refuted else "not proved" if unsure else "proved", refuted or unsure or tuple(yes for yes, *_ in checks),
        (f - below, f + above), gaps, max(0.0, inside), (value, gap), tuple(note for note, holds in notes if holds),
    )  # fmt: skip
