"""Finite sums f(x) = (1/n) sum_i f_i(x): the contract, and which components a step sees.

What fixes grad f_i is called its derivative c_i: one number for a linear model (grad f_i = c_i a_i), k numbers for one
with k outputs (grad f_i = a_i c_i'), the gradient itself otherwise. Estimators store and subtract derivatives only, so a
table of them costs what it must and no more.

Components are drawn by a function of (seed, shard, step) alone, never of the path that asks. So the readable loop, compiled
bursts, shards on disk and workers elsewhere draw the same rows, and a run that is taken up again goes on with the same draws.
Batches are drawn for many steps at a time (making a generator costs as much as a small batch), O(b) for each. Coins have a
stream of their own: rows do not depend on how often one is thrown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.kernels.arguments import kernels
from extremal.points.composed import Chord
from extremal.points.manifolds import Manifold
from extremal.points.vertex import Vertex

RowIndex = np.ndarray | None  # indices of components; None means all of them
ROWS, COINS, START, SECOND, FRESH, ORDER = range(6)  # streams
_COIN_BLOCK = 1024
_BITS = 2**25  # up to so many rows, those that are taken are marked by a bit each
_OF_PARTS = 2**18  # numbers that are drawn at once for the parts of batches
_STEPS, _ROWS = 16384, 65536  # batches are drawn for that many steps at once, or for that many rows


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


class Sampler:
    """Draws batches of component indices and coins for one shard of n components.

    Parameters
    ----------
    n : int
        Number of components.
    seed : int
        Same seed, same draws.
    shard : int
        Number of the shard; data in memory are shard 0.
    blocks : bool
        Batches are consecutive rows from a random one on, around the end: for rows that are in random order already (see
        `LinearModel.shuffled`), which are read faster so.
    bounds : sequence of int, optional
        Where parts of the rows begin, and n. A batch of b is then m_s consecutive rows of each part s, around its end, with
        m_s = floor(u + b N_s / n) - floor(u + b N_(s-1) / n) for one uniform u, N_s the rows up to part s. These sum to b, and
        every row is in a batch with the same probability.

    Examples
    --------
    >>> a, b = Sampler(100, seed=0), Sampler(100, seed=0)
    >>> _ = a.rows(7, 5)                                  # asking for more, or in another order, changes nothing
    >>> bool((a.rows(3, 5) == b.rows(3, 5)).all())
    True
    """

    def __init__(self, n: int, seed: int, shard: int = 0, blocks: bool = False, bounds: Sequence[int] | None = None):
        self.n, self.seed, self.shard, self.blocks = n, seed, shard, blocks or bounds is not None
        self.bounds = np.array((0, n) if bounds is None else bounds, np.int64)
        self._drawn: dict[int, tuple[tuple[int, int, bool], np.ndarray]] = {}  # stream: what was drawn, and the rows
        self._coins_of, self._coins = -1, np.empty(0)
        self._taken = np.zeros(0, np.uint64)  # a bit for every row, for drawing distinct ones

    def rows(self, k: int, batch: int, replace: bool = False, stream: int = ROWS) -> np.ndarray:
        """The batch of step k: ``batch`` indices, uniform; distinct unless ``replace``, so n of them are all.

        Batches of one size are drawn for many steps at once; for sizes that change from step to step see ``fresh``.
        """
        return self.ahead(k, batch, replace, stream)[0]

    def ahead(self, k: int, batch: int, replace: bool = False, stream: int = ROWS) -> np.ndarray:
        """The batches of step k and of all steps after it that were drawn with it, one a row.

        Examples
        --------
        >>> a = Sampler(100, seed=0)
        >>> bool((a.ahead(3, 5)[2] == a.rows(5, 5)).all())
        True
        """
        self._check(batch, replace)
        steps = max(1, min(_STEPS, _ROWS // batch))
        key = batch, k // steps, replace
        if stream not in self._drawn or self._drawn[stream][0] != key:
            rows = self._draw(self._rng(stream, key[1]), steps, batch, replace)
            rows.flags.writeable = False  # a user's callable sees views of it
            self._drawn[stream] = key, rows
        return self._drawn[stream][1][k % steps :]

    def fresh(self, k: int, batch: int, replace: bool = False) -> np.ndarray:
        """The batch of step k, from a generator of its own: for batches that grow."""
        self._check(batch, replace)
        return self._draw(self._rng(FRESH, k), 1, batch, replace)[0]

    def order(self) -> np.ndarray:
        """All indices in random order."""
        return self._rng(ORDER, 0).permutation(self.n)

    def coin(self, k: int) -> float:
        """A uniform number in [0, 1) for step k."""
        return float(self.coins(k)[0])

    def coins(self, k: int) -> np.ndarray:
        """The numbers of step k and of some steps after it."""
        block, at = divmod(k, _COIN_BLOCK)
        if block != self._coins_of:
            self._coins, self._coins_of = self._rng(COINS, block).random(_COIN_BLOCK), block
        return self._coins[at:]

    def start(self) -> np.ndarray:
        """One index, for estimators that start from a single component."""
        return self._rng(START, 0).integers(0, self.n, size=1)

    def ready(self) -> None:
        """Compile what distinct rows need, so that no run's clock pays for it."""
        if self.n > 2 and not self.blocks:
            self.fresh(0, 2)

    def _check(self, batch: int, replace: bool) -> None:
        """Refuse a batch of more distinct rows than there are: compiled loops would look for them for ever."""
        if batch < 1 or (batch > self.n and not replace):
            raise InputError(f"`Sampler.rows(batch=...)` must be from 1 to {self.n}, the number of components, got {batch}")

    def _draw(self, rng: np.random.Generator, steps: int, batch: int, replace: bool) -> np.ndarray:
        if batch == self.n and not replace:
            return np.tile(np.arange(self.n), (steps, 1))
        if self.blocks and len(self.bounds) == 2:  # around the end, so that every row is in as many blocks
            return (rng.integers(0, self.n, size=(steps, 1)) + np.arange(batch)) % self.n
        if self.blocks:
            some = max(1, _OF_PARTS // len(self.bounds))
            return np.concatenate([self._of_parts(rng, min(some, steps - k), batch) for k in range(0, steps, some)])
        if replace or batch == 1:
            return rng.integers(0, self.n, size=(steps, batch))
        u, rows = rng.random((steps, batch)), np.empty((steps, batch), np.int64)
        if self.n > _BITS:
            kernels("draw").by_hashes(u, self.n, np.empty(1 << (2 * batch).bit_length(), np.int64), rows)
        else:
            self._taken = self._taken if self._taken.size else np.zeros(self.n // 64 + 1, np.uint64)
            kernels("draw").by_bits(u, self.n, self._taken, rows)
        return rows

    def _of_parts(self, rng: np.random.Generator, steps: int, batch: int) -> np.ndarray:
        """Consecutive rows of each part, around its end; the parts share a batch by their sizes and one uniform number."""
        sizes = np.diff(self.bounds)
        u = rng.random((steps, 1 + len(sizes)))
        counts = shared_counts(self.bounds, batch, u[:, :1]).reshape(-1)
        starts = (u[:, 1:] * sizes).astype(np.int64).reshape(-1)
        each = np.repeat(np.arange(len(counts)), counts)  # a step and a part of it
        part, place = each % len(sizes), np.arange(len(each)) - (np.cumsum(counts) - counts)[each]
        return (self.bounds[part] + (starts[each] + place) % sizes[part]).reshape(steps, batch)

    def _rng(self, stream: int, block: int) -> np.random.Generator:
        return np.random.default_rng((self.seed, self.shard, stream, block))


def shared_counts(bounds: np.ndarray, batch: int, u: float | np.ndarray) -> np.ndarray:
    """How many rows of a batch each part has, in whole numbers: those between ``bounds`` b_0 = 0 < b_1 < ... < n.

    A column of numbers u has a row of counts for each.

    Examples
    --------
    >>> shared_counts(np.array([0, 2, 6]), 3, 0.5), shared_counts(np.array([0, 2, 6]), 3, 0.1)
    (array([1, 2]), array([1, 2]))
    >>> shared_counts(np.array([0, 3, 6]), 1, 0.7), shared_counts(np.array([0, 3, 6]), 1, 0.2)
    (array([1, 0]), array([0, 1]))
    """
    n = int(bounds[-1])
    whole, rest = np.divmod(batch * bounds.astype(object), n) if batch * n > 2**62 else np.divmod(batch * bounds, n)
    ends = whole.astype(np.int64) + (rest.astype(np.float64) / n + u >= 1.0)  # floor(u + b N_s / n) without losing digits
    return np.diff(ends)
