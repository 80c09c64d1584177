"""The benchmarks of the practical solver: that budgets are kept alike, minima are right, and bars are judged as they are said."""

import json
import math
import sys
import types

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize as scipy_minimize

import extremal as ex
from extremal.checks import InputError
from extremal.methods.cards import METHODS
from extremal_lab.bench import equal, l1_peers, l1_problems, peer_l1, practical, projected
from extremal_lab.bench.equal import Contest, Ran
from extremal_lab.bench.peer_l1 import Given
from extremal_lab.bench.problems import generated
from extremal_lab.bench.timing import Measurement, Skipped
from extremal_lab.reproduction.reference import reference


def run(score, grads=1, cpu=1.0):
    return Ran(score, 0.5, grads, cpu, 0.0, 1.0)


def case_of(problem, radius=3.0, passes=20.0):
    return equal.Case("small", problem.f, ex.L1Ball(radius), lambda value, gap: gap, problem.scipy_gradient(), passes)


@pytest.fixture(scope="module")
def small():
    return generated(400, 30, per_row=5)


@pytest.fixture(scope="module")
def l1_case():
    problem = l1_problems.like_rcv1(300, 400)
    (case,) = l1_problems.cases("like rcv1", (40.0,), problem)
    return case


# equal budgets


def test_the_score_is_that_of_the_last_iterate_at_the_budget(small):
    case = case_of(small)
    found = equal.ran(case, ex.SarahFW(batch=4), case.grads, seed=3, limit=60)
    r = ex.minimize(case.f, case.C, ex.SarahFW(batch=4), seed=3, tol=0, atol=0, max_grads=20 * 400)
    assert (found.score, found.value, found.grads) == (r.gap, r.value, r.calls.grads)
    assert found.setup > 0
    assert found.passes == pytest.approx((found.setup + found.cpu) / found.unit)


def test_time_is_counted_from_the_call(small, monkeypatch):
    """What is spent before the clock of the run starts is the set-up; a slow preparation shows."""
    prepare = ex.FrankWolfe.prepare

    def slow(self, f, C, budget):
        end = equal.time.process_time() + 0.05
        while equal.time.process_time() < end:
            pass
        return prepare(self, f, C, budget)

    before = equal.ran(case_of(small), ex.FrankWolfe(), 800, 0, 60)
    monkeypatch.setattr(ex.FrankWolfe, "prepare", slow)
    after = equal.ran(case_of(small), ex.FrankWolfe(), 800, 0, 60)
    assert after.setup - before.setup > 0.045


def test_a_run_at_equal_time_is_scaled_until_it_takes_the_time(small, monkeypatch):
    """2 ms a component gradient and a second of set-up: 60 passes of 0.1 s pay for 2500, whatever the first run was."""
    asked = []

    def fake(case, recipe, grads, seed, limit):
        asked.append(grads)
        return Ran(1.0, 1.0, grads, 0.002 * grads, 1.0, 0.1)

    monkeypatch.setattr(equal, "ran", fake)
    case = equal.Case("", small.f, ex.L1Ball(1.0), lambda value, gap: gap, small.scipy_gradient())
    found = equal.at_time(case, ex.FrankWolfe(), Ran(1.0, 1.0, 100, 1.0, 0.0, 0.1), seed=0, limit=1.0)
    assert found.passes == pytest.approx(60)
    assert asked == [600, 2500]


def test_all_are_run_once_and_the_best_from_all_seeds(monkeypatch, small):
    made = []
    names = {ex.FrankWolfe(): "fw", ex.SarahFW(): "sarah", ex.SagaSarahFW(): "saga"}
    scores = {"fw": [3.0], "sarah": [1.0, 5.0, 4.0], "saga": [2.0, 2.0, 1.0]}

    def fake(case, recipe, grads, seed, limit):
        made.append((names[recipe], grads))
        return run(scores[names[recipe]][seed])

    monkeypatch.setattr(equal, "ran", fake)
    case = case_of(small)
    found = equal.at_gradients(case, {name: recipe for recipe, name in names.items()}, seeds=3, finalists=2, limit=1.0)
    assert found.order == ["saga", "fw", "sarah"]
    assert {name: len(runs) for name, runs in found.runs.items()} == {"fw": 1, "sarah": 3, "saga": 3}
    assert {grads for _, grads in made} == {equal.WARM * 400, case.grads}


