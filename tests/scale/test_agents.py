"""Agents that are processes make the steps of the simulation, and speak with their neighbours only."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import extremal as ex

N, D = 403, 12
PATH = ex.gradients.metropolis([[0, 1, 0], [1, 0, 1], [0, 1, 0]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.4)
    y = np.where(A @ rng.standard_normal(D) > 0, 1.0, -1.0)
    made = tmp_path_factory.mktemp("shards") / "rows"
    ex.ShardDir.build((sp.csr_array(A), y), made, seed=1, shard_bytes=4096)
    return made


@pytest.mark.parametrize(
    "mixing",
    [ex.gradients.ring(4), ex.gradients.metropolis([[0, 1, 0], [1, 0, 1], [0, 1, 0]]), ex.gradients.complete(5)],
    ids=len,
)
def test_the_trajectory_is_that_of_the_simulation(client, folder, mixing):
    from extremal.scale.agents import run_agents

    method, C = ex.DMFW(batch=3, mixing=mixing), ex.L1Ball(2.0)
    r = run_agents(ex.Logistic(), folder, C, client, method, max_iter=12, seed=5)
    f = ex.LinearModel(ex.Logistic(), ex.ShardDir(folder, engine="memory"))
    alone = ex.minimize(f, C, method, max_iter=12, seed=5, tol=0, atol=0)
    np.testing.assert_allclose(r.x, alone.x, atol=1e-12)
    assert (r.value, r.gap) == pytest.approx((alone.value, alone.gap), rel=1e-9)
    assert r.lmos == alone.calls.lmos
    edges = {(i, j) for i, j in zip(*np.nonzero(mixing), strict=True) if i != j}
    assert set(r.edges) == edges
    assert set(r.edges.values()) == {2 * 12 * 8 * D}  # s and x, once in each iteration


def test_steps_that_look_at_f_are_refused(client, folder):
    from extremal.scale.agents import run_agents

    with pytest.raises(ex.InputError, match="fixed in advance"):
        run_agents(ex.Logistic(), folder, ex.L1Ball(2.0), client, ex.DMFW(step=ex.steps.LineSearch()))
