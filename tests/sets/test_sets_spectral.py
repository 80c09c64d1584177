"""Spectral sets beyond the contract: Lanczos against dense decompositions, matrices known by products, bounds that hold."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import extremal as ex
from extremal.points.factored import FactoredMatrix
from extremal.points.low_rank import LowRank, RankOne
from extremal.sets.membership import member
from extremal.sets.spectral import leading
from extremal.sets.spectral.lanczos import singular, smallest
from extremal.sets.spectral.max_norm import MaxNormBall
from extremal.sets.spectral.nuclear import NuclearBall, SpectralBall
from extremal.sets.spectral.operators import Products
from extremal.sets.spectral.symmetric import Fantope, Spectrahedron

TOL = 1e-8


class ByProducts:
    """A matrix that knows products with single vectors, and nothing else."""

    def __init__(self, a):
        self._a, self.shape, self.dtype = a, a.shape, a.dtype

    @property
    def T(self):
        return ByProducts(self._a.T)

    def __matmul__(self, v):
        assert v.ndim == 1
        return self._a @ v

    def __array__(self, *args, **kwargs):
        raise AssertionError("asked for a dense copy")


@pytest.fixture
def always(monkeypatch):
    """Lanczos' method for small matrices too."""
    monkeypatch.setattr(leading, "EXACT", 0)


def orthonormal(rng, n):
    return np.linalg.qr(rng.standard_normal((n, n)))[0]


def with_values(rng, values, m, n):
    u, v = orthonormal(rng, m), orthonormal(rng, n)
    k = len(values)
    return (u[:, :k] * values) @ v[:, :k].T, u, v


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
    found = singular(Products(G), None, TOL)
    assert found.sigma <= top * (1 + 1e-12)
    assert top <= found.upper <= found.sigma * (1 + 1.01 * TOL)
    assert [np.linalg.norm(found.left), np.linalg.norm(found.right)] == pytest.approx([1, 1], abs=1e-12)
    np.testing.assert_allclose(G @ found.right, found.sigma * found.left, atol=1e-12 * top)
    assert np.linalg.norm(G.T @ found.left - found.sigma * found.right) <= found.residual + 1e-12 * top


@MATRICES
def test_both_ways_give_one_answer(G, monkeypatch):
    dense = NuclearBall(2.0).lmo(G)
    monkeypatch.setattr(leading, "EXACT", 0)
    assert NuclearBall(2.0, tol=1e-10).lmo(G).dot(G) == pytest.approx(dense.dot(G), rel=1e-10)


def test_large_matrices_go_to_lanczos_on_their_own():
    G = np.random.default_rng(0).standard_normal((300, 250))
    found = singular(Products(G), None, TOL)
    assert leading.BASIS < found.steps < 250
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
    monkeypatch.setattr(leading, "LIMIT", 2)
    G = np.random.default_rng(0).standard_normal((50, 60))
    rows, cols = np.repeat(np.indices(G.shape).reshape(2, -1), 10, axis=1)
    parts = sp.coo_array((np.repeat(G.ravel() / 10, 10), (rows, cols)), G.shape)
    top = np.linalg.svd(G, compute_uv=False)[0]
    assert parts.toarray() == pytest.approx(G)
    assert singular(Products(parts), None, TOL).upper >= top
    assert singular(Products(parts.tocsr()), None, TOL).upper >= top


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


HUGE = np.array([[3e307, -3e307, 0.0], [4e307, 3e307, 1e-300], [-3e307, 5e307, 3e307]])
SPECTRAL = [NuclearBall, SpectralBall, Spectrahedron, MaxNormBall, lambda r: ex.LoewnerInterval(r * np.eye(3), 2 * r * np.eye(3))]


