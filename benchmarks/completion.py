"""Matrix completion: CPU time against proximal gradients with exact SVDs, and memory where no dense matrix fits.

    python benchmarks/completion.py minimum     943 x 1682, 100 000 ratings: seconds until f is near its minimum
    python benchmarks/completion.py small       943 x 1682, 100 000 ratings: seconds until the error on held back ones is right
    python benchmarks/completion.py large       100 000 x 50 000, 10 million ratings: peak memory, seconds per iteration

One thread. The small problem has the shape of MovieLens 100k: ratings 1 to 5, rounded from a matrix of rank 10 and noise; a
fifth is held back.

``minimum``: the ball has radius 1190. The minimum is certified by a dense decomposition of the gradient. FISTA is in the
constrained form: each iterate is projected by the eigenvectors of a Gram matrix of 943 x 943, momentum starts anew when it
points uphill; with the known constant L, and with one that is found by trial and may fall. A method is done at its first
iterate with f - f* <= 1e-2, 1e-3, 1e-4, 1e-6 of f*, and certified at the first with a gap below 1e-2, 1e-3, 1e-4 of f; the
clock stops while these are computed, except for what the method itself computes of them. Medians over five seeds.

``small``: the reference is the solution of min 0.5 sum (X - ratings)^2 + 10 |X|_*, to a relative gap of 2e-4, and the
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
from extremal.sets.simplices import bounds

WEIGHT = 10.0  # of the nuclear norm in the penalised problem
RADIUS = 1190.0  # of the ball whose minimum is looked for
SEEDS = range(5)


class Clock:
    """CPU seconds, and what was seen at some of them."""

    def __init__(self, measure):
        self.measure, self.spent, self.seen = measure, 0.0, []
        self.since = time.process_time()

    def look(self, x):
        self.spent += time.process_time() - self.since
        self.seen.append((self.spent, self.measure(x)))
        self.since = time.process_time()

    def first(self, which, target):
        """When a part of what is seen was first at most the target; infinite if it was not."""
        return next((seconds for seconds, found in self.seen if found[which] <= target), np.inf)

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
    full, line = ex.gradients.Full(), ex.steps.LineSearch()
    methods = {
        "FrankWolfe(LineSearch)": ex.FrankWolfe(step=line),
        "Pairwise": ex.Method(full, line, ex.moves.Pairwise()),
        "BlendedPairwise(lazy)": ex.Method(full, line, ex.moves.BlendedPairwise(lazy=True)),
        "Sarah(batch=2000, p=0.1), LineSearch": ex.Method(ex.gradients.Sarah(2000, p=0.1), line),
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
            clock = Clock(problem.rmse)
            fista(problem, threshold, 26, clock.look)
            table.setdefault(name, []).append(clock.done(target))
        for name, method in methods.items():
            clock = Clock(problem.rmse)
            ex.minimize(f, C, method, tol=0, atol=0, max_iter=250, seed=seed, callback=lambda s, c=clock: c.look(s.x))
            table.setdefault(name, []).append(clock.done(target))
    slowest = np.median(table["FISTA, dense SVD"])
    for name, seconds in table.items():
        middle = np.median(seconds)
        what = f"{middle:7.3f} s  ({min(seconds):.2f} to {max(seconds):.2f}), {slowest / middle:.1f} times as fast as dense SVDs"
        print(f"  {what if np.isfinite(middle) else 'not within 250 iterations'}: {name}")


# the minimum of f


def projected(Z, radius):
    """The nearest point of the nuclear ball, from the eigenvalues of ZZ'."""
    w, u = np.linalg.eigh(Z @ Z.T)
    s = np.sqrt(np.maximum(w, 0))
    t = bounds.nearest(s, 0.0, radius, radius) if s.sum() > radius else s
    u, ratios = u[:, t > 0], t[t > 0] / s[t > 0]
    return (u * ratios) @ (u.T @ Z)


def constrained_fista(problem, radius, iterations, look, shrink=1.0):
    """min of 0.5 sum (X - ratings)^2 over the ball. L = 1, the known constant; for ``shrink`` < 1 it falls by that factor before
    each step, and is doubled (up to 1) until the step is not above its model."""
    at, y = problem.objective.data.positions, problem.objective.y
    X, Z, t, L = np.zeros(problem.shape), np.zeros(problem.shape), 1.0, 1.0
    for _ in range(iterations):
        rest, L = Z[at.rows, at.cols] - y, L * shrink
        while True:
            G = Z.copy()
            G[at.rows, at.cols] -= rest / L
            new = projected(G, radius)
            D = new - Z
            if L >= 1 or np.sum(D[at.rows, at.cols] ** 2) <= L * np.vdot(D, D):
                break
            L = min(1.0, 2 * L)
        if np.vdot(D, new - X) < 0:
            t = 1.0
        before, t = t, (1 + np.sqrt(1 + 4 * t * t)) / 2
        X, Z = new, new + (before - 1) / t * (new - X)
        look(X)


