"""Every estimator with every move and every step rule: the run stays in the set and lowers f, or is refused in one sentence."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from cases import DIM, model

import extremal as ex
from extremal import gradients, moves, steps

B = 12
ESTIMATORS = (
    gradients.Full(), gradients.MiniBatch(B), gradients.Pool(B), gradients.Momentum(B), gradients.Storm(B),
    gradients.Svrg(B, epoch=5), gradients.Spider(B, epoch=5), gradients.Sarah(B, p=0.3), gradients.ShuffledSarah(B),
    gradients.SagaSarah(B, lam=0.2), gradients.Saga(B), gradients.Sag(B), gradients.Substitute(B),
    gradients.TrackedSag(B), gradients.Saga(B, curved=True), gradients.ZerothOrder(gradients.Saga(B), mu=1e-4),
    *(gradients.Reshuffled(g) for g in (gradients.MiniBatch(B), gradients.Sarah(B, p=0.3), gradients.TrackedSag(B))),
)  # fmt: skip
MOVES = (
    moves.VertexMove(), moves.Boosted(), moves.Away(), moves.Pairwise(), moves.BlendedPairwise(), moves.InFacePairwise(),
    moves.InFaceBlended(),
)  # fmt: skip
STEPS = (
    steps.OpenLoop(), steps.LogOpenLoop(), steps.Anytime(4.0), steps.ShortStep(), steps.LineSearch(), steps.Backtracking(),
    steps.Secant(), steps.BatchCurvature(), steps.SelfConcordant(),
)  # fmt: skip
SETS = (ex.L1Ball(2.0).on(DIM), ex.BoundedL1Ball(2.0, -1.0, 1.5).on(DIM), ex.L2Ball(1.5).on(DIM))


def refusal(gradient, move, step):
    """The beginning of the sentence that refuses the parts; None if they go together."""
    inner = gradient.gradient if isinstance(gradient, gradients.Reshuffled) else gradient
    if isinstance(inner, gradients.Substitute) and not isinstance(move, moves.VertexMove):
        return "Substitute follows the vertex of each step"
    curved = isinstance(inner, gradients.TrackedSag) or getattr(inner, "curved", False)
    return "SelfConcordant needs an estimator" if isinstance(step, steps.SelfConcordant) and not curved else None


@pytest.mark.parametrize("gradient", ESTIMATORS, ids=repr)
def test_any_estimator_with_any_move_and_any_step(gradient):
    f = model(ex.Logistic())
    for (i, move), (j, step) in itertools.product(enumerate(MOVES), enumerate(STEPS)):
        C, method, reason = SETS[(i + j) % 3], ex.Method(gradient, step, move), refusal(gradient, move, step)
        x0 = C.lmo(-f.grad(np.zeros(DIM))).to_array()  # the worst vertex
        if reason:
            with pytest.raises(ex.InputError, match=rf"^{reason}[^\n.]*(\.\.\.[^\n.]*)*$"):
                ex.minimize(f, C, method, x0=x0, max_iter=3, tol=0)
            continue
        states = list(itertools.islice(ex.iterate(f, C, method, x0=x0, seed=2), 25))
        assert all(C.contains(state.x, 1e-9) for state in states), method
        assert f.value(states[-1].x) < f.value(x0) - 0.1, method


def test_no_number_of_another_run_or_machine_decides():
    """Two of the cells, twice: the same iterates to the last bit."""
    f, C = model(ex.Logistic()), SETS[0]
    for step in (steps.Secant(), steps.BatchCurvature()):
        method = ex.Method(gradients.Reshuffled(gradients.Sarah(B, p=0.3)), step, moves.InFacePairwise())
        one, two = ([s.x for s in itertools.islice(ex.iterate(f, C, method, seed=2), 25)] for _ in range(2))
        np.testing.assert_array_equal(one, two)
