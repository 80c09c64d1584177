"""
A multi-class support vector machine, one image at a time
=========================================================

The multi-class machine of Crammer and Singer has one weight vector per class. Its dual has a
simplex of class weights for every image, so a Frank-Wolfe step may move one image only, at the
cost of that image. The Frank-Wolfe gap is the duality gap: it bounds what is left to gain.
``LinearSVC(multi_class="crammer_singer")`` solves the same problem, without a certificate.
"""

# %%
# The dual
# --------
# The primal is ``lam/2 |W|^2 + mean_i max_c (1[c != y_i] + <w_c - w_{y_i}, x_i>)``. With a weight
# ``alpha_ic`` for image i and class c, and Y the labels as 0/1 rows,
# ``W = X'(Y - alpha) / (lam n)``. The dual is ``lam/2 |W|^2 + <Y, alpha> / n - 1``, over rows of
# alpha in simplices. So it is a ``QuadraticModel`` of the rows of X. The features are pixels and
# products of two pixels.
import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

import extremal as ex

threadpool_limits(1)  # one thread for all tools: a fair clock

X, y = load_digits(return_X_y=True)
X = PolynomialFeatures(2, include_bias=False).fit_transform(X / 16)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
n, lam = len(y_train), 0.01
Y = np.eye(10)[y_train]
A = X_train / (np.sqrt(lam) * n)
f, C = ex.QuadraticModel(A, target=A.T @ Y, linear=Y / n), ex.Rows(ex.Simplex())


def weights(alpha):
    return X_train.T @ (Y - alpha) / (lam * n)


def primal(W):
    z = X_train @ W
    margin = z + 1 - Y - z[np.arange(n), y_train, None]
    return lam / 2 * (W**2).sum() + margin.max(axis=1).mean()


# %%
# One image at a time, or all at once
# -----------------------------------
# A pass is n images, in both cases. ``BlockFW`` computes one row of the gradient, asks the simplex
# of that row for a vertex, and searches the line exactly; the weights W follow the row. Steps of
# all images are large matrix products, which are faster per pass: so plain Frank-Wolfe gets many
# more passes, too.
line = ex.steps.LineSearch()
methods = {
    "FrankWolfe, 25 passes": (ex.FrankWolfe(line), 25),
    "FrankWolfe, 400 passes": (ex.FrankWolfe(line), 400),
    "BlockFW, cyclic, 25 passes": (ex.BlockFW("cyclic"), 25),
    "BlockFW, random, 25 passes": (ex.BlockFW("random"), 25),
    "BlockFW, by gaps, 25 passes": (ex.BlockFW("gaps"), 25),
}
results, rows = {}, {}
for name, (method, passes) in methods.items():
    start = time.process_time()
    r = results[name] = ex.minimize(f, C, method, max_grads=passes * n, tol=0)
    seconds = time.process_time() - start
    W, dual = weights(r.x), 1 - r.value
    rows[name] = {
        "CPU seconds": f"{seconds:.2f}",
        "primal": f"{primal(W):.6f}",
        "certified gap": f"{r.gap:.1e}",
        "primal - dual": f"{primal(W) - dual:.1e}",
        "test accuracy": f"{np.mean((X_test @ W).argmax(axis=1) == y_test):.4f}",
    }

# %%
# The certified gap is the difference of primal and dual, digit by digit: both are computed, from
# different formulas.
#
# Beside LinearSVC
# ----------------
# liblinear runs a dual method of this kind in C, with exact solutions of the blocks. It is the
# fastest here, and stops by a tolerance of its own. The best of our dual values is a bound on
# every primal value, and tells how far its answer can be from the best.
bound = max(1 - r.value for r in results.values())
for tol in (1e-1, 1e-4):
    start = time.process_time()
    svm = LinearSVC(
        multi_class="crammer_singer", C=1 / (lam * n), fit_intercept=False, tol=tol, max_iter=10**5
    ).fit(X_train, y_train)
    rows[f"LinearSVC, tol = {tol:.0e}"] = {
        "CPU seconds": f"{time.process_time() - start:.2f}",
        "primal": f"{primal(svm.coef_.T):.6f}",
        "certified gap": "none",
        "primal - dual": f"{primal(svm.coef_.T) - bound:.1e} to our bound",
        "test accuracy": f"{svm.score(X_test, y_test):.4f}",
    }
pd.DataFrame(rows).T.fillna("")

# %%
fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for name, r in results.items():
    ax.loglog(r.trace.passes, r.trace.gap, "o-", ms=3, label=name)
ax.set(xlabel="passes over the images", ylabel="certified duality gap")
ax.legend(frameon=False)
plt.show()
