"""Settings and fixtures that the whole suite shares."""

from __future__ import annotations

import functools
import os
import sys
import threading
import types

import fast
import pytest
from cases import optimum
from hypothesis import settings
from server import TINY, Server

from extremal.files import datasets
from extremal.support import clock

pytest.register_assert_rewrite("burst_problems", "command_line", "opened_page", "reference_problems")  # to say what was unequal
settings.register_profile("extremal", derandomize=True, deadline=None, max_examples=60, database=None)
settings.load_profile("extremal")
collect_ignore_glob = ["*conftest.py"]  # one for a folder: they hold no examples, and modules of one name cannot be collected
sys.setrecursionlimit(20_000)  # hypothesis chains the settings of a test with a thousand parameters, one for each


def pytest_configure(config):
    fast.watch(config)


def pytest_sessionfinish(session):
    fast.tell()


@pytest.fixture(scope="session")
def f_star():
    """(loss, C) -> the optimal value on cases.MATRIX, solved once per session."""
    return functools.cache(optimum)


class Hands:
    """The clock of runs, set by hand: it moves when told, and by ``tick`` with each look at it."""

    def __init__(self):
        self.now, self.tick, self.looks = 0.0, 0.0, 0

    def perf_counter(self) -> float:
        self.now, self.looks = self.now + self.tick, self.looks + 1
        return self.now

    def process_time(self) -> float:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def hands(monkeypatch):
    """A clock that no machine and no load can hurry."""
    hands = Hands()
    monkeypatch.setattr(clock, "time", hands)
    return hands


# ---- data sets and downloads: a file of tests asks for user and waits as a whole, so that nothing of the user's is touched

FOLDER = os.environ.get("EXTREMAL_DATA")  # as it is before a test hides it


@pytest.fixture
def user(tmp_path, monkeypatch):
    """No environment, a user's directory of our own, and one more data set."""
    folder = tmp_path / "user" / "extremal"
    monkeypatch.delenv("EXTREMAL_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(datasets, "user_dir", lambda: folder)
    monkeypatch.setitem(datasets.CATALOGUE, "tiny", TINY)
    return folder


@pytest.fixture
def waits(monkeypatch):
    """The waits of pooch between attempts, which are not made."""
    waited = []
    monkeypatch.setattr("pooch.core.time", types.SimpleNamespace(sleep=waited.append))
    return waited


@pytest.fixture
def server():
    """One that listens, and answers well until told otherwise."""
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.released.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def real(user, monkeypatch):
    """The directory of the paper's data sets, for tests that need it."""
    if not FOLDER:
        pytest.skip("EXTREMAL_DATA names no directory with the paper's data sets")
    monkeypatch.setenv("EXTREMAL_DATA", FOLDER)
