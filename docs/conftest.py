"""Pages write their files into a directory that goes away."""

import pytest

collect_ignore_glob = ["*.py", "_*"]  # pages are tested here; what builds them is run by `make docs`


@pytest.fixture(autouse=True)
def _in_a_directory_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
