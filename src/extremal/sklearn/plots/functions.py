"""Pictures of fitted estimators in one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.base import BaseEstimator

from extremal.sklearn.plots.convergence import ConvergenceDisplay
from extremal.sklearn.plots.displays import CoefficientsDisplay
from extremal.sklearn.plots.path import PathDisplay


def plot_path(estimator: BaseEstimator, **options: Any) -> PathDisplay:
    """Draw the path of a fitted estimator: `PathDisplay.from_estimator`.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from extremal.sklearn import SparseLogisticPath
    >>> X, y = make_classification(random_state=0)
    >>> plot_path(SparseLogisticPath(n_radii=5).fit(X, y)).radii.shape
    (5,)
    """
    return PathDisplay.from_estimator(estimator, **options)


def plot_convergence(*estimators: object, **options: object) -> ConvergenceDisplay:
    """Draw the runs of one or more fitted estimators, or of a mapping of names to them: `ConvergenceDisplay.from_estimators`.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from extremal.sklearn import ConstrainedLogisticRegression
    >>> X, y = make_classification(random_state=0)
    >>> display = plot_convergence(ConstrainedLogisticRegression("l1:2").fit(X, y), y="gap")
    >>> display.ax_.get_ylabel()
    'certified gap'
    """
    named = len(estimators) == 1 and isinstance(estimators[0], Mapping)
    return ConvergenceDisplay.from_estimators(estimators[0] if named else estimators, **options)


def plot_coefficients(estimator: BaseEstimator, **options: Any) -> CoefficientsDisplay:
    """Draw the coefficients of a fitted estimator: `CoefficientsDisplay.from_estimator`.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(random_state=0)
    >>> plot_coefficients(LogisticRegression().fit(X, y), max_features=3).shown_.size
    3
    """
    return CoefficientsDisplay.from_estimator(estimator, **options)
