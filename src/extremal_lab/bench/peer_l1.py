"""l1 logistic regression by other packages: CPU time to a relative accuracy, over that of one scipy full gradient.

Run ``python peer_l1.py DATA.npz REPEATS MOST`` in an environment that has the packages, with one thread; it does not need
extremal. DATA holds the rows, and for each problem the radius R, the matching penalty lambda, and the least value f*. A peer
gets lambda, its own format of the data, and the best of a sweep over its tolerance or number of iterations, so it pays for no
stopping test. A point outside of the ball is projected before it is scored, off the clock. A second test gives R only: a root
search on log lambda (lambda_max / 7, / 49, ... until |x|_1 > R, then Brent's method), which ends at the first good point.
The program writes a line of JSON for each result. MOST limits the cost of a fit in scipy gradients; beyond it a sweep ends.
"""

from __future__ import annotations

import importlib
import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq
from scipy.special import expit

PRECISIONS = (1e-4, 1e-6)
TOLERANCES = tuple(10.0 ** (-third / 3) for third in range(28))  # 1 to 1e-9
EPOCHS = tuple(round(2 ** (half / 2)) for half in range(4, 25))  # 4 to 4096
FACTOR = 7.0  # between the first penalties of a search: not 10, because the problems were made at round shares of lambda_max
SHORT = 0.5  # CPU seconds of a fit that gets all repeats; longer fits get three
Fit = Callable[[float, float], np.ndarray]  # (lambda, setting) -> x


@dataclass(frozen=True)
class Given:
    """A problem: the rows, the radius, the matching penalty, and the least value."""

    name: str
    A: Any  # CSR
    y: np.ndarray
    radius: float
    lam: float
    least: float

    def score(self, x: np.ndarray) -> float:
        """(f(P x) - f*) / f*, with P the projection onto the ball.

        Examples
        --------
        >>> Given("", sp.csr_array(np.eye(1)), np.ones(1), 1.0, 0.1, np.log1p(np.exp(-1.0))).score(np.array([5.0]))
        0.0
        """
        z = self.y * (self.A @ projected(x, self.radius))
        return float(np.logaddexp(0, -z).mean() / self.least - 1)

    def gradient_seconds(self, times: int = 10) -> float:
        """CPU seconds of one full gradient A' phi'(A x) / n by scipy."""
        A, y, x = self.A, self.y, np.linspace(-1, 1, self.A.shape[1])
        start = time.process_time()
        for _ in range(times):
            _ = A.T @ (-y * expit(-y * (A @ x))) / len(y)
        return (time.process_time() - start) / times


def projected(x: np.ndarray, radius: float) -> np.ndarray:
    """The nearest point of the l1 ball: a threshold for all coordinates, by sorting.

    Examples
    --------
    >>> projected(np.array([3.0, -1.0]), 3.0)
    array([ 2.5, -0.5])
    """
    u = np.abs(x)
    if u.sum() <= radius:
        return x
    order = np.sort(u)[::-1]
    excess = np.cumsum(order) - radius
    last = np.nonzero(order * np.arange(1, len(u) + 1) > excess)[0][-1]
    return np.sign(x) * np.maximum(u - excess[last] / (last + 1), 0)


# the peers: (lambda, setting) -> x, on data in the format of each


def liblinear(A: Any, y: np.ndarray) -> Fit:
    """scikit-learn's liblinear: coordinate Newton with shrinking; the setting is its tolerance."""
    return _sklearn(A, y, "liblinear", lambda tol: {"tol": tol, "max_iter": 100_000, "random_state": 0})


def saga(A: Any, y: np.ndarray) -> Fit:
    """scikit-learn's SAGA; the setting is its number of epochs."""
    return _sklearn(A, y, "saga", lambda epochs: {"tol": 0.0, "max_iter": int(epochs), "random_state": 0})


def _sklearn(A: Any, y: np.ndarray, solver: str, options: Callable[[float], dict[str, Any]]) -> Fit:
    make = importlib.import_module("sklearn.linear_model").LogisticRegression
    rows = sp.csr_matrix(A) if sp.issparse(A) else A

    def fit(lam: float, setting: float) -> np.ndarray:
        made = make(l1_ratio=1.0, solver=solver, C=1 / (len(y) * lam), fit_intercept=False, **options(setting))
        return made.fit(rows, y).coef_[0]

    return fit


