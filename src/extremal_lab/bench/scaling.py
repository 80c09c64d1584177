"""The growth of a whole call with the rows of a directory: measured, fitted by a line, and drawn.

``python -m extremal_lab.bench.scaling PICTURE [ROWS ...]`` measures, prints the table and the fit, and writes the picture.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np

import extremal as ex
from extremal.support.palette import PALETTE
from extremal_lab.bench.shards import REPEATS, clicks, one

ROWS = (500_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000)
LARGE, WORKERS, DISK = 10**10, 100, 1e9  # the prediction: rows, workers, bytes per second of each disk
ROW_BYTES = 108  # twelve float32 entries, a start and a target


def measured(n: int) -> tuple[float, float]:
    """Median CPU seconds of a whole call to 1e-4 over an l1 ball of 20 from disk, and its reads."""
    with tempfile.TemporaryDirectory() as folder:
        ex.ShardDir.build(clicks(n), folder, dtype="float32")
        found = [one(folder, "disk", "linear", 20, 0) for _ in range(REPEATS)]
    return median(item["cpu"] for item in found), found[0]["reads"]


def fitted(rows: np.ndarray, cpu: np.ndarray, reads: np.ndarray) -> tuple[float, float]:
    """seconds = a + b rows reads, by least squares of relative errors.

    Examples
    --------
    >>> a, b = fitted(np.array([1e6, 2e6]), np.array([1.0, 1.5]), np.array([5.0, 5.0]))
    >>> round(a, 6), round(1e9 * b, 3)
    (0.5, 100.0)
    """
    A = np.column_stack([np.ones(len(rows)), rows * reads])
    a, b = np.linalg.lstsq(A / cpu[:, None], np.ones(len(rows)), rcond=None)[0]
    return float(a), float(b)


def predicted(b: float, reads: float) -> tuple[float, float]:
    """Seconds of CPU and of reading of each worker in the large case."""
    each = LARGE / WORKERS * reads
    return b * each, ROW_BYTES * each / DISK


def draw(path: Path, rows: np.ndarray, cpu: np.ndarray, reads: np.ndarray, fit: tuple[float, float]) -> None:
    """Draw the measured points and the line."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    axes.loglog(rows, cpu, "o", color=PALETTE[0][0], label="measured, from disk, one core")
    line = f"{fit[0]:.2g} s + {1e9 * fit[1]:.2g} ns a row and read"
    axes.loglog(rows, fit[0] + fit[1] * rows * reads, "-", color=PALETTE[1][0], label=line)
    axes.set_xticks(rows, [f"{n / 1e6:g}" for n in rows])
    axes.minorticks_off()
    axes.set_yticks([0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0], ["0.1", "0.2", "0.5", "1", "2", "5", "10"])
    axes.set_ylim(0.8 * cpu.min(), 1.3 * cpu.max())
    axes.set(xlabel="million rows of 12 entries", ylabel="CPU seconds to a certified 1e-4")
    axes.legend(loc="upper left", frameon=False)  # the line rises to the right
    figure.savefig(path, dpi=110)


def main(picture: str, *rows: str) -> None:
    """Measure, print and draw."""
    sizes = np.array([int(float(n)) for n in rows] or ROWS, float)
    cpu, reads = map(np.array, zip(*(measured(int(n)) for n in sizes), strict=True))
    fit = fitted(sizes, cpu, reads)
    work, reading = predicted(fit[1], float(reads[-1]))
    out = sys.stdout
    for n, seconds, passes in zip(sizes, cpu, reads, strict=True):
        out.write(f"{n:12.0f} rows {seconds:8.2f} CPU s {passes:6.2f} reads\n")
    out.write(f"fit: {fit[0]:.3f} s + {1e9 * fit[1]:.2f} ns a row and read\n")
    out.write(f"{LARGE:.0e} rows on {WORKERS} workers, each: {work:.0f} s of CPU, {reading:.0f} s of reading\n")
    draw(Path(picture), sizes, cpu, reads, fit)


if __name__ == "__main__":
    main(*sys.argv[1:])
