"""Sets by a short string: ``l1:20``, ``simplex``, ``box:0,1``. The words are those of estimators and commands alike.

`extremal.sets.words` reads more: several words at once, signs, relations between features, and what needs the data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from extremal import checks
from extremal.checks import InputError
from extremal.support.lazy import Named

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
    "nuclear": ("NuclearBall", "nuclear:RADIUS", (1,)),
    "spectral": ("SpectralBall", "spectral:RADIUS", (1,)),
}
_CLASSES = Named("extremal.sets", {name: kind for name, (kind, _, _) in SETS.items()})
NORMS = ("l1", "l2", "linf", "lp", "elastic", "k-support", "k-sparse", "k-norm", "nuclear", "spectral")  # balls, radius first
RADIUS = 10  # of a ball that is named without any number


def named(name: str) -> type[ConvexSet]:
    """The class that a name stands for, imported now.

    Examples
    --------
    >>> named("l1")
    <class 'extremal.sets.norms.balls.L1Ball'>
    """
    return _CLASSES[checks.one_of("set", name, SETS)]


def split_word(text: str) -> tuple[str, list[str]]:
    """The name in a short string, and what stands after its colon.

    A ball of a norm that is named without any number has the radius 10, wherever it is read.

    Examples
    --------
    >>> split_word("box: 0, 1"), split_word("l1")
    (('box', ['0', '1']), ('l1', ['10']))
    """
    name, colon, rest = text.strip().partition(":")
    name = name.strip().lower()
    if not colon and name in NORMS and SETS[name][2] == (1,):
        return name, [str(RADIUS)]
    return name, [part.strip() for part in rest.split(",")] if rest.strip() else []


def parse(text: str) -> ConvexSet:
    """Read a set from a short string.

    Examples
    --------
    >>> parse("l1:20"), parse("l1")
    (L1Ball(radius=20.0), L1Ball(radius=10.0))
    >>> parse("box:1")
    Traceback (most recent call last):
        ...
    extremal.checks.InputError: cannot read the set 'box:1': write box:LOWER,UPPER
    """
    name, parts = split_word(text)
    make = named(name)
    _, form, counts = SETS[name]
    try:
        numbers = [parsed_number(part) for part in parts]
    except ValueError:
        numbers = None
    if numbers is None or len(numbers) not in counts:
        raise InputError(f"cannot read the set {text!r}: write {form}")
    return make(*numbers)


def parsed_number(text: str) -> float:
    """A number; a whole one if it is written so.

    Examples
    --------
    >>> parsed_number("3"), parsed_number("3.0")
    (3, 3.0)
    """
    return int(text) if text.lstrip("+-").isdecimal() and len(text) < 20 else float(text)
