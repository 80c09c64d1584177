"""
A model in float32
==================

Large tables often come as float32. Either one makes a float64 copy, twice as large, or one
computes in float32 and hopes. The estimators here read float32 rows as they are, add in float64,
and certify the answer in float64. The weights come back as float32, and still sum to one.
"""

# %%
# Forecasts near a common level
# -----------------------------
# 40 000 rows, 30 members of an ensemble. All columns are near 100, so products of columns lose
# digits in float32.
import math
import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from extremal.sklearn import SimplexRegression

threadpool_limits(1)  # one thread for all tools: a fair clock

rng = np.random.default_rng(0)
n, d = 40_000, 30
level = 100 + rng.standard_normal((n, 1))
X = (level + rng.standard_normal((n, d)) * rng.uniform(0.5, 3, d)).astype(np.float32)
weights = np.where(np.arange(d) < 6, 1 / 6, 0.0)
y = (X @ weights + 0.1 * rng.standard_normal(n)).astype(np.float32)
print(f"float32 takes {X.nbytes / 1e6:.0f} MB, a float64 copy {2 * X.nbytes / 1e6:.0f} MB more")

# %%
# The fit
# -------
model = SimplexRegression().fit(X, y)
print(model.certificate_)
print(f"weights are {model.coef_.dtype} and sum to {math.fsum(model.coef_)!r}")

# %%
# Beside normal equations by hand
# -------------------------------
# The quick way for a tall table: form X'X and X'y once, and give the small problem to SLSQP. In
# float32 the products are rounded. A float64 copy mends that. Each tool is timed once.


def by_hand(X, y):
    G, c = X.T @ X / n, X.T @ y / n
    found = minimize(
        lambda w: 0.5 * w @ G @ w - c @ w,
        np.full(d, 1 / d),
        jac=lambda w: G @ w - c,
        bounds=[(0, 1)] * d,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(d)},
        options={"maxiter": 500, "ftol": 1e-12},
    )
    return found.x.astype(X.dtype)


X64, y64 = X.astype(float), y.astype(float)
tools = {
    "by hand, float32": lambda: by_hand(X, y),
    "by hand, float64 copy": lambda: by_hand(X64, y64),
    "SimplexRegression, float32": lambda: SimplexRegression().fit(X, y).coef_,
    "SimplexRegression, float64 copy": lambda: SimplexRegression().fit(X64, y64).coef_,
}
bound = model.objective_ - model.dual_gap_
rows, found = {}, {}
for name, fit in tools.items():
    start = time.process_time()
    w = found[name] = fit()
    rows[name] = {
        "CPU seconds": f"{time.process_time() - start:.3f}",
        "type of weights": str(w.dtype),
        "sum - 1": f"{math.fsum(w) - 1:.1e}",
        "loss above the bound": f"{0.5 * np.mean((X64 @ w - y64) ** 2) / bound - 1:+.1e}",
    }
pd.DataFrame(rows).T

# %%
# How far each weight is from the fit of the float64 copy.
exact = found["SimplexRegression, float64 copy"]
fig, ax = plt.subplots(figsize=(6.4, 3), layout="constrained")
for name, colour, mark in (
    ("by hand, float32", "C1", "o"),
    ("SimplexRegression, float32", "C0", "s"),
):
    error = np.maximum(np.abs(found[name] - exact), 1e-10)
    ax.semilogy(np.arange(d), error, mark, ms=4, color=colour, label=name)
ax.set(xlabel="member (1e-10 stands for less)", ylabel="error of the weight")
fig.legend(loc="outside upper center", ncols=2, frameon=False)
plt.show()
