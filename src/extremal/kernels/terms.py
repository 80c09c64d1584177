"""The losses over arrays of margins, in vector loops.

These loops have their own exp and log, which compute several entries at once; libm's take one at a time. A loss is a
small integer and one number here: see extremal.losses, and `extremal.losses.margin.compiled`.
"""

from __future__ import annotations

import math

import numpy as np

from extremal.kernels.arguments import HUBER, LOGISTIC, NONLINEAR
from extremal.kernels.jit import elementwise, summing, vectors

SIZE = 1024  # margins per block: their data stay in the nearest cache
PER_LOG2 = 1.4426950408889634  # 1 / log 2
LOG2_HIGH, LOG2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # log 2 in two parts: k times the first is exact
ROUND = 6755399441055744.0  # 1.5 2^52: adding it rounds a number to an integer, which the last bits then hold
LAST = 708.0  # exp(-708) is the smallest power that is not subnormal
ROOT = 0.41421356237309503  # sqrt 2 - 1
LEADING = 1.0 / math.factorial(13)
TAYLOR = tuple(1.0 / math.factorial(k) for k in range(12, -1, -1))  # of exp, after 1/13!; loops over a tuple are unrolled
ATANH = tuple(1.0 / k for k in range(21, 1, -2))  # after 1/23


@elementwise
def exp_minus(a):
    """exp(-a) for a >= 0, to one unit in the last place; a above 708 counts as 708.

    exp(-a) = 2^k exp(r) with |r| <= log 2 / 2, and a Taylor polynomial of degree 13 for exp(r).
    """
    t = -(LAST if a > LAST else a)
    shifted = np.float64(t * PER_LOG2 + ROUND)
    k = shifted - ROUND
    r = (t - k * LOG2_HIGH) - k * LOG2_LOW
    p = r * LEADING + TAYLOR[0]
    for c in TAYLOR[1:]:
        p = p * r + c
    power = np.int64((shifted.view(np.int64) + 1023) << 52)
    return p * power.view(np.float64)


@vectors
def exp_negative(a, out):
    """out = exp(-a) for a >= 0: see `exp_minus`."""
    for i in range(a.size):
        out[i] = exp_minus(a[i])


@vectors
def log1p_unit(e, out):
    """out = log(1 + e) for 0 <= e <= 1, to two units in the last place.

    log(1 + e) = 2 atanh(e / (2 + e)), or log 2 + log((1 + e) / 2) for larger e, by the series of atanh.
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


@elementwise
def derivatives(loss, parameter, room, points, m):
    """room[t, i] = phi'(z, y) for z = room[t, i] and y = room[2, i], i < m; for the first points, one or two."""
    for t in range(points):
        if loss == LOGISTIC:
            for i in range(m):
                y = room[2, i]  # |y| is the weight of the row
                z = room[t, i] if y > 0.0 else -room[t, i]
                e = exp_minus(abs(z))
                room[t, i] = -y * (e if z > 0.0 else 1.0) / (1.0 + e)
        elif loss == NONLINEAR:
            for i in range(m):
                z = room[t, i]
                e = exp_minus(abs(z))
                low, high = e / (1.0 + e), 1.0 / (1.0 + e)
                one = room[2, i] > 0.5
                p, rest = (high, low) if (z > 0.0) == one else (low, high)
                room[t, i] = 2.0 * p * p * rest if one else -2.0 * p * p * rest
        elif loss == HUBER:
            for i in range(m):
                room[t, i] = min(max(room[t, i] - room[2, i], -parameter), parameter)
        else:
            for i in range(m):
                room[t, i] -= room[2, i]


@elementwise
def bends(loss, parameter, room, m):
    """room[1] = phi'(z, y), room[2] = phi'' and room[3] = a majorant of |phi''|, for z = room[0] and y = room[4], entry by entry.

    Most loops write one row, so that they run for several entries at once.
    """
    if loss in (LOGISTIC, NONLINEAR):
        for i in range(m):
            room[3, i] = exp_minus(abs(room[0, i]))
    if loss == LOGISTIC:
        for i in range(m):
            e, y = room[3, i], room[4, i]  # |y| is the weight of the row
            room[1, i] = -y * (e if y * room[0, i] > 0.0 else 1.0) / (1.0 + e)
        for i in range(m):
            e = room[3, i]
            room[2, i] = abs(room[4, i]) * e / ((1.0 + e) * (1.0 + e))
        for i in range(m):
            room[3, i] = room[2, i]
    elif loss == NONLINEAR:
        for i in range(m):  # p = |y - q| for q = 1 / (1 + exp z), y in {0, 1}
            e = room[3, i]
            low, high = e / (1.0 + e), 1.0 / (1.0 + e)
            room[2, i] = high if (room[0, i] > 0.0) == (room[4, i] > 0.5) else low
        for i in range(m):
            p = room[2, i]
            room[1, i] = (2.0 if room[4, i] > 0.5 else -2.0) * p * p * other_share(room, i)
        for i in range(m):
            p, rest = room[2, i], other_share(room, i)
            room[2, i], room[3, i] = 2.0 * p * p * rest * (2.0 * rest - p), 2.0 * p * p * rest * (1.0 + rest)
    elif loss == HUBER:
        for i in range(m):
            r = room[0, i] - room[4, i]
            room[1, i], room[2, i], room[3, i] = min(max(r, -parameter), parameter), 1.0 if abs(r) <= parameter else 0.0, 1.0
    else:
        for i in range(m):
            room[1, i], room[2, i], room[3, i] = room[0, i] - room[4, i], 1.0, 1.0


