"""Runs that are killed and called again have the bits of runs that were never stopped: every method, every kind of problem."""

from __future__ import annotations

import logging
import signal
from fractions import Fraction

import cases
import numpy as np
import pytest
import scipy.sparse as sp
from interrupted_runs import Hand, Killed, difference
from test_repeatable import made

import extremal as ex
import extremal.sklearn as es
from extremal.methods.cards import METHODS
from extremal.run.checkpoints import container
from extremal.run.checkpoints.log import Log
from extremal.support import whole

RNG = np.random.default_rng(0)
A = RNG.standard_normal((300, 20))
LINE = A @ (RNG.standard_normal(20) * (RNG.random(20) < 0.4)) + RNG.standard_normal(300)
SIGNS = np.sign(LINE)
CLASSES = np.arange(300) % 3
SPARSE = sp.csr_array(A * (np.abs(A) > 1))


@pytest.fixture
def hand(monkeypatch):
    """Kills runs; nothing waits for a disk."""
    monkeypatch.setattr(whole.os, "fsync", lambda handle: None)
    return Hand(monkeypatch)


def same_bits(hand, file, make, **options):
    """Run without a stop, with kills, and once more from the end; return the undisturbed result and the number of kills."""
    f, C = make()
    try:
        expected = ex.minimize(f, C, **options)
    except Exception as error:  # a method that does not go with the problem
        pytest.skip(str(error)[-80:])
    saved = {"checkpoint": file, "checkpoint_seconds": 0}
    found = hand.finish(lambda: ex.minimize(*make(), **options, **saved))
    kills = hand.kills
    assert difference(expected, found) == []
    assert difference(expected, hand.finish(lambda: ex.minimize(*make(), **options, **saved))) == []
    assert hand.kills == 0  # the end was in the file
    assert {p.name for p in file.parent.iterdir()} <= {file.name, container.previous(file).name}
    return expected, kills


def logistic():
    return ex.LinearModel(ex.Logistic(), A, SIGNS)


# every method


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(
    ("model", "region"), [("logistic", "l1"), ("logistic", "polytope"), ("own", "simplex"), ("completion", "nuclear")]
)
def test_every_method(hand, tmp_path, name, model, region):
    same_bits(hand, tmp_path / "run.ckpt", lambda: made(model, region), method=name, max_iter=12, seed=3, tol=0, atol=0)


@pytest.mark.parametrize("method", cases.METHODS + cases.SPECIAL_METHODS, ids=repr)
@pytest.mark.parametrize("problem", ["squared", "not convex"])
def test_every_kind_of_parameters(hand, tmp_path, method, problem):
    make = {
        "squared": lambda: (cases.model(ex.Squared()), ex.L1Ball(2.0)),
        "not convex": lambda: (cases.model(ex.NonlinearLeastSquares(), "csr"), ex.Box(-1.0, 1.0)),
    }[problem]
    same_bits(hand, tmp_path / "run.ckpt", make, method=method, max_iter=12, seed=1, tol=0, atol=0)


GAPS = ex.Method(ex.gradients.Partial(blocks=35), ex.steps.LineSearch(), ex.moves.Blockwise("gaps"))
OTHERS = {
    "cut": (lambda: (cases.model(ex.Squared()), ex.AffineCut(ex.Simplex(), np.arange(8.0)[None], upper=2.0)), None),
    "sample": (lambda: (ex.LinearModel(ex.Logistic(), np.tile(A, (20, 1)), np.tile(SIGNS, 20)), ex.L1Ball(3.0)), None),
    "expansion": (lambda: (ex.LinearModel(ex.Squared(), A, LINE), ex.L1Ball(3.0)), ex.NewtonFW()),
    "sphere": (lambda: (ex.KarcherMean([np.diag([1.0 + i, 2.0]) for i in range(6)]), _between()), None),
    "blocks": (lambda: (_wide_quadratic(), ex.Product(*[ex.Simplex(shape=20)] * 35)), None),
    "order by gaps": (lambda: (_wide_quadratic(), ex.Product(*[ex.Simplex(shape=20)] * 35)), GAPS),
    "rows": (lambda: (logistic(), ex.Monotone(-1.0, 1.0)), None),
    "groups": (lambda: (logistic(), ex.GroupBall(1.0, [[2 * i, 2 * i + 1] for i in range(10)])), None),
    "classes": (lambda: (ex.InterceptModel(ex.Multinomial(3), A, CLASSES), ex.L1Ball(3.0)), None),
    "fractions": (lambda: (cases.model(ex.Squared()), ex.Simplex()), ex.FrankWolfe(step=ex.steps.Backtracking())),
    "sparse": (lambda: (ex.LinearModel(ex.Logistic(), SPARSE, SIGNS), ex.L1Ball(2.0)), ex.SagaFaceFW()),
    "lazy atoms": (lambda: (logistic(), ex.L1Ball(2.0)), ex.PairwiseFW(lazy=True)),
    "agents": (lambda: (logistic(), ex.L1Ball(2.0)), ex.DMFW(batch=5, compressor="top-3")),
}  # fmt: skip


