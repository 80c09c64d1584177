"""
Your own set by an oracle
=========================

A set enters this library through one function: given a vector g, answer a point of the set with
the smallest <g, s>. That is often three lines. Here is a set that the library does not have:
signals with a bounded total variation. It finds jumps in a noisy series. This page needs cvxpy,
which ``pip install ".[examples]"`` in a clone of the repository installs.
"""

# %%
# A signal with jumps
# -------------------
import time

import cvxpy as cp
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.ndimage import gaussian_filter1d
from threadpoolctl import threadpool_limits

import extremal as ex

threadpool_limits(1)  # one thread for all tools: a fair clock

rng = np.random.default_rng(0)
n = 300
truth = np.repeat([0.0, 2.0, 1.0, 3.5, 3.0, 0.5], n // 6)
y = truth + 0.5 * rng.standard_normal(n)
budget = np.abs(np.diff(truth)).sum()

# %%
# The oracle
# ----------
# Points are signals that start at 0 and have a total variation of at most R. The extreme ones
# make a single jump of size R, up or down, and stay there. The best jump is where the sum of g
# over all later times is largest.


def one_jump(g):
    later = np.cumsum(g[::-1])[::-1]
    later[0] = 0.0  # no jump at the start
    at = np.abs(later).argmax()
    return np.where(np.arange(len(g)) >= at, -budget * np.sign(later[at]), 0.0)


def variation(x):
    return np.abs(np.diff(x)).sum()


def inside(x, tol):
    return abs(x[0]) <= tol * budget and variation(x) <= (1 + tol) * budget


C = ex.Oracle(one_jump, diameter=2 * budget * np.sqrt(n), start=np.zeros(n), contains=inside)

# %%
# Any method takes it
# -------------------
# The level at the start is free: ``InterceptModel`` fits it beside the constraint.
f = ex.InterceptModel(ex.Squared(), np.eye(n), y)
result = ex.minimize(f, C, tol=1e-6)
print(result)
jumps = np.sum(np.abs(np.diff(result.x)) > 1e-9)
print(f"total variation {variation(result.x):.6f}, allowed {budget:.6f}; jumps {jumps}")

# %%
# Beside what people do today
# ---------------------------
# A Gaussian filter blurs the jumps. cvxpy can state the same problem, and hands it to a general
# solver.


def by_cvxpy():
    x, b = cp.Variable(n), cp.Variable()
    limits = [cp.norm1(cp.diff(x)) <= budget, x[0] == 0]
    cp.Problem(cp.Minimize(cp.sum_squares(x + b - y)), limits).solve(solver=cp.CLARABEL)
    return x.value + b.value


def ours():
    x = ex.minimize(f, C, tol=1e-6).x
    return x + np.mean(y - x)


tools = {
    "Gaussian filter, width 4": lambda: gaussian_filter1d(y, 4),
    "cvxpy, Clarabel": by_cvxpy,
    "Oracle": ours,
}
rows, signals, bound = {}, {}, result.value - result.gap
for name, smooth in tools.items():
    start = time.process_time()
    x = signals[name] = smooth()
    rows[name] = {
        "CPU seconds": f"{time.process_time() - start:.3f}",
        "total variation - allowed": f"{variation(x) - budget:+.1e}",
        "loss above the bound": f"{0.5 * np.mean((x - y) ** 2) / bound - 1:+.1e}",
        "error to the truth": f"{np.sqrt(np.mean((x - truth) ** 2)):.3f}",
    }
pd.DataFrame(rows).T

# %%
fig, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
ax.plot(y, ".", color="0.8", ms=4, label="data")
ax.plot(truth, color="black", lw=1, ls=":", label="truth")
ax.plot(signals["Gaussian filter, width 4"], color="C1", lw=1, label="Gaussian filter")
ax.plot(signals["Oracle"], color="C0", lw=2, label="bounded variation")
ax.set(xlabel="time")
fig.legend(loc="outside upper center", ncols=4, frameon=False)
plt.show()
