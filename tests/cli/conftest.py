"""What tests of the command line share: a small file in a directory of its own."""

import pytest
from command_line import problem


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A small LIBSVM file in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    A, y = problem()
    rows = [f"{label:g} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row)) for label, row in zip(y, A, strict=True)]
    path = tmp_path / "data"
    path.write_text("\n".join(rows))
    return path
