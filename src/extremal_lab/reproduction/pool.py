"""Tasks on all cores: each on one thread, its result kept as soon as it is there, so that a run goes on where it was stopped."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from multiprocessing import get_context, parent_process
from typing import Any

import numpy as np

from extremal_lab.reproduction.store import Store
from extremal_lab.threads import one_thread_each, one_thread_here

Results = dict[Any, dict[str, np.ndarray]]
Made = Generator[tuple[Any, dict[str, np.ndarray]], None, None]
Seen = Callable[[Any, bool], object]  # (task, whether it was done now)


class WorkerError(RuntimeError):
    """A worker died: out of memory, or killed."""


def run_all(tasks: Sequence[Any], store: Store, workers: int, seen: Seen = lambda task, fresh: None) -> Results:
    """The result of every task, from the store or from a worker; ``seen`` is called with each that is done, and whether it was
    done now.

    Tasks that compare equal are done once. Ctrl-C ends the workers at once and is passed on; what is done is kept. SIGTERM is
    as Ctrl-C, and workers end with their parent, however it ends.
    """
    results: Results = {}
    for task in dict.fromkeys(tasks):
        kept = store.get(task)
        if kept is not None:
            results[task] = kept
            seen(task, False)
    todo = [task for task in dict.fromkeys(tasks) if task not in results]
    made = _here(todo, store) if workers == 1 or len(todo) < 2 else _in_workers(todo, store, workers)
    with _sigterm_as_ctrl_c(), closing(made):  # closed: an error in seen, too, ends the workers
        for task, result in made:
            results[task] = result
            seen(task, True)
    return results


def _execute(task: Any, store: Store) -> dict[str, np.ndarray]:
    result = task.execute()
    store.put(task, result)
    return result


def _here(tasks: list[Any], store: Store) -> Made:
    for task in tasks:
        with one_thread_here():
            result = _execute(task, store)
        yield task, result


def _in_workers(tasks: list[Any], store: Store, workers: int) -> Made:
    with one_thread_each():
        pool = ProcessPoolExecutor(min(workers, len(tasks)), get_context("spawn"), initializer=_begin_worker)
        try:
            futures = {pool.submit(_execute, task, store): task for task in tasks}
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool:
            raise WorkerError(
                "a worker died (out of memory, or killed); what is done is kept, the same command goes on"
            ) from None
        except BaseException:
            _end_workers(pool)  # a run may take minutes: do not wait for it
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _end_workers(pool: Any) -> None:
    """End them at once. Their list is private; where it has gone, there is ``kill_workers`` (Python 3.14), or they finish."""
    if hasattr(pool, "_processes"):
        for process in list((pool._processes or {}).values()):
            process.kill()
    elif hasattr(pool, "kill_workers"):
        pool.kill_workers()


def _begin_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's business
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A parent that was killed tells nobody: without this its workers would wait for ever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # at once; a file that is being written is not yet under its name


@contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    """Only the main thread can, and gets it; a SIGTERM that is ignored, or was not set from Python, stays as it is."""
    before = signal.getsignal(signal.SIGTERM)
    if threading.current_thread() is not threading.main_thread() or before in (None, signal.SIG_IGN):
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
