"""An agent of `DMFW` that lives on a worker: it takes its own steps, and sends vectors to its neighbours."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from distributed import get_worker

from extremal.checks import InputError
from extremal.files.shards.directory import ShardDir
from extremal.gradients.base import phase_of
from extremal.gradients.messages import Message
from extremal.gradients.tracking import Agent, Tracking
from extremal.losses.base import Loss
from extremal.methods.method import Method
from extremal.moves.consensus import Consensus, agent_step
from extremal.objectives.linear import LinearModel
from extremal.points.iterates import freeze
from extremal.run.counting import CountedSet
from extremal.run.result import Calls
from extremal.scale.cluster import GONE, executed
from extremal.scale.host import Answers
from extremal.scale.wire import Packed, pack, sent, unpack
from extremal.sets.base import ConvexSet

SAVED = 10  # iterations between two copies of an agent's state, kept by a neighbour
Copies = dict[tuple[int, int], Packed]


class Unheard(Exception):
    """A neighbour does not hear an agent."""


class Resident(Answers):
    """An agent that lives on a worker: its state, the messages of its neighbours, and copies of their states."""

    def __init__(self, i: int, directory: str, loss: Loss, C: ConvexSet, method: Method, seed: int, timeout: float):
        data = ShardDir(directory, engine="disk")
        tracking, move = parts_of(method)
        f = LinearModel(loss, data, data.targets, data.weights)  # the agent does not look at the targets of others
        self.i, self.step, self.C, self.timeout = i, method.step, CountedSet(C.relaxed, Calls()), timeout
        self.agent = Agent.of(tracking, f, i, seed=seed)
        self.xh = freeze(np.asarray(C.start(), f.dtype))
        self.state = self.agent.init(self.xh)
        self.gossip = {"s": tracking.gossip, "x": move.gossip}
        self.known = {
            "s": tracking.gossip.start(self.state.s, common=False),
            "x": move.gossip.start(self.xh, common=True),
        }
        self.copies: Copies = {(i, 0): self._packed}  # by agent and iteration: its own copies, and those of neighbours
        self.heard: dict[tuple[str, int], dict[int, Message]] = {}
        self.said: dict[str, Message] = {}  # its own last messages
        self.near: Mapping[int, tuple[str, str]] = {}
        self.sent: Counter[int] = Counter()  # bytes to each neighbour, since the last report to the driver

    def _done(self, order: str, head: bytes, buffers: list[Any]) -> Any:
        orders = {
            "held": self.held, "meet": self.meet, "give": self.give, "begin": self.begin,
            "save": self.save, "move": self.move, "follow": self.follow, "end": self.end,
        }  # fmt: skip
        self.sent = Counter()
        return orders[order](*unpack(head, buffers)), self.sent

    @property
    def _packed(self) -> Packed:
        return pack((self.xh, self.state, self.known)).kept

    def held(self) -> set[tuple[int, int]]:
        """The agents and iterations of the copies that it has."""
        return set(self.copies)

    def meet(self, near: Mapping[int, tuple[str, str]]) -> None:
        """Set the agents that hear this one: for each the address of the worker, and the key there."""
        self.near = near

    def begin(self, k: int) -> None:
        """Return to the state of iteration k, and send s_i."""
        self.xh, self.state, self.known = unpack(*sent(self.copies[self.i, k]))
        freeze(self.xh)
        for key in [*self.heard]:  # in place: vectors of neighbours may arrive meanwhile
            if key[1] < k:
                self.heard.pop(key, None)
        self._tell("s", k, self.state.s)

    def save(self, k: int, keeper: int | None) -> None:
        """Copy the state of iteration k, for itself and for a neighbour."""
        copy = self._packed
        self._kept(self.i, k, copy)
        if keeper is not None:
            self._send([keeper], copy.size, "keep", self.i, k, *sent(copy))

    def give(self, i: int, k: int) -> None:
        """Give a newly created neighbour the copy of its state."""
        self._send([i], self.copies[i, k].size, "keep", i, k, *sent(self.copies[i, k]))

    def move(self, k: int) -> None:
        """Compute p_i from the received s_j, take a Frank-Wolfe step from xh_i, and send x_i."""
        self.p = freeze(self._averaged("s", k, self.state.s))
        self.x = agent_step(k, self.agent.f, self.C, self.xh, self.p, phase_of(self.state.own), self.step)
        self._tell("x", k, self.x)

    def follow(self, k: int) -> None:
        """Compute xh_i from the received x_j, and the gradient there, and send s_i."""
        old, self.xh = self.xh, freeze(self._averaged("x", k, self.x))
        self.state = self.agent.update(k, old, self.xh, self.state, self.p)
        self._tell("s", k + 1, self.state.s)

    def end(self) -> np.ndarray:
        """Return x_i."""
        return self.x

    async def hear(self, what: str, k: int, sender: int, message: Message) -> None:
        """Note a message of a neighbour, also while this agent is at work. A repeated message has the same content."""
        self.heard.setdefault((what, k), {})[sender] = message

    async def keep(self, i: int, k: int, head: bytes, buffers: list[np.ndarray]) -> None:
        """Keep a copy of a state: a neighbour's, or its own, returned by a neighbour."""
        self._kept(i, k, Packed(head, tuple(buffers)))

    def _kept(self, i: int, k: int, copy: Packed) -> None:
        """Keep the start and the last two copies of each agent, because another agent may lack the last one."""
        rest = {key: old for key, old in self.copies.items() if key[0] != i or key[1] in {0, k - SAVED}}
        self.copies = {**rest, (i, k): copy}

    def _averaged(self, what: str, k: int, own: np.ndarray) -> np.ndarray:
        """The average of this agent, by the function that the simulation also calls."""
        said = self.heard.pop((what, k), {}) | {self.i: self.said[what]}
        found, self.known[what] = self.gossip[what].hear(self.i, own, self.known[what], said)
        return found

    def _tell(self, what: str, k: int, vector: np.ndarray) -> None:
        message = self.said[what] = self.gossip[what].say(k, vector, self.known[what], self.agent.sampler)
        self._send(list(self.near), len(message.payload), "hear", what, k, self.i, message)

    def _send(self, to: list[int], size: int, function: str, *given: Any) -> None:
        """Call a method of several neighbours in parallel; each gets ``size`` bytes."""
        worker, calls = get_worker(), list[tuple[int, Any]]()
        for j in to:
            address, key = self.near[j]
            todo = executed(worker.rpc(address).actor_execute, key, function, *given)
            calls.append((j, asyncio.run_coroutine_threadsafe(todo, worker.loop.asyncio_loop)))  # type: ignore[attr-defined]
        for j, call in calls:
            try:
                call.result(self.timeout)
            except GONE:
                raise Unheard(f"agent {j} on the Dask worker {self.near[j][0]} does not hear agent {self.i}") from None
            self.sent[j] += size


def parts_of(method: Method) -> tuple[Tracking, Consensus]:
    """The two parts of a method for agents."""
    if not isinstance(method.gradient, Tracking) or not isinstance(method.move, Consensus):
        raise InputError(f"`run_agents(method=...)` must be DMFW(), or a method of Tracking and Consensus, got {method}")
    return method.gradient, method.move