def skglm(A: Any, y: np.ndarray) -> Fit:
    """skglm: working sets with Anderson acceleration; the setting is its tolerance."""
    make = importlib.import_module("skglm").SparseLogisticRegression
    columns = by_columns(A)
    options = {"max_iter": 1000, "max_epochs": 100_000, "fit_intercept": False}
    return lambda lam, tol: make(alpha=lam, tol=tol, **options).fit(columns, y).coef_[0]


def by_columns(A: Any) -> Any:
    """CSC, or a dense array whose columns are contiguous: the forms that coordinate descent reads fastest.

    Examples
    --------
    >>> by_columns(np.ones((2, 3))).flags.f_contiguous, by_columns(sp.csr_array(np.eye(2))).format
    (True, 'csc')
    """
    return sp.csc_matrix(A) if sp.issparse(A) else np.asfortranarray(A)


def celer(A: Any, y: np.ndarray) -> Fit:
    """celer: working sets with dual extrapolation; the setting is its tolerance."""
    make = importlib.import_module("celer").LogisticRegression
    columns, n = by_columns(A), len(y)
    options = {"max_iter": 1000, "max_epochs": 100_000}
    return lambda lam, tol: make(C=1 / (n * lam), tol=tol, **options).fit(columns, y).coef_[0]


def snapml(A: Any, y: np.ndarray) -> Fit:
    """snapml: coordinate descent in float32, closed source; the setting is its tolerance."""
    make = importlib.import_module("snapml").LogisticRegression
    rows, n = sp.csr_matrix(A).astype(np.float32), len(y)
    options = {"penalty": "l1", "dual": False, "fit_intercept": False, "n_jobs": 1, "max_iter": 100_000}

    def fit(lam: float, tol: float) -> np.ndarray:
        return np.asarray(make(regularizer=n * lam, tol=tol, **options).fit(rows, y).coef_, dtype=np.float64).ravel()

    return fit


PEERS: dict[str, tuple[Callable[[Any, np.ndarray], Fit], Sequence[float], str]] = {
    "liblinear": (liblinear, TOLERANCES, "sklearn"),
    "saga": (saga, EPOCHS, "sklearn"),
    "skglm": (skglm, TOLERANCES, "skglm"),
    "celer": (celer, TOLERANCES, "celer"),
    "snapml": (snapml, TOLERANCES, "snapml"),
}
SEARCHED = ("liblinear", "skglm", "celer", "snapml")  # saga is nowhere near the best of these


# measurements


