"""Newton steps on the coordinates in use: second-order corrective moves over sets whose vertices have one entry each."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from extremal.checks import InputError
from extremal.gradients.base import Estimate, Gradient
from extremal.iterates import freeze
from extremal.moves.base import FlatMove, Point
from extremal.objective import Objective, Segment
from extremal.sets.base import ConvexSet, Spikes
from extremal.slices import FEW, SHORT, Slice, has_slices, sliced
from extremal.steps import Step
from extremal.weights import ROUNDS, Quadratic

AGAIN = 0.2  # a Hessian is used again while each step brings the gap below this share of what it was
SUFFICIENT = 1e-4  # share of the slope that counts as a decrease
UNSEEN = {8: (1e-15, 1e-10), 4: (1e-7, 1e-5)}  # shares of f: its rounding, and what a decrease may be to be lost in it; by bytes
MASTER = 1e-3  # share of the gap that may be left over the coordinates in use before the others are looked at again
WIDE = 400  # entries of a starting point that are not zero, beyond which a vertex is the better start
OUTWARD = 0.5  # share of f that a step away from the origin has to promise
TAIL = 1.5  # so many times f at most is the mean of phi'^2 / phi'' where f is like a sum of exponentials
EARLY = 10  # rounds that the quadratic problem may take while the gap is larger than f
FAR_ROUNDS, FAR_LONGEST = 4, 15  # the same of problems that are solved by products with the Hessian, and iterations of a round
INNER = 0.01  # share of the gap that the quadratic problem may leave
GROWTH, SAMPLED = (2, 50), (1, 20)  # coordinates that may come in at once: times those in use, or so many; while g is a sample's


@dataclass(frozen=True)
class Memory:
    """What a step leaves to the next."""

    part: Slice  # the objective on the coordinates W
    H: Any  # its Hessian, at that point or not far from it; None if there are so few coordinates that it is not kept
    gap: float  # the gap before the step
    x: np.ndarray  # where, on W
    g: np.ndarray  # the gradient there, on W
    value: float  # f there

    def fits(self, at: At) -> bool:
        """Whether the last step was so good that its Hessian will do once more: the gap has fallen, and f has kept its scale."""
        return self.H is not None and at.gap <= AGAIN * self.gap and at.value > 0.5 * self.value

    def again(self, at: At) -> Memory:
        """The model at a new point, its Hessian corrected by the change of the gradient (BFGS) if that is of the same sample."""
        part = self.part.of(at.f)
        x, g = at.x[part.W], at.g[part.W]
        H = bfgs(self.H, x - self.x, g - self.g) if part is self.part and isinstance(self.H, np.ndarray) else self.H
        return Memory(part, H, at.gap, x, g, at.value)

    @classmethod
    def new(cls, part: Slice, at: At) -> Memory:
        """With the Hessian there."""
        return cls(part, part.hessian(at.z, at.far), at.gap, at.x[part.W], at.g[part.W], at.value)


@dataclass(frozen=True)
class NewtonPoint(Point):
    """A point with the quadratic model that led there."""

    memory: Memory | None = None


@dataclass(frozen=True)
class SpikeNewton(FlatMove):
    """A Newton step over the part of the set that some coordinates W span, for l1 balls and simplices.

        u = argmin over C, u_j = 0 for j outside W, of <g, u - x> + (u - x)' H (u - x) / 2
        x <- x + t (u - x),   H = (1/n) A_W' diag phi''(A x) A_W,   t = 1, 1/2, ... by Armijo, or 2, 4, ... while f falls

    W holds the coordinates in use, and those of the vertices that promise most. The quadratic problem is over weights of the
    vertices at W, and is solved by an active-set method: coordinates that do not help are dropped for good. A Hessian is kept
    as long as every step brings the gap down fivefold. f never increases. Where H is not positive definite |phi''| takes the
    place of phi''. There is no step to choose: the step rule is not asked.

    One LMO a step, one product with the columns W for t, and for a new Hessian the sum over rows of their squared entries in
    W, which counts as n component gradients; O(k^3) for k = |W|. Sparse data with more than 400 columns in W go by products
    with the Hessian, n component gradients each, and conjugate gradients.

    References
    ----------
    Liu, Cevher, Tran-Dinh (2022), A Newton Frank-Wolfe method for constrained self-concordant minimization, J. Global Optim.;
    Carderera, Pokutta (2020), Second-order conditional gradient sliding, arXiv:2002.08907; Yuan, Ho, Lin (2012), An improved
    GLMNET for l1-regularized logistic regression, JMLR 13.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(3), np.array([0.6, 0.4, -1.0]))
    >>> r = ex.minimize(f, ex.Simplex(), ex.Method(ex.Growing(), ex.FullStep(), SpikeNewton()), tol=1e-9)
    >>> r.x.round(6), r.n_iter
    (array([0.6, 0.4, 0. ]), 1)
    """

    def check(self, gradient: Gradient[Any], f: Objective, C: ConvexSet) -> None:
        """Refuse an objective without columns, and a set with other vertices."""
        super().check(gradient, f, C)
        check_columns("SpikeNewton", f)
        if spikes_of(C) is None:
            raise InputError(f"SpikeNewton needs a set whose vertices have one entry each, L1Ball or Simplex say, got {C}")

    def first(self, C: Any) -> Any:
        """The set's own starting point; a vertex if that has many entries which are not zero."""
        start = C.start()
        return C.lmo(np.zeros_like(start)).to_array() if np.count_nonzero(start) > WIDE else start

    def start(self, x0: np.ndarray) -> NewtonPoint:
        """x^0."""
        return NewtonPoint(x0, x0)

    def advance(self, k: int, f: Any, C: Any, point: NewtonPoint, estimate: Estimate, step: Step) -> NewtonPoint:
        """One Newton step."""
        at = At.of(f, C, point.x, estimate)
        spikes = spikes_of(C)
        assert spikes is not None
        far = at.outward(spikes)
        if far > 1:
            x, memory = far * at.x, point.memory
        else:
            memory = self._model(at, point.memory, spikes, GROWTH if estimate.exact else SAMPLED)
            x = self._step(at, memory, spikes)
        x = freeze(x.astype(point.x.dtype).reshape(point.x.shape))
        x = point.x if np.array_equal(x, point.x) else x  # the same: there is nothing more to be won
        return NewtonPoint(x, x, memory=memory)

    def _step(self, at: At, memory: Memory, spikes: Spikes) -> np.ndarray:
        """x after a Newton step on the model's coordinates; after several, by compiled loops, if these are few."""
        W, x = memory.part.W, at.x.copy()
        q, w = over_weights(memory, at.g[W], x[W], spikes, W)
        found = memory.part.solve(q.place, q.scale, w, x[W], at.z, MASTER * at.gap) if memory.H is None else None
        if found is not None:
            x[W] = found[0]
            return x
        if memory.H is None:
            q = replace(q, H=memory.part.hessian(at.z, at.far))
        q = replace(q, H=at.tailed(q.H, W))
        inner, rounds = INNER, EARLY if at.far else ROUNDS
        if not isinstance(q.H, np.ndarray):
            inner, rounds = 10 * INNER, FAR_ROUNDS if at.far else EARLY
            q = replace(q, longest=FAR_LONGEST if at.far else q.longest)
        new = q.minimise(w, inner * at.gap, rounds)
        d = q.point(new) - x[W]
        x[W] += at.search(memory.part, q.H, d, room(w, new)) * d
        return x

    def _model(self, at: At, memory: Memory | None, spikes: Spikes, growth: tuple[int, int]) -> Memory:
        """The quadratic model of the last step if it is still good, or a new one."""
        promise = at.here - least(spikes, at.g)  # of the best vertex at each coordinate
        used = np.flatnonzero(at.x)
        if memory is not None and memory.fits(at):
            wanted = np.union1d(used, np.flatnonzero(promise > 0.25 * at.gap))
            if np.isin(wanted, memory.part.W, assume_unique=True).all():
                return memory.again(at)
        W = coordinates(promise, used, 0.01 * at.gap, max(growth[0] * len(used), growth[1]))
        near = memory is not None and memory.part.f is at.f and len(memory.part.W) <= 1.5 * len(W)
        if near and memory is not None and np.isin(W, memory.part.W, assume_unique=True).all():
            part = memory.part  # its columns have been copied already
        else:
            part = sliced(at.f, W)
        short = at.exact and len(at.z) <= SHORT and len(part.W) <= FEW
        return Memory(part, None, at.gap, at.x[part.W], at.g[part.W], at.value) if short else Memory.new(part, at)


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
    exact: bool  # whether f is all of it

    @classmethod
    def of(cls, f: Any, C: Any, x: np.ndarray, estimate: Any) -> At:
        """From the estimate, and what it does not know from f; one LMO."""
        f = getattr(estimate, "model", f)
        z = estimate.z if hasattr(estimate, "z") else f.margins(x)
        value = estimate.value if hasattr(estimate, "value") else f.between(z, z).value(0.0)
        flat, g = (a.reshape(-1).astype(np.float64, copy=False) for a in (x, estimate.g))
        gap = C.gap(x, estimate.g, C.lmo(estimate.g))
        return cls(f, flat, g, z, value, float(g @ flat), gap, estimate.exact)

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

    def search(self, part: Slice, H: Any, d: np.ndarray, most: float) -> float:
        """How far to go along d, on the coordinates of ``part``: at most ``most``, and not at all if f does not fall there."""
        slope = float(self.g[part.W] @ d)
        if not slope < 0:
            return 0.0
        line = self.f.between(self.z, part.dot(d.astype(self.f.dtype, copy=False)))
        return armijo(line, self.value, slope, 0.5 * float(d @ (H @ d)), most, UNSEEN[self.f.dtype.itemsize])


