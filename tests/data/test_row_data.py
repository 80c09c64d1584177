"""The contract of rows: every kind of data answers as plain numpy does, one that is made block by block among them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import extremal as ex
from extremal.data import CSR, Dense, Part, Parts, RowData, block_of
from extremal.data import parts as parts_module
from extremal.data.dense import LastPoint
from extremal.sklearn import ConstrainedLinearRegression, ConstrainedLogisticRegression, SimplexRegression

N, D = 600, 9
W = np.array([0, 3, 4, 8])


class InTurn(Parts):
    def __init__(self, data):
        self.data, self.n = data, data.shape[0]

    def answers(self, work):
        cuts = self.data.cuts
        parts = (Part(block_of(self.data.make(a, b)), slice(a, b)) for a, b in pairwise(cuts))
        return len(cuts) - 1, (work(part) for part in parts)


class Made(RowData):
    """Rows that are known by a function from here to there, in parts of unequal lengths."""

    shape, dtype = (N, D), np.dtype(np.float64)  # type: ignore[assignment]
    cuts = (0, 100, 101, 350, N)

    def __init__(self, make):
        self.make = make

    @property
    def parts(self):
        return InTurn(self)


def matrix(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((N, D))
    A[rng.random((N, D)) < 0.5] = 0.0
    A[17] = 0.0
    return A


A = matrix()
Y = np.where(A @ np.linspace(-1, 1, D) + 0.3 * np.random.default_rng(1).standard_normal(N) > 0, 1.0, -1.0)
KINDS = {
    "dense": lambda: Dense(A),
    "dense32": lambda: Dense(A.astype(np.float32)),
    "csr": lambda: CSR(sp.csr_array(A)),
    "csr32": lambda: CSR(sp.csr_array(A.astype(np.float32))),
    "made": lambda: Made(lambda a, b: A[a:b]),
    "made sparse": lambda: Made(lambda a, b: sp.csr_array(A[a:b])),
}


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def data(request):
    return request.param()


def stored(data) -> np.ndarray:
    return A.astype(data.dtype).astype(np.float64)


def near(data) -> dict[str, float]:
    return {"rtol": 1e-12, "atol": 1e-11} if data.dtype == np.float64 else {"rtol": 1e-5, "atol": 1e-4}


def test_sums_over_rows(data):
    B, h = stored(data), np.random.default_rng(2).random(N)
    np.testing.assert_allclose(data.tdot(h), B.T @ h, **near(data))
    np.testing.assert_allclose(data.gram(None, h), (B * h[:, None]).T @ B, **near(data))
    np.testing.assert_allclose(data.gram(W, h), ((B * h[:, None]).T @ B)[np.ix_(W, W)], **near(data))
    mean = B.T @ h / h.sum()
    np.testing.assert_allclose(data.gram(None, h, mean), ((B - mean) * h[:, None]).T @ (B - mean), **near(data))
    root = data.root(h)
    np.testing.assert_allclose(root.T @ root, (B * h[:, None]).T @ B, **near(data))
    sums, squares = data.moments(h)
    np.testing.assert_allclose(sums, h @ B, **near(data))
    np.testing.assert_allclose(squares, h @ B**2, **near(data))
    np.testing.assert_allclose(data.lambda_max(h), np.linalg.eigvalsh((B * h[:, None]).T @ B)[-1], rtol=1e-4)


def test_largest_entries_and_powers_of_columns(data):
    """Step rules bound |<a_i, d>| by sum_j |d_j| max_i |a_ij|, so the maxima are exact for every kind of rows."""
    B, h = stored(data), np.random.default_rng(2).random(N)
    np.testing.assert_array_equal(data.peaks(), np.abs(B).max(axis=0))
    np.testing.assert_array_equal(data.columns(W).peaks(), np.abs(B[:, W]).max(axis=0))
    np.testing.assert_array_equal(data.rows(np.array([17, 599])).peaks(), np.abs(B[[17, 599]]).max(axis=0))
    np.testing.assert_array_equal(data.rows(np.array([17])).peaks(), np.zeros(D))  # a row without entries
    for p in (2, 4):
        np.testing.assert_allclose(data.powers(h, p), h @ B**p, **near(data))
    d = np.random.default_rng(5).standard_normal(D)
    assert (np.abs(data.dot(d)) <= data.peaks() @ np.abs(d) * (1 + 1e-6)).all()


def test_largest_entries_of_rows_on_disk(tmp_path):
    shards = ex.ShardDir.build((A, Y), tmp_path / "shards", shard_bytes=2**14)
    np.testing.assert_array_equal(shards.peaks(), np.abs(A).max(axis=0))
    np.testing.assert_allclose(shards.powers(np.ones(N), 2), np.square(A).sum(axis=0), rtol=1e-12)


@pytest.mark.parametrize("kind", ["dense", "csr", "made"])
def test_largest_entries_take_one_read(kind):
    f = ex.LinearModel(ex.Logistic(), KINDS[kind](), Y)
    state = next(ex.iterate(f, ex.L1Ball(1.0), ex.FrankWolfe()))
    before = state.calls.rows
    assert state.f.bends.reach(np.eye(D)[0]) == np.abs(A[:, 0]).max()
    assert state.calls.rows == before + N
    assert state.f.bends.reach(np.eye(D)[1]) == np.abs(A[:, 1]).max()
    assert state.calls.rows == before + N  # it keeps them


def test_other_columns_and_rows(data):
    B, x = stored(data), np.linspace(-1, 2, D)
    np.testing.assert_allclose(data.columns(W).dot(x[W]), B[:, W] @ x[W], **near(data))
    np.testing.assert_allclose(data.columns(W).columns(np.array([1, 2])).dot(x[:2]), B[:, W[1:3]] @ x[:2], **near(data))
    np.testing.assert_allclose(data.with_column(2.5).dot(np.append(x, 2.0)), B @ x + 5.0, **near(data))
    order = np.array([5, 599, 100, 100, 0, 349, 350])
    np.testing.assert_allclose(data.rows(order).dot(x), B[order] @ x, **near(data))
    np.testing.assert_allclose(data.dot(x, order), B[order] @ x, **near(data))
    np.testing.assert_allclose(data.tdot(np.arange(7.0), order), B[order].T @ np.arange(7.0), **near(data))
    np.testing.assert_allclose(data.column(3), B[:, 3], **near(data))
    np.testing.assert_allclose(data.column(3, order), B[order, 3], **near(data))
    for at, block in data.arrays(70):
        np.testing.assert_allclose(block, B[at], **near(data))


def test_matrices_of_outputs(data):
    B, X, c = stored(data), np.random.default_rng(3).standard_normal((3, D)).T, np.random.default_rng(4).standard_normal((N, 3))
    np.testing.assert_allclose(data.dot(X), B @ X, **near(data))
    np.testing.assert_allclose(data.tdot(c), B.T @ c, **near(data))
    np.testing.assert_allclose(
        data.dot_vertex(ex.points.Coordinate(7, 2.0, (D, 3))), B @ np.eye(D * 3)[7].reshape(D, 3) * 2, **near(data)
    )


@pytest.mark.parametrize("model", [ex.LinearModel, ex.InterceptModel])
@pytest.mark.parametrize(
    "C", [ex.L1Ball(2.0), ex.Simplex(), ex.Box(-0.5, 0.5), ex.L2Ball(1.0), ex.GroupBall(2.0, [range(4), range(4, 9)])], ids=repr
)
def test_a_run_on_rows_that_are_made(model, C):
    made, array = (model(ex.Logistic(), rows, Y) for rows in (Made(lambda a, b: A[a:b]), A))
    r, wanted = (ex.minimize(f, C, tol=1e-8) for f in (made, array))
    assert r.converged
    assert r.value == pytest.approx(wanted.value, rel=1e-8)
    assert C.on((D,)).contains(r.x)
    assert r.calls.rows >= r.calls.grads > 0


@pytest.mark.parametrize("method", ["sarah-fw", "saga-sarah-fw", "svrf", "pairwise-fw", "cgs"])
def test_batches_of_rows_that_are_made(method):
    made, array = (ex.LinearModel(ex.Logistic(), rows, Y) for rows in (Made(lambda a, b: A[a:b]), A))
    r, wanted = (ex.minimize(f, ex.L1Ball(2.0), method, max_iter=8, seed=3) for f in (made, array))
    np.testing.assert_allclose(r.x, wanted.x, atol=1e-9)
    assert (r.calls.grads, r.calls.lmos) == (wanted.calls.grads, wanted.calls.lmos)


def test_a_path_over_rows_that_are_made():
    made, array = (ex.LinearModel(ex.Logistic(), rows, Y) for rows in (Made(lambda a, b: A[a:b]), A))
    sets = [ex.L1Ball(r) for r in (0.5, 1.0, 2.0)]
    for r, wanted in zip(ex.path(made, sets, tol=1e-7), ex.path(array, sets, tol=1e-7), strict=True):
        assert r.value == pytest.approx(wanted.value, rel=1e-6)


@pytest.mark.parametrize("weights", [None, np.r_[np.zeros(200), np.linspace(0.1, 1, N - 200)]], ids=["equal", "weighted"])
@pytest.mark.parametrize("kind", ["made", "made sparse"])
def test_estimators_of_rows_that_are_made(kind, weights):
    rows, t = KINDS[kind](), A @ np.linspace(0, 1, D)
    for estimator, y in (
        (ConstrainedLogisticRegression("l1:2"), Y),
        (ConstrainedLinearRegression("nonneg"), t),
        (SimplexRegression(), t),
        (SimplexRegression(fit_intercept=True, solver="newton"), t),
    ):
        model = estimator.fit(rows, y, sample_weight=weights)
        coef, predicted = model.coef_, model.predict(rows)
        estimator.fit(A, y, sample_weight=weights)
        np.testing.assert_allclose(coef, estimator.coef_, atol=1e-6)
        np.testing.assert_allclose(predicted, estimator.predict(A), atol=1e-5)


def test_estimators_refuse_rows_of_another_width():
    model = ConstrainedLogisticRegression("l1:2").fit(A, Y)
    with pytest.raises(ValueError, match="9 features"):
        model.predict(Made(lambda a, b: A[a:b]).columns(W))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        ConstrainedLogisticRegression("l1:2").fit(Made(lambda a, b: A[a:b]), Y[:-1])


@dataclass(frozen=True)
class Ones:
    """How often rows are looked at: a work that answers with the bounds of its part."""

    reads: bool = True
    alone: bool = False
    sums: int = 0

    def __call__(self, part):
        return part.at.stop - part.at.start, np.array([float(part.at.start)]), None


def test_answers_are_summed_over_a_tree_of_the_parts():
    seen = []

    class Noted(float):
        def __add__(self, other):
            seen.append((str(self), str(other)))
            return Noted(float(self) + float(other))

    total = parts_module.tree_sum(iter([(Noted(k),) for k in (1, 2, 4, 8, 16)]), 0, 5)
    assert total == (31.0,)
    assert seen == [("1.0", "2.0"), ("8.0", "16.0"), ("4.0", "24.0"), ("3.0", "28.0")]
    assert Made(lambda a, b: A[a:b]).parts.total(Ones()) == (N, np.array([0.0 + 100 + 101 + 350]), None)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_threads_change_no_bit(kind, monkeypatch):
    """Parts are cut by size alone: one, two and four threads, and rows that come part by part."""
    monkeypatch.setattr(parts_module, "PART", 64)
    monkeypatch.setattr(parts_module, "parts_count", lambda entries, sums: max(1, min(64, entries // 64)))
    answers = []
    for threads in (1, 2, 4):
        monkeypatch.setattr(parts_module, "_threads", lambda threads=threads: threads)
        f = ex.InterceptModel(ex.Logistic(), kind(A), Y)
        r = ex.minimize(f, ex.L1Ball(2.0), tol=1e-8)
        answers.append((r.value, r.gap, r.x.tobytes(), f.data.gram(None, np.ones(N)).tobytes(), r.calls))
    assert answers[0] == answers[1] == answers[2]


class Witness(Made):
    """Rows that count for themselves how often they are read."""

    def __init__(self, make):
        super().__init__(make)
        self.read = 0

    @property
    def parts(self):
        engine = InTurn(self)
        answers = engine.answers

        def noted(work):
            self.read += N if work.reads else 0
            return answers(work)

        engine.answers = noted
        return engine


@pytest.mark.parametrize(
    "method", [None, "frank-wolfe", "newton-fw", "pairwise-fw", "fully-corrective-fw", "sarah-fw", "saga-fw"]
)
@pytest.mark.parametrize("model", [ex.LinearModel, ex.InterceptModel])
def test_rows_are_counted_as_a_witness_counts_them(model, method):
    if model is ex.InterceptModel and method in ("sarah-fw", "saga-fw"):
        pytest.skip("an intercept has no batches")
    f = model(ex.Logistic(), witness := Witness(lambda a, b: A[a:b]), Y)
    f.ready()
    witness.read = 0
    r = ex.minimize(f, ex.L1Ball(2.0), method, max_iter=15)
    assert r.calls.rows == witness.read > 0


def test_a_default_run_reads_rows_for_its_gradients_only():
    """A Newton step looks where it ends: no product is read that the next step's look does not give."""
    rng = np.random.default_rng(5)
    B = rng.standard_normal((20_000, 80))
    y = np.where(B[:, :5].sum(axis=1) + rng.logistic(size=len(B)) > 0, 1.0, -1.0)
    r = ex.minimize(ex.LinearModel(ex.Logistic(), B, y), ex.L1Ball(3.0))
    assert r.converged
    assert r.calls.rows <= r.calls.grads + 2 * len(B)  # samples are copied, which reads their rows once


def test_products_of_columns_of_dense_rows_take_longer_pieces():
    A = np.random.default_rng(0).standard_normal((1100, 300))
    data = Dense(A)
    places = [at for at, _ in data.block._long_arrays()]
    assert len(data.block.cuts) > len(places) > 1
    assert places[0].start == 0
    assert places[-1].stop == len(A)
    assert all(a.stop == b.start for a, b in pairwise(places))
    assert max(at.stop - at.start for at in places) <= data.longest_sum < len(A)
    assert np.allclose(data.gram(np.arange(300), np.ones(len(A))), A.T @ A, rtol=1e-12, atol=1e-10)


def test_all_parts_share_the_non_zeros_of_a_point():
    x = np.zeros(9)
    x[4] = 1.0
    assert LastPoint.used(x) is not LastPoint.used(x)  # x may change
    x.flags.writeable = False
    used = LastPoint.used(x)
    assert LastPoint.used(x) is used
    other = np.arange(9.0)
    other.flags.writeable = False
    assert LastPoint.used(other).tolist() == list(range(1, 9))
    assert LastPoint.used(x).tolist() == [4]
