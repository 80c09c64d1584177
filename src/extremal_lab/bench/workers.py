"""Two Dask workers beside one process, on the rows of `shards`: time and CPU of a pass and of a whole call, and bytes sent.

One process, ``python -m extremal_lab.bench.workers FOLDER PASSES CALLS``, makes passes and calls in turns. It has one thread,
like each worker. So a busy machine slows both; ratios are for an idle machine of at least three cores.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import extremal as ex
from extremal_lab.bench.children import answer, asked, installed
from extremal_lab.bench.iterations import power
from extremal_lab.bench.shards import clicks
from extremal_lab.bench.timing import Found, Measurement, Skipped

PART = "workers"
WORKERS = 2
BALL = 20.0
FASTER = 1.6  # speed that two workers should have, relative to one process
BARS = {  # measurement: (name, unit, bar)
    "pass": ("a pass, two workers over one process", "wall time, median of ratios", 1 / FASTER),
    "call": ("a whole call to 1e-4, two workers over one process", "wall time, median of ratios", 1 / FASTER),
    "cpu": ("a pass, both hosts over one process", "CPU time, median of ratios", 1.15),
    "cpu_call": ("a whole call to 1e-4, both hosts over one process", "CPU time, median of ratios", 1.15),
    "beyond": ("a pass beyond its slowest host", "milliseconds", 10.0),
    "sent": ("a pass, sent to each worker", "vectors of d numbers", 2.0),
    "back": ("a pass, sent back by each worker", "vectors of d numbers", 2.0),
    "calls": ("a whole call to 1e-4, calls of each host", "calls", None),
}


@dataclass(frozen=True)
class Sizes:
    """Rows of each worker, passes and whole calls, bytes of a shard."""

    rows: int
    passes: int = 15
    calls: int = 5
    shard: int = 2**26


LEVELS = {
    "smoke": Sizes(10_000, 2, 1, 2**18),
    "quick": Sizes(500_000, 7, 3, 2**24),
    "default": Sizes(5_000_000),
    "full": Sizes(5_000_000, 31, 11),
}


def measure(level: str) -> Found:
    """Measure all numbers with bars, with the least and the most of each."""
    if not installed("distributed"):
        yield Skipped(PART, "Dask workers", "distributed is not installed: pip install 'extremal[scale]'")
        return
    sizes = LEVELS[level]
    with tempfile.TemporaryDirectory() as folder:
        ex.ShardDir.build(clicks(WORKERS * sizes.rows), folder, dtype="float32", shard_bytes=sizes.shard)
        found = asked("extremal_lab.bench.workers", folder, sizes.passes, sizes.calls, minutes=60)
    for key, (name, unit, bar) in BARS.items():
        note = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
        yield Measurement.of(PART, f"{name}, {power(sizes.rows)} rows a worker", found[key], unit=unit, bar=bar, note=note)


class Pair:
    """The same rows for one process and for two workers."""

    def __init__(self, folder: str, client: Any):
        data = ex.ShardDir(folder, engine="disk"), ex.ShardDir(folder, client=client)
        self.engine: Any = data[1].parts
        self.alone, self.shared = (ex.LinearModel(ex.Logistic(), one) for one in data)

    def turn(self, work: Callable[[ex.LinearModel], object]) -> dict[str, float]:
        """Do a work on both, one after the other: ratios of time, and bytes sent."""
        seconds, cpu = _took(work, self.alone)
        self.engine.take_costs()
        wall, _ = _took(work, self.shared)
        costs, vector = self.engine.take_costs(), 8 * WORKERS * self.alone.shape[0]
        return {
            "wall": wall / seconds, "cpu": costs.cpu / cpu, "beyond": 1e3 * (wall - costs.longest),
            "sent": costs.sent / vector, "back": costs.back / vector, "calls": costs.calls / WORKERS,
        }  # fmt: skip


def _took(work: Callable[[ex.LinearModel], object], f: ex.LinearModel) -> tuple[float, float]:
    start, cpu = time.perf_counter(), time.process_time()
    work(f)
    return time.perf_counter() - start, time.process_time() - cpu


def one_pass(f: ex.LinearModel) -> None:
    """Compute f, its gradient and the margins, at a point with some non-zeros."""
    f.value_grad_margins(np.where(np.arange(f.shape[0]) % 500 == 0, 0.1, 0.0))


def whole_call(f: ex.LinearModel) -> None:
    """Compute a certified answer."""
    ex.minimize(f, ex.L1Ball(BALL), tol=1e-4)


def main(folder: str, passes: str, calls: str) -> None:
    """Measure in turns, after one turn that does not count, and write the results."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, memory_limit=0, dashboard_address=":0", silence_logs=50) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        pair = Pair(folder, client)
        looks = [pair.turn(one_pass) for _ in range(int(passes) + 1)][1:]
        runs = [pair.turn(whole_call) for _ in range(int(calls) + 1)][1:]
    found = {key: [look[key] for look in looks] for key in ("cpu", "beyond", "sent", "back")}
    found |= {"pass": [look["wall"] for look in looks], "call": [run["wall"] for run in runs]}
    answer(found | {"cpu_call": [run["cpu"] for run in runs], "calls": [run["calls"] for run in runs]})


if __name__ == "__main__":
    main(*sys.argv[1:])
