"""What an iterate, a vertex and an atom are: kept as small as their structure allows."""

from extremal.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
