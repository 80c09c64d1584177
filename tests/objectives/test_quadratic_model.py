"""Quadratic functions of combinations of rows, against their formula."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import extremal as ex
from extremal.checks import InputError
from extremal.objectives.base import Parabola
from extremal.points import Chord, Coordinate, DenseVertex

RNG = np.random.default_rng(3)
A = RNG.standard_normal((7, 4)) * (RNG.random((7, 4)) < 0.7)
CASES = [
    (RNG.standard_normal(4), RNG.standard_normal(7), (7,)),
    (None, None, (7,)),
    (RNG.standard_normal((4, 2)), None, (7, 2)),
    (None, RNG.standard_normal((7, 3)), (7, 3)),
]
KINDS = pytest.mark.parametrize("rows", [A, sp.csr_array(A), A.astype(np.float32)], ids=["dense", "csr", "float32"])
GIVEN = pytest.mark.parametrize(("t", "b", "shape"), CASES, ids=["both", "none", "targets", "linear"])


def formula(rows, t, b, x):
    M = np.asarray(rows.todense() if sp.issparse(rows) else rows, np.float64)
    r = M.T @ x - (0 if t is None else t)
    b = np.zeros(x.shape) if b is None else b
    return 0.5 * (r**2).sum() + (b * x).sum(), M @ r + b


@KINDS
@GIVEN
def test_values_gradients_and_parts(rows, t, b, shape):
    f, x = ex.QuadraticModel(rows, t, b), np.random.default_rng(0).standard_normal(shape)
    value, g = formula(rows, t, b, x)
    assert (f.n, f.shape, f.deriv_shape, f.convex) == (7, shape, shape[1:], True)
    assert f.value(x) == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(f.grad(x), g, rtol=1e-5, atol=1e-6)
    z = f.value_grad_margins(x)[2]
    places = [(slice(2, 5),), (slice(0, 7),)] + ([(3,), (slice(None), 1)] if len(shape) == 2 else [])
    for place in places:
        np.testing.assert_allclose(f.part(z, place), g[place], rtol=1e-5, atol=1e-5)
        d = np.zeros(shape)
        d[place] = np.random.default_rng(1).standard_normal(d[place].shape)
        dz = f.part_margins(place, d[place])
        np.testing.assert_allclose(z + dz, f.margins(x + d), rtol=1e-5, atol=1e-5)
        line = f.between(z, dz)
        for s in (0.0, 0.3, 1.0):
            there, slope = formula(rows, t, b, x + s * d)
            assert line.value(s) == pytest.approx(there, rel=1e-5)
            assert line.slope(s) == pytest.approx((slope * d).sum(), rel=1e-4, abs=1e-5)


@GIVEN
def test_lines_to_vertices_and_along_chords(t, b, shape):
    f, x = ex.QuadraticModel(A, t, b), np.random.default_rng(2).standard_normal(shape)
    v, w = Coordinate(3, -2.0, shape), DenseVertex(np.random.default_rng(4).standard_normal(shape))
    for s, d in ((v, v.to_array() - x), (Chord(0.0, ((0.5, w), (-0.5, v))), 0.5 * (w.to_array() - v.to_array()))):
        line = f.along(x, s)
        assert isinstance(line, Parabola)
        for at in (0.0, 0.4, 1.0):
            value, g = formula(A, t, b, x + at * d)
            assert line.value(at) == pytest.approx(value, rel=1e-9)
            assert line.slope(at) == pytest.approx((g * d).sum(), rel=1e-8, abs=1e-9)


def test_smoothness_is_the_largest_eigenvalue():
    assert ex.QuadraticModel(A).smoothness == pytest.approx(np.linalg.eigvalsh(A @ A.T)[-1], rel=1e-9)


@pytest.mark.parametrize(
    "method", [None, ex.FrankWolfe(ex.steps.LineSearch()), ex.PairwiseFW(), ex.FullyCorrectiveFW()], ids=repr
)
def test_every_method_of_full_gradients_takes_it(method):
    """The nearest point of a hull: its gap is that of the formula."""
    t = np.array([0.3, -0.2, 0.1, 0.0])
    r = ex.minimize(ex.QuadraticModel(A, t), ex.Simplex(), method, tol=0, atol=1e-3)
    assert r.converged
    g = formula(A, t, None, r.x)[1]
    assert r.gap == pytest.approx(g @ r.x - g.min(), abs=1e-12)


def test_a_line_search_of_a_parabola_takes_one_line():
    f = ex.QuadraticModel(A, np.ones(4))
    r = ex.minimize(f, ex.Simplex(), ex.FrankWolfe(ex.steps.LineSearch()), max_iter=3, tol=0)
    assert r.calls.values == 3 * f.n


def test_mistakes_are_named():
    for name, value, text in (
        ("target", np.ones(3), r"target=.*\(4,\)"),
        ("linear", np.ones((7, 2, 2)), r"linear=.*\(7,\)"),
        ("linear", ["a"] * 7, "real numbers"),
        ("target", [1.0, np.nan, 0.0, 0.0], "finite"),
    ):
        with pytest.raises(InputError, match=text):
            ex.QuadraticModel(A, **{name: value})
    with pytest.raises(InputError, match="equally many columns"):
        ex.QuadraticModel(A, np.ones((4, 2)), np.ones(7))
    with pytest.raises(InputError, match="no batches"):
        ex.minimize(ex.QuadraticModel(A), ex.Simplex(), ex.SarahFW())
    with pytest.raises(InputError, match="two dimensions"):
        ex.QuadraticModel(np.ones(3))
