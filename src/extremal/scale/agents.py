"""Agents as processes: `DMFW` on the workers of a cluster, which exchange vectors only along the edges of a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client

from extremal import checks
from extremal.checks import InputError
from extremal.files.shards.directory import ShardDir
from extremal.losses.base import Loss
from extremal.methods.decentralised import DMFW
from extremal.methods.method import Budget, Recipe
from extremal.moves.consensus import mean_agent
from extremal.objectives.linear import LinearModel
from extremal.scale.cluster import ATTEMPTS, ClusterError, Link, Lost, Workers
from extremal.scale.residents import SAVED, Resident, Unheard, parts_of
from extremal.scale.wire import pack
from extremal.sets.base import ConvexSet
from extremal.steps.base import Scheduled

TAG = "run_agents"


@dataclass(frozen=True)
class AgentsResult:
    """The result of a run of agents."""

    x: np.ndarray  # the mean of the agents, feasible
    agents: np.ndarray  # x_i, one row per agent
    value: float  # f at the mean, exact
    gap: float  # its Frank-Wolfe gap, exact
    iterations: int
    lmos: int  # oracle calls of all agents
    edges: dict[tuple[int, int], int] = field(default_factory=dict)  # (from, to): bytes of the messages and copies that were sent


def run_agents(
    loss: Loss,
    directory: str | Path,
    C: ConvexSet,
    client: Client,
    method: Recipe | None = None,
    *,
    max_iter: int = 100,
    seed: int = 0,
    timeout: float = 5.0,
) -> AgentsResult:
    """Run `DMFW` with an agent on each worker of a Dask cluster, or several agents on a worker if there are fewer workers.

        x_i <- xh_i + eta_k (lmo(p_i) - xh_i),   xh_i = sum_j c_ij x_j,   p_i = sum_j c_ij s_j

    Agent i reads only its own rows of the directory. Vectors go from worker to worker along the edges of the graph: two in each
    direction of an edge and iteration, or their compressed messages. The trajectory is that of
    ``minimize(LinearModel(loss, ShardDir(directory)), C, DMFW())`` with the same seed, bit by bit. At the end, one
    read in this process certifies the mean of the agents.

    Every ten iterations each agent sends a copy of its state to a neighbour on another worker, three or four vectors along one
    edge, and four more if messages are compressed. A lost agent is created again on another worker, and all agents go on from
    their last copies, with the same bits. If an agent and its copy are lost together, all agents begin again.

    Parameters
    ----------
    loss : Loss
        A loss of one margin.
    directory : path
        A directory of shards that all workers see.
    C : ConvexSet
        The set; each agent calls its oracle.
    client : distributed.Client
        The agents live on the workers of this client.
    method : DMFW, optional
        The method gives the graph, the batch and the step, which must be fixed in advance. Any method of `Tracking` and
        `Consensus` is accepted.
    max_iter, seed : int
        As for `minimize`.
    timeout : float
        The seconds that a worker may be silent before its agents count as lost.

    References
    ----------
    Hou, Zeng, Wang, Sun, Chen (2022), Distributed momentum-based Frank-Wolfe algorithm for stochastic optimization,
    arXiv:2208.04053.
    """
    checks.whole(TAG, "max_iter", max_iter, 1)
    checks.whole(TAG, "seed", seed, 0)
    workers = Workers(client, checks.positive(TAG, "timeout", timeout), TAG)
    f = LinearModel(loss, ShardDir(directory, engine="disk"))
    C = C.on(f.shape)
    prepared = (method or DMFW()).prepare(f, C, Budget(max_iter=max_iter))
    if not isinstance(prepared.step, Scheduled):
        raise InputError(f"`{TAG}(method=...)` must have a step that is fixed in advance, got {prepared.step}")
    tracking, move = parts_of(prepared)
    crew = _Crew(workers, (tracking.mixing != 0) | (move.mixing != 0), str(Path(directory).resolve()), loss, C, prepared, seed)
    stack = np.stack(crew.run(max_iter))
    x = mean_agent(stack)
    value, g = f.value_and_grad(x)
    return AgentsResult(x, stack, value, C.gap(x, g), max_iter, max_iter * len(stack), dict(crew.edges))


class _Crew:
    """All agents from the driver's view: the place of each, and their common progress."""

    def __init__(self, workers: Workers, hears: np.ndarray, *given: Any):
        self.workers, self.given = workers, given
        self.near = [[j for j in np.flatnonzero(column).tolist() if j != i] for i, column in enumerate(hears.T)]  # who hears i
        self.links: list[Link | None] = [None] * len(hears)
        self.edges: Counter[tuple[int, int]] = Counter()

    def run(self, rounds: int) -> list[np.ndarray]:
        """The x_i after ``rounds`` iterations; lost agents are created again, as long as the run makes progress."""
        k, farthest, losses = None, 0, 0
        while True:
            try:
                k = self._gathered() if k is None else self._round(k)
                farthest, losses = (k, 0) if k > farthest else (farthest, losses)
                if k == rounds:
                    return self._all("end")
            except (Lost, Unheard) as loss:
                k, losses = None, losses + 1
                if losses == ATTEMPTS:
                    raise ClusterError(f"`{TAG}`: iteration {farthest} has failed {losses} times ({loss})") from None

    def _round(self, k: int) -> int:
        if k and k % SAVED == 0:
            self._each("save", [(k, self._keeper(i)) for i in range(len(self.links))])
        self._all("move", k)
        self._all("follow", k)
        return k + 1

    def _keeper(self, i: int) -> int | None:
        """The agent that keeps copies of agent i: an agent that hears i, on another worker if possible."""
        here = self._address(i)
        return min(self.near[i], key=lambda j: self._address(j) == here, default=None)

    def _address(self, i: int) -> str | None:
        link = self.links[i]
        return None if link is None else link.address

    def _gathered(self) -> int:
        """Create missing agents, and set all agents back to the last iteration with copies of all."""
        held = [self._held(i) for i in range(len(self.links))]
        missing = [i for i, link in enumerate(self.links) if link is None]
        for i in missing:
            address = self.workers.least_busy(self.links)
            self.links[i] = self.workers.asked(address, f"agent-{i}", Resident, i, *self.given, self.workers.timeout)
        for i in missing:
            self._of(i, self.workers.made)
        there = {i: (link.address, link.key) for i, link in enumerate(self.links) if link is not None}
        self._each("meet", [({j: there[j] for j in near},) for near in self.near])
        known = set[tuple[int, int]]().union(*held)
        k = max(k for k in {0} | {k for _, k in known} if k == 0 or all((i, k) in known for i in there))
        for i in there:
            if k and (i, k) not in held[i]:
                self._one(next(j for j in there if (i, k) in held[j]), "give", i, k)
        self._all("begin", k)
        return k

    def _held(self, i: int) -> set[tuple[int, int]]:
        """The copies that an agent has; none if the agent is not there."""
        if self.links[i] is not None:
            with suppress(Lost):
                return self._one(i, "held")
        return set()

    def _one(self, i: int, order: str, *given: Any) -> Any:
        return self._answer(i, self._call(i, order, *given))

    def _all(self, order: str, *given: Any) -> list[Any]:
        return self._each(order, [given] * len(self.links))

    def _each(self, order: str, given: list[tuple[Any, ...]]) -> list[Any]:
        """The answers of all agents, which work in parallel; if one is lost, wait for the end of the others before the error."""
        calls = [self._call(i, order, *one) for i, one in enumerate(given)]
        try:
            return [self._answer(i, call) for i, call in enumerate(calls)]
        except (Lost, Unheard):
            wait(calls, self.workers.timeout)
            raise

    def _call(self, i: int, order: str, *given: Any) -> Future[Any]:
        return self._of(i, self.workers.call, order, pack(given))

    def _answer(self, i: int, call: Future[Any]) -> Any:
        found, sizes = self._of(i, self.workers.answer, call)
        self.edges.update({(i, j): size for j, size in sizes.items()})
        return found

    def _of(self, i: int, ask: Callable[..., Any], *given: Any) -> Any:
        """Ask something of agent i; if the agent is lost, avoid its worker from then on."""
        link = self.links[i]
        assert link is not None
        try:
            return ask(link, *given)
        except Lost as loss:
            self.workers.avoid.add(link.address)
            self.links[i] = None
            raise Lost(f"agent {i}: {loss}") from None
