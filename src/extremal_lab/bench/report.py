"""Measurements as JSON with the machine and the commit, and the files of earlier runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import extremal
from extremal.checks import InputError
from extremal_lab.bench.timing import Measurement, Skipped
from extremal_lab.reproduction.report import machine, versions, write_json
from extremal_lab.reproduction.store import code

SCHEMA = 1
PACKAGES = ("python", "numpy", "scipy", "numba")
FIELDS = ("part", "name", "ratio", "low", "high", "repeats", "unit", "bar")


def document(items: Sequence[Measurement | Skipped], level: str, now: datetime | None = None) -> dict[str, Any]:
    """The full record of a run of the suite, without names of hosts, users or folders."""
    _, commit, *changed = code().split()
    found = versions()
    return {
        "schema": SCHEMA,
        "date": (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "version": extremal.__version__,
        "commit": None if commit == "no" else commit[:7],
        "changed": bool(changed),  # the sources differ from the commit
        "level": level,
        "machine": machine(),
        "versions": {name: found[name] for name in PACKAGES if name in found},
        "measurements": [item.as_dict() for item in items if isinstance(item, Measurement)],
        "skipped": [vars(item) for item in items if isinstance(item, Skipped)],
    }


def stem(said: dict[str, Any]) -> str:
    """The name of its file in the history: date and commit, with a plus sign if the sources differ from the commit.

    Examples
    --------
    >>> stem({"date": "2026-03-01T12:00:00Z", "commit": "0a1b2c3", "changed": False, "version": "0.1"})
    '2026-03-01-0a1b2c3'
    """
    name = said["commit"] or said["version"]
    return f"{said['date'][:10]}-{name}{'+' if said['changed'] and said['commit'] else ''}"


def write(path: Path, said: dict[str, Any]) -> None:
    """Write the file, whole or not at all."""
    write_json(path, said)


def markdown(said: dict[str, Any]) -> str:
    """The measurements as a table in Markdown, in their order; what was not measured stands first.

    Examples
    --------
    >>> found = {"name": "box, over L-BFGS-B", "ratio": 2.123, "low": 2.0, "high": 3.0, "bar": 1.5, "unit": "times", "note": ""}
    >>> print(markdown({"skipped": [], "measurements": [found]}), end="")
    | | median (spread) | bar | unit | |
    |---|---|---|---|---|
    | box, over L-BFGS-B | **2.12** (2 to 3) | 1.5 | times | |
    """
    lines = ["| | median (spread) | bar | unit | |", "|---|---|---|---|---|"]
    lines += [f"| {item['name']} | **not measured** | | | {item['reason']} |" for item in said["skipped"]]
    lines += map(_line, said["measurements"])
    return "\n".join(" ".join(line.split()) for line in lines) + "\n"


def _line(found: dict[str, Any]) -> str:
    """A row of the table; a median above its bar is bold."""
    bar = "" if found["bar"] is None else f"{found['bar']:g}"
    mark = "**" if found["bar"] is not None and found["ratio"] > found["bar"] else ""
    spread = f"{mark}{found['ratio']:.3g}{mark} ({found['low']:.3g} to {found['high']:.3g})"
    return f"| {found['name']} | {spread} | {bar} | {found['unit']} | {found['note']} |"


def history(folder: Path) -> list[dict[str, Any]]:
    """The kept runs of a folder, the oldest first, without other JSON files."""
    found = [_read(path) for path in sorted(folder.glob("20??-??-??-*.json"))]
    return sorted(found, key=lambda said: said["date"])


def _read(path: Path) -> dict[str, Any]:
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        if said["schema"] != SCHEMA or not all(set(FIELDS) <= set(found) for found in said["measurements"]):
            raise KeyError("schema")
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not a file of this suite ({error})") from None
    return said
