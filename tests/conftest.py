"""Settings and fixtures that the whole suite shares."""

from __future__ import annotations

import functools

import pytest
from cases import optimum
from hypothesis import settings

settings.register_profile("extremal", derandomize=True, deadline=None, max_examples=60, database=None)
settings.load_profile("extremal")


@pytest.fixture(scope="session")
def f_star():
    """(loss, C) -> the optimal value on cases.MATRIX, solved once per session."""
    return functools.cache(optimum)
