"""The data, sets and estimators that bursts are run on, and the comparison with the readable loop."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

import extremal as ex
from extremal import gradients, laws, steps

N, DIM = 120, 24
RNG = np.random.default_rng(5)
SPARSE = sp.random_array((N, DIM), density=0.25, rng=np.random.default_rng(1), format="csr", data_sampler=RNG.standard_normal)
DENSE = RNG.standard_normal((N, DIM))
ONES = sp.csr_array((SPARSE != 0).astype(np.float64))
LABELS = np.where(RNG.random(N) < 0.5, 1.0, -1.0)
TARGETS = RNG.standard_normal(N)  # no labels: with these, ones and squares there are ties between sums that rounding decides
LOWER, UPPER = -np.linspace(0.1, 0.9, DIM), np.linspace(0.2, 0.7, DIM)
DATA = {
    "csr": SPARSE,
    "csr, one value": ONES,
    "csr, wide indices": sp.csr_array(
        (SPARSE.data, *(a.astype(np.int64) for a in (SPARSE.indices, SPARSE.indptr))), SPARSE.shape
    ),
    "dense": DENSE,
}
SETS = {
    "l1": ex.L1Ball(3.0),
    "weighted": ex.WeightedL1Ball(3.0, np.linspace(0.5, 2.0, DIM)),
    "simplex": ex.Simplex(2.0),
    "unit": ex.UnitSimplex(2.0),
    "linf": ex.LinfBall(0.3),
    "linf, centre": ex.LinfBall(0.3, centre=LOWER),
    "box": ex.Box(LOWER, UPPER),
    "cube": ex.Box(-0.2, 0.3),
    "capped": ex.CappedSimplex(0.15),
    "caps": ex.CappedSimplex(UPPER / 3),
    "hyper": ex.Hypersimplex(5, 0.3),
    "budget": ex.BudgetBox(LOWER, UPPER, 0.5),
}
LAW = laws.PowerLaw(4.0, 9.0, -2 / 3)
ESTIMATORS = {
    "sarah": gradients.Sarah(5, 0.03),
    "sarah, repeats": gradients.Sarah(9, 0.03, replace=True),
    "storm": gradients.Storm(5),
    "storm, law": gradients.Storm(5, LAW, replace=True),
    "momentum": gradients.Momentum(5),
    "momentum, repeats": gradients.Momentum(9, replace=True),
    "sag": gradients.Sag(5),
    "sag, law": gradients.Sag(9, LAW, replace=True),
    "saga": gradients.Saga(5),
    "saga, two": gradients.Saga(5, two_batches=True),
    "saga, repeats": gradients.Saga(9, replace=True),
    "saga, two, repeats": gradients.Saga(9, two_batches=True, replace=True),
    "saga sarah": gradients.SagaSarah(5, 0.05),
    "saga sarah, cold": gradients.SagaSarah(9, 0.2, start="cold", replace=True),
    "svrg": gradients.Svrg(5, 37),
    "svrg, doubling": gradients.Svrg(9, laws.Doubling(), replace=True),
    "substitute": gradients.Substitute(5),
    "substitute, repeats": gradients.Substitute(9, replace=True, scale=0.5),
}
ONE_EACH = ["sarah", "storm", "momentum", "sag", "saga, two", "saga sarah", "svrg", "substitute"]
ONE_SET_EACH = ["l1", "weighted", "simplex", "unit", "box", "budget"]


def step_of(gradient):
    if isinstance(gradient, gradients.Svrg):
        return steps.EpochOpenLoop()
    return steps.LuFreundStep() if isinstance(gradient, gradients.Substitute) else steps.Decay(2.0, 8.0)


def model(data, loss=None, dtype=np.float64):
    loss = loss or ex.Logistic()
    y = TARGETS if loss.labels is None else np.where(LABELS > 0, *loss.labels[::-1])
    return ex.LinearModel(loss, data.astype(dtype), y)


def both(f, C, gradient, step=None, **options):
    method = ex.Method(gradient, step or step_of(gradient))
    options = {"tol": 0, "atol": 0} | options
    return (ex.minimize(f, C, method, bursts=fast, **options) for fast in (True, False))


def agree(fast, slow, tol=1e-9):
    assert fast.calls == slow.calls
    assert (fast.n_iter, fast.status) == (slow.n_iter, slow.status)
    np.testing.assert_array_equal(fast.trace.iter, slow.trace.iter)
    np.testing.assert_array_equal(fast.trace.grads, slow.trace.grads)
    np.testing.assert_allclose(fast.x, slow.x, rtol=0, atol=tol)
    np.testing.assert_allclose(fast.trace.value, slow.trace.value, rtol=0, atol=tol)


def wide_model(seed=0, n=80, d=3000, density=0.004):
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, d), density=density, rng=rng, format="csr", data_sampler=rng.standard_normal)
    return ex.LinearModel(ex.Logistic(), A, np.where(rng.random(n) < 0.5, 1.0, -1.0))
