"""The laboratory beside the library: the paper's experiments, comparisons of your own methods, and benchmarks.

Names are imported at first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
