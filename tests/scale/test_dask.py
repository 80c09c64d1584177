"""Shards on Dask workers: the bits of one process, what is kept where, and what is sent."""

from __future__ import annotations

import gc
import subprocess
import sys

import numpy as np
import pytest

import extremal as ex
from extremal.data.works import Picked
from extremal.methods import newton
from extremal.objectives.works import Look
from extremal.scale.branches import shares
from extremal.scale.engine import DaskShards
from extremal.scale.wire import pack, sent, unpack
from extremal.support.clock import TimeUp, deadline

BALL = ex.L1Ball(10.0)
METHODS = [
    ex.SarahFW(),
    ex.SagaSarahFW(),
    ex.SagaFW(),
    ex.FrankWolfe(),
    ex.FrankWolfe(step=ex.steps.LineSearch()),
    ex.FrankWolfe(step=ex.steps.ShortStep()),
    ex.PairwiseFW(),
    ex.FullyCorrectiveFW(),
]


def on(folder, client=None):
    return ex.ShardDir(folder, engine="memory") if client is None else ex.ShardDir(folder, client=client)


def model(folder, client=None, kind=ex.LinearModel):
    return kind(ex.Logistic(), on(folder, client))


def same(a, b):
    assert np.array_equal(a.x, b.x)
    assert (a.value, a.gap, a.calls) == (b.value, b.gap, b.calls)


# bits


@pytest.mark.parametrize("kind", [ex.LinearModel, ex.InterceptModel])
@pytest.mark.parametrize("folder", ["sparse", "weighted", "dense"])
def test_the_default_method_has_the_same_bits(client, request, folder, kind):
    folder = request.getfixturevalue(folder)
    found = ex.minimize(model(folder, client, kind), BALL, tol=1e-6)
    same(found, ex.minimize(model(folder, None, kind), BALL, tol=1e-6))
    assert "on 2 Dask workers" in found.why
    assert found.converged


@pytest.mark.parametrize("folder", ["sparse", "weighted", "dense"])
def test_rows_read_slab_by_slab_have_the_same_bits(client, request, folder, monkeypatch):
    monkeypatch.setattr(newton, "STREAMED", 0)
    folder = request.getfixturevalue(folder)
    found = ex.minimize(model(folder, client), BALL, tol=1e-6)
    same(found, ex.minimize(model(folder), BALL, tol=1e-6))
    assert "read slab by slab" in found.why
    assert found.converged


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_methods_have_the_same_bits(client, weighted, method):
    same(*(ex.minimize(model(weighted, c), BALL, method, max_iter=12, seed=3) for c in (client, None)))


def test_paths_have_the_same_bits(client, sparse):
    here, there = (ex.path(model(sparse, c), [ex.L1Ball(r) for r in (2.0, 4.0, 8.0)]) for c in (None, client))
    for a, b in zip(here, there, strict=True):
        assert np.array_equal(a.x, b.x)


def test_a_head_has_the_same_bits_and_keeps_numbers(client, sparse):
    found = []
    for c in (None, client):
        f = model(sparse, c)
        head = f.sampled(1000, lambda: pytest.fail("rows are in random order"))
        value, g, z = head.value_grad_margins(np.linspace(-1, 1, 100))
        found.append((value, *g, head.value_at(z), head.length(head.change(head.zero, z))))
    assert found[0] == found[1]


def test_numbers_of_all_rows_are_brought_here_where_they_are_asked_for(client, weighted):
    here, there = model(weighted), model(weighted, client)
    x = np.linspace(-1, 1, 100)
    for f in (here, there):
        assert isinstance(f.derivs(x), np.ndarray)
    assert np.array_equal(here.derivs(x), there.derivs(x))
    assert np.array_equal(here.data.dot(x), there.data.dot(x))
    assert np.array_equal(here.row_smoothness, there.row_smoothness)
    assert here.smoothness == there.smoothness
    idx = np.array([7000, 3, 3, 100])
    assert np.array_equal(here.data.rows(idx).dot(x), there.data.rows(idx).dot(x))
    blocks = [list(f.data.arrays(500)) for f in (here, there)]
    assert all(a[0] == b[0] and np.array_equal(a[1], b[1]) for a, b in zip(*blocks, strict=True))


# the tree


