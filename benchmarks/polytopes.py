"""What oracles of polytopes cost: linear programs from scratch and from the last basis, assignments.

    python benchmarks/polytopes.py        needs highspy for the bases

Costs change a little from one program to the next, as gradients do. CPU time on one thread; medians, with the spread.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import sys
import time

import numpy as np
import scipy.sparse as sp

from extremal.sets.polytopes.general import Polytope
from extremal.sets.polytopes.transport import Birkhoff, TransportPolytope

CALLS = 25


def main():
    rng = np.random.default_rng(0)
    print(
        "one oracle call in ms (median, min to max): scipy, highspy from scratch, highspy from the last basis; scipy / last basis"
    )
    for m, d, density in ((50, 30, 1.0), (200, 300, 0.05), (400, 1000, 0.02)):
        A = sp.random_array((m, d), density=density, rng=rng, data_sampler=lambda size: rng.random(size))
        compare(f"Polytope {m} x {d}", lambda A=A, m=m: Polytope(A, np.ones(m), bounds=(0, 1)), (d,), rng)
    for n in (30, 100):
        a, b = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(n))
        compare(f"TransportPolytope {n} x {n}", lambda a=a, b=b: TransportPolytope(a, b), (n, n), rng)
    for n in (100, 500):
        times = [clock(Birkhoff(n).lmo, rng.standard_normal((n, n))) for _ in range(CALLS)]
        print(f"{f'Birkhoff {n}':26} {spread(times)}")


def compare(title, make, shape, rng):
    g = rng.standard_normal(shape)
    costs = [g := g + 0.03 * rng.standard_normal(shape) for _ in range(CALLS)]
    cold = run(without(make()), costs, warm=False)
    print(f"{title:26} {spread(cold)}", end="")
    try:
        import highspy  # noqa: F401
    except ImportError:
        print("   no highspy")
        return
    scratch, last = run(make(), costs, warm=False), run(make(), costs, warm=True)
    print(f"   {spread(scratch)}   {spread(last)}   {np.median(cold) / np.median(last):5.1f}")


def without(C):
    """A set that has tried to import highspy, and found none."""
    kept = sys.modules.get("highspy")
    sys.modules["highspy"] = None
    C.lmo(np.ones(C.shape))
    del sys.modules["highspy"]
    if kept is not None:
        sys.modules["highspy"] = kept
    return C


def run(C, costs, warm):
    times, near = [], None
    for g in costs:
        start = time.process_time()
        near = C.lmo_from(g, near if warm else None)
        times.append(time.process_time() - start)
    return times[1:]


def clock(f, *args):
    start = time.process_time()
    f(*args)
    return time.process_time() - start


def spread(times):
    low, middle, high = (1e3 * t for t in (min(times), np.median(times), max(times)))
    return f"{middle:7.2f} ({low:.2f} to {high:.2f})"


if __name__ == "__main__":
    main()
