"""What a run answers: the point with its exact value and gap, how it ended, what it cost, how it went."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.points.active import ActiveSet

if TYPE_CHECKING:
    import pandas as pd

Row: TypeAlias = dict[str, float | np.ndarray]  # of a trace, by column


class Status(enum.StrEnum):
    """What ended a run; the value is a short name, ``sentence`` says it in words.

    Examples
    --------
    >>> Status.MAX_GRADS == "max_grads", Status.MAX_GRADS.sentence
    (True, 'the budget of component gradients is spent')
    """

    sentence: str

    GAP = "gap", "the certified gap is within the tolerance"
    MAX_GRADS = "max_grads", "the budget of component gradients is spent"
    MAX_ITER = "max_iter", "the budget of iterations is spent"
    MAX_SECONDS = "max_seconds", "the time is up"
    CALLBACK = "callback", "the callback asked to stop"
    INTERRUPTED = "interrupted", "interrupted; this is the best certified point so far"
    NON_FINITE = "non_finite", "the objective gave a NaN or an infinity; this is the best certified point before it"
    STALLED = "stalled", "no step of the method leads farther from this point"
    PRECISION = (
        "precision",
        "float64 goes no farther: changing x in its last digits changes the gap by as much as the tolerance",
    )
    UNCERTIFIED = "uncertified", "no finite gap could be proved at this point: nothing is known of how good it is"
    OUTSIDE = "outside", "a step has left the set, an error of the method; this is the best certified point inside"
    UNSOLVED = "unsolved", "a sub-problem of the method took its share of LMOs or of work, short of the tolerance"

    def __new__(cls, name: str, sentence: str) -> Status:
        """A member with its name as its value."""
        status = str.__new__(cls, name)
        status._value_, status.sentence = name, sentence
        return status


@dataclass
class Calls:
    """Oracle calls of a run: the method's own, and apart from these the certificates'.

    Examples
    --------
    >>> Calls(grads=200, certificate=100).total_grads
    300
    """

    grads: int = 0  # component gradients that the method asked for
    lmos: int = 0  # linear minimisations that the method asked for
    values: int = 0  # component values that the method asked for (line searches)
    rows: int = 0  # rows of the data that were read, certificates included: n in a pass over all of them
    certificate: int = 0  # component gradients spent on exact gaps only
    certificate_lmos: int = 0  # linear minimisations spent on exact gaps only
    certificate_values: int = 0  # component values spent on relative tolerances and the final value

    @property
    def total_grads(self) -> int:
        """All component gradients, certificates included."""
        return self.grads + self.certificate


@dataclass(frozen=True)
class Certificate:
    """An exact value and Frank-Wolfe gap at one iterate. For convex f, f(x) - f* <= gap.

    Examples
    --------
    >>> Certificate(k=3, x=np.zeros(2), value=2.0, gap=1e-4).meets(tol=1e-4, atol=0.0)
    True
    """

    k: int  # iteration
    x: np.ndarray  # the iterate
    value: float  # f(x)
    gap: float  # max over s in C of <grad f(x), x - s>
    atoms: ActiveSet | None = None  # what x is a combination of, if the method keeps it

    def meets(self, tol: float, atol: float) -> bool:
        """Whether gap <= tol |f(x)| + atol."""
        return self.gap <= tol * abs(self.value) + atol


@dataclass(frozen=True)
class Record:
    """What a trace holds, and how often. Recording costs neither counted calls nor time on the run's clock.

    Parameters
    ----------
    every : float
        A row each time this many passes (n component gradients) have gone by; positive.
    what : sequence of "value", "gap", "x"
        The exact quantities to compute for each row.
    watch : callable, optional
        Called with each new row, a dict of the trace's columns: for progress displays.

    Examples
    --------
    >>> Record(every=0.5, what=("value",))
    Record(every=0.5, what=('value',), watch=None)
    """

    every: float = 1.0
    what: Sequence[str] = ("value", "gap")
    watch: Callable[[Row], object] | None = None

    def __post_init__(self):
        checks.positive("Record", "every", self.every)
        if isinstance(self.what, str) or not isinstance(self.what, Sequence):
            raise InputError(f"`Record(what=...)` must be a sequence such as ('value', 'gap'), got {self.what!r}")
        for name in self.what:
            checks.one_of("column of `Record(what=...)`", name, ("value", "gap", "x"))


TRACE_COLUMNS = ("iter", "grads", "passes", "lmos", "seconds", "cpu", "value", "gap")


class Trace:
    """How a run went: columns ``iter, grads, passes, lmos, seconds, cpu, value, gap`` as arrays, one entry per row.

    ``value`` and ``gap`` are exact, or NaN where they were not asked for. ``x`` holds the iterates if these were.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(2), np.array([1.0, 3.0]))
    >>> r = ex.minimize(f, ex.L1Ball(3.0), method=ex.FrankWolfe(), max_iter=3, record=1)
    >>> r.trace.passes
    array([1., 2., 3., 4.])
    """

    def __init__(self):
        self._rows: list[Row] = []

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, column: str) -> np.ndarray:
        return np.array([row[column] for row in self._rows])

    iter = property(lambda self: self["iter"], doc="Iterations.")
    grads = property(lambda self: self["grads"], doc="Component gradients of the method.")
    passes = property(lambda self: self["passes"], doc="Component gradients of the method, divided by n.")
    lmos = property(lambda self: self["lmos"], doc="Linear minimisations of the method.")
    seconds = property(lambda self: self["seconds"], doc="Seconds on the run's clock.")
    cpu = property(lambda self: self["cpu"], doc="Seconds of all processors, on the same clock.")
    value = property(lambda self: self["value"], doc="f(x), exact.")
    gap = property(lambda self: self["gap"], doc="Frank-Wolfe gap, exact.")

    @property
    def x(self) -> np.ndarray:
        """The iterates, one per row, if ``Record(what=...)`` asked for them."""
        if not all("x" in row for row in self._rows):
            raise InputError("the trace holds no iterates; ask for them by record=Record(what=('value', 'gap', 'x'))")
        return self["x"]

    def append(self, row: Row) -> bool:
        """Add a row, or complete the last one if it is of the same iteration; say whether the row is a new one."""
        new = not self._rows or self._rows[-1]["iter"] != row["iter"]
        if new:
            self._rows.append(row)
        else:
            self._rows[-1] |= row
        return new

    def to_pandas(self) -> pd.DataFrame:
        """The columns as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame({column: self[column] for column in TRACE_COLUMNS})

    def __repr__(self) -> str:
        return f"Trace({len(self)} rows: {', '.join(TRACE_COLUMNS)})"


