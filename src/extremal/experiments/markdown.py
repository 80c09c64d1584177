"""The ledger as Markdown: claims and verdicts, where each method ended, the studies' tables, how it was run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from extremal.experiments.spec import Figure
from extremal.outputs import whole

Ended = tuple[Figure, list[str], list[list[str]]]  # a figure, and the table of where its methods ended


def write_ledger(path: Path, said: dict[str, Any], done: Sequence[Ended]) -> None:
    """Write what a report says as Markdown."""
    with whole(path) as temporary:
        temporary.write_text("\n".join(_lines(said, done)) + "\n", encoding="utf-8")


def _lines(said: dict[str, Any], done: Sequence[Ended]) -> Iterator[str]:
    yield f"# {said['title']}\n"
    quick = " This is the quick version: fewer passes, seeds and trials." if said["quick"] else ""
    yield f"Made {said['generated']} by extremal {said['versions']['extremal']}.{quick}"
    yield from (f"\n**{caution}**" for caution in said["caution"])
    yield from _verdicts(said["ledger"])
    for figure, columns, rows in done:
        tuned = "; own steps / tuned (the constant before the step)" if figure.factors else ""
        yield f"\n## {figure.title}\n"
        yield f"f - f_min at the end of {figure.passes:g} full gradients, median of {figure.seeds} seeds{tuned}.\n"
        yield from table(columns, rows)
    for study in said["studies"]:
        yield f"\n## {study['title']}\n\n{study['text']}\n"
        for held in study["tables"]:
            yield from table(held["columns"], held["rows"])
    yield "\n## How it was run\n"
    yield from table(("what", "value"), [pair for part in ("settings", "versions", "machine") for pair in said[part].items()])


def _verdicts(ledger: Sequence[dict[str, str]]) -> Iterator[str]:
    if ledger:
        yield "\n## Verdicts\n"
        yield from table(("claim", "verdict", "measured", "it holds if", "on", "shown by"), map(_verdict, ledger))


def _verdict(row: dict[str, str]) -> list[str]:
    claim, verdict, command = f"{row['claim']} ({row['where']})", f"**{row['verdict']}**", f"`{row['command']}`"
    return [claim, verdict, row["measured"], row["rule"], row["on"], command]


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
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
