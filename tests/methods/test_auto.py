"""The method for those who do not choose one, and paths: what is picked and why, certificates, and never worse than x0."""

import logging

import cases
import numpy as np
import pytest
import scipy.sparse as sp
from test_newton import problem

import extremal as ex
from extremal.run.starts import ahead, moved_inside

RNG = np.random.default_rng(0)


def choice(f, C):
    return ex.Auto().choose(f, C.on(f.shape))


# what is picked


def test_newton_steps_where_they_can_be_made():
    f = problem(ex.Logistic())
    for C in (
        ex.L1Ball(1.0),
        ex.Simplex(),
        ex.UnitSimplex(),
        ex.L2Ball(1.0),
        ex.Box(0, 1),
        ex.GroupBall(1.0, np.arange(12) // 3),
    ):
        assert isinstance(choice(f, C).recipe, ex.NewtonFW), C


def test_many_columns_without_spikes_are_left_to_other_methods():
    wide = ex.LinearModel(ex.Squared(), sp.random_array((50, 3000), density=0.01, rng=0), np.ones(50))
    assert isinstance(choice(wide, ex.L1Ball(1.0)).recipe, ex.NewtonFW)
    assert isinstance(choice(wide, ex.L2Ball(1.0)).recipe, ex.FullyCorrectiveFW)


def test_the_choice_asks_neither_the_oracle_nor_a_clock(monkeypatch):
    class Silent(ex.L2Ball):
        def lmo(self, g):
            raise AssertionError("asked")

    for name in ("perf_counter", "process_time", "monotonic", "time"):
        monkeypatch.setattr(f"time.{name}", lambda: pytest.fail("looked at a clock"))
    assert isinstance(choice(problem(ex.Logistic()), Silent(1.0)).recipe, ex.NewtonFW)


def test_matrices_manifolds_cuts_and_sums():
    entries = ex.LinearModel(ex.Squared(), ex.Entries([0, 1, 1], [2, 0, 1], (2, 3)), np.array([1.0, 2.0, -1.0]))
    assert isinstance(choice(entries, ex.NuclearBall(1.0)).recipe, ex.LowRankFW)
    outputs = ex.LinearModel(ex.Multinomial(3), RNG.standard_normal((3000, 4)), RNG.integers(0, 3, 3000))
    assert isinstance(choice(outputs, ex.L1Ball(1.0)).recipe, ex.NewtonFW)
    assert isinstance(choice(outputs, ex.NuclearBall(1.0)).recipe, ex.NewtonFW)
    wide = ex.LinearModel(ex.Multinomial(3), RNG.standard_normal((30, 400)), RNG.integers(0, 3, 30))
    assert isinstance(choice(wide, ex.L2Ball(1.0)).recipe, ex.VRSliding)
    assert isinstance(choice(wide, ex.NuclearBall(1.0)).recipe, ex.LowRankFW)
    assert isinstance(choice(cases.separable(ex.Squared()), ex.L1Ball(1.0)).recipe, ex.NewtonFW)
    cut = ex.AffineCut(ex.Simplex(), np.ones((1, 12)), upper=1.5)
    assert isinstance(choice(problem(ex.Squared()), cut).recipe, ex.MostFW)
    mean = ex.KarcherMean([np.eye(2), 2 * np.eye(2)])
    r = ex.minimize(mean, ex.LoewnerInterval(np.eye(2), 3 * np.eye(2)), max_iter=20)
    assert "SPD" in r.why


def test_many_margins_are_not_kept(monkeypatch):
    wide = ex.LinearModel(ex.Squared(), sp.random_array((50, 3000), density=0.01, rng=0), np.ones(50))
    monkeypatch.setattr("extremal.methods.auto.MARGINS", 1000)
    found = choice(wide, ex.L2Ball(1.0))
    assert isinstance(found.recipe, ex.PairwiseFW)
    assert "memory" in found.why


def test_the_reasons_are_in_the_result_and_in_the_log(caplog):
    f = problem(ex.Logistic())
    with caplog.at_level(logging.INFO, "extremal"):
        r = ex.minimize(f, ex.L1Ball(1.0))
    assert r.why.startswith("NewtonFW: 400 x 12 rows in memory")
    assert r.why in repr(r)
    assert any(r.why in record.getMessage() for record in caplog.records)
    assert ex.minimize(f, ex.L1Ball(1.0), "newton-fw").why == ""


def test_auto_is_a_name_and_the_default():
    f = problem(ex.Logistic())
    a, b = (ex.minimize(f, ex.L1Ball(1.0), method=method) for method in ("auto", None))
    assert a.method == b.method
    np.testing.assert_array_equal(a.x, b.x)
    assert a.converged
    assert a.gap <= 1e-4 * a.value + 1e-10


# certificates, and never worse than x0


@pytest.mark.parametrize("loss", [ex.Logistic(), ex.NonlinearLeastSquares(), ex.Huber(0.5)], ids=repr)
@pytest.mark.parametrize("budget", [{"max_iter": 1}, {"max_iter": 3}, {"max_grads": 4000}, {}])
def test_never_worse_than_where_it_started(loss, budget):
    for seed in range(3):
        f = problem(loss, n=3000, d=60, seed=seed, sparse=True)
        C = ex.L1Ball(50.0)
        for x0 in (None, 0.3 * np.eye(60)[seed], ex.minimize(f, C, tol=1e-9).x):
            start = f.value(np.zeros(60) if x0 is None else x0)
            r = ex.minimize(f, C, x0=x0, seed=seed, **budget)
            assert r.value <= start
            value, g = f.value_and_grad(r.x)
            assert r.value == pytest.approx(value, rel=1e-13)
            assert r.gap == pytest.approx(g @ r.x - C.lmo(g).dot(g), abs=1e-13)


def test_the_start_is_returned_if_the_run_ends_above_it():
    """A sample that misleads: after one step on it f is larger than at the start. Huber's loss is the squared one here."""
    A = np.zeros((4000, 2))
    A[:, 0], A[::50, 1] = 1.0, 1.0
    f = ex.LinearModel(ex.Huber(1e6), A, np.where(A[:, 1] > 0, -100.0, 0.1))
    method = ex.Method(ex.gradients.Growing(parts=4), ex.steps.FullStep(), ex.moves.SpikeNewton())
    unguarded = [ex.minimize(f, ex.L1Ball(200.0), method, max_iter=1, seed=s).value for s in range(8)]
    guarded = [ex.minimize(f, ex.L1Ball(200.0), max_iter=1, seed=s).value for s in range(8)]
    assert all(a <= b for a, b in zip(guarded, unguarded, strict=True))
    assert all(value <= f.value(np.zeros(2)) for value in guarded)


# paths


@pytest.mark.parametrize("make", [ex.L1Ball, ex.Simplex, ex.L2Ball, lambda r: ex.GroupBall(r, np.arange(12) // 3)])
@pytest.mark.parametrize("sparse", [False, True])
def test_paths_are_the_solutions_one_by_one(make, sparse):
    f, radii = problem(ex.Logistic(), n=2000, sparse=sparse), [0.2, 3.0, 0.7, 1.5, 0.7]
    results = ex.path(f, [make(r) for r in radii], tol=1e-8)
    for radius, r in zip(radii, results, strict=True):
        alone = ex.minimize(f, make(radius), tol=1e-8)
        assert r.converged
        assert make(radius).on(12).contains(r.x)
        assert r.value == pytest.approx(alone.value, rel=2e-8)


def test_paths_of_other_methods_and_matrices():
    f = problem(ex.Logistic(), n=300)
    for method in ("pairwise-fw", "sarah-fw", "fully-corrective-fw"):
        results = ex.path(f, [ex.L1Ball(r) for r in (0.5, 1.0, 2.0)], method, tol=1e-2)
        assert [r.converged for r in results] == [True] * 3
    known = RNG.random((12, 9)) < 0.6
    M = RNG.standard_normal((12, 2)) @ RNG.standard_normal((2, 9))
    g = ex.MatrixCompletion(*np.nonzero(known), M[known], centre=None, validation=0).objective
    values = [r.value for r in ex.path(g, [ex.NuclearBall(r) for r in (2.0, 5.0, 10.0)])]
    assert values[0] > values[1] > values[2]


def test_a_path_costs_less_than_its_solutions_alone():
    f = problem(ex.Logistic(), n=20_000, d=40, sparse=True)
    sets = [ex.L1Ball(r) for r in np.geomspace(0.5, 8, 12)]
    together = sum(r.calls.total_grads for r in ex.path(f, sets))
    alone = sum(ex.minimize(f, C, ex.NewtonFW(parts=1)).calls.total_grads for C in sets)
    assert together < 0.8 * alone


def test_what_paths_refuse():
    f = problem(ex.Logistic())
    assert ex.path(f, []) == []
    with pytest.raises(ex.InputError, match="sets"):
        ex.path(f, [1.0])
    with pytest.raises(ex.InputError, match=r"path.*tol"):
        ex.path(f, [ex.L1Ball(1.0)], tol=-1)
    with pytest.raises(ex.InputError, match=r"path.*max_iter"):
        ex.path(f, [ex.L1Ball(1.0)], max_iter=-1)


def test_inside_and_ahead():
    C = ex.L1Ball(1.0).on(2)
    x = np.array([0.2, 0.3])
    assert moved_inside(C, x) is x
    near = moved_inside(C, np.array([2.0, 0.0]))
    assert C.contains(near)
    assert near[0] > 0.999

    class State:
        def __init__(self, x):
            self.x = np.array(x)

    seen = [(4.0, State([4.0, 1.0])), (3.0, State([3.0, 0.5])), (2.0, State([2.0, 0.2]))]
    np.testing.assert_allclose(ahead(1.0, seen), [1.0, 0.1])
    np.testing.assert_allclose(ahead(1.0, seen[1:]), [1.0, 0.0])  # a sign that would change
    np.testing.assert_array_equal(ahead(1.0, seen[2:]), seen[2][1].x)


# what a reader of the code would try


def test_a_run_that_can_go_no_further_stops():
    f = problem(ex.Logistic(), n=3000)
    for C in (ex.L1Ball(1.0), ex.LinfBall(0.1), ex.L2Ball(0.2)):
        r = ex.minimize(f, C, tol=0, atol=0)
        assert r.status in ("precision", "stalled", "gap")
        assert r.calls.grads < 100 * f.n
        assert r.gap < 1e-9


@pytest.mark.parametrize("C", [ex.LinfBall(4.0), ex.L2Ball(10.0), ex.L1Ball(50.0)], ids=repr)
def test_single_precision_reaches_the_default_tolerance(C):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((200, 10))
        y = np.sign(A[:, 0] - A[:, 1] + rng.standard_normal(200))
        assert ex.minimize(ex.LinearModel(ex.Logistic(), A.astype(np.float32), y), C).converged


def test_a_cut_is_not_left_for_a_better_value_outside():
    C = ex.AffineCut(ex.Simplex(), np.array([[1.0, 0, 0]]), upper=0.1)
    r = ex.minimize(ex.LinearModel(ex.Squared(), np.eye(3), np.full(3, 1 / 3)), C, max_grads=30_000)
    assert C.on(3).contains(r.x, 2e-2)


def test_the_choice_does_not_depend_on_the_time_of_day():
    f = problem(ex.Logistic(), n=60, d=6)
    for C in (ex.LinfBall(1.0), ex.Box(-1, 1), ex.L2Ball(1.0), ex.GroupBall(1.0, np.arange(6) // 2)):
        assert isinstance(choice(f, C).recipe, ex.NewtonFW)


class Naive:
    """A loss whose second derivative overflows."""

    labels, convex, curvature = None, True, 0.25

    def value(self, z, y):
        return np.logaddexp(0, -y * z)

    def deriv(self, z, y):
        return -y / (1 + np.exp(np.clip(y * z, -700, 700)))

    def second(self, z, y):
        with np.errstate(all="ignore"):
            e = np.exp(-y * z)
            return e / (1 + e) ** 2


def test_second_derivatives_that_are_not_finite_are_named():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 4))
    f = ex.LinearModel(Naive(), A, np.sign(A[:, 0] + rng.standard_normal(300)))
    r = ex.minimize(f, ex.L1Ball(2000.0), x0=np.array([1000.0, -900.0, 50.0, 50.0]), max_iter=1000)
    assert r.status == "non_finite"
    assert ex.minimize(f, ex.L1Ball(2.0)).converged


def test_flat_losses_and_wide_simplices():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((100, 12))
    flat = ex.LinearModel(ex.Huber(1e-3), 1e8 * A, 1e8 * A[:, 0])
    assert ex.minimize(flat, ex.L1Ball(1e4), max_iter=50).value <= flat.value(np.zeros(12))
    wide = ex.LinearModel(ex.Squared(), rng.standard_normal((60, 2500)).astype(np.float32), rng.standard_normal(60))
    r = ex.minimize(wide, ex.Simplex(), max_iter=60)
    assert r.converged
    assert np.count_nonzero(r.x) < 100


def test_paths_over_simplices_are_warm():
    f = problem(ex.Logistic(), n=20_000, d=12)
    sets = [ex.Simplex(r) for r in np.geomspace(0.5, 4, 8)]
    together = sum(r.calls.total_grads for r in ex.path(f, sets))
    assert together < 0.9 * sum(ex.minimize(f, C, ex.NewtonFW(parts=1)).calls.total_grads for C in sets)
    with pytest.raises(ex.InputError, match="sets"):
        ex.path(f, ex.L1Ball(1.0))
    with pytest.raises(ex.InputError, match=r"f=\.\.\."):
        ex.path("x", [ex.L1Ball(1.0)])


@pytest.mark.parametrize("kind", [ex.L1Ball, ex.UnitSimplex, ex.L2Ball, ex.LinfBall], ids=lambda kind: kind.__name__)
def test_long_paths_do_not_tire(kind):
    """f rises from set to set: steps over one are not to be compared with those over the last."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((1000, 50))
    f = ex.LinearModel(ex.Logistic(), A, np.sign(A[:, 0] - A[:, 1] + 0.5 * rng.standard_normal(1000)))
    assert {r.status for r in ex.path(f, [kind(r) for r in np.geomspace(0.5, 20, 15)])} == {ex.Status.GAP}
