"""Parts of a counted objective: lines, atoms and columns, whose component gradients and values count as its own."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal.data.parts import PerRow
from extremal.gradients.base import Counting
from extremal.objectives.base import Segment
from extremal.objectives.column_blocks import Slice
from extremal.objectives.on_atoms import Restriction
from extremal.support.kinds import Operator, Symmetric


@dataclass(frozen=True)
class CountedSegment:
    """f on a line."""

    inner: Segment
    f: Any

    @property
    def grads_per_slope(self) -> int:
        return self.inner.grads_per_slope

    def value(self, t: float) -> float:
        return self.f._ask(self.inner.value, t, values=self.f.n)

    def slope(self, t: float) -> float:
        """The slope counts as n values if it comes from margins, otherwise as the gradients it takes."""
        grads = self.grads_per_slope
        return self.f._ask(self.inner.slope, t, grads=grads, values=0 if grads else self.f.n)


@dataclass(frozen=True)
class CountedRestriction:
    """f on the hull of atoms."""

    inner: Restriction
    f: Any

    @property
    def images(self) -> dict[Hashable, np.ndarray]:
        return self.inner.images

    def value(self, w: np.ndarray) -> float:
        return self.f._ask(self.inner.value, w, values=self.f.n)

    def slopes(self, w: np.ndarray) -> np.ndarray:
        return self.f._ask(self.inner.slopes, w, grads=self.f.n)

    def hessian(self, w: np.ndarray) -> np.ndarray | None:
        H = self.f._ask(self.inner.hessian, w)
        self.f.calls.grads += 0 if H is None else self.f.n
        return H


@dataclass(frozen=True)
class CountedSlice(Slice):
    """f on some coordinates."""

    f: Any
    inner: Slice

    def saved_state(self) -> dict[str, Any]:
        """What a checkpoint keeps of it: the columns are sliced again."""
        known = [name for name in ("columns", "_by_length") if name in vars(self.inner)]
        return {"f": self.f, "W": self.W, "known": known}

    def restore_state(self, state: dict[str, Any]) -> None:
        """Take a saved state."""
        inner = state["f"].inner.on_columns(state["W"])
        for name in {"columns", "_by_length"} & {*state["known"]}:
            getattr(inner, name)
        vars(self).update(f=state["f"], W=state["W"], inner=inner)

    def of(self, f: Any) -> Slice:
        counts = isinstance(f, Counting)  # an expansion reads no row, and counts nothing
        return self if f is self.f else CountedSlice(f, self.W, self.inner.of(f.inner)) if counts else f.on_columns(self.W)  # type: ignore[attr-defined]

    def dot(self, d: np.ndarray) -> PerRow:
        return self.f._ask(self.inner.dot, d)

    def solve(self, place: np.ndarray, scale: np.ndarray, w: np.ndarray, x: np.ndarray, z: PerRow, tol: float) -> Any:
        found = self.f._ask(self.inner.solve, place, scale, w, x, z, tol)
        if found is not None:
            self.f.calls.grads += found[1] * self.f.n
            self.f.calls.values += found[2] * self.f.n
        return found

    def hessian(self, z: PerRow, far: bool = False, width: float = 0.0) -> Symmetric:
        """The Hessian reads every row, once or in every product: each time counts as n component gradients.

        If a Hessian near the point is known on these columns, it is the answer, and no row is read.
        """
        near = self.f.near
        if near is not None and not far and width == 0 and np.isin(self.W, near.known, assume_unique=True).all():
            return near.on_columns(self.W).hessian(z)
        H = self.f._ask(self.inner.hessian, z, far, width, grads=self.f.n)
        return H if isinstance(H, np.ndarray) else _CountedProducts(H, self.f)

    @property
    def constant(self) -> bool:
        return self.inner.constant

    @property
    def copied(self) -> bool:
        return self.inner.copied

    @property
    def light(self) -> bool:
        return self.inner.light

    def cross(self, J: np.ndarray) -> np.ndarray | None:
        found = self.f._ask(self.inner.cross, J)
        self.f.calls.grads += 0 if found is None else self.f.n
        return found

    def root(self, z: PerRow, far: bool = False, width: float = 0.0) -> np.ndarray | None:
        B = self.f._ask(self.inner.root, z, far, width)
        self.f.calls.grads += 0 if B is None else self.f.n
        return B


@dataclass(frozen=True)
class _CountedProducts:
    inner: Operator
    f: Any

    def __matmul__(self, u: np.ndarray) -> np.ndarray:
        return self.f._ask(self.inner.__matmul__, u, grads=self.f.n)

    def diagonal(self) -> np.ndarray:
        return self.f._ask(self.inner.diagonal)
