"""Decentralised methods: agents on a graph, each with its own part of the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.gossip import as_arguments, check_exchange
from extremal.gradients.mixing import check_mixing, in_brief, ring
from extremal.gradients.momentum import Storm
from extremal.gradients.tracking import Tracking
from extremal.gradients.workers import bounds
from extremal.laws import PowerLaw
from extremal.methods.method import Budget, Checked, Method, root_batch
from extremal.moves.consensus import Consensus, check_common
from extremal.objectives.base import Objective
from extremal.sets.base import ConvexSet
from extremal.steps.base import Step
from extremal.steps.schedules import OpenLoop


@dataclass(frozen=True, eq=False)
class DMFW(Checked):
    """Distributed momentum-based Frank-Wolfe: m agents on a graph, each with a shard of the rows.

        xh_i = sum_j c_ij x_j                                                average the iterates
        y_i  = grad f_i(xh_i; S_i) + (1 - gamma_k) (y_i,prev - grad f_i(xh_i,prev; S_i))      STORM on agent i's rows
        s_i  = sum_j c_ij s_j,prev + y_i - y_i,prev,   p_i = sum_j c_ij s_j  gradient tracking
        x_i <- xh_i + eta_k (lmo(p_i) - xh_i)
        gamma_k = min(1, 2 / (k + 1)),   eta_k = 2 / (k + 2),   k = 0, 1, ...;   y_i = s_i = grad f_i(x^0; S_i) at k = 0

    m b component gradients at the start, 2 m b and m LMOs an iteration; 5 vectors for each agent, and two exchanges
    between neighbours. Agent i owns the rows [n i/m, n (i+1)/m) and draws b of them from a stream of its own; the f_i are
    weighted so that their mean is f. The iterate is the mean of the x_i, which is certified and returned; the agents
    themselves are in ``state.point.agents``. One agent is Frank-Wolfe on `Storm` with these steps; agents that all hear
    each other are one agent that draws b rows of every shard.

    With a compressor, agents send compressed differences of x and s with error compensation (`Consensus`, `Tracking`); the steps
    then have to be fixed in advance. Compressed messages are an addition of this library: the theorems are about whole vectors.
    Xian, Huang, Huang (2021) prove convergence of another method of compressed messages and gradient tracking, DQSFW.

    The order of the two averages, and the steps, are from memory of the paper; that its k starts at 0 is our choice.

    Parameters
    ----------
    batch : int, optional
        b, for each agent; 1 if left out.
    mixing : array of shape (m, m), optional
        c, doubly stochastic: `ring`, `complete`, `metropolis` or your own. Left out, four agents on a ring (fewer if n < 4).
    step : Step, optional
        Left out, 2 / (k + 2).
    compressor : Compressor or str, optional
        `TopK`, `RandomK`, `Natural`, or their names "top-10", "random-10", "natural". Left out, agents send whole vectors.
    rate : float, optional
        The rate of compressed exchanges, in (0, 1]. Left out, the contraction of the compressor: k/d for TopK and RandomK.

    References
    ----------
    Hou, Zeng, Wang, Sun, Chen (2022), Distributed momentum-based Frank-Wolfe algorithm for stochastic optimization,
    arXiv:2208.04053; Koloskova, Stich, Jaggi (2019), arXiv:1902.00340, compressed exchanges; Xian, Huang, Huang (2021),
    Communication-efficient Frank-Wolfe algorithm for nonconvex decentralized distributed learning, AAAI.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(6), np.arange(6.0))
    >>> r = ex.minimize(f, ex.L1Ball(1.0), method=ex.DMFW(batch=2, mixing=ex.gradients.ring(3)), tol=0, atol=0, max_iter=100)
    >>> r.calls.grads, r.calls.lmos, r.x.round(1)
    (1206, 300, array([0., 0., 0., 0., 0., 1.]))
    """

    batch: int | None = None
    mixing: Any = None
    step: Step | None = None
    compressor: Any = None
    rate: float | None = None

    def __post_init__(self):
        super().__post_init__()
        checks.fix(self, **check_exchange("DMFW", self.compressor, self.rate))
        if self.mixing is not None:
            checks.fix(self, mixing=check_mixing("DMFW", self.mixing))

    def __repr__(self) -> str:
        mixing = None if self.mixing is None else in_brief(self.mixing)
        return f"DMFW(batch={self.batch}, mixing={mixing}, step={self.step}{as_arguments(self.compressor, self.rate)})"

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        mixing = ring(min(4, f.n)) if self.mixing is None else self.mixing
        if len(mixing) > f.n:
            raise InputError(f"`DMFW(mixing=...)` must have at most one agent per component, got {len(mixing)} for {f.n}")
        smallest = min(last - first for first, last in bounds(f.n, len(mixing)))
        b = root_batch("DMFW", self.batch, smallest, 0)
        step = self.step or OpenLoop()
        if self.compressor is not None:
            check_common("DMFW", step)
        exchange = mixing, self.compressor, self.rate
        gradient = Tracking(Storm(b, PowerLaw(2, 1, -1)), *exchange)
        return Method(gradient, step, Consensus(*exchange)).prepare(f, C, budget)
