"""
Combine forecasts with weights that sum to one
==============================================

Thirty forecasters predict one monthly series. A weighted mean of them is better than any single
one, if the weights are good. A plain regression gives some forecasters negative weights, which
nobody can explain. We ask for weights that are non-negative and sum to one, and compare the usual
ways to get them.
"""

# %%
# Forecasts
# ---------
# The forecasters share the surprise of a month and add an error of their own. We fit on 120
# months and test on 500.
import math

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.optimize import minimize, nnls
from sklearn.linear_model import LinearRegression

from extremal.sklearn import SimplexRegression

rng = np.random.default_rng(0)
months = np.arange(620)
truth = 100 + 10 * np.sin(months / 6) + np.cumsum(0.5 * rng.standard_normal(620))
own = rng.standard_normal((620, 30)) * rng.uniform(0.5, 6, 30)
forecasts = truth[:, None] + rng.standard_normal((620, 1)) + own
X, y, X_test, y_test = forecasts[:120], truth[:120], forecasts[120:], truth[120:]

# %%
# The fit
# -------
# One line. The model carries its certificate: the mean of the halved squared errors, and a bound
# on how much lower it could be.
model = SimplexRegression().fit(X, y)
print(model.certificate_)

# %%
# Beside what people do today
# ---------------------------
# Non-negative least squares (``nnls``) knows no sum. One either divides by the sum afterwards, or
# adds a heavy row that asks for it. SLSQP takes the sum as a constraint, up to a tolerance.
d = X.shape[1]
heavy = 100 * np.linalg.norm(X, axis=0).max()
positive = nnls(X, y)[0]
slsqp = minimize(
    lambda w: 0.5 * np.mean(np.square(X @ w - y)),
    np.full(d, 1 / d),
    jac=lambda w: (X @ w - y) @ X / len(y),
    bounds=[(0, 1)] * d,
    constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(d)},
)
weights = {
    "equal weights": np.full(d, 1 / d),
    "LinearRegression, free": LinearRegression(fit_intercept=False).fit(X, y).coef_,
    "nnls, divided by its sum": positive / positive.sum(),
    "nnls, heavy row for the sum": nnls(np.vstack([X, np.full(d, heavy)]), np.append(y, heavy))[0],
    "scipy SLSQP": slsqp.x,
    "SimplexRegression": model.coef_,
}
lowest = model.objective_ - model.dual_gap_


def judge(w):
    return {
        "smallest weight": f"{w.min():.1e}",
        "sum - 1": f"{math.fsum(w) - 1:.1e}",
        "loss above the bound": f"{0.5 * np.mean(np.square(X @ w - y)) / lowest - 1:.1e}",
        "test RMSE": f"{np.sqrt(np.mean(np.square(X_test @ w - y_test))):.3f}",
        "in use": np.count_nonzero(w),
    }


pd.DataFrame({name: judge(w) for name, w in weights.items()}).T

# %%
# The free fit may end below the bound, because its weights break the constraint. No weights that
# keep it can.
free = weights["LinearRegression, free"]
fig, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
at = np.arange(d)
ax.bar(at - 0.2, np.maximum(free, 0), 0.4, color="0.7", label="free")
ax.bar(at - 0.2, np.minimum(free, 0), 0.4, color="C1", label="free, negative")
ax.bar(at + 0.2, model.coef_, 0.4, color="C0", label="non-negative, sum one")
ax.axhline(0, color="black", lw=0.8)
ax.set(xlabel="forecaster", ylabel="weight")
fig.legend(loc="outside upper center", ncols=3, frameon=False)
plt.show()
