"""The first call in a process: what is imported, what is compiled and where it is kept, and that users are told.

How long it takes is measured by `extremal bench startup`.
"""

from __future__ import annotations

import ast
import ctypes
import importlib
import json
import os
import pickle
import pydoc
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import extremal as ex
from extremal.kernels import jit

SOURCE = Path(ex.__file__).parent
ROOMS = [
    "data",
    "files",
    "gradients",
    "losses",
    "methods",
    "moves",
    "objectives",
    "points",
    "rounding",
    "run",
    "sets",
    "sklearn",
    "steps",
]
PACKAGES = ["extremal", *(f"extremal.{room}" for room in ROOMS)]
OTHERS = {"matplotlib", "sklearn", "pandas", "networkx", "highspy", "typer", "rich", "plotly", "pooch", "requests"}
PROBLEM = """
import numpy as np, extremal as ex
rng = np.random.default_rng(0)
A, y = rng.standard_normal((40, 5)), np.sign(rng.standard_normal(40))
"""
RUN = "r = ex.minimize(ex.LinearModel(ex.Logistic(), A, y), ex.L1Ball(2.0), max_iter=20, tol=0, atol=0)\n"
PRODUCT = "print(ex.data.CSR(A).dot(np.ones(5), np.array([3, 1])).tolist())\n"  # of some rows: a small kernel
SPARSE = "import scipy.sparse as sp\nA = sp.csr_array(A)\n"
MODULES = "\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"


def problem():
    held = {}
    exec(PROBLEM, held)
    return held["A"], held["y"]


def run(code, *, preexec=None, **environment):
    """Run code in a process of its own; None takes a variable out of its environment."""
    kept = {k: v for k, v in (os.environ | environment).items() if v is not None}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, env=kept, timeout=1800, preexec_fn=preexec
    )
    assert done.returncode == 0, done.stderr
    return done


def loaded(code):
    return set(json.loads(run(code + MODULES).stdout.splitlines()[-1]))


def parts(modules, package):
    return {m.removeprefix(package + ".") for m in modules if m.startswith(package + ".")}


# ---- imports


def test_importing_the_package_imports_nothing():
    modules = loaded("import extremal")
    assert parts(modules, "extremal") == {"support", "support.lazy"}
    assert not modules & (OTHERS | {"numpy", "scipy", "numba"})


@pytest.mark.parametrize("data", ["", SPARSE])
def test_a_run_imports_what_it_needs(data):
    modules = loaded(PROBLEM + data + RUN)
    assert not modules & (OTHERS | {"scipy.optimize", "scipy.stats", "scipy.sparse.linalg", "extremal.files.datasets"})
    assert parts(modules, "extremal.methods") == {"auto", "card", "cards", "cards_beyond", "method", "newton"}
    newton = {"newton", "newton.atoms", "newton.box", "newton.descent", "newton.grown", "newton.model", "newton.spikes"}
    assert parts(modules, "extremal.moves") <= {"atoms", "base", "vertex"} | newton
    assert not parts(modules, "extremal.sets") & {"polytopes", "made", "spectral", "simplices.plain"}
    assert not parts(modules, "extremal.gradients") & {"penalty", "reduced", "tracking", "zeroth"}


def test_a_plain_run_needs_neither_numba_nor_sparse_matrices():
    plain = "ex.minimize(ex.LinearModel(ex.Squared(), A, y), ex.L1Ball(2.0), method=ex.FrankWolfe(), max_iter=20)\n"
    assert not loaded(PROBLEM + plain) & {"numba", "scipy.sparse", "scipy.special"}


def test_methods_and_sets_are_listed_without_them():
    modules = loaded("from extremal import methods, sets\nassert 'sarah-fw' in methods.METHODS\nlist(methods.METHODS), sets.SETS")
    assert parts(modules, "extremal.methods") == {"card", "cards", "cards_beyond"}
    assert parts(modules, "extremal.sets") == {"words", "words.names"}


