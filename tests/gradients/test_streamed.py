"""Rows read slab by slab: what a slab is, what its model says, and how many rows a certified answer takes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import extremal as ex
from extremal.data import parts as parts_module
from extremal.data.kept import Derived
from extremal.gradients import streamed
from extremal.methods import newton
from extremal.objectives import margins
from extremal.objectives.slabs import Slab, SlabModel

N, D, TOL = 24_000, 240, 1e-4
SETS = {"l1": ex.L1Ball(12.0), "simplex": ex.Simplex(4.0), "both": ex.UnitSimplex(4.0)}


def rows(loss, rng):
    """Sparse rows with targets that suit a loss, and weights."""
    A = sp.random_array((N, D), density=0.04, rng=rng, data_sampler=rng.standard_normal, format="csr")
    z = A @ np.where(np.arange(D) < 20, 1.0, 0.0) - 0.3
    if loss == "poisson":
        return A, rng.poisson(np.exp(0.4 * z)).astype(float)
    return A, np.where(rng.random(N) < 1.0 / (1.0 + np.exp(-z)), 1.0, -1.0) if loss == "labels" else z + rng.standard_normal(N)


LOSSES = {"labels": ex.Logistic(), "poisson": ex.Poisson(), "numbers": ex.Squared()}


@pytest.fixture(scope="module", params=LOSSES)
def folder(request, tmp_path_factory):
    path = tmp_path_factory.mktemp(request.param)
    A, y = rows(request.param, np.random.default_rng(7))
    w = np.random.default_rng(1).random(N)
    source = iter([(A[i : i + 5000], y[i : i + 5000], w[i : i + 5000]) for i in range(0, N, 5000)])
    ex.ShardDir.build(source, path, shard_bytes=2**18, seed=0)
    return path


@pytest.fixture
def slabs(monkeypatch):
    """Slabs for few rows, too."""
    monkeypatch.setattr(newton, "STREAMED", 0)
    monkeypatch.setattr(newton, "worth_expanding", lambda f, sets=1: False)


def model(folder, engine="memory"):
    data = ex.ShardDir(folder, engine=engine)
    return ex.LinearModel(next(loss for name, loss in LOSSES.items() if name in folder.name), data)


def minimised(f, C, method=None):
    r = ex.minimize(f, C, method, tol=TOL)
    assert r.converged
    return r


# slabs


def test_slabs_have_every_row_once_with_its_own_targets(folder):
    f, x, W = model(folder), np.linspace(-0.3, 0.3, D), np.array([0, 3, 8, 100])
    assert len(f.data.bounds) > 4
    ids, first = [], np.array(f.data.bounds[:-1])
    for after, size in ((0, 1000), (1000, 4001), (4001, N)):
        head = f.data.head(size, after)
        idx = np.concatenate([np.arange(a + s, a + s + c) for a, s, c in zip(first, head.skipped, head.counts, strict=True)])
        ids.append(idx)
        near = f._some(f.data.rows(idx), f._targets(idx))
        found = f.slab(size, after, x, W)
        assert found.n == len(idx) == size - after
        assert found.value == pytest.approx(near.value(x), rel=1e-12)
        np.testing.assert_allclose(found.g, near.grad(x), rtol=1e-10, atol=1e-14)
        H = near.on_columns(W).hessian(near.margins(x))
        np.testing.assert_allclose(found.H, H, rtol=1e-10, atol=1e-14)
    np.testing.assert_array_equal(np.sort(np.concatenate(ids)), np.arange(N))


def test_the_model_is_the_mean_of_the_expansions_of_slabs():
    rng = np.random.default_rng(2)
    known, B = np.array([1, 2, 4]), rng.standard_normal((5, 3))
    H = np.zeros((6, 6))
    H[np.ix_(known, known)] = B.T @ B
    points = np.zeros((3, 6))
    points[:, known] = rng.standard_normal((3, 3))
    slabs = [Slab(n, x, rng.random(), rng.standard_normal(6), B.T @ B) for n, x in zip((3, 5, 8), points, strict=True)]
    model, x = SlabModel.of(slabs, known), np.zeros(6)
    x[known] = rng.standard_normal(3)
    expected = sum(s.n / 16 * (s.value + s.g @ (x - s.x) + (x - s.x) @ H @ (x - s.x) / 2) for s in slabs)
    slope = sum(s.n / 16 * (s.g + H @ (x - s.x)) for s in slabs)
    value, g, z = model.value_grad_margins(x)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(g, slope, rtol=1e-12)
    assert z is x
    np.testing.assert_array_equal(model.on_columns(known[1:]).hessian(x), (B.T @ B)[1:, 1:])
    d = points[0] - x
    line, step = model.between(x, d), 0.3
    assert line.value(step) == pytest.approx(model.look(x + step * d)[0], rel=1e-12)
    assert line.slope(step) == pytest.approx(model.look(x + step * d)[1] @ d, rel=1e-12)


def test_targets_that_are_computed_from_others_keep_their_rows(folder):
    data, x, W = ex.ShardDir(folder), np.linspace(-0.3, 0.3, D), np.arange(3)
    plain = ex.LinearModel(ex.Squared(), data, data.targets)
    twice = ex.LinearModel(ex.Squared(), data, Derived(np.add, (data.targets, data.targets), data.targets.shape))
    for a, b in ((0, 1000), (1000, N)):
        one, two = plain.slab(b, a, 0 * x, W), twice.slab(b, a, 0 * x, W)
        assert two.value == pytest.approx(4 * one.value)
        np.testing.assert_allclose(two.g, 2 * one.g, rtol=1e-12, atol=1e-15)


# runs


@pytest.mark.parametrize("C", SETS.values(), ids=SETS)
def test_the_same_bits_in_memory_and_on_disk_for_any_number_of_threads(folder, C, slabs, monkeypatch):
    found = []
    for engine, threads in (("memory", 1), ("disk", 1), ("disk", 2)):
        monkeypatch.setattr(parts_module, "_threads", lambda threads=threads: threads)
        r = minimised(model(folder, engine), C)
        assert type(r.method.gradient) is ex.gradients.Streamed
        found.append((r.x.tobytes(), r.value, r.gap, r.calls))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("C", SETS.values(), ids=SETS)
def test_an_answer_takes_fewer_reads_than_with_samples_that_grow(folder, C, slabs):
    f = model(folder)
    r = minimised(f, C)
    plain = minimised(f, C, ex.Method(ex.gradients.Growing(), ex.steps.FullStep(), ex.moves.SpikeNewton()).chosen("", True))
    assert r.calls.rows < plain.calls.rows
    assert r.value == pytest.approx(plain.value, abs=2 * TOL * abs(plain.value))
    sizes = []
    for state in ex.iterate(f, C):
        if isinstance(state.estimate, streamed.SlabEstimate):
            sizes.append(state.estimate.size)
        if state.exact:
            break
    assert sorted(set(sizes))[-1] == N
    assert state.calls.rows < 3.5 * N  # the sample, the slabs, and the first full gradient
    assert state.gap(state.g) < 0.1 * abs(state.estimate.value)


def test_a_run_survives_slabs_that_know_too_few_columns(folder, slabs, monkeypatch):
    monkeypatch.setattr(streamed, "COMING", (0, 0))
    f = model(folder)
    few = minimised(f, SETS["l1"])
    assert few.value == pytest.approx(minimised(f, SETS["l1"], ex.NewtonFW(parts=1)).value, rel=2e-4)


def test_a_slab_that_is_not_finite_gives_way_to_all_rows(folder, slabs, monkeypatch):
    read = margins.read_slab
    monkeypatch.setattr(margins, "read_slab", lambda *given: read(*given)._replace(H=np.full((1, 1), np.nan)))
    assert minimised(model(folder), SETS["l1"]).value < model(folder).value(np.zeros(D))


# the choice


def test_large_directories_are_read_slab_by_slab(folder, monkeypatch):
    f, C = model(folder), SETS["l1"].on((D,))
    many = f.data.nnz
    monkeypatch.setattr(newton, "worth_expanding", lambda f, sets=1: False)
    for entries, streams in ((many, True), (many + 1, False)):
        monkeypatch.setattr(newton, "STREAMED", entries)
        choice = ex.Auto().choose(f, C)
        assert ("read slab by slab" in choice.why) is streams
        assert (type(choice.made(ex.methods.Budget()).gradient) is ex.gradients.Streamed) is streams
    monkeypatch.setattr(newton, "STREAMED", 0)
    assert type(ex.Auto().choose(f, C).made(ex.methods.Budget(warm=True)).gradient) is ex.gradients.Growing
    others = ex.InterceptModel(f.loss, f.data), ex.LinearModel(f.loss, sp.eye_array(D, format="csr"), np.ones(D))
    for other in others:
        assert "slab" not in ex.Auto().choose(other, C).why
    assert "slab" not in ex.Auto().choose(f, ex.Box(0.0, 1.0, shape=(D,))).why


def test_losses_whose_curvature_jumps_are_not_read_in_slabs(folder):
    data = ex.ShardDir(folder)
    if data.classes is None:
        assert not ex.LinearModel(ex.Huber(1.0), data).in_slabs
    assert model(folder).in_slabs
