"""One fold of a cross-validation over many balls, the choice of a radius, and what splitters and scorers ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.metrics import get_scorer
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from extremal.checks import InputError
from extremal.sklearn.options import Options
from extremal.sklearn.paths.balls import BallPath, solve_ball
from extremal.sklearn.paths.base import PathClassifier, PathRows
from extremal.sklearn.plots.drawing import standard_error

TIE = 1e-10  # scores that differ by less, relative to the best one, are the same


def one_fold(
    model: PathClassifier,
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
    return path, _scores(model, path, radii, rows.take(test), scoring, params)


def _some(value: Any, rows: np.ndarray, n: int) -> Any:
    """The rows' share of something that has an entry for each row."""
    return np.asarray(value)[rows] if isinstance(value, Sized) and len(value) == n else value


def _scores(
    model: Any, path: BallPath, radii: np.ndarray, held: PathRows, scoring: object, params: Mapping[str, object]
) -> np.ndarray:
    model._keep(held.classes, radii, path)
    model.n_features_in_ = held.X.shape[1]
    scores = np.empty(len(radii))
    scorer = None if scoring is None else get_scorer(scoring)
    for i, radius in enumerate(radii):
        model.coef_, model.intercept_ = model._at(radius)
        scores[i] = minus_log_loss(model, held) if scorer is None else scorer(model, held.X, held.y, **params)
    return scores


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