def test_what_is_no_number_is_last():
    assert Contest({"nan": [run(math.nan)], "one": [run(1.0)]}).order == ["one", "nan"]


def test_the_solver_keeps_within_both_budgets(small):
    case = case_of(small)
    found = equal.solver(case, "blended-pairwise-fw", seeds=2)
    assert all(r.grads <= case.grads for r in found.gradients)
    assert all(r.passes <= case.passes or r.grads <= 2 * 400 for r in found.times)
    assert "BlendedPairwise" in found.method


def test_of_rows_the_last_one_within_the_budget_counts(small):
    rows = [{"grads": g, "cpu": 0.1 * g, "value": 1 / g, "gap": 2 / g} for g in (10, 20, 30)]
    case = case_of(small)
    assert equal._last(case, rows, lambda row: row["grads"] <= 25, 0.0, 1.0).score == 2 / 20
    assert equal._last(case, rows, lambda row: row["grads"] <= 5, 0.0, 1.0).score == 2 / 10  # there is no earlier one


# the cases of the paper


def test_the_methods_are_those_of_the_table():
    """All rows for the kind of f, but the zeroth-order ones; the names that have no row are no contenders."""
    rows = {name: make.card for name, make in METHODS.items() if name not in ("fzfw", "fzcgs")}
    table = list(rows)[: list(rows).index("saga-sarah-fw") + 1]
    assert {name for name in table if rows[name].convex} <= set(practical.CONVEX)
    assert {name for name in table if rows[name].nonconvex or rows[name].no_rate} <= set(practical.OTHER)
    assert set(practical.CONVEX) | set(practical.OTHER) <= set(table)


def test_scores_are_f_minus_the_least_value_or_the_gap():
    problem = generated(300, 12, per_row=3)
    convex = practical._case(problem, "logistic", 2.0, 60.0)
    least = reference(problem.f, ex.L1Ball(2.0)).value
    assert convex.score(least + 0.25, 9.0) == pytest.approx(0.25)
    assert convex.score(least - 1e-14, 9.0) == practical.TINY
    other = practical._case(problem, "non-linear", 2.0, 60.0)
    assert other.score(5.0, 0.125) == 0.125
    assert set(other.f.y) == {0.0, 1.0}
    assert not other.f.convex


def outcome(ours, best, kind="logistic"):
    return practical.Outcome("a8a R = 2", kind, [run(s) for s in ours], Contest({"negiar-sfw": [run(best)]}), "newton")


def test_a_case_is_told_by_its_scores_and_their_ratio():
    auto, best, ratio = practical.told(outcome([1e-6, 3e-6, 2e-6], 1e-4), "gradients")
    assert (auto.name, auto.ratio) == ("logistic, gradients: a8a R = 2, auto", 2e-6)
    assert (best.name, best.ratio) == ("logistic, gradients: a8a R = 2, best: negiar-sfw", 1e-4)
    assert (ratio.ratio, ratio.bar, ratio.verdict) == (pytest.approx(0.02), 1.0, "met")


@pytest.mark.parametrize(
    ("ours", "best", "ratio", "verdict"),
    [
        (1e-13, 1e-5, 1e-5, "met"),  # solved counts as 1e-10
        (1e-13, 1e-15, 1.0, "met"),  # both have
        (1e-9, 1e-15, 10.0, "missed"),  # a method of the table has, and we have not
        (1e-3, 1e-4, 10.0, "missed"),
    ],
)
def test_what_is_solved_is_as_good_as_any(ours, best, ratio, verdict):
    found = list(practical.told(outcome([ours], best), "CPU"))[-1]
    assert (found.ratio, found.verdict) == (pytest.approx(ratio), verdict)


