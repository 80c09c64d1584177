"""The format of a directory of shards, described by its manifest.json.

Sparse rows of a shard NAME are the files NAME.starts.npy (int32, n + 1 numbers from 0 on), NAME.columns.npy (int32, increasing
in each row) and NAME.values.npy. Dense rows are NAME.rows.npy (n x d). Every shard has NAME.targets.npy (float64) and, if there
are weights, NAME.weights.npy (float64).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from extremal.checks import InputError
from extremal.files.outputs import to_json, whole_file
from extremal.files.reading import reading
from extremal.files.shards.fields import Fields, parsed

MANIFEST = "manifest.json"
SHARD_FORMAT, SHARD_VERSION = "extremal-shards", 1
MOST_IN_SHARD = 2**31 - 1  # limit on rows, and on non-zeros
MOST_IN_ALL = 2**48
MANIFEST_BYTES = 2**28
INT, FLOAT = np.dtype("<i4"), np.dtype("<f8")
DTYPES = {"float32": np.dtype("<f4"), "float64": FLOAT}
Layout = dict[str, tuple[np.dtype, tuple[int, ...]]]  # arrays by name: dtype and shape
ShardProgress = Callable[[str, int, int, int | None], object]  # "read", "written" or "verified"; rows, bytes, all rows
HEADER_BYTES = 64, 2**16  # least and most of a .npy file, a multiple of the first


@dataclass(frozen=True)
class FileMark:
    """The size of a file, and zlib.crc32 of all its bytes."""

    bytes: int
    crc32: int


@dataclass(frozen=True)
class Shard:
    """Some consecutive rows: the numbers of rows and entries, and the files of the arrays."""

    name: str
    n: int
    nnz: int
    files: Mapping[str, FileMark]

    @property
    def bytes(self) -> int:
        """The size of its files."""
        return sum(mark.bytes for mark in self.files.values())

    def path(self, directory: Path, array: str) -> Path:
        """The file of an array."""
        return directory / f"{self.name}.{array}.npy"


@dataclass(frozen=True)
class TargetFacts:
    """Facts about all targets: their range, whether all are whole numbers, any classes, and k if a row has k targets.

    If labels are text, ``classes`` are the labels of the numbers 0, 1, ...; otherwise they are the distinct numbers themselves.
    """

    least: float
    greatest: float
    whole: bool
    classes: tuple[str, ...] | tuple[float, ...] | None = None
    outputs: int | None = None

    @property
    def text(self) -> bool:
        """Whether the labels were text."""
        return bool(self.classes) and isinstance(self.classes[0], str)


@dataclass(frozen=True)
class WeightFacts:
    """Facts about all weights: their range and their sum."""

    least: float
    greatest: float
    total: float


@dataclass(frozen=True)
class Manifest:
    """The content of a directory: n rows of d columns with nnz entries (n d if the rows are dense), in shards.

    Examples
    --------
    >>> facts = TargetFacts(0.0, 1.0, True, (0.0, 1.0))
    >>> Manifest("dense", 0, 3, 0, "float32", facts, None, None, True, 0, ()).layout(2, 6)["rows"]
    (dtype('float32'), (2, 3))
    """

    kind: str
    n: int
    d: int
    nnz: int
    dtype: str
    targets: TargetFacts
    weights: WeightFacts | None
    names: tuple[str, ...] | None
    shuffled: bool
    seed: int
    shards: tuple[Shard, ...]

    @cached_property
    def first_rows(self) -> tuple[int, ...]:
        """The first row of each shard, and n."""
        return tuple(np.cumsum([0, *(shard.n for shard in self.shards)], dtype=np.int64).tolist())

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(shard.bytes for shard in self.shards)

    def layout(self, n: int, nnz: int) -> Layout:
        """The dtype and the shape of each array of a shard of n rows with nnz entries."""
        values, arrays = DTYPES[self.dtype], Layout()
        if self.kind == "csr":
            arrays |= {"starts": (INT, (n + 1,)), "columns": (INT, (nnz,)), "values": (values, (nnz,))}
        else:
            arrays |= {"rows": (values, (n, self.d))}
        k = self.targets.outputs
        arrays["targets"] = FLOAT, (n,) if k is None else (n, k)
        return arrays if self.weights is None else arrays | {"weights": (FLOAT, (n,))}


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Write the manifest, whole or not at all: the last file of a build."""
    item = {"format": SHARD_FORMAT, "version": SHARD_VERSION} | asdict(manifest)
    with whole_file(directory / MANIFEST) as temporary:
        temporary.write_text(to_json(item, ensure_ascii=True) + "\n", encoding="ascii")


def directory_path(directory: object) -> Path:
    """Return the path of a directory of shards, or refuse an argument that is not a path.

    Examples
    --------
    >>> directory_path(None)
    Traceback (most recent call last):
        ...
    extremal.checks.InputError: a directory of shards is given by its path, a text; got None
    """
    if not isinstance(directory, (str, Path)) or "\0" in str(directory):
        raise InputError(f"a directory of shards is given by its path, a text; got {directory!r}")
    return Path(directory)


