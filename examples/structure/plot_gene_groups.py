"""
Whole groups of genes, in or out
================================

Genes come in pathways, dummies in factors, lags in series. Such columns should enter a model together or not at all.
An l1 penalty picks single columns. A group budget limits the sum of the groups' norms, and picks groups. scikit-learn
has no group lasso.
"""

# %%
# Samples
# -------
# 300 samples, 1000 genes in 80 pathways that vary together. Four pathways bear on the outcome.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import extremal as ex
from extremal.sklearn import ConstrainedLogisticRegression

rng = np.random.default_rng(0)
cuts = 5 * np.sort(rng.choice(np.arange(1, 200), 79, replace=False))
pathway = np.searchsorted(cuts, np.arange(1000), side="right")
size, relevant = np.bincount(pathway), [0, 20, 40, 60]
effect = np.isin(pathway, relevant) * rng.uniform(0, 1.5, 1000) / size[pathway] * np.where(pathway % 40 == 0, 1, -1)


def samples(n, seed):
    rng = np.random.default_rng(seed)
    X = 0.6 * rng.standard_normal((n, 80))[:, pathway] + 0.8 * rng.standard_normal((n, 1000))
    return X, rng.random(n) < 1 / (1 + np.exp(-2 * X @ effect))


X, y = samples(300, seed=1)
X_test, y_test = samples(4000, seed=2)

# %%
# A budget for groups
# -------------------
# Each pathway counts with the norm of its coefficients times the square root of its size.
radius = 3.0
C = ex.GroupBall(radius, pathway, weights=np.sqrt(size))
model = ConstrainedLogisticRegression(C).fit(X, y)
print(model.certificate_)

# %%
# Beside what people do today
# ---------------------------
# Penalties of scikit-learn, and accelerated projected gradients with a hand-written projection on the group ball.


def norms(w):
    return np.sqrt(size * np.bincount(pathway, np.square(w)))


def project(w):
    size_of = norms(w)
    if size_of.sum() <= radius:
        return w
    order = np.argsort(-size_of / size)
    level = (np.cumsum(size_of[order]) - radius) / np.cumsum(size[order])
    cut = level[np.flatnonzero((size_of / size)[order] > level)[-1]]
    return w * (np.maximum(size_of - size * cut, 0) / np.maximum(size_of, 1e-300))[pathway]


A, sign = np.column_stack([X, np.ones(300)]), np.where(y, 1.0, -1.0)
step, x, z, t = 4 * 300 / np.linalg.norm(A, 2) ** 2, np.zeros(1001), np.zeros(1001), 1.0
for _ in range(200):
    new = z + step * (sign / (1 + np.exp(sign * (A @ z)))) @ A / 300
    new[:-1] = project(new[:-1])
    t, old = (1 + np.sqrt(1 + 4 * t * t)) / 2, t
    x, z = new, new + (old - 1) / t * (new - x)

ridge = LogisticRegression(max_iter=1000).fit(X, y)
lasso = LogisticRegression(C=0.1, l1_ratio=1, solver="liblinear", random_state=0).fit(X, y)
answers = {
    "LogisticRegression, l2": (ridge.coef_[0], ridge.intercept_[0]),
    "LogisticRegression, l1": (lasso.coef_[0], lasso.intercept_[0]),
    "projected gradients, 200 steps": (x[:-1], x[-1]),
    "ConstrainedLogisticRegression": (model.coef_[0], model.intercept_[0]),
}
rows = {}
for name, (w, b) in answers.items():
    used = np.flatnonzero(norms(w))
    loss = np.mean(np.logaddexp(0, -sign * (X @ w + b)))
    rows[name] = {
        "violation": f"{max(0.0, norms(w).sum() - radius):.1e}",
        "loss above the bound": f"{loss / (model.objective_ - model.dual_gap_) - 1:+.1e}",
        "pathways": len(used),
        "of the four": np.isin(relevant, used).sum(),
        "AUC, new samples": f"{roc_auc_score(y_test, X_test @ w):.3f}",
    }
pd.DataFrame(rows).T

# %%
# A loss below the bound is possible only for coefficients outside the budget.
fig, axes = plt.subplots(2, 1, figsize=(6.4, 4.4), sharex=True, layout="constrained")
for ax, w, title in ((axes[0], lasso.coef_[0], "l1 penalty"), (axes[1], model.coef_[0], "group budget")):
    share = norms(w) / norms(w).sum()
    ax.vlines(np.arange(80), 0, share, color="0.6", lw=2)
    ax.vlines(relevant, 0, share[relevant], color="C0", lw=4)
    ax.set(title=f"{title}: {np.count_nonzero(share)} pathways in use", ylabel="share of the norm")
axes[1].set_xlabel("pathway (blue: those that matter)")
plt.show()
