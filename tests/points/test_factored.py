"""Matrices in factors: the same as dense arrays at every step, values that nobody changes, as few columns as the rank."""

from __future__ import annotations

import gc
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import extremal as ex
from extremal.points import FactoredMatrix, iterates
from extremal.points.composed import Chord, Combination
from extremal.points.factored import factors
from extremal.points.low_rank import LowRank, RankOne
from extremal.points.matrix import wide
from extremal.points.vertex import Coordinate, DenseVertex, SparseVertex, dot64

M, N = 7, 5
RNG = np.random.default_rng(0)


def unit(size: int, rng=RNG) -> np.ndarray:
    v = rng.standard_normal(size)
    return v / np.linalg.norm(v)


VERTICES = (
    RankOne(2.0 * unit(M), unit(N)),
    RankOne(-2.0 * unit(M), unit(N)),
    LowRank(RNG.standard_normal((M, 2)), RNG.standard_normal((N, 2))),
    Coordinate(11, -1.5, (M, N)),
    SparseVertex(np.array([0, 9, 34]), np.array([1.0, -1.0, 2.0]), (M, N)),
    DenseVertex(RNG.standard_normal((M, N))),
    DenseVertex(FactoredMatrix(RNG.standard_normal((M, 2)), RNG.standard_normal((N, 2)))),
    Combination(((0.5, RankOne(unit(M), unit(N))), (-2.0, Coordinate(3, 1.0, (M, N))))),
)


def dense(v) -> np.ndarray:
    return np.asarray(v.to_array())


def close(x, a, atol=1e-12) -> None:
    np.testing.assert_allclose(np.asarray(x), a, atol=atol, rtol=0)


@pytest.fixture
def X() -> FactoredMatrix:
    return FactoredMatrix(RNG.standard_normal((M, 3)), RNG.standard_normal((N, 3)))


# steps


@pytest.mark.parametrize("v", VERTICES, ids=lambda v: type(v).__name__)
def test_every_kind_of_vertex_has_factors(v):
    left, right = factors(v)
    close(left @ right.T, dense(v))


steps = st.lists(
    st.tuples(st.integers(0, len(VERTICES) - 1), st.floats(0, 1), st.sampled_from(["toward", "away", "pairwise", "blend"])),
    max_size=40,
)


@given(steps)
def test_any_steps_are_those_of_a_dense_matrix(path):
    x, a = FactoredMatrix.zeros((M, N)), np.zeros((M, N))
    for i, t, kind in path:
        v, w = VERTICES[i], VERTICES[(i + 1) % len(VERTICES)]
        if kind == "toward":
            x, a = iterates.toward(x, v, t), (1 - t) * a + t * dense(v)
        elif kind == "away":
            t = t / 10
            x, a = iterates.along(x, Chord(0.5, ((-0.5, v),)), t), a + t * 0.5 * (a - dense(v))
        elif kind == "pairwise":
            x, a = iterates.along(x, Chord(0.0, ((1.0, v), (-1.0, w))), t), a + t * (dense(v) - dense(w))
        else:
            u = FactoredMatrix(*factors(v))
            x, a = iterates.blend(x, u, t), (1 - t) * a + t * dense(v)
        close(x, a, atol=1e-11 * max(1.0, np.abs(a).max()))
    assert x.inner(x) == pytest.approx(np.vdot(a, a), rel=1e-10, abs=1e-12)
    assert x.norm_nuclear() == pytest.approx(np.linalg.svd(a, compute_uv=False).sum(), rel=1e-10, abs=1e-12)


def test_a_step_leaves_earlier_versions_alone(X):
    versions, truth = [X], [np.asarray(X)]
    for k in range(300):
        v = RankOne(unit(M), unit(N))
        versions.append(iterates.toward(versions[-1], v, 0.1 + 0.8 * (k % 7 == 0)))
        truth.append(np.asarray(versions[-1]))
    for x, a in zip(versions, truth, strict=True):
        np.testing.assert_array_equal(np.asarray(x), a)


