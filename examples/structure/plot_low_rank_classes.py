"""
Classes that share a few directions
===================================

Ten digits, 64 pixels: a multinomial model has a matrix of 640 coefficients. A bound on its
nuclear norm makes the classes share a few directions, as many as the data ask for. An l2 penalty,
the habit, shrinks all directions and drops none.
"""

# %%
# Fit for three budgets
# ---------------------
import copy

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from extremal.sklearn import ConstrainedMultinomialRegression

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X / 16, y, test_size=0.5, random_state=0, stratify=y
)
models = {
    f"nuclear norm <= {r}": ConstrainedMultinomialRegression(f"nuclear:{r}").fit(X_train, y_train)
    for r in (5, 15, 45)
}
print(models["nuclear norm <= 15"].certificate_)

# %%
# Beside penalties
# ----------------
# ``LogisticRegression`` with an l2 penalty, and the same model with its small singular values cut
# off afterwards. Cutting meets the rank, but the coefficients that are left were not fitted for
# it.
ridge = LogisticRegression(C=0.1, max_iter=1000).fit(X_train, y_train)
rank = np.linalg.matrix_rank(models["nuclear norm <= 15"].coef_, tol=1e-6)
U, s, V = np.linalg.svd(ridge.coef_, full_matrices=False)
cut = copy.deepcopy(ridge)
cut.coef_ = (U[:, :rank] * s[:rank]) @ V[:rank]


def judge(model, gap="unknown"):
    s = np.linalg.svd(model.coef_, compute_uv=False)
    return {
        "nuclear norm": f"{s.sum():.4f}",
        "rank": int(np.sum(s > 1e-6 * s[0])),
        "certified gap": gap,
        "training loss": f"{log_loss(y_train, model.predict_proba(X_train)):.4f}",
        "test loss": f"{log_loss(y_test, model.predict_proba(X_test)):.4f}",
        "test accuracy": f"{model.score(X_test, y_test):.4f}",
    }


rows = {
    "LogisticRegression, l2, C = 0.1": judge(ridge),
    f"the same, cut to rank {rank}": judge(cut),
}
rows |= {name: judge(model, f"{model.dual_gap_:.0e}") for name, model in models.items()}
pd.DataFrame(rows).T

# %%
# The first directions in pixel space, and where the test digits lie in the first two of them.
model = models["nuclear norm <= 15"]
_, s, V = np.linalg.svd(model.coef_, full_matrices=False)
fig, axes = plt.subplots(1, 4, figsize=(6.4, 1.9), layout="constrained")
for ax, direction, value in zip(axes, V, s, strict=False):
    ax.imshow(direction.reshape(8, 8), cmap="PuOr", vmin=-0.5, vmax=0.5)
    ax.set(xticks=[], yticks=[], title=f"singular value {value:.2f}")
    ax.title.set_size("small")
plt.show()

# %%
score = (X_test - X_test.mean(axis=0)) @ V[:2].T
fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for digit in range(10):
    place = score[y_test == digit]
    ax.scatter(*place.T, s=6, color="0.75")
    ax.text(
        *np.median(place, axis=0),
        str(digit),
        color="C0",
        fontsize=16,
        fontweight="bold",
        ha="center",
        va="center",
    )
ax.set(xlabel="first direction", ylabel="second direction")
plt.show()
