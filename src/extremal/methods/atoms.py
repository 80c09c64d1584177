"""Full gradients and more than one vertex a step: methods that reach high accuracy over polytopes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from extremal import checks
from extremal.gradients.full import Full
from extremal.methods.method import Budget, Checked, Method, WithCard
from extremal.moves.atoms import Away, BlendedPairwise, Pairwise
from extremal.moves.base import SomeMove
from extremal.moves.boosted import Boosted
from extremal.moves.corrective import FullyCorrective
from extremal.moves.in_face import InFaceBlended, InFacePairwise
from extremal.objectives.base import Objective
from extremal.objectives.margins import MarginModel
from extremal.sets.base import ConvexSet
from extremal.steps.adaptive import LineSearch, short_step
from extremal.steps.base import Step
from extremal.steps.schedules import FullStep


def _step(f: Objective, step: Step | None) -> Step:
    """A line search if it costs no gradients, else short steps if L is known, else a line search."""
    return step or (LineSearch() if isinstance(f, MarginModel) else short_step(f, LineSearch()))


@dataclass(frozen=True)
class _OverAtoms(Checked):
    """Full gradients and a move over an active set, which may search its atoms before the oracle."""

    step: Step | None = None
    lazy: bool = False

    _move: ClassVar[Callable[[bool], SomeMove]]

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        return Method(Full(), _step(f, self.step), self._move(self.lazy)).prepare(f, C, budget)


@dataclass(frozen=True)
class AwayFW(_OverAtoms):
    """Away-step Frank-Wolfe: toward the best vertex, or away from the worst atom, whichever promises more.

        x <- x + eta (s - x)  or  x <- x + eta t (x - a),   s = lmo(grad f(x)),  a the worst atom,  t = w_a / (1 - w_a)

    An iteration takes n component gradients and one LMO; memory: the atoms. The move is `Away`. For stochastic gradients, pass
    the move to `Method` with any estimator.

    Parameters
    ----------
    step : Step, optional
        Default: `LineSearch` for a `LinearModel` or if L is not known, otherwise `ShortStep`.
    lazy : bool
        Search the known atoms first, and ask the oracle only if the atoms promise less than half of the last known gap.

    References
    ----------
    Guelat, Marcotte (1986); Lacoste-Julien, Jaggi (2015), arXiv:1511.05932.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((50, 10))
    >>> f = ex.LinearModel(ex.Squared(), A, A @ np.array([0.7, 0.3] + [0] * 8) + 0.1 * rng.standard_normal(50))
    >>> r = ex.minimize(f, ex.Simplex(), method=ex.AwayFW(), tol=1e-8)
    >>> r.converged, r.x.round(1)[:3]
    (True, array([0.7, 0.3, 0. ]))
    """

    _move = Away


@dataclass(frozen=True)
class PairwiseFW(_OverAtoms):
    """Pairwise Frank-Wolfe: weight goes from the worst atom to the best vertex.

        x <- x + eta w_a (s - a),   s = lmo(grad f(x)),  a the worst atom

    An iteration takes n component gradients and one LMO; memory: the atoms. The move is `Pairwise`.

    Parameters
    ----------
    step, lazy
        As for `AwayFW`.

    References
    ----------
    Lacoste-Julien, Jaggi (2015), arXiv:1511.05932.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(3), np.array([0.7, 0.3, -1.0]))
    >>> ex.minimize(f, ex.Simplex(), method=ex.PairwiseFW(), tol=1e-8).x.round(3)
    array([0.7, 0.3, 0. ])
    """

    _move = Pairwise


@dataclass(frozen=True)
class BlendedPairwiseFW(_OverAtoms):
    """Blended pairwise conditional gradients: between two atoms, or toward a new vertex.

        x <- x + eta w_a (b - a)  or  x <- x + eta (s - x),   s = lmo(grad f(x)),  a, b the worst and the best atom

    An iteration takes n component gradients and one LMO (far fewer LMOs with ``lazy``). Memory: the atoms; this method keeps
    the fewest. The move is `BlendedPairwise`.

    Parameters
    ----------
    step, lazy
        As for `AwayFW`.

    References
    ----------
    Tsuji, Tanaka, Pokutta (2022), Pairwise conditional gradients without swap steps and sparser kernel herding, ICML.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(3), np.array([0.7, 0.3, -1.0]))
    >>> ex.minimize(f, ex.Simplex(), method=ex.BlendedPairwiseFW(), tol=1e-8).x.round(3)
    array([0.7, 0.3, 0. ])
    """

    _move = BlendedPairwise


@dataclass(frozen=True)
class FullyCorrectiveFW(WithCard):
    """Fully corrective Frank-Wolfe: after every new vertex, f is minimised over the hull of all atoms.

        s = lmo(grad f(x)),   x <- argmin of f over the convex hull of s and the atoms

    There are few iterations, with one LMO each; every inner iteration on the weights takes n component gradients. Memory: the
    atoms and, for a linear model, their margins (k n numbers). The move is `FullyCorrective`.

    Parameters
    ----------
    accuracy : float
        Accuracy of the inner problem, relative to the gap before it, in (0, 1].

    References
    ----------
    Holloway (1974); Lacoste-Julien, Jaggi (2015), arXiv:1511.05932.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(3), np.array([0.7, 0.3, -1.0]))
    >>> ex.minimize(f, ex.Simplex(), method=ex.FullyCorrectiveFW(), tol=1e-8).x.round(3)
    array([0.7, 0.3, 0. ])
    """

    accuracy: float = 0.01

    def __post_init__(self):
        checks.fix(self, accuracy=checks.within("FullyCorrectiveFW", "accuracy", self.accuracy, 0, 1))

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        return Method(Full(), FullStep(), FullyCorrective(self.accuracy)).prepare(f, C, budget)


@dataclass(frozen=True)
class InFaceFW(Checked):
    """Decomposition-invariant Frank-Wolfe: pairwise steps inside the face that holds x, without atoms.

        x <- x + eta t (s - a),   s = lmo(grad f(x)),  a the worst vertex of the face,  t the longest feasible step

    An iteration takes n component gradients and two oracle calls; there is no memory. The set must know its faces (`Simplex`,
    `CappedSimplex`, `Box`, `L1Ball`, `GroupBall`, `Birkhoff`, ...). The moves are `InFacePairwise` and `InFaceBlended`.

    Parameters
    ----------
    step : Step, optional
        Default: `LineSearch` for a `LinearModel` or if L is not known, otherwise `ShortStep`.
    blended : bool
        Step between two vertices of the face while this promises as much as a new vertex; otherwise step toward the new one.

    References
    ----------
    Garber, Meshi (2016), arXiv:1605.06492.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(3), np.array([0.7, 0.3, -1.0]))
    >>> ex.minimize(f, ex.Simplex(), method=ex.InFaceFW(), tol=1e-8).x.round(3)
    array([0.7, 0.3, 0. ])
    """

    step: Step | None = None
    blended: bool = False

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        move = InFaceBlended() if self.blended else InFacePairwise()
        return Method(Full(), _step(f, self.step), move).prepare(f, C, budget)


@dataclass(frozen=True)
class BoostFW(Checked):
    """Boosted Frank-Wolfe: toward a combination of vertices that is well aligned with the negative gradient.

        x <- x + eta d,   d = a mean of v_k - x,   v_k = lmo of the part of grad f(x) that v_1 - x, ..., v_{k-1} - x leave over

    An iteration takes n component gradients and several LMOs; there is no memory. The set needs no faces and no atoms. The move
    is `Boosted`; for stochastic gradients, pass the move to `Method` with any estimator.

    Parameters
    ----------
    step : Step, optional
        Default: `LineSearch` for a `LinearModel` or if L is not known, otherwise `ShortStep`.
    growth, rounds
        As for `Boosted`.

    References
    ----------
    Combettes, Pokutta (2020), Boosting Frank-Wolfe by chasing gradients, ICML, arXiv:2003.06369.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((300, 20))
    >>> f = ex.LinearModel(ex.Logistic(), A, np.sign(A[:, 0] - A[:, 1] + rng.standard_normal(300)))
    >>> boosted, plain = (ex.minimize(f, ex.L1Ball(1.0), m, max_grads=20 * f.n, tol=0) for m in (ex.BoostFW(), ex.FrankWolfe()))
    >>> boosted.gap < 0.5 * plain.gap
    True
    """

    step: Step | None = None
    growth: float = 1e-3
    rounds: int | None = None

    def __post_init__(self):
        super().__post_init__()
        Boosted(self.growth, self.rounds)  # refuses values out of range

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        return Method(Full(), _step(f, self.step), Boosted(self.growth, self.rounds)).prepare(f, C, budget)
