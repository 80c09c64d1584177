"""Quadratic functions under rows, bounds, equations and a limit of the l1 norm."""

import numpy as np
import pytest
from scipy.optimize import linprog

from extremal.quadratic.polyhedral import Inequalities, inverse_root

KINDS = ("chain", "ball", "ball and rows", "simplex", "cuts", "equations", "repeated", "pinched")


def constraints(kind: str, d: int, rng: np.random.Generator) -> Inequalities:
    steps, R, more = np.eye(d - 1, d) - np.eye(d - 1, d, k=1), rng.standard_normal((2 * d, d)), {"lower": -3.0, "upper": 3.0}
    return {
        "chain": lambda: Inequalities.of(d, steps, np.zeros(d - 1), lower=-1.0, upper=1.0),
        "ball": lambda: Inequalities.of(d, radius=2.0),
        "ball and rows": lambda: Inequalities.of(d, steps, np.zeros(d - 1), radius=2.0, lower=-0.5, upper=0.5),
        "simplex": lambda: Inequalities.of(d, A_eq=np.ones((1, d)), b_eq=np.ones(1), lower=0.0),
        "cuts": lambda: Inequalities.of(d, R, np.ones(2 * d), **more),
        "equations": lambda: Inequalities.of(d, R[:2], np.ones(2), np.vstack([R[2:4]] * 3), np.zeros(6), **more),
        "repeated": lambda: Inequalities.of(d, np.vstack([R, 2 * R, R]), np.repeat([1.0, 2.0, 1.0], 2 * d), **more),
        "pinched": lambda: Inequalities.of(d, np.vstack([R[:2], -R[:2]]), np.zeros(4), **more),
    }[kind]()


def least(C: Inequalities, cost: np.ndarray) -> float:
    """min <cost, w> over the set, by HiGHS over positive and negative parts."""
    A, b, e, both = C.A, C.b, C.equations, np.hstack([np.eye(C.size), -np.eye(C.size)])
    rows, sides = (
        np.vstack([A[e:] @ both, both, -both, np.ones((1, 2 * C.size))]),
        np.concatenate([b[e:], C.upper, -C.lower, [C.radius]]),
    )
    kept, top = np.isfinite(sides), np.abs(cost).max()
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    equal = (A[:e] @ both, b[:e]) if e else (None, None)
    return linprog(cost @ both / top, rows[kept], sides[kept], *equal, (0, 100), method="highs-ds", options=tight).fun * top


def value(H: np.ndarray, g: np.ndarray, d: np.ndarray) -> float:
    return float(g @ d + 0.5 * d @ H @ d)


def broken(C: Inequalities, w: np.ndarray) -> float:
    off, e = C.A @ w - C.b, C.equations
    over = [off[e:], np.abs(off[:e]), C.lower - w, w - C.upper, [np.abs(w).sum() - C.radius]]
    return max(float(np.max(part, initial=0.0)) for part in over)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("d", "rank"), [(1, 1), (3, 9), (8, 24), (8, 5), (30, 90), (30, 12)])
def test_the_minimiser_is_inside_and_no_direction_leads_down(kind, d, rank):
    rng = np.random.default_rng(7 * d + rank)
    if d == 1 and kind in ("equations", "pinched"):
        pytest.skip("the only point is 0")
    for _ in range(5):
        B, g, C = rng.standard_normal((rank, d)), 3 * rng.standard_normal(d), constraints(kind, d, rng)
        H, x = B.T @ B / rank, 0.1 * rng.standard_normal(d)
        found = C.minimiser(H, g, x)
        assert found is not None
        d_, held = found
        assert broken(C, x + d_) < 1e-11
        slopes = g + H @ d_
        scale = float(np.abs(slopes) @ np.abs(x + d_)) + float(np.abs(g) @ np.abs(d_)) + 1e-3
        assert float(slopes @ (x + d_)) - least(C, slopes) <= 1e-7 * scale
        again = C.minimiser(H, g, x, held)
        assert again is not None
        assert value(H, g, again[0]) == pytest.approx(value(H, g, d_), rel=1e-8, abs=1e-8 * scale)


def test_held_constraints_of_another_problem_do_no_harm():
    rng = np.random.default_rng(1)
    C = constraints("ball and rows", 12, rng)
    held, B = None, rng.standard_normal((40, 12))
    for _ in range(20):
        H, g, x = B.T @ (rng.uniform(size=40)[:, None] * B), 20 * rng.standard_normal(12), np.zeros(12)
        cold, warm = C.minimiser(H, g, x), C.minimiser(H, g, x, held)
        assert cold is not None
        assert warm is not None
        np.testing.assert_allclose(warm[0], cold[0], atol=1e-9)
        held = warm[1]


def test_without_constraints_the_step_is_newtons():
    H = np.array([[2.0, 1.0], [1.0, 3.0]])
    found = Inequalities.of(2).minimiser(H, np.array([1.0, -2.0]), np.zeros(2))
    assert found is not None
    np.testing.assert_allclose(found[0], -np.linalg.solve(H, [1.0, -2.0]), rtol=1e-9)


def test_constraints_without_a_point_have_no_minimiser():
    C = Inequalities.of(1, np.array([[1.0], [-1.0]]), np.array([-1.0, -1.0]))
    assert C.minimiser(np.eye(1), np.zeros(1), np.zeros(1)) is None


def test_a_hessian_of_zeros_leads_to_the_best_corner():
    C = Inequalities.of(2, np.array([[1.0, 2.0]]), np.array([2.0]), lower=0.0, upper=1.0)
    found = C.minimiser(np.zeros((2, 2)), np.array([-1.0, -1.0]), np.zeros(2))
    assert found is not None
    np.testing.assert_allclose(found[0], [1.0, 0.5], atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_corners_have_the_least_cost_of_all_points(kind):
    rng = np.random.default_rng(2)
    proofs = 0
    for _ in range(20):
        C, cost = constraints(kind, 6, rng), rng.standard_normal(6)
        cost /= np.abs(cost).max()
        w = C.corner(cost)
        proofs += w is not None
        if w is not None:
            assert broken(C, w) < 1e-12
            assert cost @ w == pytest.approx(least(C, cost), abs=1e-9)
    assert proofs >= 15


def test_a_tie_between_corners_has_no_proof():
    assert Inequalities.of(2, lower=0.0, upper=1.0).corner(np.array([1.0, 0.0])) is None


def test_the_longest_step_ends_at_the_first_constraint():
    C = Inequalities.of(2, np.array([[1.0, 1.0]]), np.array([4.0]), lower=-1.0, upper=3.0)
    assert C.longest(np.zeros(2), np.array([1.0, 0.0])) == 3.0
    assert C.longest(np.zeros(2), np.array([1.0, 1.0])) == 2.0
    assert C.longest(np.zeros(2), np.array([0.0, -1.0])) == 1.0
    ball = Inequalities.of(2, radius=3.0)
    assert ball.longest(np.array([1.0, 0.0]), np.array([0.0, -0.5])) == 4.0


def test_a_singular_matrix_has_an_inverse_root_too():
    H = np.array([[1.0, 1.0], [1.0, 1.0]])
    J = inverse_root(H)
    np.testing.assert_allclose(J.T @ H @ J, np.diag([1.0, 0.0]), atol=1e-4)
    assert np.isfinite(inverse_root(np.zeros((2, 2)))).all()
