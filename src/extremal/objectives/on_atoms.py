"""f on the convex hull of some atoms, as a function of their weights: the objective of fully corrective steps."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from extremal.losses.base import Curved
from extremal.points.active import ActiveSet

if TYPE_CHECKING:
    from extremal.objectives.margins import MarginModel


class Restriction(Protocol):
    """h(w) = f(sum_i w_i v_i)."""

    @property
    def images(self) -> dict[Hashable, np.ndarray]: ...  # reusable data of each atom, by its key
    def value(self, w: np.ndarray) -> float: ...
    def slopes(self, w: np.ndarray) -> np.ndarray: ...  # dh/dw_i = <grad f(x), v_i>
    def hessian(self, w: np.ndarray) -> np.ndarray | None: ...  # positive semidefinite; None if f has none


@dataclass(frozen=True)
class OnPoints:
    """Any objective; a value or slopes cost f or its gradient at the point itself."""

    f: Any
    atoms: ActiveSet
    images: dict[Hashable, np.ndarray] = field(default_factory=dict)

    def value(self, w: np.ndarray) -> float:
        return self.f.value(self._at(w))

    def slopes(self, w: np.ndarray) -> np.ndarray:
        return self.atoms.dots(self.f.grad(self._at(w)))

    def hessian(self, w: np.ndarray) -> None:
        return None

    def _at(self, w: np.ndarray) -> np.ndarray:
        return self.atoms.sum(w).astype(self.f.dtype, copy=False)


@dataclass(frozen=True)
class OnMargins:
    """A linear model, from the margins of every atom. It needs no product with the data, and k n numbers for k atoms."""

    f: MarginModel
    Z: np.ndarray  # the margins of the atoms, one row per atom
    images: dict[Hashable, np.ndarray]

    @classmethod
    def of(cls, f: MarginModel, atoms: ActiveSet, images: dict[Hashable, np.ndarray]) -> OnMargins:
        """Use stored margins of the atoms from an earlier restriction, and compute those of new atoms."""
        keys = [v.key for v in atoms.vertices]
        rows = [images[key] if key in images else f.vertex_margins(v) for key, v in zip(keys, atoms.vertices, strict=True)]
        return cls(f, np.stack(rows), dict(zip(keys, rows, strict=True)))

    def value(self, w: np.ndarray) -> float:
        return self.f.value_at(self._margins(w))

    def slopes(self, w: np.ndarray) -> np.ndarray:
        c = self.f.derivs_at(self._margins(w))
        return (self.Z.reshape(len(w), -1) @ c.reshape(-1)).astype(np.float64) / len(c)

    def hessian(self, w: np.ndarray) -> np.ndarray | None:
        if not isinstance(self.f.loss, Curved) or self.Z.ndim > 2:
            return None
        h = np.abs(self.f.second_at(self._margins(w)))
        H, total = ((self.Z * h) @ self.Z.T).astype(np.float64), float(h.sum(dtype=np.float64))
        if not self.f.is_finite_sum and total > 0:
            v = (self.Z @ h).astype(np.float64)
            H -= np.outer(v / total, v)
        return H / len(h)

    def _margins(self, w: np.ndarray) -> np.ndarray:
        return np.tensordot(w.astype(self.Z.dtype, copy=False), self.Z, 1)