def test_two_steps_from_one_point_do_not_meet(X):
    v, w = VERTICES[:2]
    a = np.asarray(X)
    y, z = iterates.toward(X, v, 0.25), iterates.toward(X, w, 0.5)
    y2, z2 = iterates.toward(y, w, 0.25), iterates.toward(z, v, 0.5)
    close(X, a)
    close(y, 0.75 * a + 0.25 * dense(v))
    close(z, 0.5 * a + 0.5 * dense(w))
    close(y2, 0.75 * np.asarray(y) + 0.25 * dense(w))
    close(z2, 0.5 * np.asarray(z) + 0.5 * dense(v))


def test_versions_share_their_columns():
    x = FactoredMatrix.zeros((4000, 3000))
    for _ in range(9):  # room for 16
        x = iterates.toward(x, RankOne(unit(4000), unit(3000)), 0.3)
    y = iterates.toward(x, RankOne(unit(4000), unit(3000)), 0.3)
    assert np.shares_memory(x.right, y.right)
    assert y.rank == x.rank + 1
    np.testing.assert_array_equal(x.right, y.right[:, : x.rank])
    with pytest.raises(ValueError, match="read-only"):
        x.right[0, 0] = 1.0


def test_a_full_step_forgets_what_was(X):
    x = iterates.toward(X, VERTICES[0], 1.0)
    assert x.rank == 1
    close(x, dense(VERTICES[0]))
    assert iterates.toward(X, VERTICES[0], 0.0).rank == X.rank


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_steps_of_one_half_for_ever_keep_their_accuracy(dtype):
    """The weight of the first columns falls below any number that could scale the others."""
    rng, x, a = np.random.default_rng(1), FactoredMatrix.zeros((30, 20), dtype), np.zeros((30, 20))
    for _ in range(700):
        v = RankOne(unit(30, rng), unit(20, rng))
        x, a = iterates.toward(x, v, 0.5), 0.5 * a + 0.5 * v.to_array()
    close(x, a, atol=1e-13 if dtype == np.float64 else 1e-5)
    assert x.dtype == dtype


# the rank


def test_columns_are_brought_down_to_the_rank():
    """A thousand steps between vertices that span a space of dimension 3."""
    rng = np.random.default_rng(2)
    left, right = np.linalg.qr(rng.standard_normal((300, 3)))[0], np.linalg.qr(rng.standard_normal((200, 3)))[0]
    x, a, widest = FactoredMatrix.zeros((300, 200)), np.zeros((300, 200)), 0
    for _ in range(1000):
        v = RankOne(5.0 * left @ unit(3, rng), right @ unit(3, rng))
        x, a = iterates.toward(x, v, 0.1), 0.9 * a + 0.1 * v.to_array()
        widest = max(widest, x.rank)
        assert x.norm_nuclear() <= 5.0 * (1 + 1e-12)
    assert widest <= 2 * 3 + 64
    close(x, a, atol=1e-10)
    assert x.compressed().rank == 3


def test_what_cannot_be_compressed_grows():
    rng, x = np.random.default_rng(3), FactoredMatrix.zeros((200, 150))
    for k in range(140):
        e, f = np.eye(200)[k], np.eye(150)[k]
        x = iterates.toward(x, RankOne(e, f), 1 / (k + 1))
    assert x.rank == 140
    close(x, np.eye(200, 150) * (np.arange(150) < 140) / 140)
    for _ in range(600):
        x = iterates.toward(x, RankOne(unit(200, rng), unit(150, rng)), 0.01)
        assert x.rank <= 3 * 150
    assert x.compressed().rank == 150


def test_compression_keeps_the_nuclear_norm_and_the_trace():
    rng = np.random.default_rng(4)
    q = np.linalg.qr(rng.standard_normal((40, 40)))[0]
    s = 0.5 ** np.arange(40.0)
    s /= s.sum()
    x = FactoredMatrix(q * s, q)  # symmetric, trace 1
    for tol in (0.0, 1e-12, 1e-3, 0.3):
        y = x.compressed(tol)
        a = np.asarray(y)
        assert y.norm_nuclear() == pytest.approx(1.0, abs=1e-13)
        assert np.trace(a) == pytest.approx(1.0, abs=1e-13)
        assert np.linalg.norm(a - np.asarray(x)) <= 2 * tol + 1e-13
        assert np.abs(a - a.T).max() < 1e-14
        assert np.linalg.eigvalsh(a)[0] > -1e-14
        assert y.rank == 40 - np.sum(np.cumsum(s[::-1]) <= tol)
    assert FactoredMatrix(0 * q, q).compressed().rank == 0


