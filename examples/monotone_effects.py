"""How do I keep a tariff from falling where the risk must not fall?

More points on the licence must not make the premium cheaper, even if the few drivers with many points had a good year. Free
effects of ordered bands jump up and down where data are thin. Users ask for ordered coefficients in generalised linear models:
glum#342 (tariff factors in insurance; glum PR#996 does it by trust-constr), h2o-3#6722 (one coefficient above another),
bambi#1009.

    ConstrainedGLM("poisson", Product((Monotone(0, 4, shape=25), Box(-4, 4, shape=6)))).fit(X, claims)

Here: 10 000 generated policies with a count of claims, 25 bands of points (rare at the top) and 6 other features without a
constraint.
"""

import common
import numpy as np
from scipy.optimize import LinearConstraint, minimize
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import PoissonRegressor

import extremal as ex
from extremal.sklearn import ConstrainedGLM

BANDS, OTHERS = 25, 6
CAP = 4.0  # the largest spread of the bands' effects, and bound on the other effects: far outside of what is found


def policies(n, seed=0):
    """Bands as 0/1 columns and other features, which depend on the band; the true effect rises and levels off."""
    rng = np.random.default_rng(seed)
    band = np.minimum(rng.geometric(0.13, n) - 1, BANDS - 1)
    others = rng.standard_normal((n, OTHERS)) + 0.04 * band[:, None] * np.array([1, -1, 1, 0, 0, 0])
    level = 1.4 * (1 - np.exp(-np.arange(BANDS) / 7))
    rate = np.exp(-1.8 + level[band] + others @ np.array([0.3, 0.25, -0.2, 0.1, 0.0, -0.05]))
    return np.column_stack([np.eye(BANDS)[band], others]), rng.poisson(rate), level


def value_grad(X, y):
    """The mean Poisson loss over (effects, intercept), and its gradient."""
    A = np.column_stack([X, np.ones(len(X))])

    def call(x):
        z = A @ x
        rate = np.exp(np.minimum(z, 30))
        return np.mean(rate - y * z), (rate - y) @ A / len(y)

    return call


def by_isotonic(X, y):
    """The claims per policy of each band, made to rise: the other features are not looked at. The rest of the fit is free."""
    band, free = X[:, :BANDS].argmax(axis=1), PoissonRegressor(alpha=1e-6, max_iter=1000).fit(X, y)
    rates = IsotonicRegression(y_min=1e-3).fit(band, y).predict(np.arange(BANDS))
    return np.concatenate([np.log(rates / rates[0]), free.coef_[BANDS:]])


def by_scipy(X, y, method):
    """The order as linear constraints: effect j + 1 minus effect j is not negative."""
    rises = np.diff(np.eye(BANDS + OTHERS + 1)[:BANDS], axis=0)
    constraint = LinearConstraint(rises, 0, np.inf)
    start = np.append(np.zeros(BANDS + OTHERS), np.log(y.mean()))
    return minimize(value_grad(X, y), start, jac=True, constraints=constraint, method=method, options={"maxiter": 300}).x[:-1]


def by_increments(X, y):
    """The steps from band to band as the unknowns, with bounds: a change of variables by hand."""
    steps = np.hstack([np.cumsum(X[:, :BANDS][:, ::-1], axis=1)[:, ::-1][:, 1:], X[:, BANDS:]])
    bounds = [(0, None)] * (BANDS - 1) + [(None, None)] * (OTHERS + 1)
    start = np.append(np.zeros(steps.shape[1]), np.log(y.mean()))
    x = minimize(value_grad(steps, y), start, jac=True, bounds=bounds, method="L-BFGS-B").x
    return np.concatenate([[0.0], np.cumsum(x[: BANDS - 1]), x[BANDS - 1 : -1]])


def by_cvxpy(cp, X, y):
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    z = X @ w + b
    problem = cp.Problem(cp.Minimize(cp.sum(cp.exp(z) - cp.multiply(y, z)) / len(y)), [cp.diff(w[:BANDS]) >= 0, w[0] == 0])
    problem.solve(solver=cp.CLARABEL)
    return w.value


def main(argv=None):
    args = common.arguments(argv, __doc__)
    X, y, level = policies(1500 if args.small else 10_000)
    C = ex.Product((ex.Monotone(0.0, CAP, shape=BANDS), ex.Box(-CAP, CAP, shape=OTHERS)))

    def error(w):  # of the bands' effects, up to a constant, each policy counted once
        share = X[:, :BANDS].mean(axis=0)
        off = w[:BANDS] - level
        return {"error of the effects": f"{np.sqrt(share @ np.square(off - share @ off)):.3f}"}

    contest = common.Contest(
        common.poisson_loss(X, y),
        violation=lambda w: max(0.0, -np.diff(w[:BANDS]).min()),
        repair=lambda w: np.concatenate([np.maximum.accumulate(w[:BANDS]), w[BANDS:]]),
        notes=error,
        small=args.small,
    )
    free = contest.rival("PoissonRegressor, no constraint", lambda: PoissonRegressor(alpha=1e-6, max_iter=1000).fit(X, y))
    contest.rival("IsotonicRegression of the bands", lambda: by_isotonic(X, y))
    contest.rival("scipy SLSQP", lambda: by_scipy(X, y, "SLSQP"))
    contest.rival("scipy trust-constr", lambda: by_scipy(X, y, "trust-constr"))
    contest.rival("scipy L-BFGS-B, increments by hand", lambda: by_increments(X, y))
    contest.cvxpy("cvxpy, Clarabel", lambda cp: by_cvxpy(cp, X, y))
    model = contest.ours("ConstrainedGLM", lambda: ConstrainedGLM("poisson", C).fit(X, y))
    contest.table(f"Monotone effects: {len(X)} policies, {BANDS} ordered bands, {OTHERS} other features")
    if args.out:
        draw(args.out / "monotone_effects.png", X, level, free.coef_, model.coef_)
    return contest


def draw(path, X, level, free, ours):
    share = X[:, :BANDS].mean(axis=0)
    with common.picture(path) as axes:
        for effect, style in (
            (free[:BANDS], {"color": common.ORANGE, "label": "free fit", "marker": ".", "lw": 0.8}),
            (ours[:BANDS], {"color": common.GREEN, "label": "never falls", "lw": 2}),
            (level, {"color": "black", "label": "true", "ls": ":"}),
        ):
            axes.plot(effect - share @ effect, drawstyle="steps-mid", **style)
        axes.set(xlabel="points on the licence", ylabel="effect on the log of the claims")
        axes.legend()


if __name__ == "__main__":
    main()
