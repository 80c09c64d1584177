"""
A portfolio with caps and a sector limit
========================================

The minimum-variance portfolio of 60 stocks: all weights non-negative, sum one, none above 8 %, at
most 27 % in one sector. The textbook formula knows none of this. Common repairs are to clip and
rescale, or to call a general solver and round.
"""

# %%
# Returns
# -------
# Two years of daily returns: a market, four sectors of 15 stocks, and noise. Another two years
# test the portfolios.
import math

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.optimize import minimize

from extremal.sklearn import ConstrainedLinearRegression

rng = np.random.default_rng(1)
sector = np.repeat(np.arange(4), 15)
loading, noise = rng.uniform(0.3, 1.5, 60), rng.uniform(0.8, 2.5, 60)
factors = rng.standard_normal((1000, 5)) * [1.0, 0.3, 0.6, 0.6, 0.6]
returns = (
    loading * factors[:, :1] + factors[:, 1 + sector] + noise * rng.standard_normal((1000, 60))
)
sectors = ["energy", "health", "retail", "tech"]
names = [f"{sectors[s]}{i % 15:02d}" for i, s in enumerate(sector)]
train, test = pd.DataFrame(returns[:500], columns=names), returns[500:]

# %%
# The variance as a regression
# ----------------------------
# A regression of zero on the returns, with an intercept, minimises the variance of the weighted
# sum. The constraint is a list: words for the cap, and a relation between columns for each
# sector.
zero = np.zeros(len(train))
capped = ConstrainedLinearRegression("capped-simplex:0.08").fit(train, zero)
limits = [" + ".join(name for name in names if name.startswith(s)) + " <= 0.27" for s in sectors]
model = ConstrainedLinearRegression(["capped-simplex:0.08", *limits]).fit(train, zero)
inside = np.eye(4)[sector].T  # a row for each sector
shares = {"caps alone": inside @ capped.coef_, "with limits": inside @ model.coef_}
print(pd.DataFrame(shares, index=sectors).round(3))
print(model.certificate_)

# %%
# Beside what people do today
# ---------------------------
S = np.cov(train.T, bias=True)
formula = np.linalg.solve(S, np.ones(60))
formula /= formula.sum()
clipped = np.clip(formula, 0, 0.08)
slsqp = minimize(
    lambda w: 0.5 * w @ S @ w,
    np.full(60, 1 / 60),
    jac=lambda w: S @ w,
    bounds=[(0, 0.08)] * 60,
    constraints=[
        {"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(60)},
        {"type": "ineq", "fun": lambda w: 0.27 - inside @ w, "jac": lambda w: -inside},
    ],
    options={"maxiter": 500},
)
weights = {
    "equal weights": np.full(60, 1 / 60),
    "formula, free": formula,
    "formula, clipped, rescaled": clipped / clipped.sum(),
    "scipy SLSQP": slsqp.x,
    "ConstrainedLinearRegression": model.coef_,
}
bound = model.objective_ - model.dual_gap_


def judge(w):
    parts = {"sign": -w.min(), "cap": w.max() - 0.08, "sector": (inside @ w).max() - 0.27}
    parts["sum"] = abs(math.fsum(w) - 1)
    worst = max(parts, key=parts.get)
    return {
        "violation": f"{parts[worst]:.1e} ({worst})" if parts[worst] > 0 else "0",
        "variance above the bound": f"{0.5 * w @ S @ w / bound - 1:+.1e}",
        "volatility, next two years": f"{np.std(test @ w):.4f}",
    }


pd.DataFrame({name: judge(w) for name, w in weights.items()}).T

# %%
# A variance below the bound is only there where the constraint is broken.
fig, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
order = np.lexsort([-model.coef_, sector])
ax.bar(np.arange(60), np.maximum(formula[order], 0), 0.9, color="0.8", label="formula")
ax.bar(np.arange(60), np.minimum(formula[order], 0), 0.9, color="C1", label="formula, short")
ax.bar(np.arange(60), model.coef_[order], 0.45, color="C0", label="constrained")
ax.axhline(0.08, color="black", lw=0.8, ls="--")
ax.axhline(0, color="black", lw=0.8)
ax.set_xticks(7 + 15 * np.arange(4), sectors)
ax.set(ylabel="weight", title="dashed: the cap")
fig.legend(loc="outside upper center", ncols=3, frameon=False)
plt.show()
