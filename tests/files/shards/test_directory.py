"""A directory of shards as data: the same bits whatever reads it, batches by their law, what is damaged named."""

from __future__ import annotations

import itertools
import logging
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from shard_rows import rows, spoiled

import extremal as ex
from extremal.files.shards import directory as directory_module
from extremal.files.shards import engine as engine_module
from extremal.files.shards import mapped
from extremal.objectives.base import Sampler, shared_counts
from extremal.support import memory

N, D = 400, 8
A, Y = rows(N, D)
A[:, -1] = np.sin(A[:, -1])
WEIGHTS = np.random.default_rng(1).random(N)
KINDS = {
    "sparse": lambda: (sp.csr_array(A), Y),
    "dense": lambda: (A, Y),
    "float32": lambda: (sp.csr_array(A.astype(np.float32)), Y),
    "weighted": lambda: iter([(A[i : i + 90], Y[i : i + 90], WEIGHTS[i : i + 90]) for i in range(0, N, 90)]),
}


def build(folder, source=None, **options):
    ex.ShardDir.build(KINDS["sparse"]() if source is None else source, folder, **{"shard_bytes": 2**12, "seed": 0} | options)
    return folder


def both(folder):
    return [ex.ShardDir(folder, engine=engine) for engine in ("memory", "disk")]


# ---- engines


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("model", [ex.LinearModel, ex.InterceptModel])
def test_equal_bits_in_memory_and_on_disk(model, kind, tmp_path):
    build(tmp_path, KINDS[kind]())
    found = []
    for data in both(tmp_path):
        assert len(data.manifest.shards) > 2
        f = model(ex.Logistic(), data)
        for method in (None, "frank-wolfe", *(() if model is ex.InterceptModel else ("sarah-fw", "saga-sarah-fw"))):
            r = ex.minimize(f, ex.L1Ball(3.0), method, max_iter=20, seed=1)
            found.append((r.x.tobytes(), r.value, r.gap, r.calls))
        found += [r.x.tobytes() for r in ex.path(f, [ex.L1Ball(radius) for radius in (0.5, 1.0, 2.0)], tol=1e-7)]
    half = len(found) // 2
    assert found[:half] == found[half:]


@pytest.mark.parametrize("kind", ["sparse", "weighted"])
@pytest.mark.parametrize("model", [ex.LinearModel, ex.InterceptModel])
def test_the_answer_of_the_rows_in_memory(model, kind, tmp_path):
    data = ex.ShardDir(build(tmp_path, KINDS[kind]()), engine="disk")
    near = ex.minimize(model(ex.Logistic(), A, Y, WEIGHTS if kind == "weighted" else None), ex.L1Ball(3.0), tol=1e-10)
    r = ex.minimize(model(ex.Logistic(), data), ex.L1Ball(3.0), tol=1e-10)
    np.testing.assert_allclose(r.x, near.x, rtol=1e-6, atol=1e-8)
    assert "shards on disk" in r.why


@pytest.mark.parametrize("method", sorted(ex.methods.METHODS))
def test_every_method_runs_or_says_why_not(method, tmp_path):
    build(tmp_path)
    found = []
    for data in both(tmp_path):
        f = ex.LinearModel(ex.Logistic(), data)
        try:
            found.append(ex.minimize(f, ex.L1Ball(3.0), method, max_iter=6, seed=1).x.tobytes())
        except ex.InputError as error:
            assert method in ("in-face-fw", "low-rank-fw", "block-fw")  # which are for other sets
            found.append(str(error))
    assert found[0] == found[1]


@pytest.mark.parametrize("loss", [ex.Squared(), ex.Huber(), ex.NonlinearLeastSquares()], ids=repr)
@pytest.mark.parametrize("C", [ex.Simplex(), ex.Box(-1.0, 1.0), ex.L2Ball(1.0), ex.LinfBall(0.5)], ids=repr)
def test_other_sets_and_losses(loss, C, tmp_path):
    y = (Y > 0).astype(float) if loss.labels else A[:, 0]
    build(tmp_path, (A, y))
    found = [ex.minimize(ex.LinearModel(loss, data), C, tol=1e-6) for data in both(tmp_path)]
    assert found[0].x.tobytes() == found[1].x.tobytes()
    assert found[0].converged


