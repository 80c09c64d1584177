"""Gradient tracking: agents on a graph, each with a shard of the data, that jointly follow the gradient of the whole sum."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.base import Estimate, Facts, InEpochs, Phase, SomeGradient, Steps, Wrapper, phase_of
from extremal.gradients.gossip import Gossip, Heard, as_arguments, check_exchange
from extremal.gradients.mixing import check_mixing, in_brief
from extremal.gradients.workers import Worker, shared_facts
from extremal.objectives.base import Objective, Sampler


@dataclass(frozen=True)
class AgentState:
    """The state of one agent."""

    own: Estimate  # the state of its estimator
    y: np.ndarray  # its estimate of grad f_i
    s: np.ndarray  # its tracking variable


@dataclass(frozen=True)
class Agent:
    """One of m agents. It steps alike in a stack and in its own process."""

    worker: Worker

    @classmethod
    def of(cls, tracking: Tracking, f: Objective, i: int, sampler: Sampler | None = None, seed: int = 0, shard: int = 0) -> Agent:
        """Agent i. If no sampler is given, the agent gets its own stream from the seed and the shard."""
        return cls(Worker.of(tracking.gradient, len(tracking.mixing), f, i, sampler, seed, shard))

    @property
    def f(self) -> Objective:
        """The mean over its rows."""
        return self.worker.f

    @property
    def sampler(self) -> Sampler:
        """Its draws."""
        return self.worker.sampler

    def init(self, x: np.ndarray) -> AgentState:
        """y_i = s_i at the start."""
        own, y = self.worker.init(x)
        return AgentState(own, y, y)

    def update(self, k: int, x_prev: np.ndarray, x: np.ndarray, state: AgentState, p: np.ndarray) -> AgentState:
        """y_i at x, and s_i = p_i + y_i - y_i,prev with p_i of the last exchange."""
        own, y = self.worker.update(k, x_prev, x, state.own)
        return AgentState(own, y, y + (p - state.y))


@dataclass(frozen=True)
class TrackingEstimate(InEpochs):
    """The states of all agents."""

    g: np.ndarray  # p, or its mean if all agents are at one point
    p: np.ndarray  # the agents' estimates of grad f, one row per agent
    states: tuple[AgentState, ...]
    samplers: tuple[Sampler, ...]  # the streams of the agents
    known: tuple[Heard | None, ...]  # what agents know of each other's s
    exact: bool = False
    phase: Phase | None = None  # position of the agents in their epoch; they move in step

    @property
    def y(self) -> np.ndarray:
        """The agents' own estimates, (m, *shape)."""
        return np.stack([state.y for state in self.states])

    @property
    def s(self) -> np.ndarray:
        """The tracking variables, (m, *shape); their mean is the mean of y."""
        return np.stack([state.s for state in self.states])


