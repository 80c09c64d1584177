"""Active sets and the moves over atoms: weights and points agree, convergence is geometric, lazy oracles are lazy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from cases import DIM, GRADIENTS, model, optimum, separable
from hypothesis import given
from hypothesis import strategies as st

import extremal as ex
from extremal.moves.corrective import minimise, project
from extremal.points.stacks import Factors, FewVertices, Mixed, RowStack, stack
from extremal.run.counting import CountedSet

RNG = np.random.default_rng(0)
ATOM_MOVES = (ex.moves.Away(), ex.moves.Pairwise(), ex.moves.BlendedPairwise(), ex.moves.FullyCorrective())
LAZY = (ex.moves.Away(lazy=True), ex.moves.Pairwise(lazy=True), ex.moves.BlendedPairwise(lazy=True))
IN_FACE = (ex.moves.InFacePairwise(), ex.moves.InFaceBlended())
EVERY_ATOM_MOVE = pytest.mark.parametrize("move", ATOM_MOVES + LAZY, ids=repr)


def strongly_convex(shape, target, seed=0):
    """f(x) = |B (x - target)|^2 / 2n, eigenvalues of B'B/n within [1, 4] or so."""
    d = math.prod(shape)
    rng = np.random.default_rng(seed)
    n = 3 * d
    B = rng.standard_normal((n, d))
    if len(shape) == 1:
        return ex.LinearModel(ex.Squared(), B, B @ target)
    return ex.Separable(
        n, shape,
        grad=lambda x, idx: (B[idx] * (B[idx] @ (x - target).reshape(-1))[:, None]).reshape(-1, *shape),
        value=lambda x, idx: 0.5 * (B[idx] @ (x - target).reshape(-1)) ** 2,
        convex=True, smoothness=float(np.linalg.eigvalsh(B.T @ B / n)[-1]),
    )  # fmt: skip


def problems():
    """A set and a target whose best approximation lies on a low-dimensional face, not at a vertex."""
    rng = np.random.default_rng(1)
    point = np.where(np.arange(12) < 4, rng.dirichlet(np.ones(12)) + 0.2, -0.3)
    signed = point * np.where(np.arange(12) % 2, -1, 1) * 1.5
    mix = sum(w * np.eye(5)[rng.permutation(5)] for w in (0.5, 0.3, 0.2)) + 0.05 * rng.standard_normal((5, 5))
    return {
        "simplex": (ex.Simplex(), point),
        "l1 ball": (ex.L1Ball(1.0), signed),
        "hypersimplex": (ex.Hypersimplex(3), np.where(np.arange(12) < 5, 0.8, 0.1) + 0.3 * rng.standard_normal(12)),
        "birkhoff": (ex.Birkhoff(5), mix),
    }


PROBLEMS = pytest.mark.parametrize("name", ["simplex", "l1 ball", "hypersimplex", "birkhoff"])


# active sets and stacks


def kinds(shape=(4, 3)):
    rng = np.random.default_rng(3)
    few = [
        ex.points.Coordinate(5, 2.0, shape),
        ex.points.SparseVertex(np.array([0, 7]), np.array([1.0, -3.0]), shape),
        ex.points.Coordinate(1, -1.0, shape),
    ]
    dense = [ex.points.DenseVertex(rng.standard_normal(shape)) for _ in range(3)]
    low = [ex.points.RankOne(rng.standard_normal(4), rng.standard_normal(3)) for _ in range(3)]
    mixed = [few[0], dense[0], low[0], ex.points.LowRank(rng.standard_normal((4, 2)), rng.standard_normal((3, 2)))]
    return {FewVertices: few, RowStack: dense, Factors: low, Mixed: mixed}


