"""The amount of free memory, by the system and by the limit of a container."""

from __future__ import annotations

from pathlib import Path

__all__ = ["free_memory"]

SYSTEM, CONTAINER, PROCESS = Path("/proc/meminfo"), Path("/sys/fs/cgroup"), Path("/proc/self/status")


def free_memory() -> int | None:
    """Bytes that can be allocated without swapping, or None if the system does not report them."""
    return min((free for free in (_of_machine(), _of_container(), _of_process()) if free is not None), default=None)


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


def _of_process() -> int | None:
    """The memory that a limit on private memory (ulimit -d) leaves."""
    try:
        import resource  # not available on all systems

        limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
        used = next(int(line.split()[1]) for line in PROCESS.read_text().splitlines() if line.startswith("VmData:"))
    except (ImportError, OSError, StopIteration):
        return None
    return None if limit == resource.RLIM_INFINITY else max(0, limit - 1024 * used)
