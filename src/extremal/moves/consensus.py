"""The move of agents on a graph: each averages with its neighbours, then takes one Frank-Wolfe step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.base import Estimate, SomeGradient, phase_of
from extremal.gradients.gossip import Gossip, Heard, as_arguments, check_exchange
from extremal.gradients.mixing import check_mixing, in_brief
from extremal.gradients.reduced import EpochEstimate
from extremal.gradients.tracking import Tracking, TrackingEstimate
from extremal.moves.base import FlatMove, MoveOracle, Point
from extremal.objectives.base import POINT_NOISE, Objective, Sampler
from extremal.points.iterates import freeze, toward
from extremal.sets.base import ConvexSet
from extremal.steps.base import Direction, Scheduled, Step, take

NO_DRAWS = Sampler(1, 0)  # draws for messages that need none


@dataclass(frozen=True)
class AgentsPoint(Point):
    """The state of the agents: x is their mean, query the stack of the averages xh_i."""

    agents: np.ndarray = field(default_factory=lambda: np.empty(0))  # x_i, one row per agent, each feasible if none is compressed
    known: tuple[Heard | None, ...] = ()  # what agents know of each other's x

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

    With a compressor, agents send compressed differences (CHOCO-Gossip):

        q_i = C(x_i - vh_i),   vh_j <- vh_j + q_j,   xh_i = x_i + rate sum_j c_ij (vh_j - vh_i),   vh = x^0 at the start

    The mean of the xh_i is that of the x_i, and all steps have one length, so the mean stays feasible. The agents themselves may
    leave the set by the compression error, and f is evaluated there. Memory: two vectors more for each agent.

    Parameters
    ----------
    mixing : array of shape (m, m)
        c, doubly stochastic: `ring`, `complete`, `metropolis` or your own.
    compressor : Compressor or str, optional
        C: `TopK`, `RandomK`, `Natural`, or their names "top-10", "random-10", "natural". Left out, agents send x_i itself.
    rate : float, optional
        The rate of the exchange, in (0, 1]. Left out, the contraction of the compressor: k/d for TopK and RandomK.

    References
    ----------
    Hou, Zeng, Wang, Sun, Chen (2022), arXiv:2208.04053; Wai, Lafond, Scaglione, Moulines (2017), arXiv:1612.01216; Koloskova,
    Stich, Jaggi (2019), arXiv:1902.00340, for compressed messages.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.moves.Consensus(ex.gradients.ring(4))
    Consensus(mixing=<4 x 4>)
    """

    mixing: Any
    compressor: Any = None
    rate: float | None = None

    def __post_init__(self):
        exchange = check_exchange("Consensus", self.compressor, self.rate)
        checks.fix(self, mixing=check_mixing("Consensus", self.mixing), **exchange)

    def __repr__(self) -> str:
        return f"Consensus(mixing={in_brief(self.mixing)}{as_arguments(self.compressor, self.rate)})"

    @property
    def gossip(self) -> Gossip:
        """The exchange of x."""
        return Gossip(self.mixing, self.compressor, self.rate, POINT_NOISE)

    def check(self, gradient: SomeGradient, f: Objective, C: ConvexSet) -> None:
        super().check(gradient, f, C)
        if gradient.facts(f.n).agents != len(self.mixing):
            raise InputError(f"{self} wants an estimate for each agent: use Tracking with the same mixing matrix")
        if self.compressor is not None and not isinstance(gradient, Tracking):
            raise InputError("Consensus(compressor=...) goes with Tracking itself, whose agents draw for their messages")

    def start(self, x0: np.ndarray) -> AgentsPoint:
        x0, gossip = freeze(np.asarray(x0)), self.gossip  # agents are rows of one array
        agents = freeze(np.repeat(x0[None], len(self.mixing), axis=0))
        known = tuple(gossip.start(x0, common=True) for _ in agents)
        return AgentsPoint(x0, agents, agents=agents, known=known)

    def advance(self, k: int, f: Objective, C: MoveOracle, point: AgentsPoint, estimate: Estimate, step: Step) -> AgentsPoint:
        """Take a step with every agent, then compute the next averages."""
        p, xh = estimate.g, point.query
        phase: Any = phase_of(estimate)
        if p.shape != xh.shape:
            raise InputError(f"Consensus has {len(xh)} agents and wants an estimate for each: use Tracking with the same matrix")
        if self.compressor is not None:
            check_common("Consensus", step)
        agents = freeze(np.stack([agent_step(k, f, C, xh[i], p[i], phase, step) for i in range(len(xh))]))
        draws = estimate.samplers if isinstance(estimate, TrackingEstimate) else [NO_DRAWS] * len(xh)
        mixed, known = self.gossip.round(f, k, agents, point.known, draws)  # xh_i = sum_j c_ij x_j
        return AgentsPoint(mean_agent(agents), freeze(mixed), agents=agents, known=known)


def check_common(call: str, step: Step) -> None:
    """Refuse steps that differ from agent to agent: with compressed messages the mean would leave the set."""
    if not isinstance(step, Scheduled):
        raise InputError(f"`{call}(compressor=...)` needs a step that is fixed in advance, such as OpenLoop(), got {step}")


def agent_step(k: int, f: Objective, C: MoveOracle, xh: np.ndarray, p: np.ndarray, phase: Any, step: Step) -> np.ndarray:
    """One agent's step from xh_i, in a stack and in a process of its own: x_i = xh_i + eta (theta_i - xh_i)."""
    theta = C.lmo(p)  # theta_i = argmin <p_i, theta>
    return toward(xh, theta, take(step, k, Direction(f, xh, EpochEstimate(p, False, phase), theta)))


def mean_agent(agents: np.ndarray) -> np.ndarray:
    """The mean of the x_i. Mixing does not change the mean."""
    return freeze(agents.mean(axis=0, dtype=np.float64).astype(agents.dtype))
