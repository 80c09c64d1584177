"""The meaning of margins for targets: four optional members of a loss, and the defaults for losses without them.

mean(z)        the mean of y at margin z; default: z
far(y)         how far margins are likely to go; default: as far as the targets
ends_at_zero   whether f decreases to 0 without reaching it if margins separate all classes; default: no
nonnegative    whether f is never below 0; default: unknown
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from extremal.losses.base import Loss
from extremal.losses.weighted import unweighted


@runtime_checkable
class _Meaning(Protocol):
    def mean(self, z: np.ndarray) -> np.ndarray: ...


@runtime_checkable
class _Far(Protocol):
    def far(self, y: np.ndarray) -> float: ...


@runtime_checkable
class _Ending(Protocol):
    ends_at_zero: bool


@runtime_checkable
class _Signed(Protocol):
    nonnegative: bool


def mean_target(loss: Loss, z: np.ndarray) -> np.ndarray:
    """The mean of y at the margins z.

    Examples
    --------
    >>> import extremal as ex
    >>> mean_target(ex.Logistic(), np.zeros(1)), mean_target(ex.Squared(), np.zeros(1))
    (array([0.5]), array([0.]))
    """
    own = unweighted(loss)
    return own.mean(z) if isinstance(own, _Meaning) else z


def margin_size(loss: Loss, y: np.ndarray) -> float | None:
    """How far margins are likely to go; None if the targets tell.

    Examples
    --------
    >>> import extremal as ex
    >>> margin_size(ex.Logistic(), np.ones(3)), margin_size(ex.Squared(), np.ones(3))
    (3.0, None)
    """
    own = unweighted(loss)
    return own.far(y) if isinstance(own, _Far) else None


def ends_at_zero(loss: Loss) -> bool:
    """Whether a mean of this loss falls to 0 without end, and is 0 nowhere.

    Examples
    --------
    >>> import extremal as ex
    >>> ends_at_zero(ex.Multinomial(3)), ends_at_zero(ex.Huber())
    (True, False)
    """
    own = unweighted(loss)
    return own.ends_at_zero if isinstance(own, _Ending) else False


def is_nonnegative(loss: Loss) -> bool:
    """Whether a mean of this loss is known to be never below 0.

    Examples
    --------
    >>> import extremal as ex
    >>> is_nonnegative(ex.Squared())
    True
    """
    own = unweighted(loss)
    return own.nonnegative if isinstance(own, _Signed) else False
