"""How tests read a constraint."""

from __future__ import annotations

import numpy as np

from extremal.sets.words.read import read_constraint

NAMES = ["age", "income", "debt", "tenure"]


def read(constraint, radius=None, shape=(4,), names=NAMES):
    return read_constraint(constraint, radius, shape, names)


ROWS = np.array([[1.0, -1.0, 0.0, 0.0], [1.0, 2.0, 0.0, -1.0]])