def _between():
    return ex.LoewnerInterval(0.5 * np.eye(2), 9 * np.eye(2))


def _wide_quadratic():
    return ex.QuadraticModel(np.random.default_rng(0).standard_normal((700, 600)))


@pytest.mark.parametrize("name", OTHERS)
def test_other_problems(hand, tmp_path, name):
    make, method = OTHERS[name]
    same_bits(hand, tmp_path / "run.ckpt", make, method=method, max_iter=30, seed=1, tol=0, atol=0)


def test_exact_runs(hand, tmp_path):
    M, y = np.array([[1, 2, 0], [3, 4, 1], [0, 1, 5]], object), np.array([1, 2, 0], object)

    def make():
        f = ex.Separable(
            3, 3,
            grad=lambda x, idx: (M[idx] @ x - y[idx])[:, None] * M[idx],
            value=lambda x, idx: (M[idx] @ x - y[idx]) ** 2 / 2,
            convex=True, dtype=object,
        )  # fmt: skip
        return f, ex.Simplex(Fraction(1, 3))

    same_bits(hand, tmp_path / "run.ckpt", make, max_iter=6, tol=0, atol=0)


@pytest.mark.parametrize(
    "method", ["saga-sarah-fw", "sarah-fw", "storm", "svfw", "saga-fw", "lu-freund-sfw", "saga-face-fw", "tracked-fw"]
)
def test_bursts_keep_their_own_numbers(hand, monkeypatch, tmp_path, method):
    """The state shows rounded numbers, and a burst goes on from its own."""
    monkeypatch.setattr("extremal.run.bursts.run.CALL_WORK", 1e4)  # some iterations for each compiled call
    monkeypatch.setattr("extremal.run.bursts.faces.CALL_WORK", 1e4)
    if method not in METHODS:
        method = ex.Method(ex.gradients.Storm(batch=5), ex.steps.OpenLoop())

    def make():
        return ex.LinearModel(ex.Logistic(), A, SIGNS), ex.L1Ball(3.0)

    expected, kills = same_bits(hand, tmp_path / "run.ckpt", make, method=method, max_iter=1000, tol=0, atol=0)
    assert expected.compiled > 0
    assert kills > 0


@pytest.mark.parametrize("record", [1.0, ex.Record(0.5, ("value", "gap", "x"))])
def test_the_trace_goes_on(hand, tmp_path, record):
    same_bits(hand, tmp_path / "run.ckpt", lambda: (logistic(), ex.L1Ball(2.0)), method="sarah-fw", max_iter=60, record=record)


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("method", [None, "saga-sarah-fw", "pairwise-fw", "ef21-fw"])
@pytest.mark.parametrize("model", [ex.LinearModel, ex.InterceptModel])
def test_shards(hand, tmp_path, engine, method, model):
    ex.ShardDir.build((np.tile(A, (10, 1)), np.tile(SIGNS, 10)), tmp_path / "rows", seed=0)
    (tmp_path / "out").mkdir()

    def make():
        return model(ex.Logistic(), ex.ShardDir(tmp_path / "rows", engine=engine)), ex.L1Ball(2.0)

    same_bits(hand, tmp_path / "out" / "run.ckpt", make, method=method, max_iter=10, tol=0, atol=0)


# several runs


SQUARED = ex.Squared(), LINE
PATHS = {
    "quadratic": (SQUARED, lambda r: ex.L1Ball(r), {}),
    "logistic": ((ex.Logistic(), SIGNS), lambda r: ex.L1Ball(r), {}),
    "projected": ((ex.Logistic(), SIGNS), lambda r: ex.L2Ball(r), {}),
    "atoms": ((ex.Logistic(), SIGNS), lambda r: ex.L1Ball(r), {"method": "pairwise-fw", "max_iter": 15}),
    "table": ((ex.Logistic(), SIGNS), lambda r: ex.L1Ball(r), {"method": ex.SagaSarahFW(), "max_iter": 15}),
    "programs": ((ex.Logistic(), SIGNS), lambda r: ex.Polytope(np.ones((1, 20)), [r], bounds=(-1, 1)), {"max_iter": 10}),
}  # fmt: skip