def test_sets_whose_vertices_have_margins_of_their_own(tmp_path):
    """Fully corrective steps would keep an array for each vertex; where rows are elsewhere, the default makes others."""
    data = ex.ShardDir(build(tmp_path, (A, A[:, 0])), engine="disk")
    wide = np.random.default_rng(0).standard_normal((60, 1200))
    many = ex.ShardDir.build((wide, wide[:, 0]), tmp_path / "wide", shard_bytes=2**16)
    r = ex.minimize(ex.LinearModel(ex.Squared(), many), ex.L2Ball(0.5), max_iter=20)
    assert r.why.startswith("PairwiseFW")
    f = ex.LinearModel(ex.Squared(), data)
    x = [ex.minimize(f, ex.L2Ball(0.5), method, tol=1e-6).value for method in ("fully-corrective-fw", None)]
    assert x[0] == pytest.approx(x[1], rel=1e-5)


@pytest.mark.parametrize("model", [ex.LinearModel, ex.InterceptModel])
@pytest.mark.parametrize("C", [ex.NuclearBall(3.0), ex.L1Ball(3.0)], ids=repr)
def test_several_outputs(C, model, tmp_path):
    build(tmp_path, (A, np.digitize(A[:, 0], [-0.5, 0.5])))
    found = [ex.minimize(model(ex.Multinomial(3), data), C) for data in both(tmp_path)]
    assert np.asarray(found[0].x).tobytes() == np.asarray(found[1].x).tobytes()
    assert found[0].converged


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_threads_change_no_bit(kind, tmp_path):
    build(tmp_path, KINDS[kind]())
    code = (
        "import sys, extremal as ex\n"
        "for engine in ('memory', 'disk'):\n"
        "    for model in (ex.LinearModel, ex.InterceptModel):\n"
        "        r = ex.minimize(model(ex.Logistic(), ex.ShardDir(sys.argv[1], engine=engine)), ex.L1Ball(3.0), tol=1e-8)\n"
        "        print(r.x.tobytes().hex(), r.value, r.gap, r.calls)\n"
    )
    found = set()
    for threads in ("1", "2", "4"):
        environment = os.environ | {"NUMBA_NUM_THREADS": threads}
        said = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)], env=environment, capture_output=True, text=True, check=True
        )
        found.add(said.stdout)
    (text,) = found
    first, second = text.splitlines()[:2], text.splitlines()[2:]
    assert first == second


def test_numbers_of_rows_are_mapped_where_they_would_take_memory(tmp_path, monkeypatch):
    build(tmp_path)
    near = ex.minimize(ex.InterceptModel(ex.Logistic(), ex.ShardDir(tmp_path, engine="memory")), ex.L1Ball(3.0))
    monkeypatch.setattr(memory, "SCRATCH", 1)
    monkeypatch.setattr(memory, "free_memory", lambda: 1)
    data = ex.ShardDir(tmp_path, engine="disk")
    room = data.parts.numbers()
    assert not room.flags.owndata
    assert len(data.parts._scratch) == 1
    r = ex.minimize(ex.InterceptModel(ex.Logistic(), data), ex.L1Ball(3.0))
    assert r.x.tobytes() == near.x.tobytes()
    del room
    assert len(data.parts._scratch) == 0 or all(size for size in data.parts._scratch.values())


def test_the_engine_goes_by_size(tmp_path, monkeypatch):
    build(tmp_path)
    for free, engine in ((None, "memory"), (10**9, "memory"), (10**3, "disk")):
        monkeypatch.setattr(directory_module, "free_memory", lambda free=free: free)
        assert ex.ShardDir(tmp_path).engine == engine
    with pytest.raises(ex.InputError, match="must be one of 'memory', 'disk', 'dask', got 'tape'"):
        ex.ShardDir(tmp_path, engine="tape")
    with pytest.raises(ex.InputError, match="goes with engine='dask'"):
        ex.ShardDir(tmp_path, engine="disk", client=object())


def test_rows_read_are_counted_as_the_parts_are_asked(tmp_path, monkeypatch):
    data, asked = ex.ShardDir(build(tmp_path), engine="disk"), []
    answers = engine_module.LocalShards.answers
    f = ex.LinearModel(ex.Logistic(), data)
    f.ready()
    f.ready_columns()
    monkeypatch.setattr(
        engine_module.LocalShards, "answers", lambda self, work: asked.append(N if work.reads else 0) or answers(self, work)
    )
    r = ex.minimize(f, ex.L1Ball(3.0), "frank-wolfe", max_iter=5)
    assert r.calls.rows == sum(asked) >= 6 * N


# ---- targets and weights


