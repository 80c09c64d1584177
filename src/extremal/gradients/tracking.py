"""Gradient tracking: agents on a graph, each with a shard of the data, that jointly follow the gradient of the whole sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.base import Counting, Estimate, Facts, InEpochs, Phase, SomeGradient, Steps, Wrapper, phase_of
from extremal.gradients.mixing import check_mixing, in_brief, mix
from extremal.objectives.base import Objective, RowIndex, Sampler


def bounds(n: int, m: int) -> list[tuple[int, int]]:
    """The range [first, last) of rows of each of m agents: contiguous, with sizes that differ by at most one."""
    return [(n * i // m, n * (i + 1) // m) for i in range(m)]


class _Shard(Counting):
    """The mean over the rows of one agent, with the methods that estimators use: f_i = (1/n_i) sum over [first, last)."""

    def __init__(self, f: Objective, first: int, last: int):
        self.whole, self.first, self.n = f, first, last - first
        self.shape, self.dtype, self.convex, self.deriv_shape = f.shape, f.dtype, f.convex, f.deriv_shape
        self.calls = f.calls if isinstance(f, Counting) else None  # wrappers of the estimator may count as well

    def derivs(self, x: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        return self.whole.derivs(x, self._rows(idx))

    def combine(self, c: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        return self.whole.combine(c, self._rows(idx))

    def values(self, x: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        return self.whole.values(x, self._rows(idx))

    def value(self, x: np.ndarray) -> float:
        return float(self.values(x).mean(dtype=np.float64))

    def grad(self, x: np.ndarray) -> np.ndarray:
        return self.combine(self.derivs(x))

    def _rows(self, idx: RowIndex) -> np.ndarray:
        return np.arange(self.first, self.first + self.n) if idx is None else idx + self.first


@dataclass(frozen=True)
class AgentState:
    """The state of one agent."""

    own: Estimate  # the state of its estimator
    y: np.ndarray  # its estimate of grad f_i
    s: np.ndarray  # its tracking variable


@dataclass(frozen=True)
class Agent:
    """One of m agents: its estimator, its rows and its draws. It steps alike in a stack and in its own process."""

    gradient: SomeGradient
    f: Objective  # the mean over its rows
    weight: float  # m n_i / n, so that the mean of the f_i is f even for shards of unequal size
    sampler: Sampler

    @classmethod
    def of(cls, tracking: Tracking, f: Objective, i: int, sampler: Sampler | None = None, seed: int = 0, shard: int = 0) -> Agent:
        """Agent i. If no sampler is given, the agent gets its own stream from the seed and the shard."""
        m = len(tracking.mixing)
        part = _Shard(f, *bounds(f.n, m)[i])
        draws = sampler or Sampler(part.n, seed, shard * m + i)
        return cls(tracking.gradient, cast(Objective, part), m * part.n / f.n, draws)

    def init(self, x: np.ndarray) -> AgentState:
        """y_i = s_i at the start."""
        own = self.gradient.init(self.f, x, self.sampler)
        y = self.weight * own.g
        return AgentState(own, y, y)

    def update(self, k: int, x_prev: np.ndarray, x: np.ndarray, state: AgentState, p: np.ndarray) -> AgentState:
        """y_i at x, and s_i = p_i + y_i - y_i,prev with p_i = sum_j c_ij s_j,prev."""
        own = self.gradient.update(self.f, k, x_prev, x, (), state.own, self.sampler)
        y = self.weight * own.g
        return AgentState(own, y, y + (p - state.y))


@dataclass(frozen=True)
class TrackingEstimate(InEpochs):
    """The states of all agents."""

    g: np.ndarray  # p, or its mean if all agents are at one point
    p: np.ndarray  # the agents' estimates of grad f, one row per agent
    states: tuple[AgentState, ...]
    samplers: tuple[Sampler, ...]  # the streams of the agents
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
    one exchange of s between neighbours per step.

    Parameters
    ----------
    gradient : Gradient
        The estimator of each agent on its n_i components: `Storm` in DMFW, `Full` in its deterministic form.
    mixing : array of shape (m, m)
        c, doubly stochastic: `ring`, `complete`, `metropolis` or your own.

    References
    ----------
    Hou, Zeng, Wang, Sun, Chen (2022), Distributed momentum-based Frank-Wolfe algorithm for stochastic optimization,
    arXiv:2208.04053; Wai, Lafond, Scaglione, Moulines (2017), Decentralized Frank-Wolfe, arXiv:1612.01216.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.gradients.Tracking(ex.gradients.Storm(batch=5), ex.gradients.ring(4))
    Tracking(gradient=Storm(batch=5, rho=PowerLaw(scale=1.0, shift=1.0, power=-1.0), replace=False), mixing=<4 x 4>)
    """

    gradient: SomeGradient
    mixing: Any

    def __post_init__(self):
        super().__post_init__()
        checks.fix(self, mixing=check_mixing("Tracking", self.mixing))

    def __repr__(self) -> str:
        return f"Tracking(gradient={self.gradient!r}, mixing={in_brief(self.mixing)})"

    def facts(self, n: int) -> Facts:
        """The sum of the agents' costs, and the worst of their constants."""
        if len(self.mixing) > n:
            raise InputError(f"`Tracking(mixing=...)` must have at most one agent per component, got {len(self.mixing)} for {n}")
        each = [self.gradient.facts(last - first) for first, last in bounds(n, len(self.mixing))]
        if each[0].needs or each[0].one_vertex:
            raise InputError(f"Tracking cannot run {type(self.gradient).__name__}, which follows the one vertex of a plain move")
        costs: list[Any] = [facts.per_step for facts in each]
        return Facts(
            start=sum(facts.start for facts in each),
            per_step=(lambda k: sum(cost(k) for cost in costs)) if callable(costs[0]) else sum(costs),
            d=None if each[0].d is None else max(facts.d or 1.0 for facts in each),
            agents=len(self.mixing),
            c=min(facts.c for facts in each),
            epochs=each[0].epochs,
        )

    def init(self, f: Objective, x: np.ndarray, sampler: Sampler) -> TrackingEstimate:
        points = self._points(f, x)
        agents = [Agent.of(self, f, i, seed=sampler.seed, shard=sampler.shard) for i in range(len(points))]
        states = tuple(agent.init(point) for agent, point in zip(agents, points, strict=True))
        return self._estimate(x, states, tuple(agent.sampler for agent in agents))

    def update(
        self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: TrackingEstimate, sampler: Sampler
    ) -> TrackingEstimate:
        old, new, draws = self._points(f, x_prev), self._points(f, x), state.samplers
        states = tuple(
            Agent.of(self, f, i, draws[i]).update(k, old[i], new[i], state.states[i], state.p[i]) for i in range(len(draws))
        )
        return self._estimate(x, states, draws)

    def _estimate(self, x: np.ndarray, states: tuple[AgentState, ...], samplers: tuple[Sampler, ...]) -> TrackingEstimate:
        p = mix(self.mixing, np.stack([state.s for state in states]))  # p_i = sum_j c_ij s_j
        return TrackingEstimate(p if x.shape == p.shape else p.mean(axis=0), p, states, samplers, phase=phase_of(states[0].own))

    def _points(self, f: Objective, x: np.ndarray) -> np.ndarray:
        """One point per agent."""
        stack = (len(self.mixing), *f.shape)
        if x.shape not in (stack, f.shape):
            raise InputError(f"Tracking has {stack[0]} agents, but the move has {len(x)}: give both the same mixing matrix")
        return np.broadcast_to(x, stack)
