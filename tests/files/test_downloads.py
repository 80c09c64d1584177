"""Downloads: from a server that misbehaves, by several at once, and without the packages that they need."""

import dataclasses
import hashlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pooch
import pytest
from server import BODY, TINY, cut, cut_without_length, good, ignores_range, names, no_length, other_range, stall, status

from extremal.checks import InputError
from extremal.files import datasets, downloads
from extremal.files.datasets import CATALOGUE, DownloadError
from extremal.files.outputs import is_open, locked

pytestmark = pytest.mark.usefixtures("user", "waits")

USER_DIR = datasets.user_dir  # the real one, which no test but its own may call


def fetch(server, **options):
    return datasets.fetch("tiny", base_url=server.url, **options)


def failing(server, *words, **options):
    """The sentence of a fetch that fails: it names the address and what to do."""
    with pytest.raises(DownloadError) as caught:
        fetch(server, **options)
    text = str(caught.value)
    assert text.startswith(f"cannot download {server.url}/tiny: ")
    assert text.endswith("; download it yourself and set EXTREMAL_DATA to its directory")
    assert "\n" not in text
    for word in words:
        assert word in text
    return text


def whole(path, user):
    """The file is there as it should be, and nothing else is."""
    assert path == user / "tiny"
    assert path.read_bytes() == BODY
    assert names(user) == ["tiny"]


# ---- downloads


def test_a_download(server, user, waits, capfd):
    seen = []
    path = fetch(server, progress=lambda done, total: seen.append((done, total, (user / "tiny").exists())))
    whole(path, user)
    assert (server.ranges, waits) == ([None], [])
    done = [d for d, _, _ in seen]
    assert len(done) > 3
    assert done == sorted(set(done))
    assert done[-1] == len(BODY)
    assert {(total, there) for _, total, there in seen} == {(len(BODY), False)}  # the name appears at the end only
    assert capfd.readouterr() == ("", "")
    assert pooch.get_logger().level == 0  # and pooch may speak again


def test_what_is_here_is_not_downloaded(server, user):
    path = fetch(server)
    assert fetch(server.expects(status(500))) == path
    assert len(server.ranges) == 1


@pytest.mark.parametrize("code", [404, 403, 410, 429, 416, 206, 204])
def test_answers_that_no_other_attempt_will_change(server, user, waits, code):
    text = failing(server.expects(status(code)), f"the server answered {code}")
    assert "attempts" not in text
    assert (len(server.ranges), waits, names(user)) == (1, [], [])


@pytest.mark.parametrize("codes", [[500], [503, 502]])
def test_errors_of_the_server_are_tried_again(server, user, waits, codes):
    whole(fetch(server.expects(*map(status, codes), good)), user)
    assert len(server.ranges) == len(codes) + 1
    assert waits == list(downloads.WAITS[: len(codes)])


def test_three_attempts_with_growing_waits(server, user, waits):
    failing(server.expects(status(500)), "the server answered 500", "at the last of 3 attempts")
    assert len(server.ranges) == 3
    assert len(waits) == 2
    assert 0 < waits[0] < waits[1] <= 5
    assert names(user) == []


def test_a_truncated_body_is_resumed(server, user, waits):
    seen = []
    whole(fetch(server.expects(cut(20000), good), progress=lambda *now: seen.append(now)), user)
    assert server.ranges == [None, "bytes=20000-"]
    assert server.sent == [20000, len(BODY) - 20000]  # only the rest
    assert waits == [downloads.WAITS[0]]
    assert seen == sorted(seen)
    assert (20000, len(BODY)) in seen
    assert seen[-1] == (len(BODY), len(BODY))
    assert {total for _, total in seen} == {len(BODY)}


def test_what_came_is_kept_for_the_next_call(server, user):
    failing(server.expects(cut(1000)), "closed before all had come", "3 attempts")
    assert server.ranges == [None, "bytes=1000-", "bytes=2000-"]
    assert names(user) == ["tiny.part"]
    assert (user / "tiny.part").read_bytes() == BODY[:3000]
    whole(fetch(server.expects(good)), user)
    assert server.ranges[-1] == "bytes=3000-"
    assert server.sent[-1] == len(BODY) - 3000


def test_a_part_outlives_an_answer_that_ends_the_attempts(server, user):
    failing(server.expects(cut(1000), status(404)), "404")
    assert (user / "tiny.part").read_bytes() == BODY[:1000]


def test_lengths_are_compared_where_urllib3_does_not(server, user, monkeypatch):
    """Versions before 2 end a short body in silence."""
    import urllib3

    init = urllib3.HTTPResponse.__init__
    monkeypatch.setattr(urllib3.HTTPResponse, "__init__", lambda *a, **k: init(*a, **{**k, "enforce_content_length": False}))
    failing(server.expects(cut(1000)), f"the connection was closed after 3000 of {len(BODY)} bytes")
    whole(fetch(server.expects(good)), user)


