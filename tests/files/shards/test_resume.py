"""Interrupted builds: the same call goes on where that is honest, and otherwise begins anew; both are said in one line."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from interrupted import OPTIONS, files
from shard_rows import contents, held, rows

import extremal as ex
from extremal.files.shards import sources
from extremal.files.shards.build import build
from extremal.files.shards.folder import MARKER
from extremal.files.shards.journal import JOURNAL
from extremal.files.shards.verify import verify_shards

HERE, SOURCE = Path(__file__).parent, Path(ex.__file__).parents[1]
ENVIRONMENT = os.environ | {
    "PYTHONPATH": os.pathsep.join([str(SOURCE), str(HERE.parent)]), "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1",
}  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills need processes that are forked")
@pytest.mark.parametrize("kind", OPTIONS)
def test_killed_at_any_write(kind, tmp_path):
    """In the first pass, between the passes, in the second, and while files are moved to their places."""
    command = [sys.executable, HERE / "interrupted.py", tmp_path, kind, "2"]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    kills = [json.loads(line) for line in done.stdout.splitlines()]
    assert {kill["code"] for kill in kills} == {9}
    assert all(kill["same"] for kill in kills)
    assert all(len(kill["said"]) == 1 for kill in kills)
    resumed = ["is resumed" in kill["said"][0] for kill in kills]
    first = resumed.index(True)  # the first piece is finished
    assert 0 < first < 10
    assert all(resumed[first:])
    assert all("discarded" in kill["said"][0] for kill in kills[:first])
    writes = [kill["writes"] for kill, again in zip(kills, resumed, strict=True) if again]
    assert max(writes) < kills[0]["of"]  # what is finished is not written again
    assert min(writes) < kills[0]["of"] / 2


class Stop:
    """Ctrl-C after some rows or shards."""

    def __init__(self, stage, n):
        self.stage, self.n = stage, n

    def __call__(self, stage, n, size, total):
        if stage == self.stage and n >= self.n:
            raise KeyboardInterrupt


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "TEXT_AT_ONCE", 300)
    return files(tmp_path, "svm")


def stopped(source, directory, stage="read", n=60, **options):
    with pytest.raises(KeyboardInterrupt) as caught:
        build(source, directory, **OPTIONS["svm"] | options, progress=Stop(stage, n))
    return str(caught.value)


def said(caplog, source, directory, **options):
    """What the log says of building it again."""
    caplog.clear()
    with caplog.at_level(logging.INFO, "extremal"):
        build(source, directory, **OPTIONS["svm"] | options)
    verify_shards(directory)
    assert MARKER not in os.listdir(directory)
    (record,) = caplog.records
    return record.getMessage()


def test_ctrl_c_says_that_it_can_be_resumed(source, tmp_path, caplog):
    place = tmp_path / "s"
    assert stopped(source, place) == f"{place}: the build was interrupted; the same call or command resumes it"
    assert stopped(source, place, "written", 40).endswith("resumes it")
    text = said(caplog, source, place)
    assert text.startswith(f"{place}: an interrupted build is resumed (rows read: 90, shards written: ")
    build(source, tmp_path / "whole", **OPTIONS["svm"])
    assert contents(place) == contents(tmp_path / "whole")


def test_ctrl_c_before_a_piece_is_finished(source, tmp_path):
    assert stopped(source, tmp_path / "s", n=1).endswith("its work was discarded")
    assert not (tmp_path / "s").exists()


def test_files_that_are_done_are_not_opened_again(source, tmp_path, monkeypatch):
    stopped(source, tmp_path / "s")
    opened = []
    monkeypatch.setattr(sources, "opened_file", lambda path, most: opened.append(path) or real(path, most))
    build(source, tmp_path / "s", **OPTIONS["svm"])
    assert opened
    assert source[0] not in opened
    stopped(source, tmp_path / "t", "written", 40)
    opened.clear()
    build(source, tmp_path / "t", **OPTIONS["svm"])
    assert opened == []


real = sources.opened_file


@pytest.mark.parametrize(
    "options", [{"seed": 4}, {"dtype": "float32"}, {"shard_bytes": 999}, {"d": 9}, {"shuffle": False}, {"max_memory": 16000}]
)
def test_other_options_begin_anew(source, tmp_path, caplog, options):
    stopped(source, tmp_path / "s")
    assert said(caplog, source, tmp_path / "s", **options).endswith("the remains of an interrupted build were discarded")
    build(source, tmp_path / "whole", **OPTIONS["svm"] | options)
    assert contents(tmp_path / "s") == contents(tmp_path / "whole")


def longer(source):
    source[0].write_text(source[0].read_text() + "1 1:5\n")
    return source


def later(source):
    os.utime(source[0], ns=(0, source[0].stat().st_mtime_ns + 1))
    return source


def one_file_less(source):
    return source[:-1]


def arrays(source):
    return [rows(90)]


@pytest.mark.parametrize("change", [longer, later, one_file_less, arrays])
def test_another_source_begins_anew(source, tmp_path, caplog, change):
    stopped(source, tmp_path / "s")
    other = change(source)
    assert said(caplog, other, tmp_path / "s").endswith("were discarded")
    build(other, tmp_path / "whole", **OPTIONS["svm"])
    assert contents(tmp_path / "s") == contents(tmp_path / "whole")


def test_targets_in_a_file_beside_are_part_of_the_source(tmp_path, caplog):
    A, y = rows(90)
    np.save(tmp_path / "A.npy", A)
    np.save(tmp_path / "y.npy", y)
    how = {"target": str(tmp_path / "y.npy"), "max_memory": 1}
    stopped(tmp_path / "A.npy", tmp_path / "s", "written", 40, **how)
    np.save(tmp_path / "y.npy", np.append(0.0, -y[1:]))
    assert said(caplog, tmp_path / "A.npy", tmp_path / "s", **how).endswith("were discarded")
    assert sorted(held(tmp_path / "s")[1]) == sorted(np.append(0.0, -y[1:]))


@pytest.mark.parametrize(
    ("stage", "name"),
    [("read", "values.run"), ("read", "keys.run"), *(("written", name) for name in ("values.run", "00000.values.npy", JOURNAL))],
)
def test_pieces_that_are_not_whole_are_made_again(source, tmp_path, caplog, stage, name):
    """A bit that is not what was written, in the first piece: after a loss of power, say."""
    stopped(source, tmp_path / "s", stage, 60)
    (path,) = (tmp_path / "s").glob(f".extremal-work-*/{name}")
    data = path.read_bytes()
    place = 60 if name != JOURNAL else len(data) // 2
    path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    text = said(caplog, source, tmp_path / "s")
    assert ("resumed" if name in (JOURNAL, "00000.values.npy") else "discarded") in text
    build(source, tmp_path / "whole", **OPTIONS["svm"])
    assert contents(tmp_path / "s") == contents(tmp_path / "whole")
