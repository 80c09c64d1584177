"""Kernels that other kernels call have a second form, without machine code of its own."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from numba.core import config
from numba.core.codegen import JITCPUCodegen

from extremal.kernels.jit import inner_kernel, jit, long_vectors, summing, vectors

PLAIN = config.DISABLE_JIT  # pyright: ignore[reportAttributeAccessIssue]
pytestmark = pytest.mark.skipif(bool(PLAIN), reason="nothing is compiled")


@jit
def quotient(a, b):
    return a // b


@summing
def total(x):
    found = 0.0
    for i in range(x.size):
        found += x[i]
    return found


@long_vectors
def scaled(x, c):
    new = np.empty(x.size)
    for i in range(x.size):
        new[i] = c * x[i]
    return new


@inner_kernel
def only_within(x):
    return total(x) + x.size


@vectors
def outer(x, c):
    return only_within(scaled(x, c)), total(x)


@jit
def divides(a, b):
    return quotient(a, b)


def test_both_forms_give_the_same_number():
    x = np.random.default_rng(0).standard_normal(1000)
    assert outer(x, 3.0) == (total(scaled(x, 3.0)) + 1000, total(x))
    np.testing.assert_array_equal(scaled(x, 3.0), 3.0 * x)


def test_the_form_for_kernels_has_no_machine_code(monkeypatch):
    added, add = [], JITCPUCodegen._add_module
    monkeypatch.setattr(JITCPUCodegen, "_add_module", lambda self, module: added.append(module.name) or add(self, module))
    x = np.ones(3, np.float32)  # of a type that no other test compiles
    assert numba.njit(lambda x: only_within(scaled(x, 2.0)) + total(x))(x) == 12.0
    assert any("lambda" in name for name in added)
    assert not [name for name in added if name in ("only_within", "scaled", "total")]
    assert total(x) == 3.0


def test_an_error_within_reaches_python():
    assert divides(7, 2) == quotient(7, 2) == 3
    for kernel in (divides, quotient):
        with pytest.raises(ZeroDivisionError):
            kernel(1, 0)
