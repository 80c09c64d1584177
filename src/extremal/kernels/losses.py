"""Derivatives of the losses, one margin at a time, for compiled loops; what they are is said in extremal.losses.

A loss enters as a small integer and one number (see `extremal.losses.margin.compiled`): numba cannot keep a kernel on disk that
takes a function.
"""

from __future__ import annotations

import math

from extremal.kernels.codes import HUBER, LOGISTIC, NONLINEAR
from extremal.kernels.jit import inlined


@inlined
def expit(u):
    """1 / (1 + exp(-u)), without overflow, and without a branch: signs of margins cannot be foreseen."""
    return 1.0 / (1.0 + math.exp(min(-u, 700.0)))


@inlined
def deriv(loss, parameter, z, y):
    """phi'(z, y)."""
    if loss == LOGISTIC:
        return -y * expit(-z if y > 0.0 else z)  # |y| is the weight of the row
    if loss == NONLINEAR:
        q = expit(-z)
        return 2.0 * (y - q) * q * expit(z)
    r = z - y
    if loss == HUBER:
        return min(max(r, -parameter), parameter)
    return r
