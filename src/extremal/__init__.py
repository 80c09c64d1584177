"""extremal: projection-free learning.

Minimise a finite sum over a convex set that is known through its linear minimisation oracle:

    import extremal as ex
    f = ex.LinearModel(ex.Logistic(), A, y)
    r = ex.minimize(f, ex.L1Ball(20.0), method=ex.SarahFW(batch=227), max_grads=100 * f.n)
    r.x, r.value, r.gap        # exact: for convex f, f(x) - min f <= gap
"""

from extremal.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

__version__ = "0.1.0"
