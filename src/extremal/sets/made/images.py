"""Linear maps of sets: the image under a matrix, the points that permutations leave unchanged, columns instead of rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from extremal import checks
from extremal.checks import InputError
from extremal.points.composed import Place
from extremal.points.vertex import Coordinate, DenseVertex, SparseVertex, Vertex
from extremal.sets.base import ConvexSet
from extremal.sets.made.blocks import row_answers
from extremal.sets.made.cuts import check_set, on_shape
from extremal.sets.oracle import member
from extremal.sets.shared import matrix_argument, scaled_gradient


@dataclass(frozen=True, eq=False, repr=False)
class LinearImage(ConvexSet):
    """The image of a set under a matrix: an ellipsoid from a ball, a zonotope from a box, a hull of columns from a simplex.

        {A x : x in C},   lmo(g) = A lmo_C(A'g)

    A call costs two products with A and an oracle call of C; if C's answer has few non-zeros, only those columns of A are
    read. The vertex is sparse if A and C's answers are, otherwise dense. The diameter is a bound, |A|_2 times that of C, exact
    if A is a multiple of an isometry. For sparse A, the smaller of sqrt(|A|_1 |A|_inf) and |A|_F replaces |A|_2. ``contains``
    has no formula: it runs Frank-Wolfe steps toward x, with many oracle calls.

    Parameters
    ----------
    A : array or scipy sparse matrix of shape (p, d)
        The matrix; a point x of C enters as ``x.reshape(-1)``.
    C : ConvexSet
        A set whose points have d entries; a set of open shape becomes a set of vectors of length d.

    References
    ----------
    Rockafellar (1970), Convex Analysis, section 16 (support functions).

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> C = LinearImage(np.array([[3.0, 0.0], [0.0, 1.0]]), ex.L2Ball(1.0))     # an ellipse
    >>> C.lmo(np.array([-1.0, 0.0])).to_array()
    array([3., 0.])
    >>> C.lmo(np.array([-1.0, -4.0])).to_array().round(12)
    array([1.8, 0.8])
    """

    A: Any
    C: ConvexSet
    shape: tuple[int, ...] | None = field(init=False, default=None)

    def __post_init__(self):
        A, C = matrix_argument("LinearImage", "A", self.A, by_columns=True), check_set("LinearImage", self.C)
        C = C.on(A.shape[1]) if C.shape is None else C
        if math.prod(C.shape or ()) != A.shape[1]:
            raise InputError(f"`LinearImage(A=...)` must have a column for each entry of a point of {C}, got shape {A.shape}")
        self._fix(A=A, C=C, shape=(A.shape[0],))

    def lmo(self, g: np.ndarray) -> Vertex:
        u, scale = scaled_gradient(self, g)
        v = self.C.lmo((self.A.T @ u).reshape(self.C.shape))
        return replace(self._image(v), low=None if v.low is None else scale * v.low)

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        return member(self, x, tol)

    @property
    def diameter(self) -> float:
        return self._norm * self.C.diameter

    def start(self) -> np.ndarray:
        return self.A @ np.asarray(self.C.start()).reshape(-1)

    def _image(self, v: Vertex) -> SparseVertex | DenseVertex:
        """A v, by the columns of A where v is not zero."""
        A, sparse = self.A, sp.issparse(self.A)
        if isinstance(v, Coordinate):
            if not sparse:
                return DenseVertex(v.value * A[:, v.j])
            cut = slice(A.indptr[v.j], A.indptr[v.j + 1])
            return SparseVertex(A.indices[cut], v.value * A.data[cut], (A.shape[0],))
        if isinstance(v, SparseVertex):
            some = A[:, v.indices]
            image = some @ v.values
            rows = np.unique(some.indices) if sparse else None
            return DenseVertex(image) if rows is None else SparseVertex(rows, image[rows], image.shape)
        return DenseVertex(A @ v.to_array().reshape(-1))

    @cached_property
    def _norm(self) -> float:
        if not sp.issparse(self.A):
            return float(np.linalg.norm(self.A, 2))
        size = abs(self.A)
        return min(math.sqrt(size.sum(axis=0).max() * size.sum(axis=1).max()), float(np.linalg.norm(self.A.data)))


@dataclass(frozen=True, eq=False, repr=False)
class Symmetrised(ConvexSet):
    """The points of a set that given permutations of the entries leave unchanged.

        {x in C : x[p] = x for every permutation p} = {R x : x in C},   R x = the mean of x over each orbit
        lmo(g) = R lmo_C(R g)

    C must be invariant: if x is in C, so is x[p]. The constructor does not check this, and without invariance answers may lie
    outside the set. Permutations that generate the group are enough. Orbits are computed once; a call then costs two means
    over the orbits and an oracle call of C. The vertex is sparse if C's is, otherwise dense. The diameter is that of C, which
    is an upper bound.

    For symmetric matrices in a set of square ones, ``np.arange(n * n).reshape(n, n).T.reshape(-1)`` is the transposition.

    Parameters
    ----------
    C : ConvexSet
        A set that the permutations map to itself.
    permutations : array of int of shape (k, d), or list of index arrays of length d
        Indices into ``x.reshape(-1)``; the list need not contain the identity, products or inverses.
    shape : int or tuple of int, optional
        Shape of the points. Default: the shape of C.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> transpose = np.arange(4).reshape(2, 2).T.reshape(-1)
    >>> C = Symmetrised(ex.L1Ball(1.0, shape=(2, 2)), [transpose])
    >>> C.lmo(np.array([[0.0, -3.0], [1.0, 0.0]])).to_array()
    array([[0. , 0.5],
           [0.5, 0. ]])
    """

    C: ConvexSet
    permutations: Any
    shape: tuple[int, ...] | None = None

    def __post_init__(self):
        self._fix(permutations=_permutations(self.permutations))
        C, d = on_shape("Symmetrised", check_set("Symmetrised", self.C), self.shape), self.permutations.shape[1]
        if C.shape is not None and math.prod(C.shape) != d:
            raise InputError(f"`Symmetrised(permutations=...)` must have an index for each entry of shape {C.shape}, got {d}")
        self._fix(C=C, shape=C.shape)

    def lmo(self, g: np.ndarray) -> Vertex:
        u, scale = scaled_gradient(self, g)
        v = self.C.lmo(self._mean(u))
        return replace(self._image(v), low=None if v.low is None else scale * v.low)

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """Whether x is in C, and x[p] = x up to tol times the size of C."""
        if not self.C.contains(x, tol):
            return False
        size = max(self.C.on(x.shape).diameter, float(np.abs(x).max()))
        return float(np.abs(x - self._mean(x)).max()) <= tol * size

    @property
    def diameter(self) -> float:
        return self.C.diameter

    def start(self) -> np.ndarray:
        return self._mean(np.asarray(self.C.start()))

    @cached_property
    def _orbits(self) -> tuple[np.ndarray, np.ndarray]:
        """The orbit of each entry, and the sizes of the orbits."""
        from scipy.sparse.csgraph import connected_components  # imported at first use: the import is slow

        k, d = self.permutations.shape
        places = np.tile(np.arange(d), k), self.permutations.reshape(-1)
        _, orbit = connected_components(sp.coo_array((np.ones(k * d), places), shape=(d, d)), directed=False)
        return orbit, np.bincount(orbit)

    def _mean(self, x: np.ndarray) -> np.ndarray:
        """R x, in float64."""
        orbit, sizes = self._orbits
        return (np.bincount(orbit, x.reshape(-1)) / sizes)[orbit].reshape(x.shape)

    def _image(self, v: Vertex) -> SparseVertex | DenseVertex:
        """R v."""
        if not isinstance(v, (Coordinate, SparseVertex)):
            return DenseVertex(self._mean(v.to_array()))
        orbit, sizes = self._orbits
        one = isinstance(v, Coordinate)
        sums = np.bincount(orbit[[v.j]] if one else orbit[v.indices], [v.value] if one else v.values, len(sizes))
        indices = np.flatnonzero(sums[orbit])
        return SparseVertex(indices, (sums / sizes)[orbit[indices]], v.shape)


@dataclass(frozen=True, eq=False, repr=False)
class Columns(ConvexSet):
    """Matrices whose columns each lie in one and the same set of vectors.

        {x : x[:, j] in C for all j},   lmo(g)[:, j] = lmo_C(g[:, j])

    These are the `Rows` of the transposed matrix. A call costs one oracle call per column, or one pass over g if C is a
    `Simplex`, an `L1Ball` around 0 or a `Box`. The vertex is sparse if the columns' vertices are, otherwise dense. The
    diameter is sqrt(columns) times that of C, exact if C's is.

    Parameters
    ----------
    C : ConvexSet
        The set of a column.
    shape : tuple of int, optional
        Shape of the points, (rows, columns). Default: any.

    Examples
    --------
    Weights of three models for each of two targets:

    >>> import numpy as np, extremal as ex
    >>> Columns(ex.Simplex()).lmo(np.array([[1.0, 0.0], [3.0, -1.0], [-2.0, 2.0]])).to_array()
    array([[0., 0.],
           [0., 1.],
           [1., 0.]])
    """

    C: ConvexSet
    shape: tuple[int, ...] | None = None

    def __post_init__(self):
        C = check_set("Columns", self.C)
        self._fix(C=C)
        if self.shape is not None:
            if len(self.shape) != 2:
                raise InputError(f"`Columns(shape=...)` must be (rows, columns), got {self.shape}")
            self._fix(C=on_shape("Columns", C, self.shape[:1]))

    def n_blocks(self) -> int:
        """The number of columns."""
        return self._known_shape("n_blocks()")[1]

    def block(self, i: int) -> tuple[Place, ConvexSet]:
        """The index of column i, and its set."""
        return (slice(None), i), self.C

    def lmo(self, g: np.ndarray) -> Vertex:
        v = row_answers(self.C.on(g.shape[0]), np.ascontiguousarray(g.T))
        if not isinstance(v, SparseVertex):
            return DenseVertex(np.ascontiguousarray(v.to_array().T), v.low)
        column, row = np.divmod(v.indices, g.shape[0])
        flat = row * g.shape[1] + column
        order = np.argsort(flat)
        return replace(v, indices=flat[order], values=v.values[order], shape=g.shape)

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        return all(self.C.contains(np.ascontiguousarray(column), tol) for column in x.T)

    @property
    def diameter(self) -> float:
        return math.sqrt(self._known_shape("diameter")[1]) * self.C.diameter

    def start(self) -> np.ndarray:
        return np.stack([np.asarray(self.C.start())] * self._known_shape("start()")[1], axis=1)


def _permutations(value: object) -> np.ndarray:
    a = np.atleast_2d(checks.array("Symmetrised", "permutations", value))
    right = a.ndim == 2 and a.size > 0 and a.dtype.kind in "iu" and (np.sort(a, axis=1) == np.arange(a.shape[1])).all()
    if not right:
        raise InputError(
            "`Symmetrised(permutations=...)` must be index arrays of one length d, each with every index from 0 to d - 1 once"
        )
    a = a.astype(np.int64)
    a.flags.writeable = False
    return a
