"""What a study is: the data that it looks at, its tasks, and the finding from their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from extremal_lab.reproduction.plan import Work
from extremal_lab.reproduction.pool import Results
from extremal_lab.reproduction.rates import LOGISTIC
from extremal_lab.reproduction.sources import Source
from extremal_lab.reproduction.spec import FIGURES, Problem

SUBJECT = "a9a"  # the default data of rates, batches and memory


@dataclass(frozen=True)
class Look:
    """The data of studies: the paper's, or those that the user named."""

    work: Work
    data: str | None = None

    @property
    def subject(self) -> Source:
        """The data of rates, batches and memory."""
        return self.work.find(self.data or SUBJECT)

    def some(self, rows: int, draw: int = 0) -> Source:
        """Random rows of the subject: ``rows`` of them, or all if there are fewer."""
        return self.work.find(self.data or SUBJECT, rows=min(rows, self.subject.n), draw=draw)

    def convex(self) -> dict[Problem, Source]:
        """The convex problems of all figures, on their own data or on the user's."""
        found = {}
        for problem in (p for figure in FIGURES.values() for p in figure.problems if p.loss == LOGISTIC):
            data = self.data or problem.data
            found[Problem(data, problem.loss, problem.set)] = self.work.find(data)
        return found


@dataclass(frozen=True)
class Finding:
    """The result of a study."""

    name: str
    on: str  # the data
    numbers: dict[Any, Any]  # for the ledger
    page: dict[str, Any]  # for the page: title, text, tables, plots


@dataclass(frozen=True)
class Study:
    """The tasks to run, and the conclusion from them."""

    tasks: Callable[[Look, bool], list[Any]]  # (look, quick)
    conclude: Callable[[Look, bool, Results], Finding]


def finding(
    name: str,
    title: str,
    on: str,
    text: str,
    table: tuple[Any, Any],
    numbers: Any,
    plots: Sequence[Any] = (),
    caution: Sequence[str] = (),
) -> Finding:
    """A finding with one table."""
    columns, rows = table
    tables = [{"title": title, "columns": list(columns), "rows": rows}]
    page = {"name": name, "title": title, "text": text, "tables": tables, "plots": list(plots), "caution": list(caution)}
    return Finding(name, on, numbers, page)