# what is asked of a matrix


@pytest.mark.parametrize("kind", ["factors", "steps", "zero"])
def test_products_and_entries_are_those_of_the_dense_matrix(kind, X):
    x = {"factors": X, "steps": iterates.toward(X, VERTICES[0], 0.3), "zero": FactoredMatrix.zeros((M, N))}[kind]
    a, v, u, many = np.asarray(x), RNG.standard_normal(N), RNG.standard_normal(M), RNG.standard_normal((N, 4))
    close(x.left @ x.right.T, a)
    for found, truth in ((x @ v, a @ v), (x.T @ u, a.T @ u), (u @ x, u @ a), (x @ many, a @ many), (x.T.T @ v, a @ v)):
        close(found, truth)
    rows, cols = RNG.integers(0, M, (3, 20)), RNG.integers(0, N, (3, 20))
    close(x.entries(rows, cols), a[rows, cols])
    close(x.flat[np.arange(35)], a.reshape(-1))
    assert x.flat[8] == pytest.approx(a.flat[8])
    assert x.sum() == pytest.approx(a.sum())
    assert (x.shape, x.ndim, x.size, x.dtype) == (a.shape, 2, a.size, a.dtype)
    assert x.copy() is x


def test_sums_and_multiples(X):
    y = iterates.toward(X, VERTICES[0], 0.3)  # shares columns with X
    z = FactoredMatrix(RNG.standard_normal((M, 2)), RNG.standard_normal((N, 2)))
    a, b, c = map(np.asarray, (X, y, z))
    for found, truth in (
        (X + y, a + b), (y - X, b - a), (X - z, a - c), (2 * X, 2 * a), (np.float64(2) * X, 2 * a), (X * np.float32(0.5), a / 2),
        (-X, -a), (X / 4, a / 4), (np.ones((M, N)) - X, 1 - a), (X + np.ones((M, N)), 1 + a),
    ):  # fmt: skip
        close(found, truth)
    assert (y - X).rank == y.rank
    with pytest.raises(TypeError):
        X * np.ones(3)


def test_inner_products_are_those_of_the_dense_matrices(X):
    y, z = iterates.toward(X, VERTICES[0], 0.3), FactoredMatrix(RNG.standard_normal((M, 2)), RNG.standard_normal((N, 2)))
    g = RNG.standard_normal((M, N))
    for p in (X, y, z):
        for q in (X, y, z, g):
            assert dot64(p, q) == pytest.approx(np.vdot(np.asarray(p), np.asarray(q)), rel=1e-12)
            assert dot64(q, p) == pytest.approx(dot64(p, q), rel=1e-12)
    for v in VERTICES:
        assert v.dot(X) == pytest.approx(np.vdot(dense(v), np.asarray(X)), rel=1e-12)
        assert iterates.distance2(X, v) == pytest.approx(np.linalg.norm(dense(v) - np.asarray(X)) ** 2, rel=1e-10)
    assert X.inner(X) == pytest.approx(np.linalg.norm(np.asarray(X)) ** 2)  # again, at an earlier version


def test_entries_that_are_remembered_follow_the_steps(X):
    class Key:
        pass

    rows, cols = RNG.integers(0, M, 50), RNG.integers(0, N, 50)
    key, other = Key(), Key()
    versions = [X]
    for k in range(100):
        versions.append(iterates.toward(versions[-1], VERTICES[k % 3], 0.2))
        for x in (versions[-1], *versions[-1:-4:-2]):  # also at earlier versions
            close(x.image(key, rows, cols), np.asarray(x)[rows, cols])
        found = versions[-1].image(key, rows, cols)
        found[:] = 0.0  # nobody else's
        close(versions[-1].image(key, rows, cols), versions[-1].gather(rows, cols))
        close(versions[-1].image(other, cols % M, rows % N), np.asarray(versions[-1])[cols % M, rows % N])
    kept = versions[-1]._columns.images
    assert len(kept) == 2
    del key
    gc.collect()
    assert len(kept) == 1


