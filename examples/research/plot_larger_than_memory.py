"""
Data larger than memory
=======================

A directory of shards holds rows on disk. A fit reads it a few times, in bounded memory, and is
certified like any other. The usual way for such data is stochastic gradients, chunk by chunk:
many reads, a step size to tune, a penalty and no certificate. The data here are small, and read
from disk all the same.
"""

# %%
# Build the directory once
# ------------------------
# Sources are CSV, LIBSVM, Parquet, arrays or iterators of chunks. Rows are shuffled on the way.
# Here chunks are generated.
import shutil
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import SGDClassifier

import extremal as ex
from extremal.sklearn import ConstrainedLogisticRegression

d, chunks = 40, 20
truth = np.random.default_rng(0).normal(0, 0.5, d) * (np.arange(d) < 12)


def chunk(i):
    rng = np.random.default_rng(i + 1)
    X = rng.standard_normal((2000, d)).astype(np.float32)
    return X, np.where(X @ truth + rng.logistic(size=2000) > 0.3, "buys", "leaves")


folder = Path(tempfile.mkdtemp()) / "train"
ex.ShardDir.build((chunk(i) for i in range(chunks)), folder, shard_bytes=1_000_000, seed=0)
data = ex.ShardDir(folder, engine="disk")
print(f"{data.shape[0]} rows in {data.bytes / 1e6:.0f} MB, {data.where}")

# %%
# Fit from disk
# -------------
model = ConstrainedLogisticRegression("l1:3").fit(data)
print(model.certificate_)
in_memory = ConstrainedLogisticRegression("l1:3").fit(ex.ShardDir(folder, engine="memory"))
print("The coefficients are the same bits as in memory:", (model.coef_ == in_memory.coef_).all())

# %%
# Beside stochastic gradients by chunks
# -------------------------------------
# ``SGDClassifier.partial_fit`` sees one chunk at a time. It has an l1 penalty and no budget; two
# sizes of the penalty are tried, and coefficients outside the budget are scaled into it. The loss
# is computed over all rows, with the model's own intercept.


def loss(w, b):
    parts = [
        np.logaddexp(0, -np.where(y == "leaves", 1, -1) * (X @ w + b)).mean()
        for X, y in map(chunk, range(chunks))
    ]
    return np.mean(parts)


bound, reads = model.objective_ - model.dual_gap_, 5
fig, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
for alpha, colour in ((1e-4, "0.7"), (1e-3, "0.4")):
    sgd, above = SGDClassifier(loss="log_loss", penalty="l1", alpha=alpha, random_state=0), []
    for _ in range(reads):
        for i in range(chunks):
            sgd.partial_fit(*chunk(i), classes=["buys", "leaves"])
        inside = sgd.coef_[0] * min(1.0, 3.0 / np.abs(sgd.coef_).sum())
        above.append(loss(inside, sgd.intercept_[0]) / bound - 1)
    ax.semilogy(
        range(1, reads + 1), above, "o-", ms=3, color=colour, label=f"SGD, penalty {alpha:g}"
    )
    print(
        f"SGD, penalty {alpha:g}: norm {np.abs(sgd.coef_).sum():.3f}, loss {above[-1]:.1e} too high"
    )
ours = loss(model.coef_[0], model.intercept_[0]) / bound - 1
passes = model.n_grads_ / data.shape[0]
ax.semilogy(passes, model.dual_gap_ / bound, "s", ms=8, color="C0", label="ours, the certified gap")
print(f"ours: norm {np.abs(model.coef_).sum():.3f}, loss {ours:.1e} too high, {passes:.1f} reads")
ax.set(xlabel="reads of all rows", ylabel="loss above the bound", xlim=(0, None))
ax.legend(frameon=False, loc="center left")
plt.show()

# %%
shutil.rmtree(folder.parent)