def test_targets_and_weights_come_with_the_rows(tmp_path):
    data = ex.ShardDir(build(tmp_path, KINDS["weighted"]()))
    order = np.argsort(data.numbers_of(data.weights))
    np.testing.assert_allclose(data.numbers_of(data.weights)[order], np.sort(WEIGHTS) / WEIGHTS.mean())
    assert np.array_equal(data.numbers_of(data.targets)[order], Y[np.argsort(WEIGHTS)])
    assert data.weights.heaviest == pytest.approx(WEIGHTS.max() / WEIGHTS.mean())
    with pytest.raises(ex.InputError, match="needs y, too"):
        ex.LinearModel(ex.Logistic(), data, weights=WEIGHTS)
    assert data.classes.tolist() == [-1.0, 1.0]


def test_wrong_labels_name_their_shard(tmp_path):
    data = ex.ShardDir(build(tmp_path), engine="disk")
    spoiled(tmp_path, "targets", 3, 2.0)
    with pytest.raises(ex.InputError, match=r"shard 00000: .*takes labels \{-1, 1\}, got \{-1, 1, 2\}"):
        ex.LinearModel(ex.Logistic(), data)
    with pytest.raises(ex.InputError, match=r"00000.targets.npy: row 3: expected one of the classes"):
        data.verify()
    with pytest.raises(ex.InputError, match="shard 00000"):
        ex.LinearModel(ex.Poisson(), data)  # counts below 0


# ---- heads


def test_a_head_is_the_first_rows_of_each_shard(tmp_path):
    data = ex.ShardDir(build(tmp_path), engine="disk")
    head, first = data.head(100), data.bounds
    assert head.shape == (100, D)
    counts = np.array(head.counts)
    assert counts.sum() == 100
    assert np.abs(counts - 100 * np.diff(first) / N).max() < 1
    idx = np.concatenate([np.arange(a, a + c) for a, c in zip(first[:-1], counts, strict=True)])
    x = np.linspace(-1, 1, D)
    np.testing.assert_allclose(head.dot(x), data.dot(x)[idx], rtol=1e-14)
    f = ex.LinearModel(ex.Logistic(), data)
    some = f.sampled(100, lambda: np.arange(100))
    near = ex.LinearModel(ex.Logistic(), data.rows(idx), data.numbers_of(data.targets, idx))
    assert some.value(x) == pytest.approx(near.value(x), rel=1e-13)
    np.testing.assert_allclose(some.grad(x), near.grad(x), rtol=1e-12)


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_head_has_the_targets_of_its_own_rows(engine, tmp_path):
    build(tmp_path, (A, np.digitize(A[:, 0], [-0.5, 0.5])))
    data = ex.ShardDir(tmp_path, engine=engine)
    idx = np.concatenate([np.arange(a, a + c) for a, c in zip(data.bounds[:-1], data.head(100).counts, strict=True)])
    some = ex.InterceptModel(ex.Multinomial(3), data).sampled(100, lambda: np.arange(100))
    near = ex.InterceptModel(ex.Multinomial(3), data.rows(idx), data.numbers_of(data.targets, idx))
    x = np.linspace(-1, 1, 3 * D).reshape(D, 3)
    np.testing.assert_allclose(some.intercept(x), near.intercept(x), rtol=1e-9)
    assert some.value(x) == pytest.approx(near.value(x), rel=1e-13)


def test_rows_in_an_order_of_their_own_have_no_head(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, "extremal"):
        data = ex.ShardDir.build(KINDS["sparse"](), tmp_path, shuffle=False, shard_bytes=2**12)
    assert "were not shuffled" in caplog.text
    assert data.head(100) is None
    f = ex.LinearModel(ex.Logistic(), data)
    assert not f.by_rows
    np.testing.assert_allclose(f.data.dot(np.ones(D)), A @ np.ones(D), rtol=1e-12, atol=1e-12)
    assert ex.minimize(f, ex.L1Ball(3.0)).converged


# ---- batches


@pytest.mark.parametrize("bounds", [(0, 3, 4, 9), (0, 5, 10), (0, 1, 2, 3), (0, 7)])
def test_batches_are_unbiased_by_enumeration(bounds):
    """Over u and the starts, each row is as often in a batch as any other: the mean over a batch is that over all rows."""
    ends, n = np.array(bounds), bounds[-1]
    sizes = np.diff(ends)
    for b in range(1, n + 1):
        cuts = sorted({0.0, 1.0} | {float(1 - (b * end / n) % 1) for end in bounds})  # where counts change with u
        often = np.zeros(n)
        for low, high in itertools.pairwise(cuts):
            if high - low < 1e-12:
                continue
            counts = shared_counts(ends, b, (low + high) / 2)
            assert counts.sum() == b
            assert (counts >= 0).all()
            assert (counts <= sizes).all()
            for first, size, count in zip(ends, sizes, counts, strict=False):
                for start in range(size):
                    often[first + (start + np.arange(count)) % size] += (high - low) / size
        np.testing.assert_allclose(often, b / n, rtol=1e-9)