@pytest.mark.parametrize("radius", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize("make", [*SPECTRAL, lambda r: Fantope(2)])
def test_points_near_the_largest_numbers_are_outside_and_have_a_nearest_one(make, radius, capfd):
    C = make(radius)
    for x in (HUGE, -HUGE, HUGE.T, 1.7e308 * np.eye(3), -1.7e308 * np.eye(3), np.full((3, 3), 5e307)):
        assert not C.contains(x)
        assert not member(C, x)
        if hasattr(C, "norm"):
            assert C.norm(x) >= 5e307
        if hasattr(C, "project"):
            assert C.contains(C.project(x), 1e-7)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("make", [*SPECTRAL, lambda r: Fantope(2)])
def test_points_that_are_not_finite_are_outside(make, bad, capfd):
    C, x = make(1e300), np.eye(3)
    x[0, 1] = x[1, 0] = bad
    assert not C.contains(x)
    assert not member(C, x)
    if hasattr(C, "project"):
        with pytest.raises(ex.InputError, match="finite"):
            C.project(x)
    assert capfd.readouterr() == ("", "")


def test_huge_max_norm_balls_have_points_inside():
    x = np.full((4, 4), 1e290)
    assert MaxNormBall(1e300).contains(x)
    assert MaxNormBall(1e290).contains(x)
    assert not MaxNormBall(0.99e290).contains(x)


def test_max_norm_bounds_of_rows_that_nearly_vanish():
    s = MaxNormBall(1.0).lmo(np.diag([1.0, 1e-300, 1e-320, -1e-320]))
    assert -s.low == pytest.approx(1.0, rel=1e-7)


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
        found = singular(Products(ByProducts(G)), near, TOL)
        assert found.sigma <= 1 + 1e-12
        assert 1 - 1e-12 <= found.upper <= found.sigma * (1 + 1.01 * TOL)


@pytest.mark.usefixtures("always")
def test_bounds_hold_across_restarts(monkeypatch):
    rng = np.random.default_rng(2)
    monkeypatch.setattr(leading, "BASIS", 10)
    for _ in range(20):
        values = np.r_[1.0, 1 - 10.0 ** rng.uniform(-6, -2), 0.99 * np.sqrt(rng.random(118))]
        found = singular(Products(ByProducts(with_values(rng, values, 120, 120)[0])), None, TOL)
        assert found.steps > 20
        assert 1 - 1e-12 <= found.upper <= found.sigma * (1 + 1.01 * TOL)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("limit", [2, 5, 12])
def test_answers_that_were_cut_short_have_a_wide_bound(limit, monkeypatch):
    monkeypatch.setattr(leading, "LIMIT", limit)
    rng = np.random.default_rng(3)
    for _ in range(20):
        G = rng.standard_normal((90, 80))
        top = np.linalg.svd(G, compute_uv=False)[0]
        for form in (np.asarray, ByProducts):
            found = singular(Products(form(G)), None, TOL)
            assert found.sigma < top < found.upper
            assert found.steps == limit
        assert found.upper > 1.001 * found.sigma


@pytest.mark.usefixtures("always")
def test_few_directions_that_carry_all_are_proof():
    """With |G| known the bound is far below what was asked for, and does not hang on the start."""
    G, u, v = with_values(np.random.default_rng(0), np.array([3.0, 2.0, 1.0]), 80, 70)
    near = RankOne(u[:, 1], v[:, 1])
    assert singular(Products(G), near, 1e-3).upper == pytest.approx(3, rel=1e-9)


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
    found = smallest(Products(form(G)), k, None, TOL)
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
            found = smallest(Products((q * values) @ q.T), k, near, TOL)
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


# points in factors


@pytest.mark.parametrize("C", [NuclearBall(2.0), SpectralBall(2.0)], ids=str)
def test_membership_of_factors_is_that_of_the_matrix(C):
    rng = np.random.default_rng(0)
    for r in (0, 1, 3, 9):
        left, right = rng.standard_normal((7, r)), rng.standard_normal((5, r))
        X = FactoredMatrix(left, right)
        assert C.norm(X) == pytest.approx(C.norm(left @ right.T), abs=1e-12)
        if r:
            X = X / C.norm(X)
            assert C.contains(2 * X)
            assert not C.contains(2.001 * X)
    assert not C.contains(FactoredMatrix(np.full((7, 2), np.nan), np.ones((5, 2))))


def test_membership_of_symmetric_factors():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((8, 3))
    X = FactoredMatrix(a, a)
    trace = float(np.vdot(a, a))
    assert Spectrahedron(trace).contains(X)
    assert not Spectrahedron(1.001 * trace).contains(X)
    assert not Spectrahedron(trace).contains(FactoredMatrix(a, a[:, ::-1]))
    assert not Spectrahedron(1.0).contains(
        FactoredMatrix(np.c_[a, a], np.c_[a, -a]) + FactoredMatrix(np.eye(8, 1), np.eye(8, 1, -1))
    )
    q = orthonormal(rng, 8)[:, :3]
    assert Fantope(3).contains(FactoredMatrix(q, q))
    assert not Fantope(3).contains(FactoredMatrix(q * [1.2, 0.9, 0.9], q))
    assert not Fantope(3).contains(FactoredMatrix(np.full((8, 3), np.nan), q))


@pytest.mark.parametrize("C", [NuclearBall(2.0), Spectrahedron(2.0), Fantope(3)], ids=str)
def test_starts_of_huge_matrices_are_small(C):
    C = C.on((10**6, 10**6))
    x = C.start()
    assert isinstance(x, FactoredMatrix)
    assert x.shape == C.shape
    assert C.contains(x)


# the max-norm


def hadamard(n):
    h = np.ones((1, 1))
    while len(h) < n:
        h = np.block([[h, h], [h, -h]])
    return h


@pytest.mark.parametrize("n", [2, 4, 8])
def test_max_norms_that_are_known(n):
    C, h = MaxNormBall(1.0), hadamard(n)
    assert C.norm(h) == pytest.approx(np.sqrt(n), rel=1e-6)
    assert -C.lmo(h).low == pytest.approx(n**1.5, rel=1e-6)
    assert C.norm(np.eye(n)) == pytest.approx(1, rel=1e-6)
    assert -C.lmo(np.eye(n)).low == pytest.approx(n, rel=1e-6)
    a = np.outer(np.arange(1.0, n + 1), np.ones(3))
    assert C.norm(a) == pytest.approx(n, rel=1e-6)  # of rank one: the largest entry
    assert -C.lmo(a).low == pytest.approx(a.sum(), rel=1e-6)


def test_max_norm_oracles_lie_between_cuts_and_grothendieck():
    """Over signs the maximum is that of rank one; over unit vectors it is larger, by less than Grothendieck's constant."""
    rng = np.random.default_rng(0)
    for shape in ((6, 5), (4, 9), (7, 7)):
        G = rng.standard_normal(shape)
        cut = max(np.abs(np.array(e) @ G).sum() for e in itertools.product((-1, 1), repeat=shape[0]))
        s = MaxNormBall(1.0).lmo(G)
        assert cut <= -s.dot(G) * (1 + 1e-12)
        assert -s.dot(G) <= -s.low <= -s.dot(G) * (1 + 1.01e-6)
        assert -s.low <= 1.7823 * cut
        assert np.linalg.norm(s.right, axis=1) == pytest.approx(np.ones(shape[1]))


def test_the_max_norm_and_its_oracle_are_dual():
    rng = np.random.default_rng(1)
    C = MaxNormBall(1.0)
    for _ in range(20):
        G, X = rng.standard_normal((2, 6, 5)) * (rng.random((2, 6, 5)) < 0.7)
        s = C.lmo(G)
        assert abs(np.vdot(G, X)) <= -s.low * C.norm(X) * (1 + 1e-5)
        assert C.norm(s.to_array()) == pytest.approx(1, rel=1e-6)
        assert C.contains(s.to_array())
        assert not C.contains(1.0001 * s.to_array())


def test_max_norm_oracles_start_from_earlier_answers():
    rng = np.random.default_rng(2)
    G = rng.standard_normal((30, 20))
    C = MaxNormBall(2.0)
    s = C.lmo_from(G + 1e-3 * rng.standard_normal(G.shape), C.lmo(G))
    assert s.dot(G) == pytest.approx(C.lmo(G).dot(G), rel=1e-5)
    assert C.lmo_from(G, RankOne(G[:, 0], G[0])).key == C.lmo(G).key
    empty = np.pad(G, 2)
    assert C.lmo(empty).dot(empty) == pytest.approx(C.lmo(G).dot(G), rel=1e-6)


# shapes and arguments


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NuclearBall(-1.0), r"`NuclearBall\(radius=...\)` must be a positive finite number, got -1.0"),
        (lambda: NuclearBall(1.0, tol=0.0), r"`NuclearBall\(tol=...\)` must be a number in \(0, 0.1\], got 0.0"),
        (lambda: NuclearBall(1.0, shape=5), r"`NuclearBall\(shape=...\)` must be two numbers, rows and columns, got \(5,\)"),
        (lambda: NuclearBall(1.0).on((2, 3, 4)), r"`NuclearBall\(shape=...\)` must be two numbers"),
        (lambda: SpectralBall(np.nan), r"`SpectralBall\(radius=...\)` must be a positive finite number, got nan"),
        (lambda: SpectralBall(1.0).on(5), r"`SpectralBall\(shape=...\)` must be two numbers"),
        (lambda: Spectrahedron(0), r"`Spectrahedron\(trace=...\)` must be a positive finite number, got 0"),
        (lambda: Spectrahedron().on((2, 3)), r"`Spectrahedron\(shape=...\)` must be two equal numbers, for square matrices"),
        (lambda: Spectrahedron(tol=2.0), r"`Spectrahedron\(tol=...\)` must be a number in \(0, 0.1\], got 2.0"),
        (lambda: Fantope(0), r"`Fantope\(k=...\)` must be a whole number of at least 1, got 0"),
        (lambda: Fantope(1.5), r"`Fantope\(k=...\)` must be a whole number of at least 1, got 1.5"),
        (
            lambda: Fantope(4, shape=(3, 3)),
            r"`Fantope\(k=...\)` must be at most d for points of shape \(d, d\) = \(3, 3\), got 4",
        ),
        (lambda: Fantope(2).on((3, 2)), r"`Fantope\(shape=...\)` must be two equal numbers"),
        (lambda: Fantope(4).lmo(np.eye(3)), r"must be at most d for points of shape \(d, d\) = \(3, 3\), got 4"),
        (lambda: Spectrahedron().lmo(np.ones((3, 2))), r"must be two equal numbers, for square matrices, got \(3, 2\)"),
        (lambda: MaxNormBall(0.0), r"`MaxNormBall\(radius=...\)` must be a positive finite number, got 0.0"),
        (lambda: MaxNormBall(1.0, shape=(1500, 600)), r"must have at most 2000 rows and columns together, got \(1500, 600\)"),
        (lambda: MaxNormBall(1.0).lmo(np.zeros((1, 2000))), r"must have at most 2000 rows and columns together"),
        (lambda: NuclearBall(1.0).start(), r"depends on the dimension"),
        (lambda: Fantope(2).diameter, r"depends on the dimension"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(ex.InputError, match=message):
        make()


def test_open_shapes_are_filled_in():
    assert NuclearBall(2.0).on((3, 4)) == NuclearBall(2.0, shape=(3, 4))
    assert Fantope(2).on((3, 3)) == Fantope(2, shape=(3, 3))
    assert Spectrahedron().diameter == pytest.approx(np.sqrt(2))
    assert repr(NuclearBall(2.0, shape=(3, 4))) == "NuclearBall(radius=2.0, shape=(3, 4))"
