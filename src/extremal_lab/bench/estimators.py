"""l1-constrained logistic regression by `ConstrainedLogisticRegression`, in the CPU time of scikit-learn's liblinear, on w8a.

liblinear gets a penalty, and the estimator gets the l1 norm of liblinear's solution. Neither has an intercept, because liblinear
penalises it. Both use their default tolerances, and the time is that of the whole call of fit. numpy compares the objectives: a
positive "lower by" means that the estimator's objective is lower.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from extremal_lab.bench.children import installed
from extremal_lab.bench.problems import Problem, named
from extremal_lab.bench.timing import Found, Measurement, Pair, Skipped, compared

PART = "estimators"
UNIT = "times the CPU time of liblinear's fit without an intercept"


@dataclass(frozen=True)
class Sizes:
    """The sizes of a level of measurement."""

    data: str = "w8a"
    penalties: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1, 1.0)  # C of liblinear
    repeats: int = 7
    target: float = 0.05


LEVELS = {
    "smoke": Sizes("breast-cancer_scale", (0.03,), 2, 0.001),
    "quick": Sizes(penalties=(0.003, 0.03), repeats=3),
    "default": Sizes(),
    "full": Sizes(repeats=15),
}


def measure(level: str) -> Found:
    """Measure every penalty of a level."""
    if not installed("sklearn"):
        yield Skipped(PART, "liblinear", "scikit-learn is not installed")
        return
    sizes = LEVELS[level]
    problem = named(sizes.data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # liblinear warns that it has not converged
        for C in sizes.penalties:
            yield from _at(problem, C, sizes)


def _at(problem: Problem, C: float, sizes: Sizes) -> Iterator[Measurement]:
    """Measure one penalty: the ratios with and without an intercept, and the quality of the answers."""
    from extremal.sklearn import ConstrainedLogisticRegression

    A, y = _matrix(problem.A), problem.y
    rival = liblinear(C).fit(A, y)
    radius, theirs = float(np.abs(rival.coef_).sum()), problem.f.value(rival.coef_[0])
    own, free = (ConstrainedLogisticRegression("l1", radius=radius, fit_intercept=wanted) for wanted in (False, True))
    where = f"{problem.name}: C = {C:g}"
    for how, model in (("no intercept", own), ("an intercept of ours", free)):
        pair = Pair(f"{where}, {how}", lambda model=model: model.fit(A, y), lambda: rival.fit(A, y), UNIT)
        yield compared(PART, pair, sizes.repeats, sizes.target)
    assert own.constraint_violation_ == 0.0
    lower = (theirs - own.objective_) / own.objective_
    note = f"R = {radius:.2f}, {np.count_nonzero(own.coef_)} non-zeros"
    yield Measurement.of(PART, f"objective, {where}", [lower], unit="lower by this share of ours", note=note)
    yield Measurement.of(PART, f"gap, {where}", [own.certificate_.relative_gap], unit="certified relative gap", note=note)


def _matrix(A: Any) -> sp.csr_matrix:
    """The form for liblinear: a matrix, with indices of 32 bits."""
    return sp.csr_matrix((A.data, A.indices.astype(np.int32), A.indptr.astype(np.int32)), shape=A.shape)


def liblinear(C: float) -> Any:
    """An l1 penalty, in a form that both old and new versions accept."""
    import sklearn
    from sklearn.linear_model import LogisticRegression

    new = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)
    how: dict[str, Any] = {"l1_ratio": 1} if new else {"penalty": "l1"}
    return LogisticRegression(solver="liblinear", C=C, fit_intercept=False, random_state=0, **how)
