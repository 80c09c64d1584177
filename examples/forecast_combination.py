"""How do I weigh my forecasts (or the models of my ensemble) with weights that are non-negative and sum to one?

A free regression on forecasts that agree with each other gives some of them negative weights, which nobody can explain. Users ask
for weights on the simplex: scikit-lego#245 (averaging models; built on cvxpy), darts#726 and darts#1684 (ensembles of forecasts),
cvxpy#389 (a tall problem of that kind runs out of memory).

    SimplexRegression().fit(forecasts, truth)

Here: 30 generated forecasters of one monthly series, good and bad, whose errors are shared in part; 120 months to
fit, 500 to test.
"""

import common
import numpy as np
from scipy.optimize import minimize, nnls
from sklearn.linear_model import LinearRegression

from extremal.sklearn import SimplexRegression


def forecasts(n, models=30, seed=0):
    """A series, and forecasts that share a surprise, the news of the month, and add an error of their own."""
    rng = np.random.default_rng(seed)
    months = np.arange(n + 500)
    truth = 100 + 10 * np.sin(months / 6) + np.cumsum(0.5 * rng.standard_normal(len(months)))
    surprise = rng.standard_normal((len(months), 1))
    own = rng.standard_normal((len(months), models)) * rng.uniform(0.5, 6, models)
    X = truth[:, None] + surprise + own
    return X[:n], truth[:n], X[n:], truth[n:]


def by_slsqp(X, y):
    d = X.shape[1]
    return minimize(
        lambda w: 0.5 * np.mean(np.square(X @ w - y)),
        np.full(d, 1 / d),
        jac=lambda w: (X @ w - y) @ X / len(y),
        bounds=[(0, 1)] * d,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(d)},
        method="SLSQP",
    ).x


def by_nnls(X, y):
    """Non-negative weights, with the sum as one more row, a hundred times as heavy as the data."""
    heavy = 100 * np.linalg.norm(X, axis=0).max()
    return nnls(np.vstack([X, np.full(X.shape[1], heavy)]), np.append(y, heavy))[0]


def by_cvxpy(cp, X, y):
    w = cp.Variable(X.shape[1])
    cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y)), [w >= 0, cp.sum(w) == 1]).solve(solver=cp.CLARABEL)
    return w.value


def normalised(w):
    w = np.maximum(w, 0)
    return w / w.sum()


def main(argv=None):
    args = common.arguments(argv, __doc__)
    X, y, X_test, y_test = forecasts(120, models=10 if args.small else 30)

    contest = common.Contest(
        lambda w: 0.5 * np.mean(np.square(X @ w - y)),
        violation=common.off_simplex,
        repair=common.to_simplex,
        notes=lambda w: {"test RMSE": f"{np.sqrt(np.mean(np.square(X_test @ w - y_test))):.3f}", "used": f"{np.sum(w != 0)}"},
        small=args.small,
    )
    contest.rival("equal weights", lambda: np.full(X.shape[1], 1 / X.shape[1]))
    contest.rival("inverse squared errors", lambda: normalised(1 / np.mean(np.square(X - y[:, None]), axis=0)))
    free = contest.rival("LinearRegression, no constraint", lambda: LinearRegression(fit_intercept=False).fit(X, y))
    contest.rival("scipy nnls, normalised", lambda: normalised(nnls(X, y)[0]))
    contest.rival("scipy nnls, heavy row", lambda: by_nnls(X, y))
    contest.rival("scipy SLSQP", lambda: by_slsqp(X, y))
    contest.cvxpy("cvxpy, Clarabel", lambda cp: by_cvxpy(cp, X, y))
    model = contest.ours("SimplexRegression", lambda: SimplexRegression().fit(X, y))
    contest.table(f"Forecast combination: {len(X)} months, {X.shape[1]} forecasters, weights on the simplex")
    if args.out:
        draw(args.out / "forecast_combination.png", free.coef_, model.coef_)
    return contest


def draw(path, free, ours):
    with common.picture(path) as axes:
        at = np.arange(len(ours))
        colours = np.where(free < 0, common.ORANGE, common.GREY)
        axes.bar(at - 0.2, free, 0.38, color=colours, label="free regression (orange: negative)")
        axes.bar(at + 0.2, ours, 0.38, color=common.GREEN, label="on the simplex")
        axes.axhline(0, color="black", lw=0.8)
        axes.set(xlabel="forecaster", ylabel="weight")
        axes.legend()


if __name__ == "__main__":
    main()