@dataclass(frozen=True, repr=False)
class Result:
    """The answer of `minimize`. Value and gap are exact, at the returned x.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(2), np.array([1.0, 3.0]))
    >>> r = ex.minimize(f, ex.L1Ball(2.0), method="frank-wolfe", max_iter=1000)
    >>> r.status, r.converged, r.calls.grads
    (<Status.GAP: 'gap'>, True, 4)
    """

    x: np.ndarray  # the point, feasible
    value: float  # f(x)
    gap: float  # Frank-Wolfe gap at x; for convex f, f(x) - f* <= gap
    status: Status  # what ended the run
    converged: bool  # whether gap <= tol |f(x)| + atol
    n_iter: int  # iterations made
    calls: Calls  # oracle calls
    seconds: float  # on the run's clock: recording and callbacks are left out
    trace: Trace = field(default_factory=Trace)  # how it went
    method: Any = None  # the method as it was run, every parameter filled in
    atoms: ActiveSet | None = None  # what x is a combination of, if the method keeps it; a later run may start there
    set: Any = field(default=None, repr=False)  # the set, fitted to x
    compiled: int = 0  # iterations that were made in compiled bursts; the readable loop made the others
    convex: bool = True  # whether f is convex; otherwise the gap is 0 at stationary points, and bounds nothing

    @cached_property
    def violation(self) -> float:
        """The largest amount by which x breaks a constraint of the set: nothing but rounding, except for an `AffineCut`.

        Computed when first asked for; see `extremal.rounding.violation`. `minimize` has checked before that x is in the set, up
        to 1e-9 of its size (an `AffineCut` without its bounds).
        """
        from extremal.rounding.exact import violation  # imported by those who ask: it brings all kinds of sets

        return violation(self.set, self.x)

    @property
    def why(self) -> str:
        """What `Auto` chose, and why; empty if the method was named."""
        return "" if self.method is None else self.method.why

    def _repr_html_(self) -> str:
        from extremal.run.html import result_html  # imported by notebooks

        return result_html(self)

    def __repr__(self) -> str:
        c = self.calls
        return (
            f"Result({self.status.value}: {self.status.sentence}\n"
            f"  value {self.value:.10g}   gap {self.gap:.3e}   converged {self.converged}\n"
            f"  {self.n_iter} iterations, {c.grads} component gradients (+{c.certificate} for certificates), "
            f"{c.lmos} LMOs, {self.seconds:.3g} s\n"
            f"  {self.method}{self.why and chr(10) + '  ' + self.why})"
        )
