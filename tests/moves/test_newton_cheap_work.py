"""Work that Newton steps over coordinates leave out: copies of columns, samples of wide data, steps with old Hessians."""

import numpy as np
import pytest
import scipy.sparse as sp

import extremal as ex
from extremal.data.csr import CsrBlock
from extremal.methods.method import Budget
from extremal.moves.newton.model import LookedLine, NewtonState
from extremal.moves.newton.spikes import NEWCOMERS, among


def sparse_model(n=1500, d=80, seed=0):
    """Binary features of very different frequency, few positives, and a large solution: some steps are shortened."""
    rng = np.random.default_rng(seed)
    A = sp.csr_array((rng.random((n, d)) < (np.arange(d) + 3.0) ** -0.7).astype(float))
    z = A @ (3 * rng.standard_normal(d))
    y = np.where(z + rng.logistic(size=n) > np.quantile(z, 0.9), 1.0, -1.0)
    return ex.LinearModel(ex.Logistic(), A, y)


def test_no_columns_are_copied_while_hessians_are_formed_from_the_rows(monkeypatch):
    """Not even after a shortened step: it looks at its end by a pass over the rows, which costs less than the copy."""
    f, shares, copies = sparse_model(), [], []
    descend, columns = NewtonState.descend, CsrBlock.columns

    def watched(self, *given):
        found = descend(self, *given)
        shares.append(found.t)
        return found

    monkeypatch.setattr(NewtonState, "descend", watched)
    monkeypatch.setattr("extremal.moves.newton.spikes.COMPILED_COLUMNS", 0)  # no compiled steps, which copy their columns
    monkeypatch.setattr(CsrBlock, "columns", lambda self, W: copies.append(len(W)) or columns(self, W))
    r = ex.minimize(f, ex.L1Ball(40.0), tol=1e-6, atol=0)
    assert r.converged, r
    assert any(t != 1.0 for t in shares[:-1])
    assert max(copies, default=1) == 1  # the first run of a process copies one column


def test_the_slope_at_the_end_of_a_look_is_that_of_the_margins():
    f = sparse_model(300, 20)
    x, W = np.zeros(20), np.array([0, 3, 7])
    d = np.array([0.3, -0.2, 0.5])
    there = x.copy()
    there[W] += d
    at = NewtonState(f, x, f.grad(x), f.margins(x), f.value(x), 0.0, 1.0, ex.points.Coordinate(0, 1.0, (20,)), True)
    part = f.on_columns(W)
    looked, margins = LookedLine(at, part, d, f.value_grad_margins(there)), LookedLine(at, part, d, None)
    for t in (0.5, 1.0):
        assert looked.slope(t) == pytest.approx(margins.slope(t), rel=1e-10)
        assert looked.value(t) == pytest.approx(margins.value(t), rel=1e-12)


def test_hessians_are_light_as_operators_and_on_few_columns_of_wide_dense_rows():
    rng = np.random.default_rng(0)
    wide = ex.LinearModel(ex.Logistic(), rng.standard_normal((20, 3000)), np.sign(rng.standard_normal(20)))
    assert [wide.on_columns(np.arange(k)).light for k in (109, 110)] == [True, False]  # k^2 / 4 <= 3000
    narrow = ex.LinearModel(ex.Logistic(), rng.standard_normal((50, 100)), np.sign(rng.standard_normal(50)))
    assert not narrow.on_columns(np.arange(3)).light
    many = ex.LinearModel(ex.Logistic(), sp.random_array((30, 900), density=0.02, rng=rng, format="csr"), np.ones(30))
    assert [many.on_columns(np.arange(k)).light for k in (10, 401)] == [False, True]


def test_wide_data_start_with_all_rows_and_many_columns():
    rng = np.random.default_rng(0)

    def parts(loss, n, d):
        f = ex.LinearModel(loss, rng.standard_normal((n, d)), np.sign(rng.standard_normal(n)))
        method = ex.NewtonFW().prepare(f, ex.L1Ball(1.0).on(f.shape), Budget())
        return method.gradient, method.move

    for loss, n, d, wide in (
        (ex.Logistic(), 1250, 2500, True),
        (ex.Logistic(), 1251, 2500, False),
        (ex.Squared(), 20, 2500, False),
    ):
        gradient, move = parts(loss, n, d)
        assert gradient == ex.gradients.Growing(1 if wide else 16)
        assert move.growth == ((1, 50) if wide else NEWCOMERS)


def test_places_are_among_others():
    W = np.array([1, 4, 6])
    assert among(W, np.array([4, 6]))
    assert among(W, np.array([], int))
    assert not among(W, np.array([4, 9]))
    assert not among(W, np.array([0]))
    marked = np.zeros(9, bool)
    assert among(W, np.array([1]), marked)
    marked[[4, 8]] = True
    assert not among(W, np.array([1]), marked)


@pytest.mark.parametrize("seed", range(3))
def test_rows_by_length_have_the_same_sums(seed):
    rng = np.random.default_rng(seed)
    rows = ex.data.CSR(sp.csr_array(rng.standard_normal((40, 9)) * (rng.random((40, 9)) < rng.random((40, 1)))))
    found = rows.by_length()
    assert found is not None
    sorted_rows, order = found
    lengths = np.diff(sorted_rows.entries[0])
    assert (np.diff(lengths) >= 0).all()
    assert sorted(order) == list(range(40))
    v, h = rng.standard_normal(9), rng.random(40)
    A = rows.block.array()
    np.testing.assert_allclose(sorted_rows.gram_product(v, h[order]), A.T @ (h * (A @ v)), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(rows.gram_product(v), A.T @ (A @ v), rtol=1e-12, atol=1e-12)


def test_rows_of_one_length_and_dense_rows_keep_their_order():
    assert ex.data.CSR(sp.csr_array(np.ones((5, 3)))).by_length() is None
    assert ex.data.Dense(np.ones((5, 3))).by_length() is None
