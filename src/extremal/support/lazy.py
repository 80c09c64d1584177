"""Lazy imports: names are imported at first use, so that a user of one set pays for one set.

A package lists its names once, in its stub file ``__init__.pyi``, which editors, type checkers and `attach` read.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import FrameType, ModuleType
from typing import Any

import lazy_loader


def imported(module: str) -> ModuleType:
    """Import a module if needed. Ctrl-C waits until then, because half-imported packages may stay broken."""
    found = sys.modules.get(module)
    if found is not None and not getattr(getattr(found, "__spec__", None), "_initializing", False):
        return found
    with unbroken():
        return import_module(module)


@contextmanager
def unbroken() -> Iterator[None]:
    """Delay Ctrl-C until the work inside is done. Threads other than the main one never see it anyway."""
    handler = signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
    if not callable(handler):
        yield
        return
    caught: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: caught.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if caught:
            handler(*caught[0])


def attach(package: str, filename: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """The ``__getattr__``, ``__dir__`` and ``__all__`` of a package, from its stub file; Ctrl-C waits during an import."""
    get, listed, names = lazy_loader.attach_stub(package, filename)

    def attribute(name: str) -> object:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])
        with unbroken():
            return get(name)

    return attribute, listed, names


class Named(Mapping[str, Any]):
    """Parts of a package by short names; a lookup imports a part, while its name costs nothing.

    Examples
    --------
    >>> methods = Named("extremal.methods", {"sarah-fw": "SarahFW"})
    >>> list(methods), methods["sarah-fw"].__name__
    (['sarah-fw'], 'SarahFW')
    """

    def __init__(self, package: str, names: dict[str, str]):
        self._package, self._names = package, names

    def __getitem__(self, name: str) -> Any:
        return getattr(imported(self._package), self._names[name])

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"Named({self._package!r}, {self._names})"
