"""What passes over rows cost: CPU time, over that of scipy's (or numpy's) own pass over the same bytes, on one thread.

    python benchmarks/rows.py [ROWS ...]        2 * 10^4, which fit into the cache, and 2 * 10^6 if none is given

Rows have 12 entries. Each pair is measured in one process, in turns; printed are the median of the ratios over the repeats, with
the spread, and the time of a call.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import sys
import time

import numpy as np
import scipy.sparse as sp

import extremal as ex

REPEATS, SECONDS, ENTRIES = 9, 0.05, 12


def measure(sizes=(2 * 10**4, 2 * 10**6)):
    """The ratios by what they compare: median, min and max, and the microseconds of both calls."""
    return {what: ratio(*calls) for n in sizes for what, calls in pairs(n)}


def pairs(n):
    """What is compared, our call, and the other."""
    yield from sparse(n, 1000)
    yield from sparse(n, 100_000)
    yield from dense(n // 4, 48)


def sparse(n, d):
    f, rng = generated(n, d), np.random.default_rng(1)
    A, x, c = f.data._A, rng.standard_normal(d) / 10, rng.standard_normal(n)
    where, every, mixed = f"{n} x {d}", np.arange(n), rng.permutation(n)
    yield f"{where}: full gradient, over scipy's", (lambda: f.grad(x), lambda: plain(A, f.y, x))
    yield f"{where}: A[idx] x, all rows, over scipy's A x", (lambda: f.data.dot(x, every), lambda: A @ x)
    yield f"{where}: A[idx]' c, all rows, over scipy's A' c", (lambda: f.data.tdot(c, every), lambda: A.T @ c)
    yield f"{where}: A[idx] x, random over consecutive rows", (lambda: f.data.dot(x, mixed), lambda: f.data.dot(x, every))


def dense(n, d):
    A = np.random.default_rng(2).standard_normal((n, d))
    f, x = ex.LinearModel(ex.Logistic(), A, np.sign(A[:, 0])), np.full(d, 0.1)
    yield f"{n} x {d}, dense: full gradient, over numpy's", (lambda: f.grad(x), lambda: plain(A, f.y, x))


def generated(n, d):
    """Logistic regression on rows with entries in as many blocks of columns."""
    rng, wide = np.random.default_rng(0), d // ENTRIES
    columns = rng.integers(0, wide, (n, ENTRIES), dtype=np.int32) + wide * np.arange(ENTRIES, dtype=np.int32)
    starts = np.arange(0, n * ENTRIES + 1, ENTRIES, dtype=np.int32)
    A = sp.csr_array((rng.standard_normal(n * ENTRIES), columns.reshape(-1), starts), shape=(n, d))
    return ex.LinearModel(ex.Logistic(), A, np.where(rng.random(n) < 0.5, 1.0, -1.0))


def plain(A, y, x):
    """The full gradient as it is written with scipy, or with numpy."""
    return A.T @ ex.Logistic().deriv(A @ x, y) / len(y)


def ratio(ours, other):
    times = [(cost(ours), cost(other)) for _ in range(REPEATS)]
    ratios = [a / b for a, b in times]
    mine, theirs = (1e6 * float(np.median([pair[i] for pair in times])) for i in (0, 1))
    return {"median": float(np.median(ratios)), "min": min(ratios), "max": max(ratios), "ours": mine, "other": theirs}


def cost(call):
    """CPU seconds of a call, the mean over as many as fit into the time."""
    call()  # warm
    start, calls = time.process_time(), 0
    while calls < 3 or time.process_time() - start < SECONDS:
        call()
        calls += 1
    return (time.process_time() - start) / calls


def main(sizes):
    print("ratio (median, min to max), microseconds of both calls")
    for what, found in measure(*([sizes] if sizes else [])).items():
        spread = f"({found['min']:.2f} to {found['max']:.2f})"
        print(f"  {found['median']:6.2f}  {spread:16}  {found['ours']:9.0f} against {found['other']:9.0f}  {what}")


if __name__ == "__main__":
    main([int(float(text)) for text in sys.argv[1:]])
