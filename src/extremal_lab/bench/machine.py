"""Facts about the machine: its largest cache, and the memory of a process."""

from __future__ import annotations

import re
from pathlib import Path

CACHE = 32 * 2**20  # bytes, if the system does not give a number


def largest_cache() -> int:
    """Bytes of the largest cache of the first processor, or 32 MiB if the system does not give a number.

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
    """The peak memory of this process, in bytes.

    Examples
    --------
    >>> peak_memory() > 1_000_000
    True
    """
    peak = _field(Path("/proc/self/status"), "VmHWM")  # of this program alone; getrusage includes the parent's
    if peak is not None:
        return peak
    import resource
    import sys

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def resident_memory() -> int:
    """Bytes of memory that this process holds now; the peak so far if the system does not give the number.

    Examples
    --------
    >>> 1_000_000 < resident_memory() <= peak_memory()
    True
    """
    return _field(Path("/proc/self/status"), "VmRSS") or peak_memory()


def _field(path: Path, name: str) -> int | None:
    """The bytes of a field that a file of /proc gives in kB."""
    try:
        found = re.search(rf"^{name}:\s+(\d+) kB$", path.read_text(), re.MULTILINE)
    except OSError:
        return None
    return 1024 * int(found[1]) if found else None
