"""Parameters of a completion, and what it can do with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from extremal import checks
from extremal.checks import InputError
from extremal.sklearn.options import is_fitted

if TYPE_CHECKING:
    from extremal.sklearn.completion.estimator import LowRankCompletion

INPUTS = ("auto", "matrix", "pairs")
COMPLETION_LOSSES = ("squared", "huber")


def on_pairs(self: LowRankCompletion) -> bool:
    """Whether there are pairs to predict at; not after a fit on a matrix."""
    if (self.input_ if is_fitted(self, "input_") else self.input) == "matrix":
        raise AttributeError(
            "predict and score take (row, col) pairs, and are there after a fit on pairs; use reconstruct(rows, cols)"
        )
    return True


def check_parameters(self: LowRankCompletion) -> None:
    """Refuse parameters that are none."""
    name = type(self).__name__
    checks.one_of(f"{name}(input=...)", self.input, INPUTS)
    checks.one_of(f"{name}(loss=...)", self.loss, COMPLETION_LOSSES)
    if self.offsets not in ("rows+cols", "mean", None):
        raise InputError(f"`{name}(offsets=...)` must be 'rows+cols', 'mean' or None, got {self.offsets!r}")
    checks.positive(name, "delta", self.delta)
    checks.flag(name, "clip", self.clip)
    if self.radius is not None:
        checks.positive(name, "radius", self.radius)
    if self.rank is not None:
        checks.whole(name, "rank", self.rank, 1)
