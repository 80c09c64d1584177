"""The paper's data: the paper's methods against an independent optimum, at the order that the methods' dossier measured.

Needs the LIBSVM files in the directory that EXTREMAL_DATA names.
"""

import math
import os
from functools import cache

import numpy as np
import pytest

import extremal as ex
from extremal.methods.cards import METHODS

FOLDER = os.environ.get("EXTREMAL_DATA")
pytestmark = pytest.mark.skipif(FOLDER is None, reason="EXTREMAL_DATA names no directory with the paper's data sets")

# f(x) - f* after 100 passes at b = ceil(n/100), R = 20; measured once by independent code, one seed
ROWS = {  # a8a, w8a, mushrooms
    "momentum-sfw": (4.0e-3, 2.3e-4, 5.7e-4),
    "one-sample-sfw": (6.6e-4, 3.6e-5, 3.4e-4),
    "lu-freund-sfw": (4.0e-3, 4.2e-4, 1.7e-3),
    "negiar-sfw": (1.1e-5, 8.1e-7, 2.6e-6),
    "sarah-fw": (1.7e-3, 8.3e-6, 2.8e-4),
    "saga-sarah-fw": (2.9e-4, 1.2e-5, 8.9e-5),
}
MEASURED = {(name, m): row[i] for m, row in ROWS.items() for i, name in enumerate(("a8a", "w8a", "mushrooms"))}
RADIUS = 20.0


@cache
def problem(name):
    f = ex.LinearModel(ex.Logistic(), *ex.datasets.load(name, download=False))
    return f, accelerated_projected_gradient(f, RADIUS)


def accelerated_projected_gradient(f, radius, iterations=3000):
    """min f over the l1 ball by a method of another kind, with restarts; certified by its gap."""
    x = z = np.zeros(f.shape)
    t = 1.0
    for k in range(iterations):
        g = f.grad(z)
        new = project(z - g / f.smoothness, radius)
        if g @ (new - x) > 0:  # the momentum points uphill: start it anew
            t, z = 1.0, new
        else:
            t, before = (1 + math.sqrt(1 + 4 * t * t)) / 2, t
            z = new + (before - 1) / t * (new - x)
        x = new
        if k % 100 == 99 and gap(f, x, radius) < 1e-8:
            break
    assert gap(f, x, radius) < 1e-7
    return f.value(x)


def gap(f, x, radius):
    g = f.grad(x)
    return g @ x + radius * np.abs(g).max()


def project(v, radius):
    a = np.abs(v)
    if a.sum() <= radius:
        return v
    u = np.sort(a)[::-1]
    excess = np.cumsum(u) - radius
    k = np.flatnonzero(u > excess / np.arange(1, len(u) + 1))[-1]
    return np.sign(v) * np.maximum(a - excess[k] / (k + 1), 0)


@pytest.mark.parametrize(("name", "method"), MEASURED)
def test_order_of_the_error_after_100_passes(name, method):
    f, optimum = problem(name)
    b = math.ceil(f.n / 100)
    errors = []
    for seed in range(3):
        r = ex.minimize(f, ex.L1Ball(RADIUS), method=METHODS[method](batch=b), max_grads=100 * f.n, seed=seed, tol=0, atol=0)
        errors.append(r.value - optimum)
        assert ex.L1Ball(RADIUS).contains(r.x)
        assert r.gap == pytest.approx(gap(f, r.x, RADIUS), rel=1e-9)
        assert -1e-7 <= r.value - optimum <= r.gap
    assert MEASURED[name, method] / 4 < np.mean(errors) < MEASURED[name, method] * 4


def test_sizes():
    f, _ = problem("a8a")
    assert (f.n, *f.shape) == (22696, 123)  # what the paper calls a9a
    f, _ = problem("w8a")
    assert (f.n, *f.shape) == (49749, 300)
