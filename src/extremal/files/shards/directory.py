"""A directory of shards as data of a model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np

from extremal.checks import InputError
from extremal.data.kept import Held
from extremal.data.parts import KeptNumbers, Part, Parts, count_rows
from extremal.data.rows import Changed, Head, Known, RowData
from extremal.files.reading import check_room
from extremal.files.shards.engine import LocalShards, ShardParts
from extremal.files.shards.manifest import Manifest, ShardProgress, WeightFacts, directory_path, read_manifest
from extremal.files.shards.mapped import check_sizes
from extremal.support.lazy import imported
from extremal.support.memory import free_memory

ENGINES = ("memory", "disk", "dask")
MEMORY_SHARE = 2  # a directory is read into memory if it takes less than 1 / MEMORY_SHARE of the free memory


@dataclass(frozen=True)
class MeanOneWeights(KeptNumbers):
    """The weights of a directory, divided by their mean."""

    facts: WeightFacts
    shape: tuple[int, ...]

    @property
    def heaviest(self) -> float:
        """The largest weight."""
        return self.facts.greatest / self.mean

    @property
    def mean(self) -> float:
        """The divisor: the mean of the raw weights."""
        return self.facts.total / self.shape[0]

    def of(self, part: Part) -> np.ndarray:
        return part.kept["weights"][part.skipped :][: part.n] / self.mean


class ShardDir(RowData):
    """Rows in a directory of shards, with targets and weights: possibly more than fit in memory, or on one machine.

        data = ShardDir("train/");   f = LinearModel(Logistic(), data);   minimize(f, L1Ball(20.0))

    Every shard is one part of a pass, whatever the engine. So a run has the same bits in memory, on disk and on Dask, for any
    number of threads and workers. Each pass costs one read of the shards. Numbers of rows (margins, derivatives) stay with
    the shards, or in mapped scratch files. This process needs O(d + k^2) memory for k columns in use, and two shards for each
    thread.

    Parameters
    ----------
    directory : path
        A directory made by `ShardDir.build`.
    engine : "memory", "disk" or "dask", optional
        Where rows are read: once into memory; from mapped files, in each pass; on the workers of a Dask cluster. Default: "dask"
        with a client, otherwise "memory" if the shards take less than half of the free memory, otherwise "disk".
    client : distributed.Client, optional
        The client for "dask". Default: a new cluster of this machine, which is closed with the data.

    Examples
    --------
    >>> import tempfile, numpy as np, extremal as ex
    >>> A = np.random.default_rng(0).standard_normal((500, 4))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = ex.ShardDir.build((A, np.sign(A[:, 0])), folder, seed=0)
    ...     r = ex.minimize(ex.LinearModel(ex.Logistic(), data), ex.L1Ball(3.0))
    >>> r.converged, r.x.round(2)
    (True, array([3., 0., 0., 0.]))
    """

    def __init__(self, directory: str | Path, engine: str | None = None, client: Any = None):
        self.directory = directory_path(directory)
        self.manifest: Manifest = read_manifest(self.directory)
        check_room(self.directory, self.manifest.d)
        check_sizes(self.directory, self.manifest)
        self.engine = self._chosen(engine, client)
        self._parts, self._known = self._made(client), Known(str(self.directory))
        if not self.manifest.shuffled:
            self._known.warn("its rows were not shuffled, so batches of consecutive rows may not represent all rows")

    def in_problem(self) -> dict[str, Any]:
        """What a checkpoint compares: the rows, and not the place where they are read."""
        return {"parts": self._parts}

    def _chosen(self, engine: str | None, client: object) -> str:
        if engine is not None and engine not in ENGINES:
            raise InputError(f"`ShardDir(engine=...)` must be one of {', '.join(map(repr, ENGINES))}, got {engine!r}")
        if client is not None and engine not in (None, "dask"):
            raise InputError(f"`ShardDir(client=...)` goes with engine='dask', got engine={engine!r}")
        if engine is not None:
            return engine
        free = free_memory()
        return "dask" if client is not None else "memory" if free is None or MEMORY_SHARE * self.bytes <= free else "disk"

    def _made(self, client: object) -> ShardParts:
        if self.engine == "dask":
            return imported("extremal.scale.engine").DaskShards(self.directory, self.manifest, client)
        return LocalShards(self.directory, self.manifest, keep=self.engine == "memory")

    @classmethod
    def build(cls, source: Any, directory: str | Path, **how: Any) -> ShardDir:
        """Convert rows and targets from elsewhere to a directory, once, in bounded memory.

        The arguments are those of `extremal.files.shards.build.build`. The same call with the same options resumes an interrupted
        build of files.
        """
        if any(hasattr(item, "__dask_graph__") for item in (source if isinstance(source, tuple) else (source,))):
            return imported("extremal.scale.collections").build_collection(source, directory, **how)
        imported("extremal.files.shards.build").build(source, directory, **how)
        return cls(directory)

    def verify(self, progress: ShardProgress | None = None) -> None:
        """Read every byte once: checksums, order of columns, finite numbers, labels. An error names the first fault.

        ``progress`` is called after each shard, with "verified", the rows and bytes so far, and the number of all rows.
        """
        imported("extremal.files.shards.verify").verify_shards(self.directory, progress)

    @property
    def bytes(self) -> int:
        """The size of the shards on disk."""
        return self.manifest.bytes

    @property
    def shape(self) -> tuple[int, int]:
        return self.manifest.n, self.manifest.d

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.manifest.dtype)

    @property
    def nnz(self) -> int:
        return self.manifest.nnz

    @property
    def parts(self) -> Parts:
        return self._parts

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the columns, if they have names."""
        return self.manifest.names

    @property
    def classes(self) -> np.ndarray | None:
        """The classes in increasing order, if the targets are labels."""
        classes = self.manifest.targets.classes
        return None if classes is None else np.array(classes)

    @property
    def targets(self) -> Any:
        """The targets, which stay with the shards."""
        k = self.manifest.targets.outputs
        return Held("targets", (self.shape[0],) if k is None else (self.shape[0], k))

    @property
    def weights(self) -> Any:
        """The weights, of mean 1, which stay with the shards; None if there are none."""
        return None if self.manifest.weights is None else MeanOneWeights(self.manifest.weights, self.shape[:1])

    @property
    def known(self) -> Known:
        return self._known

    @property
    def where(self) -> str:
        many = len(self.manifest.shards)
        return f"in {many} {'shard' if many == 1 else 'shards'} {self._parts.where}"

    @property
    def bounds(self) -> tuple[int, ...]:
        """The first row of each shard, and n: batches are consecutive rows of each shard."""
        return self.manifest.first_rows

    def shifted(self, offset: np.ndarray) -> RowData | None:
        dense = self.manifest.kind == "dense"
        return Changed(self, methodcaller("shifted", offset), self.shape[1]) if dense else None

    def head(self, size: int, after: int = 0) -> RowData | None:
        """The first rows of each shard, in proportion to its size: a sample, because rows are in random order."""
        if not self.manifest.shuffled:
            return None
        skipped = self._first(after)
        return Head(self, [max(b - a, 0) for a, b in zip(skipped, self._first(size), strict=True)], skipped)

    def _first(self, size: int) -> list[int]:
        """How many rows of each shard are among the first ``size``."""
        ends = [math.floor(size * end / self.shape[0]) for end in self.bounds]
        return [b - a for a, b in pairwise(ends)]

    def _read(self, idx: np.ndarray, again: bool = False) -> None:
        count_rows(0 if again else len(idx))

    def ready(self, *outputs: int) -> None:
        """Compile the kernels of products, by an empty block."""
        LocalShards(self.directory, self.manifest, keep=False).ready(*outputs)

    def close(self) -> None:
        """Close the cluster, if this object has started one."""
        self._parts.close()

    def __repr__(self) -> str:
        return f"ShardDir({str(self.directory)!r}, engine={self.engine!r})"