@pytest.mark.parametrize("second", [ignores_range, no_length])
def test_a_server_that_ignores_ranges_starts_anew(server, user, second):
    whole(fetch(server.expects(cut(20000), second)), user)
    assert server.ranges == [None, "bytes=20000-"]
    assert server.sent[1] == len(BODY)


@pytest.mark.parametrize("answer", [status(416), other_range])
def test_a_part_that_cannot_be_resumed_is_dropped(server, user, waits, answer):
    user.mkdir(parents=True)
    (user / "tiny.part").write_bytes(b"x" * (len(BODY) + 5))
    whole(fetch(server.expects(answer, good)), user)
    assert server.ranges == [f"bytes={len(BODY) + 5}-", None]
    assert waits == []


def test_a_wrong_checksum_is_refused_and_removed(server, user, waits):
    server.body = BODY[:-1] + b"6"
    got = hashlib.sha256(server.body).hexdigest()
    failing(server, f"sha256 of what came is {got}", f"expected {TINY.sha256}")
    assert (names(user), len(server.ranges), waits) == ([], 1, [])


def test_a_stale_part_costs_one_call(server, user):
    user.mkdir(parents=True)
    (user / "tiny.part").write_bytes(b"old")
    failing(server, "sha256")
    assert server.ranges == ["bytes=3-"]
    assert names(user) == []
    whole(fetch(server), user)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (BODY + b"\n1 1:1", "expected rows 6000, got 6001"),
        (BODY.replace(b"2:0.5", b"2:0.6"), "expected the sum"),
        (b"<html>moved</html>", "expected a number as the label"),
        (b"", "the file is empty"),
    ],
)
def test_without_a_checksum_the_content_is_checked(server, user, monkeypatch, body, words):
    monkeypatch.setitem(CATALOGUE, "tiny", dataclasses.replace(TINY, sha256=None))
    server.body = body
    text = failing(server, "what came is no tiny", words)
    assert "tmp" not in text
    assert names(user) == []
    server.body = BODY
    whole(fetch(server), user)


def test_a_silent_server_is_given_up_and_resumed(server, user, waits):
    whole(fetch(server.expects(stall(downloads.CHUNK), good), timeout=(5, 1.0)), user)
    assert server.ranges == [None, f"bytes={downloads.CHUNK}-"]
    assert len(waits) == 1


@pytest.mark.parametrize("size", [0, downloads.CHUNK])
def test_a_silent_server_is_given_up(server, user, size):
    failing(server.expects(stall(size)), "nothing came for 0.3 s", "3 attempts", timeout=(5, 0.3))
    assert len(server.ranges) == 3
    assert names(user) == (["tiny.part"] if size else [])


def test_a_refused_connection(user, waits):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, and not listening
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(DownloadError, match=rf"cannot download {url}/tiny: Connection refused, at the last of 3 attempts"):
            datasets.fetch("tiny", base_url=url)
    assert len(waits) == 2
    assert names(user) == []


def test_a_server_that_does_not_say_how_much(server, user):
    seen = []
    whole(fetch(server.expects(no_length), progress=lambda *now: seen.append(now)), user)
    assert seen[-1] == (len(BODY), None)
    assert {total for _, total in seen} == {None}


def test_a_cut_that_nobody_announced_is_found_by_the_checksum(server, user):
    failing(server.expects(cut_without_length(1000)), "sha256")
    assert names(user) == []


def test_an_address_that_is_none(user, waits):
    with pytest.raises(DownloadError, match="cannot download nowhere/tiny: Invalid URL"):
        datasets.fetch("tiny", base_url="nowhere/")
    assert waits == []


def test_a_directory_that_cannot_be_made(server, user):
    user.parent.mkdir()
    user.write_text("a file")
    failing(server, "exists" if sys.platform == "win32" else "ot a directory")
    assert server.ranges == []


def test_a_directory_of_that_name(server, user):
    (user / "tiny").mkdir(parents=True)
    failing(server)
    assert (user / "tiny").is_dir()


def test_a_full_disk_is_said_and_not_tried_again(server, user, monkeypatch, waits):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(downloads.os, "fsync", full)
    failing(server, "No space left on device")
    assert (len(server.ranges), waits) == (1, [])
    assert not (user / "tiny").exists()


def test_ctrl_c_keeps_the_part(server, user):
    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(server, progress=interrupt)
    assert names(user) == ["tiny.part"]
    assert 0 < (user / "tiny.part").stat().st_size < len(BODY)
    whole(fetch(server), user)
    assert server.ranges[1].startswith("bytes=")


# ---- several at once


CHILD = """
import sys
from pathlib import Path
from extremal import datasets
from extremal.files.datasets import DataSet
datasets.CATALOGUE["tiny"] = eval(sys.argv[3])
datasets.user_dir = lambda: Path(sys.argv[2])
print(datasets.fetch("tiny", base_url=sys.argv[1]))
"""


