"""Quadratic objectives, expanded around a point: values and gradients from one Hessian, with bounds on their rounding."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from extremal.checks import InputError
from extremal.data.rows import RowData
from extremal.losses.weighted import unweighted
from extremal.objectives.alike import first_total
from extremal.objectives.column_blocks import ColumnBlock, Slice, is_quadratic
from extremal.objectives.quadratics import CentredQuadratic, SliceOfQuadratic
from extremal.objectives.works import QuadraticSums
from extremal.quadratic.search import is_definite
from extremal.support.kinds import Numbers
from extremal.support.values import changed

if TYPE_CHECKING:
    from extremal.objectives.margins import MarginModel

MOST_EXPANDED = 3000  # the Hessian of all columns is formed up to this many,
WORTH_PASSES = 8.0  # if it takes no more time than this many passes for each set that f is minimised over;
BLAS = 16.0  # columns of dense rows whose squares take the time of one pass,
SCATTERED = 2.0  # and entries of a sparse row
NOISE = 0.1  # rounding, and the end of a quadratic problem, do not matter up to this share of the accuracy of the run,
EARLY_NOISE = 1e-3  # and up to this share of f at the start of a run
NARROW = 100  # columns up to which a product with the whole Hessian takes no longer than the choice of its rows
MORE_TERMS = 8  # further terms in the sums of an evaluation


class Aim(NamedTuple):
    """The accuracy that a run asks for: gap <= tol |f| + atol, over a set of a diameter."""

    tol: float = 0.0
    atol: float = 0.0
    diameter: float = math.inf


EXACT_AIM = Aim()  # rounding always matters


@dataclass(frozen=True, eq=False)
class Expansion(CentredQuadratic):
    """A quadratic f around a centre.

        f(c + d) = f(c) + <g, d> + d'Hd / 2,   grad f(c + d) = g + H d

    No row is read: a value and a gradient cost a product with H. With h_j^2 = H_jj, the length m of the longest sum, and the
    root mean square r of the terms of g, rounding changes the gradient and the value by at most

        |change of g_j| <= m eps h_j (r + <h, |d|>),   |change of f| <= m eps (r + <h, |d|>)^2

    because (|A|'|A|)_jk / n <= h_j h_k. The bound of f includes the rounding of f(c). At a centre whose gradient was computed
    from the rows, r is 0. Where the bounds exceed a tenth of the accuracy that the run asks for, rows are read.
    """

    rows: Any  # f itself, as the run counts it
    n: int
    shape: tuple[int, ...]
    H: np.ndarray  # the Hessian of all columns
    h: np.ndarray  # root mean squares of the columns
    unit: float  # m eps
    c: np.ndarray  # the centre
    value: float  # f(c)
    g: np.ndarray  # grad f(c)
    r: float  # the root mean square of the terms of g; 0 if g is from the rows
    aim: Aim = EXACT_AIM
    roots: dict[bytes, Any] = field(default_factory=dict)  # factors of the Hessian that steps asked for, by their columns

    def of(self, rows: Any, aim: Aim) -> Expansion:
        """The same for a run: f as it counts it, and the accuracy that it asks for."""
        return changed(self, rows=rows, aim=aim)

    def at(self, x: np.ndarray, value: float, g: np.ndarray) -> Expansion:
        """The same f around another point, with its value and gradient from the rows."""
        return replace(self, c=x, value=value, g=g, r=0.0)

    def bent(self, d: np.ndarray) -> np.ndarray:
        used = d.nonzero()[0] if len(d) > NARROW else d
        return d @ self.H if 2 * len(used) > len(d) else d[used] @ self.H[used]

    def rounding(self, x: np.ndarray) -> tuple[float, float]:
        """Bounds on the rounding of the value, and of the gap over the set of the run."""
        reach = self.r + float(self.h @ np.abs(x - self.c))
        return self.unit * reach * reach, self.unit * reach * self._length * self.aim.diameter

    @cached_property
    def _length(self) -> float:
        return math.sqrt(float(self.h @ self.h))

    def suffices(self, value: float, rounding: tuple[float, float], early: bool = False) -> bool:
        """Whether rounding does not matter for the run."""
        return max(rounding) <= max(self.within(value), EARLY_NOISE * abs(value) if early else 0.0)

    def within(self, value: float) -> float:
        """A tenth of the accuracy that the run asks for."""
        return NOISE * (self.aim.tol * abs(value) + self.aim.atol)

    def value_grad_margins(self, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """f(x), its gradient, and x; from the rows if rounding matters."""
        value, g = self.look(x)
        if not self.suffices(value, self.rounding(x)):
            value, g, _ = self.rows.value_grad_margins(x)
        return value, g, x

    def on_columns(self, W: np.ndarray) -> Slice:
        return _Known(self, W)


@dataclass(frozen=True)
class _Known(SliceOfQuadratic):
    """Some coordinates of an expansion: a part of its Hessian."""

    f: Expansion

    def hessian(self, z: Any, far: bool = False, width: float = 0.0) -> np.ndarray:
        H = self.f.H
        return H if len(self.W) == len(H) else H[np.ix_(self.W, self.W)]

    def root(self, z: Any, far: bool = False, width: float = 0.0) -> np.ndarray | None:
        """From the rows, once for each W: the digits that H has lost are wanted."""
        key, rows = self.W.tobytes(), self.f.rows
        if key not in self.f.roots:
            self.f.roots[key] = rows.on_columns(self.W).root(rows.inner.zero)
        return self.f.roots[key]


def worth_expanding(f: MarginModel, sets: int = 1) -> bool:
    """Whether the Hessian of all columns of a quadratic f is soon cheaper than passes over the rows.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.ones((500, 200)), np.zeros(500))
    >>> worth_expanding(f), worth_expanding(f, sets=100)
    (False, True)
    """
    if not isinstance(f.data, RowData):
        return False
    n, d = f.data.shape
    entries = f.data.nnz / n
    passes = d / BLAS if 2 * entries > d else entries / SCATTERED
    return d <= min(n, MOST_EXPANDED) and d * d <= 4 * f.data.nnz and passes <= WORTH_PASSES * sets


def expansion_of(f: MarginModel, rows: Any) -> Expansion | None:
    """f around 0: one read of the rows for the Hessian and the gradient, or two more with an intercept.

    None if rounding may have lost the least curvature of f, as with columns that nearly depend on others.
    """
    if not is_quadratic(f) or not isinstance(f.data, RowData):
        raise InputError(
            f"an expansion needs rows and a loss with a constant second derivative such as Squared(), got {f.loss!r}"
        )
    n, d = f.data.shape
    (H, g, value, r), squares = _sums(f, f.data) if f.is_finite_sum else _centred(f, f.data)
    unit = (f.data.longest_sum + d + MORE_TERMS) * 0.5 * float(np.finfo(f.data.dtype).eps)
    h = np.sqrt(np.maximum(H.diagonal() + squares, 0.0))
    if not _has_digits(H, h, d * unit):
        return None
    return Expansion(rows, n, f.shape, H, h, unit, np.zeros(d), value, g, math.sqrt(max(r, 0.0)))


def _has_digits(H: np.ndarray, h: np.ndarray, rounding: float) -> bool:
    """Whether the least eigenvalue of H, relative to the sizes of the columns, exceeds its rounding."""
    there = h > 0
    unit = 1.0 / np.where(there, h, 1.0)
    scaled = H * unit
    scaled *= unit[:, None]
    scaled.flat[:: len(h) + 1] += ~there - rounding
    return is_definite(scaled)


def _sums(f: MarginModel, data: RowData) -> tuple[tuple[np.ndarray, np.ndarray, float, float], float]:
    """The Hessian, the gradient, the value and the mean of phi'^2 / phi'' at 0."""
    curvature = unweighted(f.loss).curvature if f.weights is None else None
    H, g, value, r = first_total(data, QuadraticSums(f.loss, f.y, curvature, data.shape[1] ** 2))
    H /= f.n
    return (H, g / f.n, value / f.n, r / f.n), 0.0


def _centred(f: MarginModel, data: RowData) -> tuple[tuple[np.ndarray, np.ndarray, float, float], Numbers]:
    """The same with an intercept; and the squared means of the columns, which the Hessian does not show."""
    zero, block = f.zero, ColumnBlock(f, np.arange(data.shape[1]))
    H, g, (mean, total) = np.asarray(block.hessian(zero)), data.tdot(f.derivs_at(zero)), block.mean(f.second_at(zero))
    return (H, g / f.n, f.value_at(zero), f.tail_ratio(zero)), 0.0 if mean is None else np.square(mean) * (total / f.n)
