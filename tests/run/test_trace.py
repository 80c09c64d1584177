"""The way of a run through the library: its files, the questions it asks once, and the layers of its smallest requests."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import extremal as ex

ROOT = Path(ex.__file__).parent
DESIGN = Path(__file__).parents[2] / "docs" / "design.md"
MOST_FILES = 44  # of a default run, without compiled code
ONCE = (
    "minimize", "check_budget", "prepare", "check_objective", "as_data", "CSR.__init__", "check_targets",
    "ConvexSet.on", "NormBall.start", "L1Ball.spikes", "spikes_of", "as_recipe", "Auto.choose", "newton_move", "has_slices",
    "Growing.facts", "_first_point", "first_estimate", "usual_grads", "usual_work",
)  # fmt: skip


def traced(work) -> Counter[tuple[str, str]]:
    """How often each function of the library is called, by file and name; compiled code is left out."""
    calls, before = Counter(), sys.getprofile()

    def see(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(ROOT) and path.parent.name != "kernels":
            calls[path.relative_to(ROOT).as_posix(), frame.f_code.co_qualname] += 1

    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


def named() -> set[str]:
    """The files that docs/design.md lists."""
    _, found = DESIGN.read_text(encoding="utf-8").split("<!-- the way of a default run -->\n\n```\n", 1)
    rooms = (line.split(": ", 1) for line in found.split("```", 1)[0].strip().splitlines())
    return {name if room == "top level" else f"{room}/{name}" for room, names in rooms for name in names.split()}


@pytest.fixture(scope="module")
def default():
    """The trace of a default run over the l1 ball; an earlier run has compiled its kernels."""
    rng = np.random.default_rng(0)
    A = sp.random_array((5000, 120), density=0.1, rng=rng, format="csr", data_sampler=rng.standard_normal)
    y = np.where(A @ np.r_[np.ones(5), -np.ones(5), np.zeros(110)] + 0.3 * rng.standard_normal(5000) > 0, 1.0, -1.0)

    def work():
        assert ex.minimize(ex.LinearModel(ex.Logistic(), A, y), ex.L1Ball(5.0)).converged

    work()
    return traced(work)


def test_a_default_run_crosses_the_files_that_the_design_lists(default):
    files = {file for file, _ in default}
    assert files == named()
    assert len(files) <= MOST_FILES


def test_each_question_is_asked_once(default):
    asked = Counter()
    for (_, name), times in default.items():
        asked[name] += times
    assert {name: asked[name] for name in ONCE} == dict.fromkeys(ONCE, 1)


ROWS = np.random.default_rng(0).standard_normal((300, 20))
SOME, ONES = np.arange(30), np.ones(20)
DENSE, SPARSE = (ex.LinearModel(ex.Logistic(), A, np.sign(ROWS[:, 0])) for A in (ROWS, sp.csr_array(ROWS)))
SMALL = {
    "dense gradient": (lambda: DENSE.grad(ONES), 24),
    "sparse gradient": (lambda: SPARSE.grad(ONES), 19),
    "dense product": (lambda: DENSE.data.dot(ONES), 5),
    "dense adjoint": (lambda: DENSE.data.tdot(DENSE.y), 5),
    "dense batch": (lambda: DENSE.combine(DENSE.derivs(ONES, SOME), SOME), 11),
    "sparse batch": (lambda: SPARSE.combine(SPARSE.derivs(ONES, SOME), SOME), 10),
}


@pytest.mark.parametrize("name", SMALL)
def test_small_requests_cross_few_layers(name):
    work, most = SMALL[name]
    work()  # places of pieces are kept
    assert traced(work).total() <= most


@pytest.mark.parametrize(("method", "most"), [(ex.SarahFW(batch=3, p=1e-9), 68), (ex.FrankWolfe(), 80)], ids=repr)
def test_an_iteration_of_the_readable_loop_crosses_few_layers(method, most):
    def calls(iterations: int) -> int:
        run = lambda: ex.minimize(DENSE, ex.L1Ball(50.0), method, tol=0, atol=0, max_iter=iterations, bursts=False)  # noqa: E731
        return traced(run).total()

    calls(1)
    assert calls(200) - calls(100) <= 100 * most
