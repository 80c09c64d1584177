"""The suite as on other machines: `make test-anywhere`, or `python tests/anywhere.py [--only NAME] [arguments of pytest]`.

Each environment is a run of pytest of its own. All are run, whatever fails; the last lines say how each ended. numba tells
processors apart in what it keeps on disk, so that no environment meets the code of another.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

KERNELS = {"Prescott": {"SSE3"}, "Haswell": {"AVX2", "FMA3"}, "SkylakeX": {"AVX512_SKX"}}  # of OpenBLAS, and what they need
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    pass\n"  # until that one ends
SAME = {"Katmai": "Prescott"}  # OpenBLAS has one kernel for both on 64 bits, and may give it the first name
ARCHITECTURES = """
import numpy, scipy.linalg, threadpoolctl
print(*{library.get("architecture") for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"})
"""


@dataclass(frozen=True)
class Environment:
    """Variables under which the suite is run, beside so many busy processes; or why it cannot be."""

    name: str
    variables: dict[str, str] = field(default_factory=dict)
    busy: int = 0
    lacking: str = ""


def environments() -> Iterator[Environment]:
    """The machines that this one can play."""
    for kernel, needed in KERNELS.items():
        yield _openblas(kernel, needed)
    features = " ".join(sorted(set(_numpy().__cpu_dispatch__) & _found()))
    lacking = "" if features else "numpy finds nothing that it could do without"
    yield Environment("numpy-baseline", {"NPY_DISABLE_CPU_FEATURES": features}, lacking=lacking)
    yield Environment("numba-generic", {"NUMBA_CPU_NAME": "generic"})
    yield Environment("busy", busy=4)


def _openblas(kernel: str, needed: set[str]) -> Environment:
    name, variables = f"openblas-{kernel.lower()}", {"OPENBLAS_CORETYPE": kernel}
    if missing := needed - _found():
        return Environment(name, variables, lacking=f"the processor has no {' and no '.join(sorted(missing))}")
    command = [sys.executable, "-c", ARCHITECTURES]
    taken = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=True).stdout.strip()
    found = " ".join(sorted({SAME.get(word, word) for word in taken.split()}))
    return Environment(name, variables, lacking="" if found == kernel else f"numpy and scipy take {taken} instead")


def _numpy():
    try:
        from numpy._core import _multiarray_umath as umath
    except ImportError:  # numpy 1
        from numpy.core import _multiarray_umath as umath
    return umath


def _found() -> set[str]:
    return {name for name, there in _numpy().__cpu_features__.items() if there}


@contextmanager
def _beside(count: int) -> Iterator[None]:
    """So many processes that keep a core busy each."""
    processes = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def run(environment: Environment, arguments: list[str]) -> str:
    """Run pytest there; return how it ended."""
    if environment.lacking:
        return f"skipped: {environment.lacking}"
    with _beside(environment.busy):
        done = subprocess.run([sys.executable, "-m", "pytest", *arguments], env=os.environ | environment.variables)
    return "passed" if done.returncode == 0 else f"failed: pytest ended with {done.returncode}"


def main() -> int:
    """Run all environments; return 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    everywhere = list(environments())
    parser.add_argument("--only", action="append", choices=[e.name for e in everywhere], help="may be given several times")
    chosen, arguments = parser.parse_known_args()
    ends = {}
    for environment in everywhere:
        if not chosen.only or environment.name in chosen.only:
            print(f"==== {environment.name}: {environment.variables or f'{environment.busy} busy processes'}", flush=True)
            ends[environment.name] = run(environment, arguments)
    print("====", *(f"{name}: {end}" for name, end in ends.items()), sep="\n")
    return int(any(end.startswith("failed") for end in ends.values()))


if __name__ == "__main__":
    sys.exit(main())
