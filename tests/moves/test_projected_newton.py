"""Newton steps over group balls, by projections."""

import numpy as np
import pytest
import scipy.sparse as sp

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


def _wide(loss, seed=0):
    """2000 columns in groups of 1 to 7 that are not neighbours, 12 of them with true weights."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((200, 2000))
    labels = rng.permutation(np.repeat(np.arange(500), rng.permutation(np.tile([1, 3, 5, 7], 125))))
    y = A @ (rng.standard_normal(2000) * (labels < 12)) + rng.standard_normal(200)
    f = ex.LinearModel(loss, A, np.sign(y) if isinstance(loss, ex.Logistic) else y)
    return f, ex.GroupBall(5.0, labels, rng.uniform(0.5, 2.0, 500), centre=0.01 * rng.standard_normal(2000))


@pytest.mark.parametrize("loss", [ex.Squared(), ex.Logistic(), ex.Huber(1.0)])
def test_many_columns_take_hessians_of_the_groups_in_use(loss, monkeypatch):
    f, C = _wide(loss)
    sizes, on_columns = [], type(f).on_columns
    monkeypatch.setattr(type(f), "on_columns", lambda self, W: sizes.append(len(W)) or on_columns(self, W))
    r = ex.minimize(f, C, tol=1e-8)
    assert "projections" in r.why
    assert r.converged
    assert r.n_iter < 30
    assert max(sizes) < 1000
    assert C.contains(r.x)
    assert r.gap == pytest.approx(C.gap(r.x, f.grad(r.x)), abs=1e-12 * r.value)
    other = ex.minimize(f, C, ex.FullyCorrectiveFW(), tol=1e-3, max_grads=10**7)
    assert r.value - r.gap <= other.value
    assert other.value - other.gap <= r.value


def test_groups_that_the_model_lacks_enter_later():
    """From the solution over a small ball, few groups are in use: the solution over a large one needs many more."""
    f, C = _wide(ex.Logistic())
    small = ex.GroupBall(0.05, C.groups, C.weights, centre=C.centre)
    start = ex.minimize(f, small, tol=1e-6).x
    r = ex.minimize(f, C, tol=1e-8, x0=start)
    assert r.converged
    assert len(C.used(r.x)) > 2 * len(C.used(start))


def test_products_with_the_hessian_if_many_groups_are_in_use():
    rng = np.random.default_rng(2)
    A = sp.random(600, 3000, 0.01, format="csr", random_state=rng)
    f = ex.LinearModel(ex.Squared(), A, A @ rng.standard_normal(3000) + 0.1 * rng.standard_normal(600))
    C = ex.GroupBall(150.0, np.repeat(np.arange(600), 5))
    r = ex.minimize(f, C, tol=1e-6)
    assert r.converged
    assert "projections" in r.why
    assert np.count_nonzero(r.x) > 400


def test_rows_of_a_matrix_as_groups():
    rng = np.random.default_rng(4)
    A = rng.standard_normal((500, 400))
    y = np.argmax(A[:, :3] + rng.gumbel(size=(500, 3)), axis=1)
    f = ex.LinearModel(ex.Multinomial(3), A, y)
    C = ex.GroupBall(2.0, np.repeat(np.arange(400)[:, None], 3, axis=1))
    r = ex.minimize(f, C, tol=1e-6)
    assert r.converged
    assert "projections" in r.why
    assert r.gap == pytest.approx(C.gap(r.x, f.grad(r.x)), abs=1e-12)
    zero = (r.x == 0).all(axis=1)
    assert zero.any()
    assert (r.x[~zero] != 0).all()


def test_the_ball_on_some_groups():
    rng = np.random.default_rng(6)
    _, C = _wide(ex.Squared())
    x, g = C.centre + 0.1 * rng.standard_normal(2000), rng.standard_normal(2000)
    assert C.promises(x, g).max() == pytest.approx(float(g @ (x - C.lmo(g).to_array())))
    J = np.array([3, 77, 400])
    W, part = C.on_groups(J)
    assert (W == np.flatnonzero(np.isin(np.arange(2000), np.concatenate([C.groups[j] for j in J])))).all()
    y = C.centre.copy()
    y[W] += 10 * rng.standard_normal(len(W))
    assert (C.used(y) == J).all()
    assert part.project(y[W]) == pytest.approx(C.project(y)[W])
