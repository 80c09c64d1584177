"""
A marketing mix in which no channel destroys sales
==================================================

Budgets of channels rise and fall together, and with the season. A free regression then says that
some channels lower sales. Media effects that are not negative are standard practice, and so is a
price effect that is not positive. The signs go by column name.
"""

# %%
# Three years of weeks
# --------------------
# Eight channels, with carry-over to later weeks and saturation in the features, then price, a
# competitor, trend and season.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.optimize import lsq_linear
from sklearn.linear_model import LinearRegression, Ridge

from extremal.sklearn import ConstrainedLinearRegression

media = ["tv", "radio", "print", "outdoor", "search", "social", "video", "email"]
names = [*media, "price", "competitor", "trend", "sin", "cos"]
effect = np.array([40, 10, 5, 0, 35, 20, 10, 0, -60, -5, 15, 8, -4.0])

rng = np.random.default_rng(0)
t = np.arange(156)
season = np.stack([np.sin(2 * np.pi * t / 52), np.cos(2 * np.pi * t / 52)], axis=1)
push = np.exp(0.5 * rng.standard_normal((156, 1)) + 0.5 * season[:, :1])
spend = push * np.exp(0.25 * rng.standard_normal((156, 8))) * (rng.random((156, 8)) < 0.9)
stock = spend.copy()
for week in range(1, 156):
    stock[week] += np.linspace(0.7, 0.1, 8) * stock[week - 1]
price = 1 + 0.05 * rng.standard_normal(156)
competitor = np.exp(0.3 * rng.standard_normal(156) + 0.3 * season[:, 0])
A = np.column_stack([stock / (stock + 2), price, competitor, t / 156, season])
X, y = pd.DataFrame(A, columns=names), 200 + A @ effect + 12 * rng.standard_normal(156)

# %%
# The fit
# -------
signs = dict.fromkeys(media, ">=0") | {"price": "<=0", "competitor": "<=0"}
model = ConstrainedLinearRegression(signs).fit(X, y)
print(model.certificate_)

# %%
# Beside what people do today
# ---------------------------
# Ridge shrinks the wrong signs and keeps them. ``LinearRegression(positive=True)`` wants all
# effects positive: one turns the columns that should be negative, and enters the free ones twice.
# scipy's ``lsq_linear`` takes bounds, after centring by hand.
low = np.array([0.0] * 8 + [-np.inf] * 5)
high = np.array([np.inf] * 8 + [0.0] * 2 + [np.inf] * 3)
turned = np.column_stack([A[:, :8], -A[:, 8:10], A[:, 10:], -A[:, 10:]])
w = LinearRegression(positive=True).fit(turned, y).coef_
coefficients = {
    "LinearRegression": LinearRegression().fit(X, y).coef_,
    "Ridge(alpha=1)": Ridge(alpha=1.0).fit(X, y).coef_,
    "LinearRegression(positive=True)": np.concatenate([w[:8], -w[8:10], w[10:13] - w[13:]]),
    "scipy lsq_linear": lsq_linear(A - A.mean(axis=0), y - y.mean(), (low, high)).x,
    "ConstrainedLinearRegression": model.coef_,
}
rows, bound = {}, model.objective_ - model.dual_gap_
for name, w in coefficients.items():
    rows[name] = {
        "wrong signs": int(np.sum((w < low) | (w > high))),
        "violation": f"{max(0.0, (low - w).max(), (w - high).max()):.1e}",
        "loss above the bound": f"{0.5 * np.var(y - A @ w) / bound - 1:+.1e}",
        "error of the media effects": f"{np.sqrt(np.mean(np.square(w - effect)[:8])):.2f}",
    }
pd.DataFrame(rows).T

# %%
# On a problem of this size ``lsq_linear`` is as good. It knows no column names, no intercept, no
# other loss and no certificate.
fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
at, share, free = np.arange(8), A[:, :8].mean(axis=0), coefficients["LinearRegression"][:8]
ax.bar(at - 0.27, np.maximum(free, 0) * share, 0.25, color="0.7", label="free fit")
ax.bar(at - 0.27, np.minimum(free, 0) * share, 0.25, color="C1", label="free fit, negative")
ax.bar(at, model.coef_[:8] * share, 0.25, color="C0", label="with signs")
ax.bar(at + 0.27, effect[:8] * share, 0.25, color="black", label="truth")
ax.axhline(0, color="black", lw=0.8)
ax.set_xticks(at, media)
ax.set_ylabel("sales per week")
fig.legend(loc="outside upper center", ncols=4, frameon=False)
plt.show()
