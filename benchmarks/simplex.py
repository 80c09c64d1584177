"""Least squares over the simplex, the two cases that people meet: many small problems, and one tall one.

    python benchmarks/simplex.py many       100 000 problems of 50 x 10 in one call, against loops over scipy and cvxpy
    python benchmarks/simplex.py tall       2.4 million x 256 in float32 with 4 GiB of address space, against the same

One thread, CPU time; cvxpy (with OSQP and Clarabel) is left out if it is not there. `many`: loops run on a sample of the
problems (`minimize` on twenty of them) and are scaled up; medians over the repeats, with the spread. Errors are (f - f*) / f*,
f* from the certified answers in longdouble; an error below zero is one of points that are not on the simplex, and how far they
are off is shown. `tall`: each solver is a process of its own with 4 GiB of address space and a limit on time, with twice the
rows each time until it fails. Data are made by blocks; the clock starts when they are there, and stops before the certificate
is computed in float64.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import json
import resource
import signal
import subprocess
import sys
import time

import numpy as np

import extremal as ex

ROWS, COLUMNS = 50, 10  # of a small problem
WIDTH = 256  # of the tall one
GIB = 2**30


def slsqp(value, grad, d, **options):
    from scipy.optimize import minimize

    sum_to_one = {"type": "eq", "fun": lambda x: x.sum() - 1, "jac": lambda x: np.ones(d)}
    start, bounds = np.full(d, 1 / d), [(0, 1)] * d
    return minimize(
        value, start, jac=grad, bounds=bounds, constraints=sum_to_one, method="SLSQP", options={"maxiter": 1000} | options
    ).x


def nnls(A, b):
    """The sum as one more row, a thousand times as heavy as the data."""
    from scipy.optimize import nnls

    heavy = 1e3 * np.linalg.norm(A)
    return nnls(np.vstack([A, np.full((1, A.shape[1]), heavy)]), np.append(b, heavy))[0]


# many small problems


def stacks(kind, p):
    """Matrices with their targets: independent numbers, or the levels of random walks, as in synthetic control."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((p, ROWS, COLUMNS))
    if kind == "walks":
        np.cumsum(A, axis=1, out=A)
        A += 100
    w = rng.dirichlet(np.full(COLUMNS, 0.5), p)
    return A, np.einsum("pij,pj->pi", A, w) + 0.3 * rng.standard_normal((p, ROWS))


def by_slsqp(A, B, **options):
    m = A.shape[1]
    return [
        slsqp(
            lambda x, a=a, b=b: 0.5 * np.square(a @ x - b).sum() / m,
            lambda x, a=a, b=b: (a @ x - b) @ a / m,
            len(a[0]),
            **options,
        )
        for a, b in zip(A, B, strict=True)
    ]


def by_nnls(A, B):
    return [nnls(a, b) for a, b in zip(A, B, strict=True)]


def by_cvxpy(A, B, solver):
    """One problem whose data are parameters, so that it is made once."""
    import cvxpy as cp

    x, a, b = cp.Variable(COLUMNS), cp.Parameter((ROWS, COLUMNS)), cp.Parameter(ROWS)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(a @ x - b)), [x >= 0, cp.sum(x) == 1])
    answers = []
    for a.value, b.value in zip(A, B, strict=True):
        problem.solve(solver=solver, warm_start=False)
        answers.append(x.value)
    return answers


def by_minimize(A, B):
    solve = ex.BlendedPairwiseFW()
    return [ex.minimize(ex.LinearModel(ex.Squared(), a, b), ex.Simplex(), solve, tol=1e-8).x for a, b in zip(A, B, strict=True)]


def peers():
    yield "scipy SLSQP, defaults", by_slsqp
    yield "scipy SLSQP, ftol 1e-12", lambda A, B: by_slsqp(A, B, ftol=1e-12)
    yield "scipy nnls, heavy row", by_nnls
    try:
        import cvxpy as cp
    except ImportError:
        print("cvxpy is not installed")
    else:
        for solver in (cp.OSQP, cp.CLARABEL):
            yield f"cvxpy {solver}, parameters", lambda A, B, solver=solver: by_cvxpy(A, B, solver)
    yield "minimize, one by one", by_minimize


