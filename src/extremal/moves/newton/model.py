"""What Newton steps know of f where they are: a quadratic model, and how far to go by it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from extremal.gradients.base import Estimate, Looked, sample_of, value_of
from extremal.moves.base import MoveOracle
from extremal.objectives.base import Segment
from extremal.objectives.column_blocks import Slice
from extremal.objectives.secants import Secants
from extremal.points.iterates import freeze, toward
from extremal.points.vertex import Vertex
from extremal.quadratic.search import SLOPE_HALVINGS, UNSEEN, OnLine, armijo, bfgs, learn
from extremal.sets.base import Spikes
from extremal.support.kinds import Symmetric

AGAIN = 0.2  # a Hessian is used again while each step brings the gap below this share of what it was
BLIND = 1e-13  # share of f that a step may promise to be lost in the rounding of values and slopes
PROBE = 1e-3  # share of the way to the best vertex on which the first guess of a Hessian is measured
OUTWARD = 0.5  # share of f that a step away from the origin has to promise
TAIL = 1.5  # so many times f at most is the mean of phi'^2 / phi'' where f is like a sum of exponentials
MODELS = 8  # quadratic models that a step may try, at most
GOOD = 0.3  # share of a step from which on its model is good enough
HARDLY = 1e-8  # share of the largest f that a step to a vertex has to promise, where the model leads nowhere
BETTER = 0.1  # share of the decrease so far by which a model has to be better for another one to be tried
SHORT_SHARE = 1e-3  # share of a step that a width must be to matter
SEEN_AHEAD = 1e-7  # share of f that a gap must be for margins at two points to tell how they change
Hessian: TypeAlias = "Symmetric | Root"
Solve = Callable[[Any], tuple[np.ndarray, Any, float]]  # of a Hessian: its step d, what belongs to it, how many times d may go


@dataclass(frozen=True)
class Root:
    """A Hessian as B'B."""

    B: np.ndarray

    def __matmul__(self, d: np.ndarray) -> np.ndarray:
        return (self.B @ d) @ self.B


def hessian_of(part: Slice, at: NewtonState, far: bool, width: float, rooted: bool) -> Any:
    """The Hessian on the coordinates of ``part``."""
    B = part.root(at.z, far, width) if rooted else None
    return part.hessian(at.z, far, width) if B is None else Root(B)


class LookedLine:
    """f on the way from x to x + d, at which it may have been looked: ``there`` is its value and its margins then."""

    def __init__(self, at: NewtonState, part: Slice, d: np.ndarray, there: tuple[float, np.ndarray] | None):
        self.at, self.part, self.d, self.there = at, part, d, there

    @cached_property
    def dz(self) -> np.ndarray:
        """The change of the margins."""
        return self.part.dot(self.d) if self.there is None else self.at.f.change(self.at.z, self.there[1])

    @cached_property
    def line(self) -> Segment:
        """f by margins between both ends."""
        return self.at.f.between(self.at.z, self.dz)

    @property
    def size(self) -> float:
        """The root mean square of the change of the margins."""
        return self.at.f.length(self.dz)

    def value(self, t: float) -> float:
        return self.line.value(t) if self.there is None or t != 1.0 else self.there[0]

    def slope(self, t: float) -> float:
        return self.line.slope(t)


@dataclass(frozen=True)
class Descent:
    """A step that was found."""

    t: float  # the share of it to be taken; 0 if f does not fall there
    kept: Any  # what the solution of its model is kept as
    value: float  # f there
    line: LookedLine  # the way
    width: float = 0.0  # of the model for the next step
    H: np.ndarray | None = None  # what was learnt on the way
    x: np.ndarray | None = None  # the point at t = 1, if f has been looked at there


