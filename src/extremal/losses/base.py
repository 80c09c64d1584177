"""Losses phi(z, y) of a margin z = <a, x> and a target y: elementwise, smooth, safe at any margin.

A loss has ``value``, ``deriv`` (in z), ``curvature`` (a bound on |phi''|), ``convex``, and the accepted targets (``labels``,
and ``least`` if there is a smallest one). A loss that also has ``second`` (phi'') is `Curved`, and works with second-order
methods. A loss may declare ``quadratic``: phi'' then depends on the target only, and the Hessian of f is constant. Values and
derivatives keep the float type of z. Losses of several margins per row are in extremal.losses.multi.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeGuard, runtime_checkable

import numpy as np

from extremal import checks
from extremal.checks import InputError


class Loss(Protocol):
    """The contract of a loss."""

    @property
    def curvature(self) -> float: ...  # sup |phi''|
    @property
    def convex(self) -> bool: ...  # decides the default step of a method
    @property
    def labels(self) -> tuple[float, ...] | None: ...  # accepted targets; None for any finite number
    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray: ...  # phi(z, y)
    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray: ...  # d phi / d z


@runtime_checkable
class Curved(Loss, Protocol):
    """A loss of one margin with a second derivative; where phi'' jumps, the value of either side is valid."""

    def second(self, z: np.ndarray, y: np.ndarray) -> np.ndarray: ...  # d^2 phi / d z^2


class Majorised(Curved, Protocol):
    """A loss whose curvature stays below a majorant that changes slowly, so that step rules need no line search.

        |phi''(z, y)| <= m(z, y),   |m'| <= self_concordance m,   hence m(z + u, y) <= m(z, y) exp(self_concordance |u|)

    A loss without ``majorant`` is its own: it is convex, and |phi'''| <= self_concordance phi''.
    """

    @property
    def self_concordance(self) -> float: ...


def majorant_of(loss: Majorised) -> Callable[[np.ndarray, np.ndarray], np.ndarray] | None:
    """The majorant of phi'' as a function of z and y; None if phi'' is its own."""
    return getattr(loss, "majorant", None)


@runtime_checkable
class MultiLoss(Loss, Protocol):
    """The contract of a loss of k margins z = a' X, X of shape (d, k): z (b, k) -> value (b,), deriv (b, k).

    ``curvature`` bounds the operator norm of the k x k matrix of second derivatives.
    """

    @property
    def outputs(self) -> int: ...  # k
    @property
    def target_shape(self) -> tuple[int, ...]: ...  # shape of one row's target: () for a number, (k,) for one per output


def is_multi(loss: object) -> TypeGuard[MultiLoss]:
    """Whether a loss has several margins, by its attribute ``outputs``: a run-time test of the whole contract takes microseconds.

    Examples
    --------
    >>> import extremal as ex
    >>> is_multi(ex.Multinomial(3)), is_multi(ex.Logistic())
    (True, False)
    """
    return hasattr(loss, "outputs")


class BentMulti(MultiLoss, Protocol):
    """A loss of several margins with second derivatives, diag(D_i) - P_i P_i' for every row."""

    def curvature_rows(self, z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]: ...  # D, P (None for 0)


def expit(u: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-u)), accurate down to the smallest numbers; scipy's version is 0 below -710."""
    e = np.exp(np.minimum(u, 40.0))  # 1 + e^40 is e^40 in float64
    return e / (1.0 + e)


def check_targets(loss: Loss, y: np.ndarray, n: int) -> np.ndarray:
    """Return y in float64, refusing targets that the loss does not accept."""
    _check_shape(loss, y, n)
    if y.dtype.kind not in "biuf":
        raise InputError(f"`LinearModel(y=...)` must hold numbers, got dtype {y.dtype}; {_how_to_map(loss)}")
    y = checks.finite("LinearModel", "y", y.astype(np.float64))
    least = getattr(loss, "least", None)
    if least is not None and not (y >= least).all():
        raise InputError(f"`LinearModel(y=...)` with {loss!r} takes targets of at least {least:g}, got {y.min():g}")
    if loss.labels is None or (known := _among(y, loss.labels)).all():
        return y
    seen = _some(np.unique(y if len(loss.labels) == 2 else y[~known]))
    raise InputError(f"`LinearModel(y=...)` with {loss!r} takes labels {_some(loss.labels)}, got {seen}; {_how_to_map(loss)}")


def _among(y: np.ndarray, labels: tuple[float, ...]) -> np.ndarray:
    """Whether each target is one of the labels; two comparisons are faster than a search."""
    return (y == labels[0]) | (y == labels[1]) if len(labels) == 2 else np.isin(y, labels)


def _check_shape(loss: Loss, y: np.ndarray, n: int) -> None:
    """Refuse targets unless there is one per row of A."""
    rest = loss.target_shape if is_multi(loss) else ()
    if y.shape == (n, *rest):
        return
    if rest:
        raise InputError(f"`LinearModel(y=...)` must have shape {(n, *rest)}, one row of targets per row of A, got {y.shape}")
    one_hot = is_multi(loss) and y.shape[1:] == (loss.outputs,)
    hint = "; give the classes of one-hot rows, y.argmax(axis=1)" if one_hot else ""
    raise InputError(f"`LinearModel(y=...)` must have shape ({n},), one per row of A, got {y.shape}{hint}")


def _some(values: Sequence[float] | np.ndarray) -> str:
    """A set of increasing numbers as text: all of them, or the first and the last."""
    shown = [f"{v:g}" for v in values]
    return "{" + ", ".join(shown if len(shown) <= 5 else [*shown[:3], "...", shown[-1]]) + "}"


def _how_to_map(loss: Loss) -> str:
    if loss.labels is None:
        return "map them to numbers first"
    if len(loss.labels) != 2:
        return "map them, e.g. classes, y = np.unique(y, return_inverse=True)"
    low, high = loss.labels
    return f"map them, e.g. y = np.where(y == positive_class, {high:g}, {low:g})"
