"""Gradient tracking: agents on a graph, each with a shard of the data, that together follow the gradient of the whole sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.base import Counting, Estimate, Facts, InEpochs, Phase, SomeGradient, Steps, Wrapper, phase_of
from extremal.objectives.base import Objective, RowIndex, Sampler


def metropolis(adjacency: ArrayLike) -> np.ndarray:
    """Mixing matrix of a graph, by the weights of Metropolis: symmetric, so rows and columns sum to 1.

        c_ij = 1 / (1 + max(deg_i, deg_j))  for neighbours,   c_ii = 1 - sum of the others

    Parameters
    ----------
    adjacency : array of shape (m, m)
        Symmetric; i and j are neighbours where it is not zero. The diagonal is not read. The graph must be connected.

    References
    ----------
    Xiao, Boyd, Lall (2005), A scheme for robust distributed sensor fusion based on average consensus.

    Examples
    --------
    >>> metropolis([[0, 1, 0], [1, 0, 1], [0, 1, 0]]).round(2)      # a path of three agents
    array([[0.67, 0.33, 0.  ],
           [0.33, 0.33, 0.33],
           [0.  , 0.33, 0.67]])
    """
    near = _square("metropolis", "adjacency", adjacency) != 0
    np.fill_diagonal(near, False)
    if (near != near.T).any():
        raise InputError("`metropolis(adjacency=...)` must be symmetric: a link goes both ways")
    degree = near.sum(axis=1)
    C = near / (1.0 + np.maximum(degree[:, None], degree))  # c_ij = 1 / (1 + max(deg_i, deg_j))
    return check_mixing("metropolis", C + np.diag(1.0 - C.sum(axis=1)), "adjacency")  # c_ii = 1 - sum_j c_ij


def ring(m: int) -> np.ndarray:
    """Mixing matrix of m agents on a ring: each averages itself and its two neighbours.

    Parameters
    ----------
    m : int
        Number of agents, from 1.

    Examples
    --------
    >>> ring(4).round(2)
    array([[0.33, 0.33, 0.  , 0.33],
           [0.33, 0.33, 0.33, 0.  ],
           [0.  , 0.33, 0.33, 0.33],
           [0.33, 0.  , 0.33, 0.33]])
    """
    next_one = np.roll(np.eye(checks.whole("ring", "m", m, 1)), 1, axis=1)
    return metropolis(next_one + next_one.T)


def complete(m: int) -> np.ndarray:
    """Mixing matrix of m agents that all hear each other: c_ij = 1/m.

    Parameters
    ----------
    m : int
        Number of agents, from 1.

    Examples
    --------
    >>> complete(2)
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    m = checks.whole("complete", "m", m, 1)
    return check_mixing("complete", np.full((m, m), 1.0 / m), "m")


def check_mixing(call: str, mixing: ArrayLike, name: str = "mixing") -> np.ndarray:
    """The matrix in float64; refuses all but doubly stochastic ones under which the agents come to agree."""
    C = _square(call, name, mixing)
    if (C < 0).any():
        raise InputError(f"`{call}({name}=...)` must have no negative weight, got {C.min():g}")
    for axis, what in ((1, "rows"), (0, "columns")):
        off = float(np.abs(C.sum(axis=axis) - 1.0).max())
        if off > 1e-12:
            raise InputError(f"`{call}({name}=...)` must be doubly stochastic: its {what} sum to 1 up to {off:.1e} only")
    if np.abs(np.linalg.eigvals(C - 1.0 / len(C))).max() > 1.0 - 1e-10:
        raise InputError(
            f"`{call}({name}=...)` must let the agents agree: the graph is not connected, or agents only swap places"
        )
    C.flags.writeable = False
    return C


def _square(call: str, name: str, value: object) -> np.ndarray:
    """A float64 copy of a square matrix of finite numbers."""
    C = checks.array(call, name, value)
    if C.ndim != 2 or C.shape[0] != C.shape[1] or C.size == 0 or C.dtype.kind not in "biuf":
        raise InputError(f"`{call}({name}=...)` must be a square matrix of numbers, got shape {C.shape}, dtype {C.dtype}")
    return checks.finite(call, name, C.astype(np.float64))


