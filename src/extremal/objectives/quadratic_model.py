"""Quadratic functions of a combination of rows, such as duals of linear models."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from extremal import checks
from extremal.checks import InputError
from extremal.data.accept import as_rows
from extremal.data.rows import InMemory
from extremal.objectives.base import Parabola
from extremal.objectives.row_parts import part_product, product_part
from extremal.points.composed import Chord, Place
from extremal.points.vertex import Vertex, dot64


class QuadraticModel:
    """A quadratic function of a combination of rows: the dual of a linear model, or a risk that comes from factors.

        f(x) = (1/2) |A'x - t|^2 + <b, x>,   grad f(x) = A (A'x - t) + b

    x has one number for each row of A, or k numbers: then x has shape (n, k), A'x and t have shape (p, k). A full gradient costs
    two passes over A. The margins of x are A'x - t and <b, x>. From known margins the part of the gradient that belongs to a row
    costs one product with this row, and f on a line costs nothing: `BlockFW` keeps the margins, and a step of one block reads
    the rows of that block only. One row's part of the gradient counts as one component gradient, so n of them are a pass.

    Parameters
    ----------
    A : array or scipy sparse matrix of shape (n, p)
        The rows, in memory.
    target : array of shape (p,) or (p, k), optional
        t. Default: 0.
    linear : array of the shape of x, optional
        b. Default: 0.

    Examples
    --------
    The point of the hull of three points that is nearest to (1, 1):

    >>> import numpy as np, extremal as ex
    >>> f = QuadraticModel([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]], target=[1.0, 1.0])
    >>> ex.minimize(f, ex.Simplex(), tol=1e-9).x.round(6)
    array([0. , 0.4, 0.6])
    """

    convex, dtype = True, np.dtype(np.float64)

    def __init__(self, A: Any, target: ArrayLike | None = None, linear: ArrayLike | None = None):
        data = as_rows(A)
        if not isinstance(data, InMemory):
            raise InputError(f"`QuadraticModel(A=...)` must be an array or a sparse matrix in memory, got {data!r}")
        self.data, (self.n, p) = data, data.shape
        t, b = _numbers("target", target, p), _numbers("linear", linear, self.n)
        outputs = next((a.shape[1:] for a in (t, b) if a is not None), ())
        self.target = np.zeros((p, *outputs)) if t is None else t
        self.linear = np.zeros((self.n, *outputs)) if b is None else b
        if self.target.shape[1:] != self.linear.shape[1:]:
            raise InputError(
                f"`QuadraticModel(target=..., linear=...)` must have equally many columns, got shapes {self.target.shape} and "
                f"{self.linear.shape}"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of x."""
        return self.linear.shape

    @property
    def deriv_shape(self) -> tuple[int, ...]:
        """Shape of one row's part of the gradient."""
        return self.shape[1:]

    @cached_property
    def smoothness(self) -> float:
        """L = lambda_max(A A')."""
        return self.data.lambda_max()

    def margins(self, x: np.ndarray) -> np.ndarray:
        """A'x - t, flat, and then <b, x>."""
        return _with_last(self.data.tdot(x) - self.target, dot64(self.linear, x))

    def value(self, x: np.ndarray) -> float:
        """f(x)."""
        return self._at(self.margins(x))

    def grad(self, x: np.ndarray) -> np.ndarray:
        """The full gradient, in two passes."""
        return self.value_and_grad(x)[1]

    def value_and_grad(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """The value and the gradient, in two passes."""
        return self.value_grad_margins(x)[:2]

    def value_grad_margins(self, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """f(x), its gradient and the margins, in two passes."""
        z = self.margins(x)
        return self._at(z), self.data.dot(self._residual(z)) + self.linear, z

    def along(self, x: np.ndarray, s: Vertex | Chord) -> Parabola:
        """f on the segment to s: a parabola, after two products."""
        way = Chord.to(s).image(np.asarray(x), lambda v: v.to_array())
        return self.between(self.margins(x), _with_last(self.data.tdot(way), dot64(self.linear, way)))

    def ready(self) -> None:
        """Compile the products with some rows."""
        self.data.ready(*self.deriv_shape)

    def part_margins(self, place: Place, way: np.ndarray) -> np.ndarray:
        """The change of the margins if x[place] changes by way: products with the rows of the block."""
        change = part_product(self.data, place, way, self.target.shape)
        return _with_last(change, dot64(self.linear[place], np.reshape(way, self.linear[place].shape)))

    def part(self, z: np.ndarray, place: Place) -> np.ndarray:
        """grad f(x)[place] = (A (A'x - t) + b)[place], from the margins."""
        return product_part(self.data, place, self._residual(z)) + self.linear[place]

    def between(self, z: np.ndarray, dz: np.ndarray) -> Parabola:
        """t -> f along a line of margins."""
        return Parabola(self._at(z), dot64(z[:-1], dz[:-1]) + float(dz[-1]), dot64(dz[:-1], dz[:-1]))

    def _at(self, z: np.ndarray) -> float:
        return 0.5 * dot64(z[:-1], z[:-1]) + float(z[-1])

    def _residual(self, z: np.ndarray) -> np.ndarray:
        return z[:-1].reshape(self.target.shape)


def _with_last(a: np.ndarray, last: float) -> np.ndarray:
    """The entries of a, and one more."""
    out = np.empty(a.size + 1)
    out[:-1], out[-1] = a.reshape(-1), last
    return out


def _numbers(name: str, value: ArrayLike | None, length: int) -> np.ndarray | None:
    """The array in float64, None if it is not given."""
    if value is None:
        return None
    a = checks.array("QuadraticModel", name, value)
    if a.dtype.kind not in "biuf" or a.ndim not in (1, 2) or len(a) != length:
        raise InputError(
            f"`QuadraticModel({name}=...)` must hold real numbers in shape ({length},) or ({length}, k), "
            f"got {a.dtype} of shape {a.shape}"
        )
    return checks.finite("QuadraticModel", name, a.astype(np.float64))
