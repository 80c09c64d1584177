"""What the machine has: its largest cache, and the peak of a process in its memory."""

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
    try:  # of this program alone; getrusage knows its parent's, too
        found = re.search(r"^VmHWM:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    except OSError:
        found = None
    if found:
        return 1024 * int(found[1])
    import resource
    import sys

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
