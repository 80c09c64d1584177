"""Bad input: one clear sentence that names the argument, never a silent wrong answer."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import scipy.sparse as sp
from cases import DIM, SETS, N, model

import extremal as ex
from extremal.methods.cards import METHODS

NAN, INF = math.nan, math.inf
Y = np.array([1.0, -1.0])
EYE = np.eye(2)


def refused(name: str, *words: str):
    """The context in which an InputError must be raised that names the argument and holds the words, in this order."""
    return pytest.raises(ex.InputError, match=".*".join([rf"\b{name}=\.\.\.", *map(re.escape, words)]))


def spoilt(value, at=(1, 0)) -> np.ndarray:
    A = np.array([[1.0, 0.0], [0.5, 2.0]])
    A[at] = value
    return A


# the data


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("at", [(0, 0), (1, 0), (1, 1)])
def test_non_finite_data(bad, dtype, at):
    A = spoilt(bad, at).astype(dtype)
    for given in (A, sp.csr_array(A), sp.csc_matrix(A), sp.coo_array(A)):
        with refused("A", "finite", str(bad), f"index {at}"):
            ex.LinearModel(ex.Squared(), given, Y)


def test_two_infinities_do_not_hide_each_other():
    for given in (np.array([[INF, -INF], [0, 0]]), sp.csr_array(np.array([[0, 0], [INF, -INF]]))):
        with refused("A", "finite"):
            ex.LinearModel(ex.Squared(), given, Y)


@pytest.mark.parametrize(
    "A",
    [np.ones(3), np.float64(1.0), np.ones((2, 2, 2)), [1.0, 2.0], sp.coo_array(np.ones(3)), None],
    ids=["1-d", "number", "3-d", "list", "1-d sparse", "None"],
)
def test_data_that_are_no_matrix(A):
    with refused("A", "two dimensions"):
        ex.LinearModel(ex.Squared(), A, Y)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_empty_data(shape):
    for A in (np.zeros(shape), sp.csr_array(shape)):
        with refused("A", "empty"):
            ex.LinearModel(ex.Squared(), A, np.zeros(shape[0]))
    with refused("A"):
        ex.LinearModel(ex.Squared(), [], [])


def test_data_of_a_wrong_kind():
    for A in (EYE * 1j, EYE.astype(object), EYE.astype(str), np.array([["a", "b"], ["c", "d"]]), np.zeros((2, 2), "M8[s]")):
        with refused("A", "float64, float32, integers or bools", str(A.dtype)):
            ex.LinearModel(ex.Squared(), A, Y)
    with refused("A", "float64, float32, integers or bools"):
        ex.LinearModel(ex.Squared(), sp.csr_array(EYE * 1j), Y)


def test_ragged_data():
    for make in (lambda A: ex.LinearModel(ex.Squared(), A, Y), ex.data.Dense):
        with refused("A", "rectangular"):
            make([[1.0, 2.0], [3.0]])


def test_sparse_data_for_dense_and_the_other_way_round():
    with refused("A"):
        ex.data.Dense(sp.csr_array(EYE))
    with refused("A"):
        ex.data.CSR([[1.0, "a"]])


# targets


@pytest.mark.parametrize("y", [np.ones(3), np.ones(1), np.ones((2, 1)), 1.0, [], None], ids=repr)
def test_targets_of_a_wrong_shape(y):
    with refused("y", "shape (2,)"):
        ex.LinearModel(ex.Squared(), EYE, y)


def test_ragged_targets():
    with refused("y"):
        ex.LinearModel(ex.Squared(), EYE, [[1.0, 2.0], [3.0]])


@pytest.mark.parametrize("bad", [NAN, INF])
@pytest.mark.parametrize("loss", [ex.Squared(), ex.Logistic()], ids=repr)
def test_non_finite_targets(bad, loss):
    with refused("y", "finite", "index 1"):
        ex.LinearModel(loss, EYE, [1.0, bad])


@pytest.mark.parametrize(
    ("loss", "y", "accepted"),
    [
        (ex.Logistic(), [0, 1], "{-1, 1}"),
        (ex.Logistic(), [True, False], "{-1, 1}"),
        (ex.Logistic(), [1.0, 2.0], "{-1, 1}"),
        (ex.Logistic(), [-1.0, 0.5], "{-1, 1}"),
        (ex.NonlinearLeastSquares(), [-1, 1], "{0, 1}"),
    ],
)
def test_labels_of_a_wrong_kind(loss, y, accepted):
    """The message says which are accepted, which were found, and how to map them."""
    low, high = accepted.strip("{}").split(", ")
    with refused("y", type(loss).__name__, accepted, "got", f"np.where(y == positive_class, {high}, {low})"):
        ex.LinearModel(loss, EYE, y)


@pytest.mark.parametrize("y", [["spam", "ham"], [1j, 2j], [None, "a"]], ids=repr)
def test_targets_that_are_no_numbers(y):
    with refused("y", "numbers", "np.where(y == positive_class, 1, -1)"):
        ex.LinearModel(ex.Logistic(), EYE, y)
    with refused("y", "numbers", "map them to numbers first"):
        ex.LinearModel(ex.Squared(), EYE, y)


def test_labels_that_are_mapped_as_the_message_says():
    y = np.array(["spam", "ham"])
    assert ex.LinearModel(ex.Logistic(), EYE, np.where(y == "spam", 1, -1)).y.tolist() == [1, -1]
    assert ex.LinearModel(ex.NonlinearLeastSquares(), EYE, y == "spam").y.tolist() == [1, 0]


@pytest.mark.parametrize("loss", [ex.Logistic, "logistic", None, ex.L1Ball(1.0)], ids=repr)
def test_a_loss_that_is_none(loss):
    with refused("loss", "such as Logistic()"):
        ex.LinearModel(loss, EYE, Y)


# sets


@pytest.mark.parametrize("size", [0, -1.0, NAN, INF, -INF, "1", True, None, 1j, [1.0]], ids=repr)
@pytest.mark.parametrize(
    ("make", "name"), [(ex.L1Ball, "radius"), (ex.L2Ball, "radius"), (ex.LinfBall, "radius"), (ex.Simplex, "total")]
)
def test_sizes_of_sets(make, name, size):
    with refused(name, "positive finite", repr(size)):
        make(size)


@pytest.mark.parametrize("shape", [0, -1, 2.5, (2, 0), "3", True], ids=repr)
@pytest.mark.parametrize("C", [C for C in SETS if C.shape is None], ids=repr)
def test_shapes_of_sets(C, shape):
    for make in (C.on, lambda s: type(C)(1.0, **({"upper": 2.0} if isinstance(C, ex.Box) else {}), shape=s)):
        with pytest.raises(ex.InputError, match="shape"):
            make(shape)


@pytest.mark.parametrize("bad", [NAN, INF, -INF, [0.0, INF], "a", None, [[1.0], [1.0, 2.0]], 1j, np.array([1j, 0])], ids=repr)
def test_sides_of_a_box(bad):
    with refused("lower"):
        ex.Box(bad, 1.0)
    with refused("upper"):
        ex.Box(0.0, bad)


@pytest.mark.parametrize(("lower", "upper"), [(1.0, 0.0), ([0.0, 2.0], 1.0), ([0.0, 2.0], [1.0, 1.0])])
def test_boxes_without_an_inside(lower, upper):
    with refused("lower", "upper=...", "lower <= upper"):
        ex.Box(lower, upper)


@pytest.mark.parametrize("sides", [([0.0, 0.0], [1.0, 1.0, 1.0]), ([0.0, 0.0], 1.0, 3), ([0.0, 0.0], 1.0, 1)], ids=repr)
def test_boxes_that_fit_no_shape(sides):
    with refused("lower", "upper=...", "shape"):
        ex.Box(*sides)


def test_boxes_without_a_side():
    with refused("lower", "a number or an array of numbers"):
        ex.Box([], [])


# methods


@pytest.mark.parametrize("batch", [0, -3, 2.0, "5", True, NAN])
@pytest.mark.parametrize(
    "make",
    [ex.SarahFW, ex.SagaSarahFW, lambda batch: ex.gradients.Sarah(batch, 0.5), lambda batch: ex.gradients.SagaSarah(batch, 0.5)],
)
def test_batches(make, batch):
    with refused("batch", "whole number", "got"):
        make(batch=batch)


@pytest.mark.parametrize(
    "method",
    [ex.SarahFW(batch=N + 1), ex.SagaSarahFW(batch=N + 1), ex.Method(ex.gradients.Sarah(N + 1, 0.5), ex.steps.OpenLoop())],
)
def test_a_batch_above_n(method):
    for call in (ex.minimize, ex.iterate):
        with refused("batch", f"between 1 and {N}", f"got {N + 1}"):
            call(model(ex.Squared()), ex.L1Ball(1.0), method=method)


@pytest.mark.parametrize("value", [0, -0.1, 1.5, NAN, INF, "0.5", True])
def test_probabilities_and_weights(value):
    for make in (lambda: ex.SarahFW(p=value), lambda: ex.gradients.Sarah(5, value)):
        with refused("p", "(0, 1]", repr(value)):
            make()
    for make in (lambda: ex.SagaSarahFW(lam=value), lambda: ex.gradients.SagaSarah(5, value)):
        with refused("lam", "(0, 1]", repr(value)):
            make()


@pytest.mark.parametrize("start", ["hot", "", None, 1])
def test_starts(start):
    for make in (lambda: ex.SagaSarahFW(start=start), lambda: ex.gradients.SagaSarah(5, 0.5, start=start)):
        with pytest.raises(ex.InputError, match=r"start.*cold, full"):
            make()


# runs


def run(**arguments):
    arguments = {"f": model(ex.Squared()), "C": ex.L1Ball(1.0), "max_iter": 1} | arguments
    return ex.minimize(arguments.pop("f"), arguments.pop("C"), **arguments)


@pytest.mark.parametrize(
    ("given", "nearest"),
    [("sarah", "sarah-fw"), ("SarahFW", "sarah-fw"), ("frank wolfe", "frank-wolfe"), ("saga_sarah", "saga-sarah-fw")],
)
def test_an_unknown_method_is_answered_by_the_nearest(given, nearest):
    with pytest.raises(ex.InputError, match=f"unknown method '{given}'; did you mean '{nearest}'.*{', '.join(sorted(METHODS))}"):
        run(method=given)


X0 = np.zeros(DIM)
RAGGED = [[1.0], [1.0, 2.0]]
ARGUMENTS = {
    "f": [None, ex.Logistic(), ex.LinearModel, np.eye(3)],
    "C": [None, "l1:1", 1.0, ex.L1Ball, model(ex.Squared())],
    "method": [ex.SarahFW, 3, ex.gradients.Sarah(5, 0.1), ex.steps.OpenLoop()],
    "x0": [X0[1:], X0[:, None], 0.0, X0 + NAN, X0 + INF, X0 + 1.0, "zero", RAGGED, X0 + 1j, [None] * DIM, ["a"] * DIM],
    "seed": [-1, 0.5, "0", None, True],
    "tol": [-1e-9, NAN, INF, "1e-4", None, True],
    "atol": [-1e-9, NAN, INF, "1e-4", None, True],
    "max_grads": [0, -1, 1e5, "10", True],
    "max_iter": [-1, 10.0, "10", True],
    "max_seconds": [0, -1.0, NAN, INF, "1", True],
    "callback": [5, "stop"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in ARGUMENTS.items() for value in values])
def test_arguments_of_a_run(name, value):
    with refused(name):
        run(**{name: value})


def test_arguments_of_the_loop_are_refused_at_once():
    for name, values in ({key: ARGUMENTS[key] for key in ("method", "x0", "seed")} | {"horizon": [0, 2.5]}).items():
        with refused(name):
            ex.iterate(model(ex.Squared()), ex.L1Ball(1.0), **{name: values[0]})


def test_an_infeasible_start_is_told_where_to_go():
    with refused("x0", "must lie in the set L1Ball", "leave it out to start from C.start()"):
        run(x0=X0 + 1.0)


@pytest.mark.parametrize("every", [0, -1.0, NAN, INF, "1", True])
def test_how_often_to_record(every):
    for record in (every, lambda: ex.Record(every=every)):
        with refused("every", "positive finite"):
            run(record=record() if callable(record) else record)


@pytest.mark.parametrize("what", ["gap", ("gaps",), (3,)])
def test_what_to_record(what):
    with refused("what"):
        ex.Record(what=what)


def test_numbers_of_numpy_are_numbers():
    budget = {"max_iter": np.int32(2), "max_grads": np.int64(10**6)}
    assert run(method="sarah-fw", tol=np.float32(1e-3), atol=np.float64(0), seed=np.int64(3), **budget).n_iter == 2
    assert ex.L1Ball(np.float32(2)).radius == 2
    assert ex.SarahFW(batch=np.int64(3), p=np.float32(0.5)).batch == 3
