"""The threads of BLAS change no bit of a run on a directory, although they change long sums over the columns."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import extremal as ex
from extremal.support.linalg import one_thread

threadpoolctl = pytest.importorskip("threadpoolctl")

N, D = 600, 20_000  # sums over more than 10 000 numbers are divided among threads
BALL = ex.L1Ball(8.0)
METHODS = {
    "short steps": ex.FrankWolfe(step=ex.steps.ShortStep()),  # with an eigenvalue by scipy
    "line searches": ex.FrankWolfe(step=ex.steps.LineSearch()),
    "pairwise": ex.PairwiseFW(),
    "default": None,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng = np.random.default_rng(3)
    A = sp.random_array((N, D), density=0.01, rng=rng, data_sampler=rng.standard_normal, format="csr")
    path = tmp_path_factory.mktemp("wide")
    ex.ShardDir.build((A, np.where(A @ rng.standard_normal(D) > 0, 1.0, -1.0)), path, shard_bytes=2**18, seed=0)
    return path


def on_threads(many, run):
    with threadpoolctl.threadpool_limits(many, user_api="blas"):
        return run()


def logistic(folder, kind=ex.LinearModel):
    return kind(ex.Logistic(), ex.ShardDir(folder, engine="disk"))


@pytest.mark.parametrize("kind", [ex.LinearModel, ex.InterceptModel])
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_run(folder, method, kind):
    def run():
        r = ex.minimize(logistic(folder, kind), BALL, method, max_iter=15)
        return r.x.tobytes(), r.value, r.gap, r.calls

    assert on_threads(1, run) == on_threads(2, run)


def test_a_path(folder):
    def run():
        return [(r.x.tobytes(), r.gap) for r in ex.path(logistic(folder), [ex.L1Ball(radius) for radius in (2.0, 4.0)])]

    assert on_threads(1, run) == on_threads(2, run)


def test_contexts_may_end_in_any_order():
    def threads():
        return {pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"}

    def run():
        first, second = one_thread(), one_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert threads() == {1}  # the second context is open
        second.__exit__(None, None, None)
        assert threads() == {2}

    on_threads(2, run)


def test_single_states_and_work_between_them(folder):
    def threads():
        return [pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]

    def run():
        here, found = threads(), []
        for state in itertools.islice(ex.iterate(logistic(folder), BALL, METHODS["line searches"]), 10):
            assert threads() == here  # as before the run
            found.append((state.x.tobytes(), state.g.tobytes()))
        return found

    assert on_threads(1, run) == on_threads(2, run)
