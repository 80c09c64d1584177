"""Complexities over n and eps: found again in errors that have them, and not where errors say nothing."""

import math

import numpy as np
import pytest
from panels_by_hand import libsvm

import extremal as ex
from extremal.methods.method import Budget
from extremal.methods.parse import recipe
from extremal_lab.reproduction import rates, sources, spec


@pytest.mark.parametrize("method", spec.OURS)
@pytest.mark.parametrize("batch", [1, 10])
def test_the_transient_is_what_the_steps_leave(method, batch):
    """The product of the factors 1 - eta of the constant steps, for the iterations that the budget pays for."""
    f = ex.LinearModel(ex.Logistic(), np.eye(1000)[:, :3], np.sign(np.arange(1000) % 2 - 0.5))
    K_d = recipe(method, batch).prepare(f, ex.L1Ball(1.0), Budget(max_grads=101 * f.n)).step  # one pass for the first gradient
    assert np.log(spec.transient(method, 100)) == pytest.approx(-K_d.horizon / 2 / K_d.d, rel=0.02)


def made_runs(monkeypatch, error):
    """A grid of runs, and results for them: error(n, component gradients, seed)."""
    monkeypatch.setattr(rates, "radius", lambda loss, scale, source: "l1:1")
    grid, results = rates.GRIDS["convex, b = sqrt n"], {}
    for seed, runs in grid.runs("sarah-fw", some, quick=False).items():
        for run in runs:
            n, passes = run.source.n, run.passes
            value = np.array([1.0, 0.3 + error(n, passes * n, seed)])
            results[run] = {"value": value, "passes": np.array([0, passes]), "lmos": np.array([0, passes * n / math.sqrt(n)])}
            results[rates.minimum_of(run)] = {"value": np.array(0.3), "gap": np.array(1e-13)}
    return results


def some(n, draw):
    return sources.Source("", "file", "", n, 3, 3 * n, "0", n, draw)


def test_complexities_are_found_again(monkeypatch):
    """error = (7 n^0.4 / N)^1.6 means N ~ n^0.4 eps^(-1/1.6) gradients, and n^(0.4 - 0.5) LMO calls at b = sqrt n."""
    rng = np.random.default_rng(0)
    results = made_runs(
        monkeypatch, lambda n, N, seed: (1 + seed) * (7 * n**0.4 / N) ** 1.6 * np.exp(0.02 * rng.standard_normal())
    )
    for index, n in ((2, 0.4), (3, -0.1)):
        fit = rates.RATES[index].fit("sarah-fw", some, False, results)
        assert fit.n.mean == pytest.approx(n, abs=0.03)
        assert fit.eps.mean == pytest.approx(1 / 1.6, abs=0.03)
        assert 0 < fit.n.high - fit.n.low < 0.1  # the level of a seed does not matter
        assert fit.n.holds is fit.eps.holds is True
    assert rates.Exponent(0.7, 0.65, 0.75, claimed=0.5).holds is False
    assert len(fit.errors) == len({(n, N) for n, N in fit.errors})


def test_seeds_that_differ_make_wide_intervals(monkeypatch):
    results = made_runs(monkeypatch, lambda n, N, seed: (7 * n**0.4 / N) ** (0.8 + 0.4 * seed))
    fit = rates.RATES[2].fit("sarah-fw", some, False, results)
    assert fit.eps.high - fit.eps.low > 0.3
    assert fit.eps.holds is None  # from 0.3 to 1.1
    assert fit.n.mean == pytest.approx(0.4)


@pytest.mark.parametrize("error", [lambda n, N, seed: 1e-13, lambda n, N, seed: N / 1e9])
def test_errors_that_say_nothing_are_not_fitted(monkeypatch, error):
    """Below the accuracy of the minimum, or growing."""
    fit = rates.RATES[2].fit("sarah-fw", some, False, made_runs(monkeypatch, error))
    assert fit.n.holds is fit.eps.holds is None


def test_grids_are_what_they_claim(monkeypatch):
    monkeypatch.setattr(rates, "radius", lambda loss, scale, source: "l1:1")
    for grid in rates.GRIDS.values():
        made = grid.runs(grid.methods[0], some, quick=True)
        assert len(made) == 3
        assert all(run.passes >= 64 for runs in made.values() for run in runs)
        assert all(len(runs) >= 5 for runs in made.values())
        made = grid.runs(grid.methods[0], some, quick=False)
        assert len(made) == 5
        for seed, runs in made.items():
            assert len({run.source.n for run in runs}) >= 4
            for run in runs:
                n = run.source.n
                assert (run.seed, run.source.draw) == (seed, seed)
                assert run.passes >= 64
                assert run.passes * n in grid.budgets
                assert run.batch == {"1": 1, "sqrt": math.ceil(math.sqrt(n))}[grid.batch]
    assert {rate.grid for rate in rates.RATES} == set(rates.GRIDS)


def test_the_radius_makes_the_bound_say_something(file):
    source = sources.resolve(str(file))
    A, _ = libsvm(file)
    L = 0.25 * np.linalg.eigvalsh(A.T @ A / len(A))[-1]
    R = float(rates.radius("logistic", 2500.0, source).removeprefix("l1:"))
    assert L * (2 * R) ** 2 == pytest.approx(2500, rel=0.1)
