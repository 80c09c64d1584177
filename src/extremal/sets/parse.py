"""Sets by a short string, as on the command line: ``l1:20``, ``simplex``, ``box:0,1``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from extremal import checks
from extremal.checks import InputError

if TYPE_CHECKING:
    from extremal.sets.base import ConvexSet

SETS: dict[str, tuple[str, str, tuple[int, ...]]] = {  # name: (class, how it is written, how many numbers)
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
}


def named(name: str) -> type[ConvexSet]:
    """The class that a name stands for, imported now.

    Examples
    --------
    >>> named("l1")
    <class 'extremal.sets.norm_balls.L1Ball'>
    """
    kind, _, _ = SETS[checks.one_of("set", name, SETS)]
    return getattr(import_module("extremal.sets"), kind)


def parse(text: str) -> ConvexSet:
    """Read a set from a short string.

    Examples
    --------
    >>> parse("l1:20")
    L1Ball(radius=20.0)
    >>> parse("l1")
    Traceback (most recent call last):
        ...
    extremal.checks.InputError: cannot read the set 'l1': write l1:RADIUS
    """
    name, _, rest = text.strip().partition(":")
    make = named(name.lower())
    _, form, counts = SETS[name.lower()]
    try:
        numbers = [_number(part) for part in rest.split(",")] if rest else []
    except ValueError:
        numbers = None
    if numbers is None or len(numbers) not in counts:
        raise InputError(f"cannot read the set {text!r}: write {form}")
    return make(*numbers)


def _number(text: str) -> float:
    """A number; a whole one if it is written so."""
    try:
        return int(text)
    except ValueError:
        return float(text)
