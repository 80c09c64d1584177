"""Counts are what really reached the objective and the set; certificates are counted apart and are sparing."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from cases import DIM, METHODS, N, for_separable, full, linear_only, model, separable, slides

import extremal as ex

EVERY_METHOD = pytest.mark.parametrize("method", METHODS, ids=repr)
ON_ANY_SUM = pytest.mark.parametrize("method", [m for m in METHODS if not linear_only(m)], ids=repr)


class Witness:
    """Counts what really reaches an objective and a set."""

    def __init__(self):
        self.grads = self.lmos = self.values = 0
        witness, inner = self, separable(ex.Logistic())

        def grad(x, idx):
            witness.grads += len(idx)
            return inner._grad(x, idx)

        def value(x, idx):
            witness.values += len(idx)
            return inner._value(x, idx)

        @dataclass(frozen=True)
        class Ball(ex.L1Ball):
            def lmo(self, g):
                witness.lmos += 1
                return super().lmo(g)

        self.f = ex.Separable(N, DIM, grad=grad, value=value, convex=True, smoothness=inner.smoothness)
        self.C = Ball(2.0)


@ON_ANY_SUM
@pytest.mark.parametrize("tol", [0.0, 1e-2])
def test_calls_are_what_reached_the_objective_and_the_set(method, tol):
    w = Witness()
    method = for_separable(method, ex.Logistic(), w.C)
    r = ex.minimize(w.f, w.C, method=method, tol=tol, atol=0, max_grads=150 * N)
    assert r.calls.total_grads == w.grads
    twice = isinstance(method, ex.NCGS)  # its two sub-problems begin with the same question, which is answered once
    assert 0 <= r.calls.lmos + r.calls.certificate_lmos - w.lmos <= twice * r.n_iter
    assert r.calls.values + r.calls.certificate_values == w.values
    assert r.calls.lmos >= r.n_iter if slides(method) else r.calls.lmos == r.n_iter


@EVERY_METHOD
def test_certificates_cost_n_gradients_each_unless_the_gradient_is_exact(method):
    exact = []
    r = ex.minimize(
        model(ex.Logistic()),
        ex.L1Ball(2.0),
        method=method,
        max_grads=150 * N,
        callback=lambda s: exact.append(s.exact),
        tol=0,
        atol=0,
    )
    paid = sum(k >= len(exact) or not exact[k] for k in r.trace.iter[:-1])
    assert N * paid <= r.calls.certificate <= N * (paid + 1)  # the last iterate's flag is not seen by the callback
    if isinstance(method, ex.FrankWolfe):
        assert r.calls.certificate == 0
    assert r.calls.certificate <= 12 * N  # sparing: 10 passes apart, then a quarter of what has been spent


@EVERY_METHOD
def test_a_methods_own_count_is_pure(method):
    """Neither tolerances nor recording change what the method asks for, or where it goes."""
    runs = [
        ex.minimize(model(ex.Logistic()), ex.L1Ball(2.0), method=method, max_iter=60, tol=tol, atol=0, record=record)
        for tol, record in ((0, None), (1e-300, None), (0, 0.3), (1e-300, ex.Record(0.7, what=("value", "gap", "x"))))
    ]
    for r in runs[1:]:
        assert (r.calls.grads, r.calls.lmos, r.calls.values) == (runs[0].calls.grads, runs[0].calls.lmos, runs[0].calls.values)
        np.testing.assert_array_equal(r.x, runs[0].x)
    assert runs[2].calls == runs[0].calls
    assert runs[3].calls == runs[1].calls
    assert math.isclose(full(ex.Logistic(), runs[0].x)[0], runs[0].value)
