"""Tasks on all cores: each on one thread, its result kept as soon as it is there, so that a run goes on where it was stopped."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

import numpy as np

from extremal.experiments.store import Store

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
Results = dict[Any, dict[str, np.ndarray]]
Seen = Callable[[Any, bool], object]  # (task, whether it was done now)


class WorkerError(RuntimeError):
    """A worker died: out of memory, or killed."""


def run_all(tasks: Sequence[Any], store: Store, workers: int, seen: Seen = lambda task, fresh: None) -> Results:
    """The result of every task, from the store or from a worker; ``seen`` is called with each that is done, and whether it was
    done now.

    Tasks that compare equal are done once. Ctrl-C ends the workers at once and is passed on; what is done is kept.
    """
    results: Results = {}
    for task in dict.fromkeys(tasks):
        kept = store.get(task)
        if kept is not None:
            results[task] = kept
            seen(task, False)
    todo = [task for task in dict.fromkeys(tasks) if task not in results]
    for task, result in _here(todo, store) if workers == 1 or len(todo) < 2 else _in_workers(todo, store, workers):
        results[task] = result
        seen(task, True)
    return results


def _execute(task: Any, store: Store) -> dict[str, np.ndarray]:
    result = task.execute()
    store.put(task, result)
    return result


def _here(tasks: list[Any], store: Store) -> Iterator[tuple[Any, dict[str, np.ndarray]]]:
    for task in tasks:
        yield task, _execute(task, store)


def _in_workers(tasks: list[Any], store: Store, workers: int) -> Iterator[tuple[Any, dict[str, np.ndarray]]]:
    with _one_thread_each():
        pool = ProcessPoolExecutor(min(workers, len(tasks)), get_context("spawn"), initializer=_ignore_ctrl_c)
        try:
            futures = {pool.submit(_execute, task, store): task for task in tasks}
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool:
            raise WorkerError(
                "a worker died (out of memory, or killed); what is done is kept, the same command goes on"
            ) from None
        except BaseException:
            for process in list((pool._processes or {}).values()):  # a run may take minutes: do not wait for it
                process.terminate()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _ignore_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's business


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Workers inherit the environment, and numpy reads it when it is imported."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
