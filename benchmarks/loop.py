"""What an iteration costs: CPU time of n component gradients of a method, over that of one scipy full gradient.

    python benchmarks/loop.py [FILE ...]        LIBSVM files; generated data with the shape of w8a if none is given

Both are measured in one process on one thread, in turns; the median over the repeats is printed, with the spread.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import math
import sys
import time

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

import extremal as ex
from extremal.experiments.standins import stand_in
from extremal.files import load

REPEATS, PASSES = 7, 10


def main(paths):
    for name, (A, y) in {p: load(p) for p in paths}.items() if paths else {"like w8a": stand_in("w8a")}.items():
        f = ex.LinearModel(ex.Logistic(), A, np.where(y == y.max(), 1.0, -1.0))
        print(f"{name}: {f.n} x {f.shape[0]}; n component gradients cost, in scipy full gradients (median, min to max):")
        b = math.ceil(f.n / 100)
        for method in (ex.FrankWolfe(), ex.SarahFW(batch=b), ex.SagaSarahFW(batch=b), ex.SarahFW(), ex.SagaSarahFW()):
            ratios = [ratio(f, sp.csr_array(A), method, seed) for seed in range(REPEATS)]
            print(f"  {np.median(ratios):6.2f}  ({min(ratios):.2f} to {max(ratios):.2f})  {method}")


def ratio(f, A, method, seed):
    run(f, method, seed, 1)  # compiled and warm
    return run(f, method, seed, PASSES) / scipy_pass(f, A)


def run(f, method, seed, passes):
    start = time.process_time()
    for state in ex.iterate(f, ex.L1Ball(20.0), method=method, seed=seed):
        if state.k == 0:
            start, before = time.process_time(), state.calls.grads
        elif state.calls.grads >= passes * f.n:
            break
    return (time.process_time() - start) / ((state.calls.grads - before) / f.n)


def scipy_pass(f, A, repeats=20):
    x = np.linspace(-1, 1, f.shape[0])
    start = time.process_time()
    for _ in range(repeats):
        A.T @ (-f.y * expit(-f.y * (A @ x))) / f.n
    return (time.process_time() - start) / repeats


if __name__ == "__main__":
    main(sys.argv[1:])
