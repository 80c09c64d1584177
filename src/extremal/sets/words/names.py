"""The only table of words: the names of constraints, how to write them, and suggestions for misspelt words."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from extremal.checks import InputError
from extremal.support.lazy import Named

if TYPE_CHECKING:
    from extremal.sets.base import ConvexSet

SETS: dict[str, tuple[str, str, tuple[int, ...]]] = {  # name: (class, notation, possible numbers of arguments)
    "l1": ("L1Ball", "l1:RADIUS", (1,)),
    "l2": ("L2Ball", "l2:RADIUS", (1,)),
    "linf": ("LinfBall", "linf:RADIUS", (1,)),
    "lp": ("LpBall", "lp:RADIUS,P", (2,)),
    "elastic": ("ElasticBall", "elastic:RADIUS,L1_RATIO", (2,)),
    "k-support": ("KSupportBall", "k-support:RADIUS,K", (2,)),
    "k-sparse": ("KSparseBall", "k-sparse:RADIUS,K", (2,)),
    "k-norm": ("KNormBall", "k-norm:RADIUS,K", (2,)),
    "simplex": ("Simplex", "simplex or simplex:TOTAL", (0, 1)),
    "unit-simplex": ("UnitSimplex", "unit-simplex or unit-simplex:TOTAL", (0, 1)),
    "capped-simplex": ("CappedSimplex", "capped-simplex:CAP or capped-simplex:CAP,TOTAL", (1, 2)),
    "hypersimplex": ("Hypersimplex", "hypersimplex:K", (1,)),
    "box": ("Box", "box:LOWER,UPPER", (2,)),
    "budget-box": ("BudgetBox", "budget-box:LOWER,UPPER,TOTAL", (3,)),
    "monotone": ("Monotone", "monotone:LOWER,UPPER", (2,)),
    "nuclear": ("NuclearBall", "nuclear:RADIUS", (1,)),
    "spectral": ("SpectralBall", "spectral:RADIUS", (1,)),
}
MORE: dict[str, tuple[str, str]] = {  # words that are not sets by themselves: (notation, meaning)
    "groups": ("groups:RADIUS;0-4;5-9 or groups:RADIUS;size=5", "Sum of the l2 norms of groups of features."),
    "nonneg": ("nonneg, nonpos or free", "Signs of all coefficients."),
    "bounds": (">=0, <= 1.5 or [0, 1]", "Bounds of all coefficients."),
    "relations": ("'age <= 2*income' or 'sum == 1'", "Linear relations between features by name, or x0, x1, ..."),
    "&": ("'l1:3 & nonneg'", "Joins several of these."),
}
SET_FORMS = {name: form for name, (_, form, _) in SETS.items()} | {"groups": MORE["groups"][0]}
NORMS = ("l1", "l2", "linf", "lp", "elastic", "k-support", "k-sparse", "k-norm", "nuclear", "spectral")  # balls, radius first
FRACTIONS = (*NORMS, "groups")  # balls for which a fraction as radius has a meaning
SIMPLICES = ("simplex", "unit-simplex")  # their radius is the total, 1 by default
RADIUS = 10  # default for a ball that is named without any number
OTHER_WORDS = {"lasso": "l1", "ridge": "l2", "max": "linf", "elasticnet": "elastic", "trace": "nuclear", "grouplasso": "groups"}
SIGNS: dict[str, tuple[float, float]] = dict.fromkeys(("free", "none"), (-math.inf, math.inf))
SIGNS |= dict.fromkeys(("nonneg", "nonnegative", "positive", "pos"), (0.0, math.inf))  # as in scikit-learn, positive includes 0
SIGNS |= dict.fromkeys(("nonpos", "nonpositive", "negative", "neg"), (-math.inf, 0.0))
CHAINS: dict[str, int] = dict.fromkeys(("monotone", "monotoneincreasing", "increasing", "nondecreasing", "isotonic"), 1)
CHAINS |= dict.fromkeys(("monotonedecreasing", "decreasing", "nonincreasing", "antitonic"), -1)
# the word for each meaning
SAID: dict[object, str] = {
    -1: "monotone-decreasing",
    1: "monotone",
    (0.0, math.inf): "nonneg",
    (-math.inf, 0.0): "nonpos",
}
OPPOSITE = {"nonneg": "nonpos", "monotone": "monotone-decreasing"}
OPPOSITE |= {b: a for a, b in OPPOSITE.items()}
LIKENESS, CLEAR = 0.4, 0.05  # how similar a word must be for a suggestion, and by how much more than a word of opposite meaning
KNOWN = (
    f"Names are {', '.join(['nonneg', 'nonpos', 'free', 'monotone-decreasing', *SET_FORMS.values()])}; "
    "inequalities read 'x1 <= x2', bounds '>=0' or '[0, 1]', and parts are joined by '&'"
)
_CLASSES = Named("extremal.sets", {name: kind for name, (kind, _, _) in SETS.items()})


def named(name: str) -> type[ConvexSet]:
    """Import and return the class that a name means.

    Examples
    --------
    >>> named("l1")
    <class 'extremal.sets.norms.balls.L1Ball'>
    """
    if name not in SETS:
        raise InputError(f"unknown set {name!r}{nearest_word(name) or '.'} {KNOWN}")
    return _CLASSES[name]


def nearest_word(name: str) -> str:
    """A suggestion for an unknown word, as part of a sentence.

    The function suggests nothing if a word of opposite meaning is nearly as similar, or if just one of the two is a negation.

    Examples
    --------
    >>> nearest_word("symplex"), nearest_word("npos")
    ("; did you mean 'simplex'?", '')
    """
    words = {word: SAID.get(bounds, word) for word, bounds in SIGNS.items()} | {word: SAID[end] for word, end in CHAINS.items()}
    words = {word: meant for word, meant in words.items() if word != "none"} | {word: word for word in SET_FORMS}
    likeness = {word: difflib.SequenceMatcher(None, without_hyphens(name), word).ratio() for word in words}
    nearest = max(likeness, key=lambda word: likeness[word])
    meant = words[nearest]
    against = max((likeness[word] for word in words if words[word] == OPPOSITE.get(meant)), default=-math.inf)
    negated = against > 0 and nearest.startswith("no") != bool(re.match("n(?!eg)", name))  # "npos" is not "pos"
    if likeness[nearest] < LIKENESS or likeness[nearest] < against + CLEAR or negated:
        return ""
    return f"; did you mean {meant!r}?"


def without_hyphens(text: str) -> str:
    """A word without hyphens: non-negative, non_negative and Non negative are the same."""
    return re.sub(r"[-_\s]", "", text.lower())


def name_in(text: str) -> str:
    """The name with which a word begins."""
    return re.split(r"[:;]", text.lower())[0].strip()


def numbers_in(text: str) -> list[str]:
    """The numbers after the colon of a word, as written.

    A norm ball that is named without any number has radius 10 everywhere.

    Examples
    --------
    >>> numbers_in("box: 0, 1"), numbers_in("l1")
    (['0', '1'], ['10'])
    """
    name, (_, colon, rest) = name_in(text), text.partition(":")
    if not colon and name in NORMS and SETS[name][2] == (1,):
        return [str(RADIUS)]
    return [part.strip() for part in rest.split(",")] if rest.strip() else []


def parsed_numbers(parts: list[str]) -> list[float]:
    """Convert numbers as written; whole numbers become ints.

    Examples
    --------
    >>> parsed_numbers(["3", "3.0"])
    [3, 3.0]
    """
    return [int(part) if part.lstrip("+-").isdecimal() and len(part) < 20 else float(part) for part in parts]


def parse(text: str) -> ConvexSet:
    """Read one set from a short string, for x of any shape.

    Examples
    --------
    >>> parse("l1:20"), parse("l1")
    (L1Ball(radius=20.0), L1Ball(radius=10.0))
    >>> parse("box:1")
    Traceback (most recent call last):
        ...
    extremal.checks.InputError: cannot read the set 'box:1': write box:LOWER,UPPER
    """
    name, parts = name_in(text), numbers_in(text)
    make: Callable[..., ConvexSet] = named(name)
    try:
        numbers = parsed_numbers(parts)
    except ValueError:
        numbers = None
    if numbers is None or len(numbers) not in SETS[name][2]:
        raise InputError(f"cannot read the set {text!r}: write {SET_FORMS[name]}")
    return make(*numbers)
