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
# The fit
# -------
# The mean is taken off first. The radius bounds the sum of the singular values.
radius = 220.0
model = LowRankCompletion(radius, offsets="mean", shape=(users, items)).fit(train, ratings[~held])
print(model.certificate_)

# %%
# Beside what people do today
# ---------------------------
# Soft-impute fills in, shrinks the singular values by a penalty, and repeats, with a dense SVD in
# each step. A truncated SVD of the table with zeros for gaps is the quick way. Each is timed
# once.
mean = ratings[~held].mean()
where, known = tuple(train.T), ratings[~held] - mean


def soft_impute(penalty, steps=20):
    Z = np.zeros((users, items))
    for _ in range(steps):
        Z[where] = known
        U, s, V = np.linalg.svd(Z, full_matrices=False)
        Z = (U * np.maximum(s - penalty, 0)) @ V
    return Z


def truncated(rank=5):
    Z = np.zeros((users, items))
    Z[where] = known
    U, s, V = randomized_svd(Z, rank, random_state=0)
    return (U * s) @ V


def ours():
    fit = LowRankCompletion(radius, offsets="mean", shape=(users, items))
    fit.fit(train, ratings[~held])
    return fit.row_factors_ * fit.singular_values_ @ fit.components_


rows, bound = {}, model.objective_ - model.dual_gap_
tools = {
    "truncated SVD, rank 5": truncated,
    "soft-impute, penalty 4": lambda: soft_impute(4.0),
    "soft-impute, penalty 8": lambda: soft_impute(8.0),
    "LowRankCompletion": ours,
}
for name, complete in tools.items():
    start = time.process_time()
    Z = complete()
    seconds, s = time.process_time() - start, np.linalg.svd(Z, compute_uv=False)
    error = Z[tuple(test.T)] + mean - ratings[held]
    rows[name] = {
        "nuclear norm": f"{s.sum():.2f}",
        "loss above the bound": f"{0.5 * np.mean((Z[where] - known) ** 2) / bound - 1:+.1e}",
        "rank": int(np.sum(s > 1e-9 * s[0])),
        "RMSE, held back": f"{np.sqrt(np.mean(error**2)):.4f}",
        "CPU seconds": f"{seconds:.3f}",
    }
pd.DataFrame(rows).T

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(6.4, 3.2), layout="constrained")
left.bar(np.arange(1, model.rank_ + 1), model.singular_values_, color="C0")
left.set(xlabel="number", ylabel="singular value", title=f"rank {model.rank_} of {items}")
predicted = model.predict(test)
half = np.clip(np.floor(2 * predicted) / 2, 1, 4.5)
groups = {f"{b:g}": ratings[held][half == b] for b in np.unique(half)}
look = {"showfliers": False, "medianprops": {"color": "C0", "lw": 2}}
right.boxplot(list(groups.values()), **look)
right.set_xticks(np.arange(1, len(groups) + 1), groups)
right.set(xlabel="predicted, from", ylabel="rating", title="ratings that were held back")
plt.show()
