"""Matrices by columns, each in a set of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from extremal.checks import InputError
from extremal.points.plain import DenseVertex, SparseVertex
from extremal.points.vertex import Vertex
from extremal.sets.base import ConvexSet
from extremal.sets.made.blocks import row_answers
from extremal.sets.made.cuts import check_set, on_shape


@dataclass(frozen=True, eq=False, repr=False)
class Columns(ConvexSet):
    """Matrices whose columns each lie in a copy of one set of vectors.

        {x : x[:, j] in C for all j},   lmo(g)[:, j] = lmo_C(g[:, j])

    `Rows` of the transposed matrix: one oracle call for each column, one pass over g if C is a `Simplex`, an `L1Ball` around 0
    or a `Box`. The vertex is sparse if the columns' are, else dense. Diameter sqrt(columns) times C's, exact if that is.

    Parameters
    ----------
    C : ConvexSet
        The set of a column.
    shape : tuple of int, optional
        Shape of the points, (rows, columns); any if left out.

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
