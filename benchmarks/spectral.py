"""What an oracle call of the nuclear norm ball costs on a sparse gradient, beside scipy's svds: CPU seconds, one thread.

    python benchmarks/spectral.py

20000 x 10000 gradients with 2 million entries: noise alone, where many singular values are nearly the largest; ten directions
of decreasing strength and noise; ten of equal strength and noise. Each is asked for cold, and from the answer to a gradient
that differs by one per cent. Medians over the repeats; the residual is |G'u - sigma v| / sigma, the bound what `low` allows
beyond sigma, relative; memory is the peak of what one call allocates.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import time
import tracemalloc

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import svds

from extremal.sets.spectral.nuclear import NuclearBall

ROWS, COLUMNS, ENTRIES, REPEATS = 20_000, 10_000, 2_000_000, 5
TOLERANCES = (1e-4, 1e-8)


def main():
    print(f"a dense copy would take {8e-6 * ROWS * COLUMNS:.0f} MB")
    print(f"{'gradient':<14}{'call':<24}{'CPU s':>7}{'sigma':>16}{'residual':>10}{'bound':>10}{'MB':>8}")
    for what, strengths in {"noise": [], "ten falling": np.linspace(1, 0.5, 10), "ten equal": np.ones(10)}.items():
        G = gradient(strengths)
        moved = G.copy()
        moved.data *= 1 + 0.01 * np.random.default_rng(2).standard_normal(G.nnz)
        for tol in TOLERANCES:
            C = NuclearBall(1.0, tol=tol)
            near = C.lmo(moved)
            report(what, f"cold, tol={tol:g}", G, lambda C=C, G=G: from_vertex(C.lmo(G), G))
            report(what, f"warm, tol={tol:g}", G, lambda C=C, G=G, near=near: from_vertex(C.lmo_from(G, near), G))
        for tol in (1e-4, 0):
            report(what, f"svds, tol={tol:g}", G, lambda tol=tol, G=G: from_svds(G, tol))


def gradient(strengths):
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(0, ROWS, ENTRIES), rng.integers(0, COLUMNS, ENTRIES)
    data = rng.standard_normal(ENTRIES)
    for c in strengths:
        data += c * rng.standard_normal(ROWS)[rows] * rng.standard_normal(COLUMNS)[cols]
    return sp.coo_array((data, (rows, cols)), (ROWS, COLUMNS)).tocsr()


def from_vertex(s, G):
    return -s.left, s.right, -s.dot(G), -s.low


def from_svds(G, tol):
    u, s, vt = svds(G, k=1, tol=tol, v0=np.random.default_rng(0).standard_normal(COLUMNS))
    return u[:, 0], vt[0], float(s[0]), np.nan


def report(what, call, G, run):
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        u, v, sigma, upper = run()
        times.append(time.process_time() - start)
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    residual = np.linalg.norm(G.T @ u - sigma * v) / sigma
    print(
        f"{what:<14}{call:<24}{np.median(times):7.2f}{sigma:16.10f}{residual:10.1e}{upper / sigma - 1:10.1e}{peak / 1e6:8.1f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
