"""Methods from texts: beginnings of names, parameters, and steps that are scaled."""

import numpy as np
import pytest

import extremal as ex
from extremal.checks import InputError
from extremal.methods.method import Budget
from extremal.methods.parse import Tuned, full_name, recipe


def test_methods_by_beginnings_and_parameters():
    assert full_name("negiar") == "negiar-sfw"
    assert full_name("auto") == "auto"
    assert recipe("auto", batch=3) == ex.Auto()
    assert recipe("sarah-fw", batch=7) == ex.SarahFW(batch=7)
    assert recipe("saga-sarah-fw:start=cold:batch=5", batch=7) == ex.SagaSarahFW(batch=5, start="cold")
    assert recipe("frank-wolfe", batch=7) == ex.FrankWolfe()  # which has no batches
    assert recipe("sarah-fw:replace=False") == ex.SarahFW() != recipe("sarah-fw:replace=true")
    assert recipe("sarah-fw:step=small-batch") == ex.SarahFW(step=ex.steps.SmallBatch())
    assert recipe("pairwise-fw:step=backtracking") == ex.PairwiseFW(step=ex.steps.Backtracking())
    assert recipe("saga-fw:step=batch-curvature") == ex.SagaFW(step=ex.steps.BatchCurvature())
    assert recipe("sarah-fw:step=secant") == ex.SarahFW(step=ex.steps.Secant())
    for text in ("sarah-fw:replace=perhaps", "sarah-fw:step=big"):
        with pytest.raises(InputError, match="Accepted"):
            recipe(text)


@pytest.mark.parametrize("text", ["sa", "nothing", "", "sarah-fw:bath=3", "sarah-fw:batch", "frank-wolfe:batch=3", "auto:bath=3"])
def test_methods_that_cannot_be_read(text):
    with pytest.raises(InputError, match="method"):
        recipe(text)


def test_a_tuned_method_is_the_method_with_its_step_scaled():
    A, y = np.eye(4), np.array([1.0, -1.0, 1.0, -1.0])
    f, C = ex.LinearModel(ex.Logistic(), A, y), ex.L1Ball(2.0)
    got = ex.minimize(f, C, Tuned(ex.FrankWolfe(), 0.1), max_iter=20, tol=0, atol=0)
    want = ex.minimize(f, C, ex.FrankWolfe(step=ex.steps.Scaled(ex.steps.OpenLoop(), 0.1)), max_iter=20, tol=0, atol=0)
    np.testing.assert_array_equal(got.x, want.x)
    assert not np.array_equal(got.x, ex.minimize(f, C, ex.FrankWolfe(), max_iter=20, tol=0, atol=0).x)


def test_what_goes_with_the_step_is_scaled_with_it():
    f = ex.LinearModel(ex.Logistic(), np.eye(4), np.array([1.0, -1.0, 1.0, -1.0]))
    method = Tuned(ex.LuFreundSFW(batch=2), 0.1).prepare(f, ex.L1Ball(2.0), Budget(max_iter=5))
    assert (method.step.factor, method.gradient.scale) == (0.1, 0.1)
    assert Tuned(ex.LuFreundSFW(batch=2), 1.0).prepare(f, ex.L1Ball(2.0), Budget()).gradient.scale == 1.0
