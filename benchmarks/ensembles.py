"""Weights of ensembles by SimplexRegression at sizes where memory counts, against what one would write by hand.

    python benchmarks/ensembles.py tall         2.4 million rows x 256 members, float32; with and without sample weights
    python benchmarks/ensembles.py wide         a million rows x 1000 members, float32
    python benchmarks/ensembles.py small        20 000 rows x 100 members: SLSQP and nnls take part
    python benchmarks/ensembles.py targets      a thousand targets on 5000 rows x 60 members

One thread, CPU time. Every fit is a process of its own: data are made in place by blocks, loops are compiled by a first fit of
some rows, then the clock starts; "beyond the data" is the peak of resident memory above what was resident then. Ratios are to
the first line on the same data; errors are (f - f_1) / f_1 in float64, f_1 that of the first line, which is certified, and "off"
is how far the sum of the weights is from one.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

SIZES = {"tall": (2_400_000, 256), "wide": (1_000_000, 1000), "small": (20_000, 100), "targets": (5000, 60)}
SOLVERS = {
    "tall": ("estimator", "estimator weighted", "estimator intercept", "products"),
    "wide": ("estimator", "estimator weighted", "estimator newton", "products"),
    "small": ("estimator", "estimator newton", "slsqp", "products", "nnls"),
    "targets": ("estimator", "nnls one by one"),
}
TARGETS = 1000
GIB = 2**30


def data(n, d, targets=1):
    """Forecasts with a common part, in float32, made by blocks; targets are near combinations of twenty of them."""
    rng = np.random.default_rng(0)
    A, y, w = np.empty((n, d), np.float32), np.empty((n, targets), np.float32), np.zeros((d, targets))
    w[:20] = rng.dirichlet(np.ones(20), targets).T
    w = w.astype(np.float32)
    for i in range(0, n, 2**14):
        block = A[i : i + 2**14]
        rng.standard_normal(out=block, dtype=np.float32)
        block += rng.standard_normal((len(block), 1), np.float32)
        y[i : i + 2**14] = block @ w + 0.5 * rng.standard_normal((len(block), targets))
    return A, y if targets > 1 else y[:, 0]


def blocks(A, y, s=None):
    for i in range(0, len(y), 2**12):
        some = slice(i, i + 2**12)
        yield A[some].astype(np.float64), y[some].astype(np.float64), 1.0 if s is None else s[some]


def certify(A, y, w):
    """f, its Frank-Wolfe gap and the sum's error, in float64 and for one target; the weights as they are."""
    value, g = 0.0, np.zeros(A.shape[1])
    for a, b, _ in blocks(A, y):
        r = a @ w - b
        value, g = value + 0.5 * (r @ r) / len(y), g + r @ a / len(y)
    return value, float(g @ w - g.min()), float(abs(w.sum() - 1)), float(w.min())


def by_estimator(A, y, kind=""):
    from extremal.sklearn import SimplexRegression

    options = {"solver": kind} if kind in ("newton", "active_set") else {"fit_intercept": kind == "intercept"}
    weights = np.random.default_rng(1).random(len(y), np.float32) + np.float32(0.5) if kind == "weighted" else None
    return SimplexRegression(**options).fit(A, y, sample_weight=weights)


def slsqp(value, grad, d):
    from scipy.optimize import minimize

    sum_to_one = {"type": "eq", "fun": lambda x: x.sum() - 1, "jac": lambda x: np.ones(d)}
    options = {"maxiter": 1000, "ftol": 1e-12}
    return minimize(
        value, np.full(d, 1 / d), jac=grad, bounds=[(0, 1)] * d, constraints=sum_to_one, method="SLSQP", options=options
    ).x


def by_slsqp(A, y):
    """On the rows, in float64."""
    A, y = A.astype(np.float64), y.astype(np.float64)
    return slsqp(lambda x: 0.5 * np.square(A @ x - y).mean(), lambda x: (A @ x - y) @ A / len(y), A.shape[1])