def many(args):
    print(f"{args.problems} problems of {ROWS} x {COLUMNS}; loops on {args.sample} of them; {args.repeats} repeats")
    for kind in ("normal", "walks"):
        A, B = stacks(kind, args.problems)
        few, targets = A[: args.sample], B[: args.sample]
        ex.least_squares_many(few, targets)  # compiled
        seconds, r = clock(lambda A=A, B=B: ex.least_squares_many(A, B), args.repeats)
        best = values(few, targets, r.x[: args.sample])
        assert r.converged.all()
        print(f"{kind}: largest relative gap {float((r.gap / r.value).max()):.1e}")
        base = report("least_squares_many", seconds, args.problems, few, targets, r.x[: args.sample], best, args.problems)
        seconds, shared = clock(lambda A=A, B=B: ex.least_squares_many(A[0], B), args.repeats)
        assert shared.converged.all()
        copies = np.broadcast_to(A[0], few.shape)
        x = shared.x[: args.sample]
        report(
            "the same, one matrix for all", seconds, args.problems, copies, targets, x, values(copies, targets, x), args.problems
        )
        for name, solve in peers():
            size = args.sample if solve is not by_minimize else min(20, args.sample)
            some = few[:size], targets[:size]
            solve(*(a[:2] for a in some))
            seconds, x = clock(lambda solve=solve, some=some: solve(*some), args.repeats)
            report(name, seconds, size, *some, np.array(x), best[:size], args.problems, base)


