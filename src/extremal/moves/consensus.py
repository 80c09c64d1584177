"""The move of agents on a graph: each averages with its neighbours, then takes one Frank-Wolfe step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.base import Estimate, SomeGradient, phase_of
from extremal.gradients.mixing import check_mixing, in_brief, mix
from extremal.gradients.reduced import EpochEstimate
from extremal.moves.base import FlatMove, MoveOracle, Point
from extremal.objectives.base import Objective
from extremal.points.iterates import freeze, toward
from extremal.sets.base import ConvexSet
from extremal.steps.base import Direction, Step, take


@dataclass(frozen=True)
class AgentsPoint(Point):
    """The state of the agents: x is their mean, query the stack of the averages xh_i."""

    agents: np.ndarray = field(default_factory=lambda: np.empty(0))  # x_i, one row per agent, each feasible

    @property
    def disagreement(self) -> float:
        """The root of the mean over agents of |x_i - x|^2."""
        away = (self.agents - self.x).astype(np.float64).reshape(len(self.agents), -1)
        return float(np.sqrt((away**2).sum(axis=1).mean()))


@dataclass(frozen=True, eq=False)
class Consensus(FlatMove):
    """Each of m agents averages its iterate with its neighbours', and takes its own Frank-Wolfe step.

        xh_i = sum_j c_ij x_j,   theta_i = lmo(p_i),   x_i <- xh_i + eta (theta_i - xh_i)

    The iterate is the mean of the x_i. It is feasible, because each x_i is, and it is the point that is certified and returned.
    ``state.point.agents`` holds the agents themselves. A step takes m LMOs and one exchange between neighbours. The estimator
    must be `Tracking` with the same mixing matrix, which gives each agent its p_i at its xh_i. A rule that adapts to f sets the
    step of each agent separately, by the whole sum f.

    Parameters
    ----------
    mixing : array of shape (m, m)
        c, doubly stochastic: `ring`, `complete`, `metropolis` or your own.

    References
    ----------
    Hou, Zeng, Wang, Sun, Chen (2022), arXiv:2208.04053; Wai, Lafond, Scaglione, Moulines (2017), arXiv:1612.01216.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.moves.Consensus(ex.gradients.ring(4))
    Consensus(mixing=<4 x 4>)
    """

    mixing: Any

    def __post_init__(self):
        checks.fix(self, mixing=check_mixing("Consensus", self.mixing))

    def __repr__(self) -> str:
        return f"Consensus(mixing={in_brief(self.mixing)})"

    def check(self, gradient: SomeGradient, f: Objective, C: ConvexSet) -> None:
        super().check(gradient, f, C)
        if gradient.facts(f.n).agents != len(self.mixing):
            raise InputError(f"{self} wants an estimate for each agent: use Tracking with the same mixing matrix")

    def start(self, x0: np.ndarray) -> AgentsPoint:
        x0 = freeze(np.asarray(x0))  # agents are rows of one array
        agents = freeze(np.repeat(x0[None], len(self.mixing), axis=0))
        return AgentsPoint(x0, agents, agents=agents)

    def advance(self, k: int, f: Objective, C: MoveOracle, point: AgentsPoint, estimate: Estimate, step: Step) -> AgentsPoint:
        """Take a step with every agent, then compute the next averages."""
        p, xh = estimate.g, point.query
        phase: Any = phase_of(estimate)
        if p.shape != xh.shape:
            raise InputError(f"Consensus has {len(xh)} agents and wants an estimate for each: use Tracking with the same matrix")
        agents = freeze(np.stack([agent_step(k, f, C, xh[i], p[i], phase, step) for i in range(len(xh))]))
        return AgentsPoint(mean_agent(agents), freeze(mix(self.mixing, agents)), agents=agents)  # xh_i = sum_j c_ij x_j


def agent_step(k: int, f: Objective, C: MoveOracle, xh: np.ndarray, p: np.ndarray, phase: Any, step: Step) -> np.ndarray:
    """One agent's step from xh_i, in a stack and in a process of its own: x_i = xh_i + eta (theta_i - xh_i)."""
    theta = C.lmo(p)  # theta_i = argmin <p_i, theta>
    return toward(xh, theta, take(step, k, Direction(f, xh, EpochEstimate(p, False, phase), theta)))


def mean_agent(agents: np.ndarray) -> np.ndarray:
    """The mean of the x_i. Mixing does not change the mean."""
    return freeze(agents.mean(axis=0, dtype=np.float64).astype(agents.dtype))
