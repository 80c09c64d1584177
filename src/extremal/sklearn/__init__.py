"""scikit-learn estimators that fit under a constraint, and say how good the fit is."""

from typing import TYPE_CHECKING

from extremal.lazy import attach

if TYPE_CHECKING:
    from extremal.sklearn.completion import LowRankCompletion
    from extremal.sklearn.displays import CoefficientsDisplay, ConvergenceDisplay, PathDisplay
    from extremal.sklearn.linear import ConstrainedGLM, ConstrainedLinearRegression
    from extremal.sklearn.logistic import ConstrainedLogisticRegression
    from extremal.sklearn.multinomial import ConstrainedMultinomialRegression
    from extremal.sklearn.paths import SparseLogisticPath, SparseLogisticPathCV
    from extremal.sklearn.plots import plot_coefficients, plot_convergence, plot_path
    from extremal.sklearn.simplex import SimplexRegression
    from extremal.sklearn.stacking import StackingWeights
else:
    __getattr__, __dir__ = attach(__name__, {
        "linear": "ConstrainedGLM ConstrainedLinearRegression",
        "logistic": "ConstrainedLogisticRegression",
        "multinomial": "ConstrainedMultinomialRegression",
        "displays": "CoefficientsDisplay ConvergenceDisplay PathDisplay",
        "paths": "SparseLogisticPath SparseLogisticPathCV",
        "plots": "plot_coefficients plot_convergence plot_path",
        "completion": "LowRankCompletion",
        "simplex": "SimplexRegression",
        "stacking": "StackingWeights",
    })  # fmt: skip

__all__ = [
    "CoefficientsDisplay", "ConstrainedGLM", "ConstrainedLinearRegression", "ConstrainedLogisticRegression",
    "ConstrainedMultinomialRegression", "ConvergenceDisplay", "LowRankCompletion", "PathDisplay", "SimplexRegression",
    "SparseLogisticPath", "SparseLogisticPathCV", "StackingWeights", "plot_coefficients", "plot_convergence", "plot_path",
]  # fmt: skip
