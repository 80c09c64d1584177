"""
Stack models with weights that can be read
==========================================

Five regressors predict house-like prices. A stack weighs them. scikit-learn's
``StackingRegressor`` fits a second model on their predictions, often with negative weights and a
sum that is not one. ``StackingWeights`` gives a weighted mean, and its weights say how much each
model is worth.
"""

# %%
# Models and data
# ---------------
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor, StackingRegressor, VotingRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

from extremal.sklearn import StackingWeights

X, y = make_friedman1(1200, noise=1.0, random_state=0)
X_train, y_train, X_test, y_test = X[:400], y[:400], X[400:], y[400:]
models = [
    ("ridge", Ridge()),
    ("neighbours", KNeighborsRegressor()),
    ("tree", DecisionTreeRegressor(max_depth=6, random_state=0)),
    ("forest", RandomForestRegressor(20, random_state=0)),
    ("svm", SVR(C=10)),
]

# %%
# Fit --- Predictions come from cross-validation, so that a model cannot win by knowing the
# answers.
stack = StackingWeights(models, cv=5).fit(X_train, y_train)
print(stack.certificate_)
print(
    "weights:",
    {name: round(weight, 3) for name, weight in stack.weights_.items()},
    "sum:",
    sum(stack.weights_.values()),
)

# %%
# Beside what people do today
# ---------------------------
free = StackingRegressor(models, final_estimator=LinearRegression(), cv=5).fit(X_train, y_train)
vote = VotingRegressor(models).fit(X_train, y_train)


def rmse(model):
    return np.sqrt(np.mean(np.square(model.predict(X_test) - y_test)))


alone = {name: rmse(model) for name, model in stack.named_estimators_.items()}
best = min(alone, key=alone.get)
rows = {
    f"best single model on the test rows ({best})": (1.0, 0.0, alone[best]),
    "VotingRegressor, equal weights": (1.0, 1 / len(models), rmse(vote)),
    "StackingRegressor, linear": (
        free.final_estimator_.coef_.sum(),
        free.final_estimator_.coef_.min(),
        rmse(free),
    ),
    "StackingWeights": (stack.coef_.sum(), stack.coef_.min(), rmse(stack)),
}
pd.DataFrame(rows, index=["sum of weights", "smallest weight", "test RMSE"]).T.round(4)

# %%
fig, ax = plt.subplots(figsize=(6.4, 3), layout="constrained")
at = np.arange(len(models))
ax.bar(at - 0.2, free.final_estimator_.coef_, 0.38, color="0.7", label="StackingRegressor, linear")
ax.bar(at + 0.2, stack.coef_, 0.38, color="C0", label="StackingWeights")
ax.axhline(0, color="black", lw=0.8)
ax.set_xticks(at, [f"{name}\nRMSE {alone[name]:.2f}" for name, _ in models])
ax.set_ylabel("weight")
fig.legend(loc="outside upper center", ncols=2, frameon=False)
plt.show()
