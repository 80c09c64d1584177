"""Restrict processes to one thread: those with a given environment, those that inherit this one's, and this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

ONE_THREAD: dict[str, str] = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)


def alone(environment: dict[str, str] | None = None) -> dict[str, str]:
    """An environment for a process of one thread. Default: based on the environment of this process.

    Examples
    --------
    >>> alone({"HOME": "/"})["OPENBLAS_NUM_THREADS"]
    '1'
    """
    return {**(os.environ if environment is None else environment), **ONE_THREAD}


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Restrict processes that inherit the environment: numpy reads it on import."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextmanager
def one_thread_here() -> Iterator[None]:
    """Restrict this process: numba, if it is imported, and BLAS, if threadpoolctl is installed.

    The environment stays as it is: numba refuses another number of threads there after it has launched its own.
    """
    try:
        from threadpoolctl import threadpool_limits  # comes with scikit-learn
    except ImportError:
        threadpool_limits = nullcontext
    with _one_numba_thread(), threadpool_limits(1):  # in this order: numba may load OpenMP
        yield


@contextmanager
def _one_numba_thread() -> Iterator[None]:
    numba = sys.modules.get("numba")
    try:
        before = numba.get_num_threads() if numba else 1
    except ValueError:  # without a threading layer nothing runs on threads
        before = 1
    if numba is None or before == 1:
        yield
        return
    numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(before)
