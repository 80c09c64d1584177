"""How do I complete a table of ratings without an SVD of the full matrix in every iteration?

A small nuclear norm is the convex way to say that few tastes explain the ratings. The tools at hand keep a dense matrix and take
its SVD again and again: fancyimpute#58 (the data do not fit into memory), fancyimpute#104 (will this SVD scale?). A completion by
Frank-Wolfe was proposed elsewhere and not merged; its own test says that convergence is really slow (mlpack PR#1116).

    LowRankCompletion(radius=400).fit(pairs, ratings)              # pairs: columns (user, item)

Here: 600 generated users, 400 items, 30 000 ratings from 1 to 5 in half stars, five tastes; a fifth of the ratings is held back.
What users and items differ from the mean is taken out first, for all tools alike.
"""

import common
import numpy as np

from extremal.sklearn import LowRankCompletion


def ratings(users, items, count, seed=0):
    """Popular items and busy users are seen more often; a rating is the mean, two offsets, five tastes and noise, rounded."""
    rng = np.random.default_rng(seed)
    tastes = rng.standard_normal((users, 5)) @ rng.standard_normal((5, items)) / np.sqrt(5)
    busy, popular = rng.gamma(2, 1, users), 1 / (1 + np.arange(items)) ** 0.3
    at = rng.choice(users * items, count, replace=False, p=np.outer(busy / busy.sum(), popular / popular.sum()).ravel())
    pairs = np.column_stack(np.divmod(at, items))
    level = 3.4 + 0.4 * rng.standard_normal(users)[pairs[:, 0]] + 0.4 * rng.standard_normal(items)[pairs[:, 1]]
    stars = level + 0.7 * tastes[pairs[:, 0], pairs[:, 1]] + 0.4 * rng.standard_normal(count)
    return pairs, np.clip(np.round(2 * stars) / 2, 1, 5)


def offsets(pairs, y, shape, damping=5):
    """The mean, and what items and then users differ from it, held towards 0 where there are few ratings."""
    base = np.full(len(y), y.mean())
    found = []
    for side in (1, 0):
        sums = np.bincount(pairs[:, side], y - base, minlength=shape[side])
        found.append(sums / (np.bincount(pairs[:, side], minlength=shape[side]) + damping))
        base += found[-1][pairs[:, side]]
    return lambda p: y.mean() + found[1][p[:, 0]] + found[0][p[:, 1]]


def to_ball(X, radius):
    """The projection on the nuclear ball: one dense SVD."""
    U, s, V = np.linalg.svd(X, full_matrices=False)
    if s.sum() <= radius:
        return X
    level = (np.cumsum(s) - radius) / np.arange(1, len(s) + 1)
    s = np.maximum(s - level[np.flatnonzero(s > level)[-1]], 0)
    return (U[:, s > 0] * s[s > 0]) @ V[s > 0]


def by_projections(at, r, shape, radius, iterations=25):
    """Accelerated projected gradient steps: a dense SVD each. No stopping rule."""
    X = Z = np.zeros(shape)
    t = 1.0
    for _ in range(iterations):
        step = Z.copy()
        step[at] -= Z[at] - r  # of length n: the mean loss has gradients (Z - r) / n
        new = to_ball(step, radius)
        t, old = (1 + np.sqrt(1 + 4 * t * t)) / 2, t
        X, Z = new, new + (old - 1) / t * (new - X)
    return X


def by_soft_impute(at, r, shape, penalty, iterations=25):
    """Fill in, shrink the singular values by the penalty, again (Mazumder, Hastie, Tibshirani 2010)."""
    X = np.zeros(shape)
    for _ in range(iterations):
        X[at] = r
        U, s, V = np.linalg.svd(X, full_matrices=False)
        X = (U * np.maximum(s - penalty, 0)) @ V
    return X


def by_cvxpy(cp, at, r, shape, radius):
    X = cp.Variable(shape)
    cp.Problem(cp.Minimize(cp.sum_squares(X[at] - r)), [cp.normNuc(X) <= radius]).solve(solver=cp.SCS)
    return X.value


def main(argv=None):
    args = common.arguments(argv, __doc__)
    shape, count, radius = ((40, 30), 600, 30.0) if args.small else ((600, 400), 30_000, 400.0)
    pairs, y = ratings(*shape, count)
    held = np.random.default_rng(1).random(count) < 0.2
    base = offsets(pairs[~held], y[~held], shape)
    train, r, test, r_test = pairs[~held], (y - base(pairs))[~held], pairs[held], (y - base(pairs))[held]
    at, at_test = tuple(train.T), tuple(test.T)

    def notes(X):
        rank = int(np.sum(np.linalg.svd(X, compute_uv=False) > 1e-9))
        return {"rank": f"{rank}", "test RMSE": f"{np.sqrt(np.mean(np.square(X[at_test] - r_test))):.4f}"}

    def violation(X):  # what an SVD may be off by rounding is none
        excess = np.linalg.svd(X, compute_uv=False).sum() - radius
        return excess if excess > 1e-13 * radius else 0.0

    contest = common.Contest(
        lambda X: 0.5 * np.mean(np.square(X[at] - r)),
        violation=violation,
        repair=lambda X: to_ball(X, radius),
        notes=notes,
        small=args.small,
    )
    contest.rival("offsets only", lambda: np.zeros(shape))
    contest.rival("soft-impute, 25 SVDs, penalty 4", lambda: by_soft_impute(at, r, shape, 4.0))
    contest.rival("projected gradients, 25 SVDs", lambda: by_projections(at, r, shape, radius))
    if args.small:
        contest.cvxpy("cvxpy, SCS", lambda cp: by_cvxpy(cp, at, r, shape, radius))
    else:
        contest.skip("cvxpy, SCS", "not run at this size")
    model = contest.ours(
        "LowRankCompletion",
        lambda: LowRankCompletion(radius, offsets=None, shape=shape).fit(train, r),
        read=lambda m: m.row_factors_ * m.singular_values_ @ m.components_,
    )
    contest.table(f"Recommender: {shape[0]} users x {shape[1]} items, {len(r)} ratings, nuclear norm <= {radius:g}")
    if args.out:
        draw(args.out / "recommender.png", model, r_test, model.predict(test))
    return contest


def draw(path, model, truth, predicted):
    with common.picture(path, columns=2) as (left, right):
        left.bar(np.arange(1, model.rank_ + 1), model.singular_values_, color=common.GREEN)
        left.set(xlabel="singular value", ylabel="size", title=f"rank {model.rank_} of {min(model.shape_)}")
        right.plot(predicted, truth, ".", ms=2, alpha=0.3, color=common.GREY)
        cuts = np.arange(-1.25, 1.25, 0.25)
        near = [truth[np.abs(predicted - cut) < 0.125] for cut in cuts]
        middle = [part.mean() if part.size else np.nan for part in near]
        right.plot(cuts, middle, "o-", ms=3, color=common.GREEN, label="mean rating by prediction")
        right.set(
            xlabel="predicted, beyond the offsets", ylabel="rating, beyond the offsets", title="ratings that were held back"
        )
        right.legend()


if __name__ == "__main__":
    main()
