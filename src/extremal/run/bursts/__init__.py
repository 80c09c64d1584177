"""Bursts: many iterations of the loop in one compiled call, where data, set, estimator and step allow it.

A burst makes the same iterations as the readable loop, for the same seed and up to rounding; otherwise it may not exist.
The loop makes the iterations that a burst cannot make (such as a full gradient), starting from where the burst stopped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from extremal.run.bursts import run
from extremal.run.bursts.run import Burst, Reach

if TYPE_CHECKING:
    from extremal.methods.method import Method
    from extremal.objectives.base import Sampler
    from extremal.run.bursts.faces import FaceBurst
    from extremal.run.counting import CountedObjective, CountedSet

__all__ = ["Burst", "Reach", "for_run"]


def for_run(f: CountedObjective, C: CountedSet, method: Method, sampler: Sampler) -> Burst | FaceBurst | None:
    """A burst for this run, or None if one of its parts has no compiled form."""
    if method.move.one_vertex:
        return run.make(f, C, method, sampler)
    from extremal.run.bursts.faces import make_in_faces  # for estimators with second derivatives of rows

    return make_in_faces(f, C, method, sampler)
