"""What a checkpoint keeps of a trace, and how the trace takes it back."""

from __future__ import annotations

from typing import Any

import numpy as np


class KeptTrace:
    """The base of the trace of a run."""

    _rows: list[dict[str, Any]]

    def saved_state(self) -> dict[str, Any]:
        """What a checkpoint keeps of it: one list for each column, and rows with other columns as they are."""
        names = list(self._rows[0]) if self._rows else []
        if any(list(row) != names for row in self._rows):
            return {"rows": self._rows}
        return {"columns": {name: _column([row[name] for row in self._rows]) for name in names}}

    def restore_state(self, state: dict[str, Any]) -> None:
        """Take a saved state."""
        columns = {name: a.tolist() if isinstance(a, np.ndarray) else a for name, a in state.get("columns", {}).items()}
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        self._rows = state.get("rows", rows)


def _column(values: list[Any]) -> Any:
    """An array, if all values are floats, or all are whole numbers of 64 bits."""
    kinds = {type(value) for value in values}
    small = kinds == {int} and max(map(abs, values)) < 2**63
    return np.array(values) if kinds == {float} or small else values