def minimum():
    full, line = ex.gradients.Full(), ex.steps.LineSearch()
    methods = {
        "LowRankFW": (ex.LowRankFW(), 12),
        "BlendedPairwise(lazy)": (ex.Method(full, line, ex.moves.BlendedPairwise(lazy=True)), 400),
        "Pairwise": (ex.Method(full, line, ex.moves.Pairwise()), 200),
        "FrankWolfe(LineSearch)": (ex.FrankWolfe(step=line), 200),
    }
    ex.minimize(ratings(9).objective, NuclearBall(RADIUS), ex.LowRankFW(), max_iter=2)  # compiled and warm
    ex.minimize(ratings(9).objective, NuclearBall(RADIUS), ex.PairwiseFW(), max_iter=2)
    table = {}
    for seed in SEEDS:
        problem = ratings(seed)
        f, C, rough = problem.objective, NuclearBall(RADIUS), NuclearBall(RADIUS, tol=1e-5)
        best = ex.minimize(f, C, ex.LowRankFW(), tol=1e-8)
        g = np.asarray(f.grad(best.x))
        gap = np.vdot(g, np.asarray(best.x)) + RADIUS * np.linalg.norm(g, 2)
        print(f"seed {seed}: f* = {best.value:.9f} up to {gap / best.value:.0e} of it, rank {best.x.rank}", flush=True)

        def measure(x, f=f, C=rough, best=best.value):
            value, g = f.value_and_grad(x)
            here = g.inner(x)
            return value / best - 1, (here - C.lmo(g).low) / value

        for name, shrink in (("FISTA, known L", 1.0), ("FISTA, L by trial", 0.8)):
            clock = Clock(measure)
            constrained_fista(problem, RADIUS, 45, clock.look, shrink)
            table.setdefault(name, []).append(clock)
        for name, (method, limit) in methods.items():
            clock = Clock(measure)
            ex.minimize(f, rough, method, tol=0, atol=0, max_iter=limit, callback=lambda s, c=clock: c.look(s.x))
            table.setdefault(name, []).append(clock)
    report(table)


def report(table):
    goals = [(0, 1e-2), (0, 1e-3), (0, 1e-4), (0, 1e-6), (1, 1e-2), (1, 1e-3), (1, 1e-4)]
    seconds = {name: [[c.first(*goal) for c in clocks] for goal in goals] for name, clocks in table.items()}
    print("CPU seconds to f - f* <= 1e-2, 1e-3, 1e-4, 1e-6 of f*; to a gap <= 1e-2, 1e-3, 1e-4 of f (median, least to most)")
    for name, rows in seconds.items():
        print(f"  {name:24}", " ".join(f"{shown(row):>24}" for row in rows))
    print("how many times as fast LowRankFW is")
    for name, rows in seconds.items():
        ratios = [np.median(a) / np.median(b) for a, b in zip(rows, seconds["LowRankFW"], strict=True)]
        print(f"  {name:24}", " ".join(f"{r:24.1f}" if np.isfinite(r) else f"{'-':>24}" for r in ratios))


def shown(row):
    middle = np.median(row)
    return f"{middle:.3f} ({min(row):.2f} to {max(row):.2f})" if np.isfinite(middle) else "-"


# the large problem


def large(name=None):
    if name is None:
        for method in ("FrankWolfe", "SarahFW", "LowRankFW"):  # each in its own process, for its own peak
            subprocess.run([sys.executable, __file__, "large", method], check=True)
        return
    shape, count, rng = (100_000, 50_000), 10_000_000, np.random.default_rng(0)
    rows, cols = (rng.integers(0, side, count, dtype=np.int32) for side in shape)
    u, v = (rng.standard_normal((side, 5)) for side in shape)
    y = np.einsum("ij,ij->i", u[rows], v[cols]) + rng.standard_normal(count)
    f = ex.LinearModel(ex.Squared(), Entries(rows, cols, shape), y)
    del rows, cols, u, v, y
    method = {
        "FrankWolfe": ex.FrankWolfe(step=ex.steps.LineSearch()),
        "SarahFW": ex.SarahFW(batch=100_000),
        "LowRankFW": ex.LowRankFW(width=10),
    }[name]
    C = NuclearBall(200_000.0, tol=1e-2)
    f.ready()
    before, times = peak(), []
    for state in ex.iterate(f, C, method):
        times.append(time.process_time())
        if state.k == (3 if name == "LowRankFW" else 20):
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
    {"minimum": minimum, "small": small, "large": large}[sys.argv[1]](*sys.argv[2:])
