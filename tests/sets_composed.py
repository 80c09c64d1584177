"""Set cases: composed."""

from __future__ import annotations

from set_case import SetCase

CASES: tuple[SetCase, ...] = ()
