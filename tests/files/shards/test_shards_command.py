"""``extremal shards build | info | verify``."""

import json
import shutil
from functools import partial

import numpy as np
import pytest
from command_line import refused, run
from shard_rows import held, rows

from extremal.cli import shards
from extremal.files.shards.build import build
from extremal.files.shards.manifest import read_manifest


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    A, y = rows(40)
    for name, part in (("a.csv", slice(0, 20)), ("b.csv", slice(20, 40))):
        table = np.column_stack([A[part], 1 + np.arange(40)[part], np.where(y[part] > 0, "yes", "no")])
        (tmp_path / name).write_text("a,b,c,d,e,f,g,w,bought\n" + "".join(",".join(row) + "\n" for row in table.tolist()))
    return tmp_path


def done(*args):
    result = run("shards", *args)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result.stdout


def test_build_info_verify(here):
    assert done("build", "a.csv", "b.csv", "train", "--weights", "w") == "train: 40 rows of 7 columns in 1 shards\n"
    assert done("verify", "train") == "train: 40 rows in 1 shards, all as the manifest says\n"
    text = done("info", "train")
    assert "classes" in text
    assert "no, yes" in text
    told = json.loads(done("info", "train", "--json"))
    assert (told["rows"], told["columns"], told["kind"], told["classes"], told["shuffled"]) == (
        40,
        7,
        "dense",
        ["no", "yes"],
        True,
    )
    assert told["weights"]["total"] == 820
    assert told["names"] == list("abcdefg")


def test_options(here):
    done("build", "?.csv", "train", "--no-shuffle", "--target", "bought", "--weights", "7", "--dtype", "float32")
    manifest = read_manifest(here / "train")
    assert (manifest.shuffled, manifest.dtype) == (False, "float32")
    np.testing.assert_array_equal(held("train")[0][:, -1], 1 + np.arange(40))
    done("build", "?.csv", "train", "--seed", "3", "--overwrite", "--weights", "w")
    assert read_manifest(here / "train").seed == 3


def test_mistakes_are_one_line(here):
    refused(run("shards", "build", "none.csv", "train"), "none.csv")
    refused(run("shards", "build", "a.csv", "train", "--target", "x"), "a.csv", "'x'")
    refused(run("shards", "build", "a.csv", "train", "--seed", "-1"), "--seed", "-1")
    refused(run("shards", "info", "train"), "no such directory")
    refused(run("shards", "verify", "."), "holds no file")
    refused(run("shards", "build", "a.csv", "."), "holds something else")
    done("build", "a.csv", "train")
    refused(run("shards", "build", "a.csv", "train"), "--overwrite")
    path = here / "train" / "00000.rows.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    refused(run("shards", "verify", "train"), "00000.rows.npy", "checksum")


def test_progress_is_shown_ten_times_a_second(monkeypatch):
    now, shown = [0.0], []
    monkeypatch.setattr(shards.time, "monotonic", lambda: now[0])
    watch = shards._ShardWatch(shown.append)
    for i in range(100):
        now[0] = 0.01 * i
        watch("read", i, 10**6 * i, None)
    assert len(shown) == 10
    assert shown[:2] == ["0 rows read, 0 MB", "10 rows read, 10 MB"]
    watch("written", 5, 0, 99)
    assert shown[-1] == "5 of 99 rows written, 0 MB"


class Interrupted:
    """Ctrl-C when so many rows were read."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def __call__(self, stage, rows, size, total):
        if rows >= 25:
            raise KeyboardInterrupt


def test_ctrl_c_says_what_becomes_of_the_build(here, monkeypatch, caplog):
    for memory, words in ((8000, "the same call or command resumes it"), (2**28, "its work was discarded")):
        with monkeypatch.context() as patch:
            patch.setattr(shards, "_line", Interrupted)
            patch.setattr("extremal.files.shards.build.build", partial(build, max_memory=memory))
            result = run("shards", "build", "?.csv", "train", "--weights", "w")
            assert (result.exit_code, result.stdout) == (130, "")
            assert result.stderr == f"train: the build was interrupted; {words}\n"
        if memory == 8000:
            with monkeypatch.context() as patch:
                patch.setattr("extremal.files.shards.build.build", partial(build, max_memory=memory))
                result = run("shards", "build", "?.csv", "train", "--weights", "w")
            assert result.exit_code == 0
            assert (
                "train: an interrupted build is resumed (rows read: 40, shards written: 0)" in caplog.text
            )  # stderr, without pytest
            shutil.rmtree("train")


def test_ctrl_c_while_all_is_verified(here, monkeypatch):
    done("build", "?.csv", "train", "--weights", "w")
    monkeypatch.setattr(shards, "_line", Interrupted)
    result = run("shards", "verify", "train")
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr == "interrupted before every byte was verified\n"


def test_long_lists_are_cut():
    assert shards._said(tuple("abcdefghijklmnop")).endswith("k, l, ... (16 in all)")
