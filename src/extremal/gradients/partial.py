"""Parts of the full gradient, from margins that are kept: for moves of one block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from extremal import checks
from extremal.gradients.base import Facts, Gradient, KnowsParts, Looked, Shift, Steps
from extremal.objectives.base import PARTS, Sampler
from extremal.points.composed import Place


@dataclass(frozen=True)
class PartialEstimate(Looked, KnowsParts):
    """The margins z of x; g and the value are those of the last point where the whole gradient was computed."""

    age: int = 0  # steps since then

    def part(self, f: Any, place: Place) -> np.ndarray:
        return self.g[place] if self.exact else f.part(self.z, place)


@dataclass(frozen=True)
class Partial(Gradient[PartialEstimate]):
    """The part of grad f(x) that belongs to one block of x, at the cost of this part.

        z = the margins of x,   z <- z + eta (A (s - x) on the block),   grad f(x)[block] from z

    The estimate is exact, but only the asked part of it is computed. Every ``passes`` passes over the blocks, margins and the
    whole gradient are computed anew. So rounding does not add up, and the gap of that point is a certificate without further
    gradients. f is a `LinearModel` with rows in memory, or a `QuadraticModel`; the move is `Blockwise`.

    A part counts as its share of the coordinates: the parts of all blocks are n component gradients. Memory: the margins, and a
    copy of the rows of a `LinearModel` by columns.

    Parameters
    ----------
    blocks : int
        Number of blocks, which are a pass.
    passes : int
        Passes between two full gradients.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(4), np.array([1.0, 3.0, -1.0, -3.0]))
    >>> C = ex.Product(ex.L1Ball(1.0, shape=2), ex.L1Ball(2.0, shape=2))
    >>> method = ex.Method(Partial(blocks=2), ex.steps.LineSearch(), ex.moves.Blockwise("cyclic"))
    >>> r = ex.minimize(f, C, method, max_iter=4, tol=0)
    >>> r.x, r.calls.grads                                       # one full gradient, and three halves
    (array([ 0.,  1.,  0., -2.]), 10)
    """

    blocks: int
    passes: int = 10

    def __post_init__(self):
        for name in ("blocks", "passes"):
            checks.fix(self, **{name: checks.whole("Partial", name, getattr(self, name), 1)})

    def facts(self, n: int) -> Facts:
        return Facts(start=n, per_step=n * (1 + 1 / self.passes) / self.blocks, needs=PARTS, parts=True, one_point=True)

    def init(self, f: Any, x: np.ndarray, sampler: Sampler) -> PartialEstimate:
        value, g, z = f.value_grad_margins(x)
        return PartialEstimate(g, True, value, z, None)

    def update(
        self, f: Any, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: PartialEstimate, sampler: Sampler
    ) -> PartialEstimate:
        if state.age + 1 >= self.passes * self.blocks:
            return self.init(f, x, sampler)
        z = state.z
        for eta, shift in cast(tuple[tuple[float, Shift], ...], steps):  # one, or none if the block stays
            z = z + eta * shift.margins
        return PartialEstimate(state.g, False, state.value, z, None, age=state.age + 1)
