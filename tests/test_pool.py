"""Tasks on all cores: done once, kept at once, never stale, and going on after Ctrl-C, a kill or a damaged file."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from extremal.experiments import pool, store
from extremal.experiments.pool import WorkerError, run_all
from extremal.experiments.progress import Pace
from extremal.experiments.store import Store


@dataclass(frozen=True)
class Square:
    """Leaves a mark each time it is executed."""

    number: int
    marks: str
    seconds: float = 0.0
    how: str = "well"

    cost = 1.0

    def execute(self):
        with open(self.marks, "a") as file:
            file.write(f"{self.number}\n")
        time.sleep(self.seconds)
        if self.how == "fails":
            raise ValueError("no square")
        if self.how == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        threads = ",".join(os.environ.get(name, "") for name in pool.THREADS)
        return {"square": np.array(self.number**2), "threads": np.array(threads)}


@pytest.fixture
def marks(tmp_path):
    path = tmp_path / "marks"
    path.touch()
    return path


def made(marks):
    return sorted(map(int, marks.read_text().split()))


@pytest.mark.parametrize("workers", [1, 2])
def test_each_task_is_done_once(tmp_path, marks, workers):
    tasks = [Square(i, str(marks)) for i in (3, 1, 2, 1, 3)]
    seen = []
    results = run_all(tasks, Store(tmp_path / "kept"), workers, lambda task, fresh: seen.append((task.number, fresh)))
    assert {task.number: int(result["square"]) for task, result in results.items()} == {1: 1, 2: 4, 3: 9}
    assert made(marks) == [1, 2, 3]
    assert sorted(seen) == [(1, True), (2, True), (3, True)]


def test_workers_have_one_thread_and_leave_the_environment_alone(tmp_path, marks, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    results = run_all([Square(i, str(marks)) for i in range(2)], Store(tmp_path / "kept"), 2)
    assert {str(result["threads"]) for result in results.values()} == {"1,1,1,1,1"}
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "NUMBA_NUM_THREADS" not in os.environ


def test_what_is_kept_is_not_done_again(tmp_path, marks):
    kept = Store(tmp_path / "kept")
    run_all([Square(i, str(marks)) for i in range(3)], kept, 1)
    seen = []
    results = run_all([Square(i, str(marks)) for i in range(5)], kept, 2, lambda task, fresh: seen.append((task.number, fresh)))
    assert made(marks) == [0, 1, 2, 3, 4]
    assert sorted(seen) == [(0, False), (1, False), (2, False), (3, True), (4, True)]
    assert sorted(int(r["square"]) for r in results.values()) == [0, 1, 4, 9, 16]


def test_a_change_of_any_field_or_of_the_code_is_another_key(tmp_path, marks, monkeypatch):
    kept, task = Store(tmp_path), Square(1, str(marks))
    paths = {kept.path(task)}
    paths |= {kept.path(replace(task, **change)) for change in ({"number": 2}, {"seconds": 1e-17}, {"how": "else"})}
    assert kept.path(task) == Store(tmp_path).path(Square(1, str(marks)))
    monkeypatch.setattr(store, "code", lambda: "0.1.0 another commit")
    assert kept.path(task) in paths  # a run keeps to the code that it began with
    assert len(paths | {Store(tmp_path).path(task)}) == 5


def test_the_code_is_known_by_commit_or_sources(tmp_path, monkeypatch):
    said = {"ls-files": "__init__.py", "rev-parse": "abc", "status": ""}
    monkeypatch.setattr(store, "_git", lambda folder, *words: said[words[0]])
    assert store.code.__wrapped__() == f"{store.extremal.__version__} abc"
    said["status"] = " M driver.py"
    changed = store.code.__wrapped__()
    assert "abc sources" in changed
    said["ls-files"] = ""
    assert "no commit sources" in store.code.__wrapped__()
    package = tmp_path / "package"
    package.mkdir()
    (package / "a.py").write_text("1")
    before = store._sources(package)
    (package / "a.py").write_text("2")
    assert store._sources(package) != before


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 cut off", b"no archive at all"])
def test_a_damaged_file_counts_as_none(tmp_path, marks, damage):
    kept, task = Store(tmp_path / "kept"), Square(2, str(marks))
    run_all([task], kept, 1)
    kept.path(task).write_bytes(damage)
    assert kept.get(task) is None
    assert int(run_all([task], kept, 1)[task]["square"]) == 4
    assert int(kept.get(task)["square"]) == 4
    assert made(marks) == [2, 2]


def test_nothing_half_written_is_kept(tmp_path, marks, monkeypatch):
    kept, task = Store(tmp_path / "kept"), Square(2, str(marks))

    def full(file, **held):
        file.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.np, "savez_compressed", full)
    with pytest.raises(OSError, match="No space"):
        run_all([task], kept, 1)
    assert not [path for path in kept.folder.rglob("*") if path.is_file()]


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="cannot be kept there"):
        Store(tmp_path / "file" / "kept")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_mistake_in_a_task_is_passed_on(tmp_path, marks, workers):
    tasks = [Square(1, str(marks)), Square(2, str(marks), how="fails"), Square(3, str(marks))]
    with pytest.raises(ValueError, match="no square"):
        run_all(tasks, Store(tmp_path / "kept"), workers)


def test_a_worker_that_dies_is_said_and_costs_only_its_task(tmp_path, marks):
    kept = Store(tmp_path / "kept")
    with pytest.raises(WorkerError, match="what is done is kept"):
        run_all([Square(1, str(marks)), Square(2, str(marks), seconds=0.5, how="dies")], kept, 2)
    assert int(kept.get(Square(1, str(marks)))["square"]) == 1


CHILD = """
import signal, sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {tests!r})
from test_pool import Square
from extremal.experiments.pool import run_all
from extremal.experiments.store import Store
if __name__ == "__main__":
    run_all([Square(i, {marks!r}, seconds=0.05 if i < 4 else 60.0) for i in range(8)], Store(Path({kept!r})), 2)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_after_ctrl_c_or_a_kill_it_goes_on_where_it_was(tmp_path, marks, how):
    kept, script = tmp_path / "kept", tmp_path / "child.py"
    script.write_text(CHILD.format(tests=str(Path(__file__).parent), marks=str(marks), kept=str(kept)))
    child = subprocess.Popen([sys.executable, str(script)], stderr=subprocess.PIPE, start_new_session=True)
    try:
        until = time.monotonic() + 60
        while len(list(kept.rglob("*.npz"))) < 4 and time.monotonic() < until:
            time.sleep(0.05)
        began = time.monotonic()
        child.send_signal(how) if how == signal.SIGINT else os.killpg(child.pid, how)
        child.wait(timeout=30)
        assert time.monotonic() - began < 20  # it does not wait for the runs of a minute
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.stderr.close()
    assert child.returncode != 0
    tasks = [Square(i, str(marks), seconds=0.05) for i in range(4)]
    before = made(marks)
    assert sorted(int(r["square"]) for r in run_all(tasks, Store(kept), 1).values()) == [0, 1, 4, 9]
    assert made(marks) == before


def test_the_time_left_goes_by_what_was_done_now():
    now = [0.0]
    pace = Pace(100.0, clock=lambda: now[0])
    pace.done(40.0, fresh=False)
    assert (pace.left, pace.text) == (None, "")
    now[0] = 5.0
    pace.done(10.0, fresh=True)  # 2 a second; 50 are left
    assert pace.left == pytest.approx(25.0)
    assert pace.text == ", about 0:25 left"
    pace.done(60.0, fresh=True)  # more than was expected
    assert pace.left == 0.0
