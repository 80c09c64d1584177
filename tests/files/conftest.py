"""The directory in which tests of files work."""

import pytest


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # so that messages hold the bare file name
    return tmp_path
