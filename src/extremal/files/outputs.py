"""Output of this library: files that are whole or absent, and user-given names that stay plain text."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from extremal.checks import check_out as check_out
from extremal.files.libsvm import is_number
from extremal.support.display import printable as printable
from extremal.support.display import terminal as terminal
from extremal.support.whole import WriteError as WriteError
from extremal.support.whole import is_open as is_open
from extremal.support.whole import lock_file as lock_file
from extremal.support.whole import written_whole

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # first characters of cells that a spreadsheet would compute


def whole_file(path: str | Path) -> AbstractContextManager[Path]:
    """Give a temporary path that becomes ``path`` at the end, if a file can be written there; otherwise raise an `InputError`.

    Examples
    --------
    >>> whole_file("no/such/folder/answer.txt")
    Traceback (most recent call last):
        ...
    extremal.checks.InputError: no/such/folder/answer.txt: cannot be written, there is no directory no/such/folder
    """
    return written_whole(check_out(Path(path)))


def to_json(item: object, **how: Any) -> str:
    """JSON by the standard: infinite numbers and NaN become null.

    Examples
    --------
    >>> to_json({"gap": math.inf, "x": [1.0, math.nan]})
    '{"gap": null, "x": [1.0, null]}'
    """
    return json.dumps(_finite(item), allow_nan=False, **how)


def _finite(item: object) -> Any:
    if isinstance(item, float):
        return item if math.isfinite(item) else None
    if isinstance(item, dict):
        return {key: _finite(value) for key, value in item.items()}
    if isinstance(item, (list, tuple)):
        return [_finite(value) for value in item]
    return item


def cells(row: Iterable[object]) -> list[Any]:
    """A row for a CSV file: text that a spreadsheet would take for a formula gets a leading apostrophe.

    Examples
    --------
    >>> cells(["=1+1", "-2.5", "a,b", 3])
    ["'=1+1", '-2.5', 'a,b', 3]
    """
    return [f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) and not is_number(cell) else cell for cell in row]
