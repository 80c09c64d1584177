"""What tests of the laboratory share: a file, a figure of it, its panels, and a report."""

import pytest
from made_report import make_report
from panels_by_hand import written

from extremal_lab.reproduction import Figure, Problem, plan
from extremal_lab.reproduction.plan import Work
from extremal_lab.reproduction.store import Store


@pytest.fixture
def file(tmp_path):
    return written(tmp_path)


@pytest.fixture(scope="session")
def figure(tmp_path_factory):
    file = written(tmp_path_factory.mktemp("data"))
    problems = (Problem(str(file), set="l1:3"), Problem(str(file), "nonlinear-least-squares", "l1:3"))
    methods = ("sarah-fw", "saga-sarah-fw", "negiar-sfw")
    return Figure("mine", "my figure", problems, methods, passes=8, seeds=2, factors=(0.1, 1.0), rows=8)


@pytest.fixture(scope="session")
def panels(figure, tmp_path_factory):
    return plan.Contest(figure, Work(Store(tmp_path_factory.mktemp("kept")))).panels()


@pytest.fixture
def report() -> dict:
    """One with every kind of panel."""
    return make_report()
