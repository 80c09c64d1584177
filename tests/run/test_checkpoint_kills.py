"""Processes that SIGKILL ends at any moment: called again, they end with the bits of one that nobody stopped."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from killed_runs import KINDS

HERE = Path(__file__).resolve().parent
KILLS = int(os.environ.get("EXTREMAL_KILLS", "1"))  # of each kind
ATTEMPTS = 100

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")


def started(kind: str, folder: Path) -> subprocess.Popen:
    folder.mkdir(parents=True, exist_ok=True)
    ran = subprocess.Popen(
        [sys.executable, "-W", "ignore", str(HERE / "killed_runs.py"), kind, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert ran.stdout is not None
    assert ran.stdout.readline() == "begun\n"
    return ran


def ended(kind: str, folder: Path) -> str:
    out, _ = started(kind, folder).communicate(timeout=600)
    assert out.startswith("digest ")
    return out


@pytest.mark.parametrize("kind", KINDS)
def test_a_process_that_is_killed_goes_on(tmp_path, kind):
    if kind == "dask":
        pytest.importorskip("distributed")
    begin = time.monotonic()
    expected = ended(kind, tmp_path / "undisturbed")
    length, rng, folder, kills = time.monotonic() - begin, np.random.default_rng(0), tmp_path / "killed", 0
    for _ in range(ATTEMPTS):
        ran = started(kind, folder)
        time.sleep(float(rng.uniform(0.05, 0.7)) * length)
        done = ran.poll() is not None
        ran.kill()
        ran.communicate()
        kills += not done
        if kills == KILLS or (done and kills):
            break
        if done:  # faster than the first run: begin again, and be quicker
            length /= 2
            shutil.rmtree(folder)
    assert ended(kind, folder) == expected
    assert kills > 0
    left = {path.name for path in folder.iterdir()}
    assert left <= {"run.ckpt", "run.ckpt.previous"}, left
    assert ended(kind, folder) == expected  # and the end is in the file
