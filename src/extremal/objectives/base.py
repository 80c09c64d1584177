"""Finite sums f(x) = (1/n) sum_i f_i(x): the contract, and the choice of components for each step.

The derivative c_i determines grad f_i. It is one number for a linear model (grad f_i = c_i a_i). It is k numbers for k outputs
(grad f_i = a_i c_i'), and the gradient itself otherwise. Estimators store and subtract derivatives only, so their tables are
as small as possible.

Draws of components depend only on (seed, shard, step), never on the code path. The readable loop, compiled bursts, shards on
disk and remote workers therefore draw the same rows, and a resumed run continues with the same draws. Batches are drawn for
many steps at a time, O(b) each, because making a generator costs as much as a small batch. Coins have their own stream, so
rows do not depend on the number of coin flips.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.kernels.arguments import kernels
from extremal.points.composed import Chord, Place
from extremal.points.manifolds import Manifold
from extremal.points.vertex import Vertex

RowIndex = np.ndarray | None  # indices of components; None means all of them
ROWS, COINS, START, SECOND, FRESH, ORDER, IN_PASSES, GRADIENT_NOISE, POINT_NOISE, SYNCS, BLOCKS = range(11)  # random streams
_COIN_BLOCK = 1024
_BITS = 2**25  # up to this many rows, a bit for each row marks those already drawn
_OF_PARTS = 2**18  # how many numbers are drawn at once for the parts of batches
_STEPS, _ROWS = 16384, 65536  # batches are drawn at once for this many steps, or this many rows


class Segment(Protocol):
    """f on the segment from x to x + d, as a function of the step: t -> f(x + t d); d = s - x for a vertex s."""

    @property
    def grads_per_slope(self) -> int: ...  # component gradients per slope
    def value(self, t: float) -> float: ...
    def slope(self, t: float) -> float: ...  # <grad f(x + t d), d>


@dataclass(frozen=True)
class Parabola:
    """f on a segment, if f is quadratic there: known by three numbers, so that no probe costs anything."""

    start: Any  # f(x)
    fall: Any  # <grad f(x), d>
    bend: Any  # d' H d
    grads_per_slope: int = 0

    def value(self, t: float) -> float:
        return self.start + t * (self.fall + t * self.bend / 2)

    def slope(self, t: float) -> float:
        return self.fall + t * self.bend


class Smooth(Protocol):
    """The contract of an objective for methods of full gradients."""

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
    def ready(self) -> None: ...  # slow one-time work: the solver calls this before its clock starts


class InParts(Protocol):
    """The contract of an objective that knows a part of its gradient from its margins, at the cost of that part.

    A place is an index of x that selects a block of it. Margins are linear in x, except for a constant.
    """

    def value_grad_margins(self, x: np.ndarray) -> tuple[float, np.ndarray, Any]: ...  # f(x), its gradient, the margins of x
    def part_margins(self, place: Place, way: np.ndarray) -> Any: ...  # their change if x[place] changes by way
    def part(self, z: Any, place: Place) -> np.ndarray: ...  # grad f(x)[place], given the margins of x
    def between(self, z: Any, dz: Any) -> Segment: ...  # f along a line of margins


PARTS = ("value_grad_margins", "part_margins", "part", "between")


class Objective(Smooth, Protocol):
    """The contract of a finite sum for methods that may draw batches."""

    def derivs(self, x: np.ndarray, idx: RowIndex = None) -> np.ndarray: ...  # c_i for i in idx
    def combine(self, c: np.ndarray, idx: RowIndex = None) -> np.ndarray: ...  # mean over idx of the gradients that c represents
    def values(self, x: np.ndarray, idx: RowIndex = None) -> np.ndarray: ...  # f_i(x) for i in idx


def has_batches(f: object) -> bool:
    """Whether f is a sum whose terms can be evaluated separately."""
    return not checks.lacks(f, "derivs", "combine")


def check_batches(f: object) -> None:
    """Refuse objectives that are not finite sums."""
    if not has_batches(f):
        kind = type(f).__name__
        raise InputError(f"{kind} has no batches: it is not a sum of functions of one row each; use a method of full gradients")


def manifold_of(f: object) -> Manifold | None:
    """The manifold whose tangent vectors are the gradients of f; None if the objective names none."""
    return getattr(f, "manifold", None)


def is_factored(f: object) -> bool:
    """Whether f asks for matrices in factors, as objectives over `Entries` do."""
    return bool(getattr(f, "factored", False))


class Sampler:
    """Draw batches of component indices, and coins, for one shard of n components.

    Parameters
    ----------
    n : int
        Number of components.
    seed : int
        The same seed gives the same draws.
    shard : int
        Number of the shard; data in memory are shard 0.
    blocks : bool
        Batches are consecutive rows from a random start, wrapping around at the end. This reads faster, and suits rows that are
        already in random order (see `LinearModel.shuffled`).
    bounds : sequence of int, optional
        The first row of each part, and n. A batch of b then consists of m_s consecutive rows of each part s, wrapping around,
        with m_s = floor(u + b N_s / n) - floor(u + b N_(s-1) / n) for one uniform u. N_s is the number of rows up to part s. The
        m_s sum to b, and every row has the same probability of being in a batch.

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
        self._drawn: dict[int, tuple[tuple[int, int, bool], np.ndarray]] = {}  # stream: key of the draw, and the rows
        self._coins_of, self._coins = -1, np.empty(0)
        self._taken = np.zeros(0, np.uint64)  # one bit per row, to draw distinct rows

    def saved_state(self) -> dict[str, object]:
        """What a checkpoint keeps of it: its draws depend on nothing else."""
        bounds = self.bounds if len(self.bounds) > 2 else None
        return {"n": self.n, "seed": self.seed, "shard": self.shard, "blocks": self.blocks, "bounds": bounds}

    def restore_state(self, state: Mapping[str, Any]) -> None:
        """Take a saved state."""
        type(self).__init__(self, **{name: state[name] for name in ("n", "seed", "shard", "blocks", "bounds")})

    def rows(self, k: int, batch: int, replace: bool = False, stream: int = ROWS) -> np.ndarray:
        """The batch of step k: ``batch`` uniform indices. They are distinct unless ``replace``, so a batch of n has all rows.

        Batches of one size are drawn for many steps at once. For sizes that change from step to step, use ``fresh``.
        """
        return self.ahead(k, batch, replace, stream)[0]

    def ahead(self, k: int, batch: int, replace: bool = False, stream: int = ROWS) -> np.ndarray:
        """The batches of step k and of all later steps drawn together with it, one batch per row.

        Examples
        --------
        >>> a = Sampler(100, seed=0)
        >>> bool((a.ahead(3, 5)[2] == a.rows(5, 5)).all())
        True
        """
        steps = max(1, min(_STEPS, _ROWS // max(1, batch)))
        key = batch, k // steps, replace
        if stream not in self._drawn or self._drawn[stream][0] != key:
            self._check(batch, replace)
            rows = self._drawn_at(stream, key[1], steps, batch, replace)
            rows.flags.writeable = False  # a user's callable sees views of it
            self._drawn[stream] = key, rows
        return self._drawn[stream][1][k % steps :]

    def fresh(self, k: int, batch: int, replace: bool = False) -> np.ndarray:
        """The batch of step k from its own generator, for batches that grow."""
        self._check(batch, replace)
        return self._draw(self._rng(FRESH, k), 1, batch, replace)[0]

    def order(self) -> np.ndarray:
        """All indices in random order."""
        return self._rng(ORDER, 0).permutation(self.n)

    def coin(self, k: int) -> float:
        """A uniform number in [0, 1) for step k."""
        return float(self.coins(k)[0])

    def coins(self, k: int) -> np.ndarray:
        """The coins of step k and of some later steps."""
        block, at = divmod(k, _COIN_BLOCK)
        if block != self._coins_of:
            self._coins, self._coins_of = self._rng(COINS, block).random(_COIN_BLOCK), block
        return self._coins[at:]

    def start(self) -> np.ndarray:
        """One index, for estimators that start from a single component."""
        return self._rng(START, 0).integers(0, self.n, size=1)

    def noise(self, k: int, stream: int) -> np.random.Generator:
        """A generator of step k, for one stream of compressed messages."""
        return self._rng(stream, k)

    def ready(self) -> None:
        """Compile the drawing of distinct rows, so that the clock of a run does not pay for it."""
        if self.n > 2 and not self.blocks:
            self.fresh(0, 2)

    def _check(self, batch: int, replace: bool) -> None:
        """Refuse a batch of more distinct rows than there are: compiled loops would search for them forever."""
        if batch < 1 or (batch > self.n and not replace):
            raise InputError(f"`Sampler.rows(batch=...)` must be from 1 to {self.n}, the number of components, got {batch}")

    def _drawn_at(self, stream: int, block: int, steps: int, batch: int, replace: bool) -> np.ndarray:
        """The batches of steps block * steps, ..., block * steps + steps - 1."""
        return self._draw(self._rng(stream, block), steps, batch, replace)

    def _draw(self, rng: np.random.Generator, steps: int, batch: int, replace: bool) -> np.ndarray:
        if batch == self.n and not replace:
            return np.tile(np.arange(self.n), (steps, 1))
        if self.blocks and len(self.bounds) == 2:  # wrap around, so that every row is in equally many blocks
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
        """Consecutive rows of each part, wrapping around; the parts share a batch by their sizes and one uniform number."""
        sizes = np.diff(self.bounds)
        u = rng.random((steps, 1 + len(sizes)))
        counts = shared_counts(self.bounds, batch, u[:, :1]).reshape(-1)
        starts = (u[:, 1:] * sizes).astype(np.int64).reshape(-1)
        each = np.repeat(np.arange(len(counts)), counts)  # index of a step and a part
        part, place = each % len(sizes), np.arange(len(each)) - (np.cumsum(counts) - counts)[each]
        return (self.bounds[part] + (starts[each] + place) % sizes[part]).reshape(steps, batch)

    def _rng(self, stream: int, block: int) -> np.random.Generator:
        return np.random.default_rng((self.seed, self.shard, stream, block))


def shared_counts(bounds: np.ndarray, batch: int, u: float | np.ndarray) -> np.ndarray:
    """The number of rows that each part contributes to a batch; the parts lie between ``bounds`` b_0 = 0 < b_1 < ... < n.

    For a column of numbers u, each row of the result holds the counts for one u.

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
