"""Singular triples and eigenvalues by Lanczos: against dense decompositions, by products alone, with bounds that hold."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from by_products import TOL, ByProducts, orthonormal, with_values

import extremal as ex
from extremal.points.low_rank import LowRank, RankOne
from extremal.sets.spectral import lanczos
from extremal.sets.spectral.lanczos import leading_singular, smallest
from extremal.sets.spectral.nuclear import NuclearBall
from extremal.sets.spectral.operators import SpectralProducts
from extremal.sets.spectral.symmetric import Fantope, Spectrahedron


@pytest.fixture
def always(monkeypatch):
    """Lanczos' method for small matrices too."""
    monkeypatch.setattr(lanczos, "DENSE_SIDE", 0)


def matrices():
    rng = np.random.default_rng(0)
    decay, flat = 0.8 ** np.arange(45), 1 - 1e-3 * np.arange(45)
    yield "random", rng.standard_normal((60, 45))
    yield "wide", rng.standard_normal((45, 60))
    yield "larger than the basis", rng.standard_normal((150, 130))
    yield "low rank", rng.standard_normal((60, 3)) @ rng.standard_normal((3, 45))
    yield "rank one", np.outer(rng.standard_normal(60), rng.standard_normal(45))
    yield "one entry", np.eye(60, 45, 3) * np.eye(1, 45, 7)
    yield "diagonal", np.diag(np.arange(50.0))
    yield "decay", with_values(rng, decay, 60, 45)[0]
    yield "flat", with_values(rng, flat, 60, 45)[0]
    yield "two equal", with_values(rng, np.r_[1.0, 1.0, 0.9 * decay[2:]], 60, 45)[0]
    yield "all equal", orthonormal(rng, 50)
    yield "a cluster", with_values(rng, np.r_[1 - 1e-9 * np.arange(5), 0.5 * decay[5:]], 60, 45)[0]
    yield "a row", rng.standard_normal((1, 60))
    yield "a column", rng.standard_normal((60, 1))


MATRICES = pytest.mark.parametrize("G", [pytest.param(G, id=name) for name, G in matrices()])


# singular triples


@MATRICES
@pytest.mark.usefixtures("always")
def test_triples_are_those_of_a_dense_decomposition(G):
    top = np.linalg.svd(G, compute_uv=False)[0]
    found = leading_singular(SpectralProducts(G), None, TOL)
    assert found.sigma <= top * (1 + 1e-12)
    assert top <= found.upper <= found.sigma * (1 + 1.01 * TOL)
    assert [np.linalg.norm(found.left), np.linalg.norm(found.right)] == pytest.approx([1, 1], abs=1e-12)
    np.testing.assert_allclose(G @ found.right, found.sigma * found.left, atol=1e-12 * top)
    assert np.linalg.norm(G.T @ found.left - found.sigma * found.right) <= found.residual + 1e-12 * top


@MATRICES
def test_both_ways_give_one_answer(G, monkeypatch):
    dense = NuclearBall(2.0).lmo(G)
    monkeypatch.setattr(lanczos, "DENSE_SIDE", 0)
    assert NuclearBall(2.0, tol=1e-10).lmo(G).dot(G) == pytest.approx(dense.dot(G), rel=1e-10)


def test_large_matrices_go_to_lanczos_on_their_own():
    G = np.random.default_rng(0).standard_normal((300, 250))
    found = leading_singular(SpectralProducts(G), None, TOL)
    assert lanczos.BASIS < found.steps < 250
    assert found.sigma * (1 + 1e-12) >= np.linalg.svd(G, compute_uv=False)[0] * (1 - TOL)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "lil", "dok", "products"])
def test_matrices_in_other_forms(kind):
    a = sp.random_array((80, 50), density=0.1, rng=np.random.default_rng(0), format="csr")
    G = ByProducts(a.toarray()) if kind == "products" else a.asformat(kind)
    s = NuclearBall(3.0).lmo(G)
    assert s.to_array() == pytest.approx(NuclearBall(3.0).lmo(a.toarray()).to_array(), abs=1e-5)
    top = np.linalg.svd(a.toarray(), compute_uv=False)[0]
    assert -3 * top * (1 + 1.01 * TOL) <= s.low <= -3 * top


