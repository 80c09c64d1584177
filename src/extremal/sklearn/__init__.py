"""scikit-learn estimators that fit under a constraint and certify how good the fit is."""

from extremal.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
