"""What would have happened without the law, the campaign, the new price? Weights on other regions that I can defend.

A synthetic control is a weighted mean of regions that were not treated: weights >= 0 that sum to one, fitted to the months
before. The same fit is made again with each region in the role of the treated one, to see how unusual the effect is. Users find
weights that do not sum to one because small ones are hidden (SyntheticControlMethods#9), or negative ones
(causal-inference-in-python-code#3; augsynth#71: take them as 0), and a package that spent 39 % of a fit in conic solves
(mlsynth PR#491).

    SimplexRegression().fit(donors_before, treated_before)

Here: 40 generated regions, 60 months before and 24 after, an effect that builds up to -8 within a year in the treated region.
"""

import common
import numpy as np
from scipy.optimize import minimize, nnls
from sklearn.linear_model import LinearRegression

from extremal.sklearn import SimplexRegression


def regions(count=40, before=60, after=24, seed=3):
    """Levels that follow three common factors; the first region loses 8 in the year that follows the treatment."""
    rng = np.random.default_rng(seed)
    months = before + after
    factors = np.cumsum(rng.standard_normal((months, 3)), axis=0)
    loadings = rng.dirichlet(np.ones(3), count)
    loadings[0] = loadings[1:6].mean(axis=0)
    levels = 100 + 3 * factors @ loadings.T + rng.normal(0, 1, count) + 0.7 * rng.standard_normal((months, count))
    levels[before:, 0] -= 8 * np.minimum(np.arange(1, after + 1) / 12, 1)
    return levels


def by_slsqp(A, b):
    d = A.shape[1]
    return minimize(
        lambda w: 0.5 * np.mean(np.square(A @ w - b)),
        np.full(d, 1 / d),
        jac=lambda w: (A @ w - b) @ A / len(b),
        bounds=[(0, 1)] * d,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(d)},
        method="SLSQP",
    ).x


def by_nnls(A, b):
    """The sum as one more row, a hundred times as heavy as the data."""
    heavy = 100 * np.linalg.norm(A, axis=0).max()
    return nnls(np.vstack([A, np.full(A.shape[1], heavy)]), np.append(b, heavy))[0]


def by_cvxpy(cp, A, b):
    w = cp.Variable(A.shape[1])
    cp.Problem(cp.Minimize(cp.sum_squares(A @ w - b)), [w >= 0, cp.sum(w) == 1]).solve(solver=cp.CLARABEL)
    return w.value


def main(argv=None):
    args = common.arguments(argv, __doc__)
    before = 60
    levels = regions(count=12 if args.small else 40)
    count = levels.shape[1]
    # problem j: region j from the others; region 0, which was treated, is no donor
    donors = [[i for i in range(1, count) if i != j] for j in range(count)]
    A, b = [levels[:before, d] for d in donors], levels[:before].T
    pairs = list(zip(A, b, strict=True))

    contest = common.Contest(
        lambda W: np.mean([0.5 * np.mean(np.square(a @ w - t)) for a, w, t in zip(A, W, b, strict=True)]),
        violation=lambda W: max(map(common.off_simplex, W)),
        repair=lambda W: [common.to_simplex(w) for w in W],
        small=args.small,
    )
    contest.rival("LinearRegression, no constraint", lambda: [LinearRegression(fit_intercept=False).fit(a, t) for a, t in pairs])
    contest.rival("scipy SLSQP", lambda: list(map(by_slsqp, A, b)))
    contest.rival("scipy nnls, heavy row", lambda: list(map(by_nnls, A, b)))
    contest.cvxpy("cvxpy, Clarabel", lambda cp: [by_cvxpy(cp, a, t) for a, t in pairs])
    models = contest.ours("SimplexRegression", lambda: [SimplexRegression().fit(a, t) for a, t in pairs])
    contest.table(f"Synthetic control: {count} fits of {count - 1} donors to {before} months")

    gaps = np.stack([levels[:, j] - levels[:, d] @ m.coef_ for j, (d, m) in enumerate(zip(donors, models, strict=True))])
    ratio = np.sqrt(np.mean(gaps[:, before:] ** 2, axis=1) / np.mean(gaps[:, :before] ** 2, axis=1))
    rank, used = 1 + np.sum(ratio[1:] >= ratio[0]), np.count_nonzero(models[0].coef_)
    print(f"Effect in the last year: {gaps[0, -12:].mean():.1f} (true: -8.0); donors in use: {used}.")
    print(f"Error after the treatment / before: {ratio[0]:.1f}, rank {rank} of {count} regions.")
    if args.out:
        draw(args.out / "synthetic_control.png", levels[:, 0], gaps, before)
    return contest


def draw(path, treated, gaps, before):
    with common.picture(path, columns=2) as (left, right):
        left.plot(treated, color="black", label="treated region")
        left.plot(treated - gaps[0], color=common.GREEN, ls="--", label="its synthetic control")
        left.legend()
        right.plot(gaps[1:].T, color=common.GREY, lw=0.5, alpha=0.6)
        right.plot(gaps[0], color=common.GREEN, label="treated, minus synthetic (grey: placebos)")
        right.legend()
        for axes in (left, right):
            axes.axvline(before - 0.5, color="black", lw=0.6, ls=":")
            axes.set_xlabel("month")


if __name__ == "__main__":
    main()
