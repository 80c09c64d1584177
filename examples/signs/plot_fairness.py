"""
A fairness bound as a linear constraint
=======================================

A model decides about loans. The score should not depend much on a group that the law protects. A
common bound limits the covariance of group and score (Zafar and others, 2017). For a linear
model, that is one linear inequality in the coefficients, in both directions. Leaving the group
out of the features is not enough: other features know it.
"""

# %%
# Applicants
# ----------
# The group is not a feature. Income and district depend on it.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from extremal.sklearn import ConstrainedLogisticRegression


def applicants(n, seed):
    rng = np.random.default_rng(seed)
    group = rng.random(n) < 0.4
    X = rng.standard_normal((n, 6))
    X[:, 0] -= 0.8 * group  # income
    X[:, 1] += 1.2 * group  # district
    repaid = rng.random(n) < 1 / (1 + np.exp(-(X @ [1.0, -0.4, 0.8, 0.4, 0.0, 0.2] + 0.5)))
    return X, repaid, group


X, y, group = applicants(4000, seed=0)
X_test, y_test, group_test = applicants(20_000, seed=1)
direction = (group - group.mean()) @ X / len(X)  # covariance of group and score is <direction, w>

# %%
# One bound
# ---------
# A pair (A, b) stands for A w <= b. Two rows bound the covariance from both sides. Wide bounds on
# the coefficients, far from what is found, make the set bounded.


def fair(limit):
    covariance = (np.stack([direction, -direction]), np.full(2, limit))
    return ConstrainedLogisticRegression([covariance, "[-5, 5]"]).fit(X, y)


limit = 0.02
model = fair(limit)
print(model.certificate_)
print(f"covariance of group and score: {direction @ model.coef_[0]:.6f}, allowed {limit}")

# %%
# Beside what people do today
# ---------------------------
# The plain model; a penalty on the squared covariance, whose weight one has to search; and SLSQP
# with the two inequalities.
A, sign = np.column_stack([X, np.ones(len(X))]), np.where(y, 1.0, -1.0)
long = np.append(direction, 0.0)


def loss(x, weight=0.0):
    z, covariance = sign * (A @ x), long @ x
    gradient = -(sign / (1 + np.exp(z))) @ A / len(A) + 2 * weight * covariance * long
    return np.mean(np.logaddexp(0, -z)) + weight * covariance**2, gradient


sides = np.stack([long, -long])
both = {"type": "ineq", "fun": lambda x: limit - sides @ x, "jac": lambda x: -sides}
free = LogisticRegression(C=np.inf).fit(X, y)
answers = {"LogisticRegression": np.append(free.coef_[0], free.intercept_)}
for weight in (1, 10, 100):
    answers[f"penalty, weight {weight}"] = minimize(loss, np.zeros(7), weight, jac=True).x
answers["scipy SLSQP"] = minimize(loss, np.zeros(7), jac=True, constraints=both).x
answers["ConstrainedLogisticRegression"] = np.append(model.coef_[0], model.intercept_)


def measures(x):
    accept = X_test @ x[:-1] + x[-1] > 0
    rates = accept[group_test].mean(), accept[~group_test].mean()
    return abs(long @ x), np.mean(accept == y_test), rates[1] - rates[0]


rows = {}
for name, x in answers.items():
    covariance, accuracy, difference = measures(x)
    rows[name] = {
        "violation": f"{max(0.0, covariance - limit):.1e}",
        "loss above the bound": f"{loss(x)[0] / (model.objective_ - model.dual_gap_) - 1:+.1e}",
        "test accuracy": f"{accuracy:.4f}",
        "difference of acceptance rates": f"{difference:.3f}",
    }
pd.DataFrame(rows).T

# %%
# What fairness costs
# -------------------
# The bound is a number that one can discuss. Here are twelve of them, each fitted and certified.
limits = np.linspace(0.005, abs(direction @ free.coef_[0]), 12)
fits = [fair(bound) for bound in limits]
curve = np.array([measures(np.append(fit.coef_[0], fit.intercept_)) for fit in fits])
_, accuracy, difference = measures(answers["LogisticRegression"])
fig, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
ax.plot(curve[:, 2], curve[:, 1], "o-", ms=4, color="C0", label="bounds on the covariance")
ax.plot(difference, accuracy, "s", ms=8, color="0.5", label="plain model")
ax.set(xlabel="difference of acceptance rates, new applicants", ylabel="accuracy")
ax.legend(frameon=False, loc="lower right")
plt.show()
