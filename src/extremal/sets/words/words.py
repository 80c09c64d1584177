"""Constraints in words: 'l1:10', 'simplex', 'nonneg', 'groups:5;0-3;4-9', 'x1 <= x2', and the radius that belongs to them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from extremal.checks import InputError
from extremal.sets.base import ConvexSet
from extremal.sets.made.images import Columns
from extremal.sets.norms.groups import GroupBall
from extremal.sets.words import names
from extremal.sets.words.linear import by_bounds, interval_of, is_relation, relation
from extremal.sets.words.names import CHAINS, NORMS, SET_FORMS, SETS, SIMPLICES, name_in, without_hyphens
from extremal.sets.words.pieces import Features, Piece, of_set, refuse_strict, refused, unfit

MATRICES = ("nuclear", "spectral")


def split_words(text: str) -> list[str]:
    """Split a text at '&', except in quotes."""
    parts = re.findall(r"(?:'[^']*'|\"[^\"]*\"|`[^`]*`|[^&])+", text)
    return [part.strip() for part in parts] or [""]


def without_quoted(text: str) -> str:
    """A text without the names in quotes.

    Examples
    --------
    >>> without_quoted("'home city' <= age")
    ' <= age'
    """
    return re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`", "", text)


def takes_radius(text: str) -> bool:
    """Whether a constraint in words still needs a radius."""
    name, rest = name_in(text), text.partition(":")[2]
    if name == "groups":
        return not rest.partition(";")[0].strip()
    if name not in (*NORMS, *SIMPLICES):
        return False
    count = len([part for part in rest.split(",") if part.strip()])
    return count < max(SETS[name][2])


def check_words(text: str) -> None:
    """Refuse a constraint in words that is surely wrong, before the data are known.

    Examples
    --------
    >>> check_words("l1:3 & nonneg")
    >>> check_words("l11:3")
    Traceback (most recent call last):
        ...
    extremal.checks.InputError: unknown set 'l11'; did you mean 'l1'? Names are nonneg, nonpos, free, monotone-decreasing, ...
    """
    for part in split_words(text):
        name = name_in(part)
        if name in SETS and name not in CHAINS:
            if "%" not in part:
                names.parse(part)
        elif not (interval_of(part) or without_hyphens(name) in CHAINS or name == "groups" or is_relation(part)):
            names.named(name)  # raises the error


def in_words(text: str, radius: object, features: Features) -> Piece:
    """Read one part of a text; ``radius`` is the value of the argument of that name, or None."""
    low = text.strip().lower()
    bounds = interval_of(low)
    if bounds is not None or not low:
        lower, upper = bounds or (-math.inf, math.inf)
        if lower > upper:
            raise refused(text, "the bounds leave no number between them")
        return by_bounds(lower, upper, text or "free", features)
    refuse_strict(low, text)
    name = name_in(text)
    if without_hyphens(name) in CHAINS:
        return _chain(text, without_hyphens(name), features)
    if name == "groups":
        return _groups(text, radius, features)
    if name in SETS:
        return _ball(text, name, radius, features)
    if is_relation(text):
        _refuse_equals(text, features)
        return relation(text, features)
    if without_hyphens(name) in names.OTHER_WORDS:
        raise refused(text, f"did you mean {names.OTHER_WORDS[without_hyphens(name)] + text.strip()[len(name) :]!r}?", "")
    raise refused(text, f"there is no constraint of that name{names.nearest_word(name)}", names.KNOWN)


def _refuse_equals(text: str, features: Features) -> None:
    """Refuse 'l1=5', which means 'l1:5', unless l1 is a feature."""
    match = re.fullmatch(r"\s*([\w-]+)\s*(?:<=|==?)\s*([^<>=]+?)\s*", text)
    name = "" if match is None else match[1].lower()
    name = names.OTHER_WORDS.get(without_hyphens(name), name)
    if match is not None and match[1] not in features.known and name in SETS:
        raise refused(text, f"did you mean '{name}:{match[2]}'?", "")


def number_or_share(value: object, given: object) -> tuple[float | None, float | None]:
    """A radius: a number, or '30%' for a fraction of the unconstrained solution's norm."""
    text = str(value).strip()
    share = text.endswith("%")
    try:
        number = float(text.rstrip("%")) if isinstance(value, str) or not isinstance(value, (bool, np.bool_)) else math.nan
    except ValueError:
        number = math.nan
    if share and 0 < number <= 100:
        return None, number / 100
    if not share and 0 < number < math.inf:
        return number, None
    wanted = "a positive number, or a fraction such as '30%' (above 0%, at most 100%) of the unconstrained solution's norm"
    raise InputError(f"`radius` must be {wanted}, got {value!r} (constraint={given!r})")


