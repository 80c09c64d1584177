"""Sparse logistic regression over l1 balls of many radii, and the choice of a radius by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.metrics import get_scorer
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed

from extremal import checks
from extremal.checks import InputError
from extremal.sklearn.held import check_in_memory, rows_near
from extremal.sklearn.options import Folds, Options, Scoring
from extremal.sklearn.paths.balls import BallPath, averaged, solve_ball
from extremal.sklearn.paths.base import PathClassifier, PathRows
from extremal.sklearn.plots.drawing import standard_error
from extremal.support.kinds import MatrixLike

TIE = 1e-10  # scores that differ by less than this, relative to the best score, are ties


class SparseLogisticPath(PathClassifier):
    """Logistic regression over l1 balls of many radii: the whole path, with a certificate for every solution.

        x_r, b_r = argmin over |x|_1 <= r, and b, of  f(x, b) = sum_i s_i log(1 + exp(-y_i (<a_i, x> + b))) / sum_i s_i

    for each radius r. s are the sample weights, and the intercept b is not constrained. A radius is a budget: the absolute values
    of the coefficients sum to at most r, exactly. A small radius makes most coefficients zero. With more than two classes there
    is such a problem for each class against the rest, all over the same balls.

    By default, the grid has ``n_radii`` radii in equal ratios from R / 200 to R. The minimum of f falls by |grad f(x_r)|_inf per
    unit of r. At R, this rate is about eps times the rate at r = 0, for the class with the largest such R. R depends on the scale
    of X, and is finite for separable data. Scale features that are measured in different units: a ball treats all of them alike.

    Cost: the balls are solved from the largest to the smallest. Each solve starts from an extrapolation of the last three
    solutions, and takes a few passes over the rows. Memory: n_radii x d numbers for each class.

    Parameters
    ----------
    radii, n_radii : array of float, optional, and int
        The radii. Default: a grid of ``n_radii``.
    eps : float
        Rate of decrease of f at the largest radius of the grid, relative to radius 0, in (0, 1). A smaller eps gives a longer
        grid.
    fit_intercept : bool
        Whether to fit an intercept.
    class_weight : "balanced" or dict, optional
        Class weights, multiplied with the weights of the rows. "balanced" gives every class the same total.
    tol : float
        Each solution has a certified gap of at most tol f, or 1e-4 tol times f without features if f is almost 0. float32 rows
        allow at best 1e-5, which then replaces a smaller tol.
    max_iter : int
        Maximum number of iterations for each radius.
    random_state : int, RandomState or None
        Seed for the rows that the solver samples first if there are many.
    verbose : int
        1 shows the progress of the fit, as `extremal.minimize` does. The last line is the certificate.

    Attributes
    ----------
    radii_ : array of shape (n_radii,)
        The radii, increasing.
    coefs_, intercepts_ : array of shape (n_radii, d) and (n_radii,)
        The solutions; (n_radii, K, d) and (n_radii, K) with K > 2 classes.
    objectives_, dual_gaps_ : arrays of shape (n_radii,), or (n_radii, K)
        f at each solution, and a bound on its distance from the minimum.
    n_nonzero_ : array of shape (n_radii,)
        Number of features with a non-zero coefficient.
    coef_, intercept_ : array of shape (1, d) and (1,), or (K, d) and (K,)
        The solution for the largest radius, ``radius_``.
    objective_, dual_gap_, constraint_, constraint_violation_, certificate_
        The quality of this solution: sums over the classes, the ball, the violation 0, and the certificate in words.
    classes_, n_iter_, n_grads_, status_
        As for every estimator here. Iterations and component gradients are totals.

    References
    ----------
    Tibshirani (1996), Regression shrinkage and selection via the lasso, J. R. Stat. Soc. B 58. Friedman, Hastie, Tibshirani
    (2010), Regularization paths for generalized linear models via coordinate descent, J. Stat. Softw. 33. Jaggi (2013),
    Revisiting Frank-Wolfe, ICML (the certificate).

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(n_samples=200, n_features=30, n_informative=4, random_state=0)
    >>> model = SparseLogisticPath(radii=[0.2, 1.0, 5.0]).fit(X, y)
    >>> model.n_nonzero_
    array([ 2,  4, 18])
    >>> bool((model.dual_gaps_ <= 1e-6 * model.objectives_).all())
    True
    >>> model.predict(X[:3], radius=1.0)
    array([1, 1, 0])
    """

    def fit(self, X: MatrixLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> SparseLogisticPath:
        """Solve for every radius. X is an array or a sparse matrix. A row of weight 2 counts as two rows.

        A `ShardDir` brings its own targets and weights, so y and sample_weight are omitted.
        """
        options = self._options()
        with self._shown():
            with rows_near(X, y, sample_weight) as given:
                ps, n = self._problems(*given, options.intercept)
                radii = self._grid(ps)
                found = solve_ball(ps, radii, options)
            self._keep(self.classes_, radii, found)
            self._store(self._choose(len(radii) - 1, found, n), found.worst_gap(radii))
        return self


@dataclass(eq=False, repr=False, kw_only=True)
class SparseLogisticPathCV(PathClassifier):
    """Logistic regression in an l1 ball with a cross-validated radius, with warm starts in every fold.

        radius_ = argmax over r of the mean over folds of score(x_r of the other folds, rows of the fold)

    where x_r solves the problem of `SparseLogisticPath`. The radii come from all rows passed to `fit`, and are the same in every
    fold. All solutions are certified.

    Cost: one path (a few passes over the rows for each radius) in each fold, and one path for all rows.

    Parameters
    ----------
    radii, n_radii, eps, fit_intercept, class_weight, tol, max_iter, random_state, verbose
        As for `SparseLogisticPath`. "balanced" balances the classes over all rows.
    cv : int, splitter or iterable of (train, test), optional
        The folds. Default: five, stratified by class.
    scoring : str or callable (estimator, X, y), optional
        The score, where larger is better. Default: minus the log loss, weighted by ``sample_weight``.
    rule : "best" or "one-std"
        "best" takes the radius of the best mean score. "one-std" takes the smallest radius whose mean score is within one
        standard error of the best, measured at the best radius: a sparser model that is hardly worse. Ties go to the smallest
        radius.
    refit : bool
        Whether to solve for the chosen radius with all rows. Otherwise ``coef_`` and ``intercept_`` are the means over the folds,
        which lie in the ball, too.
    n_jobs : int, optional
        Number of folds to run in parallel. Default: 1. -1 uses all processors.

    Attributes
    ----------
    radius_ : float
        The chosen radius, one of ``radii_``.
    scores_ : array of shape (n_folds, n_radii)
        The score of each fold at each radius.
    coef_, intercept_ : arrays of shape (1, d) and (1,), or (K, d) and (K,)
        The solution for ``radius_``.
    radii_, coefs_, intercepts_, objectives_, dual_gaps_, n_nonzero_, ...
        The path for all rows, as for `SparseLogisticPath`.

    References
    ----------
    Stone (1974), Cross-validatory choice and assessment of statistical predictions, J. R. Stat. Soc. B 36. Breiman, Friedman,
    Olshen, Stone (1984), Classification and Regression Trees, 3.4.3 (one standard error).

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(n_samples=200, n_features=30, n_informative=4, random_state=0)
    >>> model = SparseLogisticPathCV(radii=[0.2, 1.0, 3.0, 9.0], rule="one-std").fit(X, y)
    >>> model.radius_, model.scores_.shape
    (3.0, (5, 4))
    >>> float(abs(model.coef_).sum()) <= model.radius_
    True
    """

    cv: Folds = None
    scoring: Scoring = None
    rule: Literal["best", "one-std"] = "best"
    refit: bool = True
    n_jobs: int | None = None

    def fit(
        self, X: MatrixLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None, **params: Any
    ) -> SparseLogisticPathCV:
        """Choose the radius, and solve for it. Weights count in the fits and in the scores.

        ``params`` go to the splitter (``groups``) and the scorer, if metadata routing is enabled in scikit-learn.
        """
        options = self._options()
        checks.one_of("`SparseLogisticPathCV(rule=...)`", self.rule, ("best", "one-std"))
        checks.flag("SparseLogisticPathCV", "refit", self.refit)
        advice = "fit SparseLogisticPath to these, and choose its radius by `score` on others"
        check_in_memory("SparseLogisticPathCV.fit", X, "makes folds of rows in memory, and takes", advice)
        rows = self._read_rows(X, y, sample_weight)
        for_split, for_score = routed(self, sample_weight, params)
        splitter: Any = check_cv(cast(Any, self.cv), rows.y, classifier=True)
        folds = list(splitter.split(rows.X, rows.y, **for_split))
        used = rows.used()
        ps = used.problems(options.intercept)
        with self._shown():
            radii = self._grid(ps)
            runs: Any = Parallel(n_jobs=self.n_jobs)(
                delayed(one_fold)(SparseLogisticPath(), rows, fold, radii, options, self.scoring, for_score) for fold in folds
            )
            paths, self.scores_ = [path for path, _ in runs], np.array([scores for _, scores in runs])
            index = chosen(self.scores_, self.rule)
            found = solve_ball(ps, radii, options) if self.refit else averaged(ps, radii, paths)
            self._keep(rows.classes, radii, found)
            self._store(self._choose(index, found, len(used.codes), paths), found.worst_gap(radii))
        return self

    def get_metadata_routing(self) -> Any:
        """The consumers of the metadata of `fit`: the splitter and the scorer."""
        return router(self)


def one_fold(
    model: Any,
    rows: PathRows,
    fold: tuple[object, object],
    radii: np.ndarray,
    options: Options,
    scoring: object,
    for_score: Mapping[str, object],
) -> tuple[BallPath, np.ndarray]:
    """The path for the first rows of the fold, and its scores on the second. Scorers receive ``model``."""
    fit, test = rows.take(rows.weighted(fold[0])), rows.weighted(fold[1])
    if not len(fit.codes) or not len(test):
        raise InputError("`SparseLogisticPathCV(cv=...)` must leave rows with a weight in every fold, and outside of it")
    path = solve_ball(fit.problems(options.intercept), radii, options)
    params = {name: _some(value, test, len(rows.codes)) for name, value in for_score.items()}
    held, scorer, scores = rows.take(test), None if scoring is None else get_scorer(scoring), np.empty(len(radii))
    model._keep(held.classes, radii, path)
    model.n_features_in_ = held.X.shape[1]
    for i, radius in enumerate(radii):
        model.coef_, model.intercept_ = model._at(radius)
        scores[i] = minus_log_loss(model, held) if scorer is None else scorer(model, held.X, held.y, **params)
    return path, scores


def _some(value: Any, rows: np.ndarray, n: int) -> Any:
    """Select rows of a value that has one entry per row; other values pass unchanged."""
    return np.asarray(value)[rows] if isinstance(value, Sized) and len(value) == n else value


def minus_log_loss(model: PathClassifier, rows: PathRows) -> float:
    """The weighted mean log-probability of the classes of the rows."""
    logs = model.predict_log_proba(rows.X)[np.arange(len(rows.codes)), rows.codes]
    return float(np.average(logs, weights=rows.given))


def chosen(scores: np.ndarray, rule: str) -> int:
    """The index of the best mean score, or of the smallest radius within a standard error of it; ties go to the smallest."""
    mean = scores.mean(axis=0)
    if not np.isfinite(mean).all():
        raise InputError("`SparseLogisticPathCV(scoring=...)` must give finite scores, got a NaN or an infinity")
    best = int(np.argmax(mean >= mean.max() - TIE * abs(mean.max())))
    return best if rule == "best" else int(np.argmax(mean >= mean[best] - standard_error(scores)[best]))


def router(model: Any) -> MetadataRouter:
    """Route metadata to the splitter and, if one is named, to the scorer."""
    found = MetadataRouter(owner=model).add_self_request(model)
    found.add(splitter=model.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
    if model.scoring is not None:
        found.add(scorer=get_scorer(model.scoring), method_mapping=MethodMapping().add(caller="fit", callee="score"))
    return found


def routed(
    model: BaseEstimator, sample_weight: ArrayLike | None, params: dict[str, object]
) -> tuple[dict[str, object], dict[str, object]]:
    """The metadata for the splitter, and those for the scorer."""
    if get_config()["enable_metadata_routing"]:
        found: Any = process_routing(model, "fit", sample_weight=sample_weight, **params)
        return dict(found.splitter.split), dict(found.scorer.score) if "scorer" in found else {}
    if params:
        names = ", ".join(params)
        raise InputError(
            f"`{type(model).__name__}.fit({names}=...)` is for the splitter or the scorer: switch metadata routing on first, by "
            "sklearn.set_config(enable_metadata_routing=True)"
        )
    return {}, {} if sample_weight is None else {"sample_weight": sample_weight}
