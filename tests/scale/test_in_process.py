"""A cluster within this process: the same bits, and every part of the engine called without another process."""

from __future__ import annotations

import distributed
import numpy as np
import pytest

import extremal as ex
from extremal.scale import local
from extremal.scale.agents import run_agents
from extremal.scale.collections import rows_of
from extremal.scale.stations import run_workers


@pytest.fixture
def within(monkeypatch):
    def cluster(**options):
        return distributed.LocalCluster(**options | {"processes": False, "n_workers": 1, "dashboard_address": ":0"})

    monkeypatch.setattr(local, "LocalCluster", cluster)
    client, made = local.local_client(1)
    yield client
    local.closed(client, made)


def test_one_worker_within_this_process(within, tmp_path):
    import dask.array as da

    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 6))
    y = np.where(A @ np.arange(6.0) + rng.standard_normal(300) > 0, 1.0, -1.0)
    ex.ShardDir.build((A, y), tmp_path / "rows", shard_bytes=2**12)
    runs = [
        ex.minimize(ex.InterceptModel(ex.Logistic(), ex.ShardDir(tmp_path / "rows", **how)), ex.L1Ball(2.0))
        for how in ({"engine": "memory"}, {"client": within})
    ]
    assert np.array_equal(runs[0].x, runs[1].x)
    r = run_agents(ex.Logistic(), tmp_path / "rows", ex.L1Ball(2.0), within, ex.DMFW(mixing=ex.gradients.ring(2)), max_iter=2)
    assert np.abs(r.x).sum() <= 2.0 + 1e-12
    sent = run_workers(ex.Logistic(), tmp_path / "rows", ex.L1Ball(2.0), within, ex.EF21FW("top-2", 2), max_iter=2).calls
    assert (sent.grads, sent.bytes) == (3 * 300, 3 * 2 * 24)
    data = rows_of(da.from_array(A, chunks=(100, 6)), da.from_array(y, chunks=100), client=within)
    assert data.shape == A.shape
    data.close()