@pytest.mark.parametrize("package", PACKAGES)
def test_stubs_name_what_is_there(package):
    stub = SOURCE.parent.joinpath(*package.split("."), "__init__.pyi")
    module, named = importlib.import_module(package), []
    for node in ast.parse(stub.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            named += [alias.name for alias in node.names]
            home = f"{package}.{node.module}" if node.module else package
            assert all(getattr(module, alias.name) is getattr(importlib.import_module(home), alias.name) for alias in node.names)
    assert sorted(named) == module.__all__ == dir(module)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_is_found_by_every_way_to_ask(package):
    module = importlib.import_module(package)
    names = set(module.__all__)
    held = {}
    exec(f"from {package} import *", held)
    assert names <= held.keys()
    assert names <= set(dir(module))
    assert not hasattr(module, "Sarha")
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'Sarha'"):
        module.Sarha
    with pytest.raises(ImportError, match="cannot import name 'Sarha'"):
        exec(f"from {package} import Sarha")


def test_help_shows_the_names():
    text = pydoc.render_doc(ex, renderer=pydoc.plaintext)
    assert "class L1Ball" in text
    assert "minimize(" in text


def test_modules_are_attributes_and_parts_pickle():
    code = "import pickle, extremal as ex\nprint(ex.losses.LOSSES['logistic'](), ex.datasets.__name__)\n"
    code += f"print(pickle.loads({pickle.dumps(ex.SarahFW(batch=3))!r}))"
    assert run(code).stdout.splitlines() == ["Logistic() extremal.files.datasets", repr(ex.SarahFW(batch=3))]


# ---- kernels


def product():
    A, _ = problem()
    return str(ex.data.CSR(sp.csr_array(A)).dot(np.ones(5), np.array([3, 1])).tolist())


class Hours:
    """A clock that is set by hand, and the alarms that wait for it."""

    def __init__(self):
        self.now, self.alarms = 0.0, []

    def __call__(self):
        return self.now

    def later(self, seconds, tell):
        return Alarm(self, self.now + seconds, tell)

    def pass_by(self, seconds):
        self.now += seconds
        due = [alarm for alarm in self.alarms if alarm.time <= self.now]
        self.alarms = [alarm for alarm in self.alarms if alarm.time > self.now]
        for alarm in due:
            alarm.tell()


class Alarm:
    def __init__(self, clock, time, tell):
        self.clock, self.time, self.tell = clock, time, tell

    def start(self):
        self.clock.alarms.append(self)

    def cancel(self):
        self.clock.alarms = [alarm for alarm in self.clock.alarms if alarm is not self]

    def join(self):
        assert self not in self.clock.alarms


@pytest.fixture
def heard(caplog):
    """(kernels, said): kernels that take so many seconds to compile, each with those that it calls, and what is said."""
    clock = Hours()
    notice = jit.Notice(clock, clock.later)

    def kernel(seconds, *called):
        def compile(*args):
            for inner in called:
                inner._compiler.compile()
            clock.pass_by(seconds)
            return args

        return notice.attend(SimpleNamespace(_compiler=SimpleNamespace(compile=compile)))

    def said(*kernels, apart=0.0):
        caplog.clear()
        for one in kernels:
            one._compiler.compile("int64")
            clock.pass_by(apart)
        assert clock.alarms == []
        assert {record.levelname for record in caplog.records} <= {"WARNING"}
        return [record.getMessage() for record in caplog.records]

    return kernel, said


def test_whoever_waits_for_a_compiler_is_told_each_time(heard):
    kernel, said = heard
    assert said(kernel(0.3), kernel(0.1)) == []  # nobody notices
    assert said(kernel(20), apart=10) == [jit.KEPT]  # in this wait it was told
    assert said(kernel(20), kernel(1), kernel(5), apart=1) == [jit.KEPT]
    assert said(kernel(0.3), kernel(0.3), apart=1) == []  # the same wait goes on
    assert said(kernel(0.1, kernel(0.2)), apart=60) == []
    assert said(kernel(0.1), apart=60) == []
    assert said(kernel(0.1, kernel(5)), kernel(0.1, kernel(5), kernel(7)), apart=60) == [jit.KEPT] * 2
    assert said(*[kernel(0.2) for _ in range(9)], apart=0.2) == [jit.KEPT]  # many short ones are a wait, too


def test_a_compilation_that_fails_is_over(heard):
    kernel, said = heard

    def fail():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        said(kernel(0.0, SimpleNamespace(_compiler=SimpleNamespace(compile=fail))))
    assert said(kernel(1), apart=60) == [jit.KEPT]


AT_ONCE = "from extremal.kernels import jit\njit.notice.patience, jit.notice.pause = 0.0, 1e9\n"


def test_kept_code_is_loaded_in_silence(tmp_path):
    code = AT_ONCE + PROBLEM + SPARSE + PRODUCT + PRODUCT.replace("dot(np.ones(5)", "tdot(np.ones(2)")
    first, second = (run(code, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert first.stderr == jit.KEPT + "\n"
    assert second.stderr == ""
    assert first.stdout == second.stdout
    assert first.stdout.splitlines()[0] == product()


def test_a_program_may_send_the_notice_elsewhere(tmp_path):
    quiet = "import logging\nlogging.getLogger('extremal').setLevel('ERROR')\n"
    assert run(quiet + AT_ONCE + PROBLEM + SPARSE + PRODUCT, NUMBA_CACHE_DIR=str(tmp_path)).stderr == ""


def test_without_a_compiler_all_is_the_same(tmp_path):
    code = PROBLEM + SPARSE + RUN + "import json\nprint(json.dumps(r.x.tolist()))"
    done = run(code, NUMBA_DISABLE_JIT="1", NUMBA_CACHE_DIR=str(tmp_path))
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []
    A, y = problem()
    f = ex.LinearModel(ex.Logistic(), sp.csr_array(A), y)
    x = ex.minimize(f, ex.L1Ball(2.0), max_iter=20, tol=0, atol=0).x
    np.testing.assert_allclose(json.loads(done.stdout), x, rtol=0, atol=1e-12)


@pytest.fixture
def copy(tmp_path):
    """The package in a folder of its own, without anything compiled."""
    shutil.copytree(SOURCE, tmp_path / "site" / "extremal", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "site"


def obey_permissions():
    """Have a child process of root obey them too, as everyone's does: it gives the right up to pass them by."""
    for right in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        if ctypes.CDLL(None).prctl(24, right, 0, 0, 0):  # PR_CAPBSET_DROP
            raise OSError("cannot give up a right")


@pytest.fixture
def locked(tmp_path, copy):
    """Runs code with a package that cannot be written, in a home of which that is true or not."""
    if not hasattr(os, "geteuid"):
        pytest.skip("permissions are those of POSIX")
    preexec = obey_permissions if os.geteuid() == 0 else None
    home = tmp_path / "home"
    home.mkdir()
    for folder, _, files in os.walk(copy):
        for name in files:
            os.chmod(Path(folder, name), 0o444)
        os.chmod(folder, 0o555)

    def start(code, writable):
        home.chmod(0o755 if writable else 0o555)
        places = {"HOME": str(home), "PYTHONPATH": str(copy), "XDG_CACHE_HOME": None, "NUMBA_CACHE_DIR": None}
        check = f"import os\nassert not os.access({str(copy / 'extremal')!r}, os.W_OK)\n"
        check += f"assert os.access({str(home)!r}, os.W_OK) is {writable}\n"
        check += f"import extremal\nassert extremal.__file__.startswith({str(copy)!r})\n"
        return run(check + code, preexec=preexec, **places)

    yield start
    for folder, _, _ in os.walk(copy):
        os.chmod(folder, 0o755)


def test_a_read_only_install_without_a_home_compiles_in_every_process(locked):
    for _ in range(2):
        done = locked(AT_ONCE + PROBLEM + SPARSE + PRODUCT, writable=False)
        assert done.stderr == jit.NOT_KEPT + "\n"
        assert done.stdout.strip() == product()


def test_a_read_only_install_keeps_kernels_in_the_home(locked):
    first, second = (locked(AT_ONCE + PROBLEM + SPARSE + PRODUCT, writable=True) for _ in range(2))
    assert (first.stderr, second.stderr) == (jit.KEPT + "\n", "")
    assert first.stdout.strip() == second.stdout.strip() == product()


def test_kept_code_goes_out_of_date_with_the_kernels_that_it_calls(copy):
    inner, outer = (copy / "extremal" / "kernels" / name for name in ("inner.py", "outer.py"))
    text = "from extremal.kernels.jit import jit\n\n@jit\ndef one(x):\n    return x + 1.0\n"
    inner.write_text(text)
    imports = "from extremal.kernels.inner import one\nfrom extremal.kernels.jit import jit\n"
    outer.write_text(imports + "\n@jit\ndef twice(x):\n    return 2 * one(x)\n")
    code = AT_ONCE + "from extremal.kernels.outer import twice\nprint(twice(1.0))"
    places = {"PYTHONPATH": str(copy), "NUMBA_CACHE_DIR": str(copy.parent / "kept")}
    assert run(code, **places).stdout.strip() == "4.0"
    again = run(code, **places)
    assert (again.stdout.strip(), again.stderr) == ("4.0", "")
    inner.write_text(text.replace("1.0", "2.0"))
    changed = run(code, **places)
    assert (changed.stdout.strip(), changed.stderr) == ("6.0", jit.KEPT + "\n")


def test_kept_code_may_name_a_class_that_is_gone(copy):
    inner = copy / "extremal" / "kernels" / "inner.py"
    imports = "from typing import NamedTuple\nfrom extremal.kernels.jit import jit\n\nclass Old(NamedTuple):\n    x: float\n\n"
    text = imports + "@jit\ndef one(p):\n    return p.x + 1.0\n"
    places = {"PYTHONPATH": str(copy), "NUMBA_CACHE_DIR": str(copy.parent / "kept")}
    for name in ("Old", "New"):
        inner.write_text(text.replace("Old", name))
        code = f"from extremal.kernels.inner import {name}, one\nprint(one({name}(1.0)))"
        assert run(AT_ONCE + code, **places).stdout.strip() == "2.0"
        assert run(AT_ONCE + code, **places).stderr == ""


CALL = "from extremal.kernels.inner import one\nprint(one({}))\n"
MEANWHILE = """
import os, subprocess, sys
from extremal.kernels.inner import one

def lost(overloads):  # the other one writes its index over this one, before either has written its code
    subprocess.run([sys.executable, "-c", os.environ["OTHER"]], check=True)

one._cache._cache_file._save_index = lost
print(one(1))
"""


@pytest.fixture
def one(copy):
    """Runs code with one more kernel, x + 1."""
    (copy / "extremal" / "kernels" / "inner.py").write_text(
        "from extremal.kernels.jit import jit\n\n@jit\ndef one(x):\n    return x + 1\n"
    )
    places = {"PYTHONPATH": str(copy), "NUMBA_CACHE_DIR": str(copy.parent / "kept")}
    return lambda code, **more: run(AT_ONCE + code, **places, **more)


def test_two_processes_that_compile_at_once_keep_both_codes_apart(one):
    done = one(MEANWHILE, OTHER=CALL.format(1.5))
    assert done.stdout.split() == ["2.5", "2"]
    for argument, answer in (("1.5", "2.5"), ("1", "2")):
        assert one(CALL.format(argument)).stdout.strip() == answer


def test_a_full_disk_keeps_nobody_from_an_answer(one):
    full = "from extremal.kernels.inner import one\ndef full(*args):\n    raise OSError(28, 'No space left on device')\n"
    full += "one._cache._cache_file._save_data = full\nprint(one(1))\nprint(jit.notice.text == jit.NOT_KEPT)\n"
    assert one(full).stdout.split() == ["2", "True"]
    assert one(CALL.format(1)).stdout.strip() == "2"
