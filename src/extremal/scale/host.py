"""A host: an actor on a Dask worker that has some shards, does works on them and keeps numbers of their rows."""

from __future__ import annotations

import hashlib
import pickle
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from extremal.checks import InputError
from extremal.data.around import Around
from extremal.data.parts import Part, tree_sum
from extremal.files.shards.engine import LocalShards
from extremal.files.shards.manifest import Manifest, read_manifest
from extremal.scale.branches import Branch
from extremal.scale.numbers import HostNumbers, Store
from extremal.scale.wire import Packed, pack, sent, unpack
from extremal.support import clock

BY_BRANCH, BY_PART, NO_ANSWER = "branches", "parts", "nothing"  # the wanted form of an answer


@dataclass(frozen=True)
class Order:
    """The instructions of a call to a host, beside the work."""

    number: int
    wanted: str
    fresh: tuple[str, ...] = ()  # the numbers that the work fills
    drop: tuple[str, ...] = ()  # numbers that are no longer needed
    only: int | None = None  # the one requested part


def digest_of(manifest: Manifest) -> str:
    """A digest that identifies a manifest."""
    return hashlib.sha256(repr(manifest).encode()).hexdigest()


class Answers(ABC):
    """An actor on a worker that executes orders; answers are packed, errors included."""

    def do(self, order: Any, head: bytes, buffers: list[Any]) -> tuple[bytes, list[Any]]:
        """Execute an order with a message; the answer includes the seconds and the CPU seconds that it took."""
        start, cpu = time.perf_counter(), time.thread_time()

        def packed(fine: bool, found: object) -> Packed:
            return pack((fine, found, time.perf_counter() - start, time.thread_time() - cpu))

        try:
            return sent(packed(True, self._done(order, head, buffers)))
        except Exception as error:  # also an answer that cannot be packed
            return sent(packed(False, _sendable(error)))

    @abstractmethod
    def _done(self, order: Any, head: bytes, buffers: list[Any]) -> Any: ...


class Host(Answers):
    """Some branches of the tree of parts; shards are mapped on first use."""

    def __init__(self, directory: str, digest: str, branches: tuple[Branch, ...]):
        self.directory, self.digest, self.branches = directory, digest, branches
        self.own = tuple(i for lo, hi in branches for i in range(lo, hi))
        self.stopped = -1  # the last call that the driver does not wait for
        self._store: Store | None = None

    async def stop(self, number: int) -> None:
        """Note that the driver does not wait for calls up to this number. It interrupts, because it needs no thread."""
        self.stopped = max(self.stopped, number)

    def names(self) -> list[str]:
        """The names of the numbers that are kept here."""
        return [] if self._store is None else self._store.names

    def _done(self, order: Order, head: bytes, buffers: list[Any]) -> Any:
        with clock.deadline(lambda: self.stopped >= order.number):
            return self._worked(order, head, buffers)

    def _worked(self, order: Order, head: bytes, buffers: list[Any]) -> Any:
        store = self._store = self._store or self._opened()
        store.drop(order.drop)

        def find(name: str, shape: tuple[int, ...]) -> HostNumbers:
            return HostNumbers(store, name, shape, name in order.fresh)

        work = _Placed(unpack(head, buffers, find, lock=True), self.own, self._starts)
        if order.only is not None:
            return store.local.answer(work, self.own.index(order.only))
        _, answers = store.local.answers(work)
        if order.wanted == BY_BRANCH:
            return {branch: tree_sum(answers, *branch) for branch in self.branches}
        found = list(answers)
        return None if order.wanted == NO_ANSWER else found

    def _opened(self) -> Store:
        from distributed import get_worker  # only here: an import of this module for its names does not need it

        worker = get_worker()
        try:
            manifest = read_manifest(Path(self.directory))
        except InputError as error:
            raise InputError(f"the Dask worker {worker.address} does not see the shards: {error}") from None
        if digest_of(manifest) != self.digest:
            raise InputError(f"{self.directory}: the Dask worker {worker.address} finds another manifest there than the driver")
        shards = tuple(manifest.shards[i] for i in self.own)
        some = replace(manifest, n=sum(shard.n for shard in shards), nnz=sum(shard.nnz for shard in shards), shards=shards)
        self._starts = tuple(manifest.first_rows[i] for i in self.own)
        local = LocalShards(Path(self.directory), some, keep=False, threads=worker.state.nthreads)
        return Store(local, self.own, manifest.n)


@dataclass(frozen=True)
class _Placed(Around):
    """A work on some of all parts, which sets the index and the rows of each part."""

    own: tuple[int, ...]
    starts: tuple[int, ...]

    def changed(self, part: Part) -> Part:
        return self.placed(part)

    def placed(self, part: Part) -> Part:
        first = self.starts[part.index]
        return replace(part, index=self.own[part.index], at=slice(first, first + part.n))


def _sendable(error: Exception) -> Exception:
    """The error itself, if it can be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
