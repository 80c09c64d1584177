"""Compressors: what is sent, bit by bit, and the constants of their theorems, by enumeration and by many draws."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from cases import COMPRESSORS

import extremal as ex
from extremal.gradients.compressors import as_compressor
from extremal.gradients.messages import contracted

G = ex.gradients
EVERY = pytest.mark.parametrize("C", COMPRESSORS, ids=repr)
V = np.array([0.3, -2.0, 0.0, 5.5, -1e-3, 1.0, 2.0**60, -7.25])


def draws(C, v, many, seed=0):
    """C(v), many times."""
    rng = np.random.default_rng(seed)
    return np.stack([C.expand(C.compress(v, rng), v.shape) for _ in range(many)])


@EVERY
@pytest.mark.parametrize("shape", [(1,), (2,), (3,), (8,), (9,), (3, 5), (2, 2, 3)])
def test_a_message_has_as_many_bytes_as_said_and_keeps_the_shape(C, shape):
    v = np.random.default_rng(1).standard_normal(shape)
    message = C.compress(v, np.random.default_rng(2))
    assert isinstance(message.payload, bytes)
    assert len(message.payload) == C.size(v.size)
    assert message.numbers == (min(C.k, v.size) if isinstance(C, G.TopK | G.RandomK) else v.size)
    found = C.expand(message, shape)
    assert found.shape == shape
    assert found.dtype == np.float64


@EVERY
def test_a_vector_is_not_changed_and_a_message_is_a_function_of_the_draws(C):
    v = V.copy()
    one, two = (C.compress(v, np.random.default_rng(5)) for _ in range(2))
    assert one == two
    np.testing.assert_array_equal(v, V)
    strided = np.stack([V, V], axis=1)[:, 0]  # not contiguous
    assert C.compress(strided, np.random.default_rng(5)) == one


def test_the_largest_entries_as_int32_and_float64():
    for k, v in itertools.product(range(1, 10), (V, np.random.default_rng(0).standard_normal(8))):
        C = G.TopK(k)
        message = C.compress(v, np.random.default_rng(0))
        at = sorted(sorted(range(8), key=lambda j: (-abs(v[j]), j))[:k])
        wanted = b"".join(j.to_bytes(4, "little") for j in at) + np.array([v[j] for j in at], "<f8").tobytes()
        assert message.payload == wanted
        away = np.sum((C.expand(message, (8,)) - v) ** 2)
        assert away <= (1 - C.alpha(8)) * np.sum(v**2) * (1 + 1e-12)
    assert G.TopK(2).expand(G.TopK(2).compress(np.ones(4), None), (4,)).tolist() == [1, 1, 0, 0]  # the first of equal ones
    assert np.isnan(G.TopK(1).expand(G.TopK(1).compress(np.array([1.0, np.nan, 9.0]), None), (3,))[1])


@pytest.mark.parametrize("k", [1, 2, 4])
def test_random_entries_are_unbiased_with_the_stated_variance(k):
    """The mean over all sets of k entries; and all sets come equally often."""
    v, C = np.array([1.0, -2.0, 0.5, 3.0]), G.RandomK(k)
    found = draws(C, v, 4000)
    sets = dict.fromkeys(itertools.combinations(range(4), k), 0)
    for row in found:
        at = tuple(np.flatnonzero(row).tolist())
        sets[at] += 1
        np.testing.assert_allclose(row[list(at)], v[list(at)] * 4 / k)
    share = 4000 / len(sets)
    assert all(abs(many - share) < 8 * math.sqrt(share) for many in sets.values())
    exact = np.array([[v[j] * 4 / k if j in at else 0.0 for j in range(4)] for at in sets])
    np.testing.assert_allclose(exact.mean(axis=0), v)
    assert ((exact - v) ** 2).sum(axis=1).mean() == pytest.approx(C.omega(4) * np.sum(v**2))
    shrunk = exact * C.alpha(4)
    assert ((shrunk - v) ** 2).sum(axis=1).mean() == pytest.approx((1 - C.alpha(4)) * np.sum(v**2))


def test_natural_messages_are_signs_and_exponents_in_twelve_bits():
    for v in (V, V[:7], np.array([-0.75])):
        message = G.Natural().compress(v, np.random.default_rng(3))
        bits = "".join(f"{byte:08b}" for byte in message.payload)
        codes = [bits[12 * j : 12 * j + 12] for j in range(len(v))]
        assert len(message.payload) == math.ceil(1.5 * len(v))
        for code, x, y in zip(codes, v, G.Natural().expand(message, v.shape), strict=True):
            e = int(code[1:], 2)
            assert y == (0.0 if e == 0 else (-1.0) ** int(code[0]) * 2.0 ** (e - 1023))
            lower = 0.0 if x == 0 else 2.0 ** (math.frexp(abs(x))[1] - 1)
            assert abs(y) in (lower, 2 * lower)
            assert y * x >= 0


def test_natural_compression_is_unbiased_with_variance_an_eighth():
    v, many = np.array([0.3, -2.0, 0.0, 5.5, -1e-3, 1.0, 4 / 3 * 2.0**60, -7.25]), 4000
    lower = np.where(v == 0, 0.0, 2.0 ** np.floor(np.log2(np.where(v == 0, 1.0, np.abs(v)))))
    p = np.abs(v) / np.where(lower == 0, 1.0, lower) - (v != 0)
    variance = p * (1 - p) * lower**2
    assert (variance <= v**2 / 8 * (1 + 1e-12)).all()
    assert variance[6] == pytest.approx(v[6] ** 2 / 8)  # the bound is reached at p = 1/3
    found = draws(G.Natural(), v, many)
    assert (np.abs(found.mean(axis=0) - v) <= 6 * np.sqrt(variance / many)).all()
    np.testing.assert_array_equal(found[:, variance == 0], np.tile(v[variance == 0], (many, 1)))


def test_natural_compression_of_extremes():
    v = np.array([5e-324, -5e-324, 2.0**-1022, 1.7976931348623157e308, -np.inf, np.inf, 0.0, -0.0])
    found = draws(G.Natural(), v, 50)
    np.testing.assert_array_equal(found[:, :2], 0.0)  # rounds up once in 2^52
    np.testing.assert_array_equal(found[:, 2:], np.tile([2.0**-1022, 2.0**1023, -np.inf, np.inf, 0.0, 0.0], (50, 1)))
    half = draws(G.Natural(), np.full(1000, 2.0**-1023), 1)
    assert 350 < np.count_nonzero(half) < 650
    assert not np.isfinite(draws(G.Natural(), np.array([np.nan]), 1)).any()


@EVERY
def test_what_is_contractive_contracts_on_average(C):
    v = np.random.default_rng(4).standard_normal(12)
    rng = np.random.default_rng(0)
    away = [np.sum((contracted(C, C.compress(v, rng), v.shape) - v) ** 2) for _ in range(2000)]
    assert np.mean(away) <= (1 - C.alpha(12)) * np.sum(v**2) * 1.1 + 1e-12
    omega = C.omega(12)
    assert C.alpha(12) == (min(1.0, 3 / 12) if omega is None else pytest.approx(1 / (1 + omega)))


@pytest.mark.parametrize(
    ("text", "C"), [("top-3", G.TopK(3)), ("random-12", G.RandomK(12)), ("natural", G.Natural()), ("none", G.NoCompression())]
)
def test_compressors_have_names(text, C):
    assert as_compressor("EF21", text) == C


@pytest.mark.parametrize("given", ["top", "top-", "top-x", "top--1", "Natural", "", "natural-3"])
def test_other_names_are_refused(given):
    with pytest.raises(ex.InputError, match=r'`DMFW\(compressor=...\)` must be "top-10", .* got'):
        ex.DMFW(compressor=given)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: G.TopK(0), r"`TopK\(k=...\)` must be a whole number of at least 1, got 0"),
        (lambda: G.RandomK(2.5), r"`RandomK\(k=...\)`"),
        (lambda: ex.EF21FW("top-0"), r"`TopK\(k=...\)`"),
        (lambda: ex.EF21FW(3), r"`EF21FW\(compressor=...\)` must be a compressor such as TopK\(10\), got 3"),
        (lambda: ex.EF21FW(G.TopK), "compressor"),
    ],
)
def test_bad_compressors_are_refused(make, match):
    with pytest.raises(ex.InputError, match=match):
        make()