def _ball(text: str, name: str, radius: object, features: Features) -> Piece:
    """A set of the table, with its radius from the text or from the argument ``radius``."""
    given = text if radius is None or ":" in text else f"{text}:"
    parts = names.numbers_in(given)
    if radius is not None:
        parts.insert(0, str(radius))
    if radius is not None or (parts and ":" not in text):
        text = f"{name}:{','.join(parts)}"
    if len(parts) not in SETS[name][2]:
        hint = " or give radius=" if radius is None and name in (*NORMS, *SIMPLICES) else ""
        raise refused(
            text, f"write {SET_FORMS[name]}{hint}", f"With radius={radius!r}" if radius is not None else "A radius is a number"
        )
    if name in NORMS:
        size, share = number_or_share(parts[0], text)
        return _shaped(text, name, partial(_made, name, parts[1:], text), size, share, features)
    if any(part.endswith("%") for part in parts):
        balls = ", ".join(names.FRACTIONS)
        raise refused(text, f"{name} is not a ball of a norm, so a fraction has no meaning", f"These are {balls}")
    if name in SIMPLICES:
        total = number_or_share(parts[0], text)[0] if parts else 1.0
        return _shaped(text, name, partial(_made, name, [], text), total, None, features)
    return _shaped(text, name, lambda _: _made(name, parts, text), 1.0, None, features)


def _made(name: str, more: list[str], text: str, radius: float | None = None) -> ConvexSet:
    kind: Callable[..., ConvexSet] = names.named(name)
    try:
        return kind(*(() if radius is None else (radius,)), *names.parsed_numbers(more))
    except ValueError as error:
        raise refused(text, f"{error}", f"Write {SET_FORMS[name]}") from None


def _shaped(
    text: str, name: str, make: Callable[[float], ConvexSet], size: float | None, share: float | None, features: Features
) -> Piece:
    """The set for these coefficients; a set with a fraction is tested with radius 1."""
    if name in MATRICES and len(features.shape) == 1:
        raise refused(text, f"{name} is for matrices of coefficients, such as several classes or targets, not for one output")
    columns = len(features.shape) > 1 and name in ("simplex", "capped-simplex", "budget-box", "hypersimplex", "unit-simplex")

    def fitted(radius: float) -> ConvexSet:
        C = make(radius)
        try:
            return (Columns(C) if columns else C).on(features.shape)
        except InputError as error:
            raise unfit(C, text, features.shape, error) from None

    piece = of_set(fitted(size or 1.0), text, fitted)
    loose = piece.loose and not (share is not None and not piece.l1)
    return replace(piece, radius=size, fraction=share, loose=loose)


def _chain(text: str, name: str, features: Features) -> Piece:
    """Coefficients in order, with or without bounds."""
    if len(features.shape) > 1:
        raise refused(text, f"an order is for one output, but the coefficients have shape {features.shape}")
    rest = [part for part in text.partition(":")[2].split(",") if part.strip()]
    try:
        lower, upper = map(float, rest) if rest else (-math.inf, math.inf)
    except ValueError:
        word = names.SAID[CHAINS[name]]
        raise refused(text, f"write {word} or {word}:LOWER,UPPER") from None
    if not lower <= upper:
        raise refused(text, f"the bounds must be in order, got {lower:g} and {upper:g}")
    return Piece(text, features.spread(lower), features.spread(upper), chain=CHAINS[name])


def _groups(text: str, radius: object, features: Features) -> Piece:
    """A budget on the sum of the groups' l2 norms, for groups of features or rows of a matrix of coefficients."""
    head, *parts = text.split(";")
    given = head.partition(":")[2].strip()
    if given and radius is not None:
        raise InputError(f"`radius` must be left out, because constraint={text!r} has one, got {radius!r}")
    radius = names.RADIUS if not given and radius is None else radius
    size, share = number_or_share(given or radius, text)
    groups = _members([part.strip() for part in parts if part.strip()], text, features)
    k = features.size // features.count
    flat = [(np.repeat(np.asarray(g) * k, k) + np.tile(np.arange(k), len(g))).tolist() for g in groups]
    shown = text if given else f"groups:{radius}{text[6:]}"
    make = partial(_group_ball, flat, features.shape, text)
    make(size or 1.0)
    return Piece(shown, make=make, radius=size, fraction=share)


def _group_ball(groups: list[list[int]], shape: tuple[int, ...], text: str, radius: float) -> ConvexSet:
    try:
        return GroupBall(radius, groups, shape=shape)
    except InputError as error:
        raise refused(text, f"{error}", "Every feature must be in exactly one group") from None


def _members(parts: list[str], text: str, features: Features) -> list[list[int]]:
    if not parts:
        if len(features.shape) == 1:
            raise refused(text, "groups of features are missing", f"Write {SET_FORMS['groups']}")
        return [[j] for j in range(features.count)]
    if match := re.fullmatch(r"size\s*=\s*(\d+)", parts[0]):
        size = int(match[1])
        if len(parts) > 1 or size < 1 or features.count % size:
            raise refused(text, f"{features.count} features cannot be cut into groups of {size}", f"Write {SET_FORMS['groups']}")
        return [list(range(j, j + size)) for j in range(0, features.count, size)]
    return [[j for item in part.split(",") for j in _span(item.strip(), text, features)] for part in parts]


def _span(item: str, text: str, features: Features) -> list[int]:
    """A position, a span of positions such as 0-4, or a name, with or without quotes."""
    if features.names is not None and item in features.names:
        return [features.find(item, text)]
    if match := re.fullmatch(r"(\d+)\s*-\s*(\d+)", item):
        first, last = (features.find(int(end), text) for end in match.groups())
        return list(range(first, last + 1))
    bare = item[1:-1] if re.fullmatch(r"'[^']*'|\"[^\"]*\"", item) else item
    return [features.find(int(item) if item.isdigit() else bare, text)]
