"""The parts of a constraint: features by name, pieces that can be combined, and the pieces of a set."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from extremal.checks import InputError
from extremal.sets.base import ConvexSet
from extremal.sets.norms.balls import L1Ball, LinfBall
from extremal.sets.norms.bounded_l1 import BoundedL1Ball
from extremal.sets.polytopes.general import Polytope
from extremal.sets.simplices.boxes import BudgetSet, CappedSimplex
from extremal.sets.simplices.chains import Monotone
from extremal.sets.simplices.plain import Box, Simplex, UnitSimplex
from extremal.support.kinds import MatrixLike

ACCEPTED = (
    "Accepted are: a set such as ex.L1Ball(10); a string such as 'l1:10', 'simplex', 'nonneg', 'box:0,1', 'monotone', "
    "'x1 <= x2', or several joined by '&'; a dict of bounds by feature such as {'income': '>=0'}; a pair (A, b) for A w <= b; "
    "bounds or linear constraints of scipy.optimize; a list of these"
)

PIPELINES = """Steps of a pipeline keep them after `pipeline.set_output(transform="pandas")`."""


def refused(given: object, reason: str, accepted: str = ACCEPTED) -> InputError:
    """The error to raise about the argument ``constraint``."""
    text = repr(given)
    text = text if len(text) <= 100 and "\n" not in text else f"{text.splitlines()[0][:90]} ..."
    return InputError(f"`constraint={text}`: {reason}{'' if reason.endswith('?') or not accepted else '.'} {accepted}".rstrip())


def refuse_strict(text: str, given: object) -> None:
    """Refuse a bound such as '>0'."""
    if match := re.fullmatch(r"\s*([<>])\s*([^<>=&]+?)\s*", text):
        raise refused(given, f"strict bounds do not exist, write '{match[1]}={match[2]}' for {text!r}", "")


def unfit(C: ConvexSet, given: object, shape: tuple[int, ...], error: InputError) -> InputError:
    """The error to raise about a set that does not fit the coefficients."""
    if isinstance(C, CappedSimplex) and np.ndim(C.cap) == 0 and shape[0] * float(C.cap) < C.total:
        most = f"{shape[0]} weights of at most {float(C.cap):g} sum to at most {shape[0] * float(C.cap):g}, not {C.total:g}"
        return refused(given, most, "")
    return refused(given, f"it does not fit coefficients of shape {shape}: {error}", "")


@dataclass(frozen=True)
class Features:
    """The coefficients: one per feature, or one per feature and output."""

    shape: tuple[int, ...]  # (features,) or (features, outputs)
    names: tuple[str, ...] | None = None

    @property
    def count(self) -> int:
        """The number of features."""
        return self.shape[0]

    @property
    def size(self) -> int:
        """The number of coefficients."""
        return math.prod(self.shape)

    @cached_property
    def known(self) -> Sequence[str]:
        """The names; by default scikit-learn's x0, x1, ..."""
        return self.names or [f"x{j}" for j in range(self.count)]

    def name(self, flat: int) -> str:
        """The name of a coefficient in messages."""
        j, output = divmod(flat, self.size // self.count)
        return f"feature {self.known[j]!r}" + (f", output {output}" if len(self.shape) > 1 else "")

    def find(self, key: Hashable, given: object) -> int:
        """The position of a feature by its name or position."""
        if isinstance(key, Integral) and not isinstance(key, (bool, np.bool_)):
            if not -self.count <= int(key) < self.count:
                raise refused(given, f"there is no feature {key}, X has {self.count}", "Positions start at 0")
            return int(key) % self.count
        if not isinstance(key, str):
            raise refused(given, f"features are called by name or position, not by {key!r}")
        if key in self._places:
            return self._places[key]
        near = difflib.get_close_matches(key, self.known, n=1, cutoff=0.0)
        if self.names is None:
            reason = f"X has no feature {key!r}, and no feature names: these come with a DataFrame"
            raise refused(given, reason, f"{PIPELINES} Otherwise write x0, x1, ...")
        raise refused(given, f"X has no feature {key!r}; did you mean {near[0]!r}?", f"It has {_some(self.names)}")

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: j for j, name in enumerate(self.known)}

    def spread(self, values: ArrayLike) -> np.ndarray:
        """Expand a number, or one number per feature, to all coefficients."""
        return np.repeat(np.broadcast_to(np.asarray(values, np.float64), self.count), self.size // self.count)


def _some(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:8])) + (f", ... {len(names)} in all" if len(names) > 8 else "")


