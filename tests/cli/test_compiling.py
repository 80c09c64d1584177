"""``extremal compile``: which kinds there are, and that runs of a compiled kind compile nothing more."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from command_line import refused, run

import extremal as ex
from extremal.cli.compiling import KINDS
from extremal.kernels.jit import notice


def test_kinds_are_listed():
    rows = json.loads(run("compile", "--list", "--json").stdout)
    assert [row["name"] for row in rows] == list(KINDS)
    assert all(name in run("compile", "--list").stdout for name in KINDS)


def test_an_unknown_kind_is_refused():
    refused(run("compile", "spars"), "did you mean 'sparse'?")


@pytest.mark.parametrize(("kind", "rows", "n"), [("dense", np.asarray, 100), ("sparse", sp.csr_array, 100)])
def test_a_run_of_a_compiled_kind_compiles_nothing(kind, rows, n):
    (row,) = json.loads(run("compile", kind, "--json").stdout)
    assert row["name"] == kind
    assert row["compiled"] >= 0 < row["seconds"]
    rng, before = np.random.default_rng(1), notice.compiled
    A = rng.standard_normal((n, 7))
    for loss, y in ((ex.Squared(), A[:, 0]), (ex.Logistic(), np.sign(A[:, 1]))):
        assert ex.minimize(ex.LinearModel(loss, rows(A), y), ex.Simplex()).converged
    assert notice.compiled == before
    assert f"{0:>3} compiled" in run("compile", kind).stdout  # it is done already
