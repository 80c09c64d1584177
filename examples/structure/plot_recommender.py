"""
A recommender from a low-rank matrix
====================================

Users rate few of many items. A small nuclear norm is the convex way to say that a few tastes explain the ratings. The
usual tools keep the dense matrix and take its SVD again and again. ``LowRankCompletion`` keeps factors, never the
full matrix, and certifies the answer.
"""

# %%
# Ratings
# -------
# 300 users, 200 items, 12 000 ratings from 1 to 5 in half stars, five tastes. A fifth of the ratings is held back.
import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.utils.extmath import randomized_svd

from extremal.sklearn import LowRankCompletion

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
# Soft-impute fills in, shrinks the singular values, and repeats. Projected gradients do the same for a given radius.
# Both take a dense SVD in each step. A truncated SVD of the table with zeros for gaps is the quick way. Each is timed
# once.
mean = ratings[~held].mean()
where, known = tuple(train.T), ratings[~held] - mean


def soft_impute(penalty=4.0, steps=20):
    Z = np.zeros((users, items))
    for _ in range(steps):
        Z[where] = known
        U, s, V = np.linalg.svd(Z, full_matrices=False)
        Z = (U * np.maximum(s - penalty, 0)) @ V
    return Z


def projected(steps=20):
    X = Z = np.zeros((users, items))
    t = 1.0
    for _ in range(steps):
        Z = Z.copy()
        Z[where] = known
        U, s, V = np.linalg.svd(Z, full_matrices=False)
        level = (np.cumsum(s) - radius) / np.arange(1, len(s) + 1)
        new = (U * np.maximum(s - max(0.0, level[s > level][-1]), 0)) @ V
        t, old = (1 + np.sqrt(1 + 4 * t * t)) / 2, t
        X, Z = new, new + (old - 1) / t * (new - X)
    return X


def truncated():
    Z = np.zeros((users, items))
    Z[where] = known
    U, s, V = randomized_svd(Z, 5, random_state=0)
    return (U * s) @ V


def ours():
    fit = LowRankCompletion(radius, offsets="mean", shape=(users, items)).fit(train, ratings[~held])
    return fit.row_factors_ * fit.singular_values_ @ fit.components_


rows = {}
tools = {"truncated SVD, rank 5": truncated, "soft-impute, 20 SVDs": soft_impute, "projected gradients, 20 SVDs": projected}
for name, complete in (tools | {"LowRankCompletion": ours}).items():
    start = time.perf_counter()
    Z = complete()
    seconds, s = time.perf_counter() - start, np.linalg.svd(Z, compute_uv=False)
    loss = 0.5 * np.mean(np.square(Z[where] - known))
    rows[name] = {
        "nuclear norm": f"{s.sum():.2f}",
        "loss above the bound": f"{loss / (model.objective_ - model.dual_gap_) - 1:+.1e}",
        "rank": int(np.sum(s > 1e-9 * s[0])),
        "RMSE, held back": f"{np.sqrt(np.mean(np.square(Z[tuple(test.T)] + mean - ratings[held]))):.4f}",
        "seconds": f"{seconds:.2f}",
    }
pd.DataFrame(rows).T

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(6.4, 3.2), layout="constrained")
left.bar(np.arange(1, model.rank_ + 1), model.singular_values_, color="C0")
left.set(xlabel="number", ylabel="singular value", title=f"rank {model.rank_} of {items}")
predicted = model.predict(test)
bins = np.clip(np.floor(2 * predicted) / 2, 1, 4.5)
right.boxplot([ratings[held][bins == b] for b in np.unique(bins)], showfliers=False, medianprops={"color": "C0", "lw": 2})
right.set_xticks(np.arange(1, len(np.unique(bins)) + 1), [f"{b:g}" for b in np.unique(bins)])
right.set(xlabel="predicted, from", ylabel="rating that was held back", title="held-back ratings")
plt.show()
