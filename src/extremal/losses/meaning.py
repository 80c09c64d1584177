"""What margins mean for targets: four things that a loss may say of itself, and what is true of one that does not.

mean(z)        the mean of y at the margin z; z itself, if the loss does not say
far(y)         how far margins are likely to go; as far as the targets do
ends_at_zero   whether f falls to 0 without end where margins tell all classes apart; not so
nonnegative    whether f is never below 0; not known, so that nothing is made of it
"""

from __future__ import annotations

import numpy as np

from extremal.losses.base import Loss
from extremal.losses.weighted import unweighted


def mean_target(loss: Loss, z: np.ndarray) -> np.ndarray:
    """The mean of y at the margins z.

    Examples
    --------
    >>> import extremal as ex
    >>> mean_target(ex.Logistic(), np.zeros(1)), mean_target(ex.Squared(), np.zeros(1))
    (array([0.5]), array([0.]))
    """
    mean = getattr(unweighted(loss), "mean", None)
    return z if mean is None else mean(z)


def margin_size(loss: Loss, y: np.ndarray) -> float | None:
    """How far margins are likely to go; None if the targets tell.

    Examples
    --------
    >>> import extremal as ex
    >>> margin_size(ex.Logistic(), np.ones(3)), margin_size(ex.Squared(), np.ones(3))
    (3.0, None)
    """
    far = getattr(unweighted(loss), "far", None)
    return None if far is None else far(y)


def ends_at_zero(loss: Loss) -> bool:
    """Whether a mean of this loss falls to 0 without end, and is 0 nowhere.

    Examples
    --------
    >>> import extremal as ex
    >>> ends_at_zero(ex.Multinomial(3)), ends_at_zero(ex.Huber())
    (True, False)
    """
    return getattr(unweighted(loss), "ends_at_zero", False)


def is_nonnegative(loss: Loss) -> bool:
    """Whether a mean of this loss is known to be never below 0.

    Examples
    --------
    >>> import extremal as ex
    >>> is_nonnegative(ex.Squared())
    True
    """
    return getattr(unweighted(loss), "nonnegative", False)
