"""Stochastic away, pairwise and blended steps: batches that grow, or variance-reduced gradients in stages.

Linear rates over polytopes need an error of the gradient that falls with f - f*: docs/frontier-proofs.md has the theorems.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.base import SomeGradient
from extremal.gradients.batches import MiniBatch
from extremal.gradients.reduced import Spider, Svrg
from extremal.gradients.table import Saga
from extremal.laws import Doubling, Geometric
from extremal.methods.method import BatchAndStep, Budget, EpochAndStep, Method, root_batch, root_epoch
from extremal.moves.atoms import Away, BlendedPairwise, Pairwise
from extremal.moves.base import SomeMove
from extremal.moves.in_face import InFaceBlended
from extremal.objectives.base import Objective
from extremal.sets.base import ConvexSet
from extremal.steps.adaptive import LineSearch, short_step
from extremal.steps.base import Step

REDUCED = ("svrg", "sarah", "saga")
BATCHES_OF_PASS = 100  # n / BATCHES_OF_PASS rows are the first batch, if it is left out
GROWTH = 1.05  # the factor of batches from one epoch to the next, if it is left out


def _short(f: Objective, step: Step | None) -> Step:
    """A short step if L is known, else a line search: the theorems are about short steps."""
    return step or short_step(f, LineSearch())


@dataclass(frozen=True)
class AwaySFW(BatchAndStep):
    """Away-step stochastic Frank-Wolfe: fresh batches that grow geometrically, away or pairwise steps, short steps.

        g = mean of grad f_i(x) over a new batch of ceil(b growth^k) rows, at most n;   the step is that of `Away` or `Pairwise`
        eta = min(1, -<g, d> / (L |d|^2))

    An iteration takes one batch of component gradients and one LMO; memory: the atoms. The error of g falls geometrically, and so
    does f - f* if f is strongly convex and the set a polytope. Once the batch is n, the method is `AwayFW` with short steps.

    Parameters
    ----------
    batch : int, optional
        b, the first batch. Default: ceil(n / 100).
    step : Step, optional
        Default: `ShortStep`; `LineSearch` if L is not known.
    growth : float
        The factor by which the batch grows in an iteration, at least 1.
    pairwise : bool
        Pairwise steps (the authors' PSFW) instead of away steps (ASFW).

    References
    ----------
    Goldfarb, Iyengar, Zhou (2017), Linear convergence of stochastic Frank Wolfe variants, arXiv:1703.07269. The growth of their
    batches depends on constants of f and the set; here it is a parameter.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((500, 10))
    >>> f = ex.LinearModel(ex.Squared(), A, A @ np.array([0.7, 0.3] + [0] * 8) + 0.1 * rng.standard_normal(500))
    >>> r = ex.minimize(f, ex.Simplex(), method=ex.AwaySFW(), max_grads=100 * f.n, tol=1e-8)
    >>> r.converged, r.x.round(1)[:3]
    (True, array([0.7, 0.3, 0. ]))
    """

    growth: float = 1.1
    pairwise: bool = False

    def __post_init__(self):
        super().__post_init__()
        checks.fix(self, growth=checks.at_least("AwaySFW", "growth", self.growth, 1.0))
        checks.fix_flags(self, "pairwise")

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        b = math.ceil(f.n / BATCHES_OF_PASS) if self.batch is None else checks.whole("AwaySFW", "batch", self.batch, 1, f.n)
        move = Pairwise() if self.pairwise else Away()
        return Method(MiniBatch(Geometric(b, self.growth)), _short(f, self.step), move).prepare(f, C, budget)


@dataclass(frozen=True)
class _Reduced(EpochAndStep):
    """The shared part of three methods: a variance-reduced estimator in stages, short steps, and a move over atoms."""

    gradient: str = "svrg"
    growth: float | None = None

    _move: ClassVar[Callable[[], SomeMove]]

    def __post_init__(self):
        super().__post_init__()
        checks.one_of("gradient", self.gradient, REDUCED)
        call = type(self).__name__
        if self.growth is not None:
            checks.fix(self, growth=checks.at_least(call, "growth", self.growth, 1.0))
        if self.epoch is not None:
            checks.fix(self, epoch=checks.whole(call, "epoch", self.epoch, 1))
        if self.gradient == "saga" and not (self.growth is None and self.epoch is None):
            raise InputError(f'`{call}(gradient="saga")` has no stages: leave out epoch and growth, or use "svrg" or "sarah"')

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        return Method(self._estimator(f), _short(f, self.step), self._a_move()).prepare(f, C, budget)

    def _a_move(self) -> SomeMove:
        return self._move()

    def _estimator(self, f: Objective) -> SomeGradient:
        """The estimator; in stages, its batches may grow."""
        call, growth = type(self).__name__, GROWTH if self.growth is None else self.growth
        b, m = root_batch(call, self.batch, f.n), root_epoch(call, self.epoch, f.n)
        if self.gradient == "saga":
            return Saga(b)
        kind = Svrg if self.gradient == "svrg" else Spider
        return kind(b, m) if growth == 1.0 else kind(Geometric(b, growth), Doubling(m, 1.0, first=None))


@dataclass(frozen=True)
class VRAwayFW(_Reduced):
    """Away steps along variance-reduced gradients, in stages that begin with a full gradient.

        g = grad f(w) + (1/b_t) sum_{i in S} [grad f_i(x) - grad f_i(w)],   w = x at the start of epoch t,   b_t = b growth^t
        x <- x + eta (s - x)  or  x <- x + eta t (x - a),   eta = min(1, -<g, d> / (L |d|^2)),  as `Away`

    The start of an epoch takes n component gradients, another iteration 2 b_t, and each iteration one LMO; memory: the atoms. The
    error of g falls with f - f*, so that f - f* falls linearly in epochs for strongly convex f over a polytope, if the batch is
    large enough. How large depends on f and the set; batches that grow get there.

    Parameters
    ----------
    batch, epoch : int, optional
        b, and the iterations of an epoch. Default: ceil(sqrt n) each.
    step : Step, optional
        Default: `ShortStep`; `LineSearch` if L is not known.
    gradient : "svrg", "sarah" or "saga"
        The estimator: `Svrg`, `Spider` (SARAH in epochs) or `Saga` (a table, no epochs).
    growth : float, optional
        The factor by which the batch grows from one epoch to the next, at least 1. Default: 1.05; 1 for "saga", without epochs.

    References
    ----------
    Goldfarb, Iyengar, Zhou (2016), Semi-stochastic Frank-Wolfe algorithms with away-steps, arXiv:1602.01543; Johnson, Zhang
    (2013) for the estimator; Lacoste-Julien, Jaggi (2015), arXiv:1511.05932, for the move.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((500, 10))
    >>> f = ex.LinearModel(ex.Squared(), A, A @ np.array([0.7, 0.3] + [0] * 8) + 0.1 * rng.standard_normal(500))
    >>> r = ex.minimize(f, ex.Simplex(), method=ex.VRAwayFW(), max_grads=100 * f.n, tol=1e-6)
    >>> r.converged, r.x.round(1)[:3]
    (True, array([0.7, 0.3, 0. ]))
    """

    _move = Away


@dataclass(frozen=True)
class VRPairwiseFW(_Reduced):
    """Pairwise steps along variance-reduced gradients, in stages that begin with a full gradient.

        x <- x + eta w_a (s - a),   s = lmo(g),  a the worst atom,  g and eta as for `VRAwayFW`

    Cost and memory are those of `VRAwayFW`.

    Parameters
    ----------
    batch, epoch, step, gradient, growth
        As for `VRAwayFW`.

    References
    ----------
    Lacoste-Julien, Jaggi (2015), arXiv:1511.05932, for the move; Johnson, Zhang (2013) for the estimator.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((500, 10))
    >>> f = ex.LinearModel(ex.Squared(), A, A @ np.array([0.7, 0.3] + [0] * 8) + 0.1 * rng.standard_normal(500))
    >>> ex.minimize(f, ex.Simplex(), method=ex.VRPairwiseFW(gradient="saga"), max_grads=100 * f.n, tol=1e-6).converged
    True
    """

    _move = Pairwise


@dataclass(frozen=True)
class VRBlendedFW(_Reduced):
    """Blended pairwise steps along variance-reduced gradients, in stages: over atoms, or within faces without atoms.

        x <- x + eta w_a (b - a)  or  x <- x + eta (s - x),   s = lmo(g),  a, b the worst and the best atom,  g as for `VRAwayFW`

    Cost and memory are those of `VRAwayFW`; within faces there are three LMOs in an iteration and no atoms.

    Parameters
    ----------
    batch, epoch, step, gradient, growth
        As for `VRAwayFW`.
    in_faces : bool
        Take a and b from the face that holds x, for sets that know their faces.

    References
    ----------
    Tsuji, Tanaka, Pokutta (2022), and Garber, Meshi (2016), arXiv:1605.06492, for the moves; Johnson, Zhang (2013) for the
    estimator.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((500, 10))
    >>> f = ex.LinearModel(ex.Squared(), A, A @ np.array([0.7, 0.3] + [0] * 8) + 0.1 * rng.standard_normal(500))
    >>> ex.minimize(f, ex.Simplex(), method=ex.VRBlendedFW(in_faces=True), max_grads=100 * f.n, tol=1e-6).converged
    True
    """

    in_faces: bool = False

    _move = BlendedPairwise

    def __post_init__(self):
        super().__post_init__()
        checks.fix_flags(self, "in_faces")

    def _a_move(self) -> SomeMove:
        return InFaceBlended() if self.in_faces else BlendedPairwise()
