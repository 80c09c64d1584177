"""How do I say how much a text classifier may spend on words, in place of searching for a penalty?

A budget R on the sum of absolute weights says what the model is; a penalty has to be searched for until the norm is right. Users
ask for the bound itself: hal9001#33 (the lasso by a bound on its l1 norm; closed because glmnet has none), optax#1100 (the
projection on the l1 ball, for sparse solutions).

    ConstrainedLogisticRegression("l1", radius=200).fit(X, y)

Here: posts in the manner of the 20 newsgroups, generated: 20 groups, words by Zipf's law, tf-idf; is a post from a science group?
"""

import math

import common
import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from extremal.sklearn import ConstrainedLogisticRegression

SCIENCE = {  # words that the four science groups use more often
    "space": "orbit launch shuttle moon lunar satellite mission rocket solar station",
    "medicine": "patient doctor disease treatment drug symptom clinical dose infection therapy",
    "electronics": "circuit voltage amplifier battery signal wire chip resistor power board",
    "cryptography": "key encryption cipher secure algorithm secret clipper escrow message random",
}


def posts(n, words=20_000, seed=0):
    """Counts of words in posts: Zipf's law for all, more often the words of a post's own group."""
    rng = np.random.default_rng(seed)
    topical = " ".join(SCIENCE.values()).split()
    names = np.array(topical + [f"word{j}" for j in range(words - len(topical))])
    base = 1 / (np.arange(words) + 20.0)
    places = np.random.default_rng(0).permutation(np.arange(200, max(words // 5, 1000)))  # where a group's own words stand
    base[: len(topical)] = base[places[: len(topical)]]
    group = rng.integers(0, 20, n)
    lengths = rng.lognormal(4.3, 0.6, n).astype(int) + 10
    rows, columns = np.repeat(np.arange(n, dtype=np.int32), lengths), np.empty(lengths.sum(), dtype=np.int32)
    for g in range(20):
        weights = base.copy()
        own = np.arange(10 * g, 10 * g + 10) if g < 4 else places[10 * g : 10 * g + 10]
        weights[own] *= 20
        of_group = group[rows] == g
        columns[of_group] = rng.choice(words, of_group.sum(), p=weights / weights.sum())
    counts = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, words))
    noisy = rng.random(n) < 0.03  # posts in the wrong group
    return counts, (group < 4) ^ noisy, names


def penalised(X, y, C, solver="liblinear"):
    return LogisticRegression(C=C, solver=solver, intercept_scaling=100, random_state=0, **common.L1).fit(X, y)


def by_bisection(X, y, radius, fits=20):
    """Fits with a penalty, by bisection on log C, until the norm is in the last hundredth of the budget."""
    low, high, best = np.log(1e-3), np.log(1e3), None
    for _ in range(fits):
        model = penalised(X, y, np.exp((low + high) / 2))
        size = np.abs(model.coef_).sum()
        if size > radius:
            high = (low + high) / 2
            continue
        low, best = (low + high) / 2, model
        if size > 0.99 * radius:
            break
    return best


def by_cvxpy(cp, X, y, radius):
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    loss = cp.sum(cp.logistic(cp.multiply(np.where(y, -1.0, 1.0), X @ w + b))) / X.shape[0]
    cp.Problem(cp.Minimize(loss), [cp.norm1(w) <= radius]).solve(solver=cp.CLARABEL)
    return w.value


def main(argv=None):
    args = common.arguments(argv, __doc__)
    n, words, radius = (300, 1000, 60.0) if args.small else (4000, 20_000, 200.0)
    counts, y, names = posts(n, words)
    test, y_test, _ = posts(2000, words, seed=1)
    tfidf = TfidfTransformer(sublinear_tf=True).fit(counts)
    X, X_test = tfidf.transform(counts), tfidf.transform(test)

    contest = common.Contest(
        common.logistic_loss(X, y),
        violation=lambda w: max(0.0, math.fsum(np.abs(w)) - radius),
        repair=lambda w: w * (radius / np.abs(w).sum()),
        notes=lambda w: {"words": f"{np.count_nonzero(w)}", "test AUC": f"{roc_auc_score(y_test, X_test @ w):.4f}"},
        small=args.small,
    )
    contest.rival("LogisticRegression, l2, defaults", lambda: LogisticRegression().fit(X, y))
    contest.rival("liblinear, l1, C = 1", lambda: penalised(X, y, 1.0))
    found = contest.rival("liblinear, l1, C by bisection", lambda: by_bisection(X, y, radius))
    contest.rival("saga, l1, that C given", lambda: penalised(X, y, found.C, "saga"))
    contest.skip("scipy SLSQP", f"not run: keeps {2 * words} x {2 * words} numbers")
    if args.small:
        contest.cvxpy("cvxpy, Clarabel", lambda cp: by_cvxpy(cp, X, y, radius))
    else:
        contest.skip("cvxpy, Clarabel", "not run at this size")
    model = contest.ours("ConstrainedLogisticRegression", lambda: ConstrainedLogisticRegression("l1", radius=radius).fit(X, y))
    contest.table(f"Text: {n} posts, {words} words, |w|_1 <= {radius:g}")
    order = np.argsort(-model.coef_.ravel())
    print("Words that speak for science:", *names[order[:12]])
    if args.out:
        draw(args.out / "text_l1.png", model.coef_.ravel(), names, order)
    return contest


def draw(path, w, names, order):
    with common.picture(path) as axes:
        show = np.concatenate([order[:24], order[-6:]])
        axes.bar(np.arange(len(show)), w[show], color=np.where(w[show] > 0, common.GREEN, common.ORANGE))
        axes.axhline(0, color="black", lw=0.8)
        axes.set_xticks(np.arange(len(show)), names[show], rotation=60, ha="right")
        axes.set_ylabel("weight")
        axes.set_title(f"The 24 largest and the 6 smallest weights; {np.count_nonzero(w)} of {len(w)} words are in use")


if __name__ == "__main__":
    main()
