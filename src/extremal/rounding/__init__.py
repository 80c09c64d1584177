"""Points whose constraints hold exactly, in floating point and without a tolerance: the last step of a fit."""

from extremal.rounding.exact import settle, violation

__all__ = ["settle", "violation"]
