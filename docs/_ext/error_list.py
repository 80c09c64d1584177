"""The directive `error-list`: every message of the library's errors, read from its source as the site is built."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import extremal

SOURCE = Path(extremal.__file__).parent
OURS = {"InputError", "NonFiniteError", "OutsideError", "UnsolvedError", "WriteError", "DownloadError", "ClusterError"}
KINDS = OURS | {"MemoryError"}
OTHERS = {"ValueError", "TypeError", "RuntimeError", "AttributeError", "ImportError", "AssertionError", "Exit", "Lost", "Unheard"}


class Message(NamedTuple):
    """A message: its room, the kind of error, and its words; numbers and names of the caller are dots."""

    room: str
    kind: str
    words: str


def messages() -> list[Message]:
    """Every message of the library, once, by room."""
    found = {message for path in sorted(SOURCE.rglob("*.py")) for message in _of_file(path)}
    return sorted(found, key=lambda message: (message.room, message.words.lower()))


def _of_file(path: Path) -> Iterator[Message]:
    """The messages of errors that are made, and of those that a function makes for a `raise`."""
    room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    tree = list(ast.walk(ast.parse(path.read_text())))
    raised = [node.exc for node in tree if isinstance(node, ast.Raise)]
    for call in tree:
        if isinstance(call, ast.Call) and (call in raised or _name(call) in KINDS):
            kind = _name(call) if _name(call) in KINDS else "InputError"
            for text in map(words, call.args):
                if " " in text.strip(" .…") and _name(call) not in OTHERS:
                    yield Message(room, kind, text)


def _name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def words(given: ast.expr) -> str:
    """The words of a string, with dots where the program puts in something; nothing for other expressions."""
    if isinstance(given, ast.Constant) and isinstance(given.value, str):
        return given.value
    if isinstance(given, ast.JoinedStr):
        return "".join(words(part) or "…" for part in given.values)
    if isinstance(given, ast.BinOp):
        return words(given.left) + words(given.right)
    return ""


class ErrorList(SphinxDirective):
    """A table of messages for each room."""

    def run(self) -> list[nodes.Node]:
        """Make the tables."""
        shown: list[nodes.Node] = []
        for room in sorted({message.room for message in messages()}):
            section = nodes.section(ids=[f"messages-{room}"])
            section += nodes.title(text=room)
            lines = nodes.bullet_list()
            for message in (message for message in messages() if message.room == room):
                line = nodes.paragraph()
                line += nodes.literal(text=message.words)
                line += nodes.Text(f" ({message.kind})")
                lines += nodes.list_item("", line)
            section += lines
            shown.append(section)
        return shown


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx of the directive."""
    app.add_directive("error-list", ErrorList)
    return {"parallel_read_safe": True}
