"""Decompositions that end whatever they are given.

With an infinity in a matrix LAPACK may loop for ever, and it writes words of its own on stderr; here that is an error at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def svd(a: np.ndarray, **options: Any) -> Any:
    """As `numpy.linalg.svd`; LinAlgError for a NaN or an infinity.

    Examples
    --------
    >>> import numpy as np
    >>> svd(np.diag([3.0, 4.0]), compute_uv=False)
    array([4., 3.])
    >>> svd(np.array([[1.0, np.inf], [0.0, 1.0]]))
    Traceback (most recent call last):
    numpy.linalg.LinAlgError: svd of a matrix with a NaN or an infinity
    """
    return np.linalg.svd(_finite("svd", a), **options)


def lstsq(a: np.ndarray, b: np.ndarray, rcond: float | None = None) -> np.ndarray:
    """The shortest least squares solution of a x = b; LinAlgError for a NaN or an infinity in a or b.

    Examples
    --------
    >>> import numpy as np
    >>> lstsq(np.array([[2.0], [2.0]]), np.array([1.0, 3.0])).round(12)
    array([1.])
    """
    return np.linalg.lstsq(_finite("lstsq", a), _finite("lstsq", b), rcond=rcond)[0]


def _finite(call: str, a: np.ndarray) -> np.ndarray:
    if not np.isfinite(a).all():
        raise np.linalg.LinAlgError(f"{call} of a matrix with a NaN or an infinity")
    return a
