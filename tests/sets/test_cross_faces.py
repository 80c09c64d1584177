"""The faces of l1 balls: the worst vertex and the longest step, against the definitions; and steps within faces."""

from __future__ import annotations

import numpy as np
import pytest

import extremal as ex

D, R = 6, 2.5
RNG = np.random.default_rng(1)
CENTRE, WEIGHTS = 0.3 * RNG.standard_normal(D), np.linspace(0.5, 2.0, D)
BALLS = {
    "l1": (ex.L1Ball(R), np.zeros(D), np.ones(D)),
    "l1, centre": (ex.L1Ball(R, centre=CENTRE), CENTRE, np.ones(D)),
    "weighted": (ex.WeightedL1Ball(R, WEIGHTS), np.zeros(D), WEIGHTS),
    "weighted, centre": (ex.WeightedL1Ball(R, WEIGHTS, centre=CENTRE), CENTRE, WEIGHTS),
}
EVERY_BALL = pytest.mark.parametrize("name", BALLS)


def points(name):
    """Points inside, on the boundary, with zeros, and vertices."""
    _, centre, w = BALLS[name]
    for k in range(60):
        y = RNG.standard_normal(D) * (RNG.random(D) < RNG.choice([0.3, 0.6, 1.0]))
        y[k % D] += 0.5
        y *= R * (1.0 if k % 3 else RNG.random()) / (w @ np.abs(y))
        yield centre + y, (w @ np.abs(y)) / R


def corners(name):
    _, centre, w = BALLS[name]
    return [centre + sign * R / w[j] * np.eye(D)[j] for j in range(D) for sign in (-1.0, 1.0)]


@EVERY_BALL
def test_the_worst_vertex_is_that_of_the_smallest_face(name):
    """A vertex is in the smallest face that holds x if x can be moved a little away from it within the set."""
    C, centre, w = BALLS[name]
    for x, _ in points(name):
        g = RNG.standard_normal(D)
        held = [v for v in corners(name) if w @ np.abs(x + 1e-6 * (x - v) - centre) <= R * (1 + 1e-9)]
        assert held
        a = C.away(g, x).to_array()
        assert min(np.abs(a - v).max() for v in held) <= 1e-12
        assert g @ a == pytest.approx(max(g @ v for v in held), abs=1e-9)


@EVERY_BALL
def test_the_longest_step_ends_at_the_boundary(name):
    C, centre, w = BALLS[name]
    for x, _ in points(name):
        g = RNG.standard_normal(D)
        s, a = C.lmo(g), C.away(g, x)
        d = s.to_array() - a.to_array()
        t = C.max_step(x, s, a)
        low, high = 0.0, 1.0
        for _ in range(70):
            mid = (low + high) / 2
            low, high = (mid, high) if w @ np.abs(x + mid * d - centre) <= R * (1 + 1e-14) else (low, mid)
        assert t == pytest.approx(high, abs=1e-10)
        assert w @ np.abs(x + t * d - centre) <= R * (1 + 1e-11)


@EVERY_BALL
def test_a_direction_of_nothing_may_be_followed_to_its_end(name):
    C, centre, _ = BALLS[name]
    v = C.lmo(np.ones(D))
    assert C.max_step(centre, v, v) == 1.0


@EVERY_BALL
@pytest.mark.parametrize("loss", [ex.Squared(), ex.Logistic()], ids=["squared", "logistic"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_steps_within_faces_converge(name, loss, dtype):
    A = RNG.standard_normal((80, D)).astype(dtype)
    y = A @ (CENTRE + 1.0) if loss.labels is None else np.where(RNG.random(80) < 0.5, 1.0, -1.0)
    f = ex.LinearModel(loss, A, y.astype(dtype))
    tol = 1e-9 if dtype is np.float64 else 1e-5
    assert ex.minimize(f, BALLS[name][0], ex.InFaceFW(), tol=tol, atol=tol, max_iter=5000).converged
