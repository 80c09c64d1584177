"""The data of an experiment: the real set, a stand-in that says so, or a user's file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from extremal import checks
from extremal.checks import InputError
from extremal.files import datasets, tables
from extremal.losses import LOSSES
from extremal.objectives import LinearModel
from extremal.sets import ConvexSet
from extremal.sets.words import read_constraint
from extremal_lab.reproduction import standins


@dataclass(frozen=True)
class Source:
    """A data set on this machine; workers load it by this description."""

    data: str  # the requested name or file
    origin: str  # "real", "stand-in" or "file"
    text: str  # the origin in a few words
    n: int
    d: int
    nnz: int
    digest: str  # of the numbers: a changed file is another source
    rows: int | None = None  # a random subset of that many rows, for runs over n
    draw: int = 0  # number of the subset; a larger subset of the same draw holds the smaller ones

    @property
    def name(self) -> str:
        """The data set's or the file's name, without its folder."""
        return Path(self.data).name


def resolve(data: str, *, rows: int | None = None, draw: int = 0) -> Source:
    """Find a data set by its name or file; a stand-in if the real one is not here."""
    origin, text = _origin(data)
    A, y = _load(data, origin, rows, draw)
    text += "" if rows is None else f"; {rows} random rows of it"
    size = {"n": A.shape[0], "d": A.shape[1], "nnz": int(A.nnz if sp.issparse(A) else A.size)}
    return Source(data, origin, text, **size, digest=_digest(A, y), rows=rows, draw=draw)


def _origin(data: str) -> tuple[str, str]:
    if data in datasets.NAMES:
        found = datasets.find(data) is not None
        return ("real", f"LIBSVM's {data}") if found else ("stand-in", standins.describe(data))
    if not Path(data).exists():
        raise InputError(f"no data {data!r}: neither a file nor one of {', '.join(datasets.NAMES)}")
    return "file", f"the file {Path(data).name}"


def _load(data: str, origin: str, rows: int | None, draw: int) -> tuple[Any, np.ndarray]:
    if origin == "file":
        A, y = tables.load_table(data)
    else:
        A, y = datasets.load(data, download=False) if origin == "real" else standins.stand_in(data)
    if rows is None:
        return A, y
    idx = np.random.default_rng(draw).permutation(len(y))[: checks.whole("resolve", "rows", rows, 1, len(y))]
    return A[np.sort(idx)], y[np.sort(idx)]


def _digest(A: Any, y: np.ndarray) -> str:
    parts = (A.indptr.astype(np.int64), A.indices.astype(np.int64), A.data) if sp.issparse(A) else (A,)
    digest = hashlib.sha256(repr(A.shape).encode())
    for part in (*parts, y):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


@lru_cache(maxsize=3)
def objective(source: Source, loss: str) -> LinearModel:
    """The loss on the data; two classes become the labels of the loss, the larger one its upper label."""
    phi = LOSSES[checks.one_of("loss", loss, LOSSES)]()
    A, y = _load(source.data, source.origin, source.rows, source.draw)
    if _digest(A, y) != source.digest:
        raise InputError(f"{source.data}: the data changed while they were used; run the command again")
    if phi.labels is not None:
        classes = np.unique(y)
        if len(classes) != 2:
            raise InputError(f"{source.data}: the {loss} loss takes two classes, and there are {len(classes)}")
        y = np.where(y == classes[1], phi.labels[1], phi.labels[0])
    return LinearModel(phi, A, y)


def constraint(source: Source, text: str) -> ConvexSet:
    """The set that is given by words, on the features of the data; it must be bounded, and its radius a number."""
    plan = read_constraint(text, None, (source.d,))
    if plan.fraction is not None or not plan.bounded:
        raise InputError(f"--set {text}: methods are compared over bounded sets with radii that are numbers, such as l1:10")
    return plan.set()
