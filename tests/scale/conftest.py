"""A cluster of two workers, and directories of shards that are small enough to be solved in a moment."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import extremal as ex

pytest.importorskip("distributed")
from clusters import cluster_of_two


@pytest.fixture(scope="module")
def client():
    with cluster_of_two() as client:
        yield client


def problem(n=30_000, d=100, seed=0):
    rng = np.random.default_rng(seed)
    A = sp.random(n, d, 0.06, format="csr", random_state=seed, dtype=np.float32)
    A.data = rng.standard_normal(A.nnz).astype(np.float32)
    return A, np.where(A @ rng.standard_normal(d) + rng.standard_normal(n) > 0, 1.0, -1.0), rng.random(n)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """403 rows of 12 columns, for agents and workers."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((403, 12)) * (rng.random((403, 12)) < 0.4)
    y = np.where(A @ rng.standard_normal(12) > 0, 1.0, -1.0)
    made = tmp_path_factory.mktemp("shards") / "rows"
    ex.ShardDir.build((sp.csr_array(A), y), made, seed=1, shard_bytes=4096)
    return made


@pytest.fixture(scope="session")
def sparse(tmp_path_factory):
    """Seven shards, the last of which is smaller."""
    A, y, _ = problem()
    folder = tmp_path_factory.mktemp("sparse")
    ex.ShardDir.build((A, y), folder, shard_bytes=2**18 - 2**14)
    return folder


@pytest.fixture(scope="session")
def weighted(tmp_path_factory):
    A, y, w = problem(8000, seed=1)
    folder = tmp_path_factory.mktemp("weighted")
    ex.ShardDir.build((A, y, w), folder, shard_bytes=2**17)
    return folder


@pytest.fixture(scope="session")
def dense(tmp_path_factory):
    A, y, _ = problem(3000, seed=2)
    folder = tmp_path_factory.mktemp("dense")
    ex.ShardDir.build((A.toarray(), y), folder, shard_bytes=2**18)
    return folder
