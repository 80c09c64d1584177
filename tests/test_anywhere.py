"""The script behind `make test-anywhere`: environments are real, each is run, and a failure is not lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import anywhere
import pytest

FILE = """
import os
def test_machine():
    assert os.environ.get("NUMBA_CPU_NAME") != "generic"
"""


def test_what_fails_is_told_at_the_end_and_the_rest_is_run(tmp_path):
    (tmp_path / "test_machine.py").write_text(FILE)
    which = ["--only", "numba-generic", "--only", "busy"]
    command = [sys.executable, anywhere.__file__, *which, "-q", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", str(tmp_path)]
    bare = {name: value for name, value in os.environ.items() if name != "NUMBA_CPU_NAME"}  # this may be one
    done = subprocess.run(command, capture_output=True, text=True, env=bare)
    assert done.returncode == 1
    assert done.stdout.endswith("====\nnumba-generic: failed: pytest ended with 1\nbusy: passed\n")
    assert (
        anywhere.run(anywhere.Environment("none", lacking="there is no such machine"), []) == "skipped: there is no such machine"
    )


def test_the_processor_does_without_what_it_has():
    (numpy,) = [e for e in anywhere.environments() if e.name == "numpy-baseline"]
    if numpy.lacking:
        pytest.skip(numpy.lacking)
    code = "import anywhere\nprint(*anywhere._found() & set(anywhere._numpy().__cpu_dispatch__))"
    here = os.environ | {"PYTHONPATH": str(Path(anywhere.__file__).parent)}
    for variables, left in ((numpy.variables, set()), ({}, set(numpy.variables["NPY_DISABLE_CPU_FEATURES"].split()))):
        environment = {name: value for name, value in here.items() if name != "NPY_DISABLE_CPU_FEATURES"} | variables
        out = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout
        assert set(out.split()) == left