@pytest.mark.parametrize("hosts", range(1, 10))
@pytest.mark.parametrize("parts", [1, 2, 7, 64, 1000])
def test_shares_are_branches_of_about_equal_size(parts, hosts):
    found = shares([1] * parts, hosts)
    assert sorted(i for own in found for lo, hi in own for i in range(lo, hi)) == list(range(parts))
    assert len(found) == min(parts, hosts)
    assert all(len(own) <= 2 for own in found)
    nodes, todo = set(), [(0, parts)]
    while todo:
        lo, hi = todo.pop()
        nodes.add((lo, hi))
        todo += [(lo, (lo + hi) // 2), ((lo + hi) // 2, hi)] if hi - lo > 1 else []
    assert {branch for own in found for branch in own} <= nodes
    if parts >= 64:
        assert max(sum(hi - lo for lo, hi in own) for own in found) <= 1.4 * parts / hosts


# what is sent and kept


def test_a_pass_sends_x_once_to_each_host_and_brings_a_sum_from_each(client, sparse):
    f = model(sparse, client)
    f.grad(np.ones(100))
    parts, calls = f.data.parts, []
    call = parts.workers.call
    parts.workers.call = lambda link, order, message: calls.append((link.address, message.size)) or call(link, order, message)
    f.grad(np.ones(100))
    assert len(calls) == len({address for address, _ in calls}) == 2
    assert all(size < 100 * 8 + 1000 for _, size in calls)
    assert all(len(seat.branches) == 1 for seat in parts._seats)


def test_picked_rows_go_to_those_who_have_them(client, sparse):
    f = model(sparse, client)
    f.grad(np.ones(100))
    parts, calls = f.data.parts, []
    call = parts.workers.call
    parts.workers.call = lambda link, *rest: calls.append(link.address) or call(link, *rest)
    f.derivs(np.ones(100), np.array([3, 1, 2]))
    assert len(set(calls)) == 1
    assert not f.data.tdot(np.empty(0), np.empty(0, np.intp)).any()
    assert Picked.of(np.array([5, 1])).among([slice(0, 1)]) is None


def test_numbers_are_dropped_with_their_handles(client, sparse):
    f = model(sparse, client)
    z = f.margins(np.ones(100))
    other = f.margins(np.zeros(100))
    del other
    f.value_at(z)
    parts = f.data.parts
    assert all(parts.workers.names(seat.link) == [z.name] for seat in parts._seats)
    del z
    gc.collect()
    f.grad(np.ones(100))
    assert all(parts.workers.names(seat.link) == [] for seat in parts._seats)


def test_nothing_is_kept_after_a_run(client, sparse):
    f = model(sparse, client, ex.InterceptModel)
    r = ex.minimize(f, BALL)
    f._last = None
    f.data.parts.total(Look(ex.Logistic(), f.y, r.x))
    assert all(f.data.parts.workers.names(seat.link) == [] for seat in f.data.parts._seats)


def test_numbers_are_written_once(client, sparse):
    f = model(sparse, client)
    z = f.margins(np.ones(100))
    with pytest.raises(Exception, match=r"read-?only|Cannot"):
        f.data.parts.total(Look(ex.Logistic(), f.y, np.zeros(100), z=z))


def test_messages_arrive_as_they_were():
    a = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    found = unpack(*sent(pack({"a": a, "none": np.empty(0), "b": 1})), lock=True)
    assert np.array_equal(found["a"], a)
    assert not found["a"].flags.writeable
    assert found["a"].flags.aligned


# mistakes


def test_a_mistake_in_a_host_is_told_as_it_is(client, sparse):
    with pytest.raises(ex.InputError, match="shard 0000"):
        ex.LinearModel(ex.Poisson(), on(sparse, client))
    f = model(sparse, client)
    with pytest.raises(ex.InputError, match="x must have shape"):
        f.grad(np.ones(3))
    assert np.isfinite(f.grad(np.ones(100))).all()


def test_a_run_ends_in_time(client, sparse):
    f = model(sparse, client)
    f.grad(np.ones(100))
    with deadline(lambda: True), pytest.raises(TimeUp):
        f.data.parts.workers.answer(f.data.parts._seats[0].link, _never())
    assert np.isfinite(f.value(np.ones(100)))


def _never():
    from concurrent.futures import Future

    return Future()


def test_what_is_no_client_is_refused(sparse):
    with pytest.raises(ex.InputError, match=r"must be a distributed.Client"):
        ex.ShardDir(sparse, client="tcp://127.0.0.1:1")


# alone


OWN = """
import sys, numpy as np, extremal as ex
if __name__ == "__main__":
    data = ex.ShardDir(sys.argv[1], engine="dask")
    r = ex.minimize(ex.LinearModel(ex.Logistic(), data), ex.L1Ball(10.0))
    print(r.converged, r.x.sum().hex())
    if sys.argv[2] == "close":
        data.close()
"""


@pytest.mark.parametrize("how", ["close", "leave"])
def test_a_cluster_is_started_and_closed_without_a_word(tmp_path, weighted, how):
    script = tmp_path / "own.py"
    script.write_text(OWN)
    done = subprocess.run([sys.executable, str(script), str(weighted), how], capture_output=True, text=True, timeout=120)
    here = ex.minimize(model(weighted), BALL)
    assert done.stdout.split() == ["True", here.x.sum().hex()]
    assert not done.stderr


def test_runs_in_memory_and_on_disk_import_no_dask(weighted):
    code = f"""
import sys, extremal as ex
for engine in ("memory", "disk"):
    ex.minimize(ex.LinearModel(ex.Logistic(), ex.ShardDir({str(weighted)!r}, engine=engine)), ex.L1Ball(10.0))
print([m for m in ("dask", "distributed", "pyarrow", "extremal.scale") if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "[]\n", done.stderr


def test_the_engine_tells_where_it_is(client, sparse):
    parts = DaskShards(sparse, on(sparse).manifest, client)
    assert parts.where == "on the Dask workers"
    parts.close()
