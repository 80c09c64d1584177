"""The estimators of constrained linear models, and which of them classify."""

from __future__ import annotations

from extremal.sklearn import (
    ConstrainedGLM,
    ConstrainedLinearRegression,
    ConstrainedLogisticRegression,
    ConstrainedMultinomialRegression,
)

MODELS = [ConstrainedLinearRegression, ConstrainedGLM, ConstrainedLogisticRegression, ConstrainedMultinomialRegression]
CLASSIFIERS = MODELS[2:]
