"""Directories of shards: whole calls from disk beside calls in memory, reads to a certified answer, and memory under a limit.

The rows are clicks: twelve fields of 4167 columns with one entry each, the columns drawn with a long tail. Each run is a
process of its own, ``python -m extremal_lab.bench.shards FOLDER ENGINE KIND RADIUS COLD GIB``, with compiled kernels.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import extremal as ex
from extremal_lab.bench.children import answer, asked
from extremal_lab.bench.iterations import power
from extremal_lab.bench.machine import peak_memory
from extremal_lab.bench.timing import Found, Measurement

PART = "shards"
FIELDS, COLUMNS, CHUNK = 12, 4167, 250_000
MODELS = {"linear": ex.LinearModel, "intercept": ex.InterceptModel}
REPEATS = 3
RATIOS = {  # name: (the run, the run it is compared with, bar)
    "whole call, disk over memory": (("disk", "linear", 20, 0), ("memory", "linear", 20, 0), 1.25),
    "whole call, disk with a cold cache over memory": (("disk", "linear", 20, 1), ("memory", "linear", 20, 0), 1.6),
    "with an intercept over without": (("memory", "intercept", 20, 0), ("memory", "linear", 20, 0), 2.2),
    "SarahFW, b = n/100, disk over memory": (("disk", "sarah", 20, 0), ("memory", "sarah", 20, 0), 1.5),
    "SarahFW, b = n/100, cold cache over memory": (("disk", "sarah", 20, 1), ("memory", "sarah", 20, 0), 3.0),
}
READS = {20: 3.5, 80: 4.5}  # radius: passes to a certified relative gap of 1e-4


@dataclass(frozen=True)
class Sizes:
    """Rows, and the limit of private memory in GiB with the bar of the peak."""

    rows: int
    private: float = 0.0
    resident: float = 1.0


LEVELS = {"smoke": Sizes(20_000), "quick": Sizes(1_000_000), "default": Sizes(8_000_000), "full": Sizes(36_000_000, 0.5)}


def clicks(n: int, seed: int = 5) -> Iterator[tuple[Any, np.ndarray]]:
    """Blocks of rows and their labels.

    Examples
    --------
    >>> rows, labels = next(clicks(3))
    >>> rows.shape, rows.nnz, labels.shape
    ((3, 50004), 36, (3,))
    """
    rng, w = np.random.default_rng(seed), np.zeros(FIELDS * COLUMNS)
    for field in range(FIELDS):
        w[field * COLUMNS + rng.choice(60, 12, replace=False)] = rng.normal(0, 0.9, 12)
    for start in range(0, n, CHUNK):
        m = min(CHUNK, n - start)
        columns = (COLUMNS * rng.random((m, FIELDS)) ** 4).astype(np.int32) + COLUMNS * np.arange(FIELDS, dtype=np.int32)
        values = (0.5 + rng.random((m, FIELDS))).astype(np.float32)
        z = (w[columns] * values).sum(axis=1) - 0.3
        y = np.where(rng.random(m) < 1.0 / (1.0 + np.exp(-z)), 1.0, -1.0)
        starts = np.arange(0, FIELDS * m + 1, FIELDS, dtype=np.int32)
        yield sp.csr_array((values.ravel(), columns.ravel(), starts), shape=(m, FIELDS * COLUMNS)), y


def measure(level: str) -> Found:
    """Measure ratios of CPU time as medians, reads, and the peak under a limit."""
    sizes = LEVELS[level]
    size = f"{power(sizes.rows)} rows"
    with tempfile.TemporaryDirectory() as folder:
        ex.ShardDir.build(clicks(sizes.rows), folder, dtype="float32")
        for name, (run, beside, bar) in RATIOS.items():
            ratios = [one(folder, *run)["cpu"] / one(folder, *beside)["cpu"] for _ in range(REPEATS)]
            yield Measurement.of(PART, f"{name}, {size}", ratios, unit="CPU time, median of ratios", bar=bar)
        for radius, bar in READS.items():
            found = one(folder, "disk", "linear", radius, 0)
            yield Measurement.of(PART, f"reads to 1e-4, l1:{radius}, {size}", [found["reads"]], unit="reads of all rows", bar=bar)
        if sizes.private:
            found = one(folder, "disk", "linear", 20, 1, sizes.private)
            unit = f"GiB of peak resident memory, {sizes.private} GiB of private memory allowed"
            yield Measurement.of(PART, f"peak, {size}", [found["peak"] / 2**30], unit=unit, bar=sizes.resident)


def one(folder: str, engine: str, kind: str, radius: float, cold: int, private: float = 0.0) -> dict[str, Any]:
    """One run in a process of its own."""
    return asked("extremal_lab.bench.shards", folder, engine, kind, radius, cold, private, minutes=60)


def main(folder: str, engine: str, kind: str, radius: str, cold: str, private: str) -> None:
    """Run once, and write the costs."""
    if float(private):
        import resource

        most = int(float(private) * 2**30)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    data = ex.ShardDir(folder, engine=engine)
    data.dot(np.zeros(data.shape[1]), np.arange(1))  # rows in memory are loaded before the clock starts
    if int(cold):
        _forget(Path(folder))
    C, model = ex.L1Ball(float(radius)), MODELS.get(kind, ex.LinearModel)
    cpu = time.process_time()
    f = model(ex.Logistic(), data)
    if kind == "sarah":
        r = ex.minimize(f, C, ex.SarahFW(batch=max(1, f.n // 100)), max_iter=60, tol=0, atol=0)
    else:
        r = ex.minimize(f, C, tol=1e-4)
    cpu = time.process_time() - cpu
    answer({"cpu": cpu, "reads": r.calls.rows / f.n, "peak": peak_memory(), "gap": r.gap / abs(r.value), "value": r.value})


def _forget(folder: Path) -> None:
    """Ask the system to drop these files from its cache."""
    for path in folder.iterdir():
        file = os.open(path, os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


if __name__ == "__main__":
    main(*sys.argv[1:])
