"""What the README promises, by the cases that once broke it: answers inside, honest statuses, no lost work."""

import signal
import sys
import types

import numpy as np
import pytest
import scipy.sparse as sp

import extremal as ex
from extremal.objectives.intercept import InterceptModel
from extremal.points.vertex import DenseVertex
from extremal.support.lazy import imported, unbroken

RNG = np.random.default_rng(0)


# the constraint holds


def test_weights_that_are_extrapolated_keep_their_sum():
    """Newton steps over atoms went 10^6 times as far as they should, and multiplied the error of the sum each time."""
    f = ex.LinearModel(ex.Poisson(), [[-0.2, 1.2, 1.7], [-0.5, 1.3, -0.6], [0.1, 1.1, -0.3]], [0, 0, 1])
    C = ex.Hypersimplex(2, 11.0)
    r = ex.minimize(f, C)
    assert r.converged
    assert C.contains(r.x, 1e-12)
    assert r.x.sum() == pytest.approx(22.0, rel=1e-14)
    assert r.violation <= 1e-12


@pytest.mark.parametrize("loss", [ex.Poisson(), ex.Huber(0.1), ex.Quantile(0.3, width=1e-3), ex.Logistic()], ids=repr)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_answers_lie_in_their_sets_at_every_scale(loss, scale):
    A, y = RNG.standard_normal((40, 6)) * 10.0 ** RNG.uniform(-4, 4, 6), RNG.integers(0, 2, 40).astype(float)
    f = ex.LinearModel(loss, A, 2 * y - 1 if loss.labels else y)
    for C in (ex.Hypersimplex(3, scale), ex.L2Ball(scale), ex.CappedSimplex(0.4 * scale, scale), ex.KSupportBall(scale, 2)):
        r = ex.minimize(f, C, max_iter=40)
        assert C.contains(r.x, 1e-12), C
        assert r.status not in ("outside", "uncertified")


def test_sliding_on_float32_rows_stays_on_the_simplex():
    A, y = RNG.standard_normal((300, 5)).astype(np.float32), RNG.standard_normal(300)
    r = ex.minimize(ex.LinearModel(ex.Squared(), A, y), ex.Simplex(), "vr-sliding", max_grads=30_000)
    assert r.x.dtype == np.float64
    assert abs(r.x.sum() - 1) <= 1e-14


@pytest.mark.parametrize("method", ["cgs", "scgs", "newton-fw", "frank-wolfe", "sarah-fw", "auto"])
@pytest.mark.parametrize("size", [1e-300, 1e-150, 1e150, 1e253])
def test_sizes_at_the_end_of_the_numbers_get_words(method, size):
    """An answer with its status, or one sentence; never another error, nor a warning."""
    f = ex.LinearModel(ex.Squared(), RNG.standard_normal((30, 3)), RNG.standard_normal(30))
    try:
        r = ex.minimize(f, ex.LinfBall(size), method, max_iter=5)
    except (ex.InputError, ex.NonFiniteError):
        return
    assert ex.LinfBall(size).contains(r.x)


# the tolerance is reached, or there is a reason