@dataclass(frozen=True, eq=False)
class Tracking(Wrapper[TrackingEstimate]):
    """Any estimator, run by m agents on their own shards of the rows, with gradient tracking between them.

        y_i an estimate of grad f_i(x_i) by agent i,   mean over i of f_i = f
        s_i = sum_j c_ij s_j,prev + y_i - y_i,prev,    s_i = y_i at the start
        p_i = sum_j c_ij s_j                           agent i's estimate of grad f

    The mean of s is always the mean of y. With the move `Consensus`, x and g are stacks of m rows. With any other move all agents
    are at its one point, and g is the mean of p. Agent i owns the rows [n i/m, n (i+1)/m) and its own stream, and f_i is m n_i/n
    times the mean over its rows. The cost is that of m estimators on n_i components each, m vectors for each of y, s and p, and
    one exchange of s between neighbours per step. With a compressor, agents send compressed differences (CHOCO-Gossip):

        q_i = C(s_i - sh_i),   sh_j <- sh_j + q_j,   p_i = s_i + rate sum_j c_ij (sh_j - sh_i),   s_i = p_i,prev + y_i - y_i,prev

    The means of s and p are that of y with every compressor. Memory: two vectors more for each agent.

    Parameters
    ----------
    gradient : Gradient
        The estimator of each agent on its n_i components: `Storm` in DMFW, `Full` in its deterministic form.
    mixing : array of shape (m, m)
        c, doubly stochastic: `ring`, `complete`, `metropolis` or your own.
    compressor : Compressor or str, optional
        C: `TopK`, `RandomK`, `Natural`, or their names "top-10", "random-10", "natural". Left out, agents send s itself.
    rate : float, optional
        The rate of the exchange, in (0, 1]. Left out, the contraction of the compressor: k/d for TopK and RandomK.

    References
    ----------
    Hou, Zeng, Wang, Sun, Chen (2022), Distributed momentum-based Frank-Wolfe algorithm for stochastic optimization,
    arXiv:2208.04053; Wai, Lafond, Scaglione, Moulines (2017), Decentralized Frank-Wolfe, arXiv:1612.01216; Koloskova, Stich,
    Jaggi (2019), arXiv:1902.00340, for compressed messages.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.gradients.Tracking(ex.gradients.Storm(batch=5), ex.gradients.ring(4))
    Tracking(gradient=Storm(batch=5, rho=PowerLaw(scale=1.0, shift=1.0, power=-1.0), replace=False), mixing=<4 x 4>)
    """

    gradient: SomeGradient
    mixing: Any
    compressor: Any = None
    rate: float | None = None

    def __post_init__(self):
        super().__post_init__()
        exchange = check_exchange("Tracking", self.compressor, self.rate)
        checks.fix(self, mixing=check_mixing("Tracking", self.mixing), **exchange)

    def __repr__(self) -> str:
        return f"Tracking(gradient={self.gradient!r}, mixing={in_brief(self.mixing)}{as_arguments(self.compressor, self.rate)})"

    @property
    def gossip(self) -> Gossip:
        """The exchange of s."""
        return Gossip(self.mixing, self.compressor, self.rate)

    def facts(self, n: int) -> Facts:
        """The sum of the agents' costs, and the worst of their constants."""
        m = len(self.mixing)
        return replace(shared_facts("Tracking", "mixing", "agent", self.gradient, m, n), agents=m)

    def init(self, f: Objective, x: np.ndarray, sampler: Sampler) -> TrackingEstimate:
        points = self._points(f, x)
        agents = [Agent.of(self, f, i, seed=sampler.seed, shard=sampler.shard) for i in range(len(points))]
        states = tuple(agent.init(point) for agent, point in zip(agents, points, strict=True))
        known = tuple(self.gossip.start(state.s, common=False) for state in states)
        return self._estimate(f, 0, x, states, tuple(agent.sampler for agent in agents), known)

    def update(
        self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: TrackingEstimate, sampler: Sampler
    ) -> TrackingEstimate:
        old, new, draws = self._points(f, x_prev), self._points(f, x), state.samplers
        states = tuple(
            Agent.of(self, f, i, draws[i]).update(k, old[i], new[i], state.states[i], state.p[i]) for i in range(len(draws))
        )
        return self._estimate(f, k + 1, x, states, draws, state.known)

    def _estimate(
        self,
        f: Objective,
        j: int,
        x: np.ndarray,
        states: tuple[AgentState, ...],
        draws: tuple[Sampler, ...],
        known: tuple[Heard | None, ...],
    ) -> TrackingEstimate:
        p, known = self.gossip.round(f, j, np.stack([state.s for state in states]), known, draws)  # p_i = sum_j c_ij s_j
        g = p if x.shape == p.shape else p.mean(axis=0)
        return TrackingEstimate(g, p, states, draws, known, phase=phase_of(states[0].own))

    def _points(self, f: Objective, x: np.ndarray) -> np.ndarray:
        """One point per agent."""
        stack = (len(self.mixing), *f.shape)
        if x.shape not in (stack, f.shape):
            raise InputError(f"Tracking has {stack[0]} agents, but the move has {len(x)}: give both the same mixing matrix")
        return np.broadcast_to(x, stack)