def bfgs(H: np.ndarray, s: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The positive semidefinite matrix near H that maps the step s to the change y of the gradient; H if there is none."""
    Hs, sy = H @ s, float(s @ y)
    sHs = float(s @ Hs)
    if not (sHs > 0 and sy > 1e-3 * sHs):
        return H
    return H + np.outer(y / sy, y) - np.outer(Hs / sHs, Hs)


def check_columns(call: str, f: Any) -> None:
    """Refuse an objective that has no Hessian by columns."""
    if not has_slices(f):
        what = "a LinearModel with rows in memory and a loss that has second derivatives"
        raise InputError(f"{call} needs {what}, got {type(f).__name__}")


def spikes_of(C: Any) -> Spikes | None:
    """The vertices of a set that is all spikes."""
    spikes = C.spikes() if hasattr(C, "spikes") else None  # as isinstance(C, Spiked) would, which takes longer
    if spikes is None or not (np.ndim(spikes.low) > 1 or np.ndim(spikes.high) > 1):
        return spikes
    return replace(spikes, low=np.ravel(spikes.low), high=np.ravel(spikes.high))


def least(spikes: Spikes, g: np.ndarray) -> np.ndarray:
    """min of <g, s> over the vertices s at each coordinate."""
    low = np.where(spikes.low == 0, np.inf, spikes.low * g)
    return np.minimum(low, np.where(spikes.high == 0, np.inf, spikes.high * g))


def coordinates(promise: np.ndarray, used: np.ndarray, threshold: float, most: int) -> np.ndarray:
    """Those in use, and at most so many others, of the largest promise; increasing."""
    promise = promise.copy()
    promise[used] = -np.inf
    others = np.flatnonzero(promise > threshold)
    if len(others) > most:
        others = others[np.argpartition(-promise[others], most - 1)[:most]]
    return np.sort(np.concatenate([used, others]))


def over_weights(memory: Memory, g: np.ndarray, x: np.ndarray, spikes: Spikes, W: np.ndarray) -> tuple[Quadratic, np.ndarray]:
    """The quadratic model as a function of the vertices' weights, and the weights of x."""
    places, scales, weights = [], [], []
    for reach, part in ((spikes.high, np.maximum(x, 0.0)), (spikes.low, np.minimum(x, 0.0))):
        scale = reach[W] if isinstance(reach, np.ndarray) else np.full(len(W), float(reach))
        there = np.flatnonzero(scale)
        places.append(there)
        scales.append(scale[there])
        weights.append(part[there] / scale[there])
    if spikes.origin:
        places.append(np.zeros(1, np.intp))
        scales.append(np.zeros(1))
        weights.append(np.array([max(0.0, 1.0 - sum(float(w.sum()) for w in weights))]))
    w = np.concatenate(weights)
    return Quadratic(memory.H, g, x, np.concatenate(places), np.concatenate(scales)), w / w.sum()


def room(w: np.ndarray, new: np.ndarray) -> float:
    """How far w + t (new - w) stays non-negative."""
    down = new < w
    return float((w[down] / (w[down] - new[down])).min()) if down.any() else math.inf


def armijo(
    line: Segment, value: float, slope: float, bend: float, most: float, rounding: tuple[float, float] = UNSEEN[8]
) -> float:
    """t = 1 if f falls enough there, else 1/2, 1/4, ...; or 2, 4, ... up to ``most`` while f falls more than the model says."""
    t, tiny = min(1.0, most), rounding[0] * abs(value)
    now = line.value(t)
    if -slope <= rounding[1] * abs(value) and now <= value + 10 * tiny:  # values say no more, slopes do
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