def child(server, user):
    command = [sys.executable, "-c", CHILD, server.url, str(user), repr(TINY)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def together(count, size=20000):
    """Sends a beginning, and the rest only when that many requests have come."""
    barrier = threading.Barrier(count)

    def answer(handler):
        rest = handler.ranged()
        handler.send(rest[:size])
        barrier.wait(60)
        handler.send(rest[size:])

    return answer


def test_two_processes_at_once(server, user):
    children = [child(server.expects(together(2)), user) for _ in range(2)]
    outputs = [process.communicate(timeout=600) for process in children]
    assert outputs == [(f"{user / 'tiny'}\n", "")] * 2
    assert server.ranges == [None, None]  # neither took the other's part for its own
    whole(user / "tiny", user)


def test_many_threads_at_once(server, user):
    server.expects(together(4))
    paths, threads = [], []
    for _ in range(4):
        threads.append(threading.Thread(target=lambda: paths.append(fetch(server))))
        threads[-1].start()
    for thread in threads:
        thread.join(60)
    assert paths == [user / "tiny"] * 4
    whole(paths[0], user)


def test_one_that_fails_does_not_touch_what_another_has_begun(server, user):
    other = threading.Thread(target=fetch, args=(server,))
    arrived, over = threading.Event(), threading.Event()

    def waits_for_the_failure(handler):
        rest = handler.ranged()
        handler.send(rest[:20000])
        arrived.set()
        over.wait(60)
        handler.send(rest[20000:])

    server.expects(waits_for_the_failure, status(404))
    other.start()
    assert arrived.wait(60)
    failing(server, "404")
    over.set()
    other.join(60)
    assert server.ranges == [None, None]
    whole(user / "tiny", user)


def test_a_lock_on_a_file_that_was_renamed_is_none(tmp_path):
    part = tmp_path / "x.part"
    handle = locked(part, os.O_RDWR | os.O_CREAT)
    if handle is None:
        pytest.skip("no file locks here")
    assert locked(part, os.O_RDWR | os.O_CREAT) is None  # held
    part.rename(tmp_path / "x")
    assert not is_open(handle, part)
    with downloads._held(part) as ours:  # another file of that name
        assert ours
        part.write_bytes(b"1")
    assert part.exists()
    os.close(handle)


def test_a_part_that_is_renamed_before_its_lock_is_left_alone(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    part, flock, calls = tmp_path / "x.part", fcntl.flock, []

    def late(handle, how):
        if not calls:
            part.rename(tmp_path / "x")  # as whoever held it does in the end
        calls.append(handle)
        return flock(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    handle = locked(part, os.O_RDWR | os.O_CREAT)
    assert handle is not None
    assert is_open(handle, part)
    assert not is_open(handle, tmp_path / "x")
    assert len(calls) == 2
    os.close(handle)


def test_without_locks_everyone_has_a_part_of_its_own(server, user, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    user.mkdir(parents=True)
    (user / "tiny.part").write_bytes(b"of another")
    assert fetch(server.expects(cut(20000), good)).read_bytes() == BODY
    assert server.ranges == [None, "bytes=20000-"]
    assert (user / "tiny.part").read_bytes() == b"of another"


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGKILL")
def test_a_process_that_is_killed_leaves_a_part_to_resume(server, user):
    process = child(server.expects(stall(2 * downloads.CHUNK), good), user)
    part, deadline = user / "tiny.part", time.monotonic() + 600
    while not (part.exists() and part.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=600)
    came = part.stat().st_size
    assert 0 < came < len(BODY)
    assert not (user / "tiny").exists()
    assert fetch(server).read_bytes() == BODY
    assert server.ranges == [None, f"bytes={came}-"]


# ---- packages that may be missing


def test_downloads_need_an_extra_and_say_so(server, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(InputError, match=r"needs pooch: pip install 'extremal\[data\]'"):
        fetch(server)
    assert server.ranges == []


def test_finding_does_without_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets, "user_dir", USER_DIR)
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    assert datasets.find("tiny") is None
    (tmp_path / "tiny").write_bytes(BODY)
    monkeypatch.setenv("EXTREMAL_DATA", str(tmp_path))
    assert datasets.find("tiny") == tmp_path / "tiny"
    assert datasets.load("tiny")[0].shape == (6000, 3)
    monkeypatch.delenv("EXTREMAL_DATA")
    with pytest.raises(InputError, match=r"needs platformdirs: pip install 'extremal\[data\]'"):
        datasets.fetch("tiny")


def test_importing_is_light():
    code = "import sys, extremal.files.datasets; print([m for m in ('pooch', 'requests', 'platformdirs') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no variable moves the user's directory")
def test_the_users_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert USER_DIR() == tmp_path / "extremal"
    assert os.listdir(tmp_path) == []