def test_the_bars_over_all_cases():
    """16 cases: 11 at 1e-6, one solved, 4 at a half; then a fifth that is not a tenth, and one that is worse."""
    good = [outcome([1e-9], 1e-3)] * 11 + [outcome([1e-12], 1e-11)] + [outcome([5e-4], 1e-3)] * 4
    assert [m.verdict for m in practical.verdicts(good, "logistic", "CPU")] == ["met", "met", "met"]
    assert [m.verdict for m in practical.verdicts(good[1:] + good[-1:], "logistic", "CPU")] == ["met", "missed", "met"]
    worse = [*good[:-1], outcome([2e-3], 1e-3)]
    assert [m.verdict for m in practical.verdicts(worse, "logistic", "CPU")] == ["missed", "met", "met"]
    slow = [outcome([2e-6], 1e-3)] * 16
    assert [m.verdict for m in practical.verdicts(slow, "logistic", "CPU")] == ["met", "met", "missed"]


def test_gaps_have_the_one_bar():
    found = list(practical.verdicts([outcome([1e-3], 1e-2, "non-linear")], "non-linear", "CPU"))
    assert [(m.name, m.verdict) for m in found] == [("non-linear, CPU, bars: cases that are worse", "met")]


# l1 problems


def test_minima_are_those_of_the_interior_point(l1_case):
    exact = reference(l1_case.problem.f, ex.L1Ball(40.0))
    assert l1_case.least == pytest.approx(exact.value, rel=1e-9)
    assert l1_case.gap <= 1e-12


def test_the_penalty_belongs_to_the_radius(l1_case):
    """The minimum of f + lambda |x|_1, by another solver on x = u - v, has length R."""
    f, d = l1_case.problem.f, 400

    def penalised(w):
        value, g = f.value_and_grad(w[:d] - w[d:])
        return value + l1_case.lam * w.sum(), np.concatenate([g, -g]) + l1_case.lam

    options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 0, "gtol": 1e-9}
    w = scipy_minimize(penalised, np.zeros(2 * d), jac=True, bounds=[(0, None)] * (2 * d), options=options).x
    assert w.sum() == pytest.approx(40.0, rel=1e-4)


def test_a_start_with_a_wrong_support_is_mended():
    """A coordinate that should be zero leaves, one that should not joins."""
    problem = generated(300, 12, per_row=3)
    x = reference(problem.f, ex.L1Ball(1.0)).x
    keep = np.abs(x) > 1e-6
    assert 2 < keep.sum() < 12
    wrong = np.where(keep, x, 0.05)
    wrong[np.flatnonzero(keep)[0]] = 0.0
    lam, least, gap = l1_problems.polished(problem.A, problem.y, wrong, 1.0)
    assert least == pytest.approx(problem.f.value(x), rel=1e-10)
    assert abs(gap) < 1e-13
    assert lam == pytest.approx(np.abs(problem.f.grad(x)).max(), rel=1e-6)


def test_rows_like_rcv1():
    problem = l1_problems.like_rcv1(2000, 47_236)
    assert 60 < problem.A.nnz / 2000 < 90
    assert problem.A.has_sorted_indices
    assert abs(problem.y.mean()) < 0.5
    again = l1_problems.like_rcv1(2000, 47_236)
    assert np.array_equal(again.A.data, problem.A.data)


@pytest.mark.parametrize("method", [projected.spectral, projected.accelerated])
def test_projected_gradients_arrive(l1_case, method):
    rows = projected.LogisticRows(l1_case.problem.A, l1_case.problem.y)
    found = projected.reached(method(rows, l1_case.radius), l1_case.score, (1e-2, 1e-6), limit=60.0)
    assert set(found) == {1e-2, 1e-6}
    assert found[1e-2] <= found[1e-6]


