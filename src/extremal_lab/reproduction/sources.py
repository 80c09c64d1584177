"""The data of an experiment: the real set, a stand-in that says so, or a user's file."""

from __future__ import annotations

import hashlib
import math
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
from extremal.sets import SETS, ConvexSet
from extremal.sets.words import read_constraint
from extremal_lab.reproduction import standins
from extremal_lab.reproduction.own import HELD, imported, is_reference, made, shown


@dataclass(frozen=True)
class Source:
    """A data set on this machine; workers load it by this description."""

    data: str  # the requested name or file
    origin: str  # "real", "stand-in", "file", "module", "arrays" or "objective"
    text: str  # the origin in a few words
    n: int
    d: int
    nnz: int
    digest: str  # of the numbers: a changed file is another source
    rows: int | None = None  # a random subset of that many rows, for runs over n
    draw: int = 0  # number of the subset; a larger subset of the same draw holds the smaller ones
    test: float = 0.0  # the share of the rows that are held out

    @property
    def name(self) -> str:
        """The data set's or the file's name, without its folder."""
        return shown(Path(self.data).name)


def resolve(data: str, *, rows: int | None = None, draw: int = 0, test: float = 0.0) -> Source:
    """Find data by name, file or ``module:name``, or among the user's objects; a stand-in for a real set that is not here."""
    origin, text = _origin(data)
    if origin == "objective":
        return _of_objective(data, HELD[data], test)
    A, y = _split(_load(data, origin, rows, draw), test, held_out=False)
    text += "" if rows is None else f"; {rows} random rows of it"
    text += f"; {test:g} of its rows are held out" if test else ""
    size = {"n": A.shape[0], "d": A.shape[1], "nnz": int(A.nnz if sp.issparse(A) else A.size)}
    return Source(data, origin, text, **size, digest=_digest(A, y), rows=rows, draw=draw, test=test)


def _of_objective(data: str, f: Any, test: float) -> Source:
    if test:
        raise InputError(f"`compare(test={test:g})` holds out rows of data, and {shown(data)} is an objective: give test=(A, y)")
    d = math.prod(f.shape)
    return Source(data, "objective", "an objective of the user's", f.n, d, f.n * d, digest=f"object {id(f)}")


def _origin(data: str) -> tuple[str, str]:
    if data in HELD:
        return ("arrays", "arrays of the user's") if isinstance(HELD[data], tuple) else ("objective", "")
    if is_reference(data) and not Path(data).exists():
        return "module", f"made by {data}"
    if data in datasets.NAMES:
        found = datasets.find(data) is not None
        return ("real", f"LIBSVM's {data}") if found else ("stand-in", standins.describe(data))
    if not Path(data).exists():
        raise InputError(f"no data {data!r}: neither a file nor one of {', '.join(datasets.NAMES)}, nor module:name")
    return "file", f"the file {Path(data).name}"


def _load(data: str, origin: str, rows: int | None, draw: int) -> tuple[Any, np.ndarray]:
    A, y = _read(data, origin)
    if rows is None:
        return A, y
    idx = np.random.default_rng(draw).permutation(len(y))[: checks.whole("resolve", "rows", rows, 1, len(y))]
    return A[np.sort(idx)], y[np.sort(idx)]


def _read(data: str, origin: str) -> tuple[Any, np.ndarray]:
    """All rows."""
    match origin:
        case "arrays":
            return HELD[data]
        case "module":
            return imported("data", data, _arrays)
        case "file":
            return tables.load_table(data)
        case "real":
            return datasets.load(data, download=False)
        case _:
            return standins.stand_in(data)


def _arrays(found: Any, given: dict[str, Any]) -> tuple[Any, np.ndarray]:
    """Rows and targets from a pair, or from a function that makes a pair."""
    return checked_arrays("module:name", made(found, given))


