"""The study of error against bytes: workers and agents that compress their messages, from the same problem.

A run notes f and all counts at some iterations. The workers of EF21 and MARINA send to a server, the agents of DMFW to their
neighbours on a ring; bytes are those of all messages, as the library counts them.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal.methods import recipe
from extremal.run import iterate
from extremal_lab.reproduction.report import label
from extremal_lab.reproduction.sources import Source, constraint, objective
from extremal_lab.reproduction.tasks import Minimum

LOSS, SET, WORKERS, SERVER, RING = "logistic", "l1:20", 10, "to a server", "on a ring"
LEVELS = (1e-1, 1e-2, 1e-3)  # of the error at the start
MARKS = 60  # iterations at which f is evaluated
TITLE = "Error against bytes"


@dataclass(frozen=True)
class Sending:
    """A run of a method that sends messages."""

    source: Source
    method: str  # with its parameters
    seed: int
    iterations: int

    @property
    def cost(self) -> float:
        """Some seconds for each million non-zeros, and some for each message."""
        return self.iterations * (2e-8 * self.source.nnz + 2e-4 * WORKERS)

    def execute(self) -> dict[str, np.ndarray]:
        """The value, the counts and the distance of the agents from their mean, at iterations that are spaced like powers."""
        f, C = objective(self.source, LOSS), constraint(self.source, SET)
        marks = set(np.unique(np.geomspace(1, self.iterations, MARKS).round().astype(int)).tolist()) | {0}
        rows = []
        for state in itertools.islice(iterate(f, C, recipe(self.method), seed=self.seed), self.iterations + 1):
            if state.k in marks:
                calls, away = state.calls, np.atleast_2d(state.point.query) - state.x
                apart = float(np.sqrt((away**2).sum(axis=-1).mean()))
                rows.append((state.k, calls.grads, calls.lmos, calls.numbers, calls.bytes, f.value(state.x), apart))
        return dict(zip(("iter", "grads", "lmos", "numbers", "bytes", "value", "apart"), np.array(rows, float).T, strict=True))


def sending(source: Source, quick: bool) -> dict[tuple[str, str], list[Sending]]:
    """The runs of each method, by the kind of its network."""
    few, many = max(1, source.d // 100), max(1, source.d // 10)
    server = [f"ef21-fw:compressor={name}:workers={WORKERS}" for name in ("none", "natural", *_of("top", few, many))]
    server += [f"ef21-fw:compressor={name}:workers={WORKERS}" for name in _of("random", few, many)]
    server += [f"marina-fw:compressor={name}:workers={WORKERS}" for name in ("natural", *_of("random", few, many))]
    ring = [
        f"dmfw:batch={max(1, source.n // 100)}:compressor={name}" for name in ("none", "natural", f"top-{many}", f"random-{many}")
    ]
    seeds, iterations = (1, 400) if quick else (3, 4000)
    named = [(SERVER, method) for method in server] + [(RING, method.replace(":compressor=none", "")) for method in ring]
    return {key: [Sending(source, key[1], seed, iterations) for seed in range(seeds)] for key in named}


def _of(name: str, few: int, many: int) -> list[str]:
    return [f"{name}-{k}" for k in dict.fromkeys((few, many))]


def tasks(source: Source, quick: bool) -> list[Any]:
    """All runs, and the minimum."""
    return [*itertools.chain(*sending(source, quick).values()), Minimum(source, LOSS, SET)]


def bytes_to(made: dict[str, np.ndarray], least: float, level: float) -> float:
    """The bytes at the first mark where f - f_min is at most ``level`` of its start; infinite if there is none.

    Examples
    --------
    >>> bytes_to({"value": np.array([3.0, 2.0, 1.1]), "bytes": np.array([8, 16, 24])}, 1.0, 0.1)
    24.0
    """
    error = made["value"] - least
    at = np.flatnonzero(error <= level * error[0])
    return float(made["bytes"][at[0]]) if at.size else np.inf


def found(source: Source, quick: bool, results: dict[Any, dict[str, np.ndarray]]) -> dict[str, Any]:
    """The text, the table, the numbers and the plots of the study."""
    least, runs = float(results[Minimum(source, LOSS, SET)]["value"]), sending(source, quick)
    needed = {
        (*key, level): float(np.median([bytes_to(results[run], least, level) for run in held]))
        for key, held in runs.items()
        for level in LEVELS
    }
    rows = [
        _row(*key, [needed[*key, level] for level in LEVELS], [results[run] for run in held], least) for key, held in runs.items()
    ]
    errors = [f"MB to {level:g} of the first error" for level in LEVELS]
    columns = ("method", "bytes an iteration", *errors, "f - f_min at the end", "agents from their mean")
    some = next(iter(runs.values()))
    text = (
        f"Logistic regression over {SET}, n = {source.n}, d = {source.d}. {WORKERS} workers send to a server, and DMFW has 4 "
        "agents on a ring, with batches of n/100. Bytes are those of all messages; a server's answer, the vertex of the step, "
        f"is not counted. {some[0].iterations} iterations, medians of {len(some)} seeds. EF21 and MARINA take full gradients, so "
        f"their iterations cost the same component gradients. Data: {source.text}."
    )
    shown = {kind: {m: results[held[0]] for (k, m), held in runs.items() if k == kind} for kind in (SERVER, RING)}
    plots = [_plot(kind, made, least) for kind, made in shown.items()]
    return {"text": text, "table": (columns, rows), "numbers": needed, "plots": plots}


def _row(kind: str, method: str, needed: list[float], ends: list[dict[str, np.ndarray]], least: float) -> list[str]:
    """A line of the table: medians over the seeds."""
    each, error, apart = (
        float(np.median(of))
        for of in (
            [end["bytes"][-1] / (end["iter"][-1] + 1) for end in ends],
            [end["value"][-1] - least for end in ends],
            [end["apart"][-1] for end in ends],
        )
    )
    return [label(method), f"{each:.0f}", *map(_bytes, needed), f"{error:.1e}", "" if kind == SERVER else f"{apart:.1e}"]


def _bytes(many: float) -> str:
    return f"{many / 1e6:.3g}" if np.isfinite(many) else "-"


def _plot(kind: str, made: dict[str, dict[str, np.ndarray]], least: float) -> dict[str, Any]:
    series = [{"label": label(method), **_curve(run["bytes"], run["value"] - least)} for method, run in made.items()]
    axes = {"x_label": "bytes sent", "y_label": "f - f_min", "log_x": True, "log_y": True}
    return {"title": f"{TITLE}, {kind}", "series": series} | axes


def _curve(x: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    return {"x": [float(v) for v in x], "y": [max(float(v), 1e-15) for v in y], "low": None, "high": None}
