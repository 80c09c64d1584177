"""Answers in files, with all that a check needs; and the check of an answer against the data."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from extremal.checks import InputError, lacks
from extremal.data.entries import Entries
from extremal.data.parts import Part, PerRow, RowWork, Sums
from extremal.data.rows import RowData
from extremal.files.array_files import npz_arrays
from extremal.files.outputs import check_out, whole_file
from extremal.files.reading import damaged, opened_file
from extremal.files.shards.directory import ShardDir
from extremal.losses.base import is_multi
from extremal.losses.weighted import unweighted
from extremal.objectives.intercept import InterceptModel
from extremal.objectives.margins import MarginModel
from extremal.points.active import ActiveSet
from extremal.points.factored import FactoredMatrix
from extremal.points.low_rank import LowRank, RankOne
from extremal.points.vertex import dot64
from extremal.run.result import Result
from extremal.sets.base import ConvexSet
from extremal.support.versions import versions
from extremal.trust.plans import plan_of, set_from
from extremal.trust.verifier import Block, Verification, check_answer, fingerprint, seal_of

ANSWER_FORMAT, ANSWER_VERSION = "extremal-answer", 1
ARCHIVE, PICKLE = b"PK", b"\x80"  # the first bytes of a .npz file, and of a pickle as joblib writes it
ENTRIES_AT_ONCE = 2**20
MOST_ATOM_ENTRIES = 2**22  # atoms with more entries than this are left out
LONGEST_ANSWER = 2**24  # characters of the text in a file
FACTS = ("shape", "outputs", "intercept", "convex", "loss", "set", "data")  # a check compares these with f and C


def save_answer(path: str | Path, result: Result) -> None:
    """Write a result as .npz, whole or not at all, with all that `verify` needs."""
    path = Path(path)
    check_out(path)
    if path.suffix.lower() != ".npz":
        raise InputError(f"`Result.save(path={str(path)!r})` must end in .npz: write {path.with_suffix('.npz')}")
    write_arrays(path, arrays_of(result))


def write_arrays(path: str | Path, held: Mapping[str, Any]) -> None:
    """Write arrays as .npz, whole or not at all."""
    archive = io.BytesIO()  # a full disk in the middle of an archive would confuse its writer
    np.savez(archive, **held)
    with whole_file(path) as temporary:
        temporary.write_bytes(archive.getbuffer())


def arrays_of(result: Result, more: Mapping[str, Any] | None = None, **words: Any) -> dict[str, np.ndarray]:
    """A result as the arrays of a file, sealed; ``more`` are further arrays, and ``words`` further facts."""
    f, C, x = result.objective, result.set, result.x
    if f is None or C is None:
        raise InputError("`Result.save(path)` needs the objective, which a result loses when it is pickled: solve again")
    if not isinstance(x, FactoredMatrix) and np.asarray(x).dtype.kind == "O":
        raise InputError("`Result.save(path)` keeps numbers in float64, and this x is made of fractions")
    held: dict[str, Any] = dict(more or {})
    held |= {"value": result.value, "gap": result.gap, "status": result.status.value, "converged": result.converged}
    g = f.grad(x) if hasattr(f, "grad") else f.value_and_grad(x)[1]
    held |= {"low": dot64(x, g) - result.gap, "n_iter": result.n_iter}
    held |= {"grads": result.calls.grads, "lmos": result.calls.lmos}
    held |= _point(x) | _vertex(C.relaxed.lmo(g))
    if result.atoms is not None:
        held |= _atoms(result.atoms)
    if isinstance(f, InterceptModel):
        held["intercept"] = f.intercept(x)
    said = {"format": ANSWER_FORMAT, "version": ANSWER_VERSION} | facts_of(f, C, held) | words
    said |= {"method": str(result.method), "seed": result.seed, "seconds": result.seconds}
    said |= {"calls": asdict(result.calls), "versions": versions()}
    arrays = {name: np.asarray(item) for name, item in held.items() if item is not None}
    arrays["answer"] = np.asarray(json.dumps(said))
    return arrays | {"seal": np.asarray(seal_of(arrays))}


def facts_of(f: Any, C: ConvexSet, arrays: dict[str, Any]) -> dict[str, Any]:
    """The problem in words and numbers: the facts that an answer states, and that a check compares."""
    model = isinstance(f, MarginModel)
    loss: Any = f.loss if model else f
    outputs = loss.outputs if model and is_multi(loss) else 0
    return {
        "shape": [*f.shape], "outputs": outputs, "intercept": isinstance(f, InterceptModel), "convex": bool(f.convex),
        "loss": plan_of(loss, arrays) if model else {"kind": type(f).__name__, "n": f.n},
        "set": plan_of(C.on(f.shape), arrays), "data": _data_of(f),
    }  # fmt: skip


def _data_of(f: Any) -> dict[str, Any] | None:
    """A fingerprint: that of the rows, or the checksums in the manifest of a directory of shards."""
    rows = row_blocks(f)
    if isinstance(f, MarginModel) and isinstance(f.data, ShardDir):
        marks = {shard.name: {name: [m.bytes, m.crc32] for name, m in shard.files.items()} for shard in f.data.manifest.shards}
        return {"rows": f.n, "columns": f.data.shape[1], "shards": marks}
    return None if rows is None else fingerprint(rows, math.prod(f.data.shape[1:]))


def _point(x: Any) -> dict[str, np.ndarray]:
    if not isinstance(x, FactoredMatrix):
        return {"x": np.asarray(x, np.float64)}
    left, right = x.factors()
    return {"left": left.astype(np.float64), "right": right.astype(np.float64)}


def _vertex(v: Any) -> dict[str, np.ndarray]:
    """The vertex that attains the gap: its entries that are not zero, or its factors."""
    if isinstance(v, (RankOne, LowRank)):
        return {f"vertex {side}": np.atleast_2d(np.asarray(a).T).T for side, a in (("left", v.left), ("right", v.right))}
    a = np.asarray(v.to_array()).reshape(-1)
    at = np.flatnonzero(a)
    return {"vertex at": at, "vertex values": a[at]}


def _atoms(atoms: ActiveSet) -> dict[str, np.ndarray]:
    """The atoms as sparse rows, or as stacks of factors; nothing if they are too large."""
    found = [_vertex(v) for v in atoms.vertices]
    if sum(part.size for item in found for part in item.values()) > MOST_ATOM_ENTRIES or len({tuple(item) for item in found}) > 1:
        return {}
    held = {"atom weights": np.asarray(atoms.weights)}
    for name in found[0]:
        held[name.replace("vertex", "atoms")] = np.concatenate([item[name] for item in found], axis=-1)
        held[name.replace("vertex", "atom starts")] = np.cumsum([0, *(item[name].shape[-1] for item in found)])
    return held


@dataclass(frozen=True)
class RowsWithTargets(RowWork):
    """The rows of a part and their targets; answers are not summed."""

    y: PerRow

    def __call__(self, part: Part) -> Sums:
        """The rows, and a copy of the targets."""
        return part.rows, part.of(self.y).copy()


def row_blocks(f: Any) -> Callable[[], Iterator[Block]] | None:
    """The rows of a model as blocks for the check; None if f has no rows that can be read one by one."""
    if not isinstance(f, MarginModel):
        return None
    if isinstance(f.data, Entries):
        return lambda: _entry_blocks(f.data.positions, np.asarray(f.y))  # type: ignore[union-attr]
    return (lambda: _blocks(f)) if isinstance(f.data, RowData) else None


def _entry_blocks(at: Any, y: np.ndarray) -> Iterator[Block]:
    for i in range(0, len(at), ENTRIES_AT_ONCE):
        some = slice(i, i + ENTRIES_AT_ONCE)
        places = at.rows[some].astype(np.int64) * at.shape[1] + at.cols[some]
        yield np.arange(len(places) + 1), places, np.ones(len(places)), y[some]


def _blocks(f: MarginModel) -> Iterator[Block]:
    for rows, y in f.data.parts.answers(RowsWithTargets(f.y))[1]:
        n, d = rows.shape
        step = max(1, ENTRIES_AT_ONCE * n // max(1, rows.nnz))
        for i in range(0, n, step):
            some = rows.part(slice(i, min(i + step, n)))
            found = some.listed()
            if found is None:
                m = some.shape[0]
                found = np.arange(0, m * d + 1, d), np.tile(np.arange(d), m), some.array().reshape(-1)
            starts, columns, values = found
            yield starts, columns, values.astype(np.float64), y[i : i + step]


def refuse_other_kinds(path: Path, what: str, max_bytes: int | None = None) -> None:
    """Refuse a file that is no archive at all; nothing is unpickled."""
    with opened_file(path, max_bytes) as file:
        start = file.read(4)
    if start[:2] != ARCHIVE:
        kind = "a pickle, which is not loaded here" if start[:1] == PICKLE else "another kind of file"
        raise InputError(f"{path}: this is not {what}: it is {kind}")


def load_answer(path: str | Path, max_bytes: int | None = None) -> dict[str, np.ndarray]:
    """Read the arrays of an answer: nothing is unpickled or executed, and shapes that do not fit are refused."""
    path = Path(path)
    refuse_other_kinds(path, "an answer of `extremal solve --out` or `Result.save`", max_bytes)
    with npz_arrays(path, max_bytes) as file:
        if "answer" not in file or "seal" not in file:
            raise InputError(f"{path}: this is no answer that can be verified: it holds {file.names}")
        held = {name: file[name] for name in file.all_names}
    said = said_by(path, held)
    wanted = ["value", "gap", "low", *(["x"] if "x" in held else ["left", "right"]), *["intercept"] * said["intercept"]]
    lost = [name for name in wanted if name not in held or held[name].dtype != np.float64]
    if lost or any(held[name].shape for name in wanted[:3]):
        raise damaged(path, f"{lost[0] if lost else 'a value'} must be there, in float64")
    sides = held["x"].shape if "x" in held else (held["left"].shape[:1] + held["right"].shape[:1])
    if [*sides] != said["shape"] or ("x" not in held and held["left"].shape[1:] != held["right"].shape[1:]):
        raise damaged(path, f"x has the shape {sides}, and the text says {said['shape']}")
    if said["intercept"] and held["intercept"].size != max(1, said["outputs"]):
        raise damaged(path, "there is not one intercept for each output")
    return held


def said_by(path: object, held: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The text of an answer, checked."""
    text = held["answer"]
    if text.shape or text.dtype.kind != "U" or text.dtype.itemsize > 4 * LONGEST_ANSWER:
        raise damaged(Path(str(path)), "its text is not one text")
    try:
        said = json.loads(str(text))
    except (ValueError, RecursionError) as error:
        raise damaged(Path(str(path)), f"its text is not JSON: {error}") from None
    if not isinstance(said, dict) or said.get("format") != ANSWER_FORMAT:
        raise InputError(f"{path}: this is no answer of the format {ANSWER_FORMAT}")
    version, kinds = said.get("version"), {"shape": list, "outputs": int, "intercept": bool, "convex": bool, "loss": dict}
    if not isinstance(version, int) or version > ANSWER_VERSION:
        raise InputError(f"{path}: its version {version} is newer than {ANSWER_VERSION}, the one that this library reads")
    for name in FACTS:
        if name not in said or not isinstance(said[name], kinds.get(name, object)):
            raise damaged(Path(str(path)), f"its text does not say the {name}")
    return said


