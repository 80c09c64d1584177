"""What an oracle costs: CPU time of a call, over that of a plain numpy pass or sort of the same gradient.

    python benchmarks/oracles.py [DIMENSION ...]        10^4, 10^5 and 10^6 if none is given

The l1 ball is held against one ``np.abs(g).max()``, selections against ``np.argsort(g)``. Each pair is measured in one process
on one thread, in turns; the median of the ratios over the repeats is printed, with the spread, and the time of a call.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import sys
import time

import numpy as np

from extremal.sets.norms.balls import L1Ball
from extremal.sets.simplices.boxes import BudgetBox, CappedSimplex, Hypersimplex

REPEATS, SECONDS, BALL = 9, 0.05, L1Ball(1.0)


def main(sizes):
    for d in sizes or (10**4, 10**5, 10**6):
        g = np.random.default_rng(0).standard_normal(d)
        print(f"dimension {d}: ratio (median, min to max), microseconds of a call")
        report("L1Ball", "abs max", lambda g=g: BALL.lmo(g), lambda g=g: np.abs(g).max())
        for k in (d // 100, d // 2):
            for what, C in selections(d, k).items():
                report(f"{what}, k = {k}", "argsort", lambda C=C, g=g: C.lmo(g), lambda g=g: np.argsort(g))


def selections(d, k):
    caps = np.random.default_rng(1).uniform(0.5, 1.5, d)
    return {
        "Hypersimplex": Hypersimplex(k).on(d),
        "CappedSimplex, one cap": CappedSimplex(1.0, k - 0.5).on(d),
        "CappedSimplex, d caps": CappedSimplex(caps, k - 0.5),
        "BudgetBox, d bounds": BudgetBox(-caps, caps, 2 * k - caps.sum()),
    }


def report(what, other, oracle, plain):
    pairs = [(cost(oracle), cost(plain)) for _ in range(REPEATS)]
    ratios = [a / b for a, b in pairs]
    mine, theirs = (1e6 * np.median([pair[i] for pair in pairs]) for i in (0, 1))
    spread = f"({min(ratios):.2f} to {max(ratios):.2f})"
    print(f"  {np.median(ratios):6.2f}  {spread:16}  {mine:9.1f} against {theirs:9.1f} of {other:8}  {what}")


def cost(call):
    """CPU seconds of a call, the mean over as many as fit into the time."""
    call()  # warm
    start, calls = time.process_time(), 0
    while calls < 3 or time.process_time() - start < SECONDS:
        call()
        calls += 1
    return (time.process_time() - start) / calls


if __name__ == "__main__":
    main([int(float(text)) for text in sys.argv[1:]])
