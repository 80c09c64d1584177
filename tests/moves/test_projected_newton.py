"""Newton steps over group balls, by projections."""

import numpy as np
import pytest

import extremal as ex


@pytest.mark.parametrize("loss", [ex.Squared(), ex.Logistic()])
def test_group_balls_are_solved_in_few_certified_steps(loss):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((300, 40))
    y = A[:, :8] @ rng.standard_normal(8) + rng.standard_normal(300)
    f = ex.LinearModel(loss, A, y if isinstance(loss, ex.Squared) else np.sign(y))
    C = ex.GroupBall(1.0, np.repeat(np.arange(10), 4))
    r = ex.minimize(f, C, tol=1e-8)
    assert r.converged
    assert r.n_iter < 30
    assert "projections" in r.why
    assert C.contains(r.x)
    assert r.gap == pytest.approx(C.on(40).gap(r.x, f.grad(r.x)), abs=1e-9)
    other = ex.minimize(f, C, ex.FullyCorrectiveFW(), tol=1e-6, max_grads=10**7)
    assert r.value <= other.value + 1e-12


def test_a_set_without_a_projection_is_refused():
    with pytest.raises(ex.InputError, match="a set with a projection"):
        ex.moves.ProjectedNewton(ex.LatentGroupBall(1.0, [[0, 1], [1, 2]]))


def test_another_set_is_refused():
    """Projections onto a larger set would leave the set of the run."""
    f = ex.LinearModel(ex.Squared(), np.eye(4), np.ones(4))
    C, larger = (ex.GroupBall(radius, [0, 0, 1, 1]) for radius in (1.0, 2.0))
    method = ex.Method(ex.gradients.Growing(), ex.steps.FullStep(), ex.moves.ProjectedNewton(larger))
    with pytest.raises(ex.InputError, match=r"`ProjectedNewton\(onto=...\)` must be the set of the run, GroupBall"):
        ex.minimize(f, C, method)


def test_a_column_that_is_there_twice_and_a_column_of_zeros():
    rng = np.random.default_rng(5)
    A = rng.standard_normal((100, 6))
    A[:, 3], A[:, 5] = A[:, 0], 0.0
    f = ex.LinearModel(ex.Squared(), A, A @ rng.standard_normal(6))
    for radius in (0.1, 1.0, 100.0):
        r = ex.minimize(f, ex.GroupBall(radius, [0, 0, 1, 1, 2, 2]), tol=1e-8)
        assert r.converged
        assert np.isfinite(r.x).all()