@elementwise
def other_share(room, i):
    """1 - p without cancellation, from e = room[3] and p = room[2]: the other of e / (1 + e) and 1 / (1 + e)."""
    e = room[3, i]
    return e / (1.0 + e) if room[2, i] >= 0.5 else 1.0 / (1.0 + e)


@vectors
def terms(loss, parameter, z, y, valued, c, h):
    """Return sum_i phi(z_i, y_i) if ``valued``; fill c_i = phi'(z_i, y_i) and h_i = phi''(z_i, y_i), unless these are empty."""
    total, room = 0.0, np.empty((3, SIZE))
    for first in range(0, z.size, SIZE):
        last = min(first + SIZE, z.size)
        m = last - first
        zs, ys, e = z[first:last], y[first:last], room[1, :m]
        cs, hs = c[first : min(last, c.size)], h[first : min(last, h.size)]
        if loss in (LOGISTIC, NONLINEAR):
            size = room[0, :m]
            for i in range(m):
                size[i] = abs(zs[i])
            exp_negative(size, e)
        if loss == LOGISTIC:
            if valued:
                log1p_unit(e, room[2])
                total += _hinges(zs, ys, room[2])
            _logistic(zs, ys, e, cs, hs)
        elif loss == NONLINEAR:
            total += _sigmoids(zs, ys, e, valued, cs, hs)
        elif loss == HUBER:
            total += _hubers(zs, ys, parameter, valued, cs, hs)
        else:
            total += _squares(zs, ys, valued, cs, hs)
    return total


@summing
def _hinges(z, y, rest):
    """The sum of |y| log(1 + exp(-sign(y) z)) = max(0, -y z) + |y| log(1 + exp(-|z|)); ``rest`` holds the last logs."""
    total = 0.0
    for i in range(z.size):
        total += max(0.0, -y[i] * z[i]) + abs(y[i]) * rest[i]
    return total


@vectors
def _logistic(z, y, e, c, h):
    """phi' = -y / (1 + exp(sign(y) z)) and phi'' = |y| e / (1 + e)^2 from e = exp(-|z|); |y| is the weight of the row."""
    if c.size > 0:
        for i in range(z.size):
            c[i] = -y[i] * (e[i] if y[i] * z[i] > 0.0 else 1.0) / (1.0 + e[i])
    if h.size > 0:
        for i in range(z.size):
            h[i] = abs(y[i]) * e[i] / ((1.0 + e[i]) * (1.0 + e[i]))


@vectors
def _sigmoids(z, y, e, valued, c, h):
    """p^2, 2 (2 y - 1) p^2 (1 - p) and 2 p^2 (1 - p) (2 - 3 p) for p = |y - q|, q = 1 / (1 + exp z), y in {0, 1}."""
    total = 0.0
    for i in range(z.size):
        low, high = e[i] / (1.0 + e[i]), 1.0 / (1.0 + e[i])
        one = y[i] > 0.5
        p, rest = (high if (z[i] > 0.0) == one else low), (low if (z[i] > 0.0) == one else high)
        if valued:
            total += p * p
        if c.size > 0:
            c[i] = (2.0 if one else -2.0) * p * p * rest
        if h.size > 0:
            h[i] = 2.0 * p * p * rest * (2.0 * rest - p)
    return total


@vectors
def _hubers(z, y, delta, valued, c, h):
    total = 0.0
    for i in range(z.size):
        r = z[i] - y[i]
        m = min(abs(r), delta)
        if valued:
            total += m * (abs(r) - 0.5 * m)
        if c.size > 0:
            c[i] = min(max(r, -delta), delta)
        if h.size > 0:
            h[i] = 1.0 if abs(r) <= delta else 0.0
    return total


@vectors
def _squares(z, y, valued, c, h):
    total = 0.0
    for i in range(z.size):
        r = z[i] - y[i]
        if valued:
            total += 0.5 * r * r
        if c.size > 0:
            c[i] = r
        if h.size > 0:
            h[i] = 1.0
    return total


@vectors
def line(loss, parameter, z, dz, t, y, valued, c, h):
    """The same at the margins z + t dz, or at z if ``dz`` is empty: the form for Python, with arrays that it may not change."""
    total, room = 0.0, np.empty(SIZE)
    for first in range(0, z.size, SIZE):
        last = min(first + SIZE, z.size)
        at = room[: last - first]
        for i in range(at.size):
            at[i] = z[first + i] + t * dz[first + i] if dz.size > 0 else z[first + i]
        cs, hs = c[first : min(last, c.size)], h[first : min(last, h.size)]
        total += terms(loss, parameter, at, y[first:last], valued, cs, hs)
    return total
