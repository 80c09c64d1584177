"""Random problems: any set x any loss x any kind of rows x any scale. Problem i of seed s depends on s and i alone."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from problems_exact import ExactModel, deriv_of, value_of
from problems_later import KINDS, LATER, TIGHT, draw_region
from problems_made import ALL, MADE, MATRICES, VECTORS
from problems_sets import ANY_SHAPE, Region
from problems_shaped import SQUARE

import extremal as ex
from extremal.methods.cards import METHODS

ORDINARY = 6.0  # scales are within 10^-6 .. 10^6
HOSTILE, NAMED = 0.08, 0.15  # shares of problems with scales near the ends of float64; of runs with a method by name


@dataclass
class Problem:
    """A problem, and all that says what it is."""

    seed: int
    index: int
    f: Any
    region: Region
    exact: ExactModel
    options: dict[str, Any]  # of `minimize`
    hostile: bool
    words: dict[str, Any] = field(default_factory=dict)  # what a report says of it

    @property
    def tol(self) -> float:
        """The tolerance that is asked for."""
        return self.options.get("tol", 1e-4)


def problem(seed: int, index: int) -> Problem:
    """Problem ``index`` of a seed; those from 10**6 on are of another family (`problems_later`)."""
    if index >= LATER:
        return later_problem(seed, index)
    rng = np.random.default_rng([seed, index])
    hostile = bool(rng.random() < HOSTILE)
    name = str(rng.choice(list(ALL)))
    words: dict[str, Any] = {"set": name}
    shape = draw_shape(rng, name)
    r = scale(rng, hostile)
    region = ALL[name](rng, shape, r)
    words |= {"radius": r, "shape": region.C.shape, "scales": "hostile" if hostile else "ordinary"}
    f, exact = draw_model(rng, region, hostile, words)
    options = {}
    words["method"] = "auto"
    if rng.random() < NAMED:
        words["method"] = str(rng.choice([m for m in METHODS if m != "auto"]))
        options = {"method": words["method"], "max_iter": int(rng.integers(1, 60)), "max_grads": 30 * f.n}
    options["seed"] = int(rng.integers(100))
    return Problem(seed, index, f, region, exact, options, hostile, words)


def later_problem(seed: int, index: int) -> Problem:
    """Kinds that came later: always of ordinary scale, and by Auto."""
    rng = np.random.default_rng([seed, index])
    kind, r = str(rng.choice(KINDS)), scale(rng, False)
    name, region = draw_region(rng, kind, draw_shape, r)
    words: dict[str, Any] = {
        "set": name,
        "radius": r,
        "shape": region.C.shape,
        "scales": "ordinary",
        "method": "auto",
        "kind": kind,
    }
    f, exact = draw_model(rng, region, False, words, np.float32 if kind == "float32" else None)
    tight = {"tol": TIGHT} if kind == "float32" else {}
    return Problem(seed, index, f, region, exact, {"seed": int(rng.integers(100))} | tight, False, words)


def scale(rng: np.random.Generator, hostile: bool) -> float:
    if hostile and rng.random() < 0.5:
        return float(10 ** rng.choice([rng.uniform(100, 300), rng.uniform(-300, -100)]))
    return float(10 ** rng.uniform(-ORDINARY, ORDINARY)) if rng.random() < 0.6 else float(10 ** rng.uniform(-1, 1))


def draw_shape(rng: np.random.Generator, name: str) -> tuple[int, ...]:
    """Vectors mostly; matrices where the set wants them, and at times where it does not mind."""
    if name in SQUARE:
        d = int(rng.integers(1, 9))
        return d, d
    if name in MATRICES or (name in ANY_SHAPE | MADE and rng.random() < 0.2):
        return int(rng.integers(1, 13)), int(rng.integers(1, 8))
    if name not in VECTORS and rng.random() < 0.05:
        return (int(rng.integers(100, 600)),)
    return (int(rng.integers(1, 61)) if rng.random() < 0.7 else int(rng.integers(1, 6)),)


# rows


def draw_rows(rng: np.random.Generator, n: int, d: int, hostile: bool, words: dict[str, Any]) -> np.ndarray:
    """Columns of one scale, of some or of all; some of them twice, zero, constant or far from 0."""
    A = rng.standard_normal((n, d))
    family = str(rng.choice(["one", "mild", "full", "common", "low rank", "few", "binary"]))
    if family == "low rank":
        k = int(rng.integers(1, 1 + min(n, d)))
        A = rng.standard_normal((n, k)) @ rng.standard_normal((k, d))
    elif family == "few":
        A *= rng.random((n, d)) < 0.1
    elif family == "binary":
        A = (rng.random((n, d)) < 0.3).astype(float)
    spread = {"mild": 1.0, "full": ORDINARY}.get(family, 0.0)
    A *= 10 ** rng.uniform(-spread, spread, d)
    if family == "common":
        A *= scale(rng, hostile)
    quirks = [str(q) for q in ("twice", "zero", "constant", "far") if rng.random() < 0.12]
    for quirk in quirks:
        j, k = rng.integers(d, size=2)
        A[:, j] = {
            "twice": A[:, k],
            "zero": 0.0,
            "constant": np.abs(A[:, j]).max(),
            "far": A[:, j] + 1e4 * np.abs(A[:, j]).max(),
        }[quirk]
    words |= {"columns": "+".join([family, *quirks])}
    return A


def draw_loss(rng: np.random.Generator, outputs: int | None, convex: bool) -> Any:
    one = [
        ex.Logistic(), ex.Squared(), ex.Huber(float(10 ** rng.uniform(-2, 1))), ex.Poisson(),
        ex.Quantile(float(rng.uniform(0.02, 0.98)), float(10 ** rng.uniform(-2, 1))),
    ]  # fmt: skip
    if not convex:
        one.append(ex.NonlinearLeastSquares())
    loss = one[int(rng.integers(len(one)))]
    if outputs is None:
        return loss
    return ex.Multinomial(outputs) if outputs > 1 and rng.random() < 0.4 else ex.MultiTask(loss, outputs)


def draw_targets(rng: np.random.Generator, loss: Any, z: np.ndarray, hostile: bool, words: dict[str, Any]) -> np.ndarray:
    """Targets that the loss takes: of the margins z of a point with noise or without, or of nothing."""
    with np.errstate(all="ignore"):
        y = _targets(rng, loss, z, hostile, words)
    return np.clip(y, -1e300, 1e300)  # finite, whatever the scales were


def _targets(rng: np.random.Generator, loss: Any, z: np.ndarray, hostile: bool, words: dict[str, Any]) -> np.ndarray:
    kind = str(rng.choice(["noise", "exact", "random", "one sign"], p=[0.5, 0.2, 0.25, 0.05]))
    words["targets"] = kind
    if isinstance(loss, ex.Multinomial):
        noisy = z + (0 if kind == "exact" else np.abs(z).mean() * rng.standard_normal(z.shape))
        return rng.integers(loss.outputs, size=len(z)) if kind in ("random", "one sign") else noisy.argmax(axis=1)
    inner = loss.loss if isinstance(loss, ex.MultiTask) else loss
    size = float(np.abs(z).mean()) or 1.0
    signal = {
        "noise": z + size * rng.standard_normal(z.shape),
        "exact": z,
        "random": scale(rng, hostile) * rng.standard_normal(z.shape),
        "one sign": np.abs(z) + 1.0,
    }[kind]  # fmt: skip
    if inner.labels is not None:
        return np.where(signal > 0, inner.labels[1], inner.labels[0])
    if isinstance(inner, ex.Poisson):
        return rng.poisson(np.exp(np.clip(signal, -10, 8))).astype(float)
    return signal


def draw_model(
    rng: np.random.Generator, region: Region, hostile: bool, words: dict[str, Any], rows_of: Any = None
) -> tuple[Any, ExactModel]:
    """An objective for the set; a linear model of rows of a type, if one is named."""
    shape = region.C.shape
    assert shape is not None
    if len(shape) == 2 and rows_of is None and rng.random() < 0.35:
        return draw_completion(rng, region, hostile, words)
    shares = [0.6, 0.25, 0.15] if rows_of is None else [0.7, 0.3, 0.0]
    kind = str(rng.choice(["LinearModel", "InterceptModel", "Separable"], p=shares))
    outputs = shape[1] if len(shape) == 2 else None
    loss = draw_loss(rng, outputs, kind == "InterceptModel")
    most = max(2, min(3000, 200_000 // math.prod(shape)))
    n = round(math.exp(rng.uniform(0, math.log(most))))
    A = draw_rows(rng, n, shape[0], hostile, words)
    dtype = rows_of or (np.float32 if rng.random() < 0.15 and not hostile else np.float64)
    with np.errstate(all="ignore"):
        z = A @ inside(rng, region)
    y = draw_targets(rng, loss, np.nan_to_num(z), hostile, words)
    A, y = A.astype(dtype), y.astype(dtype)
    w = None
    if kind != "Separable" and rng.random() < 0.3:
        w = rng.integers(0, 4, n).astype(float) if rng.random() < 0.5 else 10 ** rng.uniform(-2, 2, n)
        w[0] = 1.0
    rows = sp.csr_array(A) if kind != "Separable" and rng.random() < 0.35 else A
    words |= {
        "model": kind, "loss": repr(loss), "n": n, "rows": type(rows).__name__, "dtype": np.dtype(dtype).name,
        "weights": w is not None,
    }  # fmt: skip
    exact = ExactModel(loss, rows, y, w, kind == "InterceptModel", shape)
    if kind == "Separable":
        return separable(loss, A.astype(float), y.astype(float), shape), exact
    return getattr(ex, kind)(loss, rows, y, w), exact


def inside(rng: np.random.Generator, region: Region) -> np.ndarray:
    """The mean of some vertices."""
    vertices = [region.C.lmo(rng.standard_normal(region.C.shape)).to_array() for _ in range(3)]
    return np.mean(np.array(vertices, float), axis=0)


def quiet(function):
    """A user's function may overflow in silence."""
    return functools.wraps(function)(np.errstate(all="ignore")(function))


