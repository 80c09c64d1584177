"""The cost of reading LIBSVM text, in the CPU time of scikit-learn's load_svmlight_file.

The files are the .xz files of the folder EXTREMAL_DATA, or generated ones without it. Each is read compressed and decompressed.
"""

from __future__ import annotations

import lzma
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from extremal.files import tables
from extremal_lab.bench.children import installed
from extremal_lab.bench.timing import Found, Pair, Skipped, compared

PART = "libsvm"
UNIT = "times the CPU time of scikit-learn's load_svmlight_file"
STYLES = {6: "{:.6g}", 17: "{!r}", 19: "{:.18e}"}  # digits, and the format of numbers with them


@dataclass(frozen=True)
class Sizes:
    """The sizes of a level of measurement."""

    share: float = 1.0  # share of the rows of generated files
    given: bool = True  # whether files of the folder are read, if there is one
    repeats: int = 7
    target: float = 0.05


LEVELS = {
    "smoke": Sizes(0.005, False, 2, 0.001),
    "quick": Sizes(0.2, repeats=3, target=0.02),
    "default": Sizes(),
    "full": Sizes(repeats=15),
}


def measure(level: str) -> Found:
    """Measure every file, plain and compressed; the first loads, which compile, do not count."""
    if not installed("sklearn"):
        yield Skipped(PART, "load_svmlight_file", "scikit-learn is not installed")
        return
    sizes = LEVELS[level]
    with tempfile.TemporaryDirectory() as folder:
        for packed in files(Path(folder), sizes):
            plain = Path(folder, packed.stem)
            plain.write_bytes(lzma.decompress(packed.read_bytes()))
            for path in (plain, packed):
                yield compared(PART, _pair(path), sizes.repeats, sizes.target)


def files(folder: Path, sizes: Sizes) -> Iterable[Path]:
    """The files to read."""
    if sizes.given and "EXTREMAL_DATA" in os.environ:
        return sorted(Path(os.environ["EXTREMAL_DATA"]).rglob("*.xz"))
    return generated(folder, sizes.share)


def _pair(path: Path) -> Pair:
    """Both readers of a file, with equal answers."""
    (A, y), (B, z) = tables.load_table(path), theirs(path)
    assert (A != B).nnz == 0, path
    assert np.array_equal(y, z), path
    kind = "packed" if path.suffix == ".xz" else "plain"
    return Pair(f"{kind}: {path.name.removesuffix('.xz')}", lambda: tables.load_table(path), lambda: theirs(path), UNIT)


def theirs(path: Path) -> Any:
    """The file as scikit-learn reads it."""
    from sklearn.datasets import load_svmlight_file

    read: Any = load_svmlight_file  # its types are guessed from the words of its defaults
    if path.suffix != ".xz":
        return read(str(path), zero_based=False)
    with lzma.open(path) as file:
        return read(file, zero_based=False)


def generated(folder: Path, share: float) -> Iterator[Path]:
    """0/1 entries as in w8a, small integers as in madelon, and numbers of 6, 17 and 19 digits."""
    rng = np.random.default_rng(0)
    zero_one, integers, numbers = (max(1, round(share * rows)) for rows in (50_000, 2000, 1000))
    ones = ((np.sort(rng.choice(300, 12, replace=False)), [1] * 12) for _ in range(zero_one))
    yield written(folder, "zero-one", ones, "{}")
    yield written(folder, "integers", ((range(500), row) for row in rng.integers(400, 600, (integers, 500))), "{}")
    values = rng.standard_normal((numbers, 200)).tolist()
    for digits, style in STYLES.items():
        yield written(folder, f"numbers of {digits} digits", ((range(200), row) for row in values), style)


def written(folder: Path, name: str, rows: Iterable[tuple[Any, Any]], style: str) -> Path:
    r"""A file of (columns, values) with targets 1 and -1.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lzma.open(written(Path(folder), "two", [([0, 3], [1, 2]), ([1], [0.5])], "{}"), "rt").read()
    '-1 1:1 4:2\n+1 2:0.5\n'
    """
    path = folder / f"{name}.xz"
    with lzma.open(path, "wt", preset=1) as file:
        for columns, values in rows:
            pairs = (f"{j + 1}:{style.format(v)}" for j, v in zip(columns, values, strict=True))
            file.write(f"{'+1' if columns[0] % 2 else '-1'} {' '.join(pairs)}\n")
    return path
