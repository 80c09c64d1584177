"""Steps of one block: against a transcription of the paper, with exact counts, and by the rate that the paper proves."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import extremal as ex
from extremal.checks import InputError
from extremal.moves.blocks import FINE
from extremal.objectives.base import BLOCKS, Sampler

RNG = np.random.default_rng(5)
A = RNG.standard_normal((6, 4))
T, B = RNG.standard_normal((4, 3)), RNG.standard_normal((6, 3))
QUADRATIC = ex.QuadraticModel(A, T, B)  # of 6 x 3 matrices
ROWS = ex.Rows(ex.Simplex()).on((6, 3))
X, Y = RNG.standard_normal((40, 6)), RNG.standard_normal((40, 3))
MULTI = ex.LinearModel(ex.MultiTask(ex.Squared(), 3), X, Y)
VECTOR = ex.LinearModel(ex.Logistic(), X, np.sign(Y[:, 0]))
PRODUCT = ex.Product(ex.L1Ball(1.5, shape=2), ex.Box(-0.5, 0.7, shape=(1, 3)), ex.Simplex(shape=1))
COLUMNS = ex.Columns(ex.L1Ball(1.5)).on((6, 3))
LINE, FIXED = ex.steps.LineSearch(), ex.steps.Decay(12, 12)

PROBLEMS = pytest.mark.parametrize(
    ("f", "C", "blocks"),
    [
        (QUADRATIC, ROWS, [np.s_[i, :] for i in range(6)]),
        (MULTI, ROWS, [np.s_[i, :] for i in range(6)]),
        (MULTI, COLUMNS, [np.s_[:, i] for i in range(3)]),
        (QUADRATIC, COLUMNS, [np.s_[:, i] for i in range(3)]),
        (VECTOR, PRODUCT, [np.s_[0:2], np.s_[2:5], np.s_[5:6]]),
    ],
    ids=["quadratic-rows", "multi-rows", "multi-columns", "quadratic-columns", "vector-product"],
)


def value_and_grad(f, x):
    """From the formulas, with numpy alone."""
    if f is QUADRATIC:
        r = A.T @ x - T
        return 0.5 * (r**2).sum() + (B * x).sum(), A @ r + B
    if f is MULTI:
        r = X @ x - Y
        return 0.5 * (r**2).sum() / 40, X.T @ r / 40
    z, y = X @ x, np.sign(Y[:, 0])
    return np.logaddexp(0, -y * z).mean(), X.T @ (-y / (1 + np.exp(y * z))) / 40


def best(g, C, i):
    """The vertex of block i, from the definitions of the sets."""
    s, (part, flat) = np.zeros(g.size), (C.block(i)[1], g.reshape(-1))
    if isinstance(part, ex.Simplex):
        s[flat.argmin()] = 1.0
    elif isinstance(part, ex.L1Ball):
        j = np.abs(flat).argmax()
        s[j] = -1.5 * np.sign(flat[j])
    else:
        s = np.where(flat > 0, -0.5, 0.7)
    return s.reshape(g.shape)


def line_search(f, x, d):
    """By bisection of the slope."""
    slope = lambda t: (value_and_grad(f, x + t * d)[1] * d).sum()  # noqa: E731
    if slope(0.0) >= 0 or slope(1.0) <= 0:
        return 0.0 if slope(0.0) >= 0 else 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        low, high = (low, (low + high) / 2) if slope((low + high) / 2) > 0 else ((low + high) / 2, high)
    return low


def naive(f, C, blocks, x, steps, chosen, search):
    """Algorithm 3 of Lacoste-Julien et al. (2013)."""
    for k in range(steps):
        i = chosen(k)
        at = blocks[i]
        d = np.zeros(x.shape)
        d[at] = best(value_and_grad(f, x)[1][at], C, i) - x[at]
        x = x + (line_search(f, x, d) if search else 12 / (k + 12)) * d
    return x


def uniform(seed, k):
    return int(Sampler(FINE, seed).rows(k, 1, stream=BLOCKS)[0]) / FINE


@PROBLEMS
@pytest.mark.parametrize("search", [True, False], ids=["line-search", "open-loop"])
@pytest.mark.parametrize("kept", [True, False], ids=["partial", "full"])
@pytest.mark.parametrize("order", ["cyclic", "random"])
def test_every_step_is_that_of_the_paper(f, C, blocks, search, kept, order):
    m = len(blocks)
    gradient = ex.gradients.Partial(m, passes=3) if kept else ex.gradients.Full()
    method = ex.Method(gradient, LINE if search else FIXED, ex.moves.Blockwise(order))
    chosen = (lambda k: k % m) if order == "cyclic" else (lambda k: int(uniform(4, k) * m))
    for steps in (1, 2, 5, 20):
        r = ex.minimize(f, C, method, max_iter=steps, tol=0, atol=0, seed=4)
        np.testing.assert_allclose(r.x, naive(f, C, blocks, C.start(), steps, chosen, search), atol=1e-8)
        assert r.calls.block_lmos == steps


@PROBLEMS
def test_the_certificate_is_the_sum_of_the_gaps_of_the_blocks(f, C, blocks):
    r = ex.minimize(f, C, ex.BlockFW(step=FIXED), max_iter=7, tol=0)
    value, g = value_and_grad(f, r.x)
    gaps = [(g[at] * (r.x[at] - best(g[at], C, i))).sum() for i, at in enumerate(blocks)]
    assert r.gap == pytest.approx(sum(gaps), rel=1e-9)
    assert r.value == pytest.approx(value, rel=1e-12)


@PROBLEMS
def test_counts_are_exact(f, C, blocks):
    """Ten passes: one gradient at the start, one at the end, and the parts of all other steps."""
    m = len(blocks)
    steps = [state for _, state in zip(range(10 * m + 1), ex.iterate(f, C, ex.BlockFW("cyclic", FIXED)), strict=False)]
    calls, size = steps[-1].calls, C.start().size
    first = C.start()[blocks[0]].size  # the first part is read from the first gradient
    assert calls.grads == 2 * f.n + (f.n * (10 * size - first)) // size
    assert calls.block_lmos == 10 * m
    assert [state.exact for state in steps] == [True, *[False] * (10 * m - 1), True]
    assert calls.lmos == calls.certificate == calls.certificate_lmos == 0
    assert steps[-1].certify().gap >= 0
    assert (calls.certificate, calls.certificate_lmos, calls.certificate_values) == (0, 1, 0)


def test_a_row_is_one_component_gradient():
    r = ex.minimize(QUADRATIC, ROWS, ex.BlockFW("random", FIXED), max_iter=13, tol=0)
    assert r.calls.grads == 6 + 12
    assert (r.calls.certificate, r.calls.certificate_lmos) == (6, 2)  # of the start, and of the answer
    assert "13 of one block" in repr(r)
    assert "13 of one block" in r._repr_html_()


# orders


def test_blocks_are_drawn_by_their_last_gaps():
    """A transcription with a table of gaps, which all steps but the first of ten passes leave stale."""
    f, C, m = QUADRATIC, ROWS, 6
    x, gaps = C.start(), np.zeros(m)
    for k, state in enumerate(ex.iterate(f, C, ex.BlockFW("gaps"), seed=3)):
        np.testing.assert_allclose(state.x, x, atol=1e-8)
        if k == 25:
            break
        g = value_and_grad(f, x)[1]
        if k == 0:
            gaps = np.array([(g[i] * (x[i] - best(g[i], C, i))).sum() for i in range(m)])
        i = int(np.searchsorted(np.cumsum(gaps), uniform(3, k) * gaps.sum(), side="right"))
        d = np.zeros(x.shape)
        d[i] = best(g[i], C, i) - x[i]
        gaps[i] = -(g[i] * d[i]).sum()
        x = x + line_search(f, x, d) * d
    assert state.calls.lmos == 1


@pytest.mark.parametrize("gradient", [ex.gradients.Partial(6), ex.gradients.Full()], ids=repr)
def test_gaps_are_computed_anew_every_ten_passes(gradient):
    method = ex.Method(gradient, FIXED, ex.moves.Blockwise("gaps"))
    for state in ex.iterate(QUADRATIC, ROWS, method, seed=1):
        if state.k == 61:
            break
        before = state.x
    g = value_and_grad(QUADRATIC, before)[1]
    gaps = np.array([(g[i] * (before[i] - best(g[i], ROWS, i))).sum() for i in range(6)])
    np.testing.assert_allclose(state.point.gaps, gaps, atol=1e-9)
    assert state.point.fresh == 60
    assert state.calls.lmos == 2
    assert state.calls.block_lmos == 61


def test_without_any_gap_blocks_are_drawn_uniformly():
    """All gaps are 0 at the minimiser, where the run stays."""
    f = ex.QuadraticModel(np.eye(4), target=np.full(4, 0.5))
    C = ex.Product(*[ex.Simplex(shape=2)] * 2)
    for state in ex.iterate(f, C, ex.BlockFW("gaps")):
        np.testing.assert_array_equal(state.x, np.full(4, 0.5))
        if state.k == 5:
            break
    assert state.calls.block_lmos == 5


def test_the_seed_of_the_run_draws_the_blocks_unless_the_move_has_its_own():
    def run(seed, own=None):
        method = ex.Method(ex.gradients.Full(), FIXED, ex.moves.Blockwise("random", own))
        return ex.minimize(QUADRATIC, ROWS, method, max_iter=9, tol=0, seed=seed).x.tolist()

    assert run(0) == run(0) != run(1)
    assert run(0, own=1) == run(1) == run(7, own=1)


def test_random_blocks_are_uniform():
    """Chi squared of 3000 draws of 6 blocks: five degrees of freedom, and its limit at one in a million."""
    method, chosen = ex.Method(ex.gradients.Full(), ex.steps.Scaled(FIXED, 0.5), ex.moves.Blockwise()), np.zeros(6)
    before = ROWS.start()
    for state in ex.iterate(QUADRATIC, ROWS, method, seed=0):
        moved = np.flatnonzero((state.x != before).any(axis=1))
        assert len(moved) <= 1
        chosen[moved] += 1
        before = state.x
        if state.k == 3000:
            break
    assert ((chosen - chosen.sum() / 6) ** 2).sum() / (chosen.sum() / 6) < 36


# rates


def test_the_bound_of_the_paper_holds_on_average():
    """E f(x_k) - f* <= 2m (c + f(x_0) - f*) / (k + 2m), with c = sum_i |a_i|^2 D^2 for rows in simplices, D^2 = 2."""
    least = ex.minimize(QUADRATIC, ROWS, tol=1e-12)
    h, c, m = QUADRATIC.value(ROWS.start()) - least.value, 2 * (A**2).sum(), 6
    ends = (20, 100, 400)
    method = ex.BlockFW(step=ex.steps.Decay(2 * m, 2 * m))
    for k in ends:
        mean = np.mean([ex.minimize(QUADRATIC, ROWS, method, max_iter=k, tol=0, seed=s).value for s in range(10)]) - least.value
        assert mean <= 2 * m * (c + h) / (k + 2 * m)


@PROBLEMS
@pytest.mark.parametrize("order", ["cyclic", "random", "gaps"])
def test_every_order_converges(f, C, blocks, order):
    first, last = (ex.minimize(f, C, ex.BlockFW(order), tol=0, max_iter=k * len(blocks)) for k in (1, 300))
    assert last.gap < 0.05 * first.gap
    assert last.value < first.value
    assert C.contains(last.x)


def test_kept_margins_do_not_drift():
    """After ten thousand steps between two full gradients, a part is still that of the full gradient."""
    f, C = QUADRATIC, ROWS
    method = ex.Method(ex.gradients.Partial(6, passes=3000), FIXED, ex.moves.Blockwise())
    for state in ex.iterate(f, C, method):
        if state.k == 10_000:
            break
    assert not state.exact
    g = value_and_grad(f, state.x)[1]
    for i in range(6):
        np.testing.assert_allclose(state.estimate.part(f, (i,)), g[i], atol=1e-10)


# other parts


@pytest.mark.parametrize(
    "gradient",
    [ex.gradients.Sarah(7, 0.2), ex.gradients.Saga(5), ex.gradients.MiniBatch(20), ex.gradients.Momentum(10)],
    ids=repr,
)
@pytest.mark.parametrize("C", [ROWS, COLUMNS], ids=repr)
def test_stochastic_estimators_drive_the_move(gradient, C):
    method = ex.Method(gradient, ex.steps.Decay(12, 12), ex.moves.Blockwise())
    few, many = (ex.minimize(MULTI, C, method, max_iter=k, tol=0, seed=0) for k in (10, 3000))
    assert C.contains(many.x)
    assert many.gap < 0.3 * few.gap
    assert many.calls.block_lmos == 3000
    assert many.calls.lmos == 0


@pytest.mark.parametrize("step", [ex.steps.ShortStep(), ex.steps.OpenLoop(), ex.steps.LogOpenLoop()], ids=repr)
def test_rules_see_the_direction_of_the_block(step):
    r = ex.minimize(QUADRATIC, ROWS, ex.BlockFW(step=step), max_iter=600, tol=0)
    assert r.gap < 0.3 * ex.minimize(QUADRATIC, ROWS, ex.BlockFW(step=step), max_iter=6, tol=0).gap


def test_a_short_step_has_the_length_of_the_block():
    L = QUADRATIC.smoothness
    x, g = ROWS.start(), value_and_grad(QUADRATIC, ROWS.start())[1][0]
    d = best(g, ROWS, 0) - x[0]
    r = ex.minimize(QUADRATIC, ROWS, ex.BlockFW("cyclic", ex.steps.ShortStep()), max_iter=1, tol=0)
    np.testing.assert_allclose(r.x[0], x[0] + min(1.0, -(g @ d) / (L * d @ d)) * d, atol=1e-12)
    np.testing.assert_array_equal(r.x[1:], x[1:])


def test_objectives_without_parts_take_full_gradients():
    f = ex.Separable(
        40, (6, 3),
        grad=lambda x, idx: X[idx][:, :, None] * (X[idx] @ x - Y[idx])[:, None, :],
        value=lambda x, idx: 0.5 * ((X[idx] @ x - Y[idx]) ** 2).sum(axis=1), convex=True,
    )  # fmt: skip
    r = ex.minimize(f, ROWS, ex.BlockFW("cyclic"), max_iter=30, tol=0)
    assert r.method.step == ex.steps.Decay(12, 12)
    assert r.calls.grads == 31 * 40
    same = ex.minimize(MULTI, ROWS, ex.BlockFW("cyclic", FIXED), max_iter=30, tol=0)
    np.testing.assert_allclose(r.x, same.x, atol=1e-10)


def test_rows_on_disk_take_full_gradients(tmp_path):
    """Their margins are not at hand."""
    f = ex.LinearModel(ex.Logistic(), ex.ShardDir.build((X, np.sign(Y[:, 0])), tmp_path / "rows"))
    r, same = (ex.minimize(g, PRODUCT, ex.BlockFW("cyclic"), max_iter=6, tol=0) for g in (f, VECTOR))
    assert isinstance(r.method.gradient, ex.gradients.Full)
    assert r.calls.grads == 7 * 40
    with pytest.raises(InputError, match="takes rows in memory"):
        ex.minimize(f, PRODUCT, ex.Method(ex.gradients.Partial(3), LINE, ex.moves.Blockwise()), max_iter=6)
    assert same.calls.grads < 4 * 40


def test_a_product_of_a_user_has_blocks():
    class Halves(ex.Oracle):
        """Two intervals [0, 1], as an oracle and as blocks."""

        def n_blocks(self):
            return 2

        def block(self, i):
            return (slice(3 * i, 3 * i + 3),), ex.Simplex(shape=3)

    def corners(g):
        s = np.zeros(6)
        s[[g[:3].argmin(), 3 + g[3:].argmin()]] = 1.0
        return s

    C = Halves(corners, diameter=2.0, start=np.full(6, 1 / 3))
    runs = [ex.minimize(VECTOR, D, ex.BlockFW(), max_iter=50, tol=0) for D in (C, ex.Product(*[ex.Simplex(shape=3)] * 2))]
    np.testing.assert_allclose(runs[0].x, runs[1].x, atol=1e-12)


def test_the_library_chooses_blocks_for_large_duals():
    rng = np.random.default_rng(0)
    f = ex.QuadraticModel(rng.standard_normal((300, 5)), linear=rng.standard_normal((300, 3)))
    assert isinstance(ex.Auto().choose(f, ex.Rows(ex.Simplex()).on(f.shape)).recipe, ex.BlockFW)
    r = ex.minimize(f, ex.Rows(ex.Simplex()), tol=1e-3)
    assert r.converged
    assert "300 blocks" in r.why
    wide = ex.QuadraticModel(rng.standard_normal((2500, 5)))
    assert ex.minimize(wide, ex.Simplex(), tol=0, atol=1e-3).converged


def test_functions_that_are_not_convex_take_short_steps():
    f = ex.LinearModel(ex.NonlinearLeastSquares(), X, (Y[:, 0] > 0).astype(float))
    r = ex.minimize(f, PRODUCT, ex.BlockFW(), max_iter=400, tol=0)
    assert isinstance(r.method.step, ex.steps.ShortStep)
    assert r.gap < 0.1 * ex.minimize(f, PRODUCT, ex.BlockFW(), max_iter=1, tol=0).gap


@pytest.mark.parametrize("order", ["random", "gaps"])
def test_paths_go_from_set_to_set(order):
    results = ex.path(MULTI, [ex.Columns(ex.L1Ball(r)) for r in (0.5, 1.0)], ex.BlockFW(order), tol=1e-3)
    assert all(r.converged for r in results)


@pytest.mark.parametrize("rows", [X, sp.csr_array(X), X.astype(np.float32)], ids=["dense", "csr", "float32"])
@pytest.mark.parametrize("loss", [ex.Logistic(), ex.MultiTask(ex.Squared(), 3), ex.Multinomial(3)], ids=repr)
def test_parts_are_those_of_the_full_gradient(rows, loss):
    y = {3: Y, 1: np.sign(Y[:, 0])}[3 if isinstance(loss, ex.MultiTask) else 1]
    y = np.argmax(Y, axis=1) if isinstance(loss, ex.Multinomial) else y
    f = ex.LinearModel(loss, rows, y)
    x = np.random.default_rng(1).standard_normal(f.shape)
    g, z = f.grad(x), f.value_grad_margins(x)[2]
    places = [(slice(1, 4),), (slice(0, 6),)] + ([(2,), (slice(None), 1)] if len(f.shape) == 2 else [])
    for place in places:
        np.testing.assert_allclose(f.part(z, place), g[place], rtol=2e-5, atol=1e-6)
        way = np.zeros(f.shape)
        way[place] = np.random.default_rng(2).standard_normal(way[place].shape)
        np.testing.assert_allclose(f.part_margins(place, way[place]), np.asarray(X @ way), rtol=1e-5, atol=1e-5)


def test_what_has_no_blocks_is_refused():
    with pytest.raises(InputError, match="made of blocks"):
        ex.minimize(MULTI, ex.NuclearBall(1.0), ex.BlockFW())
    with pytest.raises(InputError, match="made of blocks"):
        ex.minimize(VECTOR, ex.L1Ball(1.0), ex.Method(ex.gradients.Full(), FIXED, ex.moves.Blockwise()))
    with pytest.raises(InputError, match="order"):
        ex.BlockFW("randm")
    with pytest.raises(InputError, match="seed"):
        ex.moves.Blockwise(seed=-1)
    with pytest.raises(InputError, match="blocks"):
        ex.gradients.Partial(0)
    with pytest.raises(InputError, match="needs the move Blockwise"):
        ex.minimize(MULTI, ROWS, ex.Method(ex.gradients.Partial(6), FIXED))
    f = ex.InterceptModel(ex.Logistic(), X, np.sign(Y[:, 0]))
    with pytest.raises(InputError, match="part_margins"):
        ex.minimize(f, PRODUCT, ex.Method(ex.gradients.Partial(3), FIXED, ex.moves.Blockwise()))
    with pytest.raises(InputError, match="follow"):
        ex.minimize(VECTOR, PRODUCT, ex.Method(ex.gradients.Substitute(5), ex.steps.LuFreundStep(), ex.moves.Blockwise()))
