"""Majorants of second derivatives: they dominate, and they change slowly."""

from __future__ import annotations

import numpy as np
import pytest

import extremal as ex
from extremal.losses.base import majorant_of

Z = np.linspace(-30.0, 30.0, 6001)
LOSSES = {
    "logistic": (ex.Logistic(), (-1.0, 1.0)),
    "nls": (ex.NonlinearLeastSquares(), (0.0, 1.0)),
    "squared": (ex.Squared(), (-1.3, 0.0, 2.0)),
    "huber": (ex.Huber(0.7), (-1.3, 0.0, 2.0)),
    "quantile": (ex.Quantile(0.3), (-1.3, 0.0, 2.0)),
    "poisson": (ex.Poisson(), (0.0, 1.0, 5.0)),
    "poisson, low cap": (ex.Poisson(cap=1.0), (0.0, 1.0, 5.0)),
}


def majorant(loss, y):
    m = majorant_of(loss)
    return (loss.second if m is None else m)(Z, np.full_like(Z, y))


@pytest.mark.parametrize("name", LOSSES)
def test_majorants_are_above_the_second_derivative(name):
    loss, targets = LOSSES[name]
    for y in targets:
        assert (np.abs(loss.second(Z, np.full_like(Z, y))) <= majorant(loss, y) * (1 + 1e-12) + 1e-15).all()  # rounding of y - q


@pytest.mark.parametrize("name", LOSSES)
def test_majorants_change_slowly(name):
    """m(z + u) <= m(z) e^(s |u|), which is |m'| <= s m without a derivative."""
    loss, targets = LOSSES[name]
    for y in targets:
        m = majorant(loss, y)
        assert (m > 0).all()
        for lag in (1, 10, 300):
            assert (np.abs(np.log(m[lag:] / m[:-lag])) <= loss.self_concordance * (Z[lag] - Z[0]) * (1 + 1e-9) + 1e-9).all()


@pytest.mark.parametrize("name", LOSSES)
def test_the_parabola_with_growth_bounds_the_loss(name):
    """phi(z + u) <= phi(z) + phi'(z) u + m(z) (e^(s |u|) - 1 - s |u|) / s^2."""
    loss, targets = LOSSES[name]
    s, z = loss.self_concordance, Z[::50]
    for y in targets:
        target = np.full_like(z, y)
        m = majorant(loss, y)[::50]
        for u in (-3.0, -0.2, 0.01, 1.0, 4.0):
            growth = u * u / 2 if s == 0.0 else (np.expm1(s * abs(u)) - s * abs(u)) / s**2
            bound = loss.value(z, target) + loss.deriv(z, target) * u + m * growth
            assert (loss.value(z + u, target) <= bound + 1e-9 * np.abs(bound) + 1e-15).all()


@pytest.mark.parametrize("loss", [ex.Logistic(), ex.NonlinearLeastSquares(), ex.Huber(0.5)], ids=repr)
def test_a_weight_scales_the_majorant(loss):
    A, y = np.ones((4, 1)), np.array([0.0, 1.0, 1.0, 0.0]) if loss.labels != (-1.0, 1.0) else np.array([-1.0, 1.0, 1.0, -1.0])
    w = np.array([1.0, 2.0, 3.0, 2.0])
    f, z = ex.LinearModel(loss, A, y, weights=w), np.array([0.1, -2.0, 0.4, 3.0])
    plain, weighted = (majorant_of(which) or which.second for which in (loss, f.loss))
    targets = f._targets(np.arange(4))
    np.testing.assert_allclose(weighted(z, targets), plain(z, y) * w / w.mean())
    assert f.loss.self_concordance == loss.self_concordance
    assert (majorant_of(loss) is None) == (majorant_of(f.loss) is None)