def separable(loss: Any, A: np.ndarray, y: np.ndarray, shape: tuple[int, ...]) -> ex.Separable:
    """The same sum by callables, in float64."""

    @quiet
    def grad(x, idx):
        c = np.asarray(deriv_of(loss, A[idx] @ x, y[idx]), float)
        return c[:, None] * A[idx] if len(shape) == 1 else A[idx][:, :, None] * c[:, None, :]

    @quiet
    def value(x, idx):
        return np.asarray(value_of(loss, A[idx] @ x, y[idx]), float)

    top = float(np.linalg.norm(A, 2) ** 2) if np.abs(A).max() < 1e100 else None
    L = None if top is None or not top > 0 else loss.curvature * top / len(A)
    return ex.Separable(len(A), shape, grad, value, convex=loss.convex, smoothness=L)


def draw_completion(rng: np.random.Generator, region: Region, hostile: bool, words: dict[str, Any]) -> tuple[Any, ExactModel]:
    shape = region.C.shape
    count = int(rng.integers(1, 2 * math.prod(shape) + 1))
    rows, cols = (rng.integers(m, size=count) for m in shape)
    loss = ex.Squared() if rng.random() < 0.7 else draw_loss(rng, None, True)
    values = draw_targets(rng, loss, inside(rng, region)[rows, cols], hostile, words)
    words |= {"model": "MatrixCompletion", "loss": repr(loss), "n": count}
    p = ex.MatrixCompletion(rows, cols, values, shape, centre=None, validation=0, loss=loss)
    order = np.lexsort((cols, rows))
    return p.objective, ExactModel(loss, (rows[order], cols[order]), values[order], shape=shape)
