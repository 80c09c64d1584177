"""Builds and runs on clusters that are harmed, closed, or the cluster of the task that asks."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
from clusters import cluster_of_two, pids, settled

import extremal as ex
from extremal.scale import collections
from extremal.scale.cluster import ClusterError

ROWS = np.random.default_rng(0).standard_normal((4000, 3))


def slow(block):
    time.sleep(0.05)
    return block


def build(client, to):
    import dask.array as da

    X = da.from_array(ROWS, chunks=(200, 3)).map_blocks(slow, dtype=float)
    return ex.ShardDir.build((X, X[:, 0]), to, client=client, shard_bytes=2**14)


def later(client, how):
    pid = next(iter(pids(client).values()))
    threading.Timer(0.3, os.kill, (pid, how)).start()
    return pid


def test_a_worker_that_is_killed_changes_no_shard(client, tmp_path):
    want = build(client, tmp_path / "whole").manifest
    later(client, signal.SIGKILL)
    assert build(client, tmp_path / "harmed").manifest == want
    settled(client)


def test_a_worker_that_is_silent_ends_a_build_with_a_sentence(client, tmp_path, monkeypatch):
    monkeypatch.setattr(collections, "SILENT", 1.5)
    settled(client)
    pid = later(client, signal.SIGSTOP)
    try:
        with pytest.raises(ClusterError, match=r"Dask worker tcp://\S+ gives no sign of life for 1.5 s: nothing is built"):
            build(client, tmp_path / "rows")
    finally:
        os.kill(pid, signal.SIGCONT)
    assert not (tmp_path / "rows" / "manifest.json").exists()


def test_a_closed_client_is_named(tmp_path):
    with cluster_of_two(1, processes=False) as client:
        client.close()
        with pytest.raises(ClusterError, match="a client that is closed"):
            build(client, tmp_path / "rows")


def solved(folder):
    from distributed import get_client

    return ex.minimize(ex.LinearModel(ex.Logistic(), ex.ShardDir(folder, client=get_client())), ex.L1Ball(10.0)).x


def test_a_task_may_use_its_own_cluster(client, weighted):
    want = ex.minimize(ex.LinearModel(ex.Logistic(), ex.ShardDir(weighted, engine="memory")), ex.L1Ball(10.0)).x
    settled(client)
    assert np.array_equal(client.submit(solved, weighted, pure=False).result(timeout=60), want)
