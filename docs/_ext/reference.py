"""Pages of the reference, written from the stub files of the library: each public name has one page."""

from __future__ import annotations

import functools
import importlib
import inspect
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from sphinx.application import Sphinx


class Group(NamedTuple):
    """A page of the reference: the rooms whose public names it lists."""

    title: str
    intro: str
    rooms: tuple[str, ...]


GROUPS = {
    "run": Group("Solve", "Minimise, follow a path, drive the loop, read the result.", ("run", "checks", "support.versions")),
    "sklearn": Group("Estimators", "Models for scikit-learn, and their pictures.", ("sklearn",)),
    "sets": Group("Sets", "Constraints. Each set is known by its linear minimisation oracle.", ("sets", "rounding")),
    "losses": Group("Losses", "What a model is fitted by.", ("losses",)),
    "objectives": Group("Objectives and data", "Sums of losses over rows, and the rows.", ("objectives", "data", "files")),
    "methods": Group("Methods", "Named methods. `minimize` chooses one if it is told none.", ("methods",)),
    "gradients": Group("Gradients", "Estimators of the gradient: one of the three parts of a method.", ("gradients",)),
    "steps": Group("Steps", "Step rules: one of the three parts of a method.", ("steps",)),
    "moves": Group("Moves", "What a step does with a gradient: one of the three parts of a method.", ("moves",)),
    "points": Group("Points", "Vertices, iterates, active sets and manifolds.", ("points",)),
}
PAGE = "{title}\n{line}\n\n{intro}\n\n.. autosummary::\n   :toctree: api\n   :nosignatures:\n\n{names}\n"
INDEX = """Reference
=========

Every public name, with its formula, its cost and an example.

.. toctree::
   :maxdepth: 1

{pages}
"""


def write(app: Sphinx, config: object) -> None:
    """Write the pages before Sphinx lists its files."""
    folder = Path(app.srcdir) / "reference"
    folder.mkdir(exist_ok=True)
    for name, group in GROUPS.items():
        names = "\n".join(f"   {full}" for full in sorted(_names(group.rooms), key=lambda full: full.split(".")[-1].lower()))
        _put(folder / f"{name}.rst", PAGE.format(title=group.title, line="=" * len(group.title), intro=group.intro, names=names))
    for page in (folder / "api").glob("*.rst"):
        if page.stem not in public_names().values():  # of a name that is gone
            page.unlink()
    _put(folder / "index.rst", INDEX.format(pages="\n".join(f"   {name}" for name in GROUPS)))


def _put(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:  # unchanged pages are not built again
        path.write_text(text)


@functools.cache
def public_names() -> dict[str, str]:
    """The full name of each public name, by the short one."""
    return {full.split(".")[-1]: full for group in GROUPS.values() for full in _names(group.rooms)}


def _names(rooms: tuple[str, ...]) -> set[str]:
    """Public names of some rooms, each by the shortest way to import it."""
    top = importlib.import_module("extremal")
    short = {id(getattr(top, name)): f"extremal.{name}" for name in top.__all__}
    return {short.get(id(value), f"{room}.{name}") for room, name, value in _public(rooms)}


def _public(rooms: tuple[str, ...]):
    for room in (f"extremal.{name}" for name in rooms):
        module = importlib.import_module(room)
        for name in dir(module):
            value = getattr(module, name)
            if name in _listed(room, module) and (inspect.isclass(value) or inspect.isfunction(value)) and _of(value, room):
                yield room, name, value


def _listed(room: str, module: ModuleType) -> list[str]:
    """The names of a stub file; of a plain module, those that the top level has too."""
    return module.__all__ if hasattr(module, "__all__") else list(importlib.import_module("extremal").__all__)


def _of(value: object, room: str) -> bool:
    return inspect.getmodule(value).__name__.startswith(room)


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages as soon as the configuration is read."""
    app.connect("config-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
