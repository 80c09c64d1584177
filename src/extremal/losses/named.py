"""Losses by name, for estimators and the command line: ``logistic``, ``huber:1.35``, ``quantile:0.9``."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.losses.base import Loss
from extremal.losses.glm import Poisson, Quantile
from extremal.losses.margin import LOSSES, Huber
from extremal.losses.multi import Multinomial

WIDTH = 1e-2  # width of the rounded corner of a quantile's loss, in standard deviations of the targets
# name: (notation, largest number of arguments, class)
LOSS_FORMS: dict[str, tuple[str, int, type]] = {name: (name, 0, type(make())) for name, make in LOSSES.items()} | {
    "huber": ("huber or huber:DELTA", 1, Huber),
    "quantile": ("quantile, quantile:Q or quantile:Q,WIDTH", 2, Quantile),
    "poisson": ("poisson", 0, Poisson),
    "multinomial": ("multinomial", 0, Multinomial),
}


def named_loss(
    text: str,
    y: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    among: Iterable[str] = tuple(LOSS_FORMS),
    what: str = "loss",
) -> Loss:
    """Read a loss from a short string; some depend on the spread of the targets y, or on their number of classes.

    Examples
    --------
    >>> named_loss("huber:2"), named_loss("quantile:0.9", np.array([1.0, 3.0]))
    (Huber(delta=2.0), Quantile(q=0.9, width=0.01))
    >>> named_loss("huber:small")
    Traceback (most recent call last):
        ...
    extremal.checks.InputError: cannot read the loss 'huber:small': write huber or huber:DELTA
    """
    name, _, rest = text.strip().partition(":")
    form, most, kind = LOSS_FORMS[checks.one_of(what, name.strip().lower(), among)]
    try:
        numbers = [float(part) for part in rest.split(",")] if rest.strip() else []
    except ValueError:
        numbers = None
    if numbers is None or len(numbers) > most:
        raise InputError(f"cannot read the loss {text!r}: write {form}")
    if kind is Quantile and len(numbers) < 2:
        numbers = [*(numbers or [0.5]), WIDTH * standard_deviation(y, weights)]
    make: Callable[..., Loss] = kind
    return make(2 if y is None else max(2, len(np.unique(y)))) if kind is Multinomial else make(*numbers)


def standard_deviation(y: np.ndarray | None, weights: np.ndarray | None = None) -> float:
    """The standard deviation of y, for weighted rows if weights are given; 1 if it is 0 or there is no y.

    Examples
    --------
    >>> standard_deviation(np.array([1.0, 3.0]))
    1.0
    """
    if y is None:
        return 1.0
    return float(np.sqrt(np.average(np.square(y - np.average(y, weights=weights)), weights=weights))) or 1.0
