"""l1-constrained logistic regression by `ConstrainedLogisticRegression` and by scikit-learn's liblinear, on w8a.

liblinear is given a penalty, and the estimator the l1 norm that it ends at; neither has an intercept, which liblinear penalises.
Both at their default tolerances. CPU time of one thread of the whole call of fit, in turns; medians and spreads of the ratio. The
objectives are compared by numpy: a positive "lower by" means that the estimator's is the lower one.

    python benchmarks/estimators.py [--repeats 7]
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import time
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

import extremal as ex
from extremal.sklearn import ConstrainedLogisticRegression


def seconds(model, A, y: np.ndarray) -> float:
    start = time.process_time()
    model.fit(A, y)
    return time.process_time() - start


def compare(A, y: np.ndarray, C: float, repeats: int) -> None:
    f = ex.LinearModel(ex.Logistic(), A, y)
    rival = LogisticRegression(solver="liblinear", l1_ratio=1, C=C, fit_intercept=False)
    ours, theirs, lower = [], [], []
    for _ in range(repeats):
        theirs.append(seconds(rival, A, y))
        radius = float(np.abs(rival.coef_).sum())
        own = ConstrainedLogisticRegression("l1", radius=radius, fit_intercept=False)
        ours.append(seconds(own, A, y))
        lower.append((f.value(rival.coef_[0]) - own.objective_) / own.objective_)
        assert own.constraint_violation_ == 0.0
    t = seconds(ConstrainedLogisticRegression("l1", radius=radius), A, y)
    ratios = np.divide(ours, theirs)
    print(
        f"C = {C:<5g} R = {radius:7.2f}  {np.count_nonzero(own.coef_):3d} non-zeros  estimator {np.median(ours):.3f} s  "
        f"liblinear {np.median(theirs):.3f} s  ratio {np.median(ratios):.2f} ({ratios.min():.2f} to {ratios.max():.2f})  "
        f"objective lower by {np.median(lower):.1e}  gap {own.certificate_.relative_gap:.1e}  with an intercept {t:.3f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    A, y = ex.datasets.load("w8a")
    A = sp.csr_matrix(A)
    warnings.simplefilter("ignore")
    for intercept in (False, True):
        ConstrainedLogisticRegression("l1:3", fit_intercept=intercept).fit(A, y)  # compiled, or loaded
    for C in (0.003, 0.01, 0.03, 0.1, 1.0):
        compare(A, y, C, repeats)


if __name__ == "__main__":
    main()
