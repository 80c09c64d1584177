"""Check every number that goes into shards; an error names the source and the row."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.files.libsvm import first_infinite, row_of_entry, short
from extremal.files.shards.batches import RowBatch
from extremal.files.shards.chunks import Chunk, SparseChunk
from extremal.files.shards.fields import is_label
from extremal.files.shards.manifest import MOST_IN_SHARD

TOLD_BY_CHUNKS = "d", "kind", "names", "weighted", "outputs", "n", "nnz", "_text"
MOST_LABELS = 2**20  # different labels of text; all are held in memory, and in the manifest


class Intake:
    """Checks chunks: all of one kind and width, every number finite, labels either numbers or text.

    Labels of text are numbered as they turn up; ``order`` gives their final numbers, in sorted order.

    Examples
    --------
    >>> intake = Intake()
    >>> intake.batch(Chunk(np.eye(2), np.array(["b", "a"]), None, str)).arrays["targets"]
    array([0., 1.])
    >>> intake.classes, intake.order
    (('a', 'b'), array([1., 0.]))
    """

    def __init__(self, d: int | None = None, dtype: np.dtype | None = None):
        self.given, self.d, self.dtype = d, d or 0, dtype
        self.kind: str | None = None
        self.names: tuple[str, ...] | None = None
        self.weighted, self.outputs, self.n, self.nnz = False, None, 0, 0
        self._fixed, self._labels, self._text = dtype is not None, dict[str, int](), False

    @property
    def classes(self) -> tuple[str, ...] | None:
        """The labels in sorted order, if they are text."""
        return tuple(sorted(self._labels)) if self._text else None

    @property
    def order(self) -> np.ndarray | None:
        """Item i is the final number of the label that turned up as number i."""
        places = {label: i for i, label in enumerate(sorted(self._labels))}
        return np.array([float(places[label]) for label in self._labels]) if self._text else None

    def seen(self) -> dict[str, Any]:
        """All facts about the rows so far, in types of JSON; for labels of text, only their count."""
        known = {name: vars(self)[name] for name in TOLD_BY_CHUNKS}
        return known | {"dtype": None if self.dtype is None else self.dtype.name, "labels": len(self._labels)}

    def labels(self, first: int, last: int) -> list[str]:
        """Labels that are text, in the order in which they turned up."""
        return list(islice(self._labels, first, last))

    def go_on(self, seen: dict[str, Any], labels: list[str]) -> None:
        """Take over the facts of another intake, and add these labels to the known ones."""
        vars(self).update({name: tuple(v) if isinstance(v := seen[name], list) else v for name in TOLD_BY_CHUNKS})
        self.dtype = None if seen["dtype"] is None else np.dtype(seen["dtype"])
        for label in labels:
            self._labels[label] = len(self._labels)

    def batch(self, chunk: Chunk) -> RowBatch:
        """Return the rows in the form of shards."""
        self._begin(chunk)
        arrays = self._dense(chunk, chunk.rows) if isinstance(chunk.rows, np.ndarray) else self._sparse(chunk, chunk.rows)
        m = len(chunk.rows) if isinstance(chunk.rows, np.ndarray) else len(chunk.rows.starts) - 1
        arrays["targets"] = self._targets(chunk, m)
        if self.weighted:
            arrays["weights"] = _weights(chunk, m)
        self.n += m
        return RowBatch(arrays)

    def _begin(self, chunk: Chunk) -> None:
        """Note the kind of the first chunk, which all later chunks must share."""
        kind = "dense" if isinstance(chunk.rows, np.ndarray) else "csr"
        outputs = None if chunk.targets.ndim == 1 else chunk.targets.shape[1:]
        text, weighted = chunk.targets.dtype.kind in "OSUT", chunk.weights is not None
        values = chunk.rows if isinstance(chunk.rows, np.ndarray) else chunk.rows.values
        dtype = floating_type(chunk.place(0), values.dtype)
        if self.kind is None:
            self.kind, self.weighted, self.names = kind, weighted, chunk.names
            self._text, self.outputs, self.dtype = text, outputs, self.dtype or dtype
        for what, now, first in (
            ("rows", kind, self.kind), ("weights", weighted, self.weighted), ("labels that are text", text, self._text),
            ("targets of shape", outputs, self.outputs), ("column names", chunk.names, self.names),
        ):  # fmt: skip
            if now != first:
                raise InputError(f"{chunk.place(0)}: {what}: expected {_word(first)} as before, got {_word(now)}")
        if not self._fixed and dtype != self.dtype:
            raise InputError(f"{chunk.place(0)}: expected {self.dtype} as before, got {dtype}; give dtype='float32' or 'float64'")

    def _dense(self, chunk: Chunk, rows: np.ndarray) -> dict[str, np.ndarray]:
        if rows.ndim != 2:
            raise InputError(f"{chunk.place(0)}: expected a matrix of rows, got shape {rows.shape}")
        self._width(chunk, rows.shape[1])
        values = self._converted(rows)
        if not checks.all_finite(values):
            row, column = (int(i) for i in np.argwhere(~np.isfinite(values))[0])
            raise InputError(f"{chunk.place(row)}: expected finite numbers, got {rows[row, column]} in column {column}")
        self.nnz += values.size
        return {"rows": values}

    def _sparse(self, chunk: Chunk, rows: SparseChunk) -> dict[str, np.ndarray]:
        if rows.d is not None:
            self._width(chunk, rows.d)
        rows = rows if rows.canonical else _canonical(chunk, rows)
        most = int(rows.columns.max(initial=-1))
        if most >= self.d:
            if rows.d is not None or self.given is not None:
                row = row_of_entry(rows.starts, int(rows.columns.argmax()))
                raise InputError(f"{chunk.place(row)}: expected columns below {self.d}, got {most}")
            self.d = most + 1
        values = self._converted(rows.values)
        found = first_infinite(values, rows.starts)
        if found is not None:
            raise InputError(f"{chunk.place(found[0])}: expected finite numbers, got {found[1]}")
        self.nnz += len(values)
        starts, columns = np.ascontiguousarray(rows.starts, np.int64), np.ascontiguousarray(rows.columns, np.int32)
        return {"starts": starts, "columns": columns, "values": values}

    def _width(self, chunk: Chunk, d: int) -> None:
        if not 1 <= d <= MOST_IN_SHARD or self.d not in (0, d):
            raise InputError(f"{chunk.place(0)}: expected {self.d or f'1 to {MOST_IN_SHARD}'} columns, got {d}")
        self.d = d

    def _converted(self, values: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):  # numbers too large for float32 are refused as infinite
            return np.ascontiguousarray(values, self.dtype)

    def _targets(self, chunk: Chunk, m: int) -> np.ndarray:
        y = chunk.targets
        if len(y) != m or y.ndim > 2 or 0 in y.shape[1:]:
            raise InputError(f"{chunk.place(0)}: expected one target for each of {m} rows, got targets of shape {y.shape}")
        if self._text:
            return self._numbered(chunk)
        if y.dtype.kind not in "biuf":
            raise InputError(f"{chunk.place(0)}: expected numbers or text as targets, got dtype {y.dtype}")
        y = np.ascontiguousarray(y, np.float64) + 0.0  # no negative zero
        found = first_infinite(y.reshape(-1), np.arange(len(y) + 1) * int(np.prod(y.shape[1:])))
        if found is not None:
            raise InputError(f"{chunk.place(found[0])}: expected a finite target, got {found[1]}")
        return y

    def _numbered(self, chunk: Chunk) -> np.ndarray:
        if chunk.targets.ndim > 1:
            raise InputError(f"{chunk.place(0)}: expected one label for each row, got shape {chunk.targets.shape}")
        labels = chunk.targets.tolist()
        for i, label in enumerate(labels):
            if not is_label(label):
                raise InputError(f"{chunk.place(i)}: expected a text (without NUL) as the label, got {short(repr(label))}")
        known = self._labels
        numbers = np.array([known.setdefault(label, len(known)) for label in labels], np.float64)
        if len(known) > MOST_LABELS:
            i = int(np.argmax(numbers >= MOST_LABELS))
            words = f"more than {MOST_LABELS} different labels that are text, got {short(labels[i])} (are these classes?)"
            raise InputError(f"{chunk.place(i)}: {words}")
        return numbers


def floating_type(place: str, dtype: np.dtype) -> np.dtype:
    """float32 for float32 and float16, float64 for other real numbers.

    Examples
    --------
    >>> floating_type("X", np.dtype("int8"))
    dtype('float64')
    """
    if dtype.kind not in "biuf":
        raise InputError(f"{place}: expected real numbers, got dtype {dtype}")
    return np.dtype(np.float32 if dtype.kind == "f" and dtype.itemsize <= 4 else np.float64)


def _word(what: Any) -> str:
    return {None: "none", True: "some", False: "none"}.get(what, short(str(what))) if not isinstance(what, tuple) else str(what)


def _weights(chunk: Chunk, m: int) -> np.ndarray:
    given = chunk.weights
    if given is None or given.shape != (m,) or given.dtype.kind not in "biuf":
        got = "none" if given is None else f"shape {given.shape} of dtype {given.dtype}"
        raise InputError(f"{chunk.place(0)}: expected one weight for each of {m} rows, got {got}")
    weights = np.ascontiguousarray(given, np.float64) + 0.0
    wrong = ~((weights >= 0) & (weights < np.inf))
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(f"{chunk.place(row)}: expected a weight that is finite and not negative, got {weights[row]}")
    return weights


def _canonical(chunk: Chunk, rows: SparseChunk) -> SparseChunk:
    """Check that columns are in range, sort them in each row, and sum entries of the same place."""
    starts, columns, values = rows.starts, rows.columns, rows.values
    lengths = np.diff(starts)
    if starts[0] != 0 or (lengths < 0).any() or not starts[-1] == len(columns) == len(values) or columns.dtype.kind not in "iu":
        raise InputError(f"{chunk.place(0)}: these are not sparse rows (their starts do not increase to the number of entries)")
    wrong = (columns < 0) | (columns >= (MOST_IN_SHARD if rows.d is None else rows.d))
    if wrong.any():
        e = int(wrong.argmax())
        row = row_of_entry(starts, e)
        raise InputError(f"{chunk.place(row)}: expected columns from 0 to {(rows.d or MOST_IN_SHARD) - 1}, got {columns[e]}")
    if increasing_in_rows(starts, columns):
        return rows
    row = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((columns, row))
    row, columns, values = row[order], columns[order], values[order]
    first = np.flatnonzero(np.concatenate([[True], (np.diff(columns) != 0) | (np.diff(row) != 0)]))
    counts = np.bincount(row[first], minlength=len(lengths))
    return SparseChunk(np.concatenate([[0], np.cumsum(counts)]), columns[first], np.add.reduceat(values, first), rows.d)


def increasing_in_rows(starts: np.ndarray, columns: np.ndarray) -> bool:
    """Whether columns increase within each row.

    Examples
    --------
    >>> increasing_in_rows(np.array([0, 2, 3]), np.array([1, 5, 0])), increasing_in_rows(np.array([0, 3]), np.array([1, 5, 0]))
    (True, False)
    """
    falls = np.zeros(len(columns) + 1, bool)
    falls[1:-1] = columns[1:] <= columns[:-1]
    falls[starts] = False
    return not falls.any()
