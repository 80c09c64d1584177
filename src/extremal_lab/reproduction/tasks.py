"""The units of work: a run of a method, and the certified minimum of a problem. Each is plain data and returns arrays."""

from __future__ import annotations

import dataclasses
import inspect
import math
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np

from extremal.methods import METHODS, Recipe, Tuned, recipe
from extremal.run import Record, Trace, minimize
from extremal.sets import ConvexSet
from extremal_lab.reproduction.loops import as_method
from extremal_lab.reproduction.own import HELD, imported, is_reference, made
from extremal_lab.reproduction.reference import reference
from extremal_lab.reproduction.sources import Source, constraint, held_out, objective

COLUMNS = ("passes", "lmos", "cpu", "value", "gap")
AT_POINTS = ("nonzeros", "test")  # columns that a run has if it was asked for them
LARGE = 10**7  # numbers of x up to which problems are told apart by their values
TIMED = 1.0  # passes between the points of a run that only a clock ends


class Task(Protocol):
    """The work of a worker: its fields contain everything that decides the outcome."""

    @property
    def cost(self) -> float:
        """Rough seconds, to estimate the time left."""
        ...

    def execute(self) -> dict[str, np.ndarray]:
        """The outcome."""
        ...


@dataclass(frozen=True)
class Run:
    """One run of one method from one seed, until its budget is spent."""

    source: Source
    loss: str
    set: str
    method: str  # with its parameters
    batch: int | None  # None: the method's own
    factor: float  # multiplies the method's own step
    seed: int
    passes: float | None  # the budget, in full gradients
    rows: int  # points of the curve
    seconds: float | None = None  # the budget, on the clock of the run
    test: str = ""  # rows or an objective for the test loss: a text of the user's, or "0.2" for the rows that are held out
    points: bool = False  # whether to count non-zeros

    @property
    def cost(self) -> float:
        """Some seconds for each million non-zeros, and some for each iteration; or the seconds that the run may take."""
        if self.passes is None:
            return self.seconds or 0.0
        iterations = self.passes * self.source.n / (self.batch or math.sqrt(self.source.n))
        return 1e-8 * self.passes * self.source.nnz + 6e-5 * iterations

    def execute(self) -> dict[str, np.ndarray]:
        """The curve on an even grid of the budget: at each place the first iterate that has spent as much.

        The grid is of component gradients, or of seconds if there is no such budget. The result also has the batch, 0 if it
        changes or there is none, whether the steps were projections, and the bytes that agents or workers sent.
        """
        f, C = objective(self.source, self.loss), constraint(self.source, self.set)
        method = Tuned(method_of(self.method, None if self.batch is None else min(self.batch, f.n)), self.factor)
        grads = None if self.passes is None else max(1, round(self.passes * f.n))
        r = minimize(
            f, C, method, seed=self.seed, tol=0, atol=0, max_grads=grads, max_seconds=self.seconds, record=self._record()
        )  # fmt: skip
        at = self._places(r.trace)
        curve = {column: np.asarray(r.trace[column], dtype=np.float64)[at] for column in COLUMNS}
        facts = {"batch": _batch(r.method.gradient), "projects": r.method.move.projects, "bytes": sent(r.calls)}
        return curve | self._at_points(r.trace, at) | {name: np.asarray(fact) for name, fact in facts.items()}

    def _record(self) -> Record:
        every = TIMED if self.passes is None else self.passes / self.rows
        return Record(every, ("value", "gap", "x") if self.points or self.test else ("value", "gap"))

    def _places(self, trace: Trace) -> np.ndarray:
        """The rows of the trace that are points of the curve."""
        spent, end = (trace.seconds, trace.seconds[-1]) if self.passes is None else (trace.passes, self.passes)
        grid = np.linspace(0, end, self.rows + 1)
        at = np.searchsorted(spent, grid * (1 - 1e-12))  # the first iterate that has spent that much
        return np.minimum(at, len(trace) - 1)

    def _at_points(self, trace: Trace, at: np.ndarray) -> dict[str, np.ndarray]:
        """The columns that need the points: each point once, since a run may stay where it is."""
        found: dict[str, np.ndarray] = {}
        rows, back = np.unique(at, return_inverse=True)
        if self.points:
            found["nonzeros"] = np.array([np.count_nonzero(trace.x[i]) for i in rows], dtype=np.float64)[back]
        if self.test:
            f = held_out(self.source, self.loss, self.test)
            found["test"] = np.array([f.value(trace.x[i]) for i in rows])[back]
        return found


