"""Methods with a table of derivatives, made for linear models."""

from __future__ import annotations

from dataclasses import dataclass

from extremal.gradients.substitute import Substitute
from extremal.gradients.table import Sag
from extremal.methods.base import Budget, Method, root_batch
from extremal.methods.shared import BatchAndStep
from extremal.objectives.base import Objective
from extremal.sets.base import ConvexSet
from extremal.steps.estimators import LuFreundStep
from extremal.steps.schedules import OpenLoop


@dataclass(frozen=True)
class NegiarSFW(BatchAndStep):
    """Stochastic Frank-Wolfe with the SAG estimator.

        c_i <- phi'(<a_i, x>)  for i in S,   g = (1/n) A' c,   x <- x + 2/(t + 2) (lmo(g) - x),   c = 0 at first

    The table is refreshed before the LMO, at the current x. b component gradients and one LMO an iteration; a table of n
    numbers. Published for linear models; here it runs on any finite sum, with a table of n gradients then.

    Parameters
    ----------
    batch : int, optional
        b; 1 if left out.
    step : Step, optional
        Left out, 2 / (t + 2).

    References
    ----------
    Negiar, Dresdner, Tsai, El Ghaoui, Locatello, Freund, Pedregosa (2020), arXiv:2002.11860.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.NegiarSFW(batch=20)
    NegiarSFW(batch=20, step=None)
    """

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        """Step 2 / (t + 2)."""
        b = root_batch("NegiarSFW", self.batch, f.n, 0)
        return Method(Sag(b), self.step or OpenLoop()).prepare(f, C, budget)


@dataclass(frozen=True)
class LuFreundSFW(BatchAndStep):
    """Generalised stochastic Frank-Wolfe with a substitute gradient.

        g = (1/n) sum_i phi'(sigma_i) a_i,   s = lmo(g),   x <- x + gamma_t (s - x)
        sigma_i <- sigma_i + theta_t (<a_i, s> - sigma_i)  for i in S,   sigma_i = <a_i, x0> at first
        theta_t = 2m / (2m + t + 1),   gamma_t = 2 (2m + t) / ((t + 1) (4m + t)),   m = n/b

    No derivative is taken at an iterate. n component gradients at the start, b and one LMO an iteration; 2n numbers.
    Linear models only.

    Parameters
    ----------
    batch : int, optional
        b; 1 if left out, as published.
    step : Step, optional
        Left out, gamma_t.

    References
    ----------
    Lu, Freund (2021), arXiv:1807.07680; with m = n/b for batches, as the copt package has it.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.LuFreundSFW(batch=20)
    LuFreundSFW(batch=20, step=None)
    """

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        """theta_t and gamma_t with m = n/b."""
        b = root_batch("LuFreundSFW", self.batch, f.n, 0)
        return Method(Substitute(b), self.step or LuFreundStep()).prepare(f, C, budget)
