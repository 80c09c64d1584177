"""Runs in rational arithmetic: which parts of a method round no number."""

from __future__ import annotations

from typing import cast

from extremal.checks import InputError
from extremal.gradients.full import Full
from extremal.methods.method import Method
from extremal.moves.blocks import Blockwise
from extremal.moves.vertex import VertexMove
from extremal.sets.base import ConvexSet
from extremal.sets.exact import exact_set


def exact_oracle(call: str, method: Method, C: ConvexSet) -> ConvexSet:
    """The set in rational arithmetic, as the oracle of a run; refuse parts of a method that round.

    Examples
    --------
    >>> import extremal as ex
    >>> exact_oracle("minimize", ex.Method(ex.gradients.Full(), ex.steps.OpenLoop()), ex.Box(0.0, 1.0, shape=1)).start()
    array([Fraction(1, 1)], dtype=object)
    """
    for part, kinds in ((method.gradient, (Full,)), (method.move, (VertexMove, Blockwise))):
        if not isinstance(part, kinds):
            names = " or ".join(f"{kind.__name__}()" for kind in kinds)
            raise InputError(f"`{call}(method=...)` must be made of {names} for an exact run: {part} rounds numbers")
    return cast(ConvexSet, exact_set(call, C))
