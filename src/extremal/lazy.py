"""Names that are imported when they are first asked for: whoever uses one set pays for one set.

A package lists its names twice: as imports under ``TYPE_CHECKING``, which editors and type checkers read and which never run,
and in the table that `attach` takes. A test holds the two against each other.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any


def attach(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a package whose names live in its modules (PEP 562).

    ``homes`` has, for each module of the package, the names that are taken from it, with blanks between them. The modules
    themselves are attributes too, as they would be after an ordinary import.
    """
    home = {name: module for module, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name in home:
            value = getattr(import_module(f"{package}.{home[name]}"), name)
        elif name in homes:
            value = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])
        setattr(sys.modules[package], name, value)  # the next one to ask finds it without us
        return value

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home, *homes})

    return get, listed


class Named(Mapping[str, Any]):
    """Parts of a package by short names; a part is imported when it is looked up, and its name costs nothing.

    Examples
    --------
    >>> methods = Named("extremal.methods", {"sarah-fw": "SarahFW"})
    >>> list(methods), methods["sarah-fw"].__name__
    (['sarah-fw'], 'SarahFW')
    """

    def __init__(self, package: str, names: dict[str, str]):
        self._package, self._names = package, names

    def __getitem__(self, name: str) -> Any:
        return getattr(import_module(self._package), self._names[name])

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"Named({self._package!r}, {self._names})"
