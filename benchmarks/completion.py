"""Matrix completion: CPU time against proximal gradients with exact SVDs, and memory where no dense matrix fits.

    python benchmarks/completion.py small       943 x 1682, 100 000 ratings: seconds until the error on held back ones is right
    python benchmarks/completion.py large       100 000 x 50 000, 10 million ratings: peak memory, seconds per iteration

One thread. The small problem has the shape of MovieLens 100k: ratings 1 to 5, rounded from a matrix of rank 10 and noise; a
fifth is held back. The reference is the solution of min 0.5 sum (X - ratings)^2 + 10 |X|_*, to a relative gap of 2e-4, and the
ball has its nuclear norm. A method is done from the first iterate on from which its error stays within 0.5 % of the reference's
(below it is fine); the clock stops while errors are computed. Medians over problems from five seeds. The error is right long
before f is at its minimum: to bring f itself within 1 % of that takes Frank-Wolfe some 300 iterations, and FISTA a dozen.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import resource
import subprocess
import sys
import time

import numpy as np

import extremal as ex
from extremal import Entries, MatrixCompletion, NuclearBall

WEIGHT = 10.0  # of the nuclear norm in the penalised problem
SEEDS = range(5)


class Clock:
    """CPU seconds, and the errors seen at some of them."""

    def __init__(self, problem):
        self.problem, self.spent, self.seen = problem, 0.0, []
        self.since = time.process_time()

    def look(self, x):
        self.spent += time.process_time() - self.since
        self.seen.append((self.spent, self.problem.rmse(x)))
        self.since = time.process_time()

    def done(self, target):
        """When the error has come below the target for good; infinite if it has not."""
        last = max((i for i, (_, error) in enumerate(self.seen) if error > target), default=-1)
        return self.seen[last + 1][0] if last + 1 < len(self.seen) else np.inf


# the small problem


def ratings(seed, m=943, n=1682, count=100_000, rank=10, noise=0.7):
    rng = np.random.default_rng(seed)
    truth = 3.5 + 0.8 / np.sqrt(rank) * rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    rows, cols = np.divmod(rng.choice(m * n, count, replace=False), n)
    values = np.clip(np.round(truth[rows, cols] + noise * rng.standard_normal(count)), 1, 5)
    return MatrixCompletion(rows, cols, values, (m, n), centre="mean", validation=0.2, seed=seed)


def by_svd(Z):
    u, s, vt = np.linalg.svd(Z, full_matrices=False)
    s = np.maximum(s - WEIGHT, 0)
    return (u * s) @ vt, s


def by_gram(Z):
    """The same from the eigenvalues of ZZ'."""
    w, u = np.linalg.eigh(Z @ Z.T)
    s = np.sqrt(np.maximum(w, 0))
    u, s = u[:, s > WEIGHT], s[s > WEIGHT]
    return (u * ((s - WEIGHT) / s)) @ (u.T @ Z), s - WEIGHT


def fista(problem, threshold, iterations, look=lambda x: None):
    places, y = problem.objective.data.positions, problem.objective.y
    X, Z, t = np.zeros(problem.shape), np.zeros(problem.shape), 1.0
    for _ in range(iterations):
        G = Z.copy()
        G[places.rows, places.cols] = y
        new, s = threshold(G)
        t, before = (1 + np.sqrt(1 + 4 * t * t)) / 2, t
        X, Z = new, new + (before - 1) / t * (new - X)
        look(X)
    return X, s


def small():
    full, line = ex.Full(), ex.LineSearch()
    methods = {
        "FrankWolfe(LineSearch)": ex.FrankWolfe(step=line),
        "Pairwise": ex.Method(full, line, ex.Pairwise()),
        "BlendedPairwise(lazy)": ex.Method(full, line, ex.BlendedPairwise(lazy=True)),
        "Sarah(batch=2000, p=0.1), LineSearch": ex.Method(ex.Sarah(2000, p=0.1), line),
    }
    ex.minimize(ratings(9).objective, NuclearBall(100.0), max_iter=2)  # compiled and warm
    table = {}
    for seed in SEEDS:
        problem = ratings(seed)
        X, s = fista(problem, by_gram, 120)
        target = 1.005 * problem.rmse(X)
        C, f = NuclearBall(float(s.sum()), tol=1e-2), problem.objective
        g = f.grad(X)
        gap = (g.inner(X) - NuclearBall(C.radius).lmo(g).low) / f.value(X)
        print(
            f"seed {seed}: radius {C.radius:.0f}, rank {len(s)}, relative gap {gap:.1e}, error {problem.rmse(X):.4f}", flush=True
        )
        for name, threshold in (("FISTA, dense SVD", by_svd), ("FISTA, eigenvalues of the Gram matrix", by_gram)):
            clock = Clock(problem)
            fista(problem, threshold, 26, clock.look)
            table.setdefault(name, []).append(clock.done(target))
        for name, method in methods.items():
            clock = Clock(problem)
            ex.minimize(f, C, method, tol=0, atol=0, max_iter=250, seed=seed, callback=lambda s, c=clock: c.look(s.x))
            table.setdefault(name, []).append(clock.done(target))
    slowest = np.median(table["FISTA, dense SVD"])
    for name, seconds in table.items():
        middle = np.median(seconds)
        what = f"{middle:7.3f} s  ({min(seconds):.2f} to {max(seconds):.2f}), {slowest / middle:.1f} times as fast as dense SVDs"
        print(f"  {what if np.isfinite(middle) else 'not within 250 iterations'}: {name}")


# the large problem


def large(name=None):
    if name is None:
        for method in ("FrankWolfe", "SarahFW"):  # each in its own process, for its own peak
            subprocess.run([sys.executable, __file__, "large", method], check=True)
        return
    shape, count, rng = (100_000, 50_000), 10_000_000, np.random.default_rng(0)
    rows, cols = (rng.integers(0, side, count, dtype=np.int32) for side in shape)
    u, v = (rng.standard_normal((side, 5)) for side in shape)
    y = np.einsum("ij,ij->i", u[rows], v[cols]) + rng.standard_normal(count)
    f = ex.LinearModel(ex.Squared(), Entries(rows, cols, shape), y)
    del rows, cols, u, v, y
    method = ex.FrankWolfe(step=ex.LineSearch()) if name == "FrankWolfe" else ex.SarahFW(batch=100_000)
    C = NuclearBall(200_000.0, tol=1e-2)
    f.ready()
    before, times = peak(), []
    for state in ex.iterate(f, C, method):
        times.append(time.process_time())
        if state.k == 20:
            break
    value = f.value(state.x)
    per_step = np.diff(times)
    print(
        f"{method}: {state.x}, f {f.value(0 * state.x):.3f} -> {value:.3f}; {np.median(per_step):.2f} s per iteration "
        f"({per_step.min():.2f} to {per_step.max():.2f}), peak {peak():.2f} GiB ({before:.2f} before the run)",
        flush=True,
    )


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    {"small": small, "large": large}[sys.argv[1]](*sys.argv[2:])
