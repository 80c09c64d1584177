"""The workers of a Dask client: which are present, which are silent, hosts on them, and calls that never wait forever."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

from distributed import Client, KilledWorker, secede
from distributed.protocol.serialize import to_serialize

from extremal.checks import InputError
from extremal.scale.host import Answers
from extremal.scale.wire import Packed, sent, unpack
from extremal.support import clock

ATTEMPTS = 3  # number of attempts on lost workers before an error
GONE = OSError, KeyError, AttributeError, RuntimeError, CancelledError, asyncio.CancelledError  # calls of actors that are gone
POLL = 0.2  # seconds between two looks at a worker that has not answered yet


class ClusterError(ConnectionError):
    """The cluster cannot go on: its scheduler or its workers are gone."""


class Lost(Exception):
    """A host is lost, or its worker is silent: its data can be created again elsewhere."""


@dataclass
class Link:
    """A host and its worker."""

    address: str
    key: str
    held: Any  # the future of the actor, which lives as long as this link
    ready: bool = False  # whether the host has all numbers that are in use

    def __str__(self) -> str:
        return self.address


@dataclass
class Costs:
    """The total cost of calls to hosts."""

    calls: int = 0
    sent: int = 0  # bytes of messages
    back: int = 0  # bytes of answers
    cpu: float = 0.0  # seconds of the threads that did the works
    longest: float = 0.0  # the most seconds that a host took for one call


class Workers:
    """The workers of a client. Every question to them has a timeout in seconds."""

    def __init__(self, client: Client, timeout: float, call: str = "ShardDir"):
        if not isinstance(client, Client) or client.asynchronous:
            raise InputError(f"`{call}(client=...)` must be a distributed.Client that is not asynchronous, got {client!r}")
        self.client, self.timeout = client, timeout
        with suppress(ValueError, KeyError):  # not in a task of a cluster, or seceded before
            secede()  # a task would keep the thread that hosts and agents need
        self.costs = Costs()
        self.avoid: set[str] = set()  # workers that have lost hosts
        self._beats: dict[str, tuple[float, float]] = {}  # the last sign of each worker, and the time when it was seen
        self._paused: set[str] = set()  # workers that take no tasks now
        self._direct: bool | None = None  # whether workers can be reached without the scheduler

    def ages(self) -> dict[str, float]:
        """The present workers, and the seconds for which each has been silent."""
        try:
            held = self._sync(self._identity)["workers"]
        except (OSError, CancelledError, asyncio.CancelledError, RuntimeError, AttributeError) as error:
            why = "" if self.client.scheduler is None else f" ({_told(error)})"
            raise ClusterError(f"the Dask scheduler {self._scheduler} does not answer{why}") from None
        now, newest = time.monotonic(), max((item["last_seen"] for item in held.values()), default=0.0)
        self._paused = {address for address, item in held.items() if item.get("status", "running") != "running"}
        seen = {address: float(item["last_seen"]) for address, item in held.items()}
        old = {address: self._beats.get(address, (beat, now)) for address, beat in seen.items()}
        self._beats = {a: old[a] if old[a][0] == beat else (beat, now) for a, beat in seen.items()}
        return {a: max(now - noticed, newest - beat) for a, (beat, noticed) in self._beats.items()}

    async def _identity(self) -> dict[str, Any]:
        return await asyncio.wait_for(self.client.scheduler.identity(n_workers=-1), self.timeout)  # type: ignore[union-attr]

    def _sync(self, function: Callable[..., Any], *given: Any) -> Any:
        return self.client.sync(function, *given, callback_timeout=self.timeout + 1.0)

    @property
    def _scheduler(self) -> str:
        scheduler = self.client.scheduler
        return "of a client that is closed" if scheduler is None else str(scheduler.address)

    def alive(self) -> list[str]:
        """Workers that answer and take tasks; workers that lost a host only if no other turns up in time."""
        end = time.monotonic() + self.timeout
        while True:
            ages, late = self.ages(), time.monotonic() > end
            found = [address for address, age in ages.items() if age < self.timeout and address not in self._paused]
            if new := [address for address in found if address not in self.avoid]:
                return new
            if late and found:
                return found
            if late:
                raise ClusterError(f"the Dask scheduler {self._scheduler} has no worker that answers")
            time.sleep(POLL)

    def least_busy(self, links: Iterable[Link | None]) -> str:
        """The worker with the fewest of these hosts."""
        held = [link.address for link in links if link is not None]
        return min(self.alive(), key=held.count)

    def asked(self, address: str, name: str, kind: type[Answers], *given: Any) -> Link:
        """Ask a worker for a new host or agent, without waiting for it. Dashboards show its name."""
        key = f"extremal-{name}-{uuid4().hex[:8]}"
        return Link(address, key, self.client.submit(kind, *given, key=key, actor=True, workers=[address], pure=False))

    def made(self, link: Link) -> None:
        """Wait until the host is there."""
        while True:
            try:
                link.held.result(timeout=POLL)
                return
            except TimeoutError:
                if self.is_lost(link) or link.address in self._paused:
                    raise Lost(f"nothing could be made on the Dask worker {link}") from None
                clock.check()
            except (OSError, RuntimeError, KilledWorker, CancelledError, asyncio.CancelledError) as error:
                raise Lost(f"the Dask worker {link} is lost: {_told(error)}") from None
            except Exception as error:
                raise ClusterError(f"the Dask worker {link} cannot make a host of shards ({_told(error)})") from None

    def is_lost(self, link: Link) -> bool:
        """Whether its worker is gone, or silent for too long."""
        age = self.ages().get(link.address)
        return age is None or age >= self.timeout

    def call(self, link: Link, order: object, message: Packed) -> Future[Any]:
        """Have a host execute an order."""
        self.costs.calls += 1
        self.costs.sent += message.size
        return self._submitted(self._execute(link, "do", order, *sent(message)))

    def names(self, link: Link) -> list[str]:
        """The names of the numbers that a host keeps."""
        return self._submitted(self._execute(link, "names")).result(self.timeout)

    def stop(self, links: Iterable[Link], number: int) -> None:
        """Tell hosts that nobody waits for a call any more, without waiting for their answer."""
        for link in links:
            with suppress(RuntimeError):
                self._submitted(self._execute(link, "stop", number))

    def answer(self, link: Link, call: Future[Any]) -> Any:
        """The answer to a call; raise `Lost` if the host is lost, and errors of the host as they are."""
        while True:
            try:
                head, buffers = call.result(timeout=POLL)
                break
            except TimeoutError as error:
                if call.exception() is error if call.done() else self.is_lost(link):
                    call.cancel()
                    raise Lost(f"the Dask worker {link} is silent") from None
                clock.check()
            except GONE as error:
                raise Lost(f"the Dask worker {link} is lost: {_told(error)}") from None
        fine, found, seconds, cpu = unpack(head, buffers)
        costs = self.costs
        costs.back += len(head) + sum(a.nbytes for a in buffers)
        costs.cpu, costs.longest = costs.cpu + cpu, max(costs.longest, seconds)
        if not fine:
            raise found
        return found

    def _submitted(self, todo: Any) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(todo, self.client.loop.asyncio_loop)  # type: ignore[union-attr]

    async def _execute(self, link: Link, function: str, *given: Any) -> Any:
        """Call a method of a host; through the scheduler if workers cannot be reached."""
        if self._direct is None:
            self._direct = await self._reached(link.address)
        if self._direct:
            return await executed(self.client.rpc(link.address).actor_execute, link.key, function, *given)
        return await executed(partial(self._forwarded, link.address), link.key, function, *given)

    async def _forwarded(self, address: str, **what: Any) -> Any:
        return await self.client.scheduler.proxy(worker=address, msg={"op": "actor_execute", **what})  # type: ignore[union-attr]

    async def _reached(self, address: str) -> bool:
        try:
            await asyncio.wait_for(self.client.rpc(address).identity(), self.timeout / 2)
        except OSError:  # a timeout included
            return False
        return True


async def executed(execute: Callable[..., Any], key: str, function: str, *given: Any) -> Any:
    """Call a method of an actor on another worker, by the function that executes it there."""
    found = await execute(function=function, actor=key, args=[to_serialize(item) for item in given], kwargs={})
    if found["status"] != "OK":
        raise found["exception"]
    return found["result"]


def _told(error: BaseException) -> str:
    """An error in one line."""
    return str(error).partition("\n")[0] or type(error).__name__
