"""Targets that a loss does not accept: one sentence that names the target, its labels, and the option to add."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np

from extremal.checks import InputError
from extremal.files.libsvm import short
from extremal.files.tables import file_kind
from extremal.losses.base import Loss

FEW_NUMBERS = 20  # different numbers that may be classes


def target_called(file: Path, name: str | None, given: str | None) -> str:
    """The target in messages: its name if it has one, and its place if nobody chose it.

    Examples
    --------
    >>> target_called(Path("t.csv"), "price", None), target_called(Path("t.csv"), "price", "price")
    ("target 'price' (the last column; --target names another)", "target 'price'")
    """
    place = " (the last column; --target names another)" if given is None and file_kind(file) in (".csv", ".npy") else ""
    return ("the target" if name is None else f"target {short(name)}") + place


def refuse_labels(called: str, y: np.ndarray, loss: Loss, name: str) -> None:
    """Refuse targets with other labels than the loss takes; NaN and other kinds of arrays are left to the model.

    Examples
    --------
    >>> from extremal import Logistic
    >>> refuse_labels("target 'repaid?'", np.array(["yes", "no"]), Logistic(), "logistic")
    Traceback (most recent call last):
        ...
    extremal.checks.InputError: target 'repaid?' has the labels no, yes: add --positive yes
    """
    text = y.dtype.kind == "U"
    if not text and (
        loss.labels is None or y.dtype.kind not in "biuf" or np.isin(y, loss.labels).all() or not np.isfinite(y).all()
    ):
        return
    seen = [str(v) if text else f"{float(v):.15g}" for v in np.unique(y).tolist()]
    some = ", ".join(word if len(word) <= 60 else word[:60] + "..." for word in seen[:5]) + (", ..." if len(seen) > 5 else "")
    if loss.labels is None:
        raise InputError(f"{called} has the labels {some}, and --loss {name} takes numbers: map them to numbers in the file")
    raise InputError(f"{called} {_remedy(seen, some, '' if text else f', and --loss {name} takes {_pair(loss)}', text)}")


def _pair(loss: Loss) -> str:
    return " and ".join(f"{label:g}" for label in loss.labels or ())


def _remedy(seen: list[str], some: str, takes: str, text: bool) -> str:
    if len(seen) <= 2:
        return f"has the label{'s' * (len(seen) > 1)} {some}{takes}: add --positive {shlex.quote(seen[-1])}"
    if text or len(seen) <= FEW_NUMBERS:
        return f"has the labels {some}{takes}: add --loss multinomial, or --positive LABEL for one of them against the others"
    return f"has {len(seen)} different numbers{takes}: add --loss squared, or --positive LABEL for one of them against the others"
