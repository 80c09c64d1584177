"""Set cases: polytopes."""

from __future__ import annotations

from set_case import SetCase

CASES: tuple[SetCase, ...] = ()
