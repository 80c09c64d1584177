"""
Sparse text rows: a budget on the words of a classifier
=======================================================

A text classifier looks at 20 000 words, and few of them should decide. An l1 penalty gives sparse models, but its
size has no unit: one tries penalties until the model looks right. A budget is a number one can state beforehand. The
rows stay sparse all the way.
"""

# %%
# Posts
# -----
# Posts in twenty groups, with word frequencies by Zipf's law. Four groups are about science, and use some words more
# often. The question is whether a post comes from a science group; three in a hundred labels are wrong.
import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from extremal.sklearn import ConstrainedLogisticRegression

topical = (
    "orbit launch shuttle moon lunar satellite mission rocket solar station patient doctor disease treatment drug symptom "
    "clinical dose infection therapy circuit voltage amplifier battery signal wire chip resistor power board key encryption "
    "cipher secure algorithm secret clipper escrow message random"
)
science = np.array(topical.split())
words = np.concatenate([science, [f"word{j}" for j in range(20_000 - len(science))]])
base = 1 / (np.arange(len(words)) + 20.0)
places = np.random.default_rng(0).permutation(np.arange(200, 4000))  # where the other groups have their own words
base[:40] = base[places[:40]]


def posts(n, seed):
    rng = np.random.default_rng(seed)
    group, lengths = rng.integers(0, 20, n), rng.lognormal(4.3, 0.6, n).astype(int) + 10
    rows = np.repeat(np.arange(n, dtype=np.int32), lengths)
    columns = np.empty(len(rows), dtype=np.int32)
    for g in range(20):
        own = np.arange(10 * g, 10 * g + 10) if g < 4 else places[10 * g : 10 * g + 10]
        often = base.copy()
        often[own] *= 20
        columns[group[rows] == g] = rng.choice(len(words), (group[rows] == g).sum(), p=often / often.sum())
    counts = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, len(words)))
    return counts, (group < 4) ^ (rng.random(n) < 0.03)


counts, y = posts(3000, seed=0)
test, y_test = posts(3000, seed=1)
tfidf = TfidfTransformer(sublinear_tf=True).fit(counts)
X, X_test = tfidf.transform(counts), tfidf.transform(test)

# %%
# The budget as a number
# ----------------------
budget = 150.0
model = ConstrainedLogisticRegression("l1", radius=budget).fit(X, y)
print(model.certificate_)

# %%
# Beside what people do today
# ---------------------------
# liblinear with an l1 penalty. To meet the budget, one bisects on ``C``: many fits. Each tool is timed once; the fit
# above has loaded the compiled code.


def penalised(C):
    return LogisticRegression(C=C, l1_ratio=1, solver="liblinear", intercept_scaling=100, random_state=0).fit(X, y)


def searched(low=1e-1, high=1e3, fits=0):
    while True:
        fits, middle = fits + 1, np.sqrt(low * high)
        found = penalised(middle)
        size = np.abs(found.coef_).sum()
        if 0.99 * budget < size <= budget:
            return found, fits
        low, high = (middle, high) if size <= budget else (low, middle)


tools = {
    "liblinear, C = 1": lambda: (penalised(1.0), 1),
    "liblinear, C searched": searched,
    "ConstrainedLogisticRegression": lambda: (ConstrainedLogisticRegression("l1", radius=budget).fit(X, y), 1),
}
rows = {}
for name, fit in tools.items():
    start = time.perf_counter()
    fitted, fits = fit()
    rows[name] = {
        "fits": fits,
        "seconds": f"{time.perf_counter() - start:.2f}",
        "sum of |w|": f"{np.abs(fitted.coef_).sum():.4f}",
        "words": np.count_nonzero(fitted.coef_),
        "AUC, new posts": f"{roc_auc_score(y_test, fitted.decision_function(X_test)):.4f}",
    }
pd.DataFrame(rows).T

# %%
# The largest and the smallest weights. The names of real science words are known here because the data are generated.
w = model.coef_.ravel()
order = np.argsort(-w)
show = np.concatenate([order[:22], order[-6:]])
fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.bar(np.arange(len(show)), w[show], color=np.where(np.isin(words[show], science), "C0", "0.7"))
ax.axhline(0, color="black", lw=0.8)
ax.set_xticks(np.arange(len(show)), words[show], rotation=65, ha="right", fontsize="small")
ax.set(ylabel="weight", title="blue: words that science groups use more often")
plt.show()
