"""What the machine has: its largest cache, and what a process holds."""

from __future__ import annotations

import re
from pathlib import Path

CACHE = 32 * 2**20  # bytes, where the system does not say


def largest_cache() -> int:
    """Bytes of the largest cache of the first processor, or 32 MiB where the system does not say.

    Examples
    --------
    >>> largest_cache() > 100_000
    True
    """
    sizes = [_bytes(path) for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    return max(sizes, default=0) or CACHE


def _bytes(path: Path) -> int:
    found = re.fullmatch(r"(\d+)([KMG]?)", path.read_text().strip())
    return int(found[1]) * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[found[2]] if found else 0


def peak_memory() -> int:
    """Bytes of memory that this process has held at most.

    Examples
    --------
    >>> peak_memory() > 1_000_000
    True
    """
    peak = _field(Path("/proc/self/status"), "VmHWM")  # of this program alone; getrusage knows its parent's, too
    if peak is not None:
        return peak
    import resource
    import sys

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def resident_memory() -> int:
    """Bytes of memory that this process holds now; where the system does not say, at most so far.

    Examples
    --------
    >>> 1_000_000 < resident_memory() <= peak_memory()
    True
    """
    return _field(Path("/proc/self/status"), "VmRSS") or peak_memory()


def _field(path: Path, name: str) -> int | None:
    """A field in kB, as the files of /proc have them, in bytes."""
    try:
        found = re.search(rf"^{name}:\s+(\d+) kB$", path.read_text(), re.MULTILINE)
    except OSError:
        return None
    return 1024 * int(found[1]) if found else None
