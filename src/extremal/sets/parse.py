"""Sets by a short string, as on the command line: ``l1:20``, ``simplex``, ``box:0,1``."""

from __future__ import annotations

from collections.abc import Callable

from extremal import checks
from extremal.checks import InputError
from extremal.sets.base import ConvexSet
from extremal.sets.boxes import BudgetBox, CappedSimplex, Hypersimplex
from extremal.sets.chains import Monotone
from extremal.sets.norm_balls import L1Ball, L2Ball, LinfBall, LpBall
from extremal.sets.simplices import Box, Simplex, UnitSimplex
from extremal.sets.sorted_balls import ElasticBall
from extremal.sets.sparse_balls import KNormBall, KSparseBall, KSupportBall

SETS: dict[str, tuple[type[ConvexSet], str, tuple[int, ...]]] = {  # name: (class, how it is written, how many numbers)
    "l1": (L1Ball, "l1:RADIUS", (1,)),
    "l2": (L2Ball, "l2:RADIUS", (1,)),
    "linf": (LinfBall, "linf:RADIUS", (1,)),
    "lp": (LpBall, "lp:RADIUS,P", (2,)),
    "elastic": (ElasticBall, "elastic:RADIUS,L1_RATIO", (2,)),
    "k-support": (KSupportBall, "k-support:RADIUS,K", (2,)),
    "k-sparse": (KSparseBall, "k-sparse:RADIUS,K", (2,)),
    "k-norm": (KNormBall, "k-norm:RADIUS,K", (2,)),
    "simplex": (Simplex, "simplex or simplex:TOTAL", (0, 1)),
    "unit-simplex": (UnitSimplex, "unit-simplex or unit-simplex:TOTAL", (0, 1)),
    "capped-simplex": (CappedSimplex, "capped-simplex:CAP or capped-simplex:CAP,TOTAL", (1, 2)),
    "hypersimplex": (Hypersimplex, "hypersimplex:K", (1,)),
    "box": (Box, "box:LOWER,UPPER", (2,)),
    "budget-box": (BudgetBox, "budget-box:LOWER,UPPER,TOTAL", (3,)),
    "monotone": (Monotone, "monotone:LOWER,UPPER", (2,)),
}


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
    make: Callable[..., ConvexSet]
    make, form, counts = SETS[checks.one_of("set", name.lower(), SETS)]
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
