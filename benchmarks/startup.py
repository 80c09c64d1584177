"""What the first call in a process costs: CPU and wall seconds of fresh processes, Python's own start included.

    python benchmarks/startup.py [REPEATS]

The median over the repeats is printed, with the spread. Compiled code is kept from one process to the next, but for the last
line: there a process finds none, and compiles.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

REPEATS = 9
PROBLEM = """
import numpy as np, extremal as ex
rng = np.random.default_rng(0)
A, y = rng.standard_normal((200, 20)), np.sign(rng.standard_normal(200))
"""
SPARSE = "import scipy.sparse as sp\nA = sp.csr_array(A)\n"
RUN = "ex.minimize(ex.LinearModel(ex.Logistic(), A, y), ex.L1Ball(5.0), max_iter=100)\n"
CPU = "\nimport time\nprint(time.process_time())"
CASES = {
    "python alone": "",
    "import numpy": "import numpy",
    "import numba": "import numba",
    "import extremal": "import extremal",
    "first run, dense": PROBLEM + RUN,
    "first run, CSR": PROBLEM + SPARSE + RUN,
}
COLD = "first run, CSR, compiling"


def main(repeats):
    print(f"seconds of CPU (median, min to max) and of wall time, {repeats} processes each:")
    for name, found in measure(repeats).items():
        cpu = f"{found['cpu']:7.3f}  ({found['cpu_min']:.3f} to {found['cpu_max']:.3f})"
        print(f"{cpu}   wall {found['wall']:7.3f}  ({found['wall_min']:.3f} to {found['wall_max']:.3f})  {name}")


def measure(repeats: int = REPEATS) -> dict[str, dict[str, float]]:
    """CPU and wall seconds of each case: median, smallest and largest; the cases take turns."""
    for code in CASES.values():
        seconds(code)  # files are read, and kernels compiled
    rounds = [{name: seconds(code) for name, code in CASES.items()} for _ in range(repeats)]
    found = {name: summary([once[name] for once in rounds]) for name in CASES}
    return found | {COLD: summary([cold()])}


def summary(pairs: list[tuple[float, float]]) -> dict[str, float]:
    out = {}
    for kind, values in zip(("cpu", "wall"), zip(*pairs, strict=True), strict=True):
        out |= {kind: statistics.median(values), f"{kind}_min": min(values), f"{kind}_max": max(values)}
    return out


def seconds(code: str, **environment: str) -> tuple[float, float]:
    """CPU and wall seconds of a process that runs the code."""
    start = time.perf_counter()
    command, kept = [sys.executable, "-c", code + CPU], os.environ | environment
    done = subprocess.run(command, capture_output=True, text=True, env=kept)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return float(done.stdout.split()[-1]), time.perf_counter() - start


def cold() -> tuple[float, float]:
    """The same for a run that finds no compiled code."""
    with tempfile.TemporaryDirectory() as folder:
        return seconds(CASES["first run, CSR"], NUMBA_CACHE_DIR=folder)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else REPEATS)
