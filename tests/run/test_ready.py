"""A run is made ready before its clock starts: it imports no module and compiles no kernel afterwards."""

import subprocess
import sys

import numpy as np
import pytest

from extremal.quadratic.solver import Quadratic
from extremal.support.clock import Clock, deadline

CHILD = """
import gc, sys
import numpy as np, scipy.sparse as sp, extremal as ex
from extremal.methods.method import Budget
from extremal.run import driver, loop

def known():
    from numba.core.dispatcher import Dispatcher

    kernels = [o for o in gc.get_objects() if isinstance(o, Dispatcher) and "extremal" in o.py_func.__module__]
    return set(sys.modules) | {(o.py_func.__name__, str(s)) for o in kernels for s in o.signatures}

rng = np.random.default_rng(0)
A = rng.standard_normal((400, 30)) if "small" in sys.argv else sp.random_array((12000, 60), density=0.1, rng=rng, format="csr")
y = np.where(A @ rng.standard_normal(A.shape[1]) + rng.standard_normal(A.shape[0]) > 0, 1.0, -1.0)
f = (ex.InterceptModel if "intercept" in sys.argv else ex.LinearModel)(ex.Logistic(), A, y)
setup = loop.prepare("minimize", f, ex.L1Ball(5.0), None, None, 0, Budget(), True)
before = known()
result, _ = driver.Driver(setup, 1e-4, 1e-10, Budget()).drive()
assert result.converged and result.n_iter > 0
print(sorted(map(str, known() - before)))
"""


@pytest.mark.parametrize("words", [("small",), ("small", "intercept"), ("large",), ("large", "intercept")], ids=" ".join)
def test_nothing_is_imported_or_compiled_on_the_clock(words):
    done = subprocess.run([sys.executable, "-c", CHILD, *words], capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_a_kernel_that_few_runs_need_is_compiled_off_the_clock(monkeypatch):
    clock, stops = Clock(), []
    monkeypatch.setattr(Clock, "paused", lambda self: stops.append(self) or self)
    equal = Quadratic.in_box(np.ones((2, 2)), np.full(2, -1.0), np.zeros(2), np.full(2, -1.0), np.ones(2))  # singular
    with deadline(None, clock):
        np.testing.assert_allclose(equal.minimise(np.zeros(2), 0.0), 0.5)
    assert stops == [clock]
