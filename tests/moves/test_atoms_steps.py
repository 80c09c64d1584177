"""Moves over atoms, step by step: against a transcription in plain numpy, and by their books."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import extremal as ex
from extremal.points.active import rebuilt

E3 = [ex.points.Coordinate(j, 1.0, (3,)) for j in range(3)]


def least_squares(d, target, n=None):
    A = np.random.default_rng(5).standard_normal((n or 3 * d, d))
    return ex.LinearModel(ex.Squared(), A, A @ target), A, A @ target


def naive(kind, A, y, C, L, steps):
    """Away, pairwise and blended pairwise with short steps, from the papers: points and numbers of atoms."""
    atoms, w, path = [C.lmo(np.zeros(A.shape[1])).to_array()], np.ones(1), []
    for _ in range(steps):
        x = w @ np.array(atoms)
        path.append((x, len(w)))
        g = A.T @ (A @ x - y) / len(y)
        s, dots = C.lmo(g).to_array(), np.array(atoms) @ g
        gap, worst, best = g @ (x - s), dots.argmax(), dots.argmin()
        if kind == "away" and len(w) > 1 and dots[worst] - g @ x > gap:
            d, most, to, rest = x - atoms[worst], w[worst] / (1 - w[worst]), None, True
        elif kind == "pairwise":
            d, most, to, rest = s - atoms[worst], w[worst], s, False
        elif kind == "blended" and worst != best and dots[worst] - dots[best] >= gap:
            d, most, to, rest = atoms[best] - atoms[worst], w[worst], atoms[best], False
        else:
            d, most, to, rest = s - x, 1.0, s, None
        t = min(most, -(g @ d) / (L * (d @ d)))
        if to is not None and not any((u == to).all() for u in atoms):
            atoms, w = [*atoms, to], np.append(w, 0.0)
        w = (1 - t) * w if rest is None else (1 + t) * w if rest else w.copy()
        if to is not None:
            w[next(j for j, u in enumerate(atoms) if (u == to).all())] += t
        if rest is not None:
            w[worst] -= t
        kept = w > 1e-15
        atoms, w = [u for u, keep in zip(atoms, kept, strict=True) if keep], w[kept] / w[kept].sum()
    return path


@pytest.mark.parametrize(
    ("kind", "move"), [("away", ex.moves.Away()), ("pairwise", ex.moves.Pairwise()), ("blended", ex.moves.BlendedPairwise())]
)
@pytest.mark.parametrize("C", [ex.Simplex(), ex.Hypersimplex(6), ex.L1Ball(2.0)], ids=repr)
def test_every_step_is_that_of_the_papers(kind, move, C):
    rng = np.random.default_rng(7)
    target = np.where(np.arange(25) < 8, 0.2, -0.1) if isinstance(C, ex.Simplex) else rng.random(25) * 1.2 - 0.1
    f, A, y = least_squares(25, target)
    L = float(np.linalg.eigvalsh(A.T @ A / len(y))[-1])
    method = ex.Method(ex.gradients.Full(), ex.steps.ShortStep(L), move)
    for (x, atoms), state in zip(naive(kind, A, y, C, L, 60), ex.iterate(f, C, method), strict=False):
        np.testing.assert_allclose(state.x, x, atol=1e-9)
        assert len(state.point.active) == atoms, state.k


def test_the_iterate_is_computed_anew():
    """Every 50 steps, and whenever an atom is dropped."""
    f, *_ = least_squares(8, np.random.default_rng(0).random(8), 60)
    slow = ex.Method(ex.gradients.MiniBatch(batch=5), ex.steps.Decay(0.01, 1, 0.01), ex.moves.Away())
    ages = [state.point.age for state in itertools.islice(ex.iterate(f, ex.Simplex(), slow), 300)]
    assert max(ages) == 49
    assert ages.count(0) >= 5
    drops, last = 0, None
    fast = ex.Method(ex.gradients.MiniBatch(batch=5), ex.steps.Decay(1, 1, 0.1), ex.moves.Away())
    for state in itertools.islice(ex.iterate(f, ex.Simplex(), fast), 200):
        if last is not None and len(state.point.active) < len(last):
            drops += 1
            assert state.point.age == 0
        last = state.point.active
    assert drops > 0


def test_keys_tell_vertices_apart():
    u, v = np.arange(1.0, 4.0), np.arange(2.0)
    assert (
        ex.points.SparseVertex(np.array([1]), np.array([2.0]), (3,)).key
        != ex.points.SparseVertex(np.array([1]), np.array([3.0]), (3,)).key
    )
    assert (
        ex.points.SparseVertex(np.array([1]), np.array([2.0]), (3,)).key
        != ex.points.SparseVertex(np.array([2]), np.array([2.0]), (3,)).key
    )
    assert ex.points.DenseVertex(np.array([1.0, -0.0])).key == ex.points.DenseVertex(np.array([1.0, 0.0])).key
    assert len({ex.points.RankOne(u, v).key, ex.points.RankOne(u, 2 * v).key, ex.points.RankOne(2 * u, v).key}) == 3
    assert ex.points.Combination(((1.0, E3[0]),)).key != ex.points.Combination(((2.0, E3[0]),)).key


def test_atoms_of_rank_one_are_points_in_factors():
    rng = np.random.default_rng(0)
    atoms = ex.points.ActiveSet(
        [ex.points.RankOne(rng.standard_normal(3), rng.standard_normal(2)) for _ in range(4)], [0.1, 0.2, 0.3, 0.4]
    )
    truth = sum(w * v.to_array() for w, v in zip(atoms.weights, atoms.vertices, strict=True))
    for X in (rebuilt(ex.points.FactoredMatrix.zeros((3, 2)), atoms), atoms.point):
        assert isinstance(X, ex.points.FactoredMatrix)
        np.testing.assert_allclose(np.asarray(X), truth, rtol=1e-12)


def test_weights_after_drops_and_full_steps():
    left = ex.points.ActiveSet(E3, [0.5, 0.25, 0.25]).dropping(0.3)
    assert (len(left), left.weights.sum()) == (1, 1.0)
    assert len(ex.points.ActiveSet(E3[:2], [0.5, 0.5]).toward(E3[2], 1.0)) == 1


def test_when_a_lazy_move_asks():
    """Exactly when its atoms promise less than half of the gap that the oracle last said."""
    f, *_ = least_squares(15, np.where(np.arange(15) < 5, 0.3, -0.2))
    method = ex.Method(ex.gradients.Full(), ex.steps.LineSearch(), ex.moves.BlendedPairwise(lazy=True))
    last, lmos, asked_at = None, 0, 0
    for state in itertools.islice(ex.iterate(f, ex.Simplex(), method), 40):
        if last is not None:
            dots = last.point.active.dots(last.g)
            asked, phi = state.calls.lmos > lmos, last.point.patience.phi
            assert asked == (dots.max() - dots.min() < phi)
            gap = float(last.x @ last.g) - last.g.min()
            assert state.point.patience.phi == pytest.approx(gap / 2 if asked else phi, abs=1e-13)
            asked_at += asked
        last, lmos = state, state.calls.lmos
    assert 3 < asked_at < 30


def test_a_lazy_run_stops_in_time():
    f, *_ = least_squares(15, np.where(np.arange(15) < 5, 0.3, -0.2))
    method = ex.Method(ex.gradients.Full(), ex.steps.LineSearch(), ex.moves.BlendedPairwise(lazy=True))
    first = next(state.k for state in ex.iterate(f, ex.Simplex(), method) if state.measure()[1] <= 1e-6)
    assert ex.minimize(f, ex.Simplex(), method, tol=0, atol=1e-6).n_iter <= first + 8


def test_corrective_steps_count_values_and_keep_margins(monkeypatch):
    f, *_ = least_squares(12, np.random.default_rng(1).standard_normal(12))
    value, margins, asked, made = type(f.loss).value, f.vertex_margins, [], []
    monkeypatch.setattr(type(f.loss), "value", lambda self, z, y: asked.append(len(z)) or value(self, z, y))
    monkeypatch.setattr(f, "vertex_margins", lambda s, idx=None: made.append(s.key) or margins(s, idx))
    r = ex.minimize(f, ex.L1Ball(2.0), ex.FullyCorrectiveFW(), tol=0, atol=0, max_iter=8)
    assert sum(asked) == r.calls.values + r.calls.certificate_values
    assert len(made) <= 1 + 8  # once for each vertex that comes in


def test_steps_in_faces_go_as_far_as_the_set_and_out_of_the_face():
    C, start = ex.Simplex(shape=4), np.array([0.1, 0.2, 0.3, 0.4])
    f = ex.LinearModel(ex.Squared(), np.eye(4), np.array([0.0, 0.0, 0.0, 5.0]))
    _, after = itertools.islice(
        ex.iterate(f, C, ex.Method(ex.gradients.Full(), ex.steps.FullStep(), ex.moves.InFacePairwise()), x0=start), 2
    )
    assert np.count_nonzero(after.x) == 3
    f = ex.LinearModel(ex.Squared(), np.eye(4), np.array([0.51, 0.49, 0.0, 5.0]))
    method = ex.Method(ex.gradients.Full(), ex.steps.Decay(0.5, 1), ex.moves.InFaceBlended())
    _, after = itertools.islice(ex.iterate(f, C, method, x0=np.array([0.5, 0.5, 0.0, 0.0])), 2)
    assert after.x[3] == 0.5


def test_an_interrupted_run_has_the_atoms_of_its_point():
    f, *_ = least_squares(10, np.random.default_rng(2).random(10) - 0.3)

    def stop(state):
        if state.k == 40:
            raise KeyboardInterrupt

    method = ex.Method(ex.gradients.Full(), ex.steps.FullStep(), ex.moves.Pairwise())
    r = ex.minimize(f, ex.L1Ball(2.0), method, tol=0, atol=1e-300, max_iter=100, callback=stop, x0=np.full(10, 0.05))
    assert r.status == ex.Status.INTERRUPTED
    np.testing.assert_allclose(r.x, r.atoms.x, atol=1e-12)
