"""Tasks on all cores: done once, kept at once, never stale, and going on after Ctrl-C, a kill or a damaged file."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import active_children
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest
import scipy.linalg  # noqa: F401  brings a BLAS of its own
import threadpoolctl

from extremal.checks import InputError
from extremal.support import whole
from extremal_lab.reproduction import pool, store
from extremal_lab.reproduction.pool import WorkerError, run_all
from extremal_lab.reproduction.progress import Pace
from extremal_lab.reproduction.store import Store
from extremal_lab.threads import ONE_THREAD


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
        with open(f"{self.marks}.pids", "a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(self.seconds)
        if self.how == "fails":
            raise ValueError("no square")
        if self.how == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        threads = ",".join(os.environ.get(name, "") for name in ONE_THREAD)
        pools = [numba.get_num_threads(), *(pool["num_threads"] for pool in threadpoolctl.threadpool_info())]
        return {"square": np.array(self.number**2), "threads": np.array(threads), "pools": np.array(pools)}


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


def pools():
    return [(pool["filepath"], pool["num_threads"]) for pool in threadpoolctl.threadpool_info()]


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one thread is all there is")
@pytest.mark.parametrize(("workers", "how"), [(1, "well"), (1, "fails"), (2, "well")])
def test_a_task_has_one_thread_in_every_pool(tmp_path, marks, workers, how):
    before = numba.get_num_threads(), pools()
    assert before[0] > 1
    assert max(number for _, number in before[1]) > 1
    kept, tasks = Store(tmp_path / "kept"), [Square(1, str(marks)), Square(2, str(marks), how=how)]
    try:
        run_all(tasks, kept, workers)
    except ValueError:
        assert how == "fails"
    threads = kept.get(tasks[0])["pools"]
    assert len(threads) >= 3  # numba, and the BLAS of numpy and of scipy
    assert set(threads) == {1}
    assert (numba.get_num_threads(), pools()) == before


def test_without_threadpoolctl_or_numba_it_runs(tmp_path, marks, monkeypatch):
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    monkeypatch.delitem(sys.modules, "numba")
    assert run_all([Square(2, str(marks))], Store(tmp_path / "kept"), 1)
    assert "numba" not in sys.modules  # it is not imported for this


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


def test_a_result_is_whole_or_none(tmp_path, marks):
    """Each byte changed in turn, and the file cut off anywhere: no damage is taken for a result."""
    kept, task = Store(tmp_path / "kept"), Square(2, str(marks))
    result = {"curve": np.linspace(0, 1, 7), "how": np.array("newton"), "none": np.empty((0, 3)), "convex": np.array(True)}
    kept.put(task, result)
    path, rng = kept.path(task), np.random.default_rng(0)
    whole = path.read_bytes()
    flips = rng.integers(1, 256, len(whole)).astype(np.uint8)
    damaged = [whole[:i] + bytes([whole[i] ^ flips[i]]) + whole[i + 1 :] for i in range(len(whole))]
    for held in damaged + [whole[:i] for i in range(0, len(whole), 7)] + [whole + b"more"]:
        path.write_bytes(held)
        assert kept.get(task) is None
    path.write_bytes(whole)
    got = kept.get(task)
    assert list(got) == list(result)
    for name in result:
        np.testing.assert_array_equal(got[name], result[name], strict=True)


def test_a_result_of_another_task_counts_as_none(tmp_path, marks):
    kept, task, other = Store(tmp_path / "kept"), Square(2, str(marks)), Square(3, str(marks))
    kept.put(task, {"square": np.array(4)})
    kept.path(other).parent.mkdir(exist_ok=True)
    kept.path(task).rename(kept.path(other))
    assert kept.get(other) is None


def test_nothing_half_written_is_kept(tmp_path, marks, monkeypatch):
    kept, task = Store(tmp_path / "kept"), Square(2, str(marks))

    def full(file):
        os.truncate(file, 10)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(whole.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        run_all([task], kept, 1)
    assert not [path for path in kept.folder.rglob("*") if path.is_file()]


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="cannot be kept there"):
        Store(tmp_path / "file" / "kept")


@pytest.mark.skipif(not Path("/proc/sys").is_dir(), reason="no folder that nobody can write to")
def test_a_folder_that_cannot_be_written_is_one_sentence():
    with pytest.raises(InputError, match=r"^/proc/sys: the results cannot be kept there \([^()]+\)$"):
        Store(Path("/proc/sys"))


def test_a_store_leaves_nothing_in_its_folder(tmp_path):
    Store(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("workers", [1, 2])
def test_a_mistake_in_a_task_is_passed_on(tmp_path, marks, workers):
    tasks = [Square(1, str(marks)), Square(2, str(marks), how="fails"), Square(3, str(marks))]
    with pytest.raises(ValueError, match="no square"):
        run_all(tasks, Store(tmp_path / "kept"), workers)


def test_a_worker_that_dies_is_said_and_costs_only_its_task(tmp_path, marks):
    kept = Store(tmp_path / "kept")
    with pytest.raises(WorkerError, match="finished runs are kept"):
        run_all([Square(1, str(marks)), Square(2, str(marks), seconds=0.5, how="dies")], kept, 2)
    assert int(kept.get(Square(1, str(marks)))["square"]) == 1


CHILD = """
import signal, sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {tests!r})
from test_pool import Square
from extremal_lab.reproduction.pool import run_all
from extremal_lab.reproduction.store import Store
if __name__ == "__main__":
    store = Store(Path({kept!r}))
    store.code = {code!r}  # the sources may change while the tests run
    run_all([Square(i, {marks!r}, seconds=0.05 if i < 4 else 60.0) for i in range(8)], store, 2)
