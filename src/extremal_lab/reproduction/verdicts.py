"""The words of verdicts, the rules that several claims share, and the row of a claim in the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

HOLDS, PART, NOT, UNDECIDED = "holds", "holds in part", "does not hold here", "undecided"
REFUTED = "refuted by proof"
COMPARABLE = 2.0  # f - f_min at the end within this factor of the best baseline's
Row = dict[str, str]


class Verdict(NamedTuple):
    """The verdict on a claim."""

    said: str  # one of the words above, with open points after a semicolon
    number: str  # the number that decides, for a table
    measured: str  # all measurements


def row(claim: tuple[str, str], where: str, rule: str, verdict: Verdict, on: str, command: str) -> Row:
    """The row of a claim: its short and its full text, where it is made, when it holds, and the verdict."""
    return {
        "short": claim[0], "claim": claim[1], "where": where, "rule": rule, "number": verdict.number,
        "measured": verdict.measured, "verdict": verdict.said, "on": on, "command": command,
    }  # fmt: skip


def by_share(held: Sequence[bool]) -> str:
    """All, at least half, or fewer.

    Examples
    --------
    >>> by_share([True, True]), by_share([True, False]), by_share([True, False, False])
    ('holds', 'holds in part', 'does not hold here')
    """
    return HOLDS if all(held) else PART if sum(held) * 2 >= len(held) else NOT