def mix(C: np.ndarray, stack: np.ndarray) -> np.ndarray:
    """sum_j c_ij v_j for every agent i, summed in float64 so that float32 weights do not drift out of the set."""
    return (C @ stack.reshape(len(C), -1)).astype(stack.dtype, copy=False).reshape(stack.shape)


def bounds(n: int, m: int) -> list[tuple[int, int]]:
    """First row, and the one after the last, of each of m agents: contiguous, sizes that differ by one at most."""
    return [(n * i // m, n * (i + 1) // m) for i in range(m)]


class _Shard(Counting):
    """The mean over one agent's rows, as far as estimators ask for it: f_i = (1/n_i) sum over [first, last)."""

    def __init__(self, f: Objective, first: int, last: int):
        self.whole, self.first, self.n = f, first, last - first
        self.shape, self.dtype, self.convex, self.deriv_shape = f.shape, f.dtype, f.convex, f.deriv_shape
        self.calls = f.calls if isinstance(f, Counting) else None  # wrappers of the estimator may count as well

    def derivs(self, x: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        return self.whole.derivs(x, self._rows(idx))

    def combine(self, c: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        return self.whole.combine(c, self._rows(idx))

    def values(self, x: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        return self.whole.values(x, self._rows(idx))

    def value(self, x: np.ndarray) -> float:
        return float(self.values(x).mean(dtype=np.float64))

    def grad(self, x: np.ndarray) -> np.ndarray:
        return self.combine(self.derivs(x))

    def _rows(self, idx: RowIndex) -> np.ndarray:
        return np.arange(self.first, self.first + self.n) if idx is None else idx + self.first


def agent_share(f: Objective, m: int, i: int) -> tuple[Objective, float]:
    """The mean over the rows of agent i of m, and its weight m n_i / n, so that the mean over agents is f."""
    part = _Shard(f, *bounds(f.n, m)[i])
    return cast(Objective, part), m * part.n / f.n


@dataclass(frozen=True)
class TrackingEstimate(InEpochs):
    """What the agents hold."""

    g: np.ndarray  # p, one row per agent, or their mean if all agents stand at one point
    y: np.ndarray  # the agents' own estimates, (m, *shape)
    s: np.ndarray  # what they track, (m, *shape): its mean is that of y
    own: tuple[Estimate, ...]  # the states of the agents' estimators
    samplers: tuple[Sampler, ...]  # the agents' streams
    exact: bool = False
    phase: Phase | None = None  # where the agents stand in their epoch; they go in step


@dataclass(frozen=True, eq=False)
class Tracking(Wrapper[TrackingEstimate]):
    """Any estimator, run by m agents on their own shards of the rows, and gradient tracking between them.

        y_i an estimate of grad f_i(x_i) by agent i,   mean over i of f_i = f
        s_i = sum_j c_ij s_j,prev + y_i - y_i,prev,    s_i = y_i at the start
        p_i = sum_j c_ij s_j                           what agent i takes for grad f

    The mean of s is that of y at all times. With the move `Consensus`, x and g are stacks of m rows; with any other move
    all agents stand at its one point, and g is the mean of p. Agent i owns the rows [n i/m, n (i+1)/m), with a stream of
    its own, and f_i is m n_i/n times their mean. It costs what the m estimators cost on n_i components each, m vectors for
    each of y, s and p, and two exchanges between neighbours a step (one for s, one for p).

    Parameters
    ----------
    gradient : Gradient
        What each agent runs, on its n_i components: `Storm` in DMFW, `Full` in its deterministic form.
    mixing : array of shape (m, m)
        c, doubly stochastic: `ring`, `complete`, `metropolis` or your own.

    References
    ----------
    Hou, Zeng, Wang, Sun, Chen (2022), Distributed momentum-based Frank-Wolfe algorithm for stochastic optimization,
    arXiv:2208.04053; Wai, Lafond, Scaglione, Moulines (2017), Decentralized Frank-Wolfe, arXiv:1612.01216.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.gradients.Tracking(ex.gradients.Storm(batch=5), ex.gradients.ring(4))
    Tracking(gradient=Storm(batch=5, rho=PowerLaw(scale=1.0, shift=1.0, power=-1.0), replace=False), mixing=<4 x 4>)
    """

    gradient: SomeGradient
    mixing: Any

    def __post_init__(self):
        super().__post_init__()
        checks.fix(self, mixing=check_mixing("Tracking", self.mixing))

    def __repr__(self) -> str:
        return f"Tracking(gradient={self.gradient!r}, mixing={in_brief(self.mixing)})"

    def facts(self, n: int) -> Facts:
        """The sum of the agents' costs, the worst of their constants."""
        if len(self.mixing) > n:
            raise InputError(f"`Tracking(mixing=...)` must have at most one agent per component, got {len(self.mixing)} for {n}")
        each = [self.gradient.facts(last - first) for first, last in bounds(n, len(self.mixing))]
        if each[0].needs or each[0].one_vertex:
            raise InputError(f"Tracking cannot run {type(self.gradient).__name__}, which follows the one vertex of a plain move")
        costs: list[Any] = [facts.per_step for facts in each]
        return Facts(
            start=sum(facts.start for facts in each),
            per_step=(lambda k: sum(cost(k) for cost in costs)) if callable(costs[0]) else sum(costs),
            d=None if each[0].d is None else max(facts.d or 1.0 for facts in each),
            agents=len(self.mixing),
            c=min(facts.c for facts in each),
            epochs=each[0].epochs,
        )

    def init(self, f: Objective, x: np.ndarray, sampler: Sampler) -> TrackingEstimate:
        m, parts, points = len(self.mixing), self._parts(f), self._points(f, x)
        samplers = tuple(Sampler(part.n, sampler.seed, sampler.shard * m + i) for i, part in enumerate(parts))
        own = tuple(self.gradient.init(parts[i], points[i], samplers[i]) for i in range(m))
        y = self._weighted(f, parts, own)
        return self._estimate(f, x, y, y, own, samplers)

    def update(
        self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: TrackingEstimate, sampler: Sampler
    ) -> TrackingEstimate:
        old, new, parts = self._points(f, x_prev), self._points(f, x), self._parts(f)
        own = tuple(
            self.gradient.update(parts[i], k, old[i], new[i], (), state.own[i], state.samplers[i]) for i in range(len(parts))
        )
        y = self._weighted(f, parts, own)
        s = y + (mix(self.mixing, state.s) - state.y)  # s_i = sum_j c_ij s_j,prev + y_i - y_i,prev
        return self._estimate(f, x, y, s, own, state.samplers)

    def _estimate(
        self, f: Objective, x: np.ndarray, y: np.ndarray, s: np.ndarray, own: tuple[Estimate, ...], samplers: tuple[Sampler, ...]
    ) -> TrackingEstimate:
        p = mix(self.mixing, s)  # p_i = sum_j c_ij s_j
        return TrackingEstimate(p if x.shape == p.shape else p.mean(axis=0), y, s, own, samplers, phase=phase_of(own[0]))

    def _weighted(self, f: Objective, parts: list[Objective], own: tuple[Estimate, ...]) -> np.ndarray:
        """y_i = (m n_i / n) times agent i's estimate, so that the mean of f_i is f for shards of unequal size too."""
        return np.stack([(len(parts) * part.n / f.n) * state.g for part, state in zip(parts, own, strict=True)])

    def _parts(self, f: Objective) -> list[Objective]:
        return [cast(Objective, _Shard(f, first, last)) for first, last in bounds(f.n, len(self.mixing))]

    def _points(self, f: Objective, x: np.ndarray) -> np.ndarray:
        """One point per agent."""
        stack = (len(self.mixing), *f.shape)
        if x.shape not in (stack, f.shape):
            raise InputError(f"Tracking has {stack[0]} agents, but the move has {len(x)}: give both the same mixing matrix")
        return np.broadcast_to(x, stack)


def in_brief(a: np.ndarray) -> str:
    """A matrix by its shape."""
    return f"<{a.shape[0]} x {a.shape[1]}>"
