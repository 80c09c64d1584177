"""The ledger as Markdown: claims and verdicts, final values of the methods, tables of the studies, settings."""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from extremal.files import printable, whole_file
from extremal_lab.reproduction.spec import Figure

Ended = tuple[Figure, list[str], list[list[str]]]  # a figure, and the table of the final values


def write_ledger(path: Path, said: dict[str, Any], done: Sequence[Ended]) -> None:
    """Write a report as Markdown."""
    with whole_file(path) as temporary:
        temporary.write_text("\n".join(_lines(said, done)) + "\n", encoding="utf-8")


def _lines(said: dict[str, Any], done: Sequence[Ended]) -> Iterator[str]:
    yield f"# {plain(said['title'])}\n"
    quick = " This is the quick version: fewer passes, seeds and trials." if said["quick"] else ""
    yield f"Made {said['generated']} by extremal {said['versions']['extremal']}.{quick}"
    yield from (f"\n**{plain(caution)}**" for caution in said["caution"])
    yield from _verdicts(said["ledger"])
    for figure, columns, rows in done:
        tuned = "; own steps / tuned (the constant before the step)" if figure.tuned else ""
        yield f"\n## {plain(figure.title)}\n"
        yield f"f - f_min at the end of {figure.budget}, median of {figure.seeds} seeds{tuned}.\n"
        yield from table(columns, rows)
    for study in said["studies"]:
        yield f"\n## {plain(study['title'])}\n\n{plain(study['text'])}\n"
        for held in study["tables"]:
            if len(study["tables"]) > 1:
                yield f"\n### {plain(held['title'])}\n"
            yield from table(held["columns"], held["rows"])
    yield "\n## How it was run\n"
    yield from table(("what", "value"), [pair for part in ("settings", "versions", "machine") for pair in said[part].items()])


def _verdicts(ledger: Sequence[dict[str, str]]) -> Iterator[str]:
    if ledger:
        yield "\n## Verdicts\n\nThe number is the one that decides; for a rate, the larger exponents of the two algorithms.\n"
        rows = ((row["short"], _Marked(f"**{plain(row['verdict'])}**"), row["number"]) for row in ledger)
        yield from table(("claim", "verdict", "number"), rows)
        yield "\n## Evidence\n\nEach claim unfolds: where the paper makes it, what was measured, when it holds, and the command."
        yield from itertools.chain.from_iterable(map(_evidence, ledger))


def _evidence(row: dict[str, str]) -> Iterator[str]:
    """The evidence behind a verdict, folded."""
    yield f"\n<details><summary>{_html(row['claim'])} <b>{_html(row['verdict'])}</b></summary>\n"
    yield f"*Where:* {plain(row['where'])}. *Measured:* {plain(row['measured'])}. *It holds if* {plain(row['rule'])}."
    yield (f"*On:* {plain(row['on'])}. " if row["on"] else "") + f"*Shown by* {_code(row['command'])}."
    yield "\n</details>"


def _html(text: str) -> str:
    """The text for an element of HTML, on one line, with all Markdown escaped too."""
    escaped = html.escape(re.sub(r"\s", " ", printable(text)), quote=False)
    return re.sub(r"[\\`*\[\]~_]", lambda match: f"&#{ord(match[0])};", escaped)


class _Marked(str):
    """Markdown of our own; all other text is escaped."""


def plain(text: str) -> str:
    r"""The text with Markdown and HTML escaped, because names of files and data sets may hold anything.

    Examples
    --------
    >>> print(plain("a_b [x](y) <img src=z> & *"))
    a_b \[x\](y) &lt;img src=z> &amp; \*
    """
    text = printable(str(text)).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"[\\`*\[\]~]", r"\\\g<0>", re.sub(r"\s", " ", text))


def _code(text: str) -> _Marked:
    """A code span that no quote in the text can end."""
    ticks = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    space = " " if len(ticks) > 1 else ""
    return _Marked(f"{ticks}{space}{printable(text)}{space}{ticks}")


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    r"""A table in Markdown.

    Examples
    --------
    >>> for line in table(("a", "b"), [[1, "x|y"]]):
    ...     line
    '| a | b |'
    '|---|---|'
    '| 1 | x\\|y |'
    """
    yield _row(columns)
    yield "|" + "---|" * len(columns)
    yield from map(_row, rows)


def _row(cells: Sequence[Any]) -> str:
    shown = (cell if isinstance(cell, _Marked) else plain(str(cell)) for cell in cells)
    return "| " + " | ".join(re.sub(r"\s", " ", cell).replace("|", "\\|") for cell in shown) + " |"
