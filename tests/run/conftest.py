"""What tests of runs share: a count of the iterations that were made in bursts."""

from __future__ import annotations

import pytest

from extremal.run import bursts


@pytest.fixture
def count(monkeypatch):
    """How many iterations were made in bursts."""
    made = []
    run = bursts.Burst.run

    def counted(self, *args):
        answer = run(self, *args)
        made.append(answer[0])
        return answer

    monkeypatch.setattr(bursts.Burst, "run", counted)
    return made
