"""How far coefficients may go where a constraint has no bounds: between wide bounds, which grow while a solution touches them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from extremal.losses.meaning import ends_at_zero, margin_size
from extremal.losses.weighted import targets_of
from extremal.objectives.margins import MarginModel

FIRST_REACH = 100.0  # where a constraint has no bound of its own: so many times the size that a coefficient is likely to have
REACH_GROWTH = 30.0  # by which that is multiplied while the solution touches it
GROWTHS = 4  # so often at most
CONSTANT = 1e-8  # targets that spread less than this share of their size are constant up to rounding


def reaches(f: MarginModel) -> Iterator[np.ndarray]:
    """Bounds to try one after the other, for each coefficient.

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
    """Whether f tells all classes apart, so that coefficients that are farther out are better without end."""
    return ends_at_zero(f.loss) and value <= atol


def sizes(f: MarginModel) -> np.ndarray:
    """How large coefficients are likely to be: the spread of the targets, as margins have it, over that of each feature."""
    data: Any = f.data  # rows in memory
    w = np.ones(f.n) if f.weights is None else f.weights.astype(np.float64)
    means, squares = data.moments(w / f.n)
    spread = np.sqrt(np.maximum(squares - np.square(means), 1e-12 * squares) if not f.is_finite_sum else squares)
    each = _spread(f) / np.where(spread > 0, spread, 1.0)
    return each if len(f.shape) == 1 else np.broadcast_to(each[:, None], f.shape).copy()


def _spread(f: MarginModel) -> float:
    """How far margins are likely to go: of a log-odds some units, of a log-mean its own, of a mean that of the targets."""
    w, y = f.weights, targets_of(f.loss, f.y).reshape(f.n, -1).astype(np.float64)
    said = margin_size(f.loss, y)
    if said is not None:
        return said
    whole = float(np.sqrt(np.average(np.square(y), axis=0, weights=w).max()))
    y = y if f.is_finite_sum else y - np.average(y, axis=0, weights=w)
    return max(float(np.sqrt(np.average(np.square(y), axis=0, weights=w).max())), CONSTANT * whole) or 1.0
