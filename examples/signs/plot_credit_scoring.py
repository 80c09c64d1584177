"""
Credit scoring with signs that a review accepts
===============================================

A scorecard that lowers the risk of applicants because they have open loans will not pass a
review. Yet features overlap, and a free fit uses one to correct another. Regulators ask for
signs. People drop the features with wrong signs by hand, or set their coefficients to zero. Here
the signs are part of the fit.
"""

# %%
# Applicants
# ----------
# Twelve standardised features that share three causes. Ten have a known sign; the effect of age
# has to stay in a narrow band.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.optimize import brentq, minimize
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

from extremal.sklearn import ConstrainedLogisticRegression

raises = ["late_payments", "utilisation", "debt_ratio", "inquiries", "open_loans", "overdrafts"]
lowers = ["income", "savings", "years_at_job", "years_of_history"]
names = [*raises, *lowers, "age", "region_growth"]
effect = np.array([0.6, 0.35, 0.2, 0.02, 0.0, 0.0, -0.4, -0.15, -0.1, 0.0, -0.25, 0.05])


def applicants(n, seed):
    rng = np.random.default_rng(seed)
    strain, means, tenure, region = rng.standard_normal((4, n))
    causes = [strain] * 6 + [means] * 2 + [tenure] * 3 + [region]
    X = np.stack([0.95 * cause + 0.3 * rng.standard_normal(n) for cause in causes], axis=1)
    default = rng.random(n) < 1 / (1 + np.exp(2.2 - X @ effect))
    return pd.DataFrame(X, columns=names), default


X, y = applicants(4000, seed=0)
X_test, y_test = applicants(20_000, seed=1)

# %%
# The fit
# -------
signs = dict.fromkeys(raises, ">=0") | dict.fromkeys(lowers, "<=0") | {"age": (-0.1, 0.1)}
model = ConstrainedLogisticRegression(signs).fit(X, y)
print(model.certificate_)

# %%
# Beside what people do today
# ---------------------------
# The free fit; the free fit clipped to the bounds, with the best intercept for that; dropping the
# features that break a rule until none does, age too if it leaves its band; and scipy's L-BFGS-B,
# which handles bounds well if one writes the loss and its gradient by hand.
low = np.array([0.0] * 6 + [-np.inf] * 4 + [-0.1, -np.inf])
high = np.array([np.inf] * 6 + [0.0] * 4 + [0.1, np.inf])
free = LogisticRegression(C=np.inf).fit(X, y)
clipped = np.clip(free.coef_[0], low, high)
level = brentq(lambda b: np.mean(1 / (1 + np.exp(-(X @ clipped + b)))) - y.mean(), -20, 20)
fewer, used, few = free, np.arange(12), free.coef_[0]
while (broken := (few < low[used]) | (few > high[used])).any():
    used = used[~broken]
    fewer = LogisticRegression(C=np.inf).fit(X.iloc[:, used], y)
    few = fewer.coef_[0]
kept = np.zeros(12)
kept[used] = few
print("dropped:", ", ".join(np.delete(names, used)))
A, target = np.column_stack([X, np.ones(len(X))]), np.where(y, 1.0, -1.0)


def value_and_gradient(x):
    z = target * (A @ x)
    return np.mean(np.logaddexp(0, -z)), -(target / (1 + np.exp(z))) @ A / len(A)


bounds = list(zip([*low, -np.inf], [*high, np.inf], strict=True))
lbfgs = minimize(value_and_gradient, np.zeros(13), jac=True, bounds=bounds, method="L-BFGS-B").x
answers = {
    "free fit": (free.coef_[0], free.intercept_[0]),
    "free fit, clipped to the bounds": (clipped, level),
    "features that break a rule dropped": (kept, fewer.intercept_[0]),
    "scipy L-BFGS-B": (lbfgs[:-1], lbfgs[-1]),
    "ConstrainedLogisticRegression": (model.coef_[0], model.intercept_[0]),
}
bound = model.objective_ - model.dual_gap_
rows = {}
for name, (w, b) in answers.items():
    loss = log_loss(y, 1 / (1 + np.exp(-(X @ w + b))))
    rows[name] = {
        "violation": f"{max(0.0, (low - w).max(), (w - high).max()):.1e}",
        "loss above the bound": f"{loss / bound - 1:+.1e}",
        "AUC, new applicants": f"{roc_auc_score(y_test, X_test @ w):.4f}",
    }
pd.DataFrame(rows).T

# %%
# Only a fit that breaks the rules can have a loss below the certified bound.
fig, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
at, w = np.arange(12), free.coef_[0]
allowed = (w >= low) & (w <= high)
ax.bar(at - 0.2, w * allowed, 0.38, color="0.7", label="free fit")
ax.bar(at - 0.2, w * ~allowed, 0.38, color="C1", label="free fit, not allowed")
ax.bar(at + 0.2, model.coef_[0], 0.38, color="C0", label="with signs and bounds")
ax.axhline(0, color="black", lw=0.8)
ax.set_xticks(at, names, rotation=40, ha="right")
ax.set_ylabel("effect on the log odds of default")
fig.legend(loc="outside upper center", ncols=3, frameon=False)
plt.show()
