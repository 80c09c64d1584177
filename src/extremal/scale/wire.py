"""Messages between driver and hosts: pickled once, with arrays apart; handles of kept numbers travel by name."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cloudpickle
import numpy as np

from extremal.scale.numbers import RemoteNumbers

Handle = tuple[str, tuple[int, ...]]  # name and shape


@dataclass(frozen=True)
class Packed:
    """A message, and the handles that it contains."""

    head: bytes
    buffers: tuple[np.ndarray, ...]  # bytes
    handles: tuple[RemoteNumbers, ...] = ()

    @property
    def size(self) -> int:
        """The size in bytes."""
        return len(self.head) + sum(buffer.nbytes for buffer in self.buffers)

    @property
    def kept(self) -> Packed:
        """An independent copy, without the handles."""
        return Packed(self.head, tuple(buffer.copy() for buffer in self.buffers))


class _Pickler(cloudpickle.Pickler):
    def __init__(self, file: io.BytesIO, buffers: list[pickle.PickleBuffer]):
        super().__init__(file, protocol=5, buffer_callback=buffers.append)  # type: ignore[call-arg]
        self.handles: dict[str, RemoteNumbers] = {}

    def persistent_id(self, item: object) -> Handle | None:
        if not isinstance(item, RemoteNumbers):
            return None
        self.handles[item.name] = item
        return item.name, item.shape


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, buffers: Any, find: Callable[..., Any] | None):
        super().__init__(file, buffers=buffers)
        self._find = find

    def persistent_load(self, pid: Handle) -> Any:
        assert self._find is not None
        return self._find(*pid)


def pack(message: object) -> Packed:
    """Pack a message for sending.

    Examples
    --------
    >>> unpack(*sent(pack((1, np.arange(3.0)))))
    (1, array([0., 1., 2.]))
    """
    file, buffers = io.BytesIO(), []
    pickler = _Pickler(file, buffers)
    pickler.dump(message)
    arrays = tuple(np.frombuffer(raw, np.uint8) if raw.nbytes else np.empty(0, np.uint8) for raw in (b.raw() for b in buffers))
    return Packed(file.getvalue(), arrays, tuple(pickler.handles.values()))


def sent(message: Packed) -> tuple[bytes, list[np.ndarray]]:
    """The two parts that go over the wire."""
    return message.head, list(message.buffers)


def unpack(head: bytes, buffers: list[np.ndarray], find: Callable[..., Any] | None = None, lock: bool = False) -> Any:
    """Unpack a message. Its arrays are copied to aligned memory, because received bytes may lie anywhere.

    With ``lock``, arrays are read-only, like those of the driver; otherwise kernels would be compiled again for them.
    """
    own = [buffer.copy() for buffer in buffers]
    for buffer in own:
        buffer.flags.writeable = not lock
    return _Unpickler(io.BytesIO(head), own, find).load()
