"""Sets by a short string, as on the command line: ``l1:20``, ``simplex``, ``box:0,1``."""

from __future__ import annotations

from collections.abc import Callable

from extremal import checks
from extremal.checks import InputError
from extremal.sets.base import ConvexSet
from extremal.sets.norm_balls import L1Ball, L2Ball, LinfBall
from extremal.sets.simplices import Box, Simplex

SETS: dict[str, tuple[type[ConvexSet], str, tuple[int, ...]]] = {  # name: (class, how it is written, how many numbers)
    "l1": (L1Ball, "l1:RADIUS", (1,)),
    "l2": (L2Ball, "l2:RADIUS", (1,)),
    "linf": (LinfBall, "linf:RADIUS", (1,)),
    "simplex": (Simplex, "simplex or simplex:TOTAL", (0, 1)),
    "box": (Box, "box:LOWER,UPPER", (2,)),
}


def parse(text: str) -> ConvexSet:
    """Read a set from a short string.

    Examples
    --------
    >>> parse("l1:20")
    L1Ball(radius=20.0)
    >>> parse("l3:1")
    Traceback (most recent call last):
        ...
    extremal.checks.InputError: unknown set 'l3'; did you mean 'l2'? Accepted: box, l1, l2, linf, simplex
    """
    name, _, rest = text.strip().partition(":")
    make: Callable[..., ConvexSet]
    make, form, counts = SETS[checks.one_of("set", name.lower(), SETS)]
    try:
        numbers = [float(part) for part in rest.split(",")] if rest else []
    except ValueError:
        numbers = None
    if numbers is None or len(numbers) not in counts:
        raise InputError(f"cannot read the set {text!r}: write {form}")
    return make(*numbers)
