"""copt's stochastic Frank-Wolfe at b = n/100: CPU time of an epoch over one scipy full gradient, in turns, in one process.

Run ``python peer_copt.py DATA.npz REPEATS EPOCHS`` in an environment that has copt, with one thread; it does not need
extremal. It writes a line of JSON for each variant. The cost is the difference of two runs, which excludes the cost of a run
before its epochs.
"""

from __future__ import annotations

import importlib
import json
import math
import sys
import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

VARIANTS = ("SAG", "SAGA", "MHK", "LF")
PASSES = 20


def main(path: str, repeats: int, epochs: int) -> None:
    """Measure all variants on one data set."""
    copt, randomized = importlib.import_module("copt"), importlib.import_module("copt.randomized")
    arrays = np.load(path)
    A: Any = sp.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"]))
    y = arrays["y"]
    n, d = A.shape
    b = math.ceil(n / 100)
    share = n // b * b / n  # share of n in an epoch
    deriv = copt.loss.LogLoss(A, (y + 1) / 2).partial_deriv  # once: each access compiles it anew
    lmo = copt.constraint.L1Ball(20.0).lmo

    def run(variant: str, epochs: int) -> float:
        options = {"batch_size": b, "max_iter": epochs, "tol": 0, "variant": variant}
        start = time.process_time()
        randomized.minimize_sfw(deriv, A, (y + 1) / 2, np.zeros(d), lmo, **options)
        return time.process_time() - start

    for variant in VARIANTS:
        run(variant, 1)  # compiled and warm
        ratios = []
        for _ in range(repeats):
            before = scipy_pass(A, y)
            spent = (run(variant, epochs + 1) - run(variant, 1)) / (epochs * share)
            ratios.append(2 * spent / (before + scipy_pass(A, y)))
        sys.stdout.write(json.dumps({"variant": variant, "version": copt.__version__, "ratios": ratios}) + "\n")


def scipy_pass(A: Any, y: np.ndarray) -> float:
    """CPU seconds of one full gradient A' phi'(A x) / n."""
    x = np.linspace(-1, 1, A.shape[1])
    start = time.process_time()
    for _ in range(PASSES):
        _ = A.T @ (-y * expit(-y * (A @ x))) / len(y)
    return (time.process_time() - start) / PASSES


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