@pytest.mark.parametrize("kind", [FewVertices, RowStack, Factors, Mixed])
def test_stacks_equal_their_vertices_one_by_one(kind):
    vertices = kinds()[kind]
    g, w = RNG.standard_normal((4, 3)), RNG.random(len(vertices))
    grown = stack(tuple(vertices[:1]))
    for v in vertices[1:]:
        grown = grown.add(v)
    kept = grown.add(vertices[0]).keep(np.arange(len(vertices)))
    for s in (stack(tuple(vertices)), grown, kept):
        assert type(s) is kind
        np.testing.assert_allclose(s.dots(g), [np.vdot(g, v.to_array()) for v in vertices], rtol=1e-12)
        np.testing.assert_allclose(s.sum(w), sum(x * v.to_array() for x, v in zip(w, vertices, strict=True)), rtol=1e-12)


@pytest.mark.parametrize("kind", [FewVertices, RowStack, Factors, Mixed])
def test_stacks_that_grow_apart_do_not_share_their_ends(kind):
    a, b, c = kinds()[kind][:3]
    root = stack((a,)).add(b)
    left, right = root.add(a), root.add(c)
    for s, last in ((left, a), (right, c), (left.add(c), c), (right.add(b), b), (root.add(a), a)):
        np.testing.assert_array_equal(s.sum(np.eye(len(s.vertices))[-1]), last.to_array())
    np.testing.assert_array_equal(left.sum(np.array([0.0, 0.0, 1.0])), a.to_array())


def test_a_vertex_of_zeros_in_a_stack():
    zero = ex.points.SparseVertex(np.array([], int), np.array([]), (3,))
    s = stack((ex.points.Coordinate(1, 2.0, (3,)), zero, ex.points.Coordinate(2, 1.0, (3,))))
    np.testing.assert_array_equal(s.dots(np.array([5.0, 7.0, 9.0])), [14.0, 0.0, 9.0])


@given(seed=st.integers(0, 1000))
def test_weights_and_points_agree(seed):
    """Random walks of steps, as points and as weights."""
    rng = np.random.default_rng(seed)
    C = ex.L1Ball(2.0)
    atoms = ex.points.ActiveSet.at(C.lmo(rng.standard_normal(5)))
    x = atoms.x
    for _ in range(30):
        s, i, share = C.lmo(rng.standard_normal(5)), int(rng.integers(len(atoms))), float(rng.random())
        w, v = float(atoms.weights[i]), atoms.vertices[i].to_array()
        kind = rng.integers(3) if len(atoms) > 1 else 0
        if kind == 0:
            atoms, x = atoms.toward(s, share), (1 - share) * x + share * s.to_array()
        elif kind == 1:
            t = share * w / (1 - w)
            atoms, x = atoms.away(i, t), x + t * (x - v)
        elif atoms.find(s) != i:
            atoms, x = atoms.swap(s, i, share * w), x + share * w * (s.to_array() - v)
        atoms = atoms.dropping(1e-15)
        np.testing.assert_allclose(atoms.x, x, atol=1e-12)
        assert atoms.weights.min() > 0
        assert atoms.weights.sum() == pytest.approx(1, abs=1e-12)
        assert len({v.key for v in atoms.vertices}) == len(atoms) <= 10
        assert all(atoms.find(v) == j for j, v in enumerate(atoms.vertices))


def test_an_active_set_from_the_user():
    e = [ex.points.Coordinate(j, 1.0, (3,)) for j in range(3)]
    a = ex.points.ActiveSet([e[0], e[1], e[0], e[2]], [0.25, 0.5, 0.25, 0.0])  # equal atoms are merged, empty ones dropped
    assert [v.j for v in a.vertices] == [0, 1]
    np.testing.assert_array_equal(a.weights, [0.5, 0.5])
    np.testing.assert_array_equal(a.x, [0.5, 0.5, 0.0])
    assert (len(a), a.shape, a.find(e[2]), a.find(e[1]), repr(a)) == (2, (3,), None, 1, "ActiveSet(2 atoms)")
    with pytest.raises(ValueError, match="read-only"):
        a.weights[0] = 3.0


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([0.5], "one number for each of 2 vertices"),
        ([0.5, 0.6], r"sum to 1, got a sum of 1.1"),
        ([1.5, -0.5], "non-negative"),
        ([np.nan, 1.0], "finite"),
        (["a", "b"], "one number for each"),
    ],
)
def test_weights_that_are_none(weights, words):
    e = [ex.points.Coordinate(j, 1.0, (3,)) for j in range(2)]
    with pytest.raises(ex.InputError, match=words):
        ex.points.ActiveSet(e, weights)
    with pytest.raises(ex.InputError, match="one shape"):
        ex.points.ActiveSet([e[0], ex.points.Coordinate(0, 1.0, (4,))], [0.5, 0.5])