"""


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait(until, seconds):
    end = time.monotonic() + seconds
    while not until() and time.monotonic() < end:
        time.sleep(0.05)
    return until()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
@pytest.mark.parametrize(
    ("how", "code"),
    [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, -signal.SIGINT), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_after_ctrl_c_or_a_kill_it_goes_on_where_it_was(tmp_path, marks, how, code):
    """The signal goes to the parent alone; its workers, in runs of a minute, end with it."""
    kept, script = tmp_path / "kept", tmp_path / "child.py"
    names = {"tests": str(Path(__file__).parent), "marks": str(marks), "kept": str(kept), "code": store.code()}
    script.write_text(CHILD.format(**names))
    child = subprocess.Popen([sys.executable, str(script)], stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        assert wait(lambda: len(made(marks)) == 6 and len(list(kept.rglob("*.npz"))) == 4, 60)
        workers = set(map(int, Path(f"{marks}.pids").read_text().split()))
        assert len([pid for pid in workers if alive(pid)]) == 2
        os.kill(child.pid, how)
        assert child.wait(timeout=20) == code
        assert wait(lambda: not any(map(alive, workers)), 10)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    tasks = [Square(i, str(marks), seconds=0.05) for i in range(4)]
    before = made(marks)
    assert sorted(int(r["square"]) for r in run_all(tasks, Store(kept), 1).values()) == [0, 1, 4, 9]
    assert made(marks) == before


@pytest.fixture
def terminated():
    """The signals that went to the handler that was there before."""
    got = []
    before = signal.signal(signal.SIGTERM, lambda *signal: got.append(signal))
    yield got
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("workers", [1, 2])
def test_sigterm_is_as_ctrl_c_while_it_runs(tmp_path, marks, terminated, workers):
    kept, before, others = Store(tmp_path / "kept"), signal.getsignal(signal.SIGTERM), active_children()
    tasks = [Square(1, str(marks)), Square(2, str(marks), seconds=60.0)]
    with pytest.raises(KeyboardInterrupt) as interrupt:
        run_all(tasks, kept, workers, lambda task, fresh: os.kill(os.getpid(), signal.SIGTERM))
    assert interrupt.traceback  # held: the workers do not end by its being forgotten
    assert set(active_children()) <= set(others)
    assert kept.get(tasks[0]) is not None
    assert not terminated
    assert signal.getsignal(signal.SIGTERM) is before
    os.kill(os.getpid(), signal.SIGTERM)
    assert len(terminated) == 1


def test_sigterm_is_left_alone_in_another_thread_or_if_ignored(tmp_path, marks, terminated):
    before, found = signal.getsignal(signal.SIGTERM), []
    kept, look = Store(tmp_path / "kept"), lambda task, fresh: found.append(signal.getsignal(signal.SIGTERM))
    thread = threading.Thread(target=run_all, args=([Square(1, str(marks))], kept, 1, look))
    thread.start()
    thread.join()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    run_all([Square(2, str(marks))], kept, 1, look)
    assert found == [before, signal.SIG_IGN]


def test_workers_are_ended_without_the_private_list():
    ended = []
    pool._end_workers(SimpleNamespace(kill_workers=lambda: ended.append("all")))
    assert ended == ["all"]
    pool._end_workers(SimpleNamespace(_processes=None))
    pool._end_workers(SimpleNamespace())


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
