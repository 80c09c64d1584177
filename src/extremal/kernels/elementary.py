"""exp and log over arrays, in loops that compute several entries at once; libm's functions take one at a time."""

from __future__ import annotations

import math

import numpy as np

from extremal.kernels.jit import vectors

PER_LOG2 = 1.4426950408889634  # 1 / log 2
LOG2_HIGH, LOG2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # log 2 in two parts: k times the first is exact
ROUND = 6755399441055744.0  # 1.5 2^52: a number that is added to it is rounded to an integer, which its last bits then hold
LAST = 708.0  # exp(-708) is the smallest that is not subnormal
ROOT = 0.41421356237309503  # sqrt 2 - 1
TAYLOR = tuple(1.0 / math.factorial(k) for k in range(12, -1, -1))  # of exp, after 1/13!; loops over a tuple are unrolled
ATANH = tuple(1.0 / k for k in range(21, 1, -2))  # after 1/23


@vectors
def exp_negative(a, out, bits):
    """out = exp(-a) for a >= 0, to one unit in the last place; from 708 on as if a were 708. ``bits``: room for int64.

    exp(-a) = 2^k exp(r) with |r| <= log 2 / 2, and a Taylor polynomial of degree 13 for exp(r).
    """
    kept = bits.view(np.float64)
    for i in range(a.size):
        t = -min(a[i], LAST)
        shifted = t * PER_LOG2 + ROUND
        kept[i] = shifted
        k = shifted - ROUND
        r = (t - k * LOG2_HIGH) - k * LOG2_LOW
        p = r / 6227020800.0 + TAYLOR[0]
        for c in TAYLOR[1:]:
            p = p * r + c
        out[i] = p
    for i in range(a.size):
        bits[i] = (bits[i] + 1023) << 52  # the number 2^k
    for i in range(a.size):
        out[i] *= kept[i]


@vectors
def log1p_unit(e, out):
    """out = log(1 + e) for 0 <= e <= 1, to two units in the last place.

    log(1 + e) = 2 atanh(e / (2 + e)), or log 2 + log((1 + e) / 2) for the larger e, by the series of atanh.
    """
    for i in range(e.size):
        v = e[i]
        large = v > ROOT
        s = (v - 1.0 if large else v) / (v + 3.0 if large else v + 2.0)
        q = s * s
        p = q / 23.0 + ATANH[0]
        for c in ATANH[1:]:
            p = p * q + c
        out[i] = (2.0 * s + 2.0 * s * q * p) + (0.6931471805599453 if large else 0.0)