def verify(answer: str | Path | Result, f: Any, C: ConvexSet | None = None) -> Verification:
    """Check an answer without the solver: is x in the set, and are f(x) and the gap as stated?

        proved:  x in C,   f(x) = value,   max over s in C of <grad f(x), x - s> <= gap,   up to bounds on rounding

    The check has formulas of its own, in plain numpy, with exact sums and bounds on its own rounding. It also compares the loss,
    the set and checksums of the data with those of the answer. docs/certificates.md explains the three verdicts, "proved", "not
    proved" and "refuted". The cost is two passes over the rows, at about 1 microsecond per entry, and one oracle call. For sets
    without a definition in numbers, further oracle calls look for x among combinations of the answers.

    Parameters
    ----------
    answer : path or Result
        A file by ``result.save`` or ``extremal solve --out``, or a result.
    f : objective
        The objective on the data to check against.
    C : ConvexSet, optional
        The set. Default: the set that the answer names.

    References
    ----------
    Dekker (1971), A floating-point technique for extending the available precision, Numer. Math. 18. Higham (2002), Accuracy
    and stability of numerical algorithms, SIAM.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(2), np.array([1.0, 3.0]))
    >>> r = ex.minimize(f, ex.L1Ball(2.0))
    >>> ex.verify(r, f, ex.L1Ball(2.0)).verdict, ex.verify(r, f, ex.L1Ball(2.1)).reasons
    ('proved', ('the set is not that of the answer',))
    """
    if not isinstance(answer, (str, Path, Result)):
        raise InputError(f"`verify(answer=...)` must be a path or a result, got {answer!r}")
    if lacks(f, "value_and_grad"):
        raise InputError(f"`verify(f=...)` must be an objective such as LinearModel(Logistic(), A, y), got {f!r}")
    if C is not None and not isinstance(C, ConvexSet):
        raise InputError(f"`verify(C=...)` must be a set such as L1Ball(20.0), got {C!r}")
    held = arrays_of(replace(answer, objective=f)) if isinstance(answer, Result) else load_answer(answer)
    return verify_arrays(held, f, C, answer)


