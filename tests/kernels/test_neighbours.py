"""Other packages in the same process: they work as before, and find numba, numpy and Python as they left them."""

from __future__ import annotations

import subprocess
import sys

import pytest

STATE = """
import gc, locale, logging, os, random, signal, sys, threading, warnings
import numba, numpy as np
from numba.core import caching, compiler, config, dispatcher, event, imputils
from numba.core.registry import CPUDispatcher
from numba.core.typing import templates
from numba.np.ufunc import parallel
import scipy.linalg, scipy.optimize, scipy.sparse.linalg, scipy.special  # scipy changes the filters of warnings

numba.njit(lambda a: a.sum())(np.ones(2))  # numba fills its registries with the first compilation

CLASSES = [dispatcher.Dispatcher, CPUDispatcher, dispatcher._FunctionCompiler, caching.FunctionCache, caching.Cache,
           caching.IndexDataCacheFile, caching.CompileResultCacheImpl, compiler.Compiler, compiler.CompilerBase]

def theirs(registry):  # an intrinsic of ours may stand there, under its own name
    return [f for f in registry.functions if not getattr(f, "_definition_func", min).__module__.startswith("extremal.")]

def state():
    loggers = [logging.getLogger(name) for name in (None, "extremal", "numba")]
    return {
        "numba.config": {name: getattr(config, name) for name in dir(config) if name.isupper()},
        "listeners": {kind: list(heard) for kind, heard in event._registered.items() if heard},
        "classes": {(c, name): id(part) for c in CLASSES for name, part in vars(c).items() if not name.startswith("__")},
        "locators": [list(c._locator_classes) for c in (caching.CacheImpl, caching.CompileResultCacheImpl)],
        "registries": [theirs(r) for r in (templates.builtin_registry, imputils.builtin_registry)],
        "threads of numba": parallel._is_initialized,
        "environment": dict(os.environ),
        "warnings": (list(warnings.filters), warnings.showwarning),
        "numpy": (np.geterr(), np.geterrcall(), np.get_printoptions(), np.random.get_state()[1].tolist(), random.getstate()),
        "logging": [(l.level, l.propagate, l.disabled, list(l.handlers), list(l.filters)) for l in loggers],
        "signals": {s: signal.getsignal(s) for s in signal.valid_signals() if s not in (signal.SIGKILL, signal.SIGSTOP)},
        "hooks": (sys.excepthook, threading.excepthook, sys.unraisablehook, sys.displayhook, sys.gettrace(), sys.getprofile()),
        "interpreter": (sys.getrecursionlimit(), sys.getswitchinterval(), gc.get_threshold(), gc.isenabled(), os.getcwd()),
        "locale": locale.setlocale(locale.LC_ALL),
        "threads": threading.active_count(),
    }

def same(before):
    changed = {name: (value, now) for name, now in state().items() if (value := before[name]) != now}
    assert not changed, changed
"""
OURS = """
rng = np.random.default_rng(0)
A = rng.standard_normal((40, 5))
y = np.where(A @ rng.standard_normal(5) > 0, 1.0, -1.0)

def ours(number):
    import extremal as ex
    from extremal.kernels.jit import jit
    same(found)
    f = ex.LinearModel(ex.Logistic(), A, y)
    for method in ("auto", "sarah-fw"):  # a solve in Python around kernels, and a solve within one
        ex.minimize(f, ex.L1Ball(2.0), method, max_iter=30)
    assert jit(lambda a: a + 1)(number) == number + 1  # one that is compiled now, whatever was kept
    same(found)
"""
JITCLASS = """
from numba.experimental import jitclass

def neighbour():
    @jitclass([("x", numba.float64)])
    class Number:
        def __init__(self, x):
            self.x = x

        def twice(self):
            return 2 * self.x

    assert Number(1.5).twice() == 3.0
    assert numba.njit(lambda n: n + 1)(2) == 3
"""
SKGLM = """
import skglm

def neighbour():
    assert abs(skglm.Lasso(0.01).fit(A, A[:, 0]).coef_[0] - 1) < 0.1
"""
CELER = """
import celer

def neighbour():
    assert abs(celer.Lasso(0.01).fit(A, A[:, 0]).coef_[0] - 1) < 0.1
"""
BOTH = "neighbour()\nfound = state()\nours(1)\nneighbour()\nours(2.0)\nneighbour()\n"
AFTER = "found = state()\nours(1)\nneighbour()\n"


@pytest.mark.parametrize(("name", "code"), [("numba", JITCLASS + BOTH), ("numba", JITCLASS + AFTER), ("skglm", SKGLM + BOTH),
                                            ("celer", CELER + BOTH)])  # fmt: skip
def test_others_work_and_find_everything_as_it_was(name, code):
    pytest.importorskip(name)
    command = [sys.executable, "-W", "error", "-c", STATE + OURS + code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
