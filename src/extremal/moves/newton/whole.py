"""The quadratic model of all coordinates, for moves that need a Hessian of all columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from extremal.moves.newton.model import Memory, NewtonState
from extremal.support.kinds import Symmetric

CHEAP = 2**16  # up to this many rows times columns squared, a new Hessian takes less time than the steps that an old one costs


def whole_model(at: NewtonState, old: Memory | None, rooted: bool = False) -> Memory:
    """The quadratic model of the last step if it is still good, otherwise a new one; in factors if these are wanted and exist."""
    if old is not None and at.learns:
        return old.learnt(at)
    if old is not None and old.fits(at) and (rooted or at.f.n * float(at.x.size) ** 2 > CHEAP):
        return old.again(at)
    return Memory.new(at.f.on_columns(np.arange(at.x.size)) if old is None else old.part.of(at.f), at, old, rooted=rooted)


def formed(H: Symmetric, size: int) -> Any:
    """The Hessian as an array; one that is known by its products takes ``size`` of them."""
    return H if isinstance(H, np.ndarray) else np.stack([H @ column for column in np.eye(size)])
