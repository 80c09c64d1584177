"""Second-order corrective Frank-Wolfe: Newton steps over the part of the set that is in use."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from extremal import checks
from extremal.gradients.expanded import Expanded
from extremal.gradients.full import Full, Growing
from extremal.methods.method import Budget, Method, WithCard
from extremal.moves.base import SomeMove
from extremal.moves.newton.spikes import SpikeNewton, spikes_of
from extremal.objectives.base import Objective
from extremal.objectives.column_blocks import EXPENSIVE, is_quadratic
from extremal.objectives.expansion import worth_expanding
from extremal.objectives.margins import has_slices
from extremal.sets.base import ConvexSet, Spikes
from extremal.steps.schedules import FullStep

ROW_COLUMNS = 400  # largest number of coordinates with quadratic problems over rows
WIDER = 2  # smallest number of columns per row at which samples of rows are not worth their cost
SLABS = 4  # the first sample is smaller by this factor if rows are read slab by slab,
STREAMED = 2**24  # for at least this many stored entries: with fewer, reads cost less than the wider Hessians of slabs
ALL_ROWS, GROWING = Growing(1), Growing()  # the usual estimators
SMALL = 2**21  # up to this many rows times columns squared, all rows take less time than the steps that a sample costs


@dataclass(frozen=True)
class NewtonFW(WithCard):
    """Second-order corrective Frank-Wolfe: a Newton step over the vertices in use and the best new ones.

        u = argmin of <g, u - x> + (u - x)' H (u - x) / 2  over the hull of vertices,   x <- x + t (u - x)

    There are few iterations. Each takes a full gradient (n component gradients) and at times a Hessian (n more), and has a
    certificate once all rows are in. Over l1 balls and simplices the Hessian covers the coordinates in use (the move
    `SpikeNewton`, any d), over boxes those between the bounds (`BoxNewton`, any d), over group balls the groups in use
    (`ProjectedNewton`, any d). Over other sets it covers all d columns, for some hundreds of them. Then a dual active-set
    method solves the quadratic problem under linear constraints (`RowNewton`), and linear minimisations over the rest
    (`AtomNewton`). For linear models with rows in memory and a loss with second derivatives, the first steps read a sample of
    the rows that grows to all (`Growing`), unless the data are small or have twice as many columns as rows. If a loss is
    quadratic and columns are few, one Hessian serves the whole run, or the whole path (`Expanded`). For other sums the method
    reads full gradients, and learns the Hessian of all coordinates from them (BFGS). f never increases once all rows are in,
    convex or not.

    Parameters
    ----------
    parts : int
        The first sample has n / parts rows; 1 reads all rows from the start.

    References
    ----------
    Liu, Cevher, Tran-Dinh (2022), A Newton Frank-Wolfe method for constrained self-concordant minimization, J. Global Optim.;
    Carderera, Pokutta (2020), Second-order conditional gradient sliding, arXiv:2002.08907.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((500, 20))
    >>> y = np.where(A[:, 0] - A[:, 1] + rng.standard_normal(500) > 0, 1.0, -1.0)
    >>> f = ex.LinearModel(ex.Logistic(), A, y)
    >>> r = ex.minimize(f, ex.L1Ball(1.5), method=ex.NewtonFW(), tol=1e-8)
    >>> r.converged, r.n_iter < 10
    (True, True)
    """

    parts: int = 16

    def __post_init__(self):
        checks.whole("NewtonFW", "parts", self.parts, 1)

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        return self.made(f, budget, has_slices(f), newton_move(C)[0]).prepare(f, C, budget)

    def made(self, f: Any, budget: Budget, curved: bool, move: SomeMove) -> Method:
        """The parts, for a caller that knows whether f has second derivatives on columns, and which move fits the set."""
        if not curved:
            return Method(Full(), FullStep(), move)
        if _expands(f, budget.sets):
            return Method.of(Expanded(), FullStep(), move)
        small = not (move.atomic or _on_some_columns(move)) and f.n * float(math.prod(f.shape)) ** 2 <= SMALL
        whole = budget.warm or small or not f.by_rows  # a sample would waste a good starting point
        if isinstance(move, SpikeNewton) and f.by_rows and _is_wide(f):
            move, whole = replace(move, growth=(1, math.isqrt(f.data.shape[1]))), True
        if not whole and (spikes := self.streamed(f, move)) is not None:
            from extremal.gradients.streamed import Streamed  # on use: few rows are in shards

            return Method.of(Streamed(SLABS * self.parts, spikes=spikes), FullStep(), move)
        growing = GROWING if self.parts == GROWING.parts else Growing(self.parts)
        return Method.of(ALL_ROWS if whole else growing, FullStep(), move)

    def streamed(self, f: Any, move: SomeMove) -> Spikes | None:
        """The vertices of the set, if a cold start reads the rows slab by slab: many in shuffled shards; otherwise None."""
        spikes = move.spikes if isinstance(move, SpikeNewton) and self.parts > 1 else None
        return spikes if spikes is not None and f.in_slabs and f.data.nnz >= STREAMED and not _expands(f) else None


def _expands(f: Any, sets: int = 1) -> bool:
    """Whether f is quadratic, and its Hessian of all columns is soon cheaper than passes over the rows."""
    return is_quadratic(f) and worth_expanding(f, sets)


USUAL = NewtonFW()


def _is_wide(f: Any) -> bool:
    """Whether a sample says little about most columns, and whether passes are expensive, beside Hessians of some columns."""
    return not is_quadratic(f) and f.data.shape[1] >= max(WIDER * f.n, EXPENSIVE)


def _on_some_columns(move: SomeMove) -> bool:
    """Whether the Hessians of a move have the columns in use only."""
    if isinstance(move, SpikeNewton):
        return True
    from extremal.moves.newton.box import BoxNewton  # here and below, moves are imported on use

    return isinstance(move, BoxNewton)


def newton_move(C: ConvexSet) -> tuple[SomeMove, str]:
    """The Newton step for a set, by its vertices and bounds; and the reason.

    Examples
    --------
    >>> import extremal as ex
    >>> newton_move(ex.Box(0.0, 1.0))
    (BoxNewton(), 'bounds: Newton steps on the coordinates between them')
    """
    if (spikes := spikes_of(C)) is not None:
        return SpikeNewton(spikes), "vertices of one entry: Newton steps on the coordinates in use"
    if hasattr(C, "limits"):  # as `Bounded` asks, in less time
        from extremal.moves.newton.box import BoxNewton

        return BoxNewton(), "bounds: Newton steps on the coordinates between them"
    if C.shape is not None and math.prod(C.shape) <= ROW_COLUMNS and C.inequalities() is not None:
        from extremal.moves.newton.rows import RowNewton

        return RowNewton(C), "linear constraints: Newton steps, with quadratic problems solved under the rows themselves"
    from extremal.moves.newton.atoms import AtomNewton
    from extremal.sets.norms.groups import GroupBall

    if isinstance(C, GroupBall):
        from extremal.moves.newton.projected import ProjectedNewton

        return ProjectedNewton(C), "groups: Newton steps on the groups in use, with quadratic problems solved by projections"
    return AtomNewton(), "few columns: Newton steps, with quadratic problems solved by the oracle"