def clock(work, repeats):
    """CPU seconds of each repeat, and the answer."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        answer = work()
        times.append(time.process_time() - start)
    return times, answer


def values(A, B, x):
    """f in extended precision."""
    r = np.einsum("pij,pj->pi", A.astype(np.longdouble), x.astype(np.longdouble)) - B
    return (r * r).mean(axis=1) / 2


def report(name, seconds, solved, A, B, x, best, problems, base=None):
    low, middle, high = (1e6 * f(seconds) / solved for f in (min, np.median, max))
    error = ((values(A, B, x) - best) / best).astype(float)
    off = f"|sum - 1| <= {np.abs(x.sum(axis=1) - 1).max():.1e}, min {x.min():8.1e}"
    ratio = "" if base is None else f"   {middle / base:7.0f} times"
    print(
        f"  {name:30} {middle:9.2f} us ({low:.2f} to {high:.2f}), {middle * problems / 1e6:8.2f} s for all; "
        f"error {error.min():8.1e} to {error.max():8.1e}; {off}{ratio}",
        flush=True,
    )
    return middle


# the tall problem


def rows(n):
    """Forecasts with a common part, in float32, made by blocks; the target is near a combination of twenty of them."""
    rng = np.random.default_rng(0)
    A, y, w = np.empty((n, WIDTH), np.float32), np.empty(n, np.float32), np.zeros(WIDTH)
    w[:20] = rng.dirichlet(np.ones(20))
    for i in range(0, n, 2**14):
        block = A[i : i + 2**14]
        rng.standard_normal(out=block, dtype=np.float32)
        block += rng.standard_normal((len(block), 1), np.float32)
        y[i : i + 2**14] = block @ w + 0.5 * rng.standard_normal(len(block))
    return A, y


def blocks(A, y):
    for i in range(0, len(y), 2**12):
        yield A[i : i + 2**12].astype(np.float64), y[i : i + 2**12].astype(np.float64)


def certify(A, y, x):
    """Value and Frank-Wolfe gap of x, made feasible, in float64."""
    x = np.maximum(x, 0) / np.maximum(x, 0).sum()
    value, g = 0.0, np.zeros(WIDTH)
    for a, b in blocks(A, y):
        r = a @ x - b
        value, g = value + 0.5 * (r @ r) / len(y), g + r @ a / len(y)
    return value, float(g @ x - g.min())


def tall_minimize(A, y, method=None):
    r = ex.minimize(ex.LinearModel(ex.Squared(), A, y), ex.Simplex(), method)
    return r.x.astype(np.float64)


def tall_slsqp(A, y):
    """Products with A in its own type: a float64 x would make numpy copy A."""
    n = len(y)

    def value(x):
        return 0.5 * float(np.square(A @ x.astype(np.float32) - y).sum(dtype=np.float64)) / n

    def grad(x):
        return ((A @ x.astype(np.float32) - y) @ A).astype(np.float64) / n

    return slsqp(value, grad, WIDTH, ftol=1e-8)


def tall_products(A, y):
    """By hand: A'A and A'y in float64 by blocks, then SLSQP on these."""
    H, h, n = np.zeros((WIDTH, WIDTH)), np.zeros(WIDTH), len(y)
    for a, b in blocks(A, y):
        H += a.T @ a / n
        h += b @ a / n
    return slsqp(lambda x: 0.5 * x @ H @ x - h @ x, lambda x: H @ x - h, WIDTH, ftol=1e-12)


def tall_cvxpy(A, y, solver):
    import cvxpy as cp

    x = cp.Variable(WIDTH)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(A @ x - y) / len(y)), [x >= 0, cp.sum(x) == 1])
    problem.solve(solver=solver)
    return x.value


SOLVERS = {
    "minimize": tall_minimize,
    "fully-corrective-fw": lambda A, y: tall_minimize(A, y, "fully-corrective-fw"),
    "SLSQP": tall_slsqp,
    "A'A by hand, then SLSQP": tall_products,
    "nnls, heavy row": nnls,
    "cvxpy OSQP": lambda A, y: tall_cvxpy(A, y, "OSQP"),
    "cvxpy CLARABEL": lambda A, y: tall_cvxpy(A, y, "CLARABEL"),
}


def tall(args):
    print(f"up to {args.rows} x {WIDTH}, float32, {args.gib} GiB of address space, {args.seconds} s of CPU time")
    for name in args.solvers or SOLVERS:
        sizes = [args.rows]
        while name != "minimize" and sizes[0] > 20_000:
            sizes.insert(0, sizes[0] // 2)
        for n in sizes:
            line, ended = child(name, n, args)
            print(f"  {name:24} {n:8} rows: {line}", flush=True)
            if not ended:
                break


def child(name, n, args):
    """What a process of its own says, or why it does not; and whether it came to an end."""
    command = [sys.executable, __file__, "child", name, "--rows", str(n), "--gib", str(args.gib), "--seconds", str(args.seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return done.stdout.strip(), True
    lines = done.stderr.strip().splitlines() or ["nothing said"]
    killed = "the time is up" if done.returncode == -signal.SIGXCPU else f"exit {done.returncode}, {lines[-1][:90]}"
    return f"gives up: {killed}", False


def run_child(args):
    resource.setrlimit(resource.RLIMIT_AS, (int(args.gib * GIB),) * 2)
    A, y = rows(args.rows)
    made = time.process_time()
    limit = int(made + args.seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))  # a signal first
    x = np.asarray(SOLVERS[args.solver](A, y), np.float64)
    spent = time.process_time() - made
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    value, gap = certify(A, y, x)
    off = f"|sum - 1| {abs(x.sum() - 1):.1e}, min {x.min():8.1e}"
    print(f"{spent:7.2f} s, peak {peak:.2f} GiB (data {(A.nbytes + y.nbytes) / GIB:.2f}); relative gap {gap / value:.1e}; {off}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("many", "tall", "child"))
    parser.add_argument("solver", nargs="?", help="of a child")
    parser.add_argument("--problems", type=int, default=100_000)
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rows", type=int, default=2_400_000)
    parser.add_argument("--gib", type=float, default=4.0)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--solvers", nargs="*", help=json.dumps(list(SOLVERS)))
    args = parser.parse_args()
    {"many": many, "tall": tall, "child": run_child}[args.part](args)


if __name__ == "__main__":
    main()
