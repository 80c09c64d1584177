"""
Sparse text rows: a budget on the words of a classifier
=======================================================

A text classifier looks at 20 000 words, and few of them should decide. An l1 penalty gives sparse
models, but its size has no unit: one tries penalties until the model looks right. A budget is a
number one can state beforehand. The rows stay sparse all the way.
"""

# %%
# Posts
# -----
# Word frequencies follow Zipf's law. One post in five is about science, and uses some words four
# times as often. Three in a hundred labels are wrong.
import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from extremal.sklearn import ConstrainedLogisticRegression

threadpool_limits(1)  # one thread for all tools: a fair clock

special = (
    "orbit rocket lunar satellite patient dose therapy voltage circuit chip cipher secret "
    "enzyme neuron fossil quark lens theorem proof alloy plasma gene virus comet"
)
words = np.array(special.split() + [f"word{j}" for j in range(24, 20_000)])
usual = 1 / (np.arange(20_000) + 20.0)
usual[:24] = usual[200:224]
scientific = np.where(np.arange(20_000) < 24, 4, 1) * usual


def posts(n, seed):
    rng = np.random.default_rng(seed)
    science = rng.random(n) < 0.2
    row = np.repeat(np.arange(n, dtype=np.int32), 90)
    column = np.where(
        science[row],
        rng.choice(20_000, len(row), p=scientific / scientific.sum()),
        rng.choice(20_000, len(row), p=usual / usual.sum()),
    ).astype(np.int32)
    counts = sp.csr_array((np.ones(len(row)), (row, column)), shape=(n, 20_000))
    return counts, science ^ (rng.random(n) < 0.03)


counts, y = posts(3000, seed=0)
test, y_test = posts(3000, seed=1)
tfidf = TfidfTransformer(sublinear_tf=True).fit(counts)
X, X_test = tfidf.transform(counts), tfidf.transform(test)

# %%
# The budget as a number
# ----------------------
budget = 250.0
model = ConstrainedLogisticRegression("l1", radius=budget).fit(X, y)
print(model.certificate_)

# %%
# Beside what people do today
# ---------------------------
# liblinear with an l1 penalty. To meet the budget, one bisects on ``C``: many fits. The fit above
# has loaded the compiled code before the clock starts.
rows = {}


def report(name, model, fits, start):
    rows[name] = {
        "fits": fits,
        "CPU seconds": f"{time.process_time() - start:.3f}",
        "sum of |w|": f"{np.abs(model.coef_).sum():.4f}",
        "words": np.count_nonzero(model.coef_),
        "AUC, new posts": f"{roc_auc_score(y_test, model.decision_function(X_test)):.4f}",
    }


start, low, high, fits, size = time.process_time(), 0.01, 1e3, 0, 0.0
while not 0.99 * budget < size <= budget:
    C, fits = np.sqrt(low * high), fits + 1
    penalised = LogisticRegression(C=C, l1_ratio=1, solver="liblinear", random_state=0).fit(X, y)
    size = np.abs(penalised.coef_).sum()
    low, high = (C, high) if size <= budget else (low, C)
report("liblinear, C searched", penalised, fits, start)

start = time.process_time()
penalised = LogisticRegression(l1_ratio=1, solver="liblinear", random_state=0).fit(X, y)
report("liblinear, C = 1", penalised, 1, start)

start = time.process_time()
model = ConstrainedLogisticRegression("l1", radius=budget).fit(X, y)
report("ConstrainedLogisticRegression", model, 1, start)
pd.DataFrame(rows).T

# %%
# The largest and the smallest weights.
w = model.coef_.ravel()
order = np.argsort(-w)
show = np.concatenate([order[:24], order[-6:]])
fig, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
ax.bar(np.arange(30), w[show], color=np.where(show < 24, "C0", "0.7"))
ax.axhline(0, color="black", lw=0.8)
ax.set_xticks(np.arange(30), words[show], rotation=60, ha="right")
ax.set(ylabel="weight", title="blue: words that posts about science use more often")
plt.show()