def test_a_projection_is_the_nearest_point():
    rng = np.random.default_rng(0)
    for _ in range(20):
        x = rng.standard_normal(7) * rng.choice([0.1, 1.0, 5.0])
        p = peer_l1.projected(x, 1.5)
        assert np.abs(p).sum() <= 1.5 + 1e-12
        s = ex.L1Ball(1.5).lmo(p - x)  # <x - p, s - p> <= 0 for all s in the ball
        assert float((x - p) @ p) >= -s.dot(p - x) - 1e-12


# peers


@pytest.fixture
def given(l1_case):
    problem = l1_case.problem
    return Given("small", problem.A, problem.y, l1_case.radius, l1_case.lam, l1_case.least)


def exact_fit(given):
    """A penalised solver that is exact on one coordinate, as many times as one asks."""

    def fit(lam, setting):
        x = np.zeros(given.A.shape[1])
        x[0] = given.radius * given.lam / lam * (1 + setting)
        return x

    return fit


def test_the_cheapest_setting_that_reaches_the_precision():
    tried = [(1.0, 5.0, 0.1), (0.1, 9.0, 1e-5), (0.01, 8.0, 1e-7)]
    assert peer_l1.cheapest(tried, 1e-4) == 0.01
    assert peer_l1.cheapest(tried[:2], 1e-4) == 0.1
    assert peer_l1.cheapest(tried[:2], 1e-6) is None


def test_a_sweep_ends_at_the_finest_precision_or_the_limit(given, monkeypatch):
    scores = iter([0.5, 1e-3, 1e-7, 1e-9])
    monkeypatch.setattr(Given, "score", lambda self, x: next(scores))
    monkeypatch.setattr(peer_l1, "in_passes", lambda given, work: (7.0, work()))
    settings = (1.0, 0.1, 0.01, 0.001)
    assert [t[2] for t in peer_l1.sweep(given, lambda lam, s: None, settings, 100.0)] == [0.5, 1e-3, 1e-7]
    scores = iter([0.5])
    assert len(peer_l1.sweep(given, lambda lam, s: None, settings, 6.0)) == 1


def test_the_search_finds_the_penalty(given, monkeypatch):
    """|x|_1 = R lam* / lam: the root is lam*, and the score tells how far |x|_1 is from R."""
    monkeypatch.setattr(Given, "score", lambda self, x: abs(np.abs(x).sum() / self.radius - 1))
    asked = []
    fit = exact_fit(given)
    seconds, solves, score = peer_l1.searched(given, lambda lam, s: asked.append(lam) or fit(lam, s), 0.0, 1e-6)
    assert asked[-1] == pytest.approx(given.lam, rel=1e-5)
    assert (solves, score <= 1e-6, seconds >= 0) == (len(asked), True, True)
    assert len(set(asked)) == len(asked) <= 8
    assert peer_l1.searched(given, exact_fit(given), 0.0, -1.0)[0] == math.inf  # a score that nobody has


