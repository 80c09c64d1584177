"""What a linear model asks of its data and its loss beyond their contracts."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from extremal.checks import InputError
from extremal.data.base import Data
from extremal.losses.base import Loss, MultiLoss


@runtime_checkable
class Ordered(Protocol):
    """Data that can be copied in another order."""

    def take(self, order: np.ndarray) -> Data: ...


@runtime_checkable
class Known(Protocol):
    """Data that know the largest eigenvalue of A'A."""

    def lambda_max(self) -> float: ...


def outputs_of(loss: Loss, data: Data) -> tuple[int, ...]:
    """Shape of a row of margins."""
    if not isinstance(loss, MultiLoss):
        return ()
    if len(data.shape) != 2:
        raise InputError(f"`LinearModel(loss=...)`: {loss!r} has several outputs, and takes rows of features only as data")
    return (loss.outputs,)
