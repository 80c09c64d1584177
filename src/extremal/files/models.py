"""Fitted linear models in files: coefficients, features and classes, and predictions for new rows."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from extremal.checks import InputError, all_finite
from extremal.files.answers import arrays_of, refuse_other_kinds, write_arrays
from extremal.files.array_files import Arrays, npz_arrays
from extremal.files.outputs import check_out
from extremal.losses.meaning import mean_target
from extremal.losses.named import LOSS_FORMS, named_loss
from extremal.run.result import Result
from extremal.support.kinds import Numbers


@dataclass(frozen=True)
class Model:
    """A fitted linear model: margins are A x + intercept, and the loss gives them their meaning.

    Examples
    --------
    >>> model = Model(np.array([1.0, -1.0]), 0.5, "logistic", classes=np.array(["no", "yes"]))
    >>> said = model.predict(np.array([[2.0, 0.0], [0.0, 2.0]]))
    >>> list(said), said["class"].tolist(), said["probability of yes"].round(2).tolist()
    (['class', 'probability of no', 'probability of yes'], ['yes', 'no'], [0.92, 0.18])
    """

    x: np.ndarray  # (d,), or (d, k) for k classes
    intercept: Numbers = 0.0  # a number, or (k,)
    loss: str = "squared"  # as on the command line
    set: str = ""
    method: str = ""
    features: tuple[str, ...] | None = None
    classes: np.ndarray | None = None  # their labels, the positive one last
    target: str | None = None  # the column that it predicts

    def predict(self, A: Any) -> dict[str, np.ndarray]:
        """Columns for the rows of A: a value, a mean for counts, or a class and probabilities. A needs only ``A.dot(x)``."""
        z = np.asarray(A.dot(self.x)) + self.intercept
        loss = named_loss(self.loss)
        mean = mean_target(loss, z)
        if self.classes is None:
            return {"value": z} if mean is z or loss.labels is not None else {"mean": mean}
        shares = np.column_stack([1.0 - mean, mean]) if z.ndim == 1 else mean
        said = {"class": self.classes[shares.argmax(axis=1)]}
        return said | {f"probability of {label}": share for label, share in zip(self.classes.tolist(), shares.T, strict=True)}


def save_model(path: str | Path, model: Model, result: Result, words: dict[str, Any] | None = None) -> None:
    """Write a model as .npz, whole or not at all, with all that `extremal verify` needs to check its run.

    The file holds x, intercept, value, gap, status, converged, n_iter, grads, lmos, loss, set and method. It also holds
    features, classes and target if the model has them. np.load reads it. ``words`` say how the objective was made from a file.
    """
    known = {field.name: getattr(model, field.name) for field in fields(model)}
    write_arrays(path, arrays_of(result, known, words=words))


def check_model_out(path: Path) -> None:
    """Refuse a path at which no model should be written: before the run, not after it.

    A model ends in .npz, and replaces nothing but another model or an empty file.
    """
    check_out(path)
    if path.suffix.lower() != ".npz":
        raise InputError(f"{path}: a model is saved as .npz; write {path.with_suffix('.npz')}")
    if path.is_file() and path.stat().st_size and not _is_model(path):
        raise InputError(f"{path}: there is a file of this name that is no model of `extremal solve`; choose another name")


def _is_model(path: Path) -> bool:
    try:
        with npz_arrays(path) as held:
            return "x" in held and "loss" in held
    except InputError:
        return False


def load_model(path: str | Path, max_bytes: int | None = None) -> Model:
    """Read a model that `save_model` wrote."""
    path = Path(path)
    refuse_other_kinds(path, "a model of `extremal solve --out`", max_bytes)
    with npz_arrays(path, max_bytes) as held:
        if "x" not in held or "loss" not in held:
            raise InputError(f"{path}: this is not a model of `extremal solve --out`: it holds {held.names}")
        texts = {name: _text(path, held, name) for name in ("loss", "set", "method", "target")}
        found = {name: held.get(name) for name in ("features", "classes", "intercept")}
        model = Model(
            held["x"], 0.0 if found["intercept"] is None else found["intercept"], texts["loss"] or "", texts["set"] or "",
            texts["method"] or "", None if found["features"] is None else tuple(map(str, found["features"].reshape(-1).tolist())),
            found["classes"], texts["target"],
        )  # fmt: skip
    _check(path, model)
    return model


def _text(path: Path, held: Arrays, name: str) -> str | None:
    value = held.get(name)
    if value is not None and (value.shape != () or value.dtype.kind != "U"):
        raise InputError(f"{path}: a model's {name} must be text, got shape {value.shape} of dtype {value.dtype}")
    return None if value is None else str(value)


def _check(path: Path, model: Model) -> None:
    """Refuse parts that do not fit together."""
    x, b = model.x, np.asarray(model.intercept)
    numbers = all(part.dtype.kind in "iuf" and all_finite(part) for part in (x, b))
    known = model.loss.partition(":")[0].strip() in LOSS_FORMS
    outputs = x.shape[1:]
    fits = x.ndim in (1, 2) and b.shape in ((), outputs) and (model.features is None or len(model.features) == len(x))
    labels = None if model.classes is None else model.classes.shape
    if not (numbers and known and fits and labels in (None, outputs or (2,)) and (labels or not outputs)):
        what = f"x of shape {x.shape}, an intercept of shape {b.shape}, the loss {model.loss!r}, classes of shape {labels}"
        raise InputError(f"{path}: this is not a usable model: {what}")
