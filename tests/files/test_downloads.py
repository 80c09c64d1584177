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
from server import BODY, TINY, cut, good, names, no_length, status

from extremal.checks import InputError
from extremal.files import datasets
from extremal.files.datasets import CATALOGUE, DownloadError

pytestmark = pytest.mark.usefixtures("user", "waits")

USER_DIR = datasets.user_dir  # the real one, which no test but its own may call


def fetch(server, **options):
    return datasets.fetch("tiny", base_url=server.url, **options)


def failing(url, *words, **options):
    """The sentence of a fetch that fails: it names the address and what to do."""
    with pytest.raises(DownloadError) as caught:
        datasets.fetch("tiny", base_url=url, **options)
    text = str(caught.value)
    assert text.startswith(f"cannot download {url}/tiny: ")
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
    assert (server.asked, waits) == (["/tiny"], [])
    done = [d for d, _, _ in seen]
    assert len(set(done)) > 3
    assert done == sorted(done)
    assert done[-1] == len(BODY)
    assert {(total, there) for _, total, there in seen} == {(len(BODY), False)}  # the name appears at the end only
    assert capfd.readouterr() == ("", "")
    assert pooch.get_logger().level == 0  # and pooch may speak again


def test_what_is_here_is_not_downloaded(server, user):
    path = fetch(server)
    assert fetch(server.expects(status(500))) == path
    assert len(server.asked) == 1


@pytest.mark.parametrize("first", [status(500), status(503), cut(0), cut(20000), cut(1000, length=False)])
def test_what_fails_is_tried_again(server, user, waits, first):
    whole(fetch(server.expects(first, good)), user)
    assert (len(server.asked), len(waits)) == (2, 1)


def test_progress_of_another_attempt_begins_anew(server):
    seen = []
    fetch(server.expects(cut(40000), good), progress=lambda done, total: seen.append(done))
    again = next(k for k in range(1, len(seen)) if seen[k] < seen[k - 1])
    assert 0 < seen[again - 1] < len(BODY)
    assert seen[again:] == sorted(seen[again:])
    assert seen[-1] == len(BODY)


@pytest.mark.parametrize("code", [404, 403, 500])
def test_three_attempts_with_growing_waits(server, user, waits, code):
    failing(server.expects(status(code)).url, f"the server answered {code}")
    assert len(server.asked) == 3
    assert 0 < waits[0] < waits[1] <= 5
    assert names(user) == []


@pytest.mark.parametrize("answer", [cut(20000), cut(0, silent=True), cut(20000, silent=True)])
def test_a_connection_that_breaks_off_leaves_nothing(server, user, answer):
    failing(server.expects(answer).url, "it broke off", timeout=(5, 0.3))
    assert len(server.asked) == 3
    assert names(user) == []


def test_no_network(user, waits):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, and not listening
        failing(f"http://127.0.0.1:{closed.getsockname()[1]}", "there is no connection")
    assert len(waits) == 2
    assert names(user) == []


def test_a_wrong_checksum_is_refused_and_removed(server, user):
    server.body = BODY[:-1] + b"6"
    failing(server.url, "SHA256", f"expected sha256:{TINY.sha256} but got {hashlib.sha256(server.body).hexdigest()}")
    assert names(user) == []


@pytest.mark.parametrize("answer", [cut(1000, length=False), status(204)])
def test_a_short_body_that_nobody_announced_is_found_by_the_checksum(server, user, answer):
    failing(server.expects(answer).url, "SHA256")
    assert names(user) == []


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
    text = failing(server.url, "the content is not that of tiny", words)
    assert "tmp" not in text
    assert names(user) == []
    server.body = BODY
    whole(fetch(server), user)


def test_a_server_that_does_not_say_how_much(server, user):
    seen = []
    whole(fetch(server.expects(no_length), progress=lambda *now: seen.append(now)), user)
    assert seen[-1][0] >= len(BODY)  # by whole pieces
    assert {total for _, total in seen} == {None}


def test_an_address_that_is_none():
    failing("nowhere", "Invalid URL")


def test_a_directory_that_cannot_be_made(server, user):
    user.parent.mkdir()
    user.write_text("a file")
    failing(server.url, "exists" if sys.platform == "win32" else "ot a directory", str(user))
    assert server.asked == []


@pytest.mark.parametrize("there", [False, True])
def test_a_directory_without_rights(server, user, monkeypatch, there):
    def denied(*args, **options):
        raise PermissionError(13, "Permission denied")

    if there:
        user.mkdir(parents=True)
    monkeypatch.setattr("pooch.utils.tempfile.NamedTemporaryFile" if there else "pooch.utils.os.makedirs", denied)
    assert f": Permission denied ({user / 'tiny'});" in failing(server.url)
    assert server.asked == []


@pytest.mark.parametrize("known", [TINY.sha256, None])
def test_a_directory_of_that_name(server, user, monkeypatch, known):
    monkeypatch.setitem(CATALOGUE, "tiny", dataclasses.replace(TINY, sha256=known))
    (user / "tiny").mkdir(parents=True)
    failing(server.url, "there is a directory of that name", str(user / "tiny"))
    assert names(user) == ["tiny"]


FULL = "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
FULL += "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, resource.RLIM_INFINITY))\n"


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_a_full_disk_is_said_and_not_tried_again(server, user):
    _, error = child(server, user, FULL).communicate(timeout=600)
    assert f"DownloadError: cannot download {server.url}/tiny: File too large ({user / 'tiny'});" in error
    assert len(server.asked) == 1
    assert names(user) == []


def test_ctrl_c_leaves_nothing(server, user):
    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(server, progress=interrupt)
    assert names(user) == []
    assert pooch.get_logger().level == 0
    whole(fetch(server), user)


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


def child(server, user, first=""):
    command = [sys.executable, "-c", first + CHILD, server.url, str(user), repr(TINY)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def together(count, size=20000):
    """Sends a beginning, and the rest only when that many requests have come."""
    barrier = threading.Barrier(count)

    def answer(handler):
        handler.head(200, Content_Length=len(BODY))
        handler.send(BODY[:size])
        barrier.wait(60)
        handler.send(BODY[size:])

    return answer


def test_two_processes_at_once(server, user):
    children = [child(server.expects(together(2)), user) for _ in range(2)]
    outputs = [process.communicate(timeout=600) for process in children]
    assert outputs == [(f"{user / 'tiny'}\n", "")] * 2
    assert len(server.asked) == 2  # neither took the other's beginning for its own
    whole(user / "tiny", user)


def test_many_threads_at_once(server, user, monkeypatch):
    monkeypatch.setattr(pooch.get_logger(), "level", 0)  # the last thread may leave it silent
    server.expects(together(4))
    paths, threads = [], []
    for _ in range(4):
        threads.append(threading.Thread(target=lambda: paths.append(fetch(server))))
        threads[-1].start()
    for thread in threads:
        thread.join(60)
    assert paths == [user / "tiny"] * 4
    whole(paths[0], user)


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGKILL")
def test_what_a_killed_process_leaves_is_no_data(server, user):
    process = child(server.expects(cut(40000, silent=True), good), user)
    deadline = time.monotonic() + 600
    while not any(path.stat().st_size for path in user.glob("*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=600)
    (left,) = user.iterdir()
    assert 0 < left.stat().st_size < len(BODY)
    assert datasets.find("tiny") is None
    assert fetch(server).read_bytes() == BODY


# ---- packages that may be missing


def test_downloads_need_an_extra_and_say_so(server, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(InputError, match=r"needs pooch: pip install 'extremal\[data\]'"):
        fetch(server)
    assert server.asked == []


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
