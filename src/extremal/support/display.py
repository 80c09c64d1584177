"""Where a run shows its progress: one live line on a terminal, one output of a notebook, plain lines elsewhere."""

from __future__ import annotations

import multiprocessing
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from IPython.core.display_functions import DisplayHandle
    from rich.console import Console
    from rich.live import Live

LIVE_PAUSE, NOTEBOOK_PAUSE = 0.1, 0.5  # seconds between two updates
LONGEST_PAUSE = 600.0  # longest time in seconds between two plain lines


class Screen(Protocol):
    """A place for one changing line of text, and for a last line that stays."""

    def pause(self, seconds: float) -> float:
        """Seconds until the next update, when the run has lasted ``seconds``."""
        ...

    def show(self, text: str) -> None:
        """Show the progress of the run."""
        ...

    def end(self, text: str) -> None:
        """Leave the last line, or nothing if ``text`` is empty."""
        ...


class PlainLines:
    """Lines on standard error. The pause between two lines is as long as the run so far, but at most ten minutes.

    Examples
    --------
    >>> [PlainLines().pause(seconds) for seconds in (1.0, 2.0, 4.0, 5000.0)]
    [1.0, 2.0, 4.0, 600.0]
    """

    def pause(self, seconds: float) -> float:
        """The length of the run so far."""
        return min(max(seconds, 1.0), LONGEST_PAUSE)

    def show(self, text: str) -> None:
        """Write a line."""
        if sys.stderr is not None:  # a program without a console has no stderr
            with suppress(OSError, ValueError):  # one that nobody reads any more ends no run
                sys.stderr.write(f"{text}\n")
                sys.stderr.flush()

    def end(self, text: str) -> None:
        """Write the last line."""
        if text:
            self.show(text)


class LiveLine(PlainLines):
    """One line on a terminal, rewritten by rich, which is imported with the first update."""

    def __init__(self) -> None:
        self.live: Live | None = None

    def pause(self, seconds: float) -> float:
        """A tenth of a second."""
        return LIVE_PAUSE

    def show(self, text: str) -> None:
        """Overwrite the line."""
        from rich.live import Live
        from rich.text import Text

        if self.live is None:
            shared = sys.stdout is not None and sys.stdout.isatty()  # otherwise output keeps its own way
            self.live = Live(console=terminal(stderr=True), auto_refresh=False, transient=True, redirect_stdout=shared)
            self.live.start()
        self.live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)

    def end(self, text: str) -> None:
        """Remove the line, and write the last one."""
        if self.live is not None:
            self.live.stop()
        if text:
            super().show(text)


class NotebookOutput:
    """One output below the cell of a notebook, changed in place."""

    def __init__(self) -> None:
        self.handle: DisplayHandle | None = None

    def pause(self, seconds: float) -> float:
        """Half a second."""
        return NOTEBOOK_PAUSE

    def show(self, text: str) -> None:
        """Create the output, or change it."""
        from IPython.display import display

        output = {"text/plain": text}
        if self.handle is None:
            self.handle = display(output, raw=True, display_id=True)
        else:
            self.handle.update(output, raw=True)

    def end(self, text: str) -> None:
        """Leave the last line in the output, or empty an existing output if there is no last line."""
        if text or self.handle is not None:
            self.show(text)


def screen() -> Screen:
    """The screen for this process: a notebook, a terminal, or plain lines.

    Threads and processes started by others write plain lines, because several live lines on one terminal would mix. So do
    processes without rich.

    Examples
    --------
    >>> type(screen()).__name__ in ("PlainLines", "LiveLine", "NotebookOutput")
    True
    """
    if _alone() and _in_notebook():
        return NotebookOutput()
    return LiveLine() if _alone() and _on_terminal() else PlainLines()


def _alone() -> bool:
    return threading.current_thread() is threading.main_thread() and multiprocessing.parent_process() is None


def _in_notebook() -> bool:
    if "IPython" not in sys.modules:
        return False
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


def _on_terminal() -> bool:
    if sys.stderr is None or not sys.stderr.isatty():
        return False
    try:
        import rich.console  # noqa: F401
    except ImportError:
        return False
    console = terminal(stderr=True)
    return console.is_terminal and not console.is_dumb_terminal


def printable(text: str) -> str:
    r"""The text for a terminal: what would move its cursor, change its colours or hide a part is written as an escape.

    Examples
    --------
    >>> print(printable("a\x1b[31mb"))
    a\x1b[31mb
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def terminal(**how: Any) -> Console:
    """A console of rich for text that may hold any name: nothing in it is markup, an emoji or a control sequence."""
    from rich.console import Console

    class Plain(Console):
        def render_str(self, text: str, **how: Any) -> Any:  # type: ignore[override]
            return super().render_str(printable(text), **how)

    return Plain(markup=False, emoji=False, highlight=False, **how)