@pytest.mark.parametrize("batch", [1, 7, 50, N])
def test_batches_are_consecutive_rows_of_each_shard(batch, tmp_path):
    data = ex.ShardDir(build(tmp_path))
    sampler = Sampler(N, 3, bounds=data.bounds)
    for k in range(30):
        idx = sampler.rows(k, batch)
        assert len(np.unique(idx)) == batch
        for first, last in itertools.pairwise(data.bounds):
            own = np.sort(idx[(idx >= first) & (idx < last)]) - first
            gaps = np.diff(np.append(own, own[:1] + last - first))
            assert (gaps != 1).sum() <= 1  # around the end


def test_batches_go_by_the_directory_whatever_the_engine(tmp_path):
    build(tmp_path)
    runs = [
        ex.iterate(ex.LinearModel(ex.Logistic(), data), ex.L1Ball(3.0), ex.SarahFW(batch=20), seed=5) for data in both(tmp_path)
    ]
    for a, b in itertools.islice(zip(*runs, strict=False), 30):
        assert np.asarray(a.x).tobytes() == np.asarray(b.x).tobytes()


def test_means_over_batches(tmp_path):
    """Gradients of batches, many of them, have the full gradient as their mean."""
    data = ex.ShardDir(build(tmp_path), engine="disk")
    f, x = ex.LinearModel(ex.Logistic(), data), np.linspace(-1, 1, D)
    sampler, total = Sampler(N, 0, bounds=data.bounds), np.zeros(D)
    many = 400
    for k in range(many):
        idx = sampler.rows(k, 40)
        total += f.combine(f.derivs(x, idx), idx)
    full = f.grad(x)
    assert np.linalg.norm(total / many - full) < 0.03 * np.linalg.norm(full) + 0.01


# ---- what goes wrong


def test_a_damaged_shard_is_named(tmp_path):
    build(tmp_path)
    path = tmp_path / "00001.values.npy"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(ex.InputError, match=r"00001.values.npy: the file is truncated or damaged \(it has"):
        ex.ShardDir(tmp_path)
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ex.InputError, match=r"00001.values.npy: the file is truncated or damaged .its checksum"):
        ex.ShardDir(tmp_path).verify()


def test_a_shard_that_is_gone_is_named(tmp_path):
    """One that is mapped stays readable after its file is gone; the next to open the directory is told."""
    build(tmp_path)
    data = ex.ShardDir(tmp_path, engine="disk")
    f = ex.LinearModel(ex.Logistic(), data)
    before = f.grad(np.ones(D))
    for path in tmp_path.glob("00001.*"):
        path.unlink()
    assert np.array_equal(f.grad(np.ones(D)), before)
    with pytest.raises(ex.InputError, match=r"00001\..*cannot be read"):
        ex.ShardDir(tmp_path)


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_shard_that_is_cut_between_two_passes_is_named(tmp_path, engine):
    """By a byte, so that a pass would find all its pages: without the look at its size nothing would be said."""
    data = ex.ShardDir(build(tmp_path), engine=engine)
    f, path = ex.LinearModel(ex.Logistic(), data), tmp_path / "00001.values.npy"
    before = f.grad(np.ones(D))
    os.truncate(path, path.stat().st_size - 1)
    if engine == "memory":
        assert np.array_equal(f.grad(np.ones(D)), before)
        return
    words = r"00001.values.npy: the file is truncated or damaged \(it has \d+ bytes, and the manifest says \d+\)"
    with pytest.raises(ex.InputError, match=words):
        f.grad(np.ones(D))
    with pytest.raises(ex.InputError, match=words):
        f.combine(f.derivs(np.ones(D), np.arange(N)), np.arange(N))


def test_a_shard_that_is_cut_while_it_is_read_to_memory_is_named(tmp_path, monkeypatch):
    found = mapped._start

    def cut(path, file, dtype, shape):
        start = found(path, file, dtype, shape)
        if path.name == "00001.values.npy":
            os.truncate(path, start + 8)
        return start

    data = ex.ShardDir(build(tmp_path), engine="memory")
    monkeypatch.setattr(mapped, "_start", cut)
    with pytest.raises(ex.InputError, match=r"00001.values.npy: the file is truncated or damaged \(it was cut while it was read"):
        data.dot(np.ones(D))


