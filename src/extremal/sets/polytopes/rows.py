"""The rows and bounds of a linear program, and the l1 norm as a row over positive and negative parts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp


class ProgramRows(NamedTuple):
    """{x : A_ub x <= b_ub, A_eq x = b_eq, lower <= x <= upper}; None for no rows."""

    A_ub: Any
    b_ub: Any
    A_eq: Any
    b_eq: Any
    bounds: np.ndarray

    def within(self, radius: float, folds: bool) -> ProgramRows:
        """The same with |x|_1 <= radius: a row of ones if no sign is mixed, otherwise a row for x = p - q with p, q >= 0."""
        (_, b, E, c, bounds), d = self, len(self.bounds)
        A, b = (sp.csr_array((0, d)), np.zeros(0)) if b is None else (sp.csr_array(self.A_ub), b)
        low, high = bounds.T
        b = np.append(b, radius)
        if not folds:
            sign = -1.0 if (high <= 0).all() else 1.0
            return ProgramRows(sp.csr_array(sp.vstack([A, np.full((1, d), sign)])), b, E, c, bounds)
        A = sp.csr_array(sp.vstack([sp.hstack([A, -A]), np.ones((1, 2 * d))]))
        E = None if E is None else sp.csr_array(sp.hstack([sp.csr_array(E), -sp.csr_array(E)]))
        ends = [np.concatenate([np.maximum(up, 0.0), np.maximum(-down, 0.0)]) for up, down in ((low, high), (high, low))]
        return ProgramRows(A, b, E, c, np.column_stack(ends))


def parts(x: np.ndarray) -> np.ndarray:
    """The positive and the negative part of x."""
    return np.concatenate([np.maximum(x, 0), np.maximum(-x, 0)])