# convergence


def run(f, C, move, **options):
    step = (
        ex.steps.FullStep()
        if isinstance(move, ex.moves.FullyCorrective)
        else ex.steps.LineSearch()
        if isinstance(f, ex.LinearModel)
        else ex.steps.ShortStep()
    )
    options = {"tol": 0, "atol": 1e-8, "max_iter": 20_000} | options
    return ex.minimize(f, C, ex.Method(ex.gradients.Full(), step, move), **options)


@PROBLEMS
@pytest.mark.parametrize("move", ATOM_MOVES + LAZY, ids=repr)
def test_geometric_convergence_to_a_certified_gap(name, move):
    C, target = problems()[name]
    f = strongly_convex(target.shape, target)
    r = run(f, C, move, record=0.1)
    assert r.status == ex.Status.GAP
    assert r.gap <= 1e-8
    assert C.on(f.shape).contains(r.x)
    assert 1 < len(r.atoms) <= 40
    first = r.trace.gap[0]
    third = [int(r.trace.iter[np.flatnonzero(r.trace.gap <= first * q)[0]]) for q in (1e-2, 1e-4, 1e-6)]
    assert third[2] - third[1] <= 4 * (third[1] - third[0]) + 30, "every two digits take about as many steps"


@PROBLEMS
def test_plain_frank_wolfe_does_not_get_there(name):
    """What away steps are for: with as many iterations as they take, the plain method is orders of magnitude behind."""
    C, target = problems()[name]
    f = strongly_convex(target.shape, target)
    atoms = run(f, C, ex.moves.BlendedPairwise())
    plain = run(f, C, ex.moves.VertexMove(), max_iter=atoms.n_iter)
    assert plain.gap > 100 * atoms.gap


@pytest.mark.parametrize("name", ["simplex", "hypersimplex", "birkhoff"])
@pytest.mark.parametrize("move", IN_FACE, ids=repr)
def test_geometric_convergence_without_atoms(name, move):
    C, target = problems()[name]
    f = strongly_convex(target.shape, target)
    r = run(f, C, move)
    assert r.status == ex.Status.GAP
    assert r.atoms is None
    assert C.on(f.shape).contains(r.x, 1e-12)
    assert r.value == pytest.approx(run(f, C, ex.moves.Pairwise()).value, abs=1e-8)
    oracles = {ex.moves.InFacePairwise(): 2, ex.moves.InFaceBlended(): 3}[move]
    assert r.calls.lmos == oracles * r.n_iter


@EVERY_ATOM_MOVE
def test_f_never_rises_and_atoms_that_are_dropped_are_gone(move):
    """Over 400 steps with a line search: weights, points and keys agree at each; drop steps are followed by progress."""
    C, target = problems()["hypersimplex"]
    f = strongly_convex(target.shape, target)
    method = ex.Method(ex.gradients.Full(), ex.steps.LineSearch(), move)
    drops, last, keys = 0, math.inf, set()
    for state in itertools.islice(ex.iterate(f, C, method), 400):
        atoms, value = state.point.active, f.value(state.x)
        assert value <= last + 1e-14
        assert np.abs(state.x - atoms.x).max() <= 1e-12
        assert abs(atoms.weights.sum() - 1) <= 1e-12
        assert atoms.weights.min() > 0
        now = {v.key for v in atoms.vertices}
        assert len(now) == len(atoms)
        drops += len(keys - now)
        last, keys = value, now
    assert drops > 0
    assert state.certify().gap < 1e-8


