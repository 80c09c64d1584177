"""Sets as compiled loops take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np


@dataclass(frozen=True)
class CompiledOracle:
    """An oracle of `extremal.kernels.oracles`: its kind, a size, and two arrays whose meaning depends on the kind.

    A set whose class has a method ``compiled() -> CompiledOracle | None`` of its own runs in bursts; a class that inherits one
    does not, as it may have another oracle.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.L1Ball(2.0).compiled()
    CompiledOracle(kind='peak', size=2.0, lower=0.0, upper=0.0)
    """

    kind: Literal["peak", "weighted", "least", "unit", "corner", "fill"]
    size: float = 1.0  # radius or total; the amount to be spent for "fill"
    lower: float | np.ndarray = 0.0  # weights for "weighted"; an array, or one number for all entries
    upper: float | np.ndarray = 0.0

    @property
    def single(self) -> bool:
        """Whether a vertex has one entry."""
        return self.kind not in ("corner", "fill")


def compiled_oracle(C: object) -> CompiledOracle | None:
    """The oracle of a set as compiled loops take it; None for sets whose class does not say.

    Examples
    --------
    >>> import extremal as ex
    >>> compiled_oracle(ex.L2Ball(2.0))
    """
    said = vars(type(C)).get("compiled")
    return None if said is None else said(C)