@runtime_checkable
class Sends(Protocol):
    """Calls that count the bytes of their messages."""

    bytes: int


def sent(calls: object) -> int:
    """The bytes that a run sent; 0 for a run that does not count them.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> sent(SimpleNamespace(bytes=8)), sent(SimpleNamespace(grads=3))
    (8, 0)
    """
    return calls.bytes if isinstance(calls, Sends) else 0


def method_of(text: str, batch: int | None = None) -> Recipe:
    """A method by its name, by ``module:name``, or of the user's; ``batch`` is the default if the method has a batch."""
    if text in HELD:
        return _with_batch(HELD[text], batch)
    if is_reference(text, METHODS):
        return _with_batch(imported("method", text, _made_method), batch)
    return recipe(text, batch)


def _made_method(found: Any, given: dict[str, Any]) -> Recipe:
    plain = inspect.isgeneratorfunction(found) or not callable(found)
    return as_method("method=module:name", found if plain and not given else made(found, given))


def _with_batch(method: Recipe, batch: int | None) -> Recipe:
    """The method with a batch, if it has an open one."""
    fields = {item.name for item in dataclasses.fields(method)} if dataclasses.is_dataclass(method) else ()
    is_open = batch is not None and "batch" in fields and vars(method)["batch"] is None
    return dataclasses.replace(cast(Any, method), batch=batch) if is_open else method


def _batch(gradient: Any) -> int:
    """The batch of an estimator, or of the estimator that it wraps; 0 if there is none or it changes."""
    inner = getattr(gradient, "gradient", None)
    batch = getattr(gradient, "batch", 0) if inner is None else _batch(inner)
    return batch if isinstance(batch, int) else 0


@dataclass(frozen=True)
class Minimum:
    """The least value of a problem, certified by a method of another kind."""

    source: Source
    loss: str
    set: str

    @property
    def cost(self) -> float:
        """Some tens of Newton steps."""
        return 0.5 + 1e-6 * self.source.nnz * max(1.0, self.source.nnz / self.source.n / 30)

    def execute(self) -> dict[str, np.ndarray]:
        """The value, the gap, the method, whether f is convex, and numbers by which other machines know the problem."""
        f, C = objective(self.source, self.loss), constraint(self.source, self.set)
        found = reference(f, C)
        keep = {"value": found.value, "gap": found.gap, "how": found.how, "convex": found.convex, "x": found.x}
        return {name: np.asarray(item) for name, item in keep.items()} | {"print": fingerprint(f, C.on(f.shape))}


def fingerprint(f: Any, C: ConvexSet) -> np.ndarray:
    """Numbers that tell problems apart, up to rounding: n, the size of x, f at three points of C, the gap at one.

    Examples
    --------
    >>> import extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(2), np.array([1.0, 3.0]))
    >>> fingerprint(f, ex.L1Ball(2.0).on(2)).round(3)
    array([2.   , 2.   , 2.5  , 3.25 , 1.562, 1.375])
    """
    size, x = math.prod(f.shape), C.start()
    if size > LARGE or not isinstance(x, np.ndarray):  # a matrix in factors: no point of it is formed
        return np.array([f.n, size], dtype=np.float64)
    vertices = [C.lmo(np.cos(np.arange(1.0, size + 1) * k).reshape(f.shape)).to_array() for k in (1, 2)]
    halves = [(x + vertices[0]) / 2, (x + vertices[0] + 2 * vertices[1]) / 4]
    value, g = f.value_and_grad(halves[1])
    return np.array([f.n, size, f.value(x), f.value(halves[0]), value, C.gap(halves[1], g)])
