"""The argument ``constraint`` of all estimators: read once, checked against the features, and turned into a set.

Strings, dicts, matrices and sets become pieces (words, linear, pieces), and the pieces are joined to one region (regions).
docs/constraints.md shows every form.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from extremal.checks import InputError, is_sparse
from extremal.sets.base import ConvexSet, Normed
from extremal.sets.words.linear import KEYS, by_bounds, by_feature, by_matrices, by_scipy
from extremal.sets.words.pieces import Features, Piece, of_set, refused, unfit
from extremal.sets.words.regions import Region, joined_regions
from extremal.sets.words.words import in_words, number_or_share, split_words, takes_radius, without_quoted

TOUCH = 1e-6  # a coefficient nearer to a bound than this share of the bound touches it


def read_constraint(constraint: Any, radius: object, shape: tuple[int, ...], names: Sequence[str] | None = None) -> Reading:
    """Read ``constraint`` and ``radius`` for coefficients of a shape: (features,), or (features, outputs).

    Parameters
    ----------
    constraint : ConvexSet, str, dict, pair (A, b), Bounds or LinearConstraint of scipy.optimize, list of these, or None
        The constraint. None and "free" mean no constraint.
    radius : float, str or None
        The radius or total for a constraint in words that has none yet. "30%" is a fraction of the unconstrained solution's
        norm.
    shape : tuple of int
        Shape of the coefficients.
    names : sequence of str, optional
        Names of the features. Default: x0, x1, ...

    Examples
    --------
    >>> plan = read_constraint("l1 & nonneg", 10, (3,))
    >>> plan.set(), str(plan)
    (UnitSimplex(total=10.0, shape=(3,)), 'l1:10 & nonneg')
    >>> plan = read_constraint({"income": ">=0"}, None, (2,), ["age", "income"])
    >>> plan.bounded, plan.set(reach=100.0).lmo(np.ones(2)).to_array()
    (False, array([-100.,    0.]))
    >>> read_constraint({"incme": ">=0"}, None, (2,), ["age", "income"])
    Traceback (most recent call last):
        ...
    extremal.checks.InputError: `constraint={'incme': '>=0'}`: X has no feature 'incme'; did you mean 'income'? \
