"""What an outside review found, kept mended: bad sparse matrices, reused buffers, wild steps, float32 gaps, memory, caches."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from cases import DIM, LOSSES, MATRIX, N, gap, model, separable, targets

import extremal as ex
from extremal.checks import UnsolvedError
from extremal.gradients import table
from extremal.support import memory

C = ex.L1Ball(2.0)


@pytest.mark.parametrize("spoil", ["column", "negative", "pointer"])
def test_a_sparse_matrix_that_points_outside_itself(spoil):
    A = sp.csr_matrix(MATRIX)
    if spoil == "pointer":
        A.indptr[-1] += 5
    else:
        A.indices[3] = 10**6 if spoil == "column" else -1
    with pytest.raises(ex.InputError, match=r"A=\.\.\.\)` is not a valid sparse matrix"):
        ex.LinearModel(ex.Logistic(), A, targets(ex.Logistic()))


def test_callables_that_use_their_buffer_again():
    plain = separable(ex.Logistic())
    buffers: dict[int, np.ndarray] = {}

    def grad(x, idx):
        out = buffers.setdefault(len(idx), np.empty((len(idx), DIM)))
        out[:] = plain.derivs(x, idx)
        return out

    f = ex.Separable(N, DIM, grad=grad, value=plain.values, convex=True)
    for method in (ex.SarahFW(batch=5), ex.SagaSarahFW(batch=5), ex.SVFW(batch=5)):
        a, b = (ex.minimize(g, C, method=method, max_iter=50, tol=0) for g in (f, plain))
        np.testing.assert_array_equal(a.x, b.x)


def test_rows_that_are_handed_out_cannot_be_changed():
    rows = ex.objectives.Sampler(100, seed=0).rows(3, 5)
    with pytest.raises(ValueError, match="read-only"):
        rows.sort()


@pytest.mark.parametrize("eta", [1.5, -0.5, np.nan, None, "a"])
def test_a_step_outside_the_unit_interval_is_refused(eta):
    rule = SimpleNamespace(bind=lambda plan: rule, eta=lambda k, direction: eta)
    moves = (ex.moves.VertexMove(), ex.moves.Sliding(1.0, 0.1), ex.moves.AcceleratedSliding(1.0, 0.1))
    for move in moves:
        with pytest.raises(ex.InputError, match=r"gave eta = .* in \[0, 1\]"):
            ex.minimize(model(ex.Logistic()), C, method=ex.Method(gradient=ex.gradients.Full(), step=rule, move=move), max_iter=5)


def test_an_iterate_outside_the_set_gets_no_certificate():
    class Astray(ex.moves.VertexMove):
        def advance(self, k, f, C, point, estimate, step):
            x = 3.0 * C.lmo(estimate.g).to_array()
            return type(point)(x, x)

    method = ex.Method(gradient=ex.gradients.Full(), step=ex.steps.OpenLoop(), move=Astray())
    C, f = ex.L1Ball(0.1), model(ex.Logistic())
    r = ex.minimize(f, C, method=method, max_iter=3, tol=0, atol=0)
    assert (r.status, r.converged) == (ex.Status.OUTSIDE, False)
    assert C.contains(r.x)  # the best point that was certified inside: here the start
    assert r.value == pytest.approx(f.value(C.on(DIM).start()), rel=1e-12)
    assert r.gap == pytest.approx(gap(C, r.x, f.grad(r.x)), rel=1e-12)


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_runs_on_float32_rows_are_those_of_float64(loss, kind):
    """Iterates, values and gaps for the float32 data, to the accuracy of float64."""
    f = model(loss, kind, np.float32)
    assert (f.dtype, f.y.dtype, f.data.dtype) == (np.float64, np.float64, np.float32)
    exact = ex.LinearModel(loss, MATRIX.astype(np.float32).astype(np.float64), f.y)
    for method in (ex.FrankWolfe(step=ex.steps.ShortStep()), ex.SarahFW(), ex.SagaSarahFW()):
        r = ex.minimize(f, C, method=method, max_grads=200 * N, tol=0, record=5)
        assert r.x.dtype == np.float64
        assert r.value == pytest.approx(exact.value(r.x), rel=1e-12)
        assert r.gap == pytest.approx(gap(C, r.x, exact.grad(r.x)), rel=1e-9, abs=1e-13)
        assert r.trace.value[0] == pytest.approx(exact.value(np.zeros(DIM)), rel=1e-12)


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_float32_rows_reach_the_tolerance_of_float64_rows(kind):
    r = ex.minimize(model(ex.Logistic(), kind, np.float32), C, tol=0, atol=1e-12)
    assert (r.status, r.converged, r.x.dtype) == (ex.Status.GAP, True, np.float64)
    exact = ex.LinearModel(ex.Logistic(), MATRIX.astype(np.float32).astype(np.float64), targets(ex.Logistic()))
    assert gap(C, r.x, exact.grad(r.x)) <= 1.1e-12


def test_float32_data_larger_than_a_block_are_widened_in_parts(monkeypatch):
    A = ex.data.Dense(MATRIX.astype(np.float32))
    monkeypatch.setattr("extremal.data.contract.PIECE_ROWS", 7)
    x, c = np.linspace(-1, 1, DIM), np.linspace(-1, 1, N)
    wide = MATRIX.astype(np.float32).astype(np.float64)
    np.testing.assert_allclose(A.dot(x), wide @ x, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(A.tdot(c), wide.T @ c, rtol=1e-13, atol=1e-14)


def test_small_tables_are_never_refused(monkeypatch):
    stub = SimpleNamespace(n=1000, deriv_shape=(), dtype=np.dtype(np.float64))
    monkeypatch.setattr(table, "free_memory", lambda: 0)
    monkeypatch.setattr(table.shutil, "disk_usage", lambda path: SimpleNamespace(free=0))
    table.check_memory(stub)
    with pytest.raises(MemoryError, match="does not fit"):
        table.check_memory(SimpleNamespace(n=2**31, deriv_shape=(), dtype=np.dtype(np.float64)))


def test_the_page_cache_of_a_container_counts_as_free(tmp_path, monkeypatch):
    for name, text in (("memory.max", "1000"), ("memory.current", "900"), ("memory.stat", "anon 5\ninactive_file 600\n")):
        (tmp_path / name).write_text(text)
    (tmp_path / "meminfo").write_text("MemTotal: 10 kB\nMemAvailable:       7 kB\n")
    monkeypatch.setattr(memory, "CONTAINER", tmp_path)
    monkeypatch.setattr(memory, "SYSTEM", tmp_path / "meminfo")
    assert memory.free_memory() == 700
    (tmp_path / "memory.max").write_text("max")  # no limit: what the machine has
    assert memory.free_memory() == 7 * 1024
    (tmp_path / "memory.max").write_text("99999")
    assert memory.free_memory() == 7 * 1024
    (tmp_path / "memory.current").write_text("999999")  # more than is allowed
    assert memory.free_memory() == 0
    (tmp_path / "memory.stat").unlink()
    (tmp_path / "meminfo").write_text("MemTotal: 10 kB\n")
    assert memory.free_memory() is None


def test_compiled_code_works_where_no_cache_can_be_written(monkeypatch):
    import numba

    from extremal.kernels.jit import jit

    real = numba.njit

    def njit(*functions, **options):  # numba's own modules, imported late, call it without options
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return real(*functions, **options)

    monkeypatch.setattr(numba, "njit", njit)
    assert jit(lambda a: a + 1)(2) == 3


def test_without_compilation_the_answer_is_the_same():
    code = (
        "import numpy as np, scipy.sparse as sp, extremal as ex; rng = np.random.default_rng(0)\n"
        "A = sp.random(60, 20, 0.2, random_state=0, format='csr'); y = np.sign(rng.standard_normal(60))\n"
        "f = ex.LinearModel(ex.Logistic(), A, y)\n"
        "print(repr(ex.minimize(f, ex.L1Ball(5.0), ex.SarahFW(batch=5), max_iter=80).value))"
    )
    out = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ | more).stdout
        for more in ({}, {"NUMBA_DISABLE_JIT": "1"})
    ]
    assert float(out[0]) == pytest.approx(float(out[1]), rel=1e-12)


def test_compiling_is_not_on_the_clock():
    code = (
        "import numpy as np, scipy.sparse as sp, extremal as ex\n"
        "A = sp.random(60, 20, 0.2, random_state=0, format='csr'); y = np.where(np.arange(60) % 2, 1.0, -1.0)\n"
        "f = ex.LinearModel(ex.Logistic(), A, y)\n"
        "from numba.core import event\n"
        "from extremal.support.clock import Clock\n"
        "heard, begin = [], Clock.__init__\n"
        "Clock.__init__ = lambda self: heard.append('clock') or begin(self)\n"
        "class Listener(event.Listener):\n"
        "    def on_start(self, event): heard.append('kernel')\n"
        "    def on_end(self, event): pass\n"
        "event.register('numba:compiler_lock', Listener())  # a kernel is compiled, or loaded\n"
        "ex.minimize(f, ex.L1Ball(5.0), ex.SarahFW(batch=5), max_iter=20)\n"
        "assert 'kernel' in heard and 'kernel' not in heard[heard.index('clock'):], heard\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda: ex.Method(gradient=3, step=ex.steps.OpenLoop()), "gradient"),
        (lambda: ex.Method(gradient=ex.gradients.Full, step=ex.steps.OpenLoop()), "gradient"),
        (lambda: ex.Method(gradient=ex.gradients.Full(), step=ex.steps.OpenLoop(), move=3), "move"),
        (lambda: ex.Separable(2, 2, grad=len, value=len, convex="no"), "convex"),
        (lambda: ex.Separable(2, 2, grad=len, value=len, dtype="foo"), "dtype"),
        (lambda: ex.Separable(2, 2, grad=len, value=len, dtype=int), "dtype"),
        (lambda: ex.LinearModel(ex.Squared(), np.ma.masked_array(MATRIX, MATRIX > 1), targets(ex.Squared())), "A"),
        (lambda: next(ex.iterate(model(ex.Squared()), C, seed=-1)), "`iterate(seed"),
        (lambda: ex.Separable(2, 2, grad=lambda x, i: "a", value=len).grad(np.zeros(2)), "grad"),
        (lambda: ex.Separable(2, 2, grad=lambda x, i: np.full((len(i), 2), 1j), value=len).grad(np.zeros(2)), "grad"),
    ],
)
def test_mistakes_that_had_no_clear_word(make, names):
    with pytest.raises(ex.InputError) as caught:
        make()
    assert names in str(caught.value)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: ex.CGS(L=-1), r"`CGS\(L"),
        (lambda: ex.FCGS(L=0), r"`FCGS\(L"),
        (lambda: ex.gradients.Momentum(5, rho=0.5), r"`Momentum\(rho"),
        (lambda: ex.gradients.Storm(5, rho=0.5), r"`Storm\(rho"),
        (lambda: ex.gradients.Sag(5, rho=0.5), r"`Sag\(rho"),
        (lambda: ex.minimize(model(ex.Squared()), C, ex.SVFW(epoch=0), max_iter=1), r"`SVFW\(epoch"),
        (lambda: ex.minimize(model(ex.Squared()), C, ex.SpiderFW(epoch=0), max_iter=1), r"`SpiderFW\(epoch"),
        (
            lambda: ex.minimize(ex.KarcherMean([np.eye(2)]), ex.LoewnerInterval(np.eye(2), 2 * np.eye(2)), "sarah-fw"),
            "tangent vectors",
        ),
    ],
)
def test_constants_of_methods_are_named_by_the_method(make, word):
    with pytest.raises(ex.InputError, match=word):
        make()


def test_epochs_may_be_longer_than_the_sum():
    for method in (ex.FCGS(epoch=100), ex.FZFW(epoch=100), ex.SVFW(epoch=100), ex.SpiderFW(epoch=100)):
        assert ex.minimize(model(ex.Squared()), C, method, max_iter=2).n_iter == 2


def test_accelerated_sliding_looks_ahead_within_the_epoch():
    """2/(k + 2) by the rule that reads epochs and by the plain one, which the move asks for the position in the epoch."""
    move = ex.moves.AcceleratedSliding(ex.laws.PowerLaw(1.0, 1.0, -1.0), 0.001)
    a, b = (
        ex.minimize(
            model(ex.Logistic()), C, ex.Method(gradient=ex.gradients.Svrg(5, epoch=30), step=step, move=move), max_iter=50, tol=0
        )
        for step in (ex.steps.EpochOpenLoop(), ex.steps.Decay(2, 2))
    )
    np.testing.assert_allclose(a.x, b.x, atol=1e-12)


def test_spider_with_epochs_of_a_given_length_converges_on_convex_sums():
    f = model(ex.Logistic())
    gaps = [ex.minimize(f, C, ex.SpiderFW(epoch=8), max_grads=k * N, tol=0).gap for k in (100, 3000)]
    assert gaps[1] < gaps[0] / 5


@pytest.mark.parametrize(
    "gradient", [ex.gradients.Storm(5), ex.gradients.MiniBatch(5), ex.gradients.Sag(5), ex.gradients.Svrg(5, 5)], ids=repr
)
def test_steps_that_need_a_constant_of_the_estimator_say_so(gradient):
    for step, word in ((ex.steps.TwoPhase(), "d"), (ex.steps.Anytime(), "d"), (ex.steps.LuFreundStep(), "m")):
        with pytest.raises(ex.InputError, match=rf"`{type(step).__name__}\({word}=\.\.\.\)` must be given"):
            ex.minimize(model(ex.Logistic()), C, ex.Method(gradient=gradient, step=step), max_iter=3)
    r = ex.minimize(model(ex.Logistic()), C, ex.Method(gradient=gradient, step=ex.steps.TwoPhase(d=20.0)), max_iter=3)
    assert r.method.step == ex.steps.TwoPhase(20.0, 3)


@pytest.mark.parametrize("method", [ex.SVRF(batch=3), ex.STORC(batch=3)], ids=repr)
def test_epochs_begin_at_the_vertex_of_the_first_gradient(method):
    first, second, *_, later = itertools.islice(ex.iterate(model(ex.Logistic()), C, method), 9)
    np.testing.assert_array_equal(second.x, C.lmo(first.g).to_array())
    assert (second.estimate.phase.epoch, second.exact) == (1, True)
    assert np.abs(later.x - second.x).max() > 0.1


def test_a_sub_problem_that_is_cut_short_says_so():
    method = ex.Method(gradient=ex.gradients.Full(), step=ex.steps.FullStep(), move=ex.moves.Sliding(beta=1.0, tol=1e-9, limit=3))
    r = ex.minimize(model(ex.Logistic()), C, method=method, max_iter=2)
    assert (r.status, r.converged, r.n_iter) == ("unsolved", False, 0)
    with pytest.raises(UnsolvedError, match="3 LMOs without reaching its tolerance"):
        list(itertools.islice(ex.iterate(model(ex.Logistic()), C, method), 2))


def test_shapes_may_be_lists():
    assert ex.L1Ball(1.0, shape=[3, 4]).shape == (3, 4)
    assert ex.Separable(2, [3, 4], grad=len, value=len).shape == (3, 4)


def test_a_gradient_that_was_yielded_cannot_be_changed():
    state = next(ex.iterate(model(ex.Logistic()), C))
    with pytest.raises(ValueError, match="read-only"):
        state.g[0] = 1.0
