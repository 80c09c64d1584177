"""A cluster of two workers of this machine."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager

import distributed


@contextmanager
def cluster_of_two(n_workers=2, **options):
    """A client of it; it is closed at the end."""
    with (
        distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50, **options
        ) as cluster,
        distributed.Client(cluster, set_as_default=False, security=options.get("security")) as client,
    ):
        yield client


def pids(client):
    """The processes of workers that answer, by address."""
    return {address: pid for address, pid in client.run(os.getpid, on_error="ignore").items() if isinstance(pid, int)}


def settled(client, many=2):
    """Wait until the workers that were killed have been replaced; on a busy machine a nanny may give up, and is replaced too."""
    for patience in (20, 100):
        end = time.monotonic() + patience
        while time.monotonic() < end:
            if len(pids(client)) >= many:
                return
            time.sleep(0.1)
        client.cluster.scale(many)
    raise AssertionError(f"{len(pids(client))} of {many} workers run, and no other has started")