def verify_arrays(held: Mapping[str, np.ndarray], f: Any, C: ConvexSet | None, path: object) -> Verification:
    """`verify` for arrays that are read."""
    said = said_by(path, held)
    stated = float(held["value"]), float(held["gap"])
    if said["shape"] != [*f.shape]:
        return Verification("refuted", (f"x has the shape {tuple(said['shape'])}, and the data need {f.shape}",), stated=stated)
    if getattr(f, "manifold", None) is not None:
        return Verification("not proved", ("the gap of this objective is on a manifold",), stated=stated)
    if C is None:
        try:
            C = set_from(said["set"], held).on(f.shape)
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError, MemoryError) as error:
            raise InputError(f"{path}: its set cannot be made again: {error}") from None
    if isinstance(f, MarginModel) and isinstance(f.data, ShardDir):
        if f.data.engine == "dask":
            raise InputError("`verify(f=...)` reads shards in this process: open them by ShardDir(directory, engine='disk')")
        f.data.verify()  # the bytes are those of the manifest
    rows, own = row_blocks(f), (unweighted(f.loss) if isinstance(f, MarginModel) else f)
    own = getattr(own, "loss", own)
    known = rows is not None and type(own).__module__.startswith("extremal.")
    return check_answer(held, C, rows, None if known else f.loss if rows is not None else f, **facts_of(f, C, {}))
