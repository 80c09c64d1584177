"""The state of a Newton step: a quadratic model of f, and how far to follow it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from extremal.gradients.base import Estimate, Looked, sample_of, value_of
from extremal.moves.base import MoveOracle
from extremal.moves.newton.grown import grown
from extremal.objectives.base import Segment
from extremal.objectives.column_blocks import Slice
from extremal.objectives.secants import Secants
from extremal.points.iterates import freeze, toward
from extremal.points.vertex import Vertex
from extremal.quadratic.search import SLOPE_HALVINGS, UNSEEN, OnLine, armijo, bfgs, learn
from extremal.sets.base import Spikes
from extremal.support.kinds import Symmetric

AGAIN = 0.2  # a Hessian is reused while each step reduces the gap below this share
BLIND = 1e-13  # a promise below this share of f is lost in the rounding of values and slopes
PROBE = 1e-3  # share of the way to the best vertex on which to measure the first guess of a Hessian
OUTWARD = 0.5  # share of f that a step away from the origin must promise
TAIL = 1.5  # f behaves like a sum of exponentials if mean(phi'^2 / phi'') <= TAIL * f
MODELS = 8  # largest number of quadratic models per step
GOOD = 0.3  # a model is good enough if at least this share of its step is taken
HARDLY = 1e-8  # share of the largest f that a step to a vertex must promise, if the model gives no step
BETTER = 0.1  # share of the decrease so far that a model must gain before another one is tried
SHORT_SHARE = 1e-3  # a width below this share of a step does not matter
SEEN_AHEAD = 1e-7  # share of f that a gap must exceed for margins at two points to show their change
Hessian: TypeAlias = "Symmetric | Root"
Solve = Callable[[Any], tuple[np.ndarray, Any, float]]  # solve(H): the step d, its data, and the longest multiple of d


@dataclass(frozen=True)
class Root:
    """A Hessian in the form B'B."""

    B: np.ndarray

    def __matmul__(self, d: np.ndarray) -> np.ndarray:
        return (self.B @ d) @ self.B


def hessian_of(part: Slice, at: NewtonState, far: bool, width: float, rooted: bool) -> Any:
    """The Hessian on the coordinates of ``part``."""
    B = part.root(at.z, far, width) if rooted else None
    return part.hessian(at.z, far, width) if B is None else Root(B)


class LookedLine:
    """f between x and x + d; ``there`` holds its value, gradient and margins at x + d, if they were computed."""

    def __init__(self, at: NewtonState, part: Slice, d: np.ndarray, there: tuple[float, np.ndarray, np.ndarray] | None):
        self.at, self.part, self.d, self.there = at, part, d, there

    @cached_property
    def dz(self) -> np.ndarray:
        """The change of the margins."""
        return self.part.dot(self.d) if self.there is None else self.at.f.change(self.at.z, self.there[2])

    @cached_property
    def line(self) -> Segment:
        """f along the line, by margins at both ends."""
        return self.at.f.between(self.at.z, self.dz)

    @property
    def size(self) -> float:
        """The root mean square of the change of the margins."""
        return self.at.f.length(self.dz)

    def value(self, t: float) -> float:
        return self.line.value(t) if self.there is None or t != 1.0 else self.there[0]

    def slope(self, t: float) -> float:
        return self.line.slope(t) if self.there is None or t != 1.0 else float(self.there[1].reshape(-1)[self.part.W] @ self.d)


@dataclass(frozen=True)
class Descent:
    """A step that lowers f, or none."""

    t: float  # the share of the step to take; 0 if f does not fall along it
    kept: Any  # the stored solution of the model
    value: float  # f at the end
    line: LookedLine  # the line of the step
    width: float = 0.0  # the width of the model for the next step
    H: np.ndarray | None = None  # the Hessian learnt on the way
    x: np.ndarray | None = None  # the point at t = 1, if f was evaluated there


