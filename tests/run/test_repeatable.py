"""Same seed, same result: in equal calls one after the other, in threads that share f and C, and whatever the clock says."""

from __future__ import annotations

import functools
import itertools
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp

import extremal as ex
from extremal.methods.cards import METHODS

N, D, K = 80, 9, 3
RNG = np.random.default_rng(11)
A = RNG.standard_normal((N, D))
Y = np.where(A @ RNG.standard_normal(D) + RNG.standard_normal(N) > 0, 1.0, -1.0)
COUNTS = RNG.poisson(2.0, N).astype(float)
WEIGHTS = RNG.uniform(0.1, 3.0, N)
CLASSES = RNG.integers(K, size=N)
LINE = RNG.standard_normal((N, K))
ENTRIES = RNG.integers(D, size=40), RNG.integers(K, size=40), RNG.standard_normal(40)


def own() -> ex.Separable:
    return ex.Separable(
        N, D,
        grad=lambda x, idx: (A[idx] @ x - Y[idx])[:, None] * A[idx],
        value=lambda x, idx: 0.5 * (A[idx] @ x - Y[idx]) ** 2,
        convex=True,
    )  # fmt: skip


MODELS = {
    "logistic": lambda: ex.LinearModel(ex.Logistic(), A, Y),
    "sparse": lambda: ex.LinearModel(ex.Huber(0.3), sp.csr_array(A * (np.abs(A) > 1)), Y),
    "float32": lambda: ex.LinearModel(ex.Squared(), A.astype(np.float32), Y),
    "weights": lambda: ex.LinearModel(ex.Logistic(), A, Y, WEIGHTS),
    "not convex": lambda: ex.LinearModel(ex.NonlinearLeastSquares(), A, (Y + 1) / 2),
    "intercept": lambda: ex.InterceptModel(ex.Logistic(), A, Y),
    "intercept of counts": lambda: ex.InterceptModel(ex.Poisson(), A, COUNTS, WEIGHTS),
    "own": own,
}
MATRIX_MODELS = {
    "classes": lambda: ex.LinearModel(ex.Multinomial(K), A, CLASSES),
    "intercepts": lambda: ex.InterceptModel(ex.Multinomial(K), A, CLASSES),
    "tasks": lambda: ex.InterceptModel(ex.MultiTask(ex.Squared(), K), A, LINE, WEIGHTS),
    "completion": lambda: ex.MatrixCompletion(*ENTRIES, (D, K), centre=None, validation=0).objective,
}
EDGES = [(0, 1), (1, 2), (2, 3), (0, 2), (1, 3), (0, 3), (3, 4), (2, 4), (0, 4)]  # nine of them
SETS = {
    "l1": lambda: ex.L1Ball(2.0),
    "simplex": lambda: ex.Simplex(2.0),
    "box": lambda: ex.Box(-0.5, 0.2),
    "l2": lambda: ex.L2Ball(1.0),
    "k-support": lambda: ex.KSupportBall(1.0, 3),
    "latent groups": lambda: ex.LatentGroupBall(1.0, [[0, 1, 2, 3], [3, 4, 5], [5, 6, 7, 8]]),
    "capped": lambda: ex.CappedSimplex(0.2, 1.0),
    "polytope": lambda: ex.Polytope(np.ones((1, D)), [1.0], bounds=(-1, 1)),
    "integer hull": lambda: ex.IntegerHull(np.ones((1, D)), [2.5], bounds=(0, 1)),
    "paths": lambda: ex.PathPolytope(EDGES, 0, 4),
    "trees": lambda: ex.SpanningTrees(EDGES),
    "hull": lambda: ex.ConvexHull(np.vstack([np.eye(D), -np.eye(D), np.ones((1, D))])),
    "image": lambda: ex.LinearImage(np.tri(D), ex.L1Ball(1.0)),
    "sum": lambda: ex.MinkowskiSum(ex.L1Ball(1.0), ex.L2Ball(0.3)),
    "product": lambda: ex.Product(ex.Simplex(shape=4), ex.L2Ball(1.0, shape=5)),
    "oracle": lambda: ex.Oracle(lambda g: -np.asarray(g) / max(float(np.linalg.norm(g)), 1e-300), 2.0, shape=D),
}
MATRIX_SETS = {
    "nuclear": lambda: ex.NuclearBall(3.0),
    "spectral": lambda: ex.SpectralBall(1.0),
    "max-norm": lambda: ex.MaxNormBall(1.0),
    "transport": lambda: ex.TransportPolytope(np.full(D, K), np.full(K, D)),
    "rows": lambda: ex.Rows(ex.Simplex()),
    "l1 of a matrix": lambda: ex.L1Ball(3.0),
}
PAIRS = [  # every model and every set several times, in turn
    pair
    for models, sets in ((MODELS, SETS), (MATRIX_MODELS, MATRIX_SETS))
    for (i, m), (j, s) in itertools.product(enumerate(models), enumerate(sets))
    if (i + j) % 3 == 0
    for pair in [(m, s)]
]


def made(model: str, region: str):
    return (MODELS | MATRIX_MODELS)[model](), (SETS | MATRIX_SETS)[region]()


def run(f, C, **options) -> ex.Result:
    return ex.minimize(f, C, max_grads=25 * f.n, seed=3, **options)


def bits(r: ex.Result) -> tuple:
    return np.asarray(r.x).tobytes(), r.value, r.gap, r.status, r.n_iter, r.calls, str(r.method), r.why


@pytest.mark.parametrize(("model", "region"), PAIRS)
def test_equal_calls_on_one_problem_are_equal_in_bits(model, region):
    f, C = made(model, region)
    first = bits(run(f, C))
    assert bits(run(f, C)) == first
    assert bits(run(*made(model, region))) == first  # nor does it matter what earlier runs have left behind


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("region", ["l1", "polytope"])
def test_every_method_repeats_itself(name, region):
    f, C = made("logistic", region)
    first, second = (_or_refusal(f, C, name) for _ in range(2))
    assert second == first


def _or_refusal(f, C, name):
    try:
        return bits(run(f, C, method=name))
    except ex.InputError as refused:
        return str(refused)


@pytest.mark.parametrize(("model", "region"), PAIRS)
def test_ten_threads_give_the_bits_of_a_run_alone(model, region):
    alone = bits(run(*made(model, region)))
    f, C = made(model, region)
    found, start = [None] * 10, threading.Barrier(10)

    def one(i):
        start.wait()
        try:
            found[i] = bits(run(f, C))
        except Exception as error:
            found[i] = repr(error)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(10)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [item if isinstance(item, str) else item == alone for item in found] == [True] * 10


def clocks() -> dict[str, Callable[[], float]]:
    """Of a machine that stands still, that is slow, and that is busy now and then."""
    steps = {
        "still": itertools.repeat(0.0),
        "slow": itertools.repeat(3.0),
        "erratic": itertools.cycle([1e-9, 3.0, 3.0, 1e-4, 5.0]),
    }
    return {name: functools.partial(next, itertools.accumulate(step)) for name, step in steps.items()}


@pytest.mark.parametrize(("model", "region"), PAIRS)
def test_no_clock_changes_a_run(model, region, monkeypatch):
    """What Auto chooses follows from the problem alone, and so does every step."""
    plain = bits(run(*made(model, region)))
    for name, clock in clocks().items():
        for watch in ("perf_counter", "process_time", "monotonic", "time", "thread_time"):
            monkeypatch.setattr(time, watch, clock)
        again = run(*made(model, region))
        monkeypatch.undo()
        assert bits(again) == plain, name
