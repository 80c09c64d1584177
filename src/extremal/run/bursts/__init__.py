"""Bursts: many iterations of the loop in one compiled call, where data, set, estimator and step allow it.

A burst makes the same iterations as the readable loop, for the same seed and up to rounding; otherwise it may not exist.
The loop makes the iterations that a burst cannot make (such as a full gradient), starting from where the burst stopped.
"""

from extremal.run.bursts.run import Burst, Reach, make

__all__ = ["Burst", "Reach", "make"]
