"""The benchmarks that are asked for by name: that rivals solve the same problem, and what cannot be measured is said so."""

import sys

import numpy as np
import pytest

from extremal_lab.bench import (
    children,
    completion,
    completion_error,
    completion_large,
    completion_problem,
    ensembles,
    estimators,
    libsvm,
    polytopes,
    simplex,
    simplex_rivals,
    simplex_tall,
    spectral,
    workers,
)
from extremal_lab.bench.timing import Measurement, Skipped


def sentences(items):
    return {item.name: item.reason for item in items if isinstance(item, Skipped)}


# what is not here


@pytest.mark.parametrize("part", [libsvm, estimators, ensembles])
def test_without_scikit_learn_a_sentence_says_so(part, monkeypatch):
    monkeypatch.setattr(part, "installed", lambda package: package != "sklearn")
    (item,) = part.measure("smoke")
    assert item.reason == "scikit-learn is not installed"


def test_without_dask_a_sentence_says_so(monkeypatch):
    monkeypatch.setattr(workers, "installed", lambda package: False)
    (item,) = workers.measure("smoke")
    assert "distributed is not installed" in item.reason


def test_two_workers_are_measured_beside_one_process():
    pytest.importorskip("distributed")
    found = {item.name.rpartition(", ")[0]: item for item in workers.measure("smoke")}
    assert len(found) == len(workers.BARS)
    for way in ("sent to each worker", "sent back by each worker"):
        assert 1.0 <= found[f"a pass, {way}"].ratio <= 1.01
    assert all(item.low <= item.ratio <= item.high for item in found.values())
    assert found["a pass, both hosts over one process"].ratio > 0


def test_without_highspy_scipys_programs_are_measured(monkeypatch):
    monkeypatch.setattr(polytopes, "installed", lambda package: False)
    items = list(polytopes.measure("smoke"))
    assert set(sentences(items).values()) == {"highspy is not installed"}
    assert any("scipy" in item.name for item in items if isinstance(item, Measurement))
    assert not any("highspy" in item.name for item in items)


def test_without_cvxpy_the_others_are_measured(monkeypatch):
    monkeypatch.setattr(simplex, "installed", lambda package: False)
    items = list(simplex.measure("smoke"))
    assert sentences(items) == {"cvxpy": "it is not installed"}
    assert not any("cvxpy" in item.name for item in items[1:])
    monkeypatch.setattr(simplex_tall, "installed", lambda package: False)
    monkeypatch.setattr(simplex_tall, "asked", lambda *words: {"seconds": 1.0})
    assert not any("cvxpy" in item.name for item in list(simplex_tall.measure("quick"))[1:])


@pytest.mark.parametrize("part", [completion_large, ensembles])
def test_what_does_not_fit_into_the_memory_is_left_out(part, monkeypatch):
    monkeypatch.setattr(part, "free_memory", lambda: 1000)
    items = list(part.measure("default"))
    assert items
    assert all("of free memory" in item.reason for item in items)


