"""Bounds on coefficients for constraints without bounds: wide at first, and wider while a solution touches them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from extremal.data.kept import Derived, Uniform
from extremal.data.rows import RowData
from extremal.losses.base import Loss
from extremal.losses.meaning import ends_at_zero, margin_size
from extremal.losses.weighted import targets_of, weights_of
from extremal.objectives.margins import MarginModel
from extremal.objectives.works import Summed

FIRST_REACH = 100.0  # first bound, in multiples of the likely size of a coefficient
REACH_GROWTH = 30.0  # growth factor of the bound while the solution touches it
GROWTHS = 4  # maximum number of bounds to try
CONSTANT = 1e-8  # targets whose spread is below this share of their size are constant up to rounding


def reaches(f: MarginModel) -> Iterator[np.ndarray]:
    """Bounds to try in turn, for each coefficient.

    Examples
    --------
    >>> import extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.array([[1.0], [-1.0]]), [2.0, -2.0])
    >>> [float(reach[0]) for reach in reaches(f)][:2]
    [200.0, 6000.0]
    """
    reach = FIRST_REACH * sizes(f)
    for _ in range(GROWTHS):
        yield reach
        reach = REACH_GROWTH * reach


def told_apart(f: MarginModel, value: float, atol: float) -> bool:
    """Whether f separates all classes, so that larger coefficients are always better."""
    return ends_at_zero(f.loss) and value <= atol


def sizes(f: MarginModel) -> np.ndarray:
    """The likely size of coefficients: the spread of the margins, derived from the targets, over the spread of each feature."""
    data, w = cast(RowData, f.data), f.weights
    shares: Any = Uniform((f.n,), 1.0 / f.n) if w is None else Derived(np.divide, (w,), (f.n,), (f.n,))
    means, squares = data.moments(shares)
    spread = np.sqrt(np.maximum(squares - np.square(means), 1e-12 * squares) if not f.is_finite_sum else squares)
    each = _spread(f) / np.where(spread > 0, spread, 1.0)
    return each if len(f.shape) == 1 else np.broadcast_to(each[:, None], f.shape).copy()


def _spread(f: MarginModel) -> float:
    """The likely range of margins: some units for log-odds, its own range for a log-mean, that of the targets for a mean."""
    said = margin_size(f.loss, _extremes(f))
    if said is not None:
        return said
    total, sums, squares = f.summed(_moments, f.y, rest=(f.loss, 0.0))
    whole = float(np.sqrt((squares / total).max()))
    spread = squares if f.is_finite_sum else f.summed(_moments, f.y, rest=(f.loss, sums / total))[2]
    return max(float(np.sqrt((spread / total).max())), CONSTANT * whole) or 1.0


def _extremes(f: MarginModel) -> np.ndarray:
    """The smallest and the largest target of each part."""
    return np.concatenate([found for (found,) in f.data.parts.answers(Summed(_ends, (f.y,), (f.loss,)))[1]])


def _ends(y: np.ndarray, loss: Loss) -> tuple[np.ndarray]:
    y = targets_of(loss, y)
    return (np.array([y.min(), y.max()], np.float64),)


def _moments(y: np.ndarray, loss: Loss, about: Any) -> tuple[float, np.ndarray, np.ndarray]:
    """The sum of the weights, and the weighted sums of the targets minus ``about`` and of their squares."""
    w, y = weights_of(loss, y), targets_of(loss, y).reshape(len(y), -1).astype(np.float64) - about
    if w is None:
        return float(len(y)), y.sum(axis=0), np.square(y).sum(axis=0)
    return float(w.sum(dtype=np.float64)), w @ y, w @ np.square(y)
