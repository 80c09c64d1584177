"""What Newton steps know of f where they are: a quadratic model, and how far to go by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal.iterates import freeze, toward
from extremal.objective import Segment
from extremal.sets.base import Spikes
from extremal.secants import Secants
from extremal.slices import Slice
from extremal.vertices import Vertex
from extremal.weights import bfgs, learn

AGAIN = 0.2  # a Hessian is used again while each step brings the gap below this share of what it was
SUFFICIENT = 1e-4  # share of the slope that counts as a decrease
UNSEEN = 1e-15, 1e-10  # shares of f: its rounding, and what a decrease may be to be lost in it
OUTWARD = 0.5  # share of f that a step away from the origin has to promise
TAIL = 1.5  # so many times f at most is the mean of phi'^2 / phi'' where f is like a sum of exponentials
MODELS = 8  # quadratic models that a step may try, at most
GOOD = 0.3  # share of a step from which on its model is good enough
HALVINGS = 40  # of the part of a step in which the slope vanishes
BETTER = 0.1  # share of the decrease so far by which another model has to be better for a further one to be tried


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

    def fits(self, at: At) -> bool:
        """Whether the last step was so good that its Hessian will do once more: the gap has fallen, and f has kept its scale."""
        return self.H is not None and at.gap <= AGAIN * self.gap and at.value > 0.5 * self.value

    def again(self, at: At) -> Memory:
        """The model at a new point, its Hessian corrected by the change of the gradient (BFGS) if that is of the same sample."""
        part = self.part.of(at.f)
        x, g = at.x[part.W], at.g[part.W]
        H = bfgs(self.H, x - self.x, g - self.g) if part is self.part and isinstance(self.H, np.ndarray) else self.H
        return Memory(part, H, at.gap, x, g, at.value)

    def learnt(self, at: At) -> Memory:
        """The model at a new point, of an f without second derivatives: corrected as far as gradients tell."""
        x, g = at.x[self.part.W], at.g[self.part.W]
        return Memory(self.part.of(at.f), learn(self.H, x - self.x, g - self.g, self.first), at.gap, x, g, at.value, first=False)

    @classmethod
    def new(cls, part: Slice, at: At) -> Memory:
        """With the Hessian there."""
        return cls(part, part.hessian(at.z, at.far), at.gap, at.x[part.W], at.g[part.W], at.value)


@dataclass(frozen=True)
class At:
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
    def of(cls, f: Any, C: Any, x: np.ndarray, estimate: Any) -> At:
        """From the estimate, and what it does not know from f; one LMO."""
        f = getattr(estimate, "model", f) if f.columns else Secants(f)
        z = estimate.z if hasattr(estimate, "z") else f.margins(x)
        value = estimate.value if hasattr(estimate, "value") else f.between(z, z).value(0.0)
        flat, g = (a.reshape(-1).astype(np.float64, copy=False) for a in (x, estimate.g))
        s = C.lmo(estimate.g)
        return cls(f, flat, g, z, value, float(g @ flat), C.gap(x, estimate.g, s), s, estimate.exact)

    @property
    def learns(self) -> bool:
        """Whether the Hessian is learnt from gradients."""
        return isinstance(self.f, Secants)

    @property
    def far(self) -> bool:
        """Whether the solution is not near: f may be lower by as much as itself."""
        return self.gap > self.value

    def outward(self, spikes: Spikes) -> float:
        """How many times farther out x may go for f to fall, as it does without end on separable data; 1 if it does not.

        Margins grow with x: no product with the data is needed.
        """
        if not spikes.origin or not self.here < -OUTWARD * self.value:
            return 1.0
        scale = np.where(self.x > 0, spikes.high, spikes.low)
        size = float((self.x[self.x != 0] / np.broadcast_to(scale, self.x.shape)[self.x != 0]).sum())
        if not 0 < size < 0.9:
            return 1.0
        line, t, best = self.f.between(self.z, self.z), 1.0 / size - 1.0, (self.value, 0.0)
        for _ in range(12):
            now = line.value(t)
            if now > best[0] and best[1] > 0:
                break
            best = min(best, (now, t))
            t /= 2
        return 1.0 + best[1] if best[0] < 0.5 * self.value else 1.0

    def tailed(self, H: Any, W: np.ndarray) -> Any:
        """The Hessian for Newton steps on log f, times f, where f is like a sum of exponentials; otherwise H itself.

        That is H - 0.9 g g' / E with E = mean of phi'^2 / phi'', positive semidefinite by Cauchy and Schwarz. On separable data
        E is about f, and a step on f itself moves margins by 1 only. Near a solution <g, u - x> vanishes, and so does the change.
        """
        if self.f.deriv_shape or not (self.f.convex and self.here < -OUTWARD * self.value and isinstance(H, np.ndarray)):
            return H
        E = self.f.tail(self.z)
        return H - np.outer(0.9 / E * self.g[W], self.g[W]) if 0 < E <= TAIL * self.value else H

    def moved(self, old: np.ndarray, new: np.ndarray) -> np.ndarray:
        """The new point as an iterate; the step to the best vertex if the model led nowhere; the old one if that does not, too.

        A point that stays the very same object tells that there is nothing more to be won.
        """
        new = freeze(new.reshape(old.shape).astype(old.dtype, copy=False))
        if not np.array_equal(new, old):
            return new
        eta = self.ahead()
        return toward(old, self.s, eta) if eta > 0 else old

    def ahead(self) -> float:
        """How far to go to the best vertex, by a search for where the slope vanishes; 0 if f does not fall there."""
        if not self.gap > 0:
            return 0.0
        line = self.f.between(self.z, self.f.vertex_margins(self.s) - self.z)
        low, high = 0.0, 1.0
        if line.slope(1.0) > 0:
            for _ in range(HALVINGS):
                middle = 0.5 * (low + high) if low > 0 else 0.1 * high
                low, high = (middle, high) if line.slope(middle) < 0 else (low, middle)
        else:
            low = 1.0
        return low if low > 0 and line.value(low) < self.value else 0.0

    def descend(self, part: Slice, H: Any, solve: Callable[[Any], tuple[np.ndarray, Any, float]]) -> tuple[float, Any]:
        """How far to go, and by which solution of a quadratic model: that of H, or a better one where H is no good there.

        ``solve`` answers for a Hessian the step d on the coordinates of ``part``, whatever else belongs to it, and how many
        times d may be taken. Where f falls on a small part of a step only, second derivatives at x say little of f on the way,
        as on the lines of a loss or where it grows exponentially. Their mean on that part of the way makes the next model, and
        the step that brings f down most is taken. A share of 0 means that no step does.
        """
        best, value = (0.0, None), self.value
        for _ in range(MODELS):
            d, kept, most = solve(H)
            t, dz = self._search(part, H, d, most)
            now = self.f.between(self.z, dz).value(t) if t > 0 else self.value
            if t >= GOOD and best[0] == 0:
                return t, kept
            gain, before = value - now, self.value - value
            if t > 0 and (gain > 0 or best[0] == 0):
                best, value = (t, kept), now
            if t >= GOOD or (best[0] > 0 and gain <= BETTER * before) or not isinstance(H, np.ndarray):
                break
            H = part.beyond(H, self.g[part.W], self.z, (t or 1.0) * dz)
        return best

    def _search(self, part: Slice, H: Any, d: np.ndarray, most: float) -> tuple[float, np.ndarray]:
        """How far to go along d: at most ``most``, and not at all if f does not fall there; and the margins of d."""
        slope, dz = float(self.g[part.W] @ d), part.dot(d)
        if not slope < 0:
            return 0.0, dz
        return armijo(self.f.between(self.z, dz), self.value, slope, 0.5 * float(d @ (H @ d)), most), dz


def armijo(line: Segment, value: float, slope: float, bend: float, most: float) -> float:
    """t = 1 if f falls enough there, else 1/2, 1/4, ...; or 2, 4, ... up to ``most`` while f falls more than the model says."""
    t, tiny = min(1.0, most), UNSEEN[0] * abs(value)
    now = line.value(t)
    if -slope <= UNSEEN[1] * abs(value) and now <= value + 10 * tiny:  # values say no more, slopes do
        return t if abs(line.slope(t)) <= -0.9 * slope else 0.0
    while not now <= value + SUFFICIENT * t * slope + tiny:
        t /= 2
        if t < 1e-12:
            return 0.0
        now = line.value(t)
    while value - now < 0.7 * -t * (
        slope + t * bend
    ):  # it falls less than the model says: perhaps it would not have to go so far
        if not (then := line.value(0.5 * t)) < now:
            break
        t, now = 0.5 * t, then
    if t == 1.0 and value - now > 1.1 * -(slope + bend):
        while t < most:
            further = min(2 * t, most)
            if not (then := line.value(further)) < now:
                break
            t, now = further, then
    return t
