"""f on some of its coordinates: the contract."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from extremal.data.parts import PerRow
from extremal.support.kinds import Symmetric


class Slice(Protocol):
    """f on the coordinates W: margins of steps along them, and the second derivatives."""

    @property
    def f(self) -> Any: ...  # what it is a slice of
    @property
    def W(self) -> np.ndarray: ...  # the coordinates, increasing
    def of(self, f: Any) -> Slice: ...  # the same coordinates of another objective, or of one that counts on
    def dot(self, d: np.ndarray) -> PerRow: ...  # A_W d, for one number per coordinate of W
    def solve(self, place: np.ndarray, scale: np.ndarray, w: np.ndarray, x: np.ndarray, z: PerRow, tol: float) -> Any: ...
    def hessian(self, z: PerRow, far: bool = False, width: float = 0.0) -> Symmetric: ...  # (1/n) A_W' diag phi''(z) A_W
    def root(self, z: PerRow, far: bool = False, width: float = 0.0) -> np.ndarray | None: ...  # B with B'B = that
