"""Rows and targets of a regression over the simplex: by blocks, in float64, reduced to as many rows as columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from extremal.data.rows import RowData
from extremal.losses.margin import Squared
from extremal.objectives.margins import MarginModel
from extremal.sklearn.answer import GAP_ROUNDING
from extremal.sklearn.fitting import model_of

GRAM_COLUMNS = 2000  # up to so many the active-set method keeps a matrix of their products
SMALL_QR = 10**8  # rows times columns squared, up to which an orthogonal factorisation costs next to nothing
PASSES = 1000  # columns for each target, up to which products of the columns cost less than a run for every target
SIMPLEX_BLOCK = 2**18  # numbers of a block of rows


@dataclass(frozen=True)
class SimplexRows:
    """The data of a fit: rows, targets (n, t), weights, and whether their means are taken off."""

    X: RowData
    y: np.ndarray
    weights: np.ndarray | None
    centred: bool

    @property
    def count(self) -> int:
        """n."""
        return self.X.shape[0]

    @property
    def columns(self) -> int:
        """d."""
        return self.X.shape[1]

    @property
    def targets(self) -> int:
        """t."""
        return self.y.shape[1]

    @property
    def small(self) -> bool:
        """Whether an orthogonal factorisation is worth its digits."""
        return self.count * self.columns**2 <= SMALL_QR

    @cached_property
    def weight(self) -> float:
        """The sum of the weights."""
        return float(self.count if self.weights is None else self.weights.sum(dtype=np.float64))

    def best_solver(self) -> str:
        """By what each would cost."""
        d, few = self.columns, PASSES * self.targets * self.X.fill
        return "active_set" if d <= GRAM_COLUMNS and (self.small or d <= few) else "newton"

    def model(self, t: int) -> MarginModel:
        """The objective of one target."""
        return model_of(Squared(), self.X, self.y[:, t], self.weights, self.centred)

    @cached_property
    def slack(self) -> np.ndarray:
        """What rounding may do to the gap of each target."""
        s = np.ones(self.count) if self.weights is None else self.weights
        about = np.average(self.y, axis=0, weights=s)  # offsets that the columns share, or an intercept takes, are no size
        squares = np.einsum("i,it,it->t", s, self.y - about, self.y - about, dtype=np.float64) / self.weight
        return GAP_ROUNDING[self.X.dtype.itemsize] * squares

    def blocks(self, least: int = 1, dtype: DTypeLike = np.float64) -> Iterator[tuple[np.ndarray, np.ndarray, Any]]:
        """Rows, targets and weights, some at a time, in float64 or as they are."""
        size = max(least, SIMPLEX_BLOCK // (self.columns + self.targets), 1)
        for some, A in self.X.arrays(size):
            s = 1.0 if self.weights is None else self.weights[some, None].astype(dtype)
            yield A.astype(dtype, copy=False), self.y[some].astype(dtype), s

    @cached_property
    def means(self) -> tuple[np.ndarray, np.ndarray]:
        """Of the columns and of the targets."""
        if not self.centred:
            return np.zeros(self.columns), np.zeros(self.targets)
        sums = [((s * A).sum(axis=0), (s * y).sum(axis=0)) for A, y, s in self.blocks()]
        x, y = (np.sum(parts, axis=0) / self.weight for parts in zip(*sums, strict=True))
        return x, y

    def factor(self) -> tuple[np.ndarray, np.ndarray]:
        """R (m, d) and T (m, t), m <= 6 d: |R w - T_t|^2 is the sum of weighted squares but for a constant, to rounding."""
        d, (mean_x, mean_y) = self.columns, self.means
        R, T = np.zeros((0, d)), np.zeros((0, self.targets))
        for A, y, s in self.blocks(least=4 * d):
            root = np.sqrt(s)
            R, T = np.vstack([R, root * (A - mean_x)]), np.vstack([T, root * (y - mean_y)])
            if len(R) > 2 * d:
                Q, R = np.linalg.qr(R)
                T = Q.T @ T
        return R, T

    def products(self, total: float | None) -> tuple[np.ndarray, np.ndarray]:
        """H = A'SA and h = A'Sy, the means taken off, summed over blocks of rows.

        Where the weights sum to ``total``, the mean of each row is taken off its entries, and total times that off its targets:
        no residual changes, and what all columns share costs no digits. Products are made in the float type of X then, and in
        float64 otherwise.
        """
        dtype, d = self.X.dtype if total is not None else np.dtype(np.float64), self.columns
        mean_x, mean_y = (mean.astype(dtype) for mean in self.means)
        H, h = np.zeros((d, d)), np.zeros((d, self.targets))
        for A, y, s in self.blocks(dtype=dtype):
            A, y = A - mean_x, y - mean_y
            if total is not None:
                level = A.mean(axis=1, keepdims=True)
                A -= level
                y -= dtype.type(total) * level
            root = np.sqrt(s)
            A, y = (root * A, root * y) if self.weights is not None else (A, y)
            H += A.T @ A
            h += A.T @ y
        return H, h

    def look(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """f, its gradient (d, t) and the best intercepts at weights (d, t), from the residuals."""
        b = self.means[1] - self.means[0] @ x
        value, g = np.zeros(self.targets), np.zeros((self.columns, self.targets))
        for A, y, s in self.blocks():
            r = A @ x + b - y
            value += 0.5 * (s * r * r).sum(axis=0)
            g += A.T @ (s * r)
        return value / self.weight, g / self.weight, b
