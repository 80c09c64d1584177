"""The Dask engine of a directory of shards: one host on each worker does every work on its own parts.

A pass is one call of each host, which contains the work. A host answers with one sum for each of its branches of the tree of
parts. The driver adds the rest of the tree: the same bits as in one process. If a host is lost, or its worker is silent, a new
host is created on another worker. It repeats the works behind the numbers that the old host kept, and then the call.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

from distributed import Client

from extremal.data.around import innermost
from extremal.data.parts import PerRow, Sums, Work, tree_sum
from extremal.data.works import Picked, WholePart
from extremal.files.shards.engine import ShardParts
from extremal.files.shards.manifest import Manifest
from extremal.scale.branches import Branch, shares
from extremal.scale.cluster import ATTEMPTS, ClusterError, Costs, Link, Lost, Workers
from extremal.scale.host import BY_BRANCH, BY_PART, NO_ANSWER, Host, Order, digest_of
from extremal.scale.local import closed, local_client
from extremal.scale.numbers import Made, RemoteNumbers, history
from extremal.scale.wire import Packed, pack


@dataclass
class Seat:
    """The parts of one host, on any worker."""

    branches: tuple[Branch, ...]
    spans: tuple[slice, ...]  # the rows of the branches
    link: Link | None = None
    losses: list[str] = field(default_factory=list)  # reasons for lost hosts in the current call
    gone: list[str] = field(default_factory=list)  # numbers that the host need not keep

    @property
    def parts(self) -> list[int]:
        """The indices of its parts among all parts."""
        return [i for lo, hi in self.branches for i in range(lo, hi)]


@dataclass(frozen=True)
class _Call:
    """A call of a host, and the answer to wait for."""

    seat: Seat
    order: Order
    message: Packed
    link: Link
    future: Future[Any]


class DaskShards(ShardParts):
    """The shards of a directory, read by the workers of a client, which must see the directory under the same path.

    Without a client the engine starts a cluster of this machine, and `close` ends it. ``timeout`` is the number of seconds that a
    worker may give no sign of life before other workers take over its shards. A busy worker still gives signs.
    """

    away = True

    def __init__(self, directory: Path, manifest: Manifest, client: Client | None = None, timeout: float = 5.0):
        self.directory, self.manifest, self.n = Path(directory).absolute(), manifest, manifest.n
        many = len(manifest.shards)
        self._closing = None
        if client is None:
            client, cluster = local_client(many)
            self._closing = weakref.finalize(self, closed, client, cluster)
        self.workers = Workers(client, timeout)
        self._given, self._numbers, self._calls = digest_of(manifest), count(), count()
        self._seats: list[Seat] = []
        self._live: weakref.WeakValueDictionary[str, RemoteNumbers] = weakref.WeakValueDictionary()
        self._dropped: deque[str] = deque()
        self._turn = threading.RLock()  # one pass at a time

    @property
    def where(self) -> str:
        """Where rows are read, in words."""
        many = len({seat.link.address for seat in self._seats if seat.link is not None})
        return f"on {many or 'the'} Dask {'worker' if many == 1 else 'workers'}"

    @property
    def timeout(self) -> float:
        """The seconds that a worker may be silent."""
        return self.workers.timeout

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        self.workers.timeout = seconds

    def take_costs(self) -> Costs:
        """The costs of the hosts since the last call of this method: calls, bytes, seconds."""
        costs, self.workers.costs = self.workers.costs, Costs()
        return costs

    def room(self, n: int, *shape: int) -> PerRow:
        """A handle; hosts allocate the numbers at the first write, and drop them some time after the handle is gone."""
        handle = RemoteNumbers(f"n{next(self._numbers)}", (n, *shape))
        self._live[handle.name] = handle
        weakref.finalize(handle, self._dropped.append, handle.name).atexit = False
        return handle  # type: ignore[return-value]

    def reduced(self, work: Work) -> Sums:
        """The sum over all parts: hosts add their branches, and the driver adds the rest of the tree."""
        found: dict[Branch, Sums] = {}
        for seat, sums in self._pass(work, BY_BRANCH):
            found.update(dict.fromkeys(seat.branches, (None,)) if sums is None else sums)
        return tree_sum(iter(()), 0, len(self.manifest.shards), found)

    def answers(self, work: Work) -> tuple[int, Iterator[Sums]]:
        """The answers of all parts, or of those with a requested row; whole parts come one by one."""
        if isinstance(innermost(work), WholePart):
            parts = range(len(self.manifest.shards))
            return len(parts), (self._one(work, i) for i in parts)
        found: dict[int, Sums] = {}
        for seat, own in self._pass(work, BY_PART):
            found.update({} if own is None else zip(seat.parts, own, strict=True))
        return len(found), (found[i] for i in sorted(found))

    def close(self) -> None:
        """Release the hosts, and close the cluster if the engine has started one."""
        self._seats = []
        if self._closing is not None:
            self._closing()

    def _one(self, work: Work, i: int) -> Sums:
        with self._turn:
            seat = next(seat for seat in self._seated() if i in seat.parts)
            message = pack(work)
            order = Order(next(self._calls), BY_PART, only=i)
            return self._answered([self._called(seat, order, message)], order)[0]

    def _pass(self, work: Work, wanted: str) -> list[tuple[Seat, Any]]:
        """The answer of each host; None for a host that was not called, because it has none of the picked rows."""
        with self._turn:
            seats = self._seated()
            messages = _messages(work, seats)
            handles = {handle.name: handle for message in messages if message for handle in message.handles}.values()
            fresh = tuple(handle.name for handle in handles if handle.made is None)
            order = Order(next(self._calls), wanted, fresh)
            calls = [None if m is None else self._called(seat, order, m) for seat, m in zip(seats, messages, strict=True)]
            found = self._answered(calls, order)
            if fresh:
                behind = tuple(handle.made for handle in handles if handle.made is not None)
                assert messages[0] is not None
                made = Made(order.number, messages[0].kept, fresh, behind)
                for name in fresh:
                    self._live[name].made = made
            return list(zip(seats, found, strict=True))

    def _answered(self, calls: Sequence[_Call | None], order: Order) -> list[Any]:
        """The answers to some calls; hosts are told to stop if nobody waits for them any more."""
        try:
            return [None if call is None else self._made_sure(call) for call in calls]
        except BaseException:
            self.workers.stop([call.link for call in calls if call is not None], order.number)
            raise

    def _seated(self) -> list[Seat]:
        """The parts of each host: assigned to the present workers on first use, and again if some hosts share a worker."""
        if not self._seats:
            first, sizes = self.manifest.first_rows, [_bytes(self.manifest, i) for i in range(len(self.manifest.shards))]
            there = self.workers.alive()
            for own in shares(sizes, len(there)):
                self._seats.append(Seat(own, tuple(slice(first[lo], first[hi]) for lo, hi in own)))
            for seat, address in zip(self._seats, there, strict=False):
                seat.link = self._asked(seat, address)
        gone = [self._dropped.popleft() for _ in range(len(self._dropped))]
        for seat in self._seats:
            seat.losses, seat.gone = [], seat.gone + gone
        if len({seat.link.address for seat in self._seats if seat.link}) < len(self._seats):
            self._spread()
        return self._seats

    def _spread(self) -> None:
        """Move seats that share a worker, one to each worker without a seat."""
        held = [seat.link.address for seat in self._seats if seat.link]
        free = [address for address in self.workers.alive() if address not in held and address not in self.workers.avoid]
        for seat in self._seats:
            if free and seat.link is not None and held.count(seat.link.address) > 1:
                held.remove(seat.link.address)
                seat.link = None

    def _asked(self, seat: Seat, address: str) -> Link:
        names = [self.manifest.shards[i].name for i in seat.parts]
        return self.workers.asked(
            address, f"host-{names[0]}-to-{names[-1]}", Host, str(self.directory), self._given, seat.branches
        )

    def _called(self, seat: Seat, order: Order, message: Packed) -> _Call:
        """Send a call to the host of a seat, which is created if there is none."""
        while True:
            try:
                link = self._settled(seat)
                order, seat.gone = replace(order, drop=tuple(seat.gone)), []
                return _Call(seat, order, message, link, self.workers.call(link, order, message))
            except Lost as loss:
                self._note(seat, loss)

    def _made_sure(self, call: _Call) -> Any:
        """The answer to a call, which is repeated if a host is lost, until too many were."""
        while True:
            try:
                return self.workers.answer(call.link, call.future)
            except Lost as loss:
                self._note(call.seat, loss)
            call = self._called(call.seat, call.order, call.message)

    def _note(self, seat: Seat, loss: Lost) -> None:
        """Note a lost host and avoid its worker; after several losses, raise an error that names the shards."""
        if seat.link is not None:
            self.workers.avoid.add(seat.link.address)
        seat.link = None
        seat.losses.append(str(loss))
        if len(seat.losses) >= ATTEMPTS:
            names = [self.manifest.shards[i].name for i in seat.parts]
            raise ClusterError(
                f"{self.directory}: the hosts of shards {', '.join(names)} were lost {len(seat.losses)} times in one call; "
                f"no shard is left out, so the run ends here ({seat.losses[-1]})"
            )

    def _settled(self, seat: Seat) -> Link:
        """The host of a seat. A new host first repeats the works behind all numbers that are still in use."""
        link = seat.link
        if link is not None and link.ready:
            return link
        if link is None:
            link = seat.link = self._asked(seat, self.workers.least_busy(seat.link for seat in self._seats))
        self.workers.made(link)
        self._replayed(seat, link)
        link.ready = True
        return link

    def _replayed(self, seat: Seat, link: Link) -> None:
        """Have a new host repeat all works behind the numbers that are in use."""
        live = dict(self._live)
        works = history(handle.made for handle in live.values())
        for work in works:
            order = Order(next(self._calls), NO_ANSWER, work.fresh)
            self.workers.answer(link, self.workers.call(link, order, work.request))
        seat.gone = [name for name in chain(*(work.fresh for work in works)) if name not in live]


def _messages(work: Work, seats: Sequence[Seat]) -> list[Packed | None]:
    """The work, packed once for all hosts; picked rows go only to the hosts that have them."""
    if not isinstance(work, Picked):
        return [pack(work)] * len(seats)
    own = [work.among(seat.spans) for seat in seats]
    return [None if some is None else pack(some) for some in own]


def _bytes(manifest: Manifest, i: int) -> int:
    return sum(mark.bytes for mark in manifest.shards[i].files.values())
