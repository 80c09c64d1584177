"""Exact gradients of quadratic objectives from their Hessian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal.gradients.base import Facts, Gradient, Looked, Steps
from extremal.objectives.base import Objective, Sampler

WRONG = 0.1  # share of a decrease by which an expansion may be wrong before the run leaves it
ROUNDED_VALUE = 1e-10  # share of f by which it may be wrong in any case


@dataclass(frozen=True)
class Expanded(Gradient[Looked]):
    """g = grad f(c) + H (x - c) for a quadratic f, from a Hessian of all columns that is formed once.

        f(x) = (1/n) sum_i phi(<a_i, x>, y_i)  with a constant phi'',   H = (1/n) A' diag(phi'') A

    The start reads the rows once for H and grad f(0), and counts 2 n component gradients. Later gradients read no row, as long as
    a bound on their rounding is below a tenth of the accuracy that the run asks for. Certificates add the bound to their gap.
    Otherwise a gradient comes from the rows, and x becomes the centre. Memory d^2; a gradient costs d^2 multiplications.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(3), np.array([0.6, 0.4, -1.0]))
    >>> method = ex.Method(Expanded(), ex.steps.FullStep(), ex.moves.SpikeNewton())
    >>> r = ex.minimize(f, ex.Simplex(), method, tol=1e-6)
    >>> r.x.round(6), r.calls.rows
    (array([0.6, 0.4, 0. ]), 3)
    """

    def facts(self, n: int) -> Facts:
        return Facts(start=2 * n, per_step=n, d=1.0, needs=("value_grad_margins", "expansion"), columns=True)

    def init(self, f: Objective, x: np.ndarray, sampler: Sampler) -> Looked:
        found = f.expansion()  # type: ignore[attr-defined]
        return self._at(f, x, f if found is None else found, None)

    def update(
        self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: Looked, sampler: Sampler
    ) -> Looked:
        return self._at(f, x, state.model, state.value)

    def _at(self, f: Any, x: np.ndarray, model: Any, before: float | None) -> Looked:
        """The estimate at x; ``before`` is the value at the last point."""
        if model is f:
            return Looked(*_sorted(f.value_grad_margins(x)), f)
        value, g = model.look(x)
        slack = model.rounding(x)
        if model.suffices(value, slack, early=before is None):
            return Looked(g, True, value, x, model, slack[1])
        found = f.value_grad_margins(x)
        if before is not None and abs(found[0] - value) > WRONG * (before - found[0]) + ROUNDED_VALUE * abs(found[0]):
            return Looked(*_sorted(found), f)  # the Hessian has lost too many digits
        return Looked(found[1], True, found[0], x, model.at(x, *found[:2]))


def _sorted(found: tuple[float, np.ndarray, Any]) -> tuple[np.ndarray, bool, float, Any]:
    value, g, z = found
    return g, True, value, z
