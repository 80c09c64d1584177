"""Workers that are processes send the messages of the simulation, bit by bit, and nothing is lost in the counts."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from clusters import cluster_of_two, pids

import extremal as ex
from extremal.scale.cluster import ClusterError
from extremal.scale.stations import run_workers

C = ex.L1Ball(2.0)
SPIDER = ex.Method(ex.gradients.EF21(ex.gradients.Spider(3, 4), "top-3", 3), ex.steps.EpochHarmonic())


@pytest.mark.parametrize(
    "method",
    [
        ex.EF21FW("top-3"), ex.EF21FW("random-3", 3, batch=5), ex.EF21FW("natural", 5, ex.gradients.Saga(4)),
        ex.MarinaFW("natural", 3, p=0.3), ex.MarinaFW("random-3", 4, batch=7, p=0.3), SPIDER,
    ],
    ids=repr,
)  # fmt: skip
def test_the_trajectory_is_that_of_the_simulation(client, folder, method):
    f = ex.LinearModel(ex.Logistic(), ex.ShardDir(folder, engine="memory"))
    alone = ex.minimize(f, C, method, max_iter=12, seed=5, tol=0, atol=0)
    r = run_workers(ex.Logistic(), folder, C, client, method, max_iter=12, seed=5)
    assert np.array_equal(r.x, alone.x)
    assert (r.value, r.gap, r.n_iter) == (alone.value, alone.gap, 12)
    assert r.calls == alone.calls
    assert r.calls.bytes > 0


def test_a_worker_that_is_lost_is_named(folder):
    with cluster_of_two() as client:
        killed = []

        class Harmful(type(C)):
            """A ball whose oracle kills a worker."""

            def lmo(self, g):
                if not killed:
                    killed.append(next(iter(pids(client).values())))
                    os.kill(killed[0], signal.SIGKILL)
                return super().lmo(g)

        with pytest.raises(ClusterError, match=r"`run_workers`: worker \d is lost .*; start the run again"):
            run_workers(ex.Logistic(), folder, Harmful(2.0), client, max_iter=50, timeout=3.0)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"method": ex.FrankWolfe()}, r"`run_workers\(method=...\)` must be EF21FW"),
        ({"client": "tcp://127.0.0.1:1"}, r"`run_workers\(client=...\)` must be a distributed.Client"),
        ({"timeout": 0}, "timeout"),
        ({"directory": "/nowhere"}, "/nowhere"),
        ({"max_iter": -1}, "max_iter"),
    ],
)
def test_what_cannot_be_is_refused(client, folder, change, word):
    given = {"loss": ex.Logistic(), "directory": folder, "C": C, "client": client} | change
    with pytest.raises(ex.InputError, match=word):
        run_workers(**given)
