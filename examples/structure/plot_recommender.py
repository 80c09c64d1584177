"""
A recommender from a low-rank matrix
====================================

Users rate few of many items. A small nuclear norm is the convex way to say that a few tastes
explain the ratings. The usual tools keep the dense matrix and take its SVD again and again.
``LowRankCompletion`` keeps factors, never the full matrix, and certifies the answer.
"""

# %%
# Ratings
# -------
# 300 users, 200 items, 12 000 ratings from 1 to 5 in half stars, five tastes. A fifth of the
# ratings is held back.
import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits

from extremal.sklearn import LowRankCompletion

threadpool_limits(1)  # one thread for all tools: a fair clock

rng = np.random.default_rng(0)
users, items, count = 300, 200, 12_000
tastes = rng.standard_normal((users, 5)) @ rng.standard_normal((5, items)) / np.sqrt(5)
chance = np.outer(rng.gamma(2, 1, users), 1 / (1 + np.arange(items)) ** 0.3).ravel()
at = rng.choice(users * items, count, replace=False, p=chance / chance.sum())
pairs = np.column_stack(np.divmod(at, items))
stars = 3.4 + 0.8 * tastes.ravel()[at] + 0.4 * rng.standard_normal(count)
ratings = np.clip(np.round(2 * stars) / 2, 1, 5)
held = rng.random(count) < 0.2
train, test = pairs[~held], pairs[held]

# %%
# The radius
# ----------
# The radius bounds the sum of the singular values. Three radii are tried: each is fitted to four
# fifths of the ratings that we have, and judged on the others. ``offsets="mean"`` takes the mean
# rating off first and adds it again in ``predict``. The default, ``"rows+cols"``, also takes off
# an offset for each user and each item. Here no user is generous and no item is popular by
# itself, so the mean is enough.
known, inner = ratings[~held], rng.random(len(train)) < 0.2


def fit(radius, pairs, values):
    return LowRankCompletion(radius, offsets="mean", shape=(users, items)).fit(pairs, values)


errors = {}
for radius in (150.0, 300.0, 600.0):
    error = fit(radius, train[~inner], known[~inner]).predict(train[inner]) - known[inner]
    errors[radius] = np.sqrt(np.mean(error**2))
    print(f"radius {radius:g}: RMSE {errors[radius]:.4f}")
radius = min(errors, key=errors.get)

# %%
# The fit
# -------
# With the best of the three radii, to all ratings that were not held back.
model = fit(radius, train, known)
print(model.certificate_)

# %%
# Beside what people do today
# ---------------------------
# Soft-impute fills in, shrinks the singular values by a penalty, and repeats, with a dense SVD in
# each step. It runs until a step changes the matrix by less than a millionth. The penalty that
# belongs to our radius is the largest singular value of the residuals at the answer, so
# soft-impute gets it as a gift. Twice that penalty is the second try. A truncated SVD of the
# table with zeros for gaps is the quick way. Each is timed once.
mean, where = known.mean(), tuple(train.T)


def table(values):
    Z = np.zeros((users, items))
    Z[where] = values
    return Z


def soft_impute(penalty):
    Z, change = np.zeros((users, items)), np.inf
    while change > 1e-6:
        before = Z
        U, s, V = np.linalg.svd(before + table(known - mean - before[where]), full_matrices=False)
        Z = (U * np.maximum(s - penalty, 0)) @ V
        change = np.linalg.norm(Z - before) / np.linalg.norm(Z)
    return Z


def truncated(rank=5):
    U, s, V = randomized_svd(table(known - mean), rank, random_state=0)
    return (U * s) @ V


def ours():
    again = fit(radius, train, known)
    return again.row_factors_ * again.singular_values_ @ again.components_


penalty = np.linalg.norm(table(known - model.predict(train)), 2)
rows, bound = {}, model.objective_ - model.dual_gap_
tools = {
    "truncated SVD, rank 5": truncated,
    f"soft-impute, penalty {penalty:.2f} (matched)": lambda: soft_impute(penalty),
    f"soft-impute, penalty {2 * penalty:.2f}": lambda: soft_impute(2 * penalty),
    "LowRankCompletion": ours,
}
for name, complete in tools.items():
    start = time.process_time()
    Z = complete()
    seconds, s = time.process_time() - start, np.linalg.svd(Z, compute_uv=False)
    error = Z[tuple(test.T)] + mean - ratings[held]
    rows[name] = {
        "nuclear norm": f"{s.sum():.2f}",
        "loss above the bound": f"{0.5 * np.mean((Z[where] + mean - known) ** 2) / bound - 1:+.1e}",
        "rank": int(np.sum(s > 1e-9 * s[0])),
        "RMSE, held back": f"{np.sqrt(np.mean(error**2)):.4f}",
        "CPU seconds": f"{seconds:.3f}",
    }
pd.DataFrame(rows).T

# %%
# At the matched penalty, soft-impute and ``LowRankCompletion`` solve the same problem, and their
# errors agree. The difference is what you give, a budget or a penalty, and what you get: factors
# and a certificate, or a dense matrix.
fig, (left, right) = plt.subplots(1, 2, figsize=(6.4, 3.2), layout="constrained")
left.bar(np.arange(1, model.rank_ + 1), model.singular_values_, color="C0")
left.set(xlabel="number", ylabel="singular value", xticks=np.arange(1, model.rank_ + 1, 4))
left.set_title(f"rank {model.rank_} of {items}")
half = np.clip(np.floor(2 * model.predict(test)) / 2, 1, 4.5)
groups = {f"{b:g}": ratings[held][half == b] for b in np.unique(half)}
look = {"showfliers": False, "medianprops": {"color": "C0", "lw": 2}}
right.boxplot(list(groups.values()), **look)
right.set_xticks(np.arange(1, len(groups) + 1), groups)
right.set(xlabel="predicted, from", ylabel="rating", title="ratings that were held back")
plt.show()