@pytest.mark.parametrize(("plain", "lazy"), list(zip(ATOM_MOVES, LAZY, strict=False)), ids=repr)
def test_lazy_moves_ask_the_oracle_less(plain, lazy):
    C, target = problems()["birkhoff"]
    f = strongly_convex(target.shape, target)
    a, b = run(f, C, plain), run(f, C, lazy)
    assert b.value == pytest.approx(a.value, abs=1e-8)
    assert a.calls.lmos == a.n_iter + 1  # one for the vertex to start from
    assert b.calls.lmos + b.calls.certificate_lmos < a.calls.lmos / 2
    assert b.gap <= 1e-8, "the last gap is the oracle's, not the lazy estimate"


@pytest.mark.parametrize("move", LAZY, ids=repr)
def test_noise_does_not_keep_lazy_moves_from_the_oracle(move):
    """Noisy gradients promise something at every atom; a lazy move would never leave the hull of its first few."""
    C, target = problems()["simplex"]
    f = strongly_convex(target.shape, target)
    method = ex.Method(ex.gradients.Sarah(batch=2, p=0.05), ex.steps.Decay(2, 8), move)
    runs = [ex.minimize(f, C, method, max_iter=2000, tol=0, atol=0, seed=seed) for seed in range(4)]
    assert all(2000 / 11 <= r.calls.lmos <= 2000 for r in runs)
    assert np.median([r.value for r in runs]) - run(f, C, ex.moves.Pairwise()).value < 5e-3


# stochastic gradients, types, other objectives


@pytest.mark.parametrize("gradient", [g for g in GRADIENTS if not isinstance(g, ex.gradients.Substitute)], ids=repr)
@pytest.mark.parametrize("move", [*ATOM_MOVES, ex.moves.BlendedPairwise(lazy=True)], ids=repr)
def test_every_estimator_with_every_move(gradient, move):
    f, C = model(ex.Squared()), ex.Simplex(3.0)
    method = ex.Method(gradient, ex.steps.Decay(2, 20), move)
    for state in itertools.islice(ex.iterate(f, C, method, seed=1), 60):
        assert C.contains(state.x)
        assert np.abs(state.x - state.point.active.x).max() <= 1e-12
    assert state.certify().value <= f.value(C.on(DIM).lmo(np.zeros(DIM)).to_array())


@pytest.mark.parametrize("move", ATOM_MOVES, ids=repr)
@pytest.mark.parametrize("loss", [ex.Logistic(), ex.Huber(), ex.NonlinearLeastSquares()], ids=repr)
def test_losses_and_objectives(move, loss):
    """On data and on callables alike; to f* if the loss is convex, to a stationary point if not."""
    C = ex.L1Ball(2.0)
    for f in (model(loss), model(loss, "csr"), separable(loss)):
        r = run(f, C, move, atol=1e-6, max_iter=3000)
        assert r.gap <= 1e-6
        assert not loss.convex or r.value == pytest.approx(optimum(loss, C), abs=1e-6)


def test_float32_rows():
    f = model(ex.Squared(), dtype=np.float32)
    for move in ATOM_MOVES:
        r = run(f, ex.Simplex(), move, atol=1e-8, max_iter=500)
        assert r.x.dtype == np.float64
        assert r.converged
        assert ex.Simplex().contains(r.x, 1e-12)


def test_substitute_margins_are_refused():
    with pytest.raises(ex.InputError, match="it needs the move VertexMove"):
        next(
            ex.iterate(
                model(ex.Squared()), ex.Simplex(), ex.Method(ex.gradients.Substitute(5), ex.steps.OpenLoop(), ex.moves.Away())
            )
        )


# starts


