"""
Quantile regression with signs
==============================

How much staff is enough for nine days out of ten? That is a question about a quantile. Orders,
rain and the length of the route should not make a delivery faster, and experience should not make
it slower, at any quantile. A free quantile regression often breaks such rules at the edges, where
few data decide.
"""

# %%
# Deliveries
# ----------
# The spread of the delivery time grows with the number of orders. Two of the features hardly
# matter, and two overlap.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import mean_pinball_loss

from extremal.sklearn import ConstrainedLinearRegression

names = ["orders", "distance", "stops", "rain", "weight", "experience"]


def deliveries(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.gamma(4, 0.25, (n, 6))
    X[:, 2] = 0.9 * X[:, 1] + 0.2 * X[:, 2]
    y = 20 + X @ [6.0, 5.0, 1.0, 2.0, 0.2, -1.0] + (2 + 4 * X[:, 0]) * rng.gumbel(size=n)
    return pd.DataFrame(X, columns=names), y


X, y = deliveries(250, seed=0)
X_test, y_test = deliveries(20_000, seed=1)

# %%
# Fits at five quantiles
# ----------------------
# The estimator rounds the corner of the quantile's loss a little, and certifies the answer of the
# rounded problem. The table uses the exact loss for both tools. ``QuantileRegressor`` of
# scikit-learn solves the exact problem as a linear program, without signs.
signs = dict.fromkeys(names[:5], ">=0") | {"experience": "<=0"}
quantiles = (0.05, 0.25, 0.5, 0.75, 0.95)
low, high = np.array([0.0] * 5 + [-np.inf]), np.array([np.inf] * 5 + [0.0])
rows, free, kept = {}, [], []
for q in quantiles:
    lp = QuantileRegressor(quantile=q, alpha=0).fit(X, y)
    model = ConstrainedLinearRegression(signs, loss="quantile", quantile=q).fit(X, y)
    free.append(lp.coef_)
    kept.append(model.coef_)
    rows[q] = {
        "wrong signs, free": int(np.sum((lp.coef_ < low) | (lp.coef_ > high))),
        "violation, free": f"{max(0.0, (low - lp.coef_).max(), (lp.coef_ - high).max()):.2f}",
        "violation": f"{model.constraint_violation_:.0f}",
        "certified gap": f"{model.dual_gap_ / model.objective_:.0e}",
        "test loss, free": f"{mean_pinball_loss(y_test, lp.predict(X_test), alpha=q):.4f}",
        "test loss": f"{mean_pinball_loss(y_test, model.predict(X_test), alpha=q):.4f}",
        "test rows below": f"{np.mean(y_test <= model.predict(X_test)):.3f}",
    }
table = pd.DataFrame(rows).T.rename_axis("quantile")
table

# %%
# Effects over the quantiles. Shaded areas are not allowed.
fig, axes = plt.subplots(2, 3, figsize=(6.4, 4.2), sharex=True, layout="constrained")
for j, ax in enumerate(axes.flat):
    ax.plot(quantiles, np.array(free)[:, j], "o-", ms=3, color="C1", label="free")
    ax.plot(quantiles, np.array(kept)[:, j], "o-", ms=3, color="C0", label="with signs")
    bottom, top = ax.get_ylim()
    bottom, top = min(bottom, -0.5), max(top, 0.5)
    ax.axhspan(*((bottom, 0) if j < 5 else (0, top)), color="0.9", zorder=0)
    ax.set(title=names[j], ylim=(bottom, top))
axes[1, 1].set_xlabel("quantile")
fig.supylabel("minutes per unit", fontsize="medium")
fig.legend(
    *axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False
)
plt.show()
