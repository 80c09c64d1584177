"""The method of a run: the user's method, or the library's choice."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from extremal import checks
from extremal.checks import InputError
from extremal.methods.cards import METHODS
from extremal.methods.method import Budget, Method, Recipe, WithCard
from extremal.objectives.base import Objective, has_batches, is_factored, manifold_of
from extremal.objectives.margins import MarginModel, has_slices
from extremal.points.manifolds import Euclidean
from extremal.sets.base import ConvexSet, Projectable

COORDINATES = 1000  # up to this size, a Hessian of all coordinates is worth its cost,
WORK = 2e10  # unless it takes more multiplications than this;
FEW_COORDINATES = 200  # and up to this size, always
LEARNT = 500  # largest number of coordinates for which a Hessian is learnt from gradients
SMALL_MATRIX = 100  # entries of a small matrix, whose factors are no simpler than the matrix itself
LOGGER = logging.getLogger("extremal")
SUM = 2000  # components from which on batches are worth their noise
MARGINS = 2**29  # largest number of margins to keep for a hundred vertices: 4 GiB


@dataclass(frozen=True)
class Choice:
    """A method, and the reason for it."""

    recipe: Recipe
    why: str
    made: Callable[[Budget], Method] | None = None  # the prepared method, if all its questions are answered already


@dataclass(frozen=True)
class Auto(WithCard):
    """The method for the problem at hand: the default of `minimize`.

    The choice depends on the objective (linear or not, rows, columns, outputs, second derivatives) and on the set (its kind of
    vertices, its projection). It never depends on a clock or on the machine. `Auto` picks

    - `NewtonFW` for a linear model in memory whose loss has second derivatives. Over an l1 ball, a simplex, a box or a group
      ball, the number of coordinates is free; over other sets it is at most a thousand. `NewtonFW` also takes any other sum
      with at most 500 coordinates, and learns second derivatives from gradients;
    - `BlockFW` for a `QuadraticModel` of more coordinates over a `Product`, `Rows` or `Columns`;
    - `LowRankFW` for matrices over a `NuclearBall`, except for several outputs of at most a hundred coordinates;
    - `VRSliding` for the remaining linear models of several outputs, over sets with a projection, and for sums of many
      coordinates that are not linear;
    - `FullyCorrectiveFW` for the rest, with few oracle calls and full gradients, or `PairwiseFW` if the margins of the vertices
      do not fit in memory or the rows are in shards;
    - `MostFW` for an `AffineCut`, and full gradients along geodesics on a manifold.

    The choice and its reasons are in ``result.why``, and in the log (logger ``extremal``, level INFO).

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Logistic(), np.eye(3), np.array([1.0, -1.0, 1.0]))
    >>> ex.Auto().choose(f, ex.L1Ball(2.0).on(3)).recipe
    NewtonFW(parts=16)
    >>> print(ex.minimize(f, ex.L1Ball(2.0)).why)
    NewtonFW: 3 x 3 rows in memory with second derivatives, and vertices of one entry: Newton steps on the coordinates in use
    """

    def choose(self, f: Objective, C: ConvexSet) -> Choice:
        """The method for f over C, and the reason for it."""
        for rule in (_exact, _cut, _newton, _low_rank, _curved, _learnt, _blocks, _linear, _other):
            choice = rule(f, C)
            if choice is not None:
                recipe, name = choice.recipe, type(choice.recipe).__name__
                name = f"{type(recipe.move).__name__} with full gradients" if isinstance(recipe, Method) else name
                return Choice(recipe, f"{name}: {choice.why}", choice.made)
        raise AssertionError("the last rule takes everything")

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        """Prepare the choice, and log it."""
        choice = self.choose(f, C)
        LOGGER.info("auto: %s", choice.why)
        method = choice.recipe.prepare(f, C, budget) if choice.made is None else choice.made(budget)
        return method.chosen(choice.why, guarded=C.relaxed is C and f.dtype.kind != "O")


def as_recipe(call: str, method: Recipe | str | None) -> Recipe:
    """The method of a run: an object, a name from ``METHODS``, or `Auto` for None."""
    if method is None:
        return Auto()
    if isinstance(method, str):
        return METHODS[checks.one_of("method", method, METHODS)]()
    if checks.lacks(method, "prepare"):
        raise InputError(f"`{call}(method=...)` must be a method such as SarahFW() or a name, got {method!r}")
    return method


def _exact(f: Objective, C: ConvexSet) -> Choice | None:
    """Choose for fractions: of steps that do not round, those of the open loop need nothing of f."""
    if f.dtype.kind != "O":
        return None
    from extremal.gradients.full import Full
    from extremal.steps.schedules import OpenLoop

    return Choice(Method(Full(), OpenLoop()), "x is made of fractions, and the open loop rounds no number")


def _cut(f: Objective, C: ConvexSet) -> Choice | None:
    """Choose for sets without an oracle of their own."""
    if C.relaxed is C:
        return None
    from extremal.methods.affine import MostFW, with_penalty  # here and below, methods are imported on use

    cut = "the set is cut by bounds that its oracle does not know"
    if not has_batches(f):
        return Choice(with_penalty(f, C), f"{cut}, and the objective has no batches")
    return Choice(MostFW(), cut)


def _curved(f: Objective, C: ConvexSet) -> Choice | None:
    """Choose for objectives on manifolds; linear models live in flat space."""
    manifold = manifold_of(f)
    if manifold in (None, Euclidean()):
        return None
    from extremal.gradients.full import Full
    from extremal.moves.vertex import GeodesicMove
    from extremal.steps.schedules import OpenLoop

    return Choice(Method(Full(), OpenLoop(), GeodesicMove(manifold)), f"gradients are tangent vectors of {manifold}")


def _newton(f: Any, C: ConvexSet) -> Choice | None:
    """Choose for linear models with second derivatives."""
    d = math.prod(f.shape)
    if not has_slices(f) or (f.deriv_shape and C.by_factors and d > SMALL_MATRIX):
        return None
    from extremal.methods.newton import USUAL, newton_move

    recipe, (move, why) = USUAL, newton_move(C)
    if move.atomic and d > (COORDINATES if f.n * float(d) ** 2 <= WORK else FEW_COORDINATES):
        return None
    where = f.data.where if f.by_rows else "in memory"
    where += ", read slab by slab and then as a whole," if recipe.streamed(f, move) is not None else ""
    rows = f"{' x '.join(map(str, f.data.shape))} rows {where} with second derivatives"
    return Choice(recipe, f"{rows}, and {why}", lambda budget: recipe.made(f, budget, True, move))


def _learnt(f: Objective, C: ConvexSet) -> Choice | None:
    """Choose for few coordinates without second derivatives."""
    if math.prod(f.shape) > LEARNT or (C.matrix_free and is_factored(f)):
        return None
    from extremal.methods.newton import NewtonFW

    return Choice(NewtonFW(), f"{math.prod(f.shape)} coordinates: Newton steps, with second derivatives learnt from gradients")


def _low_rank(f: Objective, C: ConvexSet) -> Choice | None:
    """Choose for matrices of small nuclear norm."""
    if not C.by_factors or not isinstance(f, MarginModel):
        return None
    from extremal.methods.low_rank import LowRankFW

    m, n = f.shape
    return Choice(
        LowRankFW(), f"{m} x {n} matrices over a nuclear ball: several singular pairs at once, and the best core between them"
    )


def _blocks(f: Objective, C: ConvexSet) -> Choice | None:
    """Choose for quadratic functions of many coordinates over products of sets."""
    from extremal.objectives.row_parts import has_parts
    from extremal.sets.made.blocks import Blocked

    if isinstance(f, MarginModel) or not has_parts(f) or not isinstance(C, Blocked):
        return None
    from extremal.methods.blocks import BlockFW

    return Choice(BlockFW(), f"{C.n_blocks()} blocks, whose parts of the gradient come from kept margins: one block at a time")


def _linear(f: Objective, C: ConvexSet) -> Choice | None:
    """Choose for other linear models."""
    if not isinstance(f, MarginModel) or f.factored:
        return None
    from extremal.methods.atoms import FullyCorrectiveFW
    from extremal.methods.reduced_sliding import VRSliding

    size = f"{f.n} rows, x of shape {f.shape}"
    if f.is_finite_sum and isinstance(C, Projectable) and (f.deriv_shape or not has_slices(f)):
        return Choice(VRSliding(), f"{size}, and a set with a projection: proximal steps along variance-reduced gradients")
    if f.elsewhere or 100 * f.n * math.prod(f.deriv_shape) > MARGINS:
        from extremal.methods.atoms import PairwiseFW

        return Choice(
            PairwiseFW(), f"{size}: full gradients and pairwise steps, because margins of many vertices would not fit in memory"
        )
    return Choice(FullyCorrectiveFW(), f"{size}: full gradients, few oracle calls, and the best weights of all vertices")


def _other(f: Objective, C: ConvexSet) -> Choice | None:
    """Choose for sums that are not linear models, and for matrices in factors."""
    from extremal.methods.atoms import FullyCorrectiveFW
    from extremal.methods.reduced_sliding import VRSliding

    what = f"{f.n} observed entries" if isinstance(f, MarginModel) else f"{f.n} components that are not a linear model"
    if f.n >= SUM and not C.matrix_free and has_batches(f):
        return Choice(VRSliding(), f"{what}: proximal steps along variance-reduced gradients")
    return Choice(FullyCorrectiveFW(), f"{what}: full gradients, and the best weights of all vertices")
