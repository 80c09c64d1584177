"""What users meet first: installing, hints, frames in pipelines, and sentences about what is wrong."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
import typing
from importlib.metadata import packages_distributions
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import extremal as ex
import extremal.sklearn
from extremal.sklearn import ConstrainedLinearRegression

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
