"""Workers that are killed, stopped or blind, schedulers that are gone: the same bits, or a sentence that names what is lost."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress

import distributed
import numpy as np
import pytest
from clusters import cluster_of_two, pids, settled

import extremal as ex
from extremal.scale.cluster import ClusterError

BALL = ex.L1Ball(10.0)
PATIENCE = 100  # seconds: far beyond what a lost worker costs, so that a busy machine does not matter


def run(folder, client=None, kind=ex.InterceptModel, at=(), how=signal.SIGKILL, of=None):
    """A run in which workers get a signal right after some calls; how many calls there were, and the longest pass."""
    data = ex.ShardDir(folder, engine="memory") if client is None else ex.ShardDir(folder, client=client)
    f, seen = kind(ex.Logistic(), data), {"calls": 0, "longest": 0.0}
    if client is not None:
        data.parts.timeout = PATIENCE / 2 if how == signal.SIGKILL else data.parts.timeout  # new processes may start slowly
        harmed(data.parts, seen, at, how, pids(client) if of is None else of)
    return ex.minimize(f, BALL, tol=1e-6), seen


def harmed(parts, seen, at, how, known):
    call, one = parts.workers.call, parts._pass

    def called(link, order, message):
        future = call(link, order, message)
        if seen["calls"] in at:
            known.update(pids(parts.workers.client) if link.address not in known else {})
            os.kill(known[link.address], how)
        seen["calls"] += 1
        return future

    def timed(*given):
        start = time.monotonic()
        try:
            return one(*given)
        finally:
            seen["longest"] = max(seen["longest"], time.monotonic() - start)

    parts.workers.call, parts._pass = called, timed


@pytest.fixture(scope="module")
def want(sparse):
    return run(sparse)[0]


def same(found, want):
    assert np.array_equal(found.x, want.x)
    assert (found.value, found.gap, found.calls) == (want.value, want.gap, want.calls)


@pytest.mark.parametrize("where", ["first", "middle", "last"])
def test_a_worker_that_is_killed_changes_no_bit(client, sparse, want, where):
    settled(client)
    calls = run(sparse, client)[1]["calls"]
    found, seen = run(sparse, client, at=({"first": 0, "middle": calls // 2, "last": calls - 1}[where],))
    same(found, want)
    assert seen["longest"] < PATIENCE


def test_three_workers_that_are_killed_change_no_bit(client, sparse, want):
    settled(client)
    found, seen = run(sparse, client, at=(5, 30, 31, 70))
    same(found, want)
    assert seen["calls"] > 70
    assert seen["longest"] < PATIENCE


def test_a_new_worker_takes_over_from_one_that_has_two_shares(client, sparse):
    settled(client)
    data = ex.ShardDir(sparse, client=client)
    f = ex.LinearModel(ex.Logistic(), data)
    z = f.margins(np.ones(100))
    value, first = f.value_at(z), data.parts._seats[0].link.address
    os.kill(pids(client)[first], signal.SIGKILL)
    assert f.value_at(z) == value
    assert "on 1 Dask worker" in data.where
    settled(client)
    assert f.value_at(z) == value
    assert "on 2 Dask workers" in data.where


def test_numbers_are_made_again_from_numbers_that_are_gone(client, sparse):
    settled(client)
    data = ex.ShardDir(sparse, client=client)
    f = ex.LinearModel(ex.Logistic(), data)
    z = f.margins(np.ones(100))
    h = f.change(z, f.margins(np.zeros(100)))
    want = f.length(h)
    del z
    os.kill(pids(client)[data.parts._seats[1].link.address], signal.SIGKILL)
    assert f.length(h) == want
    assert f.length(h) == want
    assert all(data.parts.workers.names(seat.link) == [h.name] for seat in data.parts._seats)


@pytest.mark.slow
def test_a_worker_that_is_stopped_changes_no_bit(client, sparse, want):
    settled(client)
    known = pids(client)
    try:
        found, seen = run(sparse, client, at=(20,), how=signal.SIGSTOP, of=dict(known))
        same(found, want)
        assert 4 < seen["longest"] < PATIENCE
    finally:
        for pid in known.values():
            os.kill(pid, signal.SIGCONT)


def test_a_worker_that_is_busy_is_waited_for(client, sparse):
    settled(client)
    data = ex.ShardDir(sparse, client=client)
    data.parts.timeout = 2.0
    f = ex.LinearModel(_Slow(), data)
    start = time.monotonic()
    assert np.isfinite(f.value(np.ones(100)))
    assert time.monotonic() - start > data.parts.timeout
    assert not data.parts.workers.avoid


class _Slow(ex.Logistic):
    """Takes long, and leaves the interpreter to others."""

    def value(self, z, y):
        time.sleep(0.7)
        return super().value(z, y)


@pytest.mark.slow
def test_shards_are_named_when_their_hosts_are_lost_again_and_again(sparse):
    with cluster_of_two(n_workers=4) as client:
        f = ex.LinearModel(_Deadly(), ex.ShardDir(sparse, client=client))
        with pytest.raises(ClusterError, match=r"the hosts of shards? 0000.* were lost 3 times in one call"):
            f.value(np.ones(100))


class _Deadly(ex.Logistic):
    """Takes its worker with it."""

    def value(self, z, y):
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_directory_that_workers_do_not_see_is_named(client, weighted, tmp_path):
    settled(client)
    shutil.copytree(weighted, tmp_path / "here")
    data = ex.ShardDir(tmp_path / "here", client=client)
    (tmp_path / "here").rename(tmp_path / "gone")
    with pytest.raises(ex.InputError, match=r"the Dask worker tcp://.* does not see the shards: .*here"):
        ex.LinearModel(ex.Logistic(), data)
    (tmp_path / "gone").rename(tmp_path / "here")
    ex.LinearModel(ex.Logistic(), data)


def test_another_manifest_is_refused(client, weighted, sparse, tmp_path):
    shutil.copytree(weighted, tmp_path / "here")
    data = ex.ShardDir(tmp_path / "here", client=client)
    shutil.copy(sparse / "manifest.json", tmp_path / "here")
    with pytest.raises(ex.InputError, match="finds another manifest there"):
        ex.LinearModel(ex.Logistic(), data)


def test_a_shard_that_is_gone_is_named(client, weighted, tmp_path):
    shutil.copytree(weighted, tmp_path / "here")
    data = ex.ShardDir(tmp_path / "here", client=client)
    (tmp_path / "here" / "00001.values.npy").unlink()
    with pytest.raises(ex.InputError, match=r"00001\.values\.npy"):
        ex.LinearModel(ex.Logistic(), data)


def test_damaged_rows_on_a_worker_are_named(client, weighted, tmp_path):
    shutil.copytree(weighted, tmp_path / "here")
    path = tmp_path / "here" / "00001.columns.npy"
    columns = np.load(path)
    columns[4] = 2**30
    np.save(path, columns)
    f = ex.LinearModel(ex.Logistic(), ex.ShardDir(tmp_path / "here", client=client))
    with pytest.raises(ex.InputError, match=r"00001\.columns\.npy: row .*expected columns from 0"):
        ex.minimize(f, ex.L1Ball(1.0))


@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_is_gone_is_named(weighted, tmp_path):
    file = tmp_path / "scheduler.json"
    scheduler = started("scheduler", "--port", "0", "--dashboard-address", ":0", "--scheduler-file", str(file))
    worker = started("worker", "--no-nanny", "--nthreads", "1", "--dashboard-address", ":0", "--scheduler-file", str(file))
    try:
        client = distributed.Client(scheduler_file=str(file), set_as_default=False, timeout=20)
        client.wait_for_workers(1, timeout=20)
        f = ex.LinearModel(ex.Logistic(), ex.ShardDir(weighted, client=client))
        scheduler.kill()
        worker.kill()
        with pytest.raises(ClusterError, match=r"the Dask scheduler tcp://.* does not answer"):
            f.grad(np.ones(100))
        with suppress(TimeoutError, RuntimeError):  # distributed's own, if its wait for the scheduler ends while it closes
            client.close(timeout=0.1)
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()


def started(what, *options):
    command = [sys.executable, "-m", "dask", what, *options]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate")
def test_tls(weighted, tmp_path):
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subject = ["-subj", "/CN=localhost", "-days", "2", "-nodes", "-newkey", "rsa:2048"]
    made = ["openssl", "req", "-x509", *subject, "-keyout", str(key), "-out", str(cert)]
    subprocess.run(made, check=True, capture_output=True)
    files = (("key", str(key)), ("cert", str(cert)))
    sides = {f"tls_{who}_{what}": path for who in ("client", "scheduler", "worker") for what, path in files}
    security = distributed.Security(tls_ca_file=str(cert), require_encryption=True, **sides)
    with cluster_of_two(security=security, protocol="tls://") as client:
        assert client.scheduler.address.startswith("tls://")
        found = ex.minimize(ex.LinearModel(ex.Logistic(), ex.ShardDir(weighted, client=client)), BALL)
    assert np.array_equal(found.x, ex.minimize(ex.LinearModel(ex.Logistic(), ex.ShardDir(weighted, engine="memory")), BALL).x)


def test_workers_behind_the_scheduler_are_reached_through_it(client, weighted):
    settled(client)
    data = ex.ShardDir(weighted, client=client)
    data.parts.workers._direct = False
    found = ex.minimize(ex.LinearModel(ex.Logistic(), data), BALL)
    assert np.array_equal(found.x, ex.minimize(ex.LinearModel(ex.Logistic(), ex.ShardDir(weighted, engine="memory")), BALL).x)