def read_manifest(directory: str | Path) -> Manifest:
    """Read the manifest of a directory, and refuse fields that do not agree with each other.

    Raises
    ------
    InputError
        The message names the file and the fault.

    Examples
    --------
    >>> import tempfile
    >>> facts = TargetFacts(0.0, 1.0, True, (0.0, 1.0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shard = Shard("00000", 2, 6, {"rows": FileMark(176, 1), "targets": FileMark(144, 2)})
    ...     write_manifest(Path(folder), Manifest("dense", 2, 3, 6, "float64", facts, None, None, True, 0, (shard,)))
    ...     print(read_manifest(Path(folder)).shards[0].files["rows"])
    FileMark(bytes=176, crc32=1)
    """
    path = directory_path(directory) / MANIFEST
    with reading(path):
        if not path.is_file():
            none = "it is a file" if path.parent.is_file() else "there is no such directory"
            what = f"it holds no file {MANIFEST}" if path.parent.is_dir() else none
            raise InputError(f"{directory}: not a directory of shards ({what})")
        with open(path, "rb") as file:
            text = file.read(min(path.stat().st_size, MANIFEST_BYTES) + 1)  # this memory is allocated before a byte is read
    if len(text) > MANIFEST_BYTES:
        raise InputError(f"{path}: a manifest has at most {MANIFEST_BYTES} bytes")
    return _checked(Fields(path, "", parsed(path, text)))


def _checked(top: Fields) -> Manifest:
    if top.text("format") != SHARD_FORMAT:
        raise top.wrong("format", f"must be {SHARD_FORMAT!r}")
    if top.whole("version", 1, MOST_IN_ALL) > SHARD_VERSION:
        raise top.wrong("version", f"is newer than {SHARD_VERSION}, the version that this library reads")
    d = top.whole("d", 1, MOST_IN_SHARD)
    manifest = Manifest(
        top.one_of("kind", ("csr", "dense")), top.whole("n", 1, MOST_IN_ALL), d, top.whole("nnz", 0, MOST_IN_ALL),
        top.one_of("dtype", DTYPES), _targets(top.inner("targets")), _weights(top), _names(top, d), top.flag("shuffled"),
        top.whole("seed", 0, 2**128), (),
    )  # fmt: skip
    shards = tuple(_shard(top.within("shards", i, item), manifest) for i, item in enumerate(top.items("shards")))
    if len({shard.name for shard in shards}) < len(shards):
        raise top.wrong("shards", "has two of one name")
    rows, entries = sum(shard.n for shard in shards), sum(shard.nnz for shard in shards)
    for name, said, held in (("n", manifest.n, rows), ("nnz", manifest.nnz, entries)):
        if held != said:
            raise top.wrong(name, f"must be the sum over the shards, {held}")
    return replace(manifest, shards=shards)


def _shard(held: Fields, manifest: Manifest) -> Shard:
    name, n = held.text("name"), held.whole("n", 1, MOST_IN_SHARD)
    if not (5 <= len(name) <= 18 and name.isascii() and name.isdecimal()):
        raise held.wrong("name", "must be five digits or more")
    nnz = held.whole("nnz", 0, MOST_IN_SHARD if manifest.kind == "csr" else MOST_IN_ALL)
    if nnz > n * manifest.d or (manifest.kind == "dense" and nnz != n * manifest.d):
        raise held.wrong("nnz", f"does not agree with {n} rows of {manifest.d} columns")
    files, layout = held.inner("files"), manifest.layout(n, nnz)
    if set(files.item) != set(layout):
        raise held.wrong("files", f"must be those of {', '.join(layout)}")
    return Shard(name, n, nnz, {array: _mark(files.inner(array), *layout[array]) for array in layout})


def _mark(held: Fields, dtype: np.dtype, shape: tuple[int, ...]) -> FileMark:
    size, (step, most) = held.whole("bytes", 0, 2**60), HEADER_BYTES
    header = size - dtype.itemsize * math.prod(shape)
    if not step <= header <= most or header % step:
        raise held.wrong("bytes", f"does not agree with shape {shape} of dtype {dtype}")
    return FileMark(size, held.whole("crc32", 0, 2**32 - 1))


def _targets(held: Fields) -> TargetFacts:
    given = held.item.get("classes")
    classes = None if given is None else held.labels("classes")
    k = None if held.item.get("outputs") is None else held.whole("outputs", 1, MOST_IN_SHARD)
    least, greatest, whole = held.number("least"), held.number("greatest"), held.flag("whole")
    if least > greatest:
        raise held.wrong("least", f"is greater than the greatest, {greatest}")
    facts = TargetFacts(least, greatest, whole, classes, k)
    if classes is not None and not (whole and _within_classes(facts)):
        raise held.wrong("classes", f"does not agree with targets from {least} to {greatest}")
    return facts


def _within_classes(facts: TargetFacts) -> bool:
    """Whether the range of the targets is that of the classes."""
    assert facts.classes
    numbers = range(len(facts.classes)) if facts.text else facts.classes
    return (facts.least, facts.greatest) == (min(numbers), max(numbers))  # type: ignore[type-var]


def _weights(top: Fields) -> WeightFacts | None:
    if top.item.get("weights") is None:
        return None
    held = top.inner("weights")
    facts = WeightFacts(held.number("least"), held.number("greatest"), held.number("total"))
    if not 0 <= facts.least <= facts.greatest <= facts.total or not facts.total:
        raise top.wrong("weights", "must be non-negative, and their sum above 0 and not below the greatest")
    return facts


def _names(top: Fields, d: int) -> tuple[str, ...] | None:
    if top.item.get("names") is None:
        return None
    names = top.items("names")
    if len(names) != d or not all(isinstance(name, str) for name in names):
        raise top.wrong("names", f"must be {d} names, one for each column")
    return tuple(names)
