"""The result of a run: the point with its exact value and gap, the reason for the stop, the cost, and the trace."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.points.active import ActiveSet
from extremal.run.kept_trace import KeptTrace
from extremal.support.lazy import imported

if TYPE_CHECKING:
    import pandas as pd

Row: TypeAlias = dict[str, float | np.ndarray]  # a row of a trace, by column


class Status(enum.StrEnum):
    """The reason why a run ended; the value is a short name, and ``sentence`` explains it.

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
        """Make a member whose value is its name."""
        status = str.__new__(cls, name)
        status._value_, status.sentence = name, sentence
        return status


@dataclass
class Calls:
    """Oracle calls of a run: the method's own, and separately those of certificates.

    Examples
    --------
    >>> Calls(grads=200, certificate=100).total_grads
    300
    """

    grads: int = 0  # component gradients of the method
    lmos: int = 0  # linear minimisations of the method
    values: int = 0  # component values of the method (line searches)
    rows: int = 0  # rows of the data that were read, including certificates: n in a pass over all rows
    certificate: int = 0  # component gradients spent on exact gaps only
    certificate_lmos: int = 0  # linear minimisations spent on exact gaps only
    certificate_values: int = 0  # component values spent on relative tolerances and the final value
    block_lmos: int = 0  # linear minimisations of the method over one block of a product of sets; lmos has those over all blocks
    hessian_rows: int = 0  # how many of the method's component gradients are rows of second derivatives
    numbers: int = 0  # entries of vectors that workers or agents have sent, to each receiver
    bytes: int = 0  # the bytes of these messages

    @property
    def total_grads(self) -> int:
        """All component gradients, including certificates."""
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
    atoms: ActiveSet | None = None  # the atoms that x is a combination of, if the method keeps them

    def meets(self, tol: float, atol: float) -> bool:
        """Whether gap <= tol |f(x)| + atol."""
        return self.gap <= tol * abs(self.value) + atol


@dataclass(frozen=True)
class Record:
    """The contents of a trace, and how often to record. Recording costs neither counted calls nor time on the run's clock.

    Parameters
    ----------
    every : float
        Passes (n component gradients each) between rows; positive.
    what : sequence of "value", "gap", "x"
        The exact quantities to compute for each row.
    watch : callable, optional
        Called with each new row, a dict of the trace's columns, for progress displays.

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


class Trace(KeptTrace):
    """The history of a run: columns ``iter, grads, passes, lmos, seconds, cpu, value, gap`` as arrays, one entry per row.

    ``value`` and ``gap`` are exact, or NaN if not requested. ``x`` holds the iterates, if requested.

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
        """The iterates, one per row, if ``Record(what=...)`` includes "x"."""
        if not all("x" in row for row in self._rows):
            raise InputError("the trace holds no iterates; ask for them by record=Record(what=('value', 'gap', 'x'))")
        return self["x"]

    def append(self, row: Row) -> bool:
        """Add a row, or complete the last row if it belongs to the same iteration; return whether the row is new."""
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

    x: np.ndarray  # the point, which is feasible
    value: float  # f(x)
    gap: float  # Frank-Wolfe gap at x; for convex f, f(x) - f* <= gap
    status: Status  # the reason why the run ended
    converged: bool  # whether gap <= tol |f(x)| + atol
    n_iter: int  # iterations made
    calls: Calls  # oracle calls
    seconds: float  # time on the run's clock, without recording and callbacks
    trace: Trace = field(default_factory=Trace)  # the history of the run
    method: Any = None  # the method as it was run, with every parameter filled in
    atoms: ActiveSet | None = None  # the atoms that x is a combination of, if the method keeps them; a later run may start there
    set: Any = field(default=None, repr=False)  # the set, fitted to x
    compiled: int = 0  # iterations made in compiled bursts; the readable loop made the others
    convex: bool = True  # whether f is convex; otherwise the gap is 0 at stationary points and bounds nothing
    objective: Any = field(default=None, repr=False, compare=False)  # f, which a pickled result leaves behind
    seed: int | None = None  # the seed of the run

    @cached_property
    def violation(self) -> float:
        """The largest amount by which x violates a constraint of the set: only rounding, except for an `AffineCut`.

        It is computed on first access; see `extremal.rounding.violation`. `minimize` has already checked that x is in the set,
        up to 1e-9 of its size (for an `AffineCut`, in the set without its bounds).
        """
        from extremal.rounding.exact import violation  # imported on use, because it imports all kinds of sets

        return violation(self.set, self.x)

    def save(self, path: str | Path) -> None:
        """Write the answer as .npz, with all that `extremal.verify` and ``extremal verify`` need to check it.

        The file holds x (as factors, and with atoms, if the run kept them), value, gap, the vertex that attains the gap and the
        bound over the set, the set and the loss in words and numbers, checksums of the data, versions, the seed and counts. It is
        written whole or not at all, and `np.load` reads it without pickles. The cost is a few passes over the data.

        Examples
        --------
        >>> import tempfile, numpy as np, extremal as ex
        >>> f = ex.LinearModel(ex.Squared(), np.eye(2), np.array([1.0, 3.0]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ex.minimize(f, ex.L1Ball(2.0)).save(f"{folder}/answer.npz")
        ...     ex.verify(f"{folder}/answer.npz", f, ex.L1Ball(2.0)).verdict
        'proved'
        """
        imported("extremal.files.answers").save_answer(path, self)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "objective": None}  # a pickle of an answer does not copy the data

    @property
    def why(self) -> str:
        """The choice of `Auto` and its reason, if no method was named; and the least gap, if rounding ended the run."""
        return "" if self.method is None else self.method.why

    def _repr_html_(self) -> str:
        from extremal.run.html import result_html  # imported on use, by notebooks

        return result_html(self)

    def __repr__(self) -> str:
        c = self.calls
        return (
            f"Result({self.status.value}: {self.status.sentence}\n"
            f"  value {float(self.value):.10g}   gap {float(self.gap):.3e}   converged {self.converged}\n"
            f"  {self.n_iter} iterations, {c.grads} component gradients (+{c.certificate} for certificates), "
            f"{c.lmos} LMOs{f' (+{c.block_lmos} of one block)' if c.block_lmos else ''}, {_sent(c)}{self.seconds:.3g} s\n"
            f"  {self.method}{self.why and chr(10) + '  ' + self.why})"
        )


def _sent(c: Calls) -> str:
    return f"{c.bytes} bytes sent ({c.numbers} numbers), " if c.bytes else ""
