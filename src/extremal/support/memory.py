"""How much memory is free, by the system and by the limit of a container."""

from __future__ import annotations

from pathlib import Path

__all__ = ["free_memory"]

SYSTEM, CONTAINER = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


def free_memory() -> int | None:
    """Bytes that can be allocated without swapping, or None where the system does not say."""
    return min((free for free in (_of_machine(), _of_container()) if free is not None), default=None)


def _of_machine() -> int | None:
    try:
        lines = SYSTEM.read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return None


def _of_container() -> int | None:
    try:
        limit, used = (int((CONTAINER / name).read_text()) for name in ("memory.max", "memory.current"))
        stat = dict(line.split() for line in (CONTAINER / "memory.stat").read_text().splitlines())
        return max(0, limit - used + int(stat.get("inactive_file", 0)))  # the page cache can be dropped
    except (OSError, ValueError):  # no control group, or one without a limit ("max")
        return None