@pytest.mark.usefixtures("always")
def test_entries_that_are_stored_in_parts(monkeypatch):
    """|G|^2 is not the sum of squares of what is stored, and the bound of an answer that is cut short must not lean on that."""
    monkeypatch.setattr(lanczos, "BLOCK_STEPS", 2)
    G = np.random.default_rng(0).standard_normal((50, 60))
    rows, cols = np.repeat(np.indices(G.shape).reshape(2, -1), 10, axis=1)
    parts = sp.coo_array((np.repeat(G.ravel() / 10, 10), (rows, cols)), G.shape)
    top = np.linalg.svd(G, compute_uv=False)[0]
    assert parts.toarray() == pytest.approx(G)
    assert leading_singular(SpectralProducts(parts), None, TOL).upper >= top
    assert leading_singular(SpectralProducts(parts.tocsr()), None, TOL).upper >= top


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, ByProducts])
@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_any_scale_in_any_form(form, scale):
    G = np.random.default_rng(0).standard_normal((60, 50))
    for C in (NuclearBall(1.0), Spectrahedron(1.0), Fantope(3)):
        a = G if isinstance(C, NuclearBall) else G[:50]
        s, t = C.lmo(form(scale * a)), C.lmo(a)
        assert s.to_array() == pytest.approx(t.to_array(), abs=1e-5)
        assert s.low / scale == pytest.approx(t.low, rel=1e-6)


def test_products_that_overflow_are_not_taken_for_infinities():
    G = 1e308 * np.sign(np.random.default_rng(0).standard_normal((60, 200)))
    assert NuclearBall(1.0).lmo(ByProducts(G)).to_array() == pytest.approx(NuclearBall(1.0).lmo(G).to_array(), abs=1e-5)


@pytest.mark.parametrize("form", [sp.csr_array, sp.lil_array, ByProducts])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("C", [NuclearBall(1.0), Spectrahedron(), Fantope(2)], ids=str)
def test_entries_that_are_not_finite_are_found_in_any_form(C, form, bad):
    a = np.random.default_rng(0).standard_normal((120, 120))
    a[77, 3] = bad
    with pytest.raises(ex.NonFiniteError, match=r"lmo\(g\): g has a NaN or an infinite entry"):
        C.lmo(form(a))


class Overflowing(ByProducts):
    """A matrix whose first product is finite, and no other."""

    def __init__(self, a, asked=None):
        super().__init__(a)
        self._asked = [] if asked is None else asked

    @property
    def T(self):
        return Overflowing(self._a.T, self._asked)

    def __matmul__(self, v):
        self._asked.append(v)
        return super().__matmul__(v) * (1.0 if len(self._asked) == 1 else np.inf)


@pytest.mark.parametrize("d", [12, 120])
@pytest.mark.parametrize("C", [NuclearBall(1.0), Spectrahedron(), Fantope(2)], ids=str)
def test_products_that_are_not_finite_are_refused(C, d, capfd):
    with pytest.raises(ex.NonFiniteError, match="a product with g has a NaN or an infinite entry"):
        C.lmo(Overflowing(1.0 + np.eye(d)))
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, ByProducts])
def test_matrices_of_zeros_and_of_other_types(form):
    zero = NuclearBall(2.0).lmo(form(np.zeros((60, 50))))
    assert zero.low == 0
    assert NuclearBall(2.0).norm(zero) == 2
    single = np.random.default_rng(0).standard_normal((60, 50)).astype(np.float32)
    s = NuclearBall(2.0).lmo(form(single))
    assert -s.low == pytest.approx(2 * np.linalg.svd(single, compute_uv=False)[0], rel=1e-5)
    whole = NuclearBall(2.0).lmo(form(np.arange(3000).reshape(60, 50)))
    assert -whole.low == pytest.approx(2 * np.linalg.svd(np.arange(3000.0).reshape(60, 50), compute_uv=False)[0])


# what is known of what was not found


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("apart", [1e-2, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9])
@pytest.mark.parametrize("warm", [False, True])
def test_no_bound_is_below_the_largest_singular_value(apart, warm):
    """Two leading values that are hard to tell apart, and a start along the wrong one: residuals alone would deceive."""
    rng = np.random.default_rng(1)
    for _ in range(12):
        values = np.r_[1.0, 1 - apart, 0.5 * np.sqrt(rng.random(98))]
        G, u, v = with_values(rng, values, 100, 100)
        near = RankOne(u[:, 1], v[:, 1]) if warm else None
        found = leading_singular(SpectralProducts(ByProducts(G)), near, TOL)
        assert found.sigma <= 1 + 1e-12
        assert 1 - 1e-12 <= found.upper <= found.sigma * (1 + 1.01 * TOL)


@pytest.mark.usefixtures("always")
def test_bounds_hold_across_restarts(monkeypatch):
    rng = np.random.default_rng(2)
    monkeypatch.setattr(lanczos, "BASIS", 10)
    for _ in range(20):
        values = np.r_[1.0, 1 - 10.0 ** rng.uniform(-6, -2), 0.99 * np.sqrt(rng.random(118))]
        found = leading_singular(SpectralProducts(ByProducts(with_values(rng, values, 120, 120)[0])), None, TOL)
        assert found.steps > 20
        assert 1 - 1e-12 <= found.upper <= found.sigma * (1 + 1.01 * TOL)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("limit", [2, 5, 12])
