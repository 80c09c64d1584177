"""Agents that are processes: `DMFW` on the workers of a cluster, which exchange vectors along the edges of a graph only."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from inspect import iscoroutine
from pathlib import Path
from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.files.shards.directory import ShardDir
from extremal.gradients.tracking import Tracking, agent_share
from extremal.losses.base import Loss
from extremal.methods.decentralised import DMFW
from extremal.methods.method import Budget, Method
from extremal.objectives.base import Sampler
from extremal.objectives.linear import LinearModel
from extremal.points.iterates import freeze, toward
from extremal.sets.base import ConvexSet
from extremal.steps.base import Scheduled
from extremal.support.kinds import Numbers

WAIT = 60.0  # seconds that a worker may take for its share of one iteration


@dataclass(frozen=True)
class AgentsResult:
    """Where the agents have come to."""

    x: np.ndarray  # their mean, feasible
    agents: np.ndarray  # x_i, one row per agent
    value: float  # f at the mean, exact
    gap: float  # its Frank-Wolfe gap, exact
    iterations: int
    lmos: int  # of all agents
    edges: dict[tuple[int, int], int] = field(default_factory=dict)  # (from, to): bytes of the vectors that were sent


class Agent:
    """One agent: its rows, its iterate, and what its neighbours have told it. It lives on a worker."""

    def __init__(self, i: int, directory: str, loss: Loss, C: ConvexSet, method: Method, seed: int):
        data = ShardDir(directory, engine="disk")
        tracking = method.gradient
        assert isinstance(tracking, Tracking)
        self.i, self.row, self.step, self.C = i, tracking.mixing[i], method.step, C
        whole = LinearModel(loss, data, data.targets, data.weights)  # the targets of others are not looked at
        self.f, self.share = agent_share(whole, len(self.row), i)
        self.gradient, self.sampler = tracking.gradient, Sampler(self.f.n, seed, i)
        self.x = self.xh = freeze(np.asarray(C.start(), np.float64))
        self.own = self.gradient.init(self.f, self.xh, self.sampler)
        self.y = self.s = self.share * self.own.g
        self.heard: dict[str, dict[int, np.ndarray]] = {"s": {}, "x": {}}
        self.near: dict[int, Any] = {}
        self.sent: dict[int, int] = {}  # bytes to each neighbour

    def meet(self, near: dict[int, Any]) -> None:
        """Know the neighbours."""
        self.near = near

    async def hear(self, sender: int, what: str, vector: np.ndarray) -> None:
        """Keep what a neighbour says; also while this agent is at work."""
        self.heard[what][sender] = vector

    def tell(self, what: str) -> None:
        """Send s or x to all neighbours."""
        vector = self._own(what)
        calls = [agent.hear(self.i, what, vector) for agent in self.near.values()]
        for neighbour, call in zip(self.near, calls, strict=True):
            if iscoroutine(call):  # of an agent on the same worker
                with suppress(StopIteration):
                    call.send(None)
            else:
                call.result(timeout=WAIT)
            self.sent[neighbour] = self.sent.get(neighbour, 0) + vector.nbytes

    def _own(self, what: str) -> np.ndarray:
        return self.s if what == "s" else self.x

    def _mixed(self, what: str) -> np.ndarray:
        """sum_j c_ij v_j over the neighbours and itself, in the order of the agents."""
        known = self.heard[what] | {self.i: self._own(what)}
        return np.sum([self.row[j] * known[j] for j in sorted(known)], axis=0)

    def move(self, k: int) -> None:
        """p_i from what was heard of s; a Frank-Wolfe step from xh_i."""
        self.p = self._mixed("s")
        theta = self.C.lmo(self.p)
        self.x = toward(self.xh, theta, self._eta(k))

    def _eta(self, k: int) -> float:
        eta: Numbers = self.step.at(k) if isinstance(self.step, Scheduled) else 0.0
        return float(eta)

    def follow(self, k: int) -> None:
        """xh_i from what was heard of x; the gradient there, and what is tracked."""
        old, self.xh = self.xh, freeze(self._mixed("x"))
        self.own = self.gradient.update(self.f, k, old, self.xh, (), self.own, self.sampler)
        y = self.share * self.own.g
        self.s, self.y = y + (self.p - self.y), y

    def end(self) -> tuple[np.ndarray, dict[int, int]]:
        """x_i, and how many bytes went to each neighbour."""
        return self.x, self.sent


def run_agents(
    loss: Loss,
    directory: str | Path,
    C: ConvexSet,
    client: Any,
    method: DMFW | None = None,
    *,
    max_iter: int = 100,
    seed: int = 0,
) -> AgentsResult:
    """Run `DMFW` with an agent on each worker of a Dask cluster, or several where there are fewer workers.

        x_i <- xh_i + eta_k (lmo(p_i) - xh_i),   xh_i = sum_j c_ij x_j,   p_i = sum_j c_ij s_j

    Agent i reads its own rows of the directory only. Vectors go from worker to worker, along the edges of the graph: two in each
    direction of an edge and iteration. The trajectory is that of ``minimize(LinearModel(loss, ShardDir(directory)), C, DMFW())``
    with the same seed, up to rounding. The mean of the agents is certified at the end, by one read here.

    Parameters
    ----------
    loss : Loss
        Of one margin.
    directory : path
        A directory of shards that all workers see.
    C : ConvexSet
        Each agent has its oracle.
    client : distributed.Client
        Its workers are where the agents live.
    method : DMFW, optional
        Its graph, its batch and its step, which must be fixed in advance.
    max_iter, seed : int
        As for `minimize`.

    References
    ----------
    Hou, Zeng, Wang, Sun, Chen (2022), Distributed momentum-based Frank-Wolfe algorithm for stochastic optimization,
    arXiv:2208.04053.
    """
    checks.whole("run_agents", "max_iter", max_iter, 1)
    data = ShardDir(directory, engine="disk")
    f = LinearModel(loss, data)
    C = C.on(f.shape)
    prepared = (method or DMFW()).prepare(f, C, Budget(max_iter=max_iter))
    if not isinstance(prepared.step, Scheduled):
        raise InputError(f"`run_agents(method=...)` must have a step that is fixed in advance, got {prepared.step}")
    mixing: np.ndarray = prepared.gradient.mixing  # type: ignore[attr-defined]
    with client.as_current():  # what agents are known by needs it
        agents = _made(client, len(mixing), str(Path(directory).resolve()), loss, C, prepared, seed)
        near = [[j for j in range(len(mixing)) if j != i and mixing[i, j] != 0] for i in range(len(mixing))]
        _all(agent.meet({j: agents[j] for j in near[i]}) for i, agent in enumerate(agents))
        for k in range(max_iter):
            _all(agent.tell("s") for agent in agents)
            _all(agent.move(k) for agent in agents)
            _all(agent.tell("x") for agent in agents)
            _all(agent.follow(k) for agent in agents)
        points, told = zip(*_all(agent.end() for agent in agents), strict=True)
    stack = np.stack(points)
    x = freeze(stack.mean(axis=0))
    value, g = f.value_and_grad(x)
    sent = {(i, j): size for i, sizes in enumerate(told) for j, size in sizes.items()}
    return AgentsResult(x, stack, value, C.gap(x, g), max_iter, max_iter * len(mixing), sent)


def _made(client: Any, m: int, *given: Any) -> list[Any]:
    """The agents, in turn on the workers."""
    workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
    if not workers:
        raise InputError("`run_agents(client=...)` has no workers")
    made = [
        client.submit(Agent, i, *given, actor=True, pure=False, workers=[workers[i % len(workers)]], allow_other_workers=True)
        for i in range(m)
    ]
    return [agent.result(timeout=WAIT) for agent in made]


def _all(calls: Any) -> list[Any]:
    """The answers of all agents, which work at once."""
    return [call.result(timeout=WAIT) for call in list(calls)]
