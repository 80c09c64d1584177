"""Newton steps over sets known by their inequalities."""

import numpy as np
import pytest

import extremal as ex
from extremal.rounding import settle, violation
from extremal.sets.words import read_constraint


def model(loss, n=300, d=6, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) / np.sqrt(d)
    z = A @ (2 * rng.standard_normal(d))
    y = {
        ex.Squared: lambda: z + 0.5 * rng.standard_normal(n),
        ex.Logistic: lambda: np.where(z + rng.logistic(size=n) > 0, 1.0, -1.0),
        ex.Poisson: lambda: rng.poisson(np.exp(np.clip(0.5 * z, -5, 3))).astype(float),
    }[type(loss)]()
    return ex.LinearModel(loss, A, y)


R = np.random.default_rng(9).standard_normal((8, 6))
SETS = {
    "l1 and order": read_constraint(["x1 <= x2", "l1:1"], None, (6,)).set(),
    "slack l1": read_constraint(["x1 <= x2", "l1:100"], None, (6,)).set(),
    "order": ex.Monotone(-1.0, 0.5),
    "cuts": ex.Polytope(R, np.full(8, 0.2), bounds=(-1, 1)),
    "equations": ex.Polytope(A_eq=np.vstack([R[:2], R[:2]]), b_eq=np.zeros(4), bounds=(-1, 1)),
    "pinched": ex.Polytope(np.vstack([R[:1], -R[:1], R[1:3]]), [0.1, -0.1, 0.2, 0.2], bounds=(-1, 1)),
    "a point": ex.Polytope(np.vstack([np.eye(6), -np.eye(6)]), np.zeros(12)),
    "budget": ex.BudgetBox(-0.5, 0.5, 0.2),
    "capped": ex.CappedSimplex(0.4),
    "bounded l1": ex.BoundedL1Ball(1.0, -0.3, 0.6),
    "degenerate": ex.Polytope(np.vstack([np.ones((1, 6)), R[:3] - R[:3].max(axis=0)]), [1.0, 0.0, 0.0, 0.0], bounds=(0, 1)),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("loss", [ex.Squared(), ex.Logistic(), ex.Poisson()])
def test_a_few_steps_are_certified_and_answers_can_be_settled(name, loss):
    f, C = model(loss), SETS[name].on(6)
    r = ex.minimize(f, C, tol=1e-8, atol=1e-14)
    assert isinstance(r.method.move, ex.moves.RowNewton)
    assert r.converged
    assert r.n_iter <= 15
    assert r.calls.lmos + r.calls.certificate_lmos <= r.n_iter + 4  # the model asks the oracle nothing
    x = settle(C, r.x)
    assert violation(C, x) <= 1e-15
    assert f.value(x) == pytest.approx(r.value, rel=1e-9)
    assert r.gap == pytest.approx(C.gap(r.x, f.grad(r.x)), abs=1e-10)
    other = ex.minimize(f, C, ex.FullyCorrectiveFW(), tol=1e-5, max_grads=10**6)
    assert r.value <= other.value + 1e-9 * abs(other.value)


def test_tight_tolerances_are_reached():
    for name in ("l1 and order", "cuts", "budget"):
        r = ex.minimize(model(ex.Logistic()), SETS[name], tol=1e-12, atol=0.0)
        assert r.converged


def test_entries_that_the_norm_or_a_bound_stops_are_there_exactly():
    x = ex.minimize(model(ex.Squared()), SETS["l1 and order"], tol=1e-9).x
    assert 0 < np.count_nonzero(x) < 6
    x = ex.minimize(model(ex.Squared()), SETS["bounded l1"], tol=1e-9).x
    assert np.isin(x, [-0.3, 0.0, 0.6]).any()


def test_more_columns_than_rows():
    rng = np.random.default_rng(4)
    A = rng.standard_normal((20, 50))
    f = ex.LinearModel(ex.Squared(), A, A[:, 0] + 0.1 * rng.standard_normal(20))
    C = ex.Polytope(np.eye(1, 50) - np.eye(1, 50, k=1), [0.0], radius=0.8)
    r = ex.minimize(f, C, tol=1e-8)
    assert r.converged
    assert C.contains(r.x)


def test_separable_data_end_at_the_far_side():
    A = np.random.default_rng(1).standard_normal((100, 4))
    f = ex.LinearModel(ex.Logistic(), A, np.sign(A[:, 0] + A[:, 1]))
    r = ex.minimize(f, ex.Polytope([[1.0, -1.0, 0.0, 0.0]], [0.0], bounds=(-1e3, 1e3)), tol=1e-6)
    assert r.converged


def test_losses_without_second_derivatives_learn_the_model():
    class Smooth:
        curvature, convex, labels = 1.0, True, None

        def value(self, z, y):
            return np.sqrt(1 + (z - y) ** 2) - 1

        def deriv(self, z, y):
            return (z - y) / np.sqrt(1 + (z - y) ** 2)

    f = model(ex.Squared())
    r = ex.minimize(
        ex.LinearModel(Smooth(), f.data.to_numpy() if hasattr(f.data, "to_numpy") else f.data, f.y), SETS["cuts"], tol=1e-6
    )
    assert r.converged
    assert isinstance(r.method.move, ex.moves.RowNewton)


def test_matrices_of_coefficients():
    rng = np.random.default_rng(2)
    f = ex.LinearModel(ex.Multinomial(3), rng.standard_normal((200, 4)), rng.integers(0, 3, 200))
    r = ex.minimize(f, ex.BudgetBox(-0.5, 0.5, 0.3), tol=1e-8)
    assert r.converged
    assert isinstance(r.method.move, ex.moves.RowNewton)


def test_a_set_of_other_kind_is_refused():
    f = model(ex.Squared())
    method = ex.Method(ex.gradients.Growing(), ex.steps.FullStep(), ex.moves.RowNewton(ex.L2Ball(1.0)))
    with pytest.raises(
        ex.InputError, match="RowNewton needs a set known by its inequalities, such as Polytope or Monotone, got L2Ball"
    ):
        ex.minimize(f, ex.L2Ball(1.0), method)


def test_another_set_is_refused():
    f = model(ex.Squared())
    method = ex.Method(ex.gradients.Growing(), ex.steps.FullStep(), ex.moves.RowNewton(ex.Monotone(0.0, 2.0)))
    with pytest.raises(ex.InputError, match=r"`RowNewton\(onto=...\)` must be the set of the run, Monotone"):
        ex.minimize(f, ex.Monotone(0.0, 1.0), method)


def test_many_columns_keep_the_moves_over_atoms():
    rng = np.random.default_rng(0)
    f = ex.LinearModel(ex.Squared(), rng.standard_normal((30, 500)), rng.standard_normal(30))
    assert "linear constraints" not in ex.minimize(f, ex.Monotone(-1.0, 1.0), tol=1e-2).why