def in_passes(given: Given, work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU time of the work over that of a scipy gradient, measured before and after it; and the result of the work."""
    before, start = given.gradient_seconds(), time.process_time()
    answer = work()
    spent = time.process_time() - start
    return 2 * spent / (before + given.gradient_seconds()), answer


def sweep(given: Given, fit: Fit, settings: Sequence[float], most: float) -> list[tuple[float, float, float]]:
    """(setting, cost in passes, score) from the loosest setting on, until the finest precision or the limit is reached."""
    tried: list[tuple[float, float, float]] = []
    for setting in settings:
        cost, x = in_passes(given, lambda setting=setting: fit(given.lam, setting))
        tried.append((setting, cost, given.score(x)))
        if tried[-1][2] <= PRECISIONS[-1] or cost > most:
            break
    return tried


def cheapest(tried: Sequence[tuple[float, float, float]], precision: float) -> float | None:
    """The setting that reaches the precision at the least cost.

    Examples
    --------
    >>> cheapest([(1.0, 5.0, 0.1), (0.1, 9.0, 1e-5), (0.01, 8.0, 1e-7)], 1e-4)
    0.01
    """
    reached = [(cost, setting) for setting, cost, score in tried if score <= precision]
    return min(reached)[1] if reached else None


def repeated(work: Callable[[], float], first: float, repeats: int) -> list[float]:
    """The costs of the work: ``repeats`` repeats if one takes less than half a second, three otherwise."""
    return [work() for _ in range(repeats if first < SHORT else min(3, repeats))]


def searched(given: Given, fit: Fit, setting: float, precision: float) -> tuple[float, int, float]:
    """CPU seconds, solves and the best score of a root search on log lambda; infinite seconds if it fails.

    The root is that of log(|x|_1 / R), which is nearly linear in log lambda. The search solves for no penalty twice, and never
    for lambda_max, where x = 0.
    """
    largest = float(np.abs(given.A.T @ given.y).max() / (2 * len(given.y)))
    spent, scores, known = 0.0, [math.inf], {math.log(largest): -3.0}

    def excess(log_lam: float) -> float:
        nonlocal spent
        if log_lam not in known:
            start = time.process_time()
            x = fit(math.exp(log_lam), setting)
            spent += time.process_time() - start
            scores.append(given.score(x))
            if scores[-1] <= precision:
                raise StopIteration
            known[log_lam] = math.log(max(float(np.abs(x).sum()) / given.radius, 1e-3))
        return known[log_lam]

    high, step = math.log(largest), math.log(FACTOR)
    try:
        while excess(high - step) < 0 and len(scores) < 12:
            high -= step
        brentq(excess, high - step, high, xtol=1e-12, maxiter=30)
    except StopIteration:
        return spent, len(scores) - 1, min(scores)
    except (RuntimeError, ValueError):  # no sign change, or no end
        pass
    return math.inf, len(scores) - 1, min(scores)


def measured(given: Given, name: str, repeats: int, most: float) -> Iterator[dict[str, Any]]:
    """The results of one peer on one problem."""
    make, settings, package = PEERS[name]
    fit = make(given.A, given.y)
    fit(given.lam, settings[len(settings) // 3])  # compiled and warm: a loose setting would not compile everything
    version = getattr(importlib.import_module(package), "__version__", "")  # snapml has none
    tried = sweep(given, fit, settings, most)
    for precision in PRECISIONS:
        said = {"problem": given.name, "peer": name, "version": version, "precision": precision}
        setting = cheapest(tried, precision)
        if setting is None:
            yield said | {"kind": "fit", "best": min(tried, key=lambda t: t[2])}
            continue
        yield said | {"kind": "fit", "setting": setting, "passes": _fits(given, fit, setting, repeats)}
        if name in SEARCHED:
            yield said | {"kind": "search"} | _searches(given, fit, setting, settings, precision, repeats)


def _fits(given: Given, fit: Fit, setting: float, repeats: int) -> list[float]:
    unit = given.gradient_seconds()
    first, _ = in_passes(given, lambda: fit(given.lam, setting))
    return repeated(lambda: in_passes(given, lambda: fit(given.lam, setting))[0], first * unit, repeats)


def _searches(
    given: Given, fit: Fit, setting: float, settings: Sequence[float], precision: float, repeats: int
) -> dict[str, Any]:
    """The root search at the cheapest setting and at two tighter ones; the best of these, repeated."""
    at = settings.index(setting)
    trials = [(searched(given, fit, tighter, precision), tighter) for tighter in settings[at : at + 6 : 2]]
    (seconds, solves, score), best = min(trials)
    if math.isinf(seconds):
        return {"best": [best, solves, score]}

    def once() -> float:
        before = given.gradient_seconds()
        spent = searched(given, fit, best, precision)[0]
        return 2 * spent / (before + given.gradient_seconds())

    return {"setting": best, "solves": solves, "passes": repeated(once, seconds, repeats)}


def main(path: str, repeats: int, most: float, *names: str) -> None:
    """Measure all installed peers on all problems of a file."""
    warnings.simplefilter("ignore")
    arrays = np.load(path, allow_pickle=False)
    A = sp.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"]))
    for name in names or PEERS:
        try:
            importlib.import_module(PEERS[name][2])
        except ImportError as error:
            _say({"peer": name, "missing": str(error)})
            continue
        for problem, radius, lam, least in zip(*(arrays[k] for k in ("names", "radii", "lams", "least")), strict=True):
            given = Given(str(problem), A, arrays["y"], float(radius), float(lam), float(least))
            for said in measured(given, name, repeats, most):
                _say(said)


def _say(said: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), *sys.argv[4:])