def test_runs_start_at_a_vertex_or_where_they_are_told():
    f, C = model(ex.Squared()), ex.L1Ball(2.0)
    method = ex.Method(ex.gradients.Full(), ex.steps.LineSearch(), ex.moves.Pairwise())
    first = next(ex.iterate(f, C, method))
    assert len(first.point.active) == 1
    np.testing.assert_array_equal(first.x, [2.0] + [0.0] * (DIM - 1))
    inside = np.full(DIM, 0.01)
    r = ex.minimize(f, C, method, x0=inside, tol=0, atol=1e-8)
    assert r.converged
    np.testing.assert_array_equal(inside, np.full(DIM, 0.01))


@EVERY_ATOM_MOVE
def test_a_warm_start_goes_on_where_the_last_run_ended(move):
    C, target = problems()["simplex"]
    f, near = strongly_convex(target.shape, target), strongly_convex(target.shape, target + 1e-6)
    cold = run(f, C, move)
    before = cold.atoms.weights.copy()
    assert run(f, C, move, x0=cold.atoms).n_iter == 0
    warm, again = run(near, C, move, x0=cold.atoms), run(near, C, move)
    assert warm.n_iter < again.n_iter
    assert warm.value == pytest.approx(again.value, abs=1e-8)
    np.testing.assert_array_equal(cold.atoms.weights, before)
    plain = ex.minimize(f, C, ex.FrankWolfe(), x0=cold.atoms, max_iter=0)  # atoms are a point to other methods
    np.testing.assert_allclose(plain.x, cold.x, atol=1e-12)


def test_atoms_that_do_not_fit_are_refused():
    f = model(ex.Squared())
    method = ex.PairwiseFW()
    outside = ex.points.ActiveSet([ex.points.Coordinate(0, 3.0, (DIM,))], [1.0])
    with pytest.raises(ex.InputError, match=r"`minimize\(x0=...\)` must lie in the set"):
        ex.minimize(f, ex.L1Ball(2.0), method, x0=outside)
    with pytest.raises(ex.InputError, match=r"must have shape \(8,\), got \(3,\)"):
        ex.minimize(f, ex.L1Ball(2.0), method, x0=ex.points.ActiveSet([ex.points.Coordinate(0, 1.0, (3,))], [1.0]))


@pytest.mark.parametrize("move", ATOM_MOVES, ids=repr)
def test_every_atom_has_to_be_in_the_set(move):
    """A mean that is feasible is not enough: a step may go to one of the atoms."""
    f = ex.LinearModel(ex.Squared(), np.eye(2), np.array([2.0, 0.0]))
    apart = ex.points.ActiveSet([ex.points.Coordinate(0, 3.0, (2,)), ex.points.Coordinate(0, -3.0, (2,))], [0.5, 0.5])
    with pytest.raises(ex.InputError, match=r"all its atoms in the set .*: atom 0 is not"):
        ex.minimize(f, ex.L1Ball(1.0), ex.Method(ex.gradients.Full(), ex.steps.LineSearch(), move), x0=apart)


