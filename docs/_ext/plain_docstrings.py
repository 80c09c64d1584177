"""Docstrings as reStructuredText: indented formulas are literal blocks, bars and stars are themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator

from reference import public_names
from sphinx.application import Sphinx

CODE = re.compile(r"(``.+?``|`[^`]+`_?)")
SPECIAL = re.compile(r"(?<!\\)([|*])|(?<=\w)(_)(?=\W|$)")


def plain(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Rewrite a docstring where it stands, before numpydoc reads it."""
    lines[:] = list(_rewritten(lines))


def _rewritten(lines: list[str]) -> Iterator[str]:
    formula = False
    for at, line in enumerate(lines):
        opens = line.startswith("    ") and _begins(lines, at)
        if opens and not formula:
            yield from (".. code-block:: text", "")
        formula = opens or (formula and (line.startswith("    ") or not line.strip()))
        yield line if formula or line.lstrip().startswith((">>>", "...", ".. ")) else _escaped(line)


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
