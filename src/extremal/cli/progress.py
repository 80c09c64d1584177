"""Progress of a download or a conversion: a bar on stderr if that is a terminal, otherwise nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from extremal.support.display import terminal

if TYPE_CHECKING:
    from rich.progress import ProgressColumn


@contextmanager
def bar(name: str, total: float | None, *columns: ProgressColumn) -> Iterator[Callable[..., None] | None]:
    """A function that moves a bar with rich's columns; None if stderr is not a terminal."""
    from rich.progress import Progress

    console = terminal(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with Progress(*columns, console=console, transient=True) as shown:
        yield partial(shown.update, shown.add_task(name, total=total))