@dataclass(frozen=True)
class Memory:
    """What a step leaves to the next."""

    part: Slice  # the objective on the coordinates W
    H: Any  # its Hessian, at that point or not far from it; None if there are so few coordinates that it is not kept
    gap: float  # the gap before the step
    x: np.ndarray  # where, on W
    g: np.ndarray  # the gradient there, on W
    value: float  # f there
    first: bool = True  # whether H is as it was made
    width: float = 0.0  # within which of the margins H is the mean second derivative
    scale: float = 0.0  # the largest |f| so far: what f is made of may be as large
    whole: bool = True  # whether the last step was taken as its model said, so that the next one may be

    @classmethod
    def of(cls, part: Slice, H: Any, at: NewtonState, old: Memory | None, first: bool = True, width: float = 0.0) -> Memory:
        """A model at a point, after the one of the last step."""
        scale = abs(at.value) if old is None else max(abs(at.value), old.scale)
        return cls(part, H, at.gap, at.x[part.W], at.g[part.W], at.value, first, width, scale, old is None or old.whole)

    @classmethod
    def new(cls, part: Slice, at: NewtonState, old: Memory | None = None, rooted: bool = False) -> Memory:
        """With the Hessian there; as a product of factors, if that is wanted and there are some."""
        width = 0.0 if old is None else old.width
        H = hessian_of(part, at, at.far, width, rooted)
        return cls.of(part, at.scaled(H) if at.learns else H, at, old, width=width)

    def fits(self, at: NewtonState) -> bool:
        """Whether the last step was so good that its Hessian will do once more: the gap has fallen, and f has kept its scale."""
        return self.H is not None and self.width == 0 and at.gap <= AGAIN * self.gap and at.value > 0.5 * self.value

    def again(self, at: NewtonState) -> Memory:
        """The model at a new point, its Hessian corrected by the change of the gradient (BFGS) if that is of the same sample."""
        part, H = self.part.of(at.f), self.H
        if part is self.part and isinstance(H, np.ndarray):
            H = bfgs(H, at.x[part.W] - self.x, at.g[part.W] - self.g)
        return self.of(part, H, at, self)

    def learnt(self, at: NewtonState) -> Memory:
        """The model at a new point, of an f without second derivatives: corrected as far as gradients tell."""
        W = self.part.W
        H = learn(self.H, at.x[W] - self.x, at.g[W] - self.g, self.first)
        return self.of(self.part.of(at.f), H, at, self, first=False)

    def after(self, step: Descent) -> Memory:
        """With what a step has taught."""
        H, first = (self.H, self.first) if step.H is None else (step.H, False)
        return replace(self, width=step.width, H=H, first=first, whole=step.t == 1.0)


