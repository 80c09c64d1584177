"""Sparse logistic regression over all l1 balls at once, and the ball that cross-validation chooses."""

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

TIE = 1e-10  # scores that differ by less, relative to the best one, are the same


class SparseLogisticPath(PathClassifier):
    """Logistic regression over l1 balls of many radii: the whole path, every solution certified.

        x_r, b_r = argmin over |x|_1 <= r, and b, of  f(x, b) = sum_i s_i log(1 + exp(-y_i (<a_i, x> + b))) / sum_i s_i

    for each radius r; s are the sample weights, and the intercept b is outside of the constraint. A radius is a budget: the
    coefficients' absolute values sum to r at most, exactly, and few of them are not zero if it is small. With more than two
    classes there is such a problem for each class against the rest, all over the same balls.

    Left to itself, the grid has ``n_radii`` radii in equal ratios from R / 200 to R. R is where more radius hardly pays: the
    least value of f falls by |grad f(x_r)|_inf for each unit of r, and at R this is about eps of what it is at r = 0 (for the
    class that has use for the largest R). It goes with the scale of X, and is finite for separable data. Scale features that
    are measured in different units: a ball treats all of them alike.

    Cost: the balls are taken from the largest to the smallest, each search begins where the last three solutions lead, and
    takes a few passes over the rows. Memory: n_radii x d numbers for each class.

    Parameters
    ----------
    radii, n_radii : array of float, optional, and int
        The radii; a grid of ``n_radii`` if left out.
    eps : float
        What the largest radius of the grid is worth, in (0, 1): see above. Smaller for a longer grid.
    fit_intercept : bool
        Whether there is an intercept.
    class_weight : "balanced" or dict, optional
        Weights of the classes, times those of the rows; "balanced" gives every class the same total.
    tol : float
        Each solution has a certified gap of at most tol f (or, where f is next to nothing, 1e-4 tol of f without features).
        float32 rows allow 1e-5 at best, which is taken then.
    max_iter : int
        Iterations for each radius, at most.
    random_state : int, RandomState or None
        Seed of the solver, for the rows that it looks at first where there are many.
    verbose : int
        1 shows how far the fit is, as for `extremal.minimize`; its last line is the certificate.

    Attributes
    ----------
    radii_ : array of shape (n_radii,)
        The radii, increasing.
    coefs_, intercepts_ : array of shape (n_radii, d) and (n_radii,)
        The solutions; (n_radii, K, d) and (n_radii, K) with K > 2 classes.
    objectives_, dual_gaps_ : arrays of shape (n_radii,), or (n_radii, K)
        f of each solution, and how far above the minimum it is at most.
    n_nonzero_ : array of shape (n_radii,)
        Features with a coefficient that is not 0.
    coef_, intercept_ : array of shape (1, d) and (1,), or (K, d) and (K,)
        Those of the largest radius, ``radius_``.
    objective_, dual_gap_, constraint_, constraint_violation_, certificate_
        How good these are: sums over the classes, the ball, 0, and all of it to read.
    classes_, n_iter_, n_grads_, status_
        As of every estimator here; iterations and component gradients are totals.

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
        """Solve for every radius; X is an array or a sparse matrix, and a row of weight 2 is a row twice.

        A `ShardDir` brings its own targets and weights, and is given alone.
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
    """Logistic regression in an l1 ball whose radius is chosen by cross-validation, with warm starts in every fold.

        radius_ = argmax over r of the mean over folds of score(x_r of the other folds, rows of the fold)

    where x_r solves the problem of `SparseLogisticPath`. The radii are those of all rows that were given to `fit`, and the same
    in every fold. All solutions are certified.

    Cost: a path (a few passes over the rows for each radius) in each fold, and one for all rows.

    Parameters
    ----------
    radii, n_radii, eps, fit_intercept, class_weight, tol, max_iter, random_state, verbose
        As for `SparseLogisticPath`. "balanced" classes are balanced over all rows.
    cv : int, splitter or iterable of (train, test), optional
        How the folds are made; five, with the shares of the classes kept, if left out.
    scoring : str or callable (estimator, X, y), optional
        What is best if largest; minus the log loss if left out, weighted by ``sample_weight``.
    rule : "best" or "one-std"
        The radius of the best mean score, or the smallest one whose mean score is within one standard error (of the mean, at
        the best radius) of it: a sparser model that is hardly worse. Among equals it is always the smallest.
    refit : bool
        Whether the chosen radius is solved for with all rows. Otherwise ``coef_`` and ``intercept_`` are the means over the
        folds, which are in the ball as well.
    n_jobs : int, optional
        Folds at a time; one if left out, all processors for -1.

    Attributes
    ----------
    radius_ : float
        The radius that was chosen, one of ``radii_``.
    scores_ : array of shape (n_folds, n_radii)
        The scores.
    coef_, intercept_ : arrays of shape (1, d) and (1,), or (K, d) and (K,)
        The solution for ``radius_``.
    radii_, coefs_, intercepts_, objectives_, dual_gaps_, n_nonzero_, ...
        The path for all rows, as of `SparseLogisticPath`.

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
        """Choose the radius, and solve for it; weights count in the fits and in the scores.

        ``params`` are for the splitter (``groups``) and the scorer, with scikit-learn's metadata routing switched on.
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
        """Who asks for what is given to `fit`: the splitter and the scorer."""
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
    """The path for the first rows of the fold, and its scores on the second; ``model`` is what scorers get to see."""
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
    """The rows' share of something that has an entry for each row."""
    return np.asarray(value)[rows] if isinstance(value, Sized) and len(value) == n else value


def minus_log_loss(model: PathClassifier, rows: PathRows) -> float:
    """The weighted mean of the logarithms of the probabilities of the rows' classes."""
    logs = model.predict_log_proba(rows.X)[np.arange(len(rows.codes)), rows.codes]
    return float(np.average(logs, weights=rows.given))


def chosen(scores: np.ndarray, rule: str) -> int:
    """Which radius: of the best mean score, or the smallest within a standard error of it; the smallest among equals."""
    mean = scores.mean(axis=0)
    if not np.isfinite(mean).all():
        raise InputError("`SparseLogisticPathCV(scoring=...)` must give finite scores, got a NaN or an infinity")
    best = int(np.argmax(mean >= mean.max() - TIE * abs(mean.max())))
    return best if rule == "best" else int(np.argmax(mean >= mean[best] - standard_error(scores)[best]))


def router(model: Any) -> MetadataRouter:
    """Metadata for the splitter and, where one is named, the scorer."""
    found = MetadataRouter(owner=model).add_self_request(model)
    found.add(splitter=model.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
    if model.scoring is not None:
        found.add(scorer=get_scorer(model.scoring), method_mapping=MethodMapping().add(caller="fit", callee="score"))
    return found


def routed(
    model: BaseEstimator, sample_weight: ArrayLike | None, params: dict[str, object]
) -> tuple[dict[str, object], dict[str, object]]:
    """What the splitter gets, and what the scorer gets."""
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
