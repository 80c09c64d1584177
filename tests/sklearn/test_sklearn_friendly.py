"""What users meet first: installing, hints, frames in pipelines, and sentences about what is wrong."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
import typing
from dataclasses import replace
from importlib.metadata import packages_distributions
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import extremal as ex
import extremal.sklearn
from extremal.run.result import Status
from extremal.sklearn import (
    ConstrainedGLM,
    ConstrainedLinearRegression,
    ConstrainedLogisticRegression,
    ConstrainedMultinomialRegression,
    SimplexRegression,
    SparseLogisticPath,
    StackingWeights,
    fitting,
)

ROOT = Path(__file__).parents[2]
CLASSES = [getattr(extremal.sklearn, name) for name in extremal.sklearn.__all__ if name[0].isupper()]


def frame(n=200):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((n, 3)), columns=["income", "debt", "age"])
    return X, X["income"] - X["debt"] + 0.1 * rng.standard_normal(n)


def needed(extra: str) -> set[str]:
    """The distributions that an extra installs by name, those of the package itself included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found, open_ = set(), [*project["dependencies"], f"extremal[{extra}]"]
    while open_:
        match = re.match(r"([\w.-]+)(?:\[([^]]*)\])?", open_.pop())
        assert match is not None
        name, extras = match.groups()
        if name == "extremal":
            open_ += [item for e in extras.split(",") for item in project["optional-dependencies"][e]]
        found.add(name.lower())
    return found


def test_the_first_snippet_runs_after_the_first_install():
    """What the first Python of the README imports comes with the extra that its first install command names."""
    text = (ROOT / "README.md").read_text()
    extras = re.search(r"pip install \"?\.\[([^]]+)\]", text)
    assert extras is not None
    installed = set().union(*(needed(extra) for extra in extras[1].split(",")))
    block = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert block is not None
    lines = [line[4:] for line in block[1].splitlines() if line.startswith((">>> ", "... "))]
    nodes = list(ast.walk(ast.parse("\n".join(lines))))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    imported = {name.split(".")[0] for name in names}
    homes = packages_distributions()
    assert "numpy" in imported
    for name in imported - {"extremal"}:
        assert {home.lower() for home in homes[name]} & installed, f"{name} is imported, and not installed by [{extras[1]}]"


@pytest.mark.parametrize("kind", CLASSES)
def test_hints_of_constructors_are_types(kind):
    hints = typing.get_type_hints(kind.__init__)
    assert set(inspect.signature(kind).parameters) <= set(hints)
    for name, hint in hints.items():
        assert hint is not typing.Any, name
        assert typing.Any not in typing.get_args(hint), name


RULES = [{"income": ">=0"}, "income >= age", "groups:5;income,debt;age", "groups:5;'income',\"debt\";age"]


@pytest.mark.parametrize("constraint", RULES)
def test_names_that_a_pipeline_loses(constraint):
    X, y = frame()
    pipeline = make_pipeline(StandardScaler(), ConstrainedLinearRegression(constraint))
    with pytest.raises(ex.InputError, match=r"no feature names: .*`pipeline.set_output\(transform=\"pandas\"\)`"):
        pipeline.fit(X, y)
    named = clone(pipeline).set_output(transform="pandas").fit(X, y)
    assert list(named[-1].feature_names_in_) == ["income", "debt", "age"]


CLASSIFIERS = [
    ConstrainedLogisticRegression(),
    ConstrainedMultinomialRegression(),
    SparseLogisticPath(n_radii=2),
    StackingWeights([("one", ConstrainedLogisticRegression()), ("two", ConstrainedLogisticRegression("l2"))]),
]


@pytest.mark.parametrize("gap", [None, float("nan")])
@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: type(model).__name__)
def test_gaps_in_classes_are_found(model, gap):
    y = np.array(["a", "b"] * 100, object)
    y[[2, 7]] = gap
    with pytest.raises(ex.InputError, match="y has missing values, first in row 2;"):
        clone(model).fit(frame()[0], y)


def test_gaps_in_numbers_are_found():
    X, y = frame()
    with pytest.raises(ex.InputError, match="y has missing values, first in row 3;"):
        ConstrainedLinearRegression().fit(X, y.where(np.arange(len(y)) != 3))


def test_columns_of_words_are_named():
    X, y = frame()
    words = X.assign(**{"home city": ["Rome", "Oslo"] * 100})
    message = r"column 'home city' of X holds words such as 'Rome'; use pandas.get_dummies\(X, drop_first=True\)"
    for table in (words, words.astype({"home city": "category"})):
        with pytest.raises(ex.InputError, match=message):
            ConstrainedLinearRegression().fit(table, y)
        with pytest.raises(ex.InputError, match=message):
            SparseLogisticPath(n_radii=2).fit(table, y > 0)
    with pytest.raises(ex.InputError, match="column 3 of X holds words such as 'Rome'"):
        ConstrainedLinearRegression().fit(words.to_numpy(), y)
    with pytest.raises(ex.InputError, match="column 'debt' of X holds words such as 'low'"):
        ConstrainedLinearRegression().fit(X, y).predict(X.assign(debt="low"))


@pytest.mark.parametrize("model", [ConstrainedLinearRegression(), ConstrainedGLM("logistic"), SimplexRegression()])
def test_classes_are_no_targets_of_a_regression(model):
    with pytest.raises(ex.InputError, match="must be numbers; for classes use ConstrainedLogisticRegression, got 'a'"):
        model.fit(frame()[0], ["a", "b"] * 100)


def test_names_with_an_ampersand_stand_in_quotes():
    X, y = frame()
    X = X.rename(columns={"debt": "loan & fee"})
    for constraint in ("loan & fee >= 0", ["nonneg", "loan & fee <= age"]):
        with pytest.raises(ex.InputError, match="the name 'loan & fee' must stand in quotes"):
            ConstrainedLinearRegression(constraint).fit(X, y)
    assert ConstrainedLinearRegression("'loan & fee' >= 0 & nonneg").fit(X, y).constraint_violation_ == 0


def test_a_chosen_solver_that_takes_too_long_is_named():
    X, y = frame()
    with pytest.warns(ConvergenceWarning, match='tol=1e-06 allows; use solver="auto", raise max_iter, or'):
        ConstrainedLinearRegression({"income": ">=0"}, solver="frank-wolfe", max_iter=5).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="tol=1e-30 allows; raise max_iter, or"):
        ConstrainedLogisticRegression(tol=1e-30, max_iter=1).fit(X, y > 0.3)


def test_ctrl_c_before_the_radius_is_known(monkeypatch):
    """A share of a norm that was not found yet is no radius."""
    X, y = frame()
    real = fitting.minimize

    def interrupted(*given, **kept):
        return replace(real(*given, **kept | {"method": "frank-wolfe", "max_iter": 1}), status=Status.INTERRUPTED)

    monkeypatch.setattr(fitting, "minimize", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ConstrainedLinearRegression("l1", radius="50%").fit(X, y)
