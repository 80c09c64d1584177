"""Problems for measurements: the paper's data sets or their stand-ins, and generated matrices of any size."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from extremal.files import datasets
from extremal.losses import Logistic
from extremal.methods import Recipe
from extremal.objectives import LinearModel
from extremal.run import Record, Result, minimize
from extremal.sets import L1Ball

C = L1Ball(20.0)
NEVER = 1e18  # passes between rows of a trace: only the first state and the last one are recorded


@dataclass(frozen=True)
class Problem:
    """Logistic regression in an l1 ball, with scipy's own arrays beside the model."""

    name: str
    f: Any
    A: Any  # CSR
    y: np.ndarray

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.y)

    def scipy_gradient(self) -> Callable[[], np.ndarray]:
        """One full gradient A' phi'(A x) / n by scipy, as a callable: the unit of most ratios.

        Examples
        --------
        >>> problem = generated(100, 12, per_row=3)
        >>> g = problem.scipy_gradient()()
        >>> bool(np.allclose(g, problem.f.grad(np.linspace(-1, 1, 12))))
        True
        """
        A, y, n, x = self.A, self.y, self.n, np.linspace(-1, 1, self.A.shape[1]).astype(self.A.dtype)
        return lambda: A.T @ (-y * expit(-y * (A @ x))) / n


def named(name: str) -> Problem:
    """A data set of the paper; without its file, a stand-in of the same shape that says so in its name.

    Examples
    --------
    >>> named("mushrooms").A.shape
    (8124, 112)
    """
    from extremal_lab.reproduction.standins import stand_in  # here, so that measurements of memory do not load it

    here = datasets.find(name) is not None
    A, y = datasets.load(name, download=False) if here else stand_in(name)
    return Problem(name if here else f"like {name}", LinearModel(Logistic(), A, y), sp.csr_array(A), y)


def generated(n: int, d: int, per_row: int, seed: int = 0) -> Problem:
    """A random CSR matrix with ``per_row`` normal entries in each row, at increasing columns; float64 and int32.

    A row has one column in each of ``per_row`` ranges, so no sorting is needed. The matrix is made in blocks of rows: the
    memory is that of the result, and the time about a second for 10 million entries.

    Examples
    --------
    >>> problem = generated(1000, 50, per_row=5)
    >>> problem.A.nnz, problem.A.indices.dtype.name, bool(problem.A.has_canonical_format)
    (5000, 'int32', True)
    """
    rng = np.random.default_rng(seed)
    data, indices = np.empty(n * per_row), np.empty(n * per_row, dtype=np.int32)
    width = d // per_row
    starts = (width * np.arange(per_row)).astype(np.int32)
    for first in range(0, n, 65536):
        rows = min(65536, n - first)
        block = slice(first * per_row, (first + rows) * per_row)
        rng.standard_normal(out=data[block])
        indices[block] = (rng.integers(0, width, (rows, per_row), dtype=np.int32) + starts).ravel()
    y = rng.choice(np.array([-1.0, 1.0]), n)
    A = sp.csr_array((data, indices, np.arange(0, n * per_row + 1, per_row, dtype=np.int32)), shape=(n, d))
    return Problem(f"{n} x {d}", LinearModel(Logistic(), A, y), A, y)


def run(f: Any, method: Recipe, *, loop: bool = False, **budget: Any) -> Result:
    """One run to the end of its budget, with CPU times of its first and last state only.

    ``loop`` chooses the readable loop instead of compiled bursts.

    Examples
    --------
    >>> from extremal import FrankWolfe
    >>> r = run(generated(100, 12, per_row=3).f, FrankWolfe(), max_iter=5)
    >>> r.trace.iter
    array([0, 5])
    """
    return minimize(f, C, method, tol=0, atol=0, record=Record(every=NEVER, what=()), bursts=not loop, **budget)


def per_pass(r: Result) -> float:
    """CPU seconds of n component gradients, from the first state on, without start-up, certificates and recording."""
    return float((r.trace.cpu[-1] - r.trace.cpu[0]) / (r.trace.passes[-1] - r.trace.passes[0]))


def per_iteration(r: Result) -> float:
    """CPU seconds of an iteration, from the first state on."""
    return float((r.trace.cpu[-1] - r.trace.cpu[0]) / (r.trace.iter[-1] - r.trace.iter[0]))


def hundredth(n: int) -> int:
    """ceil(n / 100), the batch of the paper's experiments.

    Examples
    --------
    >>> hundredth(22696)
    227
    """
    return math.ceil(n / 100)
