"""Finite sums f(x) = (1/n) sum_i f_i(x): the contract, and linear models.

What fixes grad f_i is called its derivative c_i: one number for a linear model (grad f_i = c_i a_i), k numbers for one
with k outputs (grad f_i = a_i c_i'), the gradient itself otherwise. Estimators store and subtract derivatives only, so a
table of them costs what it must and no more.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.points.composed import Chord
from extremal.points.manifolds import Manifold
from extremal.points.vertex import Vertex

RowIndex = np.ndarray | None  # indices of components; None means all of them


class Segment(Protocol):
    """f on the segment from x to x + d, as a function of the step: t -> f(x + t d); d = s - x for a vertex s."""

    @property
    def grads_per_slope(self) -> int: ...  # component gradients that one slope costs
    def value(self, t: float) -> float: ...
    def slope(self, t: float) -> float: ...  # <grad f(x + t d), d>


class Smooth(Protocol):
    """The contract of an objective, as methods of full gradients know it."""

    @property
    def n(self) -> int: ...  # number of components
    @property
    def shape(self) -> tuple[int, ...]: ...  # shape of x
    @property
    def dtype(self) -> np.dtype: ...  # float type of x
    @property
    def convex(self) -> bool: ...
    @property
    def deriv_shape(self) -> tuple[int, ...]: ...  # shape of one c_i
    @property
    def smoothness(self) -> float: ...  # L: grad f is L-Lipschitz
    def value(self, x: np.ndarray) -> float: ...
    def grad(self, x: np.ndarray) -> np.ndarray: ...
    def value_and_grad(self, x: np.ndarray) -> tuple[float, np.ndarray]: ...
    def along(self, x: np.ndarray, s: Vertex | Chord) -> Segment: ...
    def ready(self) -> None: ...  # whatever takes long once: the solver asks for it before its clock starts


class Objective(Smooth, Protocol):
    """The contract of a finite sum: all that methods know of it, which may draw batches."""

    def derivs(self, x: np.ndarray, idx: RowIndex = None) -> np.ndarray: ...  # c_i for i in idx
    def combine(self, c: np.ndarray, idx: RowIndex = None) -> np.ndarray: ...  # mean over idx of the gradients c stands for
    def values(self, x: np.ndarray, idx: RowIndex = None) -> np.ndarray: ...  # f_i(x) for i in idx


def has_batches(f: object) -> bool:
    """Whether f is a sum whose terms can be asked alone."""
    return not checks.lacks(f, "derivs", "combine")


def check_batches(f: object) -> None:
    """Refuse what is no finite sum."""
    if not has_batches(f):
        kind = type(f).__name__
        raise InputError(f"{kind} has no batches, as it is no sum of functions of one row each; use a method of full gradients")


def manifold_of(f: object) -> Manifold | None:
    """The manifold that gradients of f are tangent vectors of; None of an objective that does not say."""
    return getattr(f, "manifold", None)


def is_factored(f: object) -> bool:
    """Whether f asks for matrices in factors: those of `Entries` do."""
    return bool(getattr(f, "factored", False))
