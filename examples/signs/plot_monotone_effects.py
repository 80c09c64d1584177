"""
A tariff that never falls where the risk rises
==============================================

More points on the licence must not make the premium cheaper, even if the few drivers with many
points had a good year. The effects of ordered bands have to rise. People smooth the bands
afterwards, or change variables by hand. Here the order is the constraint of a Poisson model.
"""

# %%
# Policies
# --------
# Counts of claims, 25 bands of points that are rare at the top, and three other features. The
# true effect rises and levels off.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.optimize import LinearConstraint, minimize
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import mean_poisson_deviance

import extremal as ex
from extremal.sklearn import ConstrainedGLM

rng = np.random.default_rng(0)
n, bands, others = 8000, 25, 3
band = np.minimum(rng.geometric(0.13, n) - 1, bands - 1)
X = np.column_stack(
    [np.eye(bands)[band], rng.standard_normal((n, others)) + 0.04 * band[:, None] * [1, -1, 1]]
)
level = 1.4 * (1 - np.exp(-np.arange(bands) / 7))
claims = rng.poisson(np.exp(-1.8 + level[band] + X[:, bands:] @ [0.3, 0.25, -0.2]))

# %%
# The fit
# -------
# The set is a product: rising effects between 0 and 4 for the bands, wide bounds for the rest.
C = ex.Product((ex.Monotone(0.0, 4.0, shape=bands), ex.Box(-4.0, 4.0, shape=others)))
model = ConstrainedGLM("poisson", C).fit(X, claims)
print(model.certificate_)

# %%
# Beside what people do today
# ---------------------------
# A free Poisson regression; the claim rate of each band made to rise by isotonic regression,
# which does not look at the other features; and scipy's SLSQP with linear constraints.
A = np.column_stack([X, np.ones(n)])


def value_and_gradient(x):
    z = A @ x
    rate = np.exp(np.minimum(z, 30))
    return np.mean(rate - claims * z), (rate - claims) @ A / n


free = PoissonRegressor(alpha=1e-6, max_iter=1000).fit(X, claims).coef_
rates = IsotonicRegression(y_min=1e-3).fit(band, claims).predict(np.arange(bands))
rises = LinearConstraint(np.diff(np.eye(bands, bands + others + 1), axis=0), 0, np.inf)
start = np.append(np.zeros(bands + others), np.log(claims.mean()))
slsqp = minimize(value_and_gradient, start, jac=True, constraints=rises, method="SLSQP").x[:-1]
effects = {
    "PoissonRegressor": free,
    "IsotonicRegression of the bands": np.concatenate([np.log(rates / rates[0]), free[bands:]]),
    "scipy SLSQP": slsqp,
    "ConstrainedGLM": model.coef_,
}
share = X[:, :bands].mean(axis=0)


def loss(w):  # half the deviance, with the best intercept
    z = X @ w
    z += np.log(claims.mean() / np.exp(z).mean())
    return 0.5 * mean_poisson_deviance(claims, np.exp(z))


rows = {}
for name, w in effects.items():
    off = w[:bands] - level
    rows[name] = {
        "largest fall": f"{max(0.0, -np.diff(w[:bands]).min()):.1e}",
        "loss above the bound": f"{loss(w) / (model.objective_ - model.dual_gap_) - 1:+.1e}",
        "error of the effects": f"{np.sqrt(share @ np.square(off - share @ off)):.3f}",
    }
pd.DataFrame(rows).T

# %%
fig, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
for effect, label, style in (
    (free[:bands], "free fit", {"color": "C1", "lw": 1}),
    (model.coef_[:bands], "never falls", {"color": "C0", "lw": 2}),
    (level, "truth", {"color": "black", "ls": ":"}),
):
    ax.step(np.arange(bands), effect - share @ effect, where="mid", label=label, **style)
ax.set(xlabel="points on the licence", ylabel="effect on the log of the claims")
ax.legend(frameon=False)
plt.show()
