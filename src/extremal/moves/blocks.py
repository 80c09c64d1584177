"""Block-coordinate Frank-Wolfe steps over products of sets (Lacoste-Julien, Jaggi, Schmidt, Pletscher 2013, Algorithm 3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, cast

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.base import Estimate, KnowsParts, Shift, SomeGradient, Steps
from extremal.moves.base import MoveOracle, PartMove, Point
from extremal.objectives.base import BLOCKS, InParts, Objective, Sampler, Segment, is_factored
from extremal.points.composed import Chord, Place
from extremal.points.iterates import freeze, toward
from extremal.points.vertex import SparseVertex, dot64
from extremal.sets.base import ConvexSet
from extremal.sets.made.blocks import Blocked
from extremal.steps.base import Direction, Step, take

ORDERS = ("cyclic", "random", "gaps")
FINE = 2**53  # a uniform number is one of so many
FRESH_PASSES = 10  # passes after which gaps of blocks are computed anew, unless the estimator says when


@dataclass(frozen=True)
class BlockPoint(Point):
    """The iterate, the numbers to draw blocks with, and the gap of each block when it was last computed."""

    sampler: Any = None
    gaps: np.ndarray | None = None
    fresh: int = 0  # the iteration at which all of these gaps were computed


@dataclass(frozen=True)
class Blockwise(PartMove):
    """A Frank-Wolfe step of one block of x, over a `Product`, `Rows` or `Columns` of sets; the other blocks stay.

        s_i = lmo_i(g_i),   x_i <- x_i + eta (s_i - x_i)

    One oracle call of one block per step, counted in ``calls.block_lmos``. Any estimator gives g, but only its part g_i is read;
    with `Partial` nothing else is computed. Rules see the direction that is s_i - x_i on the block and 0 elsewhere. The gap of x
    is the sum of the gaps of the blocks, <g_i, x_i - s_i>, so a certificate asks the oracles of all blocks.

    With "gaps", block i has the probability gap_i / sum_j gap_j, by the gaps that the blocks had when they were last chosen. All
    of them are computed anew every 10 passes, from one call of the oracle of the whole set, which counts in ``calls.lmos``; with
    `Partial`, whenever it computes the whole gradient. Memory: one gap per block.

    Parameters
    ----------
    order : "random", "cyclic" or "gaps"
        How blocks are chosen: uniformly at random, one after another, or by their gaps.
    seed : int, optional
        For random choices. Default: the seed of the run.

    References
    ----------
    Lacoste-Julien, Jaggi, Schmidt, Pletscher (2013), Block-coordinate Frank-Wolfe optimization for structural SVMs, ICML,
    arXiv:1207.4747. Beck, Pauwels, Sabach (2015), The cyclic block conditional gradient method, arXiv:1502.03716. Osokin et al.
    (2016), Minding the gaps for block Frank-Wolfe optimization of structured SVMs, ICML, arXiv:1605.09346.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(4), np.array([1.0, 3.0, -1.0, -3.0]))
    >>> C = ex.Product(ex.L1Ball(1.0, shape=2), ex.L1Ball(2.0, shape=2))
    >>> method = ex.Method(ex.gradients.Full(), ex.steps.LineSearch(), Blockwise("cyclic"))
    >>> r = ex.minimize(f, C, method, max_iter=2, tol=0)
    >>> r.x, r.calls.block_lmos
    (array([ 0.,  1.,  0., -2.]), 2)
    """

    order: str = "random"
    seed: int | None = None

    def __post_init__(self):
        checks.one_of("`Blockwise(order=...)`", self.order, ORDERS)
        if self.seed is not None:
            checks.whole("Blockwise", "seed", self.seed, 0)

    def seeded(self, seed: int) -> Self:
        return self if self.order == "cyclic" or self.seed is not None else replace(self, seed=seed)

    def check(self, gradient: SomeGradient, f: Objective, C: ConvexSet) -> None:
        super().check(gradient, f, C)
        check_blocked("Blockwise", C)
        if C.matrix_free and is_factored(f):
            raise InputError(f"Blockwise needs iterates that are arrays, got matrices in factors over {C}")

    def start(self, x0: np.ndarray) -> BlockPoint:
        return BlockPoint(x0, x0, sampler=Sampler(FINE, self.seed or 0))

    def advance(self, k: int, f: Objective, C: MoveOracle, point: BlockPoint, estimate: Estimate, step: Step) -> BlockPoint:
        """One oracle call of one block, one step."""
        gaps, fresh = self._gaps(k, C, point, estimate) if self.order == "gaps" else (None, 0)
        i = self._chosen(k, C.n_blocks(), point.sampler, gaps)
        place, part = C.block(i)
        x_i, g_i = (a.reshape(part.shape) for a in (point.x[place], _part(f, estimate, place)))
        s_i = C.block_lmo(i, g_i)  # s_i = argmin <g_i, s_i>
        gap = part.gap(x_i, g_i, s_i)  # <g_i, x_i - s_i>
        way = (s_i.to_array() - x_i).reshape(point.x[place].shape)
        x, steps = point.x.copy(), ()
        if way.any():  # otherwise the block is this vertex
            direction = BlockDirection(f, point.x, estimate, place, way, gap)
            eta = take(step, k, direction)
            x[place] = toward(x_i, s_i, eta).reshape(way.shape)  # x_i <- x_i + eta (s_i - x_i)
            steps = direction.shifts(eta)
        return BlockPoint(freeze(x), x, steps, sampler=point.sampler, gaps=_put(gaps, i, gap), fresh=fresh)

    def _gaps(self, k: int, C: MoveOracle, point: BlockPoint, estimate: Estimate) -> tuple[np.ndarray, int]:
        """The gaps of all blocks, and when they were computed: anew from a full gradient if there is one and they are old."""
        old = estimate.exact if isinstance(estimate, KnowsParts) else k - point.fresh >= FRESH_PASSES * C.n_blocks()
        if point.gaps is not None and not old:
            return point.gaps, point.fresh
        way = point.x - C.lmo(estimate.g).to_array()
        return np.array([_gap(way, estimate.g, C.block(i)[0]) for i in range(C.n_blocks())]), k

    def _chosen(self, k: int, m: int, sampler: Sampler, gaps: np.ndarray | None) -> int:
        if self.order == "cyclic":
            return k % m
        u = int(sampler.rows(k, 1, stream=BLOCKS)[0]) / FINE
        if gaps is None or not gaps.any():
            return int(u * m)
        total = np.cumsum(gaps)
        return min(int(np.searchsorted(total, u * total[-1], side="right")), m - 1)


class BlockDirection(Direction):
    """The step of one block, in the form that a rule sees."""

    def __init__(self, f: Objective, x: np.ndarray, estimate: Estimate, place: Place, way: np.ndarray, gap: float):
        super().__init__(f, x, estimate, Chord(0, ()))
        self.place, self.way, self.known = place, way, gap

    @cached_property
    def d(self) -> Chord:
        where = np.arange(self.x.size).reshape(self.x.shape)[self.place]
        return Chord(0, ((1, SparseVertex(where.reshape(-1), self.way.reshape(-1), self.x.shape)),))

    @cached_property
    def gap(self) -> float:
        return self.known

    @cached_property
    def norm2(self) -> float:
        return dot64(self.way, self.way)

    @cached_property
    def margins(self) -> Any:
        """The change of the margins by the whole step."""
        return cast(InParts, self.f).part_margins(self.place, self.way)

    def segment(self) -> Segment:
        """f along the step, from margins if the estimator keeps them."""
        if not isinstance(self.estimate, KnowsParts):
            return self.f.along(self.x, self.d)
        return cast(InParts, self.f).between(self.estimate.z, self.margins)

    def shifts(self, eta: float) -> Steps:
        """The step, for an estimator that keeps margins."""
        if not isinstance(self.estimate, KnowsParts):
            return ()
        return cast(Steps, ((eta, Shift(self.place, self.way, self.margins)),))


def check_blocked(call: str, C: ConvexSet) -> None:
    """Refuse a set that is no product."""
    if not isinstance(C, Blocked):
        raise InputError(f"`{call}` needs a set made of blocks, such as Product(...), Rows(...) or Columns(...), got {C}")


def _part(f: Objective, estimate: Estimate, place: Place) -> np.ndarray:
    return estimate.part(f, place) if isinstance(estimate, KnowsParts) else estimate.g[place]


def _gap(way: np.ndarray, g: np.ndarray, place: Place) -> float:
    return max(0.0, dot64(way[place], g[place]))


def _put(gaps: np.ndarray | None, i: int, gap: float) -> np.ndarray | None:
    """The gaps with a new one at i, as a new array."""
    if gaps is None:
        return None
    new = gaps.copy()
    new[i] = gap
    return new
