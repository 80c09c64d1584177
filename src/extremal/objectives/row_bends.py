"""Second derivatives row by row, for estimators that keep tables of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.data.parts import count_rows
from extremal.data.rows import RowData
from extremal.losses.base import Majorised, majorant_of
from extremal.objectives.linear import LinearModel
from extremal.points.composed import Chord

SLAB = 4096  # rows whose entries in some columns are formed at once
Ask = Callable[..., Any]  # (question, *arguments, bends=0): counts the rows of second derivatives


class Bend(NamedTuple):
    """Some rows of a linear model at a point: margins, and derivatives of the loss there."""

    z: np.ndarray  # <a_i, x>
    c: np.ndarray  # phi'
    q: np.ndarray  # phi''
    m: np.ndarray  # a majorant of |phi''|; q itself if that is its own


class RowBends:
    """The rows of a linear model with the second derivatives of its loss.

    A row of second derivatives counts as a component gradient, beside that of its derivative. Products with numbers that a table
    holds count as rows that are read.
    """

    def __init__(self, f: Any, ask: Ask):
        check_bends(f)
        self.f, self._ask, self._loss = f, ask, cast(Majorised, f.loss)
        self._data = cast(RowData, f.data)
        self.self_concordance, self.majorant = self._loss.self_concordance, majorant_of(self._loss)

    def at(self, x: np.ndarray, idx: np.ndarray, bent: int | None = None) -> Bend:
        """The margins of the rows idx at x with phi' there, and phi'' and its majorant for the first ``bent`` of them, or all."""
        bent = len(idx) if bent is None else bent
        return self._ask(self._at, x, idx, bent, grads=len(idx), bends=bent)

    def _at(self, x: np.ndarray, idx: np.ndarray, bent: int) -> Bend:
        z, y = self._data.dot(x, idx), self.f._targets(idx)
        q = self._loss.second(z[:bent], y[:bent])
        return Bend(z, self._loss.deriv(z, y), q, q if self.majorant is None else self.majorant(z[:bent], y[:bent]))

    def product(self, v: np.ndarray, h: np.ndarray) -> np.ndarray:
        """A' diag(h) A v, for one number h_i per row: one read."""
        return self._ask(self._data.gram_product, v, h)

    def products(self, W: np.ndarray, *hs: np.ndarray) -> list[np.ndarray]:
        """The columns W of A' diag(h) A, as rows, for some numbers h_i per row: one read for all."""
        found = [np.zeros((len(W), self._data.shape[1])) for _ in hs]
        for first in range(0, self.f.n, SLAB):
            idx = np.arange(first, min(first + SLAB, self.f.n))
            entries = self.entries(idx, W)
            for sums, h in zip(found, hs, strict=True):
                sums += self._data.tdot(h[idx, None] * entries, idx).T
        self._ask(count_rows, self.f.n)
        return found

    def entries(self, idx: np.ndarray, W: np.ndarray) -> np.ndarray:
        """The entries of rows that were read just now, in the columns W."""
        order = np.argsort(W)
        found = np.empty((len(idx), len(W)))
        found[:, order] = next(self._data.rows(idx).columns(W[order]).arrays(len(idx)))[1]
        return found

    def powers(self, m: np.ndarray, idx: np.ndarray | None = None) -> np.ndarray:
        """The sums of m_i a_ij^2 and of their squares for every column; over rows that were read just now, or over all."""
        if idx is None:
            return self._ask(_powers, self._data, m)
        return _powers(self._data.rows(idx), m)

    def reach(self, d: np.ndarray) -> float:
        """max_i |<a_i, d>|, from above, by the largest entries of the columns."""
        return float(self.peaks @ np.abs(d))

    @cached_property
    def peaks(self) -> np.ndarray:
        """The largest |a_ij| of every column."""
        return self._ask(self._data.peaks)


class BendsAlong(NamedTuple):
    """Second derivatives of some rows along a direction."""

    m: np.ndarray  # a majorant of |phi''| at x
    u: np.ndarray  # <a_i, d>
    self_concordance: float  # of the loss


def bends_along(f: Any, x: np.ndarray, d: Chord, idx: np.ndarray) -> BendsAlong:
    """Second derivatives along d at x of the rows idx, for rows of any kind: no columns are asked for."""
    if not isinstance(f, LinearModel) or f.deriv_shape or checks.lacks(f.loss, "second", "self_concordance"):
        raise InputError(
            "BatchCurvature() needs a LinearModel whose loss has one margin, `second` and `self_concordance`, such as Logistic()"
            f", got {type(f).__name__}{f' with {f.loss!r}' if isinstance(f, LinearModel) else ''}"
        )
    loss = cast(Majorised, f.loss)
    z, y = f.data.dot(x, idx), f._targets(idx)
    m = (majorant_of(loss) or loss.second)(z, y)
    return BendsAlong(m, d.image(z, lambda v: f.data.dot_vertex(v, idx)), loss.self_concordance)


def check_bends(f: Any) -> None:
    """Refuse objectives whose rows have no second derivatives."""
    rows = isinstance(f, LinearModel) and isinstance(f.data, RowData) and not f.deriv_shape
    if not rows or checks.lacks(f.loss, "second", "self_concordance"):
        raise InputError(
            "TrackedSag() and Saga(curved=True) need a LinearModel of rows whose loss has one margin, `second` and "
            f"`self_concordance`, such as Logistic(), got {type(f).__name__}{f' with {f.loss!r}' if rows else ''}"
        )


def _powers(rows: RowData, m: np.ndarray) -> np.ndarray:
    return np.stack([rows.powers(m, 2), rows.powers(np.square(m), 4)])