@dataclass(frozen=True)
class Memory:
    """The data that a step leaves to the next."""

    part: Slice  # the objective on the coordinates W
    H: Any  # its Hessian, at that point or near it; None if there are too few coordinates to keep it
    gap: float  # the gap before the step
    x: np.ndarray  # the point, on W
    g: np.ndarray  # the gradient at that point, on W
    value: float  # f at that point
    first: bool = True  # whether H is uncorrected
    width: float = 0.0  # H is the mean second derivative within this width of the margins
    scale: float = 0.0  # the largest |f| so far: the terms of f may be as large
    whole: bool = True  # whether the last step followed its model in full, so that the next one may

    @classmethod
    def of(cls, part: Slice, H: Any, at: NewtonState, old: Memory | None, first: bool = True, width: float = 0.0) -> Memory:
        """A model at a point, after the model of the last step."""
        scale = abs(at.value) if old is None else max(abs(at.value), old.scale)
        whole = old is None or old.whole or old.part.f.known is not None  # a model of some columns knows no margins
        return cls(part, H, at.gap, at.x[part.W], at.g[part.W], at.value, first, width, scale, whole)

    @classmethod
    def new(cls, part: Slice, at: NewtonState, old: Memory | None = None, rooted: bool = False) -> Memory:
        """A model with the Hessian at the point; in factors, if these are wanted and exist."""
        H, width = grown(old, part) if part.constant and not rooted else None, 0.0 if old is None else old.width
        H = hessian_of(part, at, at.far, width, rooted) if H is None else H
        return cls.of(part, at.scaled(H) if at.learns else H, at, old, width=width)

    def fits(self, at: NewtonState) -> bool:
        """Whether the last Hessian can serve again: the gap has fallen, f not much, and a new one is work; or f is quadratic."""
        near = self.width == 0 and at.gap <= AGAIN * self.gap and at.value > 0.5 * self.value
        return self.H is not None and (self.part.f is at.f if self.part.constant else near and not self.part.light)

    def again(self, at: NewtonState) -> Memory:
        """The model at a new point; the change of the gradient corrects its Hessian (BFGS) if the sample is the same."""
        part, H = self.part.of(at.f), self.H
        if part is self.part and isinstance(H, np.ndarray) and not part.constant:
            H = bfgs(H, at.x[part.W] - self.x, at.g[part.W] - self.g)
        return self.of(part, H, at, self)

    def learnt(self, at: NewtonState) -> Memory:
        """The model at a new point, for f without second derivatives: corrected as far as gradients allow."""
        W = self.part.W
        H = learn(self.H, at.x[W] - self.x, at.g[W] - self.g, self.first)
        return self.of(self.part.of(at.f), H, at, self, first=False)

    def after(self, step: Descent) -> Memory:
        """The memory after a step."""
        H, first = (self.H, self.first) if step.H is None else (step.H, False)
        return replace(self, width=step.width, H=H, first=first, whole=step.t == 1.0)


