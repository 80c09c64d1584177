"""Docstrings as reStructuredText: indented formulas are literal blocks, bars and stars are themselves."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from reference import public_names
from sphinx.application import Sphinx

CODE = re.compile(r"(``.+?``|`[^`]+`_?)")
MODULES = {
    "np": ">>> import numpy as np",
    "pd": ">>> import pandas as pd",
    "sp": ">>> import scipy.sparse as sp",
    "math": ">>> import math",
    "ex": ">>> import extremal as ex",
    "Path": ">>> from pathlib import Path",
}
SPECIAL = re.compile(r"(?<!\\)([|*])|(?<=\w)(_)(?=\W|$)")


def plain(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Rewrite a docstring where it stands, before numpydoc reads it."""
    lines[:] = list(_rewritten(_importing(lines)))


def _importing(lines: list[str]) -> list[str]:
    """The same with imports before the first example, so that a copy of it runs."""
    first = next((at for at, line in enumerate(lines) if line.startswith(">>> ")), None)
    if first is None:
        return lines
    source = "\n".join(line[4:] for line in lines if line.startswith((">>> ", "... ")))
    return [*lines[:first], *_imports(source), *lines[first:]]


def _imports(source: str) -> Iterator[str]:
    """The imports that an example lacks."""
    try:
        tree = list(ast.walk(ast.parse(source)))
    except SyntaxError:
        return
    names = {node.id: isinstance(node.ctx, ast.Store) for node in tree if isinstance(node, ast.Name)}
    known = {
        alias.asname or alias.name for node in tree if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names
    }
    lacking = sorted(name for name, stored in names.items() if not stored and name not in known)
    yield from (line for name, line in MODULES.items() if name in lacking)
    rooms: dict[str, list[str]] = {}
    for name in lacking:
        if name in public_names():
            room, _, last = public_names()[name].rpartition(".")
            rooms.setdefault(room, []).append(last)
    yield from (f">>> from {room} import {', '.join(found)}" for room, found in sorted(rooms.items()))


def _rewritten(lines: list[str]) -> Iterator[str]:
    formula = example = False
    for at, line in enumerate(lines):
        opens = line.startswith("    ") and _begins(lines, at)
        if opens and not formula:
            yield from (".. code-block:: text", "")
        formula = opens or (formula and (line.startswith("    ") or not line.strip()))
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))  # its output too
        yield line if formula or example or line.lstrip().startswith(".. ") else _escaped(line)


def _begins(lines: list[str], at: int) -> bool:
    """Whether an indented block begins here: after an empty line, and below a paragraph without indentation."""
    above = next((line for line in reversed(lines[:at]) if line.strip()), "")
    return at > 0 and not lines[at - 1].strip() and not above.startswith((" ", ".. ")) and not above.endswith("::")


def _escaped(line: str) -> str:
    return "".join(_linked(part) if CODE.fullmatch(part) else SPECIAL.sub(r"\\\g<0>", part) for part in CODE.split(line))


def _linked(code: str) -> str:
    """A name in backticks as a link to its page, if it has one."""
    full = public_names().get(code.strip("`").split("(")[0])
    return f":obj:`{code.strip('`')} <{full}>`" if full and not code.startswith("``") else code


def setup(app: Sphinx) -> dict[str, bool]:
    """Run before numpydoc, which reads sections at the same event."""
    app.connect("autodoc-process-docstring", plain, priority=10)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
