"""The Hessian of a quadratic objective on some coordinates, from its Hessian on others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from extremal.objectives.column_blocks import LONG_COLUMNS, Slice

if TYPE_CHECKING:
    from extremal.moves.newton.model import Memory

FEW_NEW = 0.5  # the known Hessian serves if at most this share of the columns is new


def grown(old: Memory | None, part: Slice) -> np.ndarray | None:
    """The Hessian on the coordinates of ``part``: entries of the last one, and products with the new columns.

    None if the last Hessian belongs to another objective, or if most columns are new.
    """
    if old is None or not (old.part.f is part.f and isinstance(old.H, np.ndarray)) or len(part.W) > LONG_COLUMNS:
        return None
    place = np.searchsorted(old.part.W, part.W)
    known = np.isin(part.W, old.part.W, assume_unique=True)
    new = np.flatnonzero(~known)
    if len(new) > FEW_NEW * len(known):
        return None
    H, there = np.empty((len(known), len(known))), np.flatnonzero(known)
    H[np.ix_(there, there)] = old.H[np.ix_(place[known], place[known])]
    if len(new):
        cross = part.cross(new)
        if cross is None:
            return None
        H[:, new], H[new] = cross, cross.T
    return H