@pytest.mark.parametrize(
    "C", [ex.L1Ball(1.0), ex.L2Ball(0.5), ex.Box(-0.1, 0.2), ex.GroupBall(0.7, np.arange(12) // 3)], ids=repr
)
def test_float32_rows_reach_the_tolerances_of_float64(C):
    A = RNG.standard_normal((500, 12)).astype(np.float32)
    y = np.where(A[:, 0] - A[:, 1] + RNG.standard_normal(500) > 0, 1.0, -1.0)
    assert ex.minimize(ex.LinearModel(ex.Logistic(), A, y), C, tol=1e-8, atol=0).converged


def test_what_float64_cannot_certify_is_said():
    """An exact fit of numbers near 10^6: f vanishes, and the last digits of x decide about the gap."""
    A = 1e6 * RNG.standard_normal((5, 20))
    f = ex.LinearModel(ex.Squared(), A, A @ RNG.standard_normal(20))
    r = ex.minimize(f, ex.L2Ball(100.0))
    assert r.value <= 1e-25 * f.value(np.zeros(20))
    assert r.converged or (r.status == "precision" and "float64" in r.status.sentence)


class Blind(ex.L2Ball):
    """An oracle that proves nothing."""

    def lmo(self, g):
        v = super().lmo(g)
        return DenseVertex(v.to_array(), low=-np.inf)


def test_an_infinite_gap_is_no_plain_result():
    f = ex.LinearModel(ex.Squared(), np.eye(3), np.array([1.0, 2.0, 3.0]))
    r = ex.minimize(f, Blind(1.0), ex.FrankWolfe(), max_iter=5)
    assert r.gap == np.inf
    assert (r.status, r.converged) == ("uncertified", False)
    assert "no finite gap" in repr(r)


# nothing is lost


class Interrupted(ex.Separable):
    """Ctrl-C comes with the n-th value."""

    def __init__(self, when):
        P = np.eye(3)
        super().__init__(3, 3, grad=lambda x, i: x - P[i], value=lambda x, i: ((x - P[i]) ** 2).sum(axis=1) / 2, convex=True)
        self.when, self.asked = when, 0

    def value(self, x):
        self.asked += 1
        if self.asked == self.when:
            raise KeyboardInterrupt
        return super().value(x)


@pytest.mark.parametrize("when", [1, 2, 3])
def test_ctrl_c_in_a_certificate_keeps_the_answer(when):
    r = ex.minimize(Interrupted(when), ex.Simplex(), ex.FrankWolfe(), max_iter=2, tol=0, atol=0, record=1)
    assert ex.Simplex().contains(r.x)
    assert np.isfinite(r.gap)
    assert r.status in ("interrupted", "max_iter")


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_ctrl_c_waits_for_imports(tmp_path, monkeypatch):
    (tmp_path / "slow_to_import.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\nDONE = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = signal.default_int_handler  # whoever runs the tests in the background may have turned it off
    outside = signal.signal(signal.SIGINT, before)
    with pytest.raises(KeyboardInterrupt):
        imported("slow_to_import")
    assert sys.modules["slow_to_import"].DONE  # whole
    assert signal.getsignal(signal.SIGINT) is before
    assert isinstance(imported("slow_to_import"), types.ModuleType)
    with unbroken():
        pass
    signal.signal(signal.SIGINT, outside)


# the same question, the same answer


def test_intercepts_do_not_depend_on_what_was_asked_before():
    A, y = RNG.standard_normal((50, 4)), RNG.integers(0, 3, 50)
    z = [RNG.standard_normal((50, 3)) for _ in range(3)]
    f = InterceptModel(ex.Multinomial(3), A, y)
    first = [f.level(a.copy()) for a in z]
    again = [f.level(a.copy()) for a in reversed(z)][::-1]
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)


def test_intercepts_of_margins_that_are_far_apart():
    """Newton steps from far away once ended where derivatives do not vanish, and the gap there was no certificate."""
    labels, w = np.array([0, 1, 2, 1, 3]), np.ones(5)
    f = InterceptModel(ex.Multinomial(6), RNG.standard_normal((5, 2)), labels, w)
    for scale in (1.0, 1e2, 1e4):
        z = scale * RNG.standard_normal((5, 6))
        c = f.loss.deriv(z + f.level(z), f.y)
        assert np.abs(c.mean(axis=0)).max() <= 1e-6


@pytest.mark.parametrize("radius", [1e160, 1e220])
def test_gaps_that_are_no_numbers_end_in_words(radius):
    A, y = np.random.default_rng(0).standard_normal((5, 8)), np.arange(5.0)
    r = ex.minimize(ex.InterceptModel(ex.Huber(), 1e150 * A, y), ex.L1Ball(radius))
    assert not r.converged
    assert r.status in ("uncertified", "non_finite", "stalled", "max_grads", "precision")


def test_the_default_budget_does_not_end_a_sparse_run_that_converges():
    """Products with a Hessian count as passes; 1000 of them were over after a third of a second, at a relative gap of 0.1."""
    rng, (n, d, draws) = np.random.default_rng(0), (7770, 8156, 44)
    p = (np.arange(d) + 10.0) ** -0.9
    rows, cols = np.repeat(np.arange(n), draws), rng.choice(d, n * draws, p=p / p.sum())
    A = sp.csr_matrix((np.ones(n * draws), (rows, cols)), shape=(n, d))  # repeated words add up
    A.data = (1 + np.log(A.data)) * np.log(n / np.maximum(1, np.bincount(A.indices, minlength=d)))[A.indices]
    A = sp.csr_matrix(sp.diags_array(1 / np.sqrt(A.multiply(A).sum(axis=1).A1)) @ A)
    w = np.zeros(d)
    w[rng.choice(5000, 400, replace=False)] = 6 * rng.standard_normal(400)
    y = -np.ones(n)
    y[np.argsort(-(A @ w + 0.3 * rng.logistic(size=n)))[:538]] = 1
    r = ex.minimize(ex.LinearModel(ex.Logistic(), A, y), ex.L1Ball(20_000.0))
    assert r.converged
