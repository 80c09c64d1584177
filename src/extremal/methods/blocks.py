"""Block-coordinate Frank-Wolfe, over products of sets."""

from __future__ import annotations

from dataclasses import dataclass

from extremal.gradients.full import Full
from extremal.gradients.partial import Partial
from extremal.methods.method import Budget, Checked, Method
from extremal.moves.blocks import Blockwise, check_blocked
from extremal.objectives.base import Objective
from extremal.objectives.row_parts import has_parts
from extremal.sets.base import ConvexSet
from extremal.sets.made.blocks import Blocked
from extremal.steps.adaptive import LineSearch, short_step
from extremal.steps.base import Step
from extremal.steps.schedules import Decay, InverseSqrt


@dataclass(frozen=True)
class BlockFW(Checked):
    """Block-coordinate Frank-Wolfe: each step asks the oracle of one block of a product of m sets, and moves this block only.

        s_i = lmo_i(grad f(x)_i),   x_i <- x_i + eta (s_i - x_i),   gap(x) = sum_i <grad f(x)_i, x_i - s_i>

    The set is a `Product`, or has `Rows` or `Columns` in one set. For a `QuadraticModel`, such as the dual of a support vector
    machine, and for a `LinearModel` with rows in memory, a step computes the block's part of the gradient only (`Partial`): m
    steps are about n component gradients. Every tenth pass, the gaps of all blocks are summed to a certificate. For other
    objectives, each step takes a full gradient. For stochastic gradients, pass `Blockwise` to `Method` with any estimator.

    Parameters
    ----------
    order : "random", "cyclic" or "gaps"
        How blocks are chosen, see `Blockwise`. The rate is that of random blocks; cyclic ones have a smaller rate in theory.
    step : Step, optional
        Default: `LineSearch` if f gives parts of its gradient and is convex. Otherwise 2m / (k + 2m) for convex f, which is
        ``Decay(2 * m, 2 * m)``, and `ShortStep` or `InverseSqrt` for other f.

    References
    ----------
    Lacoste-Julien, Jaggi, Schmidt, Pletscher (2013), Block-coordinate Frank-Wolfe optimization for structural SVMs, ICML,
    arXiv:1207.4747.

    Examples
    --------
    Fifty rows of three weights each; a step of `FrankWolfe` moves all of them at once:

    >>> import numpy as np, extremal as ex
    >>> A = np.random.default_rng(0).standard_normal((50, 4))
    >>> f, C = ex.QuadraticModel(A, linear=A[:, :3]), ex.Rows(ex.Simplex())
    >>> blocks, batch = (ex.minimize(f, C, m, max_grads=10 * f.n, tol=0) for m in (ex.BlockFW(), ex.FrankWolfe()))
    >>> blocks.gap < 0.1 * batch.gap, blocks.calls.block_lmos == blocks.n_iter
    (True, True)
    """

    order: str = "random"
    step: Step | None = None

    def __post_init__(self):
        super().__post_init__()
        Blockwise(self.order)  # refuses other orders

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        check_blocked("BlockFW", C)
        m = C.n_blocks() if isinstance(C, Blocked) else 1
        knows = has_parts(f)
        open_loop = LineSearch() if knows else Decay(2 * m, 2 * m)
        step = self.step or (open_loop if f.convex else short_step(f, InverseSqrt()))
        return Method(Partial(m) if knows else Full(), step, Blockwise(self.order)).prepare(f, C, budget)