def by_products(A, y):
    """A'A and A'y in float64 by blocks, then SLSQP on these."""
    d, n = A.shape[1], len(y)
    H, h = np.zeros((d, d)), np.zeros(d)
    for a, b, _ in blocks(A, y):
        H += a.T @ a / n
        h += b @ a / n
    return slsqp(lambda x: 0.5 * x @ H @ x - h @ x, lambda x: H @ x - h, d)


def by_nnls(A, y):
    """The sum as one more row, a thousand times as heavy as the data."""
    from scipy.optimize import nnls

    heavy = 1e3 * np.linalg.norm(A)
    return nnls(np.vstack([A.astype(np.float64), np.full((1, A.shape[1]), heavy)]), np.append(y.astype(np.float64), heavy))[0]


def solve(solver, A, y):
    name, _, kind = solver.partition(" ")
    if name == "estimator":
        return by_estimator(A, y, kind)
    if kind == "one by one":
        return np.array([by_nnls(A, y[:, t]) for t in range(y.shape[1])])
    return {"slsqp": by_slsqp, "products": by_products, "nnls": by_nnls}[name](A, y)


def child(part, solver, rows):
    """Fit in this process; a line of JSON."""
    n, d = SIZES[part]
    targets = TARGETS if part == "targets" else 1
    A, y = data(rows or n, d, targets)
    few = A[:300], y[:300]
    solve(solver, *few)  # compiled, and imported
    if solver.startswith("estimator"):
        by_estimator(*few, "newton")
    before, start = resident(), time.process_time()
    answer = solve(solver, A, y)
    seconds, beyond = time.process_time() - start, peak() - before
    out = {"solver": solver, "seconds": seconds, "beyond": beyond, "data": A.nbytes + y.nbytes}
    if hasattr(answer, "coef_"):
        out |= {
            "gap": answer.dual_gap_,
            "f": answer.objective_,
            "violation": answer.constraint_violation_,
            "status": answer.status_,
        }
        answer = answer.coef_
    w = np.asarray(answer, np.float64)
    if not solver.endswith(("weighted", "intercept")):
        found = [certify(A, y if w.ndim == 1 else y[:, t], v) for t, v in enumerate(np.atleast_2d(w)[:20])]
        out |= dict(zip(("f", "gap", "off", "least"), map(list, zip(*found, strict=True)), strict=True))
    print(json.dumps(out))


def peak():
    """Bytes that were resident at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def resident():
    """Bytes that are resident now; on systems that do not say, at most so far."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return peak()


def run(part, rows):
    n, d = SIZES[part]
    print(f"{part}: {rows or n} x {d} in float32", flush=True)
    answers = []
    for solver in SOLVERS[part]:
        command = [sys.executable, __file__, part, "--solver", solver, "--rows", str(rows or 0)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"  {solver:20} failed: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else done.returncode}")
            continue
        answers.append(json.loads(done.stdout.splitlines()[-1]))
        show(answers[-1], answers[0])


def show(a, first):
    compared = "off" in a and "off" in first
    best, f, gap = (np.atleast_1d(x) for x in (first["f"], a["f"], a["gap"]))
    error = (
        f"; error {((f - best) / best).max():8.1e}, off {max(a['off']):.0e}, least weight {min(a['least']):.0e}"
        if compared
        else ""
    )
    print(
        f"  {a['solver']:20} {a['seconds']:8.2f} s, {a['seconds'] / first['seconds']:8.2f} times; {a['beyond'] / GIB:6.3f} GiB "
        f"beyond {a['data'] / GIB:.2f} GiB of data; relative gap {(gap / f).max():.1e}{error}",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=SIZES)
    parser.add_argument("--rows", type=int, default=0, help="rows instead of those of the part")
    parser.add_argument("--solver", help=argparse.SUPPRESS)
    args = parser.parse_args()
    for part in args.parts:
        child(part, args.solver, args.rows) if args.solver else run(part, args.rows)
