"""Bursts: many iterations of the loop in one compiled call, where data, set, estimator and step allow it.

A burst makes the same iterations as the readable loop, for the same seed and up to rounding; that is its licence to exist.
What it cannot do (a full gradient, say) it leaves to the loop, which goes on from where the burst has stopped.
"""

from extremal.run.bursts.run import Burst, Reach, make

__all__ = ["Burst", "Reach", "make"]
