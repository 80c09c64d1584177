"""
Synthetic control: what would have happened?
============================================

One region passed a law, 39 others did not. A synthetic control is a weighted mean of the others
that follows the treated region before the law. Afterwards the difference is the effect. The
weights have to be non-negative and sum to one, or the mean is no mean. The same fit is made for
every other region, to see how unusual the effect is: forty small problems.
"""

# %%
# Regions
# -------
# Levels follow three common factors. The first region loses 8 points in the year after month 60.
import math
import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.optimize import minimize, nnls
from threadpoolctl import threadpool_limits

from extremal.sklearn import SimplexRegression

threadpool_limits(1)  # one thread for all tools: a fair clock

rng = np.random.default_rng(3)
before, after, count = 60, 24, 40
factors = np.cumsum(rng.standard_normal((before + after, 3)), axis=0)
loadings = rng.dirichlet(np.ones(3), count)
loadings[0] = loadings[1:6].mean(axis=0)
levels = (
    100
    + 3 * factors @ loadings.T
    + rng.normal(0, 1, count)
    + 0.7 * rng.standard_normal((before + after, count))
)
levels[before:, 0] -= 8 * np.minimum(np.arange(1, after + 1) / 12, 1)

# %%
# Forty fits
# ----------
# Each region is fitted by the others. The treated region is no donor.
donors = [[i for i in range(1, count) if i != j] for j in range(count)]
problems = [(levels[:before, d], levels[:before, j]) for j, d in enumerate(donors)]
models = [SimplexRegression().fit(A, b) for A, b in problems]
synthetic = [levels[:, d] @ m.coef_ for d, m in zip(donors, models, strict=True)]
gaps = levels.T - np.stack(synthetic)
ratio = np.sqrt(np.mean(gaps[:, before:] ** 2, axis=1) / np.mean(gaps[:, :before] ** 2, axis=1))
print(f"Effect in the last year: {gaps[0, -12:].mean():.1f}, and -8.0 in truth")
print(f"Donors in use: {np.count_nonzero(models[0].coef_)} of {len(donors[0])}")
print(f"Error after / before: {ratio[0]:.1f}, rank {np.sum(ratio >= ratio[0])} of {count} regions")

# %%
fig, (left, right) = plt.subplots(2, 1, figsize=(6.4, 5), sharex=True, layout="constrained")
left.plot(levels[:, 0], color="black", label="treated region")
left.plot(levels[:, 0] - gaps[0], color="C0", ls="--", label="its synthetic control")
right.plot(gaps[1:].T, color="0.8", lw=0.7)
right.plot(gaps[0], color="C0", label="treated minus synthetic (grey: the other regions)")
right.set(xlabel="month", ylabel="difference")
for ax in (left, right):
    ax.axvline(before - 0.5, color="black", lw=0.8, ls=":")
left.legend(frameon=False, loc="upper left")
right.legend(frameon=False, loc="lower left")
plt.show()

# %%
# Beside what people do today
# ---------------------------
# Packages for synthetic control call SLSQP or a general convex solver. ``nnls`` with a heavy row
# for the sum is the quick way.


def by_slsqp(A, b):
    def loss(w):
        r = A @ w - b
        return 0.5 * np.mean(r * r), r @ A / len(b)

    start, bounds = np.full(A.shape[1], 1 / A.shape[1]), [(0, 1)] * A.shape[1]
    total = {"type": "eq", "fun": lambda w: w.sum() - 1, "jac": np.ones_like}
    return minimize(loss, start, jac=True, bounds=bounds, constraints=total).x


def by_nnls(A, b):
    heavy = 100 * np.linalg.norm(A, axis=0).max()
    return nnls(np.vstack([A, np.full(A.shape[1], heavy)]), np.append(b, heavy))[0]


rows = {}
tools = {
    "SLSQP": by_slsqp,
    "nnls, heavy row": by_nnls,
    "SimplexRegression": lambda A, b: SimplexRegression().fit(A, b).coef_,
}
bound = np.array([m.objective_ - m.dual_gap_ for m in models])
for name, solve in tools.items():
    start = time.process_time()
    W = [solve(A, b) for A, b in problems]
    seconds = time.process_time() - start
    loss = [0.5 * np.mean((A @ w - b) ** 2) for (A, b), w in zip(problems, W, strict=True)]
    rows[name] = {
        "violation": f"{max(max(0.0, -w.min(), abs(math.fsum(w) - 1)) for w in W):.1e}",
        "worst loss above the bound": f"{np.max(loss / bound - 1):.1e}",
        "CPU seconds for all": f"{seconds:.3f}",
    }
pd.DataFrame(rows).T
