"""Norms: points shrink by ulps until their norm, as computed, is at most the radius."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from extremal.rounding.base import BROKEN, Pairs, broken, rounded_inward, settled
from extremal.rounding.totals import exact_sum, within_radius
from extremal.sets.norms.balls import L1Ball, L2Ball, LinfBall, WeightedL1Ball
from extremal.sets.norms.base import NormBall
from extremal.sets.spectral.nuclear import NuclearBall, SpectralBall


@settled.register
def _(C: LinfBall, x: np.ndarray) -> np.ndarray:
    if C.centre is not None:
        return _shrunk(C, x)
    return np.clip(x, *rounded_inward(-C.radius, C.radius, x.dtype))


@settled.register
def _(C: L1Ball, x: np.ndarray) -> np.ndarray:
    return _shrunk(C, x) if C.centre is not None else within_radius(x, C.radius, np.zeros(()), np.asarray(C.radius))


Ball = NormBall | NuclearBall | SpectralBall


@settled.register(NormBall)
@settled.register(NuclearBall)
@settled.register(SpectralBall)
def _shrunk(C: Ball, x: np.ndarray) -> np.ndarray:
    """x, or the nearest point toward the centre whose norm fits, with some ulps to spare for other orders of summation."""
    eps, size = float(np.finfo(x.dtype).eps), math.prod(x.shape)
    spare = 1 - (4 + math.log2(size)) * eps
    most = float(rounded_inward(0.0, C.radius, x.dtype)[1]) * spare
    centre = C.centre if isinstance(C, NormBall) else None

    def norms(y: np.ndarray) -> list[float]:
        away = y if centre is None else y.astype(np.float64) - centre
        return [C.norm(away), *(_plain(C, y) if centre is None else ())]

    def scaled(c: float) -> np.ndarray:
        if c == 1:
            return x
        if centre is not None:
            return (c * (x - centre) + centre).astype(x.dtype)
        return x * (x.dtype.type(c) if isinstance(x, np.ndarray) else c)

    first = max(norms(x))
    factor, ulps = 1.0 if first <= most else most / first, 0
    while factor * (1 - ulps * eps) > 1 - 10 * BROKEN:
        y = scaled(factor * (1 - ulps * eps))
        if max(norms(y)) <= most:
            return y
        ulps = 2 * ulps + 1
    return x


def _plain(C: Ball, x: np.ndarray) -> Iterator[float]:
    """The norm as numpy computes it in x's own float type."""
    if isinstance(C, L2Ball):
        flat = x.reshape(-1)
        yield from (float(np.linalg.norm(flat)), float(np.sqrt((flat * flat).sum())))
    elif isinstance(C, WeightedL1Ball):
        yield float((C.weights.astype(x.dtype) * np.abs(x)).sum())
    elif isinstance(C, (NuclearBall, SpectralBall)) and x.dtype == np.float32 and isinstance(x, np.ndarray):
        yield float(np.linalg.norm(x, "nuc" if isinstance(C, NuclearBall) else 2))


@broken.register(NormBall)
@broken.register(NuclearBall)
@broken.register(SpectralBall)
def _(C: Ball, x: np.ndarray) -> Pairs:
    centre = C.centre if isinstance(C, NormBall) else None
    norm = exact_sum(np.abs(x)) if isinstance(C, L1Ball) and centre is None else C.norm(x if centre is None else x - centre)
    yield max(0.0, norm - C.radius), C.radius
