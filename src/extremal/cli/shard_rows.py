"""Directories of shards instead of files: the rows of `extremal solve` and `extremal predict`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from extremal.checks import InputError
from extremal.cli.labels import refuse_labels
from extremal.data.parts import KeptNumbers
from extremal.files.models import Model
from extremal.files.shards.directory import ShardDir
from extremal.losses.base import Loss
from extremal.losses.multi import Multinomial
from extremal.losses.named import named_loss
from extremal.objectives.alike import check_held
from extremal.objectives.held_targets import HeldClasses, against_rest, check_single, has_text, two_alike
from extremal.objectives.intercept import InterceptModel
from extremal.objectives.linear import LinearModel
from extremal.objectives.margins import MarginModel


def opened_shards(path: Path, engine: str | None, target: str | None) -> ShardDir | None:
    """The directory of shards; None for a file, with which no engine is allowed."""
    if not path.is_dir():
        if engine is not None:
            raise InputError(f"--engine {engine} is for a directory of shards, and {path} is not one")
        return None
    if target is not None:
        raise InputError(f"--target {target} does not apply to {path}: shards hold their own targets")
    return ShardDir(path, engine=engine)


def shard_objective(data: ShardDir, name: str, positive: str | None, intercept: bool) -> tuple[MarginModel, np.ndarray | None]:
    """The rows of a directory as an objective, with their own targets and weights; and the labels of the classes."""
    check_single("extremal solve", data)
    if positive is not None:
        loss = named_loss(name)
        y, classes = _positive_class(data, positive, loss)
    elif name.partition(":")[0].strip().lower() == "multinomial":
        found = HeldClasses.of("extremal solve --loss multinomial", data)
        loss, y, classes = named_loss(name, found.numbers), found.codes(data), found.labels
    else:
        loss, y, classes = _plain(data, name)
    f = (InterceptModel if intercept else LinearModel)(loss, data, y, data.weights)
    return f, np.array(loss.labels) if classes is None and loss.labels is not None else classes


def _plain(data: ShardDir, name: str) -> tuple[Loss, Any, None]:
    """Targets as they are, for a loss that accepts them."""
    if has_text(data):
        assert data.classes is not None
        refuse_labels(f"{data.directory}: the target", data.classes, named_loss(name), name)
    loss = named_loss(name, two_alike(data))
    try:
        check_held(data, loss, data.targets)
    except InputError as error:
        said, mapped, _ = str(error).partition("; map them")
        raise InputError(f"{said}: add --positive LABEL" if mapped else said) from None
    return loss, data.targets, None


def _positive_class(data: ShardDir, label: str, loss: Loss) -> tuple[KeptNumbers, np.ndarray]:
    """Targets with the loss's upper label for one class and its lower label for all others; and the names of both."""
    if loss.labels is None or isinstance(loss, Multinomial):
        raise InputError(f"--positive {label} does not apply to {type(loss).__name__}, which takes numbers or several classes")
    found, wanted = HeldClasses.of("extremal solve --positive", data), None
    with suppress(ValueError):
        wanted = label if has_text(data) else float(label)
    hit = found.labels == wanted
    if not hit.any():
        seen = ", ".join(str(v) for v in found.labels[:5].tolist())
        raise InputError(f"--positive {label}: no target has this label; the targets begin with {seen}")
    (low, high), others = loss.labels, found.labels[~hit]
    names = np.array([str(others[0]) if len(others) == 1 else f"not {label}", label])
    return against_rest(data.targets, float(found.numbers[hit][0]), high, low), names


def shard_model(data: ShardDir, model: Model) -> Model:
    """The model with a coefficient for each column of a directory, matched by name if both have names."""
    names, d = data.names, data.shape[1]
    if names is None or model.features is None:
        if d != len(model.x):
            raise InputError(f"{data.directory}: expected {len(model.x)} features as in the model, got {d}")
        return model
    lost = [name for name in model.features if name not in names]
    if lost:
        more = f" ({len(lost) - 1} more of the model's features are not there)" if len(lost) > 1 else ""
        raise InputError(f"{data.directory}: has no column {lost[0]!r}{more}")
    x = np.zeros((d, *model.x.shape[1:]))
    x[[names.index(name) for name in model.features]] = model.x
    return replace(model, x=x, features=names)