@pytest.mark.parametrize("method", [ex.AwayFW(), ex.PairwiseFW(), ex.BlendedPairwiseFW()], ids=repr)
def test_large_sets_converge_by_default(method):
    """Steps of 1e-9 have to be told from steps of 2e-9."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 30))
    f = ex.LinearModel(ex.Squared(), A, A @ rng.standard_normal(30) + rng.standard_normal(300))
    assert ex.minimize(f, ex.L1Ball(1e4), method).converged


def test_slopes_that_are_not_finite_end_a_corrective_run():
    f = ex.Separable(2, 2, grad=lambda x, idx: np.full((len(idx), 2), np.nan if x[0] < 1 else -1.0) * [1, 2],
                     value=lambda x, idx: np.full(len(idx), x[0] - 2 * x[1]), convex=True)  # fmt: skip
    assert ex.minimize(f, ex.Simplex(), ex.FullyCorrectiveFW(), max_iter=5).status == ex.Status.NON_FINITE


def test_moves_in_faces_want_a_set_that_knows_them():
    with pytest.raises(ex.InputError, match=r"InFacePairwise needs a set that knows its faces.*Away\(\)"):
        ex.minimize(model(ex.Squared()), ex.LpBall(2.0, 3), ex.InFaceFW())


@pytest.mark.parametrize(
    "make", [ex.moves.Away, ex.moves.Pairwise, ex.moves.BlendedPairwise, ex.AwayFW, ex.PairwiseFW, ex.BlendedPairwiseFW]
)
def test_flags_are_flags(make):
    with pytest.raises(ex.InputError, match="must be True or False, got 1"):
        make(lazy=1)


# fully corrective steps


def test_the_inner_problem_is_solved():
    """Over random hulls: all atoms in use have the same slope, and no other a smaller one."""

    class Quadratic:
        def __init__(self, rng):
            self.B, self.c = rng.standard_normal((9, 6)), rng.standard_normal(9)

        def value(self, w):
            return 0.5 * float(np.sum((self.B @ w - self.c) ** 2))

        def slopes(self, w):
            return self.B.T @ (self.B @ w - self.c)

    for seed in range(20):
        h = Quadratic(np.random.default_rng(seed))
        w = minimise(h, np.eye(6)[0], 1e-9, 1000)
        slopes = h.slopes(w)
        assert slopes[w > 0].max() - slopes.min() <= 1e-9
        assert w.sum() == pytest.approx(1, abs=1e-12)


def test_projection_on_weights():
    np.testing.assert_allclose(project(np.array([0.4, 0.6, -3.0])), [0.4, 0.6, 0.0])
    np.testing.assert_allclose(project(np.array([5.0, 5.0, 0.0])), [0.5, 0.5, 0.0])


def test_corrective_steps_count_what_they_ask(monkeypatch):
    """Every slope over the hull, and every Hessian, is n component gradients."""
    f, asked = model(ex.Squared()), []
    loss = type(f.loss)
    deriv = loss.deriv
    monkeypatch.setattr(loss, "deriv", lambda self, z, y: asked.append(len(z)) or deriv(self, z, y))
    second = f.second_at
    monkeypatch.setattr(f, "second_at", lambda z: asked.append(len(z)) or second(z))
    r = ex.minimize(f, ex.L1Ball(2.0), ex.FullyCorrectiveFW(), tol=0, atol=0, max_iter=5)
    assert sum(asked) == r.calls.grads + r.calls.certificate


def test_few_iterations():
    f = model(ex.Logistic())
    assert run(f, ex.L1Ball(2.0), ex.moves.FullyCorrective()).n_iter <= 3 * DIM


def test_named_methods_are_their_moves():
    f, C = model(ex.Squared()), ex.Simplex()
    for method, move in (
        (ex.AwayFW(), ex.moves.Away()),
        (ex.PairwiseFW(lazy=True), ex.moves.Pairwise(lazy=True)),
        (ex.BlendedPairwiseFW(), ex.moves.BlendedPairwise()),
        (ex.FullyCorrectiveFW(0.5), ex.moves.FullyCorrective(0.5)),
        (ex.InFaceFW(), ex.moves.InFacePairwise()),
        (ex.InFaceFW(blended=True), ex.moves.InFaceBlended()),
    ):
        r = ex.minimize(f, C, method, tol=1e-8)
        assert r.method.move == move
        assert r.converged
    assert isinstance(ex.minimize(separable(ex.Squared()), C, ex.AwayFW(), tol=1e-3).method.step, ex.steps.ShortStep)


def test_the_face_oracle_is_counted():
    calls = ex.run.Calls()
    C = CountedSet(ex.Simplex().on(3), calls)
    a = C.away(np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.5, 0.0]))
    assert (a.j, calls.lmos) == (1, 1)
    assert C.max_step(np.array([0.5, 0.5, 0.0]), ex.points.Coordinate(2, 1.0, (3,)), a) == 0.5
