"""A cluster whose connections are encrypted: the bits of one process, also after a loss, and agents."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

import extremal as ex
from extremal.scale.agents import run_agents

pytest.importorskip("cryptography")
from clusters import cluster_of_two, pids
from distributed import Security

BALL = ex.L1Ball(10.0)


@pytest.fixture(scope="module")
def encrypted():
    with cluster_of_two(security=Security.temporary()) as client:
        assert client.scheduler.address.startswith("tls://")
        yield client


def model(folder, **where):
    return ex.LinearModel(ex.Logistic(), ex.ShardDir(folder, **where))


def same(a, b):
    assert np.array_equal(a.x, b.x)
    assert (a.value, a.gap, a.calls) == (b.value, b.gap, b.calls)


def test_a_run_has_the_bits_of_memory(encrypted, sparse):
    found = ex.minimize(model(sparse, client=encrypted), BALL, tol=1e-6)
    same(found, ex.minimize(model(sparse, engine="memory"), BALL, tol=1e-6))
    assert found.converged
    assert "on 2 Dask workers" in found.why


def test_a_build_from_partitions_has_the_bits_of_memory(encrypted, tmp_path):
    import dask.array as da

    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((2000, 5)), rng.standard_normal(2000)
    here = ex.ShardDir.build((A, y), tmp_path / "here", shard_bytes=2**14)
    parts = da.from_array(A, chunks=(300, -1)), da.from_array(y, chunks=300)
    there = ex.ShardDir.build(parts, tmp_path / "there", shard_bytes=2**14, client=encrypted)
    there.verify()
    assert len(there.manifest.shards) > 1
    want, got = (ex.LinearModel(ex.Squared(), data) for data in (here, there))
    assert np.array_equal(want.derivs(np.zeros(5)), got.derivs(np.zeros(5)))  # the targets, in their order


def test_agents_exchange_vectors(encrypted, sparse):
    r = run_agents(ex.Logistic(), sparse, BALL, encrypted, ex.DMFW(mixing=ex.gradients.ring(4)), max_iter=5)
    assert len(r.edges) > 0
    assert np.isfinite(r.gap)


def test_a_lost_worker_changes_no_bit(encrypted, sparse):
    f = model(sparse, client=encrypted)
    f.value(np.zeros(100))
    os.kill(next(iter(pids(encrypted).values())), signal.SIGKILL)
    same(ex.minimize(f, BALL, tol=1e-6), ex.minimize(model(sparse, engine="memory"), BALL, tol=1e-6))