def test_a_peer_says_what_it_took(given, monkeypatch, tmp_path, capsys):
    """From the file to the lines, with a package that is here only for the test; what is missing is said, too."""
    monkeypatch.setattr(Given, "score", lambda self, x: abs(np.abs(x).sum() / self.radius - 1))
    monkeypatch.setitem(sys.modules, "exact", types.SimpleNamespace(__version__="1.0"))
    peers = {"exact": (lambda A, y: exact_fit(given), (1.0, 1e-5, 1e-7, 0.0), "exact"), "gone": (None, (), "no_such_package")}
    monkeypatch.setattr(peer_l1, "PEERS", peers)
    monkeypatch.setattr(peer_l1, "SEARCHED", ("exact",))
    A = given.A
    arrays = {"data": A.data, "indices": A.indices, "indptr": A.indptr, "shape": A.shape, "y": given.y}
    names = {"names": ["small"], "radii": [given.radius], "lams": [given.lam], "least": [given.least]}
    np.savez(tmp_path / "data.npz", **arrays, **names)
    monkeypatch.setattr(peer_l1.warnings, "simplefilter", lambda what: None)
    peer_l1.main(str(tmp_path / "data.npz"), 3, 1e9)
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(s["kind"], s["precision"]) for s in said[:4]] == [(kind, p) for p in (1e-4, 1e-6) for kind in ("fit", "search")]
    assert {s["setting"] for s in said[:4] if s["precision"] == 1e-4} <= {1e-5, 1e-7, 0.0}
    assert {s["setting"] for s in said[:4] if s["precision"] == 1e-6} <= {1e-7, 0.0}
    assert all(len(s["passes"]) == 3 for s in said[:4])
    assert said[-1]["peer"] == "gone"


# ours against them


def test_ours_is_a_whole_call_to_the_certificate(l1_case):
    times = l1_peers.ours(l1_case, None, repeats=2)
    assert {key[1:] for key in times} == {(1e-4, "auto"), (1e-6, "auto")}
    assert all(len(passes) == 2 and min(passes) > 0 for passes in times.values())


def test_a_solver_that_does_not_arrive_is_no_winner(l1_case, monkeypatch):
    solve = l1_peers.minimize
    monkeypatch.setattr(l1_peers, "minimize", lambda *args, **more: solve(*args, **more | {"max_iter": 3}))
    with pytest.raises(RuntimeError, match="was asked for"):
        l1_peers.ours(l1_case, "frank-wolfe", repeats=1)


TIMES = {  # case, and passes to 1e-6 of each
    "a": {"auto": [10.0, 11.0, 9.0], "liblinear": [30.0], "spectral projected gradient": [25.0], "snapml": [5.0]},
    "b": {"auto": [10.0], "liblinear": [12.0], "saga": [300.0]},
    "c": {"auto": [10.0], "skglm": [21.0]},
}


def fits_of(times):
    return {(case, 1e-6, who): passes for case, found in times.items() for who, passes in found.items()}


def test_the_bars_against_the_peers():
    found = {m.name: m for m in l1_peers.verdicts(fits_of(TIMES), {})}
    assert found["over the fastest rival, 1e-06: a, spectral projected gradient"].ratio == pytest.approx(0.4)
    assert found["over snapml, 1e-06: a"].bar is None
    halves = found["bars, 1e-06: cases above half of the fastest rival"]
    assert (halves.ratio, halves.bar, halves.verdict) == (1.0, 1.0, "met")
    slower = fits_of(TIMES | {"c": {"auto": [22.0], "skglm": [21.0]}})
    found = {m.name: m for m in l1_peers.verdicts(slower, {})}
    assert found["over the fastest rival, 1e-06: c, skglm"].verdict == "missed"
    assert found["bars, 1e-06: cases above half of the fastest rival"].verdict == "missed"


def test_a_quarter_of_the_best_search():
    """With snapml and without it: a bar each."""
    searches = {("a", 1e-6, "snapml"): [39.0], ("a", 1e-6, "celer"): [41.0], ("a", 1e-6, "liblinear"): [90.0]}
    found = {m.name: (m.bar, m.verdict) for m in l1_peers.verdicts(fits_of(TIMES), searches) if "search" in m.name}
    assert found == {
        "over the best search, 1e-06: a, snapml": (0.25, "missed"),
        "over the best search by open source, 1e-06: a, celer": (0.25, "met"),
    }


