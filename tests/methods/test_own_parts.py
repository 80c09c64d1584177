"""Parts of one's own: what they lack is said before the run, and the result says whether compiled loops took them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from cases import model

import extremal as ex
from extremal import gradients, moves, steps

C = ex.L1Ball(2.0)
STEP = steps.OpenLoop()


@dataclass(frozen=True)
class State:
    g: np.ndarray
    exact: bool = True


class Plain:
    """An estimator that is complete."""

    state = State

    def facts(self, n):
        return gradients.Facts(start=n, per_step=n)

    def init(self, f, x, sampler):
        return self.state(f.grad(x))

    def update(self, f, k, x_prev, x, steps, state, sampler):
        return self.state(f.grad(x))


class Still(moves.FlatMove):
    """A move that is complete."""

    def start(self, x0):
        return moves.Point(x0, x0)

    def advance(self, k, f, C, point, estimate, step):
        return point


def without(kind, *names):
    """An object like that of a class, without some of its members."""
    members = {name: item for base in reversed(kind.__mro__[:-1]) for name, item in vars(base).items()}
    return type("Mine", (), {name: item for name, item in members.items() if name not in (*names, "__dict__", "__weakref__")})()


@pytest.mark.parametrize("name", ["facts", "init", "update"])
def test_estimators_that_lack_something(name):
    mine = without(Plain, name)
    for make in (
        lambda: ex.Method(mine, STEP),
        lambda: gradients.ZerothOrder(mine, 1e-3),
        lambda: gradients.Tracking(mine, gradients.ring(3)),
        lambda: gradients.Penalised(mine, np.ones((1, 2)), upper=1.0),
    ):
        with pytest.raises(ex.InputError, match=rf"gradient=.*Mine.*, without {name}: a gradient has facts, init, update"):
            make()


@pytest.mark.parametrize("name", ["check", "first", "start", "advance", "gap", "promise", "atomic", "one_vertex", "projects"])
def test_moves_that_lack_something(name):
    with pytest.raises(ex.InputError, match=rf"`Method\(move=...\)` must be a move .*Mine.*, without {name}: a move has check, "):
        ex.Method(gradients.Full(), STEP, without(Still, name))


@pytest.mark.parametrize("name", ["bind", "eta"])
def test_step_rules_that_lack_something(name):
    mine = without(steps.OpenLoop, name)
    for make in (lambda: ex.Method(gradients.Full(), mine), lambda: ex.SarahFW(step=mine)):
        with pytest.raises(ex.InputError, match=rf"step=.*Mine.*, without {name}: a step rule has bind, eta"):
            make()


def test_complete_parts_run():
    r = ex.minimize(model(ex.Logistic()), C, ex.Method(Plain(), STEP, Still()), max_iter=3, tol=0)
    assert (r.status, r.compiled) == ("max_iter", 0)
    assert ex.minimize(model(ex.Logistic()), C, ex.Method(without(Plain), STEP, without(Still)), max_iter=2, tol=0).n_iter == 2


class Costs(Plain):
    def facts(self, n):
        return n


class Bare(Plain):
    def init(self, f, x, sampler):
        return f.grad(x)


class Epochs(Plain):
    def facts(self, n):
        return replace(super().facts(n), epochs=True)


class Nowhere(Still):
    def start(self, x0):
        return x0


class Named:
    def prepare(self, f, C, budget):
        return "frank-wolfe"


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (lambda: ex.Method(Costs(), STEP), r"Costs.facts\(n\) must return gradients.Facts, got "),
        (lambda: ex.Method(Bare(), STEP), "Bare.init must return a state with g and exact, got "),
        (lambda: ex.Method(Epochs(), STEP), "Epochs has epochs: its states must be gradients.InEpochs, with a phase"),
        (lambda: ex.Method(Plain(), STEP, Nowhere()), "Nowhere.start must return a moves.Point, got "),
        (Named, r"`minimize\(method=...\)`: Named.prepare must return a Method, got 'frank-wolfe'"),
    ],
)
def test_what_parts_answer_is_looked_at_before_the_run(method, message):
    with pytest.raises(ex.InputError, match=message):
        ex.minimize(model(ex.Logistic()), C, method(), max_iter=2)


@dataclass(frozen=True)
class Placed(State, gradients.InEpochs):
    phase: object = gradients.Phase(0, 0, 9)


class InEpochs(Epochs):
    state = Placed


def test_estimators_with_epochs_of_their_own():
    """A rule that goes by epochs reads the phase; it stays 0 here, and so 2/(0 + 2) is the step of each iteration."""
    a, b = (
        ex.minimize(model(ex.Logistic()), C, ex.Method(InEpochs(), rule), max_iter=4, tol=0)
        for rule in (steps.EpochOpenLoop(), steps.FullStep())
    )
    np.testing.assert_array_equal(a.x, b.x)


class Halved(steps.Scheduled):
    """2 / (k + 2) at most 1/2; ``min`` takes no arrays."""

    def __init__(self, least):
        self.least = least

    def bind(self, plan):
        return self

    def at(self, k, phase=None):
        return self.least(0.5, 2.0 / (k + 2.0))


def test_the_result_says_what_compiled_loops_made():
    """A rule that takes no arrays makes the same run by the readable loop."""
    f, gradient = model(ex.Logistic()), gradients.Storm(batch=2)
    fast, slow, told = (
        ex.minimize(f, C, ex.Method(gradient, Halved(least)), max_iter=50, tol=0, bursts=bursts)
        for least, bursts in ((np.minimum, None), (min, None), (np.minimum, False))
    )
    assert (fast.n_iter, fast.compiled > 0, slow.compiled, told.compiled) == (50, True, 0, 0)
    np.testing.assert_allclose(fast.x, slow.x, atol=1e-9)
    assert fast.compiled <= fast.n_iter