@pytest.mark.parametrize("name", PATHS)
def test_paths(hand, tmp_path, name):
    (loss, y), ball, options = PATHS[name]

    def call(**more):
        return ex.path(ex.LinearModel(loss, A, y), [ball(r) for r in (0.5, 3.0, 1.0, 2.0)], **options, **more)

    expected, file = call(), tmp_path / "path.ckpt"
    for _ in range(2):
        found = hand.finish(lambda: call(checkpoint=file, checkpoint_seconds=0))
        assert [difference(a, b) for a, b in zip(expected, found, strict=True)] == [[]] * 4
    assert hand.kills == 0


def test_a_block_saves_all_of_its_runs(hand, tmp_path):
    def program():
        f, first = logistic(), ex.minimize(logistic(), ex.L1Ball(1.0), "sarah-fw", max_iter=9)
        second = ex.minimize(f, ex.L1Ball(2.0), "away-fw", x0=first.x, max_iter=9)
        return first, second, *ex.path(f, [ex.L1Ball(1.0), ex.L1Ball(3.0)])

    def saved():
        with ex.checkpoint(tmp_path / "all.ckpt", 0):
            return program()

    expected = program()
    for _ in range(2):
        assert [difference(a, b) for a, b in zip(expected, hand.finish(saved), strict=True)] == [[]] * 4
    assert hand.kills == 0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "model",
    [
        lambda: es.ConstrainedLinearRegression("nonneg"),
        lambda: es.ConstrainedLinearRegression("l1", radius="30%"),
        lambda: es.ConstrainedLinearRegression("l1:3", solver=ex.SarahFW(batch=10), tol=1e-2, max_iter=40),
        lambda: es.ConstrainedLogisticRegression("l1:3"),
        lambda: es.SparseLogisticPath(n_radii=4),
    ],
)
def test_estimators(hand, tmp_path, model):
    y = SIGNS if "Logistic" in type(model()).__name__ else LINE

    def saved():
        with ex.checkpoint(tmp_path / "fit.ckpt", 0):
            return model().fit(A, y)

    expected = model().fit(A, y)
    for _ in range(2):
        found = hand.finish(saved)
        for name in ("coef_", "coefs_", "intercept_", "dual_gap_", "n_iter_", "n_grads_"):
            if hasattr(expected, name):
                np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert hand.kills == 0


def test_runs_inside_of_a_run_are_parts_of_it(hand, tmp_path):
    """An oracle that minimises is asked again; only the run of the caller has a place in the file."""

    def inner(g):
        return ex.minimize(ex.LinearModel(ex.Squared(), np.eye(8), -np.asarray(g)), ex.L2Ball(1.0), max_iter=3).x

    def make():
        return cases.model(ex.Squared()), ex.Oracle(inner, 2.0, shape=8)

    same_bits(hand, tmp_path / "run.ckpt", make, method="frank-wolfe", max_iter=5, tol=0, atol=0)


# what a later call may change


@pytest.mark.parametrize(("small", "large"), [({"max_iter": 7}, {"max_iter": 30}), ({"max_grads": 3000}, {"max_grads": 9000})])
def test_a_raised_budget_goes_on(tmp_path, small, large):
    file, options = tmp_path / "run.ckpt", {"method": ex.FrankWolfe(), "tol": 0, "atol": 0}
    expected = ex.minimize(logistic(), ex.L1Ball(2.0), **options, **large)
    first = ex.minimize(logistic(), ex.L1Ball(2.0), **options, **small, checkpoint=file)
    assert first.n_iter < expected.n_iter
    found = ex.minimize(logistic(), ex.L1Ball(2.0), **options, **large, checkpoint=file)
    assert difference(expected, found) == []


def test_a_smaller_tolerance_goes_on(tmp_path):
    def call(tol, **more):
        return ex.minimize(logistic(), ex.L1Ball(2.0), "pairwise-fw", tol=tol, **more)

    first = call(1e-2, checkpoint=tmp_path / "run.ckpt")
    found = call(1e-6, checkpoint=tmp_path / "run.ckpt")
    assert found.converged
    assert found.gap < first.gap
    assert found.n_iter == call(1e-6).n_iter


def test_a_callback_pauses(tmp_path):
    file, options = tmp_path / "run.ckpt", {"method": "away-fw", "max_iter": 20, "tol": 0, "atol": 0}
    expected = ex.minimize(logistic(), ex.L1Ball(2.0), **options)
    first = ex.minimize(logistic(), ex.L1Ball(2.0), **options, checkpoint=file, callback=lambda state: state.k == 5)
    assert (first.status, first.n_iter) == (ex.Status.CALLBACK, 5)
    found = ex.minimize(logistic(), ex.L1Ball(2.0), **options, checkpoint=file, callback=lambda state: False)
    assert difference(expected, found) == []


# when it is written