def test_what_the_peers_say_is_taken_in(l1_case, monkeypatch, tmp_path):
    """Numbers become rows, and what is not reached, missing or broken is told."""
    lines = {
        "liblinear": {"problem": l1_case.name, "peer": "liblinear", "precision": 1e-6, "kind": "fit", "passes": [8.0, 9.0]},
        "saga": {"problem": l1_case.name, "peer": "saga", "precision": 1e-6, "kind": "fit", "best": [64, 900.0, 0.04]},
        "snapml": {"peer": "snapml", "missing": "No module named 'snapml'"},
    }

    def apart(command):
        if command[-1] == "celer":
            raise l1_peers.ChildError("it crashed")
        assert np.load(command[2])["radii"] == [l1_case.radius]
        return "a stray line\n" + json.dumps(lines[command[-1]]) + "\n"

    monkeypatch.setattr(l1_peers, "_apart", apart)
    monkeypatch.setattr(l1_peers, "_environment", lambda: tmp_path)
    monkeypatch.setattr(l1_peers, "cases", lambda data, radii: iter([l1_case]))
    sizes = l1_peers.Sizes({"small": (40.0,)}, 2, 500.0, (*lines, "celer"))
    items = list(l1_peers.compared(sizes))
    found = {m.name: m for m in items if isinstance(m, Measurement)}
    assert found[f"time, 1e-06: {l1_case.name}, liblinear"].ratio == 8.5
    assert {name.split(",")[0] for name in found} >= {"wrapping: like rcv1", "time", "over the fastest rival", "bars"}
    reasons = {item.reason for item in items if isinstance(item, Skipped)}
    assert reasons == {"1e-06 is not reached: 0.04 at the best", "No module named 'snapml'", "it crashed"}


def test_without_the_network_ours_and_the_projections_are_measured(l1_case, monkeypatch):
    def fails():
        raise l1_peers.ChildError("no network")

    monkeypatch.setattr(l1_peers, "_environment", fails)
    monkeypatch.setattr(l1_peers, "cases", lambda data, radii: iter([l1_case]))
    first, *rest = l1_peers.compared(l1_peers.Sizes({"small": (40.0,)}, 1, 500.0))
    assert first == Skipped("l1_peers", "others' packages", "they do not install here: no network")
    assert any("FISTA" in item.name for item in rest)


def test_radii_are_those_that_were_said():
    assert l1_problems.RADII["w8a"] == (7.363, 30.3, 706.4)
    with pytest.raises(InputError):
        list(l1_problems.cases("no such data", (1.0,)))


def test_the_peers_take_the_penalty_that_is_meant():
    """f + lambda |x|_1 is C = 1 / (n lambda) for those who sum: the arguments that each package is called with."""
    asked = {}

    def maker(name):
        class Fake:
            def __init__(self, **options):
                asked[name] = options

            def fit(self, A, y):
                asked[name]["format"] = (A.format, A.dtype.name)
                self.coef_ = np.zeros((1, A.shape[1]))
                return self

        return Fake

    modules = {
        "sklearn.linear_model": types.SimpleNamespace(LogisticRegression=maker("sklearn")),
        "skglm": types.SimpleNamespace(SparseLogisticRegression=maker("skglm")),
        "celer": types.SimpleNamespace(LogisticRegression=maker("celer")),
        "snapml": types.SimpleNamespace(LogisticRegression=maker("snapml")),
    }
    A, y = sp.csr_array(np.eye(4)), np.ones(4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(peer_l1.importlib, "import_module", lambda name: modules[name])
        for make in (peer_l1.liblinear, peer_l1.skglm, peer_l1.celer, peer_l1.snapml):
            assert make(A, y)(0.05, 1e-3).shape == (4,)
    assert asked["sklearn"]["C"] == asked["celer"]["C"] == pytest.approx(1 / 0.2)
    assert asked["skglm"]["alpha"] == 0.05
    assert asked["snapml"]["regularizer"] == pytest.approx(0.2)
    assert [asked[name]["format"] for name in asked] == [
        ("csr", "float64"), ("csc", "float64"), ("csc", "float64"), ("csr", "float32"),
    ]  # fmt: skip
    assert not any(options.get("fit_intercept", False) for options in asked.values())
