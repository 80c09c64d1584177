"""Tasks on all cores: each on one thread, its result stored at once, so that an interrupted run can continue."""

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

from extremal_lab.reproduction import own
from extremal_lab.reproduction.store import Store, Unkept
from extremal_lab.threads import one_thread_each, one_thread_here

Kept = Store | Unkept
Results = dict[Any, dict[str, np.ndarray]]
Made = Generator[tuple[Any, dict[str, np.ndarray]], None, None]
Seen = Callable[[Any, bool], object]  # (task, whether it was done now)


class WorkerError(RuntimeError):
    """A worker died: out of memory, or killed."""


def run_all(tasks: Sequence[Any], store: Kept, workers: int, seen: Seen = lambda task, fresh: None) -> Results:
    """The result of every task, from the store or from a worker.

    ``seen`` is called with each finished task, and whether it was done now. Equal tasks are done once. Ctrl-C ends the workers at
    once and is passed on; finished results are kept. SIGTERM acts like Ctrl-C. Workers end with their parent, however it ends.
    """
    results: Results = {}
    for task in dict.fromkeys(tasks):
        kept = store.get(task)
        if kept is not None:
            results[task] = kept
            seen(task, False)
    todo = [task for task in dict.fromkeys(tasks) if task not in results]
    made = _here(todo, store) if workers == 1 or len(todo) < 2 else _shared_out(todo, store, workers)
    with _sigterm_as_ctrl_c(), closing(made):  # closing: an error in `seen` also ends the workers
        for task, result in made:
            results[task] = result
            seen(task, True)
    return results


def _execute(task: Any, store: Kept) -> dict[str, np.ndarray]:
    result = task.execute()
    store.put(task, result)
    return result


def _here(tasks: list[Any], store: Kept) -> Made:
    for task in tasks:
        with one_thread_here():
            result = _execute(task, store)
        yield task, result


def _shared_out(tasks: list[Any], store: Kept, workers: int) -> Made:
    """Tasks in workers, except those with objects that other processes cannot have: these run here, at the end."""
    objects = own.portable()
    here = [task for task in tasks if not own.held_by(task) <= objects.keys()]
    there = [task for task in tasks if task not in here]
    if there:
        yield from _in_workers(there, store, workers, objects)
    yield from _here(here, store)


def _in_workers(tasks: list[Any], store: Kept, workers: int, objects: dict[str, Any]) -> Made:
    with one_thread_each():
        size = min(workers, len(tasks))
        pool = ProcessPoolExecutor(size, get_context("spawn"), initializer=_begin_worker, initargs=(objects,))
        try:
            futures = {pool.submit(_execute, task, store): task for task in tasks}
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool:
            raise WorkerError(
                "a worker died (out of memory, or killed); finished runs are kept, and the same command continues"
            ) from None
        except BaseException:
            _end_workers(pool)  # a run may take minutes: do not wait for it
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _end_workers(pool: Any) -> None:
    """End the workers at once. Their list is private; without it there is ``kill_workers`` (Python 3.14), or they finish."""
    if hasattr(pool, "_processes"):
        for process in list((pool._processes or {}).values()):
            process.kill()
    elif hasattr(pool, "kill_workers"):
        pool.kill_workers()


def _begin_worker(objects: dict[str, Any]) -> None:
    own.HELD.update(objects)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this worker with its parent: a killed parent sends no message, and its workers would wait forever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # at once; an unfinished file does not have its final name yet


@contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C, in the main thread only; a handler that ignores it, or is not from Python, stays."""
    before = signal.getsignal(signal.SIGTERM)
    if threading.current_thread() is not threading.main_thread() or before in (None, signal.SIG_IGN):
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