@dataclass(frozen=True)
class NewtonState:
    """The facts about the current point that a Newton step needs."""

    f: Any  # the objective, or the sample of it with the gradient g
    x: np.ndarray  # flat, in float64
    g: np.ndarray
    z: np.ndarray  # the margins
    value: float  # f(x)
    here: float  # <g, x>
    gap: float
    s: Vertex  # the oracle's answer
    exact: bool  # whether f is the whole objective

    @classmethod
    def of(cls, f: Any, C: MoveOracle, x: np.ndarray, estimate: Estimate) -> NewtonState:
        """Collect the facts from the estimate, the missing ones from f; one LMO."""
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
        """Scale a guess of the Hessian to the curvature toward the best vertex; this takes one more gradient."""
        d = PROBE * (self.f.vertex_margins(self.s) - self.z)
        bend, guess = float(d @ (self.f.grad(self.z + d) - self.g)), float(d @ (H @ d))
        bend = bend if 0 < bend < math.inf else PROBE**2 * self.gap  # as if the vertex minimised f
        return H * (bend / guess) if 0 < guess < math.inf else np.eye(len(H)) * (bend / max(float(d @ d), 1e-300))

    @property
    def far(self) -> bool:
        """Whether the solution may be far: f may fall by as much as its own value."""
        return self.gap > self.value

    def outward(self, spikes: Spikes) -> float:
        """The factor by which x may move outward while f falls (without end on separable data); 1 if f does not fall."""
        if not spikes.origin or not self.here < -OUTWARD * self.value:
            return 1.0
        scale = np.where(self.x > 0, spikes.high, spikes.low)
        size = float((self.x[self.x != 0] / np.broadcast_to(scale, self.x.shape)[self.x != 0]).sum())
        if not 0 < size < 0.9:
            return 1.0
        line = self.f.between(self.z, self.z)  # margins are proportional to x: no product with the data is needed
        t, best = 1.0 / size - 1.0, (self.value, 0.0)
        for _ in range(12):
            now = line.value(t)
            if now > best[0] and best[1] > 0:
                break
            best = min(best, (now, t))
            t /= 2
        return 1.0 + best[1] if best[0] < 0.5 * self.value else 1.0

    def tailed(self, H: Hessian | None, W: np.ndarray) -> Any:
        """The Hessian of Newton steps on log f, times f, if f behaves like a sum of exponentials; otherwise H itself.

        It is H - 0.9 g g' / E with E = mean of phi'^2 / phi'', positive semidefinite by Cauchy-Schwarz. On separable data E is
        about f, and a step on f itself moves margins only by 1. Near a solution <g, u - x> vanishes, and so does the correction.
        """
        if self.f.deriv_shape or not (self.f.convex and self.here < -OUTWARD * self.value and isinstance(H, np.ndarray)):
            return H
        E = self.f.tail_ratio(self.z)
        return H - np.outer(0.9 / E * self.g[W], self.g[W]) if 0 < E <= TAIL * self.value else H

    def moved(self, old: np.ndarray, new: np.ndarray, memory: Memory | None) -> np.ndarray:
        """The new point as an iterate; if it is the old one, a step to the best vertex; if that fails too, the old point."""
        if new.shape != old.shape or new.dtype != old.dtype or new.flags.writeable:  # an evaluated point stays the same object
            new = freeze(new.reshape(old.shape).astype(old.dtype, copy=False))
        if not np.array_equal(new, old):
            return new
        eta = 0.0 if memory is None else self.ahead(memory)
        return toward(old, self.s, eta) if eta > 0 else old  # the same object says that no step improves x

    def ahead(self, memory: Memory) -> float:
        """The step to the best vertex at which the slope vanishes; 0 if f falls little or not at all."""
        if not self.gap > HARDLY * memory.scale:
            return 0.0
        line = self.f.between(self.z, self.f.change(self.z, self.f.vertex_margins(self.s)))
        low, high = (0.0 if line.slope(1.0) > 0 else 1.0), 1.0
        for _ in range(SLOPE_HALVINGS if low < high else 0):
            middle = 0.5 * (low + high) if low > 0 else 0.1 * high
            low, high = (middle, high) if line.slope(middle) < 0 else (low, middle)
        return low if low > 0 and line.value(low) < self.value else 0.0

    def descend(self, memory: Memory, H: Any, solve: Solve, place: Callable[[Any], np.ndarray]) -> Descent:
        """Choose a quadratic model and the length of its step: the model of H, or a better one if H is poor there.

        ``place`` turns the data of d into the point x + d. If the last step was taken in full, f is evaluated there first: this
        shows how margins change, and the next step reuses it if d is taken in full.

        If f falls only on a small part of the step, second derivatives at x say little about f along the step. A piecewise
        linear loss has them only at its corners. Their mean within a width of the margins gives another model, whose steps have
        about that length. The width grows as long as f falls further. The next step begins with a smaller width.
        """
        near = memory.whole or not memory.part.copied
        ahead = place if near and not self.learns and self.gap > SEEN_AHEAD * abs(self.value) else None
        best, part, width = self._attempt(memory, H, solve, ahead), memory.part, memory.width
        if self.learns and best.t < GOOD:
            return self._learn(memory, best, solve)
        if best.t >= GOOD or not isinstance(H, (np.ndarray, Root)):
            return best if width == 0 else replace(best, width=0.25 * width if width > SHORT_SHARE * best.line.size else 0.0)
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
        """The same for a learnt Hessian, which the gradient at the end of the step corrects."""
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
        """The step of one model, with its length."""
        (d, kept, most), x, there = solve(H), None, None
        if place is not None and most >= 1.0 and d.any():
            x = freeze(place(kept).reshape(self.f.shape))
            there = self.f.value_grad_margins(x)
        line = LookedLine(self, memory.part, d, there)
        t = self._search(memory, H, d, most, line)
        return Descent(t, kept, line.value(t) if t > 0 else self.value, line, x=x if t == 1.0 else None)

    def _search(self, memory: Memory, H: Hessian, d: np.ndarray, most: float, line: OnLine) -> float:
        """The step length along d: at most ``most``, and 0 if f does not fall."""
        slope, bend = float(self.g[memory.part.W] @ d), 0.5 * float(d @ (H @ d))
        t = armijo(line, self.value, slope, bend, most, memory.scale) if slope < 0 else 0.0
        if t == 0 and abs(slope) + bend <= BLIND * memory.scale and d.any():  # values and slopes are rounding, the model is not
            t = min(1.0, most)
            t = t if line.value(t) <= self.value + UNSEEN[0] * memory.scale else 0.0
        return t