@dataclass(frozen=True)
class Piece:
    """One constraint; fields that are None or 0 do not constrain."""

    text: str  # as written
    lower: np.ndarray | None = None  # one per coefficient
    upper: np.ndarray | None = None
    total: float | None = None  # the sum of all coefficients
    l1: bool = False  # whether ``radius`` bounds the sum of magnitudes
    chain: int = 0  # 1 for coefficients that never decrease, -1 for those that never increase
    rows: tuple[Any, np.ndarray, np.ndarray] | None = None  # A, below, above: below <= A w <= above
    make: Callable[[float], ConvexSet] | None = None  # the set for a radius, if the constraint is just a set
    radius: float | None = None
    fraction: float | None = None  # of the norm of the unconstrained solution, instead of the radius
    loose: bool = False  # whether it can be joined with other pieces

    @property
    def alone(self) -> bool:
        """Whether this is a set that cannot be joined with anything."""
        return self.make is not None and not self.loose


def of_set(C: ConvexSet, text: str, make: Callable[[float], ConvexSet] | None = None) -> Piece:
    """The pieces of a set of known shape; a set without pieces can only be used as it is."""
    piece = _parts(C)
    keep = make or (lambda radius: C)
    return Piece(text, make=keep) if piece is None else replace(piece, text=text, make=keep, loose=True)


def linear(text: str, A: MatrixLike, below: np.ndarray, above: np.ndarray, features: Features) -> Piece:
    """below <= A w <= above, with one column per feature."""
    A = sp.csr_array(A)
    if len(features.shape) == 1:
        return Piece(text, rows=(A, below, above))
    if any(np.diff(A.indptr) > 1):
        reason = f"linear inequalities are for one output, but the coefficients have shape {features.shape}"
        raise refused(text, reason, "Bounds, and sets such as ex.NuclearBall, are for any shape")
    k = features.size // features.count
    return Piece(text, rows=(sp.csr_array(sp.kron(A, sp.eye_array(k))), np.repeat(below, k), np.repeat(above, k)))


def _parts(C: ConvexSet) -> Piece | None:
    """The piece that describes a set, without its text; None if the set has no such description."""

    def flat(bound: ArrayLike) -> np.ndarray:
        return np.broadcast_to(bound, C.shape or ()).reshape(-1).astype(np.float64)

    match C:
        case Box():
            return Piece("", flat(C.lower), flat(C.upper))
        case Simplex():
            return Piece("", lower=flat(0.0), total=C.total)
        case UnitSimplex():
            return Piece("", lower=flat(0.0), l1=True, radius=C.total)
        case BudgetSet():
            lower, upper, total = C._limits
            return Piece("", flat(lower), flat(upper), total)
        case L1Ball(centre=None):
            return Piece("", l1=True, radius=C.radius)
        case LinfBall(centre=None):
            return Piece("", flat(-C.radius), flat(C.radius))
        case BoundedL1Ball():
            return Piece("", flat(C.lower), flat(C.upper), l1=True, radius=C.radius)
        case Monotone():
            return Piece("", flat(C.lower), flat(C.upper), chain=1 if C.increasing else -1)
        case Polytope():
            return Piece("", C.bounds[:, 0], C.bounds[:, 1], rows=_rows(C))
    return None


def _rows(C: Polytope) -> tuple[Any, np.ndarray, np.ndarray] | None:
    rows = [(A, below, b) for A, below, b in ((C.A_ub, -np.inf, C.b_ub), (C.A_eq, C.b_eq, C.b_eq)) if A is not None]
    if not rows:
        return None
    A = sp.csr_array(sp.vstack([sp.csr_array(A) for A, _, _ in rows]))
    below, above = (np.concatenate([np.broadcast_to(part[k], len(part[2])) for part in rows]) for k in (1, 2))
    return A, below, above
