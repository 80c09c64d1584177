"""Spectral sets beyond the contract: points near the largest numbers, points in factors, the max-norm, arguments."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from by_products import orthonormal

import extremal as ex
from extremal.points.factored import FactoredMatrix
from extremal.points.low_rank import RankOne
from extremal.sets.oracle import member
from extremal.sets.spectral.max_norm import MaxNormBall
from extremal.sets.spectral.nuclear import NuclearBall, SpectralBall
from extremal.sets.spectral.symmetric import Fantope, Spectrahedron

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