def test_a_process_that_is_ended_says_by_what():
    with pytest.raises(children.ChildError, match="ended by SIGKILL"):
        children.output([sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"])


# the simplex


@pytest.mark.parametrize("name", ["SLSQP", "A'A by hand, then SLSQP", "nnls, heavy row", "cvxpy OSQP", "cvxpy CLARABEL"])
def test_rivals_solve_the_same_problem(name):
    if "cvxpy" in name:
        pytest.importorskip("cvxpy")
    A, y = (part.astype(float) for part in simplex_rivals.forecasts(300, 25))
    value, gap = simplex_rivals.certify(A, y, simplex_tall.SOLVERS[name](A, y))
    assert gap <= 1e-3 * value


def test_who_gives_up_is_not_asked_again(monkeypatch):
    asked = []

    def fake(module, solver, n, *limits):
        asked.append((solver, n))
        if solver == "SLSQP" and n > 1000:
            raise children.ChildError("it was ended by SIGXCPU")
        return {"seconds": 2.0 if solver == "minimize" else 5.0, "peak": 1.0, "gap": 0.0, "off": 0.0}

    monkeypatch.setattr(simplex_tall, "asked", fake)
    sizes = simplex_tall.Sizes((1000, 2000, 4000), solvers=("minimize", "SLSQP"))
    monkeypatch.setitem(simplex_tall.LEVELS, "smoke", sizes)
    items = list(simplex_tall.measure("smoke"))
    assert asked == [("minimize", 1000), ("SLSQP", 1000), ("minimize", 2000), ("SLSQP", 2000), ("minimize", 4000)]
    assert sentences(items) == {"2000 rows: SLSQP": "it gives up: it was ended by SIGXCPU"}
    assert [item.ratio for item in items if item.name == "ratio, 1000 rows: SLSQP"] == [2.5]


def test_ratios_and_errors_of_ensembles_are_to_the_first():
    first = {"seconds": 2.0, "beyond": 0, "f": [1.0, 2.0], "gap": [0.0, 0.0], "off": [0.0, 0.0]}
    other = first | {"seconds": 3.0, "f": [1.1, 2.0]}
    found = {item.name.partition(",")[0]: item for item in ensembles.told("small", "nnls", other, first)}
    assert found["ratio"].ratio == 1.5
    assert found["error"].high == pytest.approx(0.1)
    assert {item.name.partition(",")[0] for item in ensembles.told("small", "estimator", first, first)} == {
        "seconds", "beyond", "gap", "off",
    }  # fmt: skip


def test_every_solver_of_an_ensemble_has_its_weights():
    A, y = simplex_rivals.forecasts(300, 25)
    solvers = {solver for each in ensembles.SOLVERS.values() for solver in each} - {"nnls one by one"}
    for solver in sorted(solvers):
        said = ensembles.judged(ensembles.solve(solver, A, y), A, y, solver)
        assert said["gap"][0] <= 1e-3 * said["f"][0], solver


def test_the_norm_that_liblinear_ends_at_is_the_radius():
    """A certified point is not above any other of the ball by more than its gap, and liblinear's is in the ball."""
    found = {item.name.partition(",")[0]: item.ratio for item in estimators.measure("smoke")}
    assert found["objective"] >= -found["gap"] - 1e-9


# matrices


def test_both_forms_of_fista_fall():
    problem = completion_problem.Ratings(30, 40, 600, 3).made(0)
    f = problem.objective
    steps = [X for X, _ in completion_problem.fista(problem, lambda Z: completion_problem.by_gram(Z, 1.0), 10)]
    assert f.value(steps[-1]) < f.value(steps[0])
    known, tried = (list(completion_problem.constrained_fista(problem, 40.0, 40, shrink)) for shrink in (1.0, 0.8))
    for points in (known, tried):
        assert np.linalg.norm(points[-1], "nuc") <= 40 * (1 + 1e-9)
    assert f.value(known[-1]) == pytest.approx(f.value(tried[-1]), rel=1e-3)


def test_goals_that_some_problems_do_not_reach_are_said_so():
    items = list(completion.told("near", {"LowRankFW": [1.0, 2.0], "slow": [3.0, 4.0], "stuck": [1.0, None]}))
    assert [item.ratio for item in items if item.name == "near: slow"] == [2.5]
    assert sentences(items) == {"near, seconds: stuck": "reached on 1 problems of 2"}
    items = list(completion_error.told({completion_error.SLOW: [4.0], "quick": [1.0], "stuck": [None]}, most=9))
    assert [item.ratio for item in items if item.name == "ratio: quick"] == [0.25]
    assert sentences(items) == {"seconds: stuck": "within 9 iterations on 0 problems of 1"}


def test_svds_and_the_oracle_find_the_same_value():
    from extremal import NuclearBall

    G = spectral.gradient(spectral.LEVELS["smoke"], np.ones(10))
    _, _, sigma, upper = spectral.of_vertex(NuclearBall(1.0, tol=1e-8).lmo(G), G)
    assert sigma == pytest.approx(spectral.of_svds(G, 0)[2], rel=1e-7)
    assert upper >= sigma * (1 - 1e-12)
