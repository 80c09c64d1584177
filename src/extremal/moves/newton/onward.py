"""From the solution over one set to the solution over the next, by a Hessian that is the same everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from extremal.gradients.base import Estimate, sample_of, value_of
from extremal.moves.newton.grown import grown
from extremal.moves.newton.model import Memory
from extremal.moves.newton.spikes import coordinates, spikes_of, spread_over
from extremal.objectives.column_blocks import Slice
from extremal.objectives.expansion import Expansion
from extremal.quadratic.solver import Quadratic
from extremal.sets.base import ConvexSet
from extremal.sets.shared import least_products
from extremal.support.values import changed

ALMOST = 0.8  # coordinates enter whose vertices promise this share of the best vertex,
ENTERING = 1, 20  # at most this multiple of those in use, and at least this number
SPARE_COLUMNS = 1.5, 50  # a Hessian of more columns serves up to this multiple of the columns that are wanted, plus this number
EXACT = 0.1  # share of the accuracy of the run to which the quadratic problem is solved


def onward(
    f: Any, C: ConvexSet, x: np.ndarray, estimate: Estimate, memory: Any, tol: float, atol: float
) -> tuple[np.ndarray, Any] | None:
    """The minimiser over C of a quadratic f, by its gradient at x, on the coordinates in use and the best others.

        argmin over u in C, u_j = 0 for j outside W, of  <g, u - x> + (u - x)' H (u - x) / 2

    Return the point and the model of f for the next step. None unless f is quadratic and each vertex of C has one entry. The
    Hessian is that of an `Expansion`, or that of the ``memory`` and of new columns. No oracle is asked.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> from extremal.gradients.base import Looked
    >>> f = ex.LinearModel(ex.Squared(), np.eye(3), np.array([3.0, 1.5, 0.1])).expansion()
    >>> x = np.array([1.5, 0.0, 0.0])  # the solution over |x|_1 <= 1.5
    >>> value, g = f.look(x)
    >>> onward(f, ex.L1Ball(2.0), x, Looked(g, True, value, x, f), None, 1e-9, 0.0)[0].round(9)
    array([1.75, 0.25, 0.  ])
    """
    spikes, value = spikes_of(C), value_of(estimate)
    if spikes is None or value is None or not estimate.exact:
        return None
    g = estimate.g
    promise, used = -least_products(spikes, g), x.nonzero()[0]
    W = coordinates(promise, used, ALMOST * float(promise.max()), max(ENTERING[0] * len(used), ENTERING[1]))
    model = sample_of(estimate)
    found = (model.on_columns(W), None) if isinstance(model, Expansion) else _known(f, memory, W)
    if found is None:
        return None
    part, memory = found
    H = part.hessian(x) if memory is None else memory.H
    place, scale, w = spread_over(x[part.W], spikes, part.W)
    q = Quadratic.over_weights(H, g[part.W], x[part.W], place, scale)
    new = np.zeros_like(x)
    new[part.W] = q.point(q.minimise(w, EXACT * (tol * abs(value) + atol)))
    return new, memory


def _known(f: Any, memory: Any, W: np.ndarray) -> tuple[Slice, Memory] | None:
    """The coordinates W, or more, and a model of f with their Hessian."""
    if not isinstance(memory, Memory) or not memory.part.constant:
        return None
    both, most = np.union1d(memory.part.W, W), SPARE_COLUMNS[0] * len(W) + SPARE_COLUMNS[1]
    W = both if len(both) <= most else W
    part = memory.part if np.array_equal(W, memory.part.W) else f.on_columns(W)
    H = memory.H if part is memory.part else grown(memory, part)
    H = part.hessian(f.inner.zero) if H is None else H
    return (part, changed(memory, part=part, H=H, width=0.0)) if isinstance(H, np.ndarray) else None
