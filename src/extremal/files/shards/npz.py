"""Chunks of .npz and .npy files: rows are read on request, if the file stores them one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from extremal.checks import InputError
from extremal.files.array_files import MOST_COLUMNS, Arrays, NpyStream, mapped_npy, npz_arrays, read_npy, read_npz
from extremal.files.reading import damaged
from extremal.files.shards.arrays import array_chunks, check_lengths, pair_chunks, table_columns
from extremal.files.shards.chunks import Chunk, SparseChunk, pieces


def npy_chunks(path: Path, target: str | int | None, weights: str | int | None) -> Iterator[Chunk]:
    """The rows of a .npy file; the target is a column's number (default: the last column) or a .npy file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "a.npy"), np.arange(6.0).reshape(2, 3))
    ...     [chunk.targets.tolist() for chunk in npy_chunks(Path(folder, "a.npy"), None, None)]
    [[2.0, 5.0]]
    """
    A = mapped_npy(path)
    if A.ndim != 2:
        raise InputError(f"{path}: expected a matrix, features and a target in its columns, got shape {A.shape}")
    if target is not None and str(target).endswith(".npy"):
        yield from pair_chunks(A, read_npy(Path(str(target))), place=f"{path}: row")
        return
    _, y, w = table_columns(str(path), target, weights, A.shape[1], [])
    yield from array_chunks(A, f"{path}: row", y, w)


def npz_chunks(path: Path, target: str | int | None, weights: str | int | None, max_bytes: int | None) -> Iterator[Chunk]:
    """The rows of a .npz file: A (or X) and y, or the form of scipy.sparse.save_npz, and y; ``weights`` is an array's name.

    Targets and weights are read at once, and so is a matrix that is not stored row by row.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(Path(folder, "a.npz"), X=np.eye(2), y=[3, 4])
    ...     [chunk.targets.tolist() for chunk in npz_chunks(Path(folder, "a.npz"), None, None, None)]
    [[3, 4]]
    """
    if target is not None and not str(target).endswith(".npy"):
        raise InputError(f"{path}: target={target!r} is not a .npy file; expected an array y in the file, or target=FILE.npy")
    with npz_arrays(path, max_bytes) as held:
        if target is None and "y" not in held:
            raise InputError(f"{path}: holds no array y; expected an array y in the file, or target=FILE.npy")
        y = held["y"] if target is None else read_npy(Path(str(target)))
        w = None if weights is None else held[str(weights)]
        if y.ndim == 0:
            raise InputError(f"{path}: expected one target for each row, got targets of shape ()")
        if "format" in held and held["format"].reshape(-1)[:1].tolist() in ([b"csr"], ["csr"]):
            yield from _csr_chunks(path, held, y, w)
            return
        names = [name for name in ("A", "X") if name in held]
        if len(names) == 1 and "format" not in held:
            with held.stream(names[0]) as stream:
                if not stream.fortran and len(stream.shape) == 2:
                    yield from _dense_chunks(path, stream, y, w)
                    return
    A, _ = read_npz(path, len(y), max_bytes)
    yield from pair_chunks(A, y, w, place=f"{path}: row")


def _dense_chunks(path: Path, stream: NpyStream, y: np.ndarray, w: np.ndarray | None) -> Iterator[Chunk]:
    n, d = stream.shape
    check_lengths(str(path), n, y, w)
    size = d * stream.dtype.itemsize
    for lo, hi in pieces(n, size):
        yield _chunk(path, stream.rows(hi - lo), lo, hi, y, w, (hi - lo) * size)


def _csr_chunks(path: Path, held: Arrays, y: np.ndarray, w: np.ndarray | None) -> Iterator[Chunk]:
    shape = held["shape"]
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise damaged(path, "sides and indices of a sparse matrix must be whole numbers")
    n, d = map(int, shape)
    if not (0 < n and 0 < d <= MOST_COLUMNS):
        raise damaged(path, f"a sparse matrix cannot have {n} rows and {d} columns")
    check_lengths(str(path), n, y, w)
    with ExitStack() as stack:
        starts, columns, values = (stack.enter_context(held.stream(name)) for name in ("indptr", "indices", "data"))
        if {starts.dtype.kind, columns.dtype.kind} - set("iu") or starts.shape != (n + 1,) or not columns.shape == values.shape:
            raise damaged(path, "a sparse matrix needs whole numbers as indices, one for each value")
        at, nnz = int(starts.numbers(1)[0]), int(np.prod(columns.shape))
        size = 4 + nnz / n * (4 + values.dtype.itemsize)
        for lo, hi in pieces(n, size):
            ends = starts.numbers(hi - lo).astype(np.int64)
            if (at, int(ends[-1])) != (max(0, at), min(max(at, int(ends[-1])), nnz)):
                raise damaged(path, "the starts of its rows do not increase to the number of its values")
            count = int(ends[-1]) - at
            rows = SparseChunk(np.append(0, ends - at), columns.numbers(count), values.numbers(count), d)
            at = int(ends[-1])
            yield _chunk(path, rows, lo, hi, y, w, int((hi - lo) * size))


def _chunk(path: Path, rows: np.ndarray | SparseChunk, lo: int, hi: int, y: np.ndarray, w: np.ndarray | None, size: int) -> Chunk:
    return Chunk(rows, y[lo:hi], None if w is None else w[lo:hi], lambda i: f"{path}: row {lo + i}", size)
