"""How do I fit a marketing mix in which no channel is said to destroy sales?

Spend on one channel moves with spend on the others and with the season, so a free regression gives some channels negative
effects. Non-negative effects of media are standard procedure and not offered (prophet#1405, open; prophet#1645); a competitor's
spend should have a negative one (lightweight_mmm#323), a trend's coefficient should be between 0 and 1 (Robyn#666).

    ConstrainedLinearRegression({"tv": ">=0", ..., "price": "<=0", "competitor": "<=0"}).fit(X, y)

Here: three generated years of weeks, ten channels (carry-over and saturation are in the features), price, a competitor, trend and
season, the last three without a constraint.
"""

import common
import numpy as np
import pandas as pd
from scipy.optimize import lsq_linear, minimize
from sklearn.linear_model import LinearRegression, Ridge

from extremal.sklearn import ConstrainedLinearRegression

MEDIA = ["tv", "radio", "print", "outdoor", "search", "social", "video", "display", "email", "affiliate"]
OTHERS = ["price", "competitor", "trend", "sin", "cos"]
NAMES = [*MEDIA, *OTHERS]
SIGNS = dict.fromkeys(MEDIA, ">=0") | {"price": "<=0", "competitor": "<=0"}
LOWER = np.array([0.0] * 10 + [-np.inf] * 5)
UPPER = np.array([np.inf] * 10 + [0.0, 0.0] + [np.inf] * 3)


def weeks(n, seed=0):
    """Sales in thousands. Budgets follow the season and each other; effects carry over to later weeks and saturate."""
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    season = np.stack([np.sin(2 * np.pi * t / 52), np.cos(2 * np.pi * t / 52)], axis=1)
    push = np.exp(0.5 * rng.standard_normal((n, 1)) + 0.5 * season[:, :1])
    spend = push * np.exp(0.25 * rng.standard_normal((n, 10))) * (rng.random((n, 10)) < 0.9)
    stock = np.zeros_like(spend)
    for week in range(n):
        stock[week] = spend[week] + np.linspace(0.7, 0.1, 10) * (stock[week - 1] if week else 0)
    media = stock / (stock + 2)
    price, competitor = 1 + 0.05 * rng.standard_normal(n), np.exp(0.3 * rng.standard_normal(n) + 0.3 * season[:, 0])
    X = np.column_stack([media, price, competitor, t / n, season])
    effect = np.array([40, 10, 5, 2, 35, 20, 10, 0, 5, 0, -60, -5, 15, 8, -4.0])
    return pd.DataFrame(X, columns=NAMES), 200 + X @ effect + 12 * rng.standard_normal(n), effect


def centred(X, y):
    """Without the means, so that the intercept is fitted and not bounded."""
    return X - X.mean(axis=0), y - y.mean()


def by_slsqp(X, y):
    X, y = centred(X, y)
    return minimize(
        lambda w: 0.5 * np.mean(np.square(X @ w - y)),
        np.zeros(X.shape[1]),
        jac=lambda w: (X @ w - y) @ X / len(y),
        bounds=list(zip(LOWER, UPPER, strict=True)),
        method="SLSQP",
    ).x


def by_splitting(X, y):
    """scikit-learn's positive=True, with signs turned and every free feature twice, as it is and negated."""
    turned = np.column_stack([X[:, :10], -X[:, 10:12], X[:, 12:], -X[:, 12:]])
    w = LinearRegression(positive=True).fit(turned, y).coef_
    return np.concatenate([w[:10], -w[10:12], w[12:15] - w[15:]])


def by_cvxpy(cp, X, y):
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    low, high = np.isfinite(LOWER), np.isfinite(UPPER)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w + b - y)), [w[low] >= LOWER[low], w[high] <= UPPER[high]])
    problem.solve(solver=cp.CLARABEL)
    return w.value


def main(argv=None):
    args = common.arguments(argv, __doc__)
    frame, y, effect = weeks(156)
    X = frame.to_numpy()

    contest = common.Contest(
        common.squared_loss(X, y),
        violation=lambda w: max(0.0, np.max(LOWER - w), np.max(w - UPPER)),
        repair=lambda w: np.clip(w, LOWER, UPPER),
        notes=lambda w: {"error of media effects": f"{np.sqrt(np.mean(np.square((w - effect)[:10]))):.2f}"},
        small=args.small,
    )
    free = contest.rival("LinearRegression, no constraint", lambda: LinearRegression().fit(X, y))
    contest.rival("Ridge(alpha=1), no constraint", lambda: Ridge(alpha=1.0).fit(X, y))
    contest.rival("LinearRegression(positive=True), columns split", lambda: by_splitting(X, y))
    contest.rival("scipy lsq_linear, bounds", lambda: lsq_linear(*centred(X, y), (LOWER, UPPER)).x)
    contest.rival("scipy SLSQP, bounds", lambda: by_slsqp(X, y))
    contest.cvxpy("cvxpy, Clarabel", lambda cp: by_cvxpy(cp, X, y))
    model = contest.ours("ConstrainedLinearRegression", lambda: ConstrainedLinearRegression(SIGNS).fit(frame, y))
    contest.table(f"Marketing mix: {len(X)} weeks, {len(MEDIA)} channels with effects >= 0, price and competitor <= 0")
    negative = [name for name, w in zip(MEDIA, free.coef_[:10], strict=True) if w < 0]
    print(f"Channels with a negative effect in the free fit: {', '.join(negative)}.")
    if args.out:
        draw(args.out / "marketing_mix.png", X, effect, free.coef_, model.coef_)
    return contest


def draw(path, X, effect, free, ours):
    share = X[:, :10].mean(axis=0)
    with common.picture(path) as axes:
        at = np.arange(10)
        axes.bar(at - 0.27, free[:10] * share, 0.25, color=np.where(free[:10] < 0, common.ORANGE, common.GREY), label="free fit")
        axes.bar(at, ours[:10] * share, 0.25, color=common.GREEN, label="effects >= 0")
        axes.bar(at + 0.27, effect[:10] * share, 0.25, color="black", label="true")
        axes.axhline(0, color="black", lw=0.8)
        axes.set_xticks(at, MEDIA, rotation=40, ha="right")
        axes.set_ylabel("sales per week")
        axes.legend()


if __name__ == "__main__":
    main()
