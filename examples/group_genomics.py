"""Which pathways matter? Selection of whole groups of genes, in a logistic regression, with a budget.

Genes come in pathways, dummies in factors, lags in series: they should enter a model together or not at all. scikit-learn found
the group lasso too much of a niche (scikit-learn PR#947, scikit-learn#9967), another package's answers differ from those of the
l1-penalised fit where they should be equal (group-lasso#36), and the wish of a project on patients' data was closed
(PatientLevelPrediction#24).

    ConstrainedLogisticRegression(GroupBall(radius, groups, weights)).fit(X, y)

Here: 300 generated samples, 1000 genes in 80 pathways of 5 genes and more that vary together; 4 pathways bear on the outcome. A
pathway's norm counts with the square root of its size.
"""

import common
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import extremal as ex
from extremal.sklearn import ConstrainedLogisticRegression


def genes(n, d=1000, pathways=80, seed=0):
    """Standardised expression levels with a common factor for each pathway; four pathways raise or lower the risk."""
    rng = np.random.default_rng(0)
    cuts = np.sort(rng.choice(np.arange(1, d // 5), pathways - 1, replace=False)) * 5
    label = np.searchsorted(cuts, np.arange(d), side="right")
    effect = np.where(label % (pathways // 4) == 0, rng.uniform(0, 1.5, d), 0.0) / np.bincount(label)[label]
    effect *= np.where(label % (pathways // 2) == 0, 1, -1)
    rng = np.random.default_rng(1 + seed)
    X = 0.6 * rng.standard_normal((n, pathways))[:, label] + 0.8 * rng.standard_normal((n, d))
    return X, rng.random(n) < 1 / (1 + np.exp(-2 * X @ effect)), label


def norms(w, label):
    """For each pathway, the Euclidean norm of its coefficients times the square root of its size."""
    return np.sqrt(np.bincount(label) * np.bincount(label, np.square(w)))


def by_fista(X, y, label, radius, iterations=300):
    """Accelerated projected gradient steps with the projection on the group ball, as one writes it; no stopping rule."""
    A, sign = np.column_stack([X, np.ones(len(X))]), np.where(y, 1.0, -1.0)
    step = 4 * len(A) / np.linalg.norm(A, 2) ** 2
    x = z = np.zeros(A.shape[1])
    t = 1.0
    for _ in range(iterations):
        new = z + step * (sign / (1 + np.exp(sign * (A @ z)))) @ A / len(A)
        new[:-1] = to_ball(new[:-1], label, radius)
        t, old = (1 + np.sqrt(1 + 4 * t * t)) / 2, t
        x, z = new, new + (old - 1) / t * (new - x)
    return x[:-1]


def to_ball(w, label, radius):
    """The projection: norms are cut by a level times the root of the size, by the level at which their sum is the radius."""
    size, many = norms(w, label), np.bincount(label)
    if size.sum() <= radius:
        return w
    order = np.argsort(-size / many)
    level = (np.cumsum(size[order]) - radius) / np.cumsum(many[order])
    kept = np.maximum(size - many * level[np.flatnonzero((size / many)[order] > level)[-1]], 0)
    return w * np.divide(kept, size, out=np.zeros_like(size), where=size > 0)[label]


def by_cvxpy(cp, X, y, label, radius):
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    loss = cp.sum(cp.logistic(cp.multiply(np.where(y, -1.0, 1.0), X @ w + b))) / len(X)
    total = cp.sum([np.sqrt(m) * cp.norm(w[label == g]) for g, m in enumerate(np.bincount(label))])
    cp.Problem(cp.Minimize(loss), [total <= radius]).solve(solver=cp.CLARABEL)
    return w.value


def main(argv=None):
    args = common.arguments(argv, __doc__)
    radius = 3.0
    size = {"d": 200, "pathways": 20} if args.small else {}
    X, y, label = genes(100 if args.small else 300, **size)
    X_test, y_test, _ = genes(2000, seed=1, **size)
    relevant = set(range(0, label.max() + 1, (label.max() + 1) // 4))
    C = ex.GroupBall(radius, label, weights=np.sqrt(np.bincount(label)))

    def notes(w):
        chosen = set(np.flatnonzero(norms(w, label)))
        return {
            "pathways (of 4)": f"{len(chosen)} ({len(chosen & relevant)})",
            "genes": f"{np.count_nonzero(w)}",
            "test AUC": f"{roc_auc_score(y_test, X_test @ w):.3f}",
        }

    contest = common.Contest(
        common.logistic_loss(X, y),
        violation=lambda w: max(0.0, norms(w, label).sum() - radius),
        repair=lambda w: to_ball(w, label, radius),
        notes=notes,
        small=args.small,
    )
    contest.rival("LogisticRegression, l2, defaults", lambda: LogisticRegression(max_iter=1000).fit(X, y))
    l1 = contest.rival("liblinear, l1, C = 0.1", lambda: LogisticRegression(C=0.1, solver="liblinear", **common.L1).fit(X, y))
    contest.rival("projected gradients, 300 accelerated steps", lambda: by_fista(X, y, label, radius))
    contest.cvxpy("cvxpy, Clarabel", lambda cp: by_cvxpy(cp, X, y, label, radius))
    model = contest.ours("ConstrainedLogisticRegression", lambda: ConstrainedLogisticRegression(C).fit(X, y))
    contest.table(
        f"Genomics: {len(X)} samples, {X.shape[1]} genes in {label.max() + 1} pathways, sum of the pathways' norms <= {radius:g}"
    )
    if args.out:
        draw(args.out / "group_genomics.png", norms(l1.coef_[0], label), norms(model.coef_.ravel(), label), sorted(relevant))
    return contest


def draw(path, l1, ours, relevant):
    with common.picture(path, columns=2) as (left, right):
        for axes, size, title in ((left, l1, "l1 penalty"), (right, ours, "group budget")):
            axes.vlines(np.arange(len(size)), 0, size, color=common.GREY if axes is left else common.GREEN)
            axes.plot(relevant, size[relevant], "o", color=common.ORANGE, ms=5, label="pathways that matter")
            axes.set(xlabel="pathway", ylabel="norm of its coefficients")
            axes.set_title(f"{title}: {np.count_nonzero(size)} pathways in use")
            axes.set_ylim(0, 1.25 * size.max())
            axes.legend(loc="upper left")


if __name__ == "__main__":
    main()