def test_it_is_written_when_it_is_time(monkeypatch, tmp_path):
    """At most once in the given time, and at the end; by itself more rarely, if a write takes long."""
    now, writes = [0.0], []

    def write(*given):
        writes.append(now[0])
        now[0] += 3.0  # seconds that a write takes

    monkeypatch.setattr(Log.__init__, "__defaults__", (lambda: now[0],))
    monkeypatch.setattr(container, "write", write)

    def step(state):
        now[0] += 10.0

    options = {"method": "frank-wolfe", "max_iter": 50, "tol": 0, "atol": 0, "callback": step}
    ex.minimize(logistic(), ex.L1Ball(2.0), **options, checkpoint=tmp_path / "a", checkpoint_seconds=100)
    given = np.diff(writes)
    assert len(given) > 3
    assert (given[:-1] >= 100).all()
    now[0], writes[:] = 0.0, []
    ex.minimize(logistic(), ex.L1Ball(2.0), **options, checkpoint=tmp_path / "b")
    assert writes[0] == 60.0
    assert np.diff(writes)[0] >= 300  # 3 seconds are 1 % of them


def test_a_run_without_a_checkpoint_imports_nothing_of_it():
    import subprocess
    import sys

    code = (
        "import sys, numpy as np, extremal as ex\n"
        "ex.minimize(ex.LinearModel(ex.Squared(), np.eye(2), np.ones(2)), ex.L1Ball(1.0))\n"
        "print([m for m in sys.modules if 'checkpoints' in m])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


@pytest.mark.parametrize("method", ["away-fw", "sarah-fw"])
def test_a_signal_stops_the_run_at_a_state_that_is_saved(tmp_path, method):
    file, options = tmp_path / "run.ckpt", {"method": method, "max_iter": 500, "tol": 0, "atol": 0, "bursts": True}
    expected = ex.minimize(logistic(), ex.L1Ball(2.0), **options)
    sent = []

    def stop(state):
        if not sent:
            sent.append(state.k)
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start its jobs without this signal
    try:
        first = ex.minimize(logistic(), ex.L1Ball(2.0), **options, checkpoint=file, callback=stop)
        assert first.status is ex.Status.INTERRUPTED
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    found = ex.minimize(logistic(), ex.L1Ball(2.0), **options, checkpoint=file)
    assert difference(expected, found) == []


def test_what_a_class_of_a_user_needs(hand, tmp_path):
    make = lambda: (cases.model(ex.Squared()), ex.L1Ball(2.0))  # noqa: E731
    with pytest.raises(ex.InputError, match=r"this run cannot be saved: .*Plain.*, which no checkpoint can hold"):
        ex.minimize(*make(), ex.Method(Own(Plain), ex.steps.OpenLoop()), max_iter=5, checkpoint=tmp_path / "run.ckpt")
    method = ex.Method(Own(Known), ex.steps.OpenLoop())
    same_bits(hand, tmp_path / "run.ckpt", make, method=method, max_iter=9, tol=0, atol=0)


class Plain:
    """A state that says nothing about checkpoints."""

    def __init__(self, g, seen):
        self.g, self.exact, self.seen = g, False, seen


@ex.run.in_checkpoints
class Known(Plain):
    """The same, said to be plain data."""


class Own:
    """A user's own estimator: the mean of all gradients so far."""

    def __init__(self, kind):
        self._kind = kind

    def facts(self, n):
        return ex.gradients.Facts(start=n, per_step=n)

    def init(self, f, x, sampler):
        return self._kind(f.grad(x), 1)

    def update(self, f, k, x_prev, x, steps, state, sampler):
        return self._kind((state.seen * state.g + f.grad(x)) / (state.seen + 1), state.seen + 1)


def test_a_damaged_file_falls_back_to_the_one_before(hand, tmp_path, caplog):
    file, options = tmp_path / "run.ckpt", {"method": "away-fw", "max_iter": 20, "tol": 0, "atol": 0}
    expected = ex.minimize(logistic(), ex.L1Ball(2.0), **options)
    hand.left = 9
    with pytest.raises(Killed):
        ex.minimize(logistic(), ex.L1Ball(2.0), **options, checkpoint=file, checkpoint_seconds=0)
    held = bytearray(file.read_bytes())
    held[len(held) // 2] ^= 1
    file.write_bytes(held)
    hand.left = -1
    with caplog.at_level(logging.WARNING, "extremal"):
        found = ex.minimize(logistic(), ex.L1Ball(2.0), **options, checkpoint=file, checkpoint_seconds=0)
    assert difference(expected, found) == ["why"]
    for said in (found.why, caplog.text):
        assert f"{file} is damaged: its checksum does not match; the run goes on from the checkpoint before it" in said
