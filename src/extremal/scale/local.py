"""A cluster of this machine, for callers without a client."""

from __future__ import annotations

import logging
import warnings
from contextlib import suppress

from dask.system import CPU_COUNT
from distributed import Client, LocalCluster

from extremal.scale.cluster import ClusterError

CLOSING = 5.0  # seconds that closing may take
LOGGERS = "distributed", "distributed.nanny", "distributed.worker", "distributed.comm", "distributed.client", "distributed.core"


def local_client(most: int) -> tuple[Client, LocalCluster]:
    """A client of one process on each core, ``most`` at most, without a dashboard or a limit of memory.

    Mapped files would count against a limit, although their pages are given back after each work.
    """
    try:
        cluster = LocalCluster(
            n_workers=max(1, min(CPU_COUNT, most)), threads_per_worker=1, processes=True, memory_limit=0,
            dashboard_address=":0", scheduler_kwargs={"dashboard": False},
            silence_logs=logging.CRITICAL,
        )  # fmt: skip
    except RuntimeError as error:
        raise ClusterError(f"no Dask cluster can be started here: give a client ({error})") from None
    return Client(cluster, direct_to_workers=True, set_as_default=False), cluster


def closed(client: Client, cluster: LocalCluster) -> None:
    """Close both, and ignore errors: workers that were killed do not answer."""
    levels = [(logging.getLogger(name), logging.getLogger(name).level) for name in LOGGERS]
    for logger, _ in levels:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings(), suppress(Exception):
            warnings.simplefilter("ignore")
            client.close(timeout=CLOSING)
        with warnings.catch_warnings(), suppress(Exception):
            warnings.simplefilter("ignore")
            cluster.close(timeout=CLOSING)
    finally:
        for logger, level in levels:
            logger.setLevel(level)