def test_scratch_files_are_not_on_a_disk_in_memory(tmp_path, monkeypatch):
    disk, ram = tmp_path / "disk", tmp_path / "ram"
    for folder in (disk, ram / "tmp"):
        folder.mkdir(parents=True)
    mounts = [("/", "ext4"), (tmp_path, "ext4"), (ram, "ext4"), (ram, "tmpfs")]  # the last mount of a place hides the others
    (tmp_path / "mounts").write_text("".join(f"device {place} {kind} rw 0 0\n" for place, kind in mounts))
    monkeypatch.setattr(memory, "MOUNTS", tmp_path / "mounts")
    monkeypatch.setattr(memory, "OTHER_FOLDER", str(disk))
    for own, used in ((tmp_path, tmp_path), (ram / "tmp", disk), (ram, disk)):
        monkeypatch.setattr(memory.tempfile, "tempdir", str(own))
        assert memory.scratch_folder() == str(used)
    monkeypatch.setattr(memory, "OTHER_FOLDER", str(ram))  # no better, so the user's choice stands
    assert memory.scratch_folder() == str(ram)
    monkeypatch.setattr(memory, "MOUNTS", tmp_path / "nowhere")
    monkeypatch.setattr(memory, "OTHER_FOLDER", str(disk))
    assert memory.scratch_folder() == str(ram)


def test_more_shards_than_files_that_may_be_open(tmp_path, monkeypatch):
    """The answer is that of all shards, of which few are mapped at a time."""
    data = ex.ShardDir(build(tmp_path), engine="disk")
    grad = ex.LinearModel(ex.Logistic(), data).grad(np.ones(D))
    monkeypatch.setattr(engine_module, "most_mapped", lambda: 9)
    few = ex.ShardDir(tmp_path, engine="disk")
    assert np.array_equal(ex.LinearModel(ex.Logistic(), few).grad(np.ones(D)), grad)
    assert len(few.parts._arrays) <= 3 < len(data.parts._arrays) == len(data.manifest.shards)


@pytest.mark.skipif(sys.platform != "linux", reason="room is taken at once where the system can")
def test_no_space_for_numbers_of_rows(tmp_path, monkeypatch):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(memory, "SCRATCH", 1)
    monkeypatch.setattr(memory, "free_memory", lambda: 0)
    data, limits = ex.ShardDir(build(tmp_path), engine="disk"), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, limits[1]))
    try:
        with pytest.raises(MemoryError, match=r"no room for .* GiB of numbers.*File too large.*TMPDIR"):
            data.parts.room(2**20)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert len(data.parts.room(2**20)) == 2**20


def test_a_shard_of_another_directory_is_named(tmp_path):
    build(tmp_path / "a")
    build(tmp_path / "b", (A[:37], Y[:37]), shuffle=False)
    (tmp_path / "a" / "00000.targets.npy").write_bytes((tmp_path / "b" / "00000.targets.npy").read_bytes())
    with pytest.raises(ex.InputError, match=r"a/00000.targets.npy"):
        ex.LinearModel(ex.Logistic(), ex.ShardDir(tmp_path / "a"))


@pytest.mark.parametrize("where", ["", "nothing"])
def test_no_directory(where, tmp_path):
    with pytest.raises(ex.InputError, match="not a directory of shards"):
        ex.ShardDir(tmp_path / where)


def test_it_says_what_it_is(tmp_path):
    data = ex.ShardDir(build(tmp_path), engine="disk")
    assert repr(data) == f"ShardDir({str(tmp_path)!r}, engine='disk')"
    assert data.where == f"in {len(data.manifest.shards)} shards on disk"
    assert data.bytes == sum(path.stat().st_size for path in tmp_path.glob("*.npy"))
    data.verify()
    data.close()


def test_shards_that_differ_more_than_random_rows_are_warned_of(tmp_path, caplog):
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((4000, 5)), np.sort(rng.standard_normal(4000))
    for shuffle, warned in ((True, False), (False, True)):
        caplog.clear()
        data = ex.ShardDir.build((A, y), tmp_path / str(shuffle), shuffle=shuffle, shard_bytes=2**14)
        caplog.clear()  # a directory that was not shuffled says so when it is opened
        assert len(data.manifest.shards) > 4
        ex.LinearModel(ex.Squared(), data)
        assert any("as those of random rows" in record.message for record in caplog.records) == warned