@dataclass(frozen=True)
class NewtonState:
    """What a Newton step knows of where it is."""

    f: Any  # the objective, or the sample of it whose gradient g is
    x: np.ndarray  # flat, in float64
    g: np.ndarray
    z: np.ndarray  # the margins
    value: float  # f(x)
    here: float  # <g, x>
    gap: float
    s: Vertex  # the oracle's answer
    exact: bool  # whether f is all of it

    @classmethod
    def of(cls, f: Any, C: MoveOracle, x: np.ndarray, estimate: Estimate) -> NewtonState:
        """From the estimate, and what it does not know from f; one LMO."""
        f = (sample_of(estimate) or f) if f.columns else Secants(f)
        z, value = estimate.z if isinstance(estimate, Looked) else f.margins(x), value_of(estimate)
        value = f.between(z, z).value(0.0) if value is None else value
        flat, g = (a.reshape(-1).astype(np.float64, copy=False) for a in (x, estimate.g))
        s = C.lmo(estimate.g)
        return cls(f, flat, g, z, value, float(g @ flat), C.gap(x, estimate.g, s), s, estimate.exact)

    @property
    def learns(self) -> bool:
        """Whether the Hessian is learnt from gradients."""
        return isinstance(self.f, Secants)

    def scaled(self, H: np.ndarray) -> np.ndarray:
        """A guess of the Hessian, with the curvature that gradients tell on the way to the best vertex; one more of these."""
        d = PROBE * (self.f.vertex_margins(self.s) - self.z)
        bend, guess = float(d @ (self.f.grad(self.z + d) - self.g)), float(d @ (H @ d))
        bend = bend if 0 < bend < math.inf else PROBE**2 * self.gap  # as if f were least at the vertex
        return H * (bend / guess) if 0 < guess < math.inf else np.eye(len(H)) * (bend / max(float(d @ d), 1e-300))

    @property
    def far(self) -> bool:
        """Whether the solution is not near: f may be lower by as much as itself."""
        return self.gap > self.value

    def outward(self, spikes: Spikes) -> float:
        """How many times farther out x may go for f to fall, as it does without end on separable data; 1 if it does not."""
        if not spikes.origin or not self.here < -OUTWARD * self.value:
            return 1.0
        scale = np.where(self.x > 0, spikes.high, spikes.low)
        size = float((self.x[self.x != 0] / np.broadcast_to(scale, self.x.shape)[self.x != 0]).sum())
        if not 0 < size < 0.9:
            return 1.0
        line = self.f.between(self.z, self.z)  # margins grow with x: no product with the data is needed
        t, best = 1.0 / size - 1.0, (self.value, 0.0)
        for _ in range(12):
            now = line.value(t)
            if now > best[0] and best[1] > 0:
                break
            best = min(best, (now, t))
            t /= 2
        return 1.0 + best[1] if best[0] < 0.5 * self.value else 1.0

    def tailed(self, H: Hessian | None, W: np.ndarray) -> Any:
        """The Hessian for Newton steps on log f, times f, where f is like a sum of exponentials; otherwise H itself.

        That is H - 0.9 g g' / E with E = mean of phi'^2 / phi'', positive semidefinite by Cauchy and Schwarz. On separable data
        E is about f, and a step on f itself moves margins by 1 only. Near a solution <g, u - x> vanishes, and so does the change.
        """
        if self.f.deriv_shape or not (self.f.convex and self.here < -OUTWARD * self.value and isinstance(H, np.ndarray)):
            return H
        E = self.f.tail_ratio(self.z)
        return H - np.outer(0.9 / E * self.g[W], self.g[W]) if 0 < E <= TAIL * self.value else H

    def moved(self, old: np.ndarray, new: np.ndarray, memory: Memory | None) -> np.ndarray:
        """The new point as an iterate; the step to the best vertex if the model led nowhere; the old one if that does, too."""
        if new.shape != old.shape or new.dtype != old.dtype or new.flags.writeable:  # a point that was looked at stays itself
            new = freeze(new.reshape(old.shape).astype(old.dtype, copy=False))
        if not np.array_equal(new, old):
            return new
        eta = 0.0 if memory is None else self.ahead(memory)
        return toward(old, self.s, eta) if eta > 0 else old  # the very same object: there is nothing more to be won

    def ahead(self, memory: Memory) -> float:
        """How far to go to the best vertex, by a search for where the slope vanishes; 0 if f does not fall there, or hardly."""
        if not self.gap > HARDLY * memory.scale:
            return 0.0
        line = self.f.between(self.z, self.f.change(self.z, self.f.vertex_margins(self.s)))
        low, high = (0.0 if line.slope(1.0) > 0 else 1.0), 1.0
        for _ in range(SLOPE_HALVINGS if low < high else 0):
            middle = 0.5 * (low + high) if low > 0 else 0.1 * high
            low, high = (middle, high) if line.slope(middle) < 0 else (low, middle)
        return low if low > 0 and line.value(low) < self.value else 0.0

    def descend(self, memory: Memory, H: Any, solve: Solve, place: Callable[[Any], np.ndarray]) -> Descent:
        """How far to go, and by which solution of a quadratic model: that of H, or a better one where H is no good there.

        ``place`` makes of what belongs to d the point where d ends. If the last step went so far, f is looked at there first.
        This tells how margins change, and is the next step's look if d is taken as it is.

        Where f falls on a small part of a step only, second derivatives at x say little of f on the way:
        a loss of lines has none but at its corners. Their mean within a width of the margins makes another model, whose steps
        have about that length; the width grows as long as f falls the more. The next step begins with a smaller one.
        """
        ahead = place if memory.whole and not self.learns and self.gap > SEEN_AHEAD * abs(self.value) else None
        best, part, width = self._attempt(memory, H, solve, ahead), memory.part, memory.width
        if self.learns and best.t < GOOD:
            return self._learn(memory, best, solve)
        if best.t >= GOOD or not isinstance(H, (np.ndarray, Root)):
            return replace(best, width=0.25 * width if width > 0 and width > SHORT_SHARE * best.line.size else 0.0)
        width = max(2 * max(best.t, 1e-6) * best.line.size, 4 * width)
        for _ in range(MODELS):
            if not 0 < width < np.inf:
                break
            wider = hessian_of(part, self, False, width, isinstance(H, Root))
            found = replace(self._attempt(memory, wider, solve), width=0.5 * width)
            if not found.value < best.value - BETTER * (self.value - best.value):
                best = found if found.value < best.value else best
                break
            best, width = found, 8 * width
        return best

    def _learn(self, memory: Memory, best: Descent, solve: Solve) -> Descent:
        """The same for a Hessian that is learnt: from the gradient where the step ends."""
        H = memory.H
        for _ in range(MODELS):
            if best.t >= GOOD:
                break
            dz = (best.t or 1e-3) * best.line.dz
            H = learn(H, dz, self.f.grad(self.z + dz) - self.g)
            found = replace(self._attempt(memory, H, solve), H=H)
            if not found.value < best.value:
                break
            best = found
        return best

    def _attempt(self, memory: Memory, H: Hessian, solve: Solve, place: Callable[[Any], np.ndarray] | None = None) -> Descent:
        """The step of one model."""
        d, kept, most = solve(H)
        x, there = None, None
        if place is not None and most >= 1.0 and d.any():
            x = freeze(place(kept).reshape(self.f.shape))
            value, _, z = self.f.value_grad_margins(x)
            there = value, z
        line = LookedLine(self, memory.part, d, there)
        t = self._search(memory, H, d, most, line)
        return Descent(t, kept, line.value(t) if t > 0 else self.value, line, x=x if t == 1.0 else None)

    def _search(self, memory: Memory, H: Hessian, d: np.ndarray, most: float, line: OnLine) -> float:
        """How far to go along d: at most ``most``, and not at all if f does not fall there."""
        slope, bend = float(self.g[memory.part.W] @ d), 0.5 * float(d @ (H @ d))
        t = armijo(line, self.value, slope, bend, most, memory.scale) if slope < 0 else 0.0
        if t == 0 and abs(slope) + bend <= BLIND * memory.scale and d.any():  # values and slopes are rounding: the model is not
            t = min(1.0, most)
            t = t if line.value(t) <= self.value + UNSEEN[0] * memory.scale else 0.0
        return t
