"""Products with the rows that a block of x selects: parts of gradients, and the change of margins by a step of one block."""

from __future__ import annotations

import numpy as np

from extremal import checks
from extremal.data.rows import InMemory
from extremal.objectives.base import PARTS
from extremal.objectives.margins import MarginModel
from extremal.points.composed import Place


def has_parts(f: object) -> bool:
    """Whether f knows a part of its gradient at the cost of this part (`InParts`); linear models need rows in memory for it.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> has_parts(ex.QuadraticModel(np.eye(2))), has_parts(ex.KarcherMean([np.eye(2)]))
    (True, False)
    """
    return not checks.lacks(f, *PARTS) and (not isinstance(f, MarginModel) or isinstance(f.data, InMemory))


def product_part(rows: InMemory, place: Place, v: np.ndarray) -> np.ndarray:
    """(A v)[place]: products with the rows of A that the place selects, or with one column of v."""
    if len(place) == 2:
        return rows.dot(np.ascontiguousarray(v[:, place[1]]))
    return rows.dot(v, _rows_of(place, rows)).reshape(_shape_of(place, v))


def part_product(rows: InMemory, place: Place, way: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A'u, where u[place] = way and u = 0 elsewhere: products with the rows of A that the place selects."""
    if len(place) == 2:
        out = np.zeros(shape)
        out[:, place[1]] = rows.tdot(way)
        return out
    idx = _rows_of(place, rows)
    return rows.tdot(way.reshape(len(idx), *shape[1:]), idx)


def _rows_of(place: Place, rows: InMemory) -> np.ndarray:
    (at,) = place
    return np.array([at]) if isinstance(at, int) else np.arange(at.start, at.stop)


def _shape_of(place: Place, v: np.ndarray) -> tuple[int, ...]:
    return v.shape[1:] if isinstance(place[0], int) else (-1, *v.shape[1:])