def test_float_types_and_pickles(X):
    x = X.astype(np.float32)
    assert (x.dtype, wide(x).dtype, x.left.dtype) == (np.float32, np.float64, np.float32)
    assert wide(X) is X
    assert iterates.answer(X) is X
    assert iterates.freeze(X) is X
    assert iterates.toward(x, VERTICES[0], 0.5).dtype == np.float32
    close(x, np.asarray(X), atol=1e-5)
    assert np.asarray(X, dtype=np.float32).dtype == np.float32
    y = pickle.loads(pickle.dumps(iterates.toward(X, VERTICES[0], 0.5)))
    close(y, 0.5 * np.asarray(X) + 0.5 * dense(VERTICES[0]))
    assert FactoredMatrix(np.ones((2, 1), int), np.ones((3, 1), bool)).dtype == np.float64


def test_the_caller_s_arrays_are_copied():
    left, right = np.ones((3, 1)), np.ones((2, 1))
    x = FactoredMatrix(left, right)
    left[:], right[:] = 7.0, 7.0
    close(x, np.ones((3, 2)))


def test_a_start_is_kept_in_factors_only_where_that_is_wanted(X):
    assert iterates.start("minimize", X, np.dtype(np.float64), factored=True) is X
    a = iterates.start("minimize", X, np.dtype(np.float64))
    assert isinstance(a, np.ndarray)
    assert not a.flags.writeable
    close(a, np.asarray(X))
    assert iterates.start("minimize", X, np.dtype(np.float32), factored=True).dtype == np.float32


# what is refused


def test_dense_copies_that_are_too_large_are_refused():
    x = FactoredMatrix.zeros((100_000, 50_000))
    with pytest.raises(MemoryError, match=r"100000 x 50000 FactoredMatrix would take 37\.3 GiB"):
        np.asarray(x)
    with pytest.raises(ValueError, match="no array to share"):
        FactoredMatrix.zeros((2, 2)).__array__(copy=False)


def test_a_nan_is_found_when_the_rank_is():
    x = FactoredMatrix(np.array([[np.nan], [1.0]]), np.ones((2, 1)))
    assert not x.all_finite()
    assert FactoredMatrix.zeros((2, 2)).all_finite()
    with pytest.raises(ex.NonFiniteError, match="NaN"):
        x.compressed()


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: FactoredMatrix(np.ones((2, 1)), np.ones((2, 2))), "same number of columns, got 1 and 2"),
        (lambda: FactoredMatrix(np.ones(2), np.ones((2, 1))), r"`FactoredMatrix\(left=...\)` must have two dimensions"),
        (lambda: FactoredMatrix(np.ones((2, 1)), np.ones((0, 1))), r"`FactoredMatrix\(right=...\)` must have two"),
        (lambda: FactoredMatrix(np.ones((2, 1), complex), np.ones((2, 1))), "float64, float32"),
        (
            lambda: FactoredMatrix.zeros((2, 0)),
            r"`FactoredMatrix.zeros\(shape=...\)` must be a whole number of at least 1, got 0",
        ),
        (
            lambda: FactoredMatrix.zeros((2, 3)).entries([0, 1, 2], [0, 0, 0]),
            r"`entries\(rows=...\)` .* 0 to 1, got 2 at index 2",
        ),
        (lambda: FactoredMatrix.zeros((2, 3)).entries([0, 1], [0, -1]), r"`entries\(cols=...\)` .* 0 to 2, got -1 at index 1"),
        (lambda: FactoredMatrix.zeros((2, 3)).entries([0.0], [0]), r"`entries\(rows=...\)` must hold whole numbers, got dtype"),
        (lambda: FactoredMatrix.zeros((2, 3)).entries([0], [0, 1]), "must be of one shape"),
        (lambda: FactoredMatrix.zeros((2, 3)).compressed(-1.0), r"`compressed\(tol=...\)`"),
    ],
)
def test_mistakes_are_named(call, match):
    with pytest.raises(ex.InputError, match=match):
        call()
