"""Losses: derivatives are derivatives, curvature bounds them and is attained, and nothing overflows."""

from __future__ import annotations

import numpy as np
import pytest
from cases import LOSSES, SPECIAL_LOSSES, truth

import extremal as ex

Z = np.linspace(-8.0, 8.0, 4001)


@pytest.fixture(params=LOSSES + SPECIAL_LOSSES, ids=repr)
def loss(request):
    return request.param


def each_target(loss) -> tuple[float, ...]:
    return loss.labels or ((-1.3, 0.0, 2.0) if getattr(loss, "least", None) is None else (0.0, 0.7, 3.0))


def second_differences(loss, y: float, h: float = 1e-4) -> np.ndarray:
    target = np.full_like(Z, y)
    return (loss.deriv(Z + h, target) - loss.deriv(Z - h, target)) / (2 * h)


def test_value_and_deriv_equal_their_formulas(loss):
    value, deriv = truth(loss)
    for y in each_target(loss):
        target = np.full_like(Z, y)
        np.testing.assert_allclose(loss.value(Z, target), value(Z, target), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(loss.deriv(Z, target), deriv(Z, target), rtol=1e-11, atol=1e-15)


def test_deriv_is_the_derivative_of_value(loss):
    h = 1e-5
    for y in each_target(loss):
        target = np.full_like(Z, y)
        slope = (loss.value(Z + h, target) - loss.value(Z - h, target)) / (2 * h)
        np.testing.assert_allclose(loss.deriv(Z, target), slope, atol=1e-5 if isinstance(loss, (ex.Huber, ex.Quantile)) else 1e-8)


def test_curvature_bounds_the_second_difference_and_is_nearly_attained(loss):
    steepest = max(np.abs(second_differences(loss, y)).max() for y in each_target(loss))
    assert steepest <= loss.curvature * (1 + 1e-7)
    assert steepest >= loss.curvature * (1 - 1e-4)


def test_convex_flag(loss):
    lowest = min(second_differences(loss, y).min() for y in each_target(loss))
    assert (lowest >= -1e-9) == loss.convex


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1.0, 1e4, 1e8])
def test_finite_at_any_margin_and_float_type_kept(loss, size, dtype):
    z = np.array([-size, size, 0.0], dtype)
    for y in each_target(loss):
        target = np.full(3, y, dtype)
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            value, deriv = loss.value(z, target), loss.deriv(z, target)
        assert value.dtype == deriv.dtype == dtype
        assert np.isfinite(value).all()
        assert np.isfinite(deriv).all()
        assert (value >= 0).all()


def test_far_out_values_and_derivatives():
    z, one = np.array([-1e8, 1e8]), np.ones(2)
    np.testing.assert_allclose(ex.Logistic().value(z, one), [1e8, 0])
    np.testing.assert_allclose(ex.Logistic().deriv(z, one), [-1, 0])
    np.testing.assert_allclose(ex.NonlinearLeastSquares().value(z, one), [0, 1])
    np.testing.assert_allclose(ex.NonlinearLeastSquares().deriv(z, one), [0, 0])
    np.testing.assert_allclose(ex.Huber(2.0).value(z, 0 * one), [2e8 - 2, 2e8 - 2])
    np.testing.assert_allclose(ex.Huber(2.0).deriv(z, 0 * one), [-2, 2])


def test_small_tails_keep_their_digits():
    z, zero, one = np.array([40.0]), np.zeros(1), np.ones(1)
    np.testing.assert_allclose(ex.Logistic().value(z, one), np.exp(-40.0), rtol=1e-12)
    np.testing.assert_allclose(ex.Logistic().deriv(z, one), -np.exp(-40.0), rtol=1e-12)
    np.testing.assert_allclose(ex.NonlinearLeastSquares().deriv(-z, zero), -2 * np.exp(-40.0), rtol=1e-12)
    np.testing.assert_allclose(ex.NonlinearLeastSquares().deriv(z, one), 2 * np.exp(-40.0), rtol=1e-12)


def test_constant_of_nonlinear_least_squares():
    assert ex.NonlinearLeastSquares().curvature == pytest.approx(0.15406, abs=5e-6)
    fine = np.linspace(-3, 3, 600_001)
    steepest = np.abs(np.gradient(ex.NonlinearLeastSquares().deriv(fine, np.zeros_like(fine)), fine)).max()
    assert ex.NonlinearLeastSquares().curvature == pytest.approx(steepest, rel=1e-6)


def test_nonlinear_least_squares_has_the_papers_sign():
    """q = 1 / (1 + exp(z)): a large margin means q near 0."""
    z = np.array([3.0])
    assert ex.NonlinearLeastSquares().value(z, np.array([0.0])) < ex.NonlinearLeastSquares().value(z, np.array([1.0]))


@pytest.mark.parametrize("delta", [0, -1, np.nan, np.inf, "1", True, None])
def test_huber_delta(delta):
    with pytest.raises(ex.InputError, match=r"`Huber\(delta=\.\.\.\)` must be a positive finite"):
        ex.Huber(delta)


@pytest.mark.parametrize("z", [600.0, 709.0, 712.0, 740.0])
def test_derivatives_of_saturated_rows_keep_the_smallest_numbers(z):
    """A value of 1e-310 has a derivative of that size: without it a gap would be called 0."""
    derivative = ex.Logistic().deriv(np.array([z, -z]), np.array([1.0, -1.0]))
    np.testing.assert_allclose(derivative, np.exp(-z) * np.array([-1.0, 1.0]), rtol=1e-12 if z < 700 else 0.2)
    assert (derivative != 0).all()