def checked_arrays(call: str, pair: Any) -> tuple[Any, np.ndarray]:
    """A pair of rows and targets; lists become arrays."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise InputError(f"`{call}` must be two items, rows A and targets y, got {type(pair).__name__}")
    A: Any = sp.csr_array(pair[0]) if sp.issparse(pair[0]) else np.asarray(pair[0])
    y = np.asarray(pair[1])
    if A.ndim != 2 or y.shape != (A.shape[0],):
        raise InputError(f"`{call}` must be a matrix A and one target for each of its rows, got shapes {A.shape} and {y.shape}")
    return A, y


def _split(rows: tuple[Any, np.ndarray], share: float, held_out: bool) -> tuple[Any, np.ndarray]:
    """The rows that are held out, or all others; the same for everyone who asks."""
    if not share:
        return rows
    A, y = rows
    order = np.random.default_rng(0).permutation(len(y))
    few = min(max(1, round(share * len(y))), len(y) - 1)
    idx = np.sort(order[:few] if held_out else order[few:])
    return A[idx], y[idx]


def _digest(A: Any, y: np.ndarray) -> str:
    parts = (A.indptr.astype(np.int64), A.indices.astype(np.int64), A.data) if sp.issparse(A) else (A,)
    digest = hashlib.sha256(repr(A.shape).encode())
    for part in (*parts, y):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


@lru_cache(maxsize=3)
def objective(source: Source, loss: str) -> Any:
    """The loss on the data; two classes become the labels of the loss, the larger one its upper label."""
    if source.origin == "objective":
        return HELD[source.data]
    A, y = _split(_load(source.data, source.origin, source.rows, source.draw), source.test, held_out=False)
    if _digest(A, y) != source.digest:
        raise InputError(f"{source.data}: the data changed while they were used; run the command again")
    phi = loss_of(loss)
    return LinearModel(phi, A, _labels(source, loss, phi, y, y))


def held_out(source: Source, loss: str, test: str) -> Any:
    """The objective of the test loss: on the rows of the source that are held out, or rows or an objective of the user's."""
    if test in HELD and not isinstance(HELD[test], tuple):
        return HELD[test]
    f = objective(source, loss)
    if source.origin == "objective":
        return LinearModel(f.loss, *HELD[test])
    all_rows = _load(source.data, source.origin, source.rows, source.draw)
    A, y = HELD[test] if test in HELD else _split(all_rows, source.test, held_out=True)
    return LinearModel(f.loss, A, _labels(source, loss, f.loss, y, all_rows[1]))


def loss_of(text: str) -> Any:
    """A loss by its name, by ``module:name``, or of the user's."""
    if text in HELD:
        return HELD[text]
    if is_reference(text, LOSSES):
        return imported("loss", text, made)
    return LOSSES[checks.one_of("loss", text, LOSSES)]()


def _labels(source: Source, loss: str, phi: Any, y: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """The targets as labels of the loss, where ``seen`` are all targets."""
    if phi.labels is None:
        return y
    classes = np.unique(seen)
    if len(classes) != 2:
        raise InputError(f"{source.name}: the {shown(loss)} loss takes two classes, and there are {len(classes)}")
    return np.where(y == classes[1], phi.labels[1], phi.labels[0])


def constraint(source: Source, text: str) -> ConvexSet:
    """The set that is given by words, on the features of the data; it must be bounded, and its radius a number."""
    if text in HELD:
        return HELD[text]
    if is_reference(text, SETS):
        return imported("set", text, _a_set)
    plan = read_constraint(text, None, (source.d,))
    if plan.fraction is not None or not plan.bounded:
        raise InputError(f"--set {text}: methods are compared over bounded sets with radii that are numbers, such as l1:10")
    return plan.set()


def _a_set(found: Any, given: dict[str, Any]) -> ConvexSet:
    C = found if isinstance(found, ConvexSet) and not given else made(found, given)
    if not isinstance(C, ConvexSet):
        raise InputError(f"--set module:name must be a set, a class of sets, or a function that makes one, got {C!r}")
    return C
