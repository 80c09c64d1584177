"""Iterates, vertices and atoms, stored as compactly as their structure allows."""

from extremal.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