def test_answers_that_were_cut_short_have_a_wide_bound(limit, monkeypatch):
    monkeypatch.setattr(lanczos, "BLOCK_STEPS", limit)
    rng = np.random.default_rng(3)
    for _ in range(20):
        G = rng.standard_normal((90, 80))
        top = np.linalg.svd(G, compute_uv=False)[0]
        for form in (np.asarray, ByProducts):
            found = leading_singular(SpectralProducts(form(G)), None, TOL)
            assert found.sigma < top < found.upper
            assert found.steps == limit
        assert found.upper > 1.001 * found.sigma


@pytest.mark.usefixtures("always")
def test_few_directions_that_carry_all_are_proof():
    """With |G| known the bound is far below what was asked for, and does not hang on the start."""
    G, u, v = with_values(np.random.default_rng(0), np.array([3.0, 2.0, 1.0]), 80, 70)
    near = RankOne(u[:, 1], v[:, 1])
    assert leading_singular(SpectralProducts(G), near, 1e-3).upper == pytest.approx(3, rel=1e-9)


@pytest.mark.usefixtures("always")
def test_earlier_answers_break_ties_and_never_mislead():
    rng = np.random.default_rng(0)
    G, u, v = with_values(rng, np.r_[1.0, 1.0, 0.3 * rng.random(58)], 80, 60)
    s = NuclearBall(1.0).lmo_from(G, RankOne(u[:, 1], v[:, 1]))
    assert abs(s.right @ v[:, 1]) > 0.9  # of two equal directions, the nearer one
    G = (u[:, :2] * [1.0, 0.9]) @ v[:, :2].T
    for near in (
        RankOne(u[:, 1], v[:, 1]),
        RankOne(np.ones(3), np.ones(4)),
        LowRank(u[:, :3], v[:, :3]),
        ex.points.Coordinate(3, 1.0, (80, 60)),
    ):
        assert abs(NuclearBall(1.0).lmo_from(G, near).right @ v[:, 0]) == pytest.approx(1, abs=1e-9)
    assert NuclearBall(1.0).lmo_from(G, near).key == NuclearBall(1.0).lmo_from(G, near).key


# symmetric matrices


def symmetric_matrices():
    rng = np.random.default_rng(1)
    q = orthonormal(rng, 60)
    yield "random", rng.standard_normal((60, 60))
    yield "larger than the basis", rng.standard_normal((200, 200))
    yield "positive", (q * rng.random(60)) @ q.T
    yield "negative", -(q * rng.random(60)) @ q.T
    yield "antisymmetric", np.triu(q) - np.triu(q).T
    yield "rank one", -np.outer(q[0], q[0])
    yield "the unit matrix", np.eye(60)
    yield "a projector", q[:, :20] @ q[:, :20].T
    yield "each value five times", (q * np.repeat(np.arange(12.0), 5)) @ q.T
    yield "zero", np.zeros((60, 60))
    yield "diagonal", np.diag(np.arange(60.0) - 20)


SYMMETRIC = pytest.mark.parametrize("G", [pytest.param(G, id=name) for name, G in symmetric_matrices()])


@SYMMETRIC
@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, ByProducts])
def test_smallest_eigenvalues_are_those_of_a_dense_decomposition(G, k, form):
    values = np.linalg.eigvalsh((G + G.T) / 2)
    size, least = np.abs(values).max(), values[:k].sum()
    found = smallest(SpectralProducts(form(G)), k, None, TOL)
    X = found.vectors
    np.testing.assert_allclose(X.T @ X, np.eye(k), atol=1e-12)
    np.testing.assert_allclose(found.values, values[:k], atol=1e-6 * size + 1e-14)
    assert np.vdot(X, G @ X) == pytest.approx(least, abs=2 * k * TOL * size + 1e-12)
    assert least - 1.01 * k * TOL * size - 1e-12 <= found.low <= least + 1e-13 * size


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("warm", [False, True])
def test_symmetric_bounds_hold_for_values_that_are_hard_to_tell_apart(warm):
    rng = np.random.default_rng(4)
    for apart in (1e-2, 1e-4, 1e-6, 1e-7, 1e-8):
        for k in (1, 3):
            q = orthonormal(rng, 100)
            values = np.sort(np.r_[-1.0, -1 + apart, -0.5, -0.5 + apart, rng.uniform(-0.4, 0.9, 96)])
            near = (RankOne(q[:, 1], q[:, 1]) if k == 1 else LowRank(q[:, 3:6], q[:, 3:6])) if warm else None
            found = smallest(SpectralProducts((q * values) @ q.T), k, near, TOL)
            assert found.low <= values[:k].sum() + 1e-13
            assert found.low >= values[:k].sum() - 1.01 * k * TOL


def test_fantopes_of_large_matrices_use_blocks():
    a = np.random.default_rng(0).standard_normal((400, 400))
    G = a + a.T
    s = Fantope(4).lmo(ByProducts(G))
    values = np.linalg.eigvalsh(G)
    assert s.left.shape == (400, 4)
    assert s.dot(G) == pytest.approx(values[:4].sum(), rel=1e-9)
    assert s.low <= values[:4].sum()
