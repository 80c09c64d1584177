"""Flags are True or False, and no epoch or budget is so long that a method counts through it."""

from __future__ import annotations

import numpy as np
import pytest

import extremal as ex
from extremal.gradients.base import Facts
from extremal.gradients.batches import epoch_costs

F = ex.LinearModel(ex.Squared(), np.eye(20), np.ones(20))
FLAGS = [
    (ex.gradients.Saga, {"batch": 2}, "two_batches"),
    (ex.gradients.Saga, {"batch": 2}, "replace"),
    (ex.gradients.Sag, {"batch": 2}, "replace"),
    (ex.gradients.SagaSarah, {"batch": 2, "lam": 0.5}, "replace"),
    (ex.gradients.Sarah, {"batch": 2, "p": 0.5}, "replace"),
    (ex.gradients.Svrg, {"batch": 2, "epoch": 2}, "replace"),
    (ex.gradients.Spider, {"batch": 2, "epoch": 2}, "replace"),
    (ex.gradients.MiniBatch, {"batch": 2}, "replace"),
    (ex.gradients.Storm, {"batch": 2, "rho": ex.laws.PowerLaw(1, 1, -1)}, "replace"),
    (ex.gradients.Momentum, {"batch": 2, "rho": ex.laws.PowerLaw(1, 1, -1)}, "replace"),
    (ex.gradients.Substitute, {"batch": 2}, "replace"),
    (ex.SagaFW, {}, "two_batches"),
    (ex.SarahFW, {}, "replace"),
    (ex.SagaSarahFW, {}, "replace"),
]


@pytest.mark.parametrize(("kind", "others", "name"), FLAGS)
def test_a_flag_is_true_or_false(kind, others, name):
    assert vars(kind(**others, **{name: np.True_}))[name] is True
    for wrong in (1, "no", None):
        with pytest.raises(ex.InputError, match=rf"`{kind.__name__}\({name}=\.\.\.\)` must be True or False"):
            kind(**others, **{name: wrong})


@pytest.mark.parametrize("method", [ex.SVFW(epoch=10**15), ex.SpiderFW(epoch=10**15)], ids=repr)
def test_a_long_epoch_is_not_counted_through(method):
    assert ex.minimize(F, ex.L1Ball(1.0), method, max_iter=5, tol=0).n_iter == 5


def test_costs_of_long_epochs():
    def costs(phase):
        return 20 if phase.k == 0 else 2 * min(20, 1 + phase.k)

    exact = (20 + sum(2 * min(20, 1 + k) for k in range(1, 10**5))) / 10**5
    assert epoch_costs(10**5, costs) == pytest.approx(exact, rel=1e-9)
    assert epoch_costs(10**12, lambda phase: 20 if phase.k == 0 else 4) == (20 + 4 * (10**12 - 1)) / 10**12


def test_a_large_budget_is_not_counted_through():
    """Batches by a law, and a budget for which adding up costs would take hours."""
    assert Facts(start=0, per_step=lambda k: 10).iterations(10**15) == pytest.approx(10**14, rel=1e-9)
    assert Facts(start=0, per_step=lambda k: 10).iterations(1005) == 100
    method = ex.Method(ex.gradients.MiniBatch(ex.laws.PowerLaw(1, 1, 2)), ex.steps.InverseSqrt())
    assert ex.minimize(F, ex.L1Ball(1.0), method, max_iter=5, max_grads=10**15, tol=0).n_iter == 5
