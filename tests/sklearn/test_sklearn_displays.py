"""Displays of fitted estimators: what is drawn, where, and what is refused."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import RidgeClassifier

import extremal as ex
from extremal.sklearn import (
    CoefficientsDisplay,
    ConstrainedLogisticRegression,
    ConstrainedMultinomialRegression,
    ConvergenceDisplay,
    PathDisplay,
    SimplexRegression,
    SparseLogisticPath,
    SparseLogisticPathCV,
    plot_coefficients,
    plot_convergence,
    plot_path,
)
from extremal.sklearn.plots import convergence, displays, drawing

mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
NAMES = [f"feature {j}" for j in range(8)]


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def data(classes=2):
    X, y = make_classification(n_samples=80, n_features=8, n_informative=5, n_classes=classes, random_state=0)
    return pd.DataFrame(X, columns=NAMES), np.array(["a", "b", "c"])[y]


def labels(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


# coefficients


def test_coefficients_are_sorted_and_named():
    X, y = data()
    model = ConstrainedLogisticRegression("box:-0.2,0.5").fit(X, y)
    display = plot_coefficients(model, max_features=5)
    order = np.argsort(-np.abs(model.coef_[0]), kind="stable")[:5]
    np.testing.assert_array_equal(display.shown_, order)
    assert labels(display.ax_) == [NAMES[j] for j in order]
    np.testing.assert_allclose([bar.get_width() for bar in display.lines_], model.coef_[0, order])
    assert display.ax_.yaxis_inverted()  # the largest on top
    assert display.ax_.get_xlabel() == "the 5 largest of 8 coefficients"
    display.figure_.draw_without_rendering()


def bound_marks(display):
    marks = [c for c in display.ax_.collections if c.get_label() == "bounds"]
    return sorted(segment[0][0] for mark in marks for segment in mark.get_segments())


def test_bounds_are_drawn_where_they_are_near():
    assert bound_marks(CoefficientsDisplay([0.5, -0.2], lower=-0.2, upper=[0.5, 5.0]).plot()) == [-0.2, -0.2, 0.5]
    assert bound_marks(CoefficientsDisplay([0.5, -0.2]).plot()) == []
    assert bound_marks(CoefficientsDisplay([0.0, 0.0], lower=0.0).plot(kind="dot")) == [0, 0]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_wide_bounds_around_a_cone_are_not_drawn():
    X, y = np.array([[-1.0, 0.3], [1.0, 0.1]]), np.array([0, 1])
    model = ConstrainedLogisticRegression(["x0 >= 0", {"x1": "<=2"}]).fit(X, y)  # separable: x0 ends at the wide bounds
    assert model.coef_[0, 0] > 100
    assert bound_marks(plot_coefficients(model)) == [0, 2]
    three = ConstrainedMultinomialRegression({"x0": ">=0"}).fit(np.eye(3)[:, :2], [0, 1, 2])
    assert set(bound_marks(plot_coefficients(three, target=1))) == {0}


def test_bounds_are_those_of_the_set():
    for C, row, lower, upper in (
        (ex.Box([0.0, -1.0], 2.0), 0, [0, -1], [2, 2]),
        (ex.LinfBall(3.0), 0, [-3, -3], [3, 3]),
        (ex.Simplex(), 0, [0, 0], [1, 1]),
        (ex.Box(np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]), 9.0), 1, [1, 4], [9, 9]),
    ):
        low, high = displays.bounds_of(C.on((2,) if row == 0 else (2, 3)), (1, 2) if row == 0 else (3, 2), row)
        np.testing.assert_array_equal(low, lower)
        np.testing.assert_array_equal(high, upper)
    assert displays.bounds_of(ex.L1Ball(1.0), (1, 2), 0) == (None, None)
    X, y = data()
    assert set(bound_marks(plot_coefficients(ConstrainedLogisticRegression("box:-0.2,0.5").fit(X, y)))) == {-0.2, 0.5}


def test_dots_in_axes_that_are_there():
    _, ax = plt.subplots()
    display = CoefficientsDisplay([1.0, -2.0], ["a", "b"]).plot(ax, kind="dot", markersize=9)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert [line.get_xdata()[0] for line in display.lines_] == [-2.0, 1.0]
    assert display.lines_[0].get_markersize() == 9


def test_one_class_of_several():
    X, y = data(3)
    model = RidgeClassifier().fit(X, y)
    display = plot_coefficients(model, target="b")
    np.testing.assert_allclose(display.coef, model.coef_[1])
    assert display.ax_.get_title() == "class b"
    assert plot_coefficients(model).ax_.get_title() == "class a"
    with pytest.raises(ex.InputError, match="must be one of a, b, c, got 'd'"):
        plot_coefficients(model, target="d")


def test_regressors_have_coefficients_too():
    X, _ = data()
    model = SimplexRegression().fit(X, X.to_numpy() @ np.full(8, 0.125))
    display = plot_coefficients(model, feature_names=list("abcdefgh"))
    assert sorted(labels(display.ax_)) == list("abcdefgh")


# convergence


def runs():
    X, y = data()
    return [ConstrainedLogisticRegression("l1:2", solver=s, tol=1e-3).fit(X, y) for s in ("auto", "pairwise-fw")]


def test_convergence_of_one_run():
    (model, _) = runs()
    display = plot_convergence(model)
    assert display.ax_.get_yscale() == "log"
    (line,) = display.lines_
    np.testing.assert_allclose(line.get_xdata(), model.trace_.passes)
    np.testing.assert_allclose(line.get_ydata(), model.trace_.gap)
    assert display.tol == pytest.approx(1e-3 * model.objective_)
    assert display.ax_.get_legend_handles_labels()[1] == ["ConstrainedLogisticRegression", "tolerance"]


def test_convergence_of_several_runs_by_name():
    a, b = runs()
    display = plot_convergence({"newton": a, "pairwise": b}, x="seconds", y="both")
    assert [line.get_label() for line in display.lines_] == [
        "newton: gap", "newton: value - best", "pairwise: gap", "pairwise: value - best",
    ]  # fmt: skip
    best = min(a.trace_.value.min(), b.trace_.value.min())
    left = b.trace_.value - best
    np.testing.assert_allclose(display.lines_[3].get_ydata(), left[left > 0])
    assert display.ax_.get_xlabel() == "seconds"
    again = plot_convergence(a, b, y="value", x="iter")
    assert [line.get_label() for line in again.lines_] == [f"ConstrainedLogisticRegression {i}" for i in (1, 2)]
    with pytest.raises(ex.InputError, match="different name"):
        ConvergenceDisplay.from_estimators([a, b], names=["same", "same"])


def test_a_trace_for_each_class():
    trace = runs()[1].trace_
    many = SimpleNamespace(classes_=["a", "b", "c"])
    assert list(convergence.traces_of("run", many, [trace] * 3)) == ["run, a", "run, b", "run, c"]
    assert list(convergence.traces_of("run", many, [trace])) == ["run"]


# paths


def test_a_path_has_a_curve_for_each_feature_in_use():
    X, y = data()
    model = SparseLogisticPath([0.3, 1.0, 3.0]).fit(X, y)
    display = plot_path(model, max_labels=2)
    assert display.score_ax_ is None
    assert display.ax_.get_xscale() == "log"
    used = np.flatnonzero(model.coefs_.any(axis=0))
    assert sorted(display.shown_) == used.tolist()
    for line, j in zip(display.lines_, display.shown_, strict=True):
        drawn = line.get_ydata()
        np.testing.assert_allclose(drawn[np.isfinite(drawn)], model.coefs_[np.isfinite(drawn), j])
        assert not model.coefs_[np.isnan(drawn), j].any()
    assert display.ax_.get_legend_handles_labels()[1] == [NAMES[j] for j in display.shown_[:2]]


def test_flat_stretches_are_left_out():
    display = PathDisplay([1.0, 2, 3, 4], [[0.0], [0], [0], [1]]).plot()
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), [np.nan, np.nan, 0, 1])


def test_scores_are_drawn_below_and_the_radius_is_marked():
    X, y = data(3)
    model = SparseLogisticPathCV([0.3, 1.0, 3.0], cv=3).fit(X, y)
    display = plot_path(model, target="c")
    np.testing.assert_allclose(display.coefs, model.coefs_[:, 2])
    assert display.ax_.get_title() == "class c"
    assert display.score_ax_.get_ylabel() == "minus log loss"
    np.testing.assert_allclose(display.score_ax_.lines[0].get_ydata(), model.scores_.mean(axis=0))
    for ax in (display.ax_, display.score_ax_):
        assert any(list(line.get_xdata()) == [model.radius_] * 2 for line in ax.lines)
    _, ax = plt.subplots()
    assert display.plot(ax).score_ax_ is None
    _, pair = plt.subplots(1, 2)
    assert display.plot(pair).score_ax_ is pair[1]


def test_standard_error():
    scores = np.array([[1.0, 2.0], [3.0, 2.0]])
    np.testing.assert_allclose(drawing.standard_error(scores), [1.0, 0.0])
    np.testing.assert_allclose(drawing.standard_error(scores[:1]), [0.0, 0.0])


# refusals


def test_says_what_cannot_be_drawn(monkeypatch):
    X, y = data()
    with pytest.raises(NotFittedError):
        plot_coefficients(ConstrainedLogisticRegression())
    with pytest.raises(ex.InputError, match="fitted estimator, got 3"):
        plot_path(3)
    model = RidgeClassifier().fit(X, y)
    with pytest.raises(ex.InputError, match="`coefs_`, which RidgeClassifier has not"):
        plot_path(model)
    with pytest.raises(ex.InputError, match="`trace_`"):
        plot_convergence(model)
    for wrong in ({"kind": "pie"}, {"max_features": 0}, {"feature_names": ["a"]}):
        with pytest.raises(ex.InputError):
            plot_coefficients(model, **wrong)
    for wrong in ({"x": "years"}, {"y": "nothing"}):
        with pytest.raises(ex.InputError):
            ConvergenceDisplay({}).plot(**wrong)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot")
    with pytest.raises(ImportError, match="pip install matplotlib"):
        plot_coefficients(model)
