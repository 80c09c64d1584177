"""
An l1 path with certificates and cross-validation
=================================================

How many features does a classifier need? A path answers: it fits the model for many budgets on
the sum of the absolute coefficients, and cross-validation picks one. People do this with a grid
of penalties ``C``. A penalty has no meaning until the fit is done. A budget is what the
coefficients may sum to, and every point of this path is certified.
"""

# %%
# One call for all budgets
# ------------------------
import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from extremal.sklearn import SparseLogisticPathCV

threadpool_limits(1)  # one thread for all tools: a fair clock

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
scaler = StandardScaler().set_output(transform="pandas")
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
X_train, X_test = scaler.fit_transform(X_train), scaler.transform(X_test)
folds = StratifiedKFold(5, shuffle=True, random_state=0)

path = SparseLogisticPathCV(radii=np.geomspace(0.2, 60, 20), cv=folds)
path.fit(X_train, y_train)
used, largest = np.count_nonzero(path.coef_), np.max(path.dual_gaps_ / path.objectives_)
print(f"{len(path.radii_)} budgets; the largest gap is {largest:.1e} of its loss")
print(f"chosen budget {path.radius_:.3g}, spent {np.abs(path.coef_).sum():.3g}, {used} features")

# %%
fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
chosen = np.flatnonzero(path.coef_.ravel())
ax.plot(path.radii_, np.delete(path.coefs_, chosen, axis=1), color="0.8", lw=1)
ax.plot(path.radii_, path.coefs_[:, chosen], color="C0", lw=1.5)
ax.axvline(path.radius_, color="black", lw=1, ls="--")
ax.set(xscale="log", xlabel="budget on the sum of absolute coefficients", ylabel="coefficient")
ax.set_title("blue: features of the chosen model; dashed: the chosen budget")
plt.show()

# %%
# Beside a grid of penalties
# --------------------------
# ``LogisticRegressionCV`` with an l1 penalty, twenty values of ``C`` and the same folds. Each
# tool is timed once here, after the path above has loaded its compiled code.
ours = SparseLogisticPathCV(radii=path.radii_, cv=folds)
grid = LogisticRegressionCV(
    Cs=np.geomspace(1e-2, 1e2, 20), cv=folds, l1_ratios=[1.0], solver="liblinear",
    scoring="neg_log_loss", use_legacy_attributes=False, random_state=0,
)  # fmt: skip
rows = {}
for name, model in {"SparseLogisticPathCV": ours, "LogisticRegressionCV": grid}.items():
    start = time.process_time()
    model.fit(X_train, y_train)
    rows[name] = {
        "CPU seconds": f"{time.process_time() - start:.3f}",
        "l1 norm": f"{np.abs(model.coef_).sum():.2f}",
        "features": np.count_nonzero(model.coef_),
        "test log loss": f"{log_loss(y_test, model.predict_proba(X_test)):.4f}",
        "certified gap": f"{model.dual_gap_:.0e}" if model is ours else "none",
    }
pd.DataFrame(rows).T

# %%
# The score of the folds over the budgets, with one standard error. ``rule="one-std"`` would take
# the smallest budget within one standard error of the best.
fig, ax = plt.subplots(figsize=(6.4, 3), layout="constrained")
mean, error = (
    -path.scores_.mean(axis=0),
    path.scores_.std(axis=0, ddof=1) / np.sqrt(len(path.scores_)),
)
ax.fill_between(path.radii_, mean - error, mean + error, color="C0", alpha=0.2, lw=0)
ax.plot(path.radii_, mean, color="C0")
ax.axvline(path.radius_, color="black", lw=1, ls="--")
ax.set(
    xscale="log",
    xlabel="budget on the sum of absolute coefficients",
    ylabel="log loss in cross-validation",
)
plt.show()
