"""Agents that are processes make the steps of the simulation, bit by bit, and speak with their neighbours only."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import numpy as np
import pytest
from clusters import cluster_of_two, pids, settled

import extremal as ex
from extremal.scale import agents
from extremal.scale.agents import run_agents
from extremal.scale.cluster import ClusterError

D = 12
C = ex.L1Ball(2.0)
PATH = ex.gradients.metropolis([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
ONE_WAY = np.eye(3) / 2 + np.roll(np.eye(3), 1, axis=1) / 2  # agent i hears agent i + 1 only
SAGA = ex.Method(ex.gradients.Tracking(ex.gradients.Saga(4), PATH), ex.steps.OpenLoop(), ex.moves.Consensus(PATH))
RANDOM = ex.DMFW(batch=3, mixing=ex.gradients.ring(4), compressor="random-3")


def simulated(folder, method, rounds):
    f = ex.LinearModel(ex.Logistic(), ex.ShardDir(folder, engine="memory"))
    return ex.minimize(f, C, method, max_iter=rounds, seed=5, tol=0, atol=0)


def same(found, alone):
    assert np.array_equal(found.x, alone.x)
    assert (found.value, found.gap, found.lmos) == (alone.value, alone.gap, alone.calls.lmos)


@pytest.mark.parametrize("mixing", [ex.gradients.ring(4), PATH, ex.gradients.complete(5), ONE_WAY, np.eye(1)])
def test_the_trajectory_is_that_of_the_simulation(client, folder, mixing):
    method = ex.DMFW(batch=3, mixing=mixing)
    r = run_agents(ex.Logistic(), folder, C, client, method, max_iter=9, seed=5)
    same(r, simulated(folder, method, 9))
    edges = {(i, j) for j, i in zip(*np.nonzero(mixing), strict=True) if i != j}
    assert r.edges == dict.fromkeys(edges, (2 * 9 + 1) * 8 * D)  # s at the start; x and s in each iteration
    assert sum(r.edges.values()) == simulated(folder, method, 9).calls.bytes


@pytest.mark.parametrize("compressor", ["natural", "top-3", "random-3", "none"])
@pytest.mark.parametrize("mixing", [ex.gradients.ring(4), ONE_WAY], ids=["ring", "one way"])
def test_compressed_messages_give_the_trajectory_of_the_simulation(client, folder, compressor, mixing):
    method = ex.DMFW(batch=3, mixing=mixing, compressor=compressor)
    r, alone = run_agents(ex.Logistic(), folder, C, client, method, max_iter=9, seed=5), simulated(folder, method, 9)
    same(r, alone)
    size = {"natural": 18, "top-3": 36, "random-3": 36, "none": 8 * D}[compressor]
    edges = {(i, j) for j, i in zip(*np.nonzero(mixing), strict=True) if i != j}
    assert r.edges == dict.fromkeys(edges, (2 * 9 + 1) * size)
    assert sum(r.edges.values()) == alone.calls.bytes  # one count of the processes, one of the simulation


def test_copies_go_along_one_edge_of_each_agent(client, folder):
    r = run_agents(ex.Logistic(), folder, C, client, ex.DMFW(mixing=PATH), max_iter=12)
    more = {edge: size - (2 * 12 + 1) * 8 * D for edge, size in r.edges.items()}
    assert {edge for edge, size in more.items() if size} == {(0, 1), (1, 0), (2, 1)}
    assert all(size == 0 or 4 * 8 * D <= size < 4 * 8 * D + 1000 for size in more.values())


@pytest.fixture
def harmed(monkeypatch):
    """Signals that workers get right after the nth call of an order."""
    todo = {}

    def called(self, link, order, message):
        future = call(self, link, order, message)
        seen[order] = seen.get(order, 0) + 1
        if (how := todo.get((order, seen[order]))) is not None:
            with suppress(KeyError):  # it was killed just before
                os.kill(pids(self.client)[link.address], how)
        return future

    call, seen = agents.Workers.call, {}
    monkeypatch.setattr(agents.Workers, "call", called)
    return todo


@pytest.mark.parametrize("method", [ex.DMFW(batch=3, mixing=ex.gradients.ring(4)), SAGA, RANDOM], ids=["DMFW", "Saga", "random"])
def test_agents_that_are_lost_change_no_bit(client, folder, harmed, method):
    harmed |= {("move", 50): signal.SIGKILL, ("follow", 75): signal.SIGKILL}
    settled(client)
    same(run_agents(ex.Logistic(), folder, C, client, method, max_iter=22, seed=5), simulated(folder, method, 22))


def test_agents_begin_again_where_copies_are_lost_too(folder, harmed):
    harmed |= {("begin", 1): signal.SIGKILL, ("move", 13): signal.SIGKILL, ("end", 1): signal.SIGKILL}
    method = ex.DMFW(mixing=ex.gradients.ring(2))
    with cluster_of_two(n_workers=1) as client:
        same(run_agents(ex.Logistic(), folder, C, client, method, max_iter=11, seed=5), simulated(folder, method, 11))


def test_an_agent_that_is_silent_is_made_anew(client, folder, harmed):
    harmed |= {("save", 2): signal.SIGSTOP}
    settled(client)
    method, known = ex.DMFW(mixing=PATH), pids(client)
    try:
        same(
            run_agents(ex.Logistic(), folder, C, client, method, max_iter=12, seed=5, timeout=1.5),
            simulated(folder, method, 12),
        )
    finally:
        for pid in known.values():
            os.kill(pid, signal.SIGCONT)


def test_agents_that_are_lost_again_and_again_are_named(folder, harmed):
    harmed |= {("move", i): signal.SIGKILL for i in range(1, 40)}
    said = r"iteration 0 has failed 3 times \(agent \d.* Dask worker tcp"
    with cluster_of_two() as client, pytest.raises(ClusterError, match=said):
        run_agents(ex.Logistic(), folder, C, client, max_iter=5, timeout=1.5)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"method": ex.DMFW(step=ex.steps.LineSearch())}, "fixed in advance"),
        ({"method": ex.FrankWolfe(step=ex.steps.OpenLoop())}, "must be DMFW"),
        ({"client": "tcp://127.0.0.1:1"}, r"`run_agents\(client=...\)` must be a distributed.Client"),
        ({"timeout": 0}, "timeout"),
        ({"directory": "/nowhere"}, "/nowhere"),
    ],
)
def test_what_cannot_be_is_refused(client, folder, change, word):
    given = {"loss": ex.Logistic(), "directory": folder, "C": C, "client": client} | change
    with pytest.raises(ex.InputError, match=word):
        run_agents(**given)