It has 'age', 'income'
    """
    features = Features(tuple(shape), None if names is None else tuple(map(str, names)))
    if isinstance(constraint, str) and not constraint.strip(" &"):
        raise refused(constraint, "it is empty; use None for no constraint")
    several = isinstance(constraint, list) or (isinstance(constraint, tuple) and all(_stands_alone(part) for part in constraint))
    given = list(constraint) if several else [constraint]
    parts = [part for item in given for part in (split_words(item) if isinstance(item, str) else [item])]
    sizes = _radii(constraint, radius, parts)
    try:
        pieces = [_piece(part, size, features) for part, size in zip(parts, sizes, strict=True)]
    except InputError:
        _refuse_bare_names([item for item in given if isinstance(item, str)], features)
        raise
    return Reading.of(pieces or [by_bounds(-math.inf, math.inf, "free", features)], features)


def _refuse_bare_names(texts: list[str], features: Features) -> None:
    """Refuse names that contain '&' and stand without quotes."""
    for name in (name for name in features.names or () if "&" in name):
        for text in (text for text in texts if name in without_quoted(text)):
            raise refused(text, f"'&' joins constraints, so that the name {name!r} must stand in quotes, as here", "")


def _stands_alone(part: object) -> bool:
    """Whether part of a tuple is a constraint, rather than a matrix or its right side."""
    return part is None or isinstance(part, (str, dict, ConvexSet)) or _is_scipy(part)


def _radii(constraint: object, radius: object, parts: list[Any]) -> list[Any]:
    """The radius for the one part that needs it, None for the others."""
    if radius is None:
        return [None] * len(parts)
    number_or_share(radius, constraint)
    if isinstance(constraint, ConvexSet):
        raise InputError(
            f"`radius` must be left out if `constraint` is a set, which has its own, got {radius!r} for {constraint}"
        )
    open_ = [isinstance(part, str) and takes_radius(part) for part in parts]
    if sum(open_) != 1:
        what = "no part of it needs one" if not any(open_) else "more than one part of it needs one"
        raise InputError(
            f"`radius` must be left out, or belong to one constraint in words that needs a radius, such as 'l1', got "
            f"radius={radius!r} for constraint={constraint!r}: {what}"
        )
    return [radius if wants else None for wants in open_]


def _piece(part: object, radius: object, features: Features) -> Piece:
    """Read one part of the argument, by its type."""
    if part is None:
        return by_bounds(-math.inf, math.inf, "free", features)
    if isinstance(part, str):
        return in_words(part, radius, features)
    if isinstance(part, ConvexSet):
        if part.relaxed is not part:
            raise refused(part, "its bounds hold only in the limit; give them as inequalities (A, b) beside the other set")
        try:
            return of_set(part.on(features.shape), str(part))
        except InputError as error:
            raise unfit(part, part, features.shape, error) from None
    if isinstance(part, dict):
        scipy_like = part and all(key in KEYS for key in part) and not set(part) & set(features.known)
        return by_matrices(part, features) if scipy_like else by_feature(part, features)
    if _is_scipy(part):
        return by_scipy(part, features)
    if isinstance(part, tuple) and len(part) == 2 and (is_sparse(part[0]) or np.ndim(part[0]) in (1, 2)):
        return by_matrices(part, features)
    raise refused(part, f"its type {type(part).__name__} is not accepted")


def _is_scipy(part: object) -> bool:
    """Whether it is a constraint of scipy; scipy.optimize is slow to import, and such a constraint implies that it is loaded."""
    optimize = sys.modules.get("scipy.optimize")
    return optimize is not None and isinstance(part, (optimize.Bounds, optimize.LinearConstraint))


@dataclass(frozen=True)
class Reading:
    """A constraint after reading: the set that it means, once the open parameters are known.

    Examples
    --------
    >>> plan = read_constraint("l1:50%", None, (2,))
    >>> plan.fraction, plan.norm(np.array([3.0, -1.0]))
    (0.5, 4.0)
    >>> plan.with_norm(4.0).set()
    L1Ball(radius=2.0, shape=(2,))
    """

    pieces: tuple[Piece, ...]
    features: Features
    fraction: float | None  # of the norm of the unconstrained solution, for a radius given as a fraction; see `with_norm`

    @classmethod
    def of(cls, pieces: Sequence[Piece], features: Features) -> Reading:
        """The plan for these pieces, or an error that says why no coefficients fit."""
        shares = [piece.fraction for piece in pieces if piece.fraction is not None]
        plan = cls(tuple(pieces), features, shares[0] if shares else None)
        if len(shares) > 1 or (shares and sum(piece.l1 for piece in pieces) > 1):
            raise refused(str(plan), "one radius can be a fraction, and then it is the only one", "Give the others as numbers")
        if plan._alone is None:
            _ = plan._region.bounded  # refuses constraints that no coefficients satisfy
        return plan

    @property
    def bounded(self) -> bool:
        """Whether the constraint by itself bounds all coefficients; otherwise `set` needs a ``reach``."""
        return self._alone is not None or self._region.bounded

    def set(self, reach: ArrayLike | None = None) -> ConvexSet:
        """The set, with bounds ``reach`` (a number, or one per feature or coefficient) where the constraint has none."""
        if self.fraction is not None:
            raise InputError(f"`constraint={self}` has no radius before `with_norm`")
        if self._alone is not None:
            piece = self._alone
            return piece.make(piece.radius or 1.0)  # type: ignore[misc]
        if reach is None and not self.bounded:
            raise InputError(f"`constraint={self}` does not bound all coefficients: a reach is needed")
        return self._region.built(*(self._region.limits if self.bounded else self._limits(reach)[0]))

    def norm(self, x: np.ndarray) -> float:
        """The norm of x, for the norm whose ball is the constraint."""
        piece = next((piece for piece in self.pieces if piece.fraction is not None or piece.l1), self._alone)
        ball = None if piece is None or piece.make is None else piece.make(1.0)
        if piece is not None and piece.l1:
            return math.fsum(np.abs(x).reshape(-1).tolist())
        if not isinstance(ball, Normed):
            raise InputError(f"`constraint={self}` is not a ball of a norm")
        return float(ball.norm(np.asarray(x, np.float64)))

    def with_norm(self, norm: float) -> Reading:
        """The plan with its fraction of this norm as the radius."""
        if not 0 < norm < math.inf:
            reason = f"the radius is a fraction of the unconstrained solution's norm, which is {norm:g}"
            raise refused(str(self), reason, "Give the radius as a number")
        pieces = [p if p.fraction is None else replace(p, radius=p.fraction * norm, fraction=None) for p in self.pieces]
        return Reading.of(pieces, self.features)

    def at_reach(self, x: np.ndarray, reach: ArrayLike | None) -> bool:
        """Whether x touches a bound that exists only because of ``reach``."""
        if self.bounded:
            return False
        (lower, upper), (low, high) = self._limits(reach)
        flat = np.asarray(x, np.float64).reshape(-1)
        near_low = flat <= lower + TOUCH * np.abs(lower)
        near_high = flat >= upper - TOUCH * np.abs(upper)
        return bool((low & near_low).any() or (high & near_high).any())

    @property
    def own_limits(self) -> tuple[np.ndarray, np.ndarray]:
        """The bounds of each coefficient that follow from the constraint by itself, infinite for none, of an unbounded region."""
        lower, upper = (end.reshape(self.features.shape) for end in self._region.limits)
        return lower, upper

    def __str__(self) -> str:
        return " & ".join(piece.text for piece in self.pieces)

    @cached_property
    def _alone(self) -> Piece | None:
        """The single piece whose own set is used; pieces without a constraint do not count."""
        said = [piece for piece in self.pieces if not _is_free(piece)]
        return said[0] if len(said) == 1 and said[0].make is not None else None

    @cached_property
    def _region(self) -> Region:
        return joined_regions([piece for piece in self.pieces if not _is_free(piece)], self.features, str(self))

    def _limits(self, reach: ArrayLike | None) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """All bounds of an unbounded region, and masks of the bounds that exist only because of the reach."""
        lower, upper = self._region.limits
        far = np.asarray(reach, np.float64)
        far = far.reshape(-1) if far.size == self.features.size else self.features.spread(far)
        far = np.maximum(far, 2 * self._region.least)
        if self._region.chain:
            far = np.full_like(far, far.max())
        low, high = np.isinf(lower), np.isinf(upper)
        wide = np.where(low, np.minimum(0.0, upper) - far, lower), np.where(high, np.maximum(0.0, lower) + far, upper)
        return wide, (low, high)


def _is_free(piece: Piece) -> bool:
    plain = not (piece.make or piece.l1 or piece.chain) and piece.total is None and piece.rows is None
    return plain and all(end is None or bool(np.isinf(end).all()) for end in (piece.lower, piece.upper))
