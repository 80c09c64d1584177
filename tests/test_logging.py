"""What the library says goes to one logger, and warnings are Python's."""

from __future__ import annotations

import ast
import logging
from pathlib import Path

import numpy as np
import pytest

import extremal as ex

MODULES = sorted(Path(ex.__file__).parent.rglob("*.py"))
OTHERS = {"scale/local.py", "files/downloads.py"}  # they quieten the loggers of other packages


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(MODULES[0].parents[0])))
def test_there_is_one_logger(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("logging.getLogger", "getLogger"):
            known = [ast.literal_eval(a) for a in node.args if isinstance(a, ast.Constant)]
            assert known == ["extremal"] or any(str(path).endswith(name) for name in OTHERS)
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("logging.info", "logging.warning", "logging.basicConfig"):
            pytest.fail(f"{path.name}:{node.lineno} speaks to the root logger")


def test_the_choice_of_a_method_is_logged(caplog):
    caplog.set_level(logging.INFO, logger="extremal")
    result = ex.minimize(ex.LinearModel(ex.Squared(), np.eye(2), np.ones(2)), ex.Simplex())
    assert [(record.name, record.levelname) for record in caplog.records if "auto: " in record.message] == [("extremal", "INFO")]
    assert result.why in caplog.text


def test_the_library_installs_no_handler():
    assert logging.getLogger("extremal").handlers == []
