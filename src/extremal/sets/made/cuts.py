"""The part of a set between affine bounds, which methods approach by a penalty, and checks of the parts of composed sets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from extremal.checks import InputError
from extremal.points.vertex import Vertex
from extremal.sets.base import ConvexSet
from extremal.sets.shared import matrix_argument, numbers


@dataclass(frozen=True, eq=False, repr=False)
class AffineCut(ConvexSet):
    """The points of a set that also satisfy affine bounds.

        {x in C : lower <= G x <= upper},   lmo(g) = lmo_C(g), without the bounds

    No cheap oracle handles both. So ``lmo`` answers for C alone, and only methods with a penalty for the bounds, such as
    `MostFW`, accept this set. Their iterates lie in C and approach the cut as the penalty grows; ``violation(x)`` is the
    distance of G x from its bounds. Other methods refuse this set, and other sets cannot contain it.

    The cost of an oracle call and the kind of vertex are as for C. The diameter is that of C, which is an upper bound. The
    constructor does not check that any point of C satisfies the bounds.

    Parameters
    ----------
    C : ConvexSet
        The set to cut.
    G : array or scipy sparse matrix of shape (r, d)
        One row per constraint; a point x enters as ``x.reshape(-1)``.
    lower, upper : float or array of shape (r,), optional
        Bounds on G x, which may be infinite; equal bounds make an equation. At least one of the two is required.
    shape : int or tuple of int, optional
        Shape of the points. Default: the shape of C.

    References
    ----------
    Akhtar, Rajawat (2021), Zeroth and first order stochastic Frank-Wolfe algorithms for constrained optimization,
    arXiv:2107.06534.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> C = AffineCut(ex.Simplex(), G=[[1.0, -1.0, 0.0]], lower=0.0, upper=0.0)     # x_0 = x_1
    >>> C.contains(np.array([0.4, 0.4, 0.2])), C.contains(np.array([0.6, 0.4, 0.0]))
    (True, False)
    >>> round(C.violation(np.array([0.6, 0.4, 0.0])), 12)
    0.2
    """

    C: ConvexSet
    G: Any
    lower: Any = None
    upper: Any = None
    shape: tuple[int, ...] | None = None

    def __post_init__(self):
        self._fix(**check_affine("AffineCut", self.G, self.lower, self.upper))
        C = on_shape("AffineCut", check_set("AffineCut", self.C), self.shape)
        if C.shape is not None and math.prod(C.shape) != self.G.shape[1]:
            raise InputError(
                f"`AffineCut(G=...)` must have a column for each entry of a point of shape {C.shape}, got {self.G.shape[1]}"
            )
        self._fix(C=C, shape=C.shape)

    def lmo(self, g: np.ndarray) -> Vertex:
        """The answer of C: the method approaches the bounds on G x."""
        return self.C.lmo(g)

    @property
    def relaxed(self) -> ConvexSet:
        return self.C

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """Whether x is in C, and G x lies between the bounds up to tol times |row| times the size of C."""
        if not self.C.contains(x, tol):
            return False
        rows = np.sqrt(np.asarray((self.G * self.G).sum(axis=1)).reshape(-1))
        size = float(np.linalg.norm(x.reshape(-1).astype(np.float64))) + self.C.on(x.shape).diameter
        return bool((np.abs(self._excess(x)) <= tol * rows * size).all())

    def violation(self, x: np.ndarray) -> float:
        """|G x - proj(G x)|, the distance of G x from its bounds; proj projects onto [lower, upper]."""
        return float(np.linalg.norm(self._excess(x)))

    @property
    def diameter(self) -> float:
        return self.C.diameter

    def start(self) -> np.ndarray:
        """The start of C, which may violate the bounds."""
        return self.C.start()

    def _excess(self, x: np.ndarray) -> np.ndarray:
        z = self.G @ x.reshape(-1).astype(np.float64)
        return z - np.clip(z, self.lower, self.upper)


def check_set(call: str, C: ConvexSet) -> ConvexSet:
    """Refuse objects that are not sets, and sets whose oracle answers for a larger set."""
    if not isinstance(C, ConvexSet):
        raise InputError(f"`{call}(...)` must be made of sets such as L1Ball(2.0), got {C!r}")
    if C.relaxed is not C:
        raise InputError(f"`{call}(...)` cannot be made of an AffineCut, whose bounds only a method's penalty knows: cut last")
    return C


def on_shape(call: str, C: ConvexSet, shape: tuple[int, ...] | None) -> ConvexSet:
    """C for points of the given shape; C itself if the shape is None."""
    if shape is not None and C.shape is not None and C.shape != shape:
        raise InputError(f"`{call}(...)` must be made of sets with points of shape {shape}, got {C}")
    return C if shape is None else C.on(shape)


def check_affine(call: str, G: Any, lower: ArrayLike | None, upper: ArrayLike | None) -> dict[str, object]:
    """G, lower and upper in float64, checked."""
    G = matrix_argument(call, "G", G)
    if lower is None and upper is None:
        raise InputError(f"`{call}(lower=..., upper=...)`: give at least one of the bounds on G x")
    low, up = (
        _bound(call, name, end if value is None else value, G.shape[0])
        for name, value, end in (("lower", lower, -np.inf), ("upper", upper, np.inf))
    )
    if not ((low <= up) & (low < np.inf) & (up > -np.inf)).all():
        raise InputError(f"`{call}(lower=..., upper=...)` must have lower <= upper everywhere, and a number between them")
    return {"G": G, "lower": low, "upper": up}


def _bound(call: str, name: str, value: object, rows: int) -> np.ndarray:
    """A bound for each row."""
    a = numbers(call, name, value, infinite=True)
    if a.shape not in ((), (rows,)):
        raise InputError(f"`{call}({name}=...)` must be a number, or one for each of the {rows} rows of G, got shape {a.shape}")
    return np.broadcast_to(a, (rows,))
