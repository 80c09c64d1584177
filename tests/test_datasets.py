"""Data sets by name: downloads from a server that misbehaves, what is found where, what a file must hold, the stand-ins."""

import bz2
import dataclasses
import gzip
import hashlib
import itertools
import json
import lzma
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pooch
import pytest
from scipy.optimize import linprog
from typer.testing import CliRunner

import extremal as ex
from extremal import datasets, downloads
from extremal.checks import InputError
from extremal.cli.data import data_app
from extremal.datasets import CATALOGUE, DataSet, DownloadError
from extremal.experiments import standins

FOLDER = os.environ.get("EXTREMAL_DATA")
needs_data = pytest.mark.skipif(not FOLDER, reason="EXTREMAL_DATA names no directory with the paper's data sets")
USER_DIR = datasets.user_dir  # the real one, which no test but its own may call

# 6000 rows, labels 1 and 2, column 3 of 3 always empty: more than a few pieces of a download
LINES = [f"{1 + i % 3 // 2} 1:{i % 7 + 1} 2:0.5" for i in range(6000)]
BODY = "\n".join(LINES).encode()
TINY = DataSet(
    "tiny", n=6000, d=3, labels=(1.0, 2.0), positives=2000, nonzeros=12000, total=float(sum(i % 7 + 1.5 for i in range(6000))),
    sha256=hashlib.sha256(BODY).hexdigest(), note="for tests",
)  # fmt: skip


@pytest.fixture(autouse=True)
def user(tmp_path, monkeypatch):
    """No environment, a user's directory of our own, one more data set, and no waiting."""
    folder = tmp_path / "user" / "extremal"
    monkeypatch.delenv("EXTREMAL_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(datasets, "user_dir", lambda: folder)
    monkeypatch.setitem(CATALOGUE, "tiny", TINY)
    return folder


@pytest.fixture(autouse=True)
def waits(monkeypatch):
    """The waits between attempts, which are not made."""
    waited = []
    monkeypatch.setattr(downloads, "sleep", waited.append)
    return waited


# ---- a server that misbehaves on order


class Server(ThreadingHTTPServer):
    """Answers the k-th request by the k-th of its behaviours, the last one again and again; notes what was asked and sent."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.behaviours, self.body, self.ranges, self.sent = [good], BODY, [], []
        self.turn, self.lock = itertools.count(), threading.Lock()
        self.released = threading.Event()

    def expects(self, *behaviours):
        self.behaviours = list(behaviours)
        return self

    def handle_error(self, request, client_address):  # a client that has gone
        pass


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self):
        with self.server.lock:
            k = next(self.server.turn)
            self.server.ranges.append(self.headers["Range"])
            self.server.sent.append(0)
        self.k = k
        self.server.behaviours[min(k, len(self.server.behaviours) - 1)](self)

    def start(self):
        """The first byte that was asked for."""
        asked = self.headers["Range"]
        return int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0

    def head(self, status, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def ranged(self):
        """The head of an honest answer; returns what its body should be."""
        start, body = self.start(), self.server.body
        rest = body[start:]
        if start:
            self.head(206, Content_Length=len(rest), Content_Range=f"bytes {start}-{len(body) - 1}/{len(body)}")
        else:
            self.head(200, Content_Length=len(rest))
        return rest

    def send(self, data):
        self.wfile.write(data)
        self.wfile.flush()
        self.server.sent[self.k] += len(data)

    def log_message(self, *_):
        pass


def good(handler):
    handler.send(handler.ranged())


def ignores_range(handler):
    handler.head(200, Content_Length=len(handler.server.body))
    handler.send(handler.server.body)


def other_range(handler):
    body = handler.server.body
    handler.head(206, Content_Length=len(body), Content_Range=f"bytes 0-{len(body) - 1}/{len(body)}")
    handler.send(body)


def no_length(handler):
    handler.head(200)
    handler.send(handler.server.body)


def status(code):
    return lambda handler: handler.head(code, Content_Length=0)


def cut(size):
    """Promises all and closes the connection after some bytes."""
    return lambda handler: handler.send(handler.ranged()[:size])


def cut_without_length(size):
    def answer(handler):
        handler.head(200)
        handler.send(handler.server.body[:size])

    return answer


def stall(size):
    """Promises all and falls silent after some bytes."""

    def answer(handler):
        handler.send(handler.ranged()[:size])
        handler.server.released.wait(20)

    return answer


@pytest.fixture
def server():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.released.set()
    server.shutdown()
    thread.join()
    server.server_close()


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


def names(folder):
    return sorted(p.name for p in folder.iterdir()) if folder.exists() else []


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
from extremal.datasets import DataSet
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
    outputs = [process.communicate(timeout=120) for process in children]
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
    handle = downloads._lock(part)
    if handle is None:
        pytest.skip("no file locks here")
    assert downloads._lock(part) is None  # held
    part.rename(tmp_path / "x")
    assert not downloads._same(handle, part)
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
    handle = downloads._lock(part)
    assert handle is not None
    assert downloads._same(handle, part)
    assert not downloads._same(handle, tmp_path / "x")
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
    part, deadline = user / "tiny.part", time.monotonic() + 60
    while not (part.exists() and part.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
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
    code = "import sys, extremal.datasets; print([m for m in ('pooch', 'requests', 'platformdirs') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no variable moves the user's directory")
def test_the_users_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert USER_DIR() == tmp_path / "extremal"
    assert os.listdir(tmp_path) == []


# ---- finding and loading

PACKERS = {"": bytes, ".xz": lzma.compress, ".bz2": bz2.compress, ".gz": gzip.compress}


def put(folder, suffix="", body=BODY):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"tiny{suffix}"
    path.write_bytes(PACKERS[suffix](body))
    return path


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("where", ["variable", "user"])
def test_found_and_loaded(user, tmp_path, monkeypatch, suffix, where):
    assert datasets.find("tiny") is None
    folder = user if where == "user" else tmp_path / "elsewhere"
    path = put(folder, suffix)
    if where == "variable":
        monkeypatch.setenv("EXTREMAL_DATA", str(folder))
    assert datasets.find("tiny") == path
    assert datasets.fetch("tiny", base_url="nowhere") == path  # nothing to download
    A, y = datasets.load("tiny", download=False)
    assert (A.format, A.dtype, A.shape, A.nnz) == ("csr", np.float64, (6000, 3), 12000)
    assert np.array_equal(A[:8].toarray(), [[i % 7 + 1, 0.5, 0] for i in range(8)])
    assert np.array_equal(y[:6], [-1, -1, 1, -1, -1, 1])  # the larger label is +1
    assert ex.LinearModel(ex.Logistic(), A, y).n == 6000


def test_order_of_places_and_suffixes(user, tmp_path, monkeypatch):
    given = tmp_path / "given"
    order = [(given, s) for s in ("", ".xz", ".bz2", ".gz")] + [(user, s) for s in ("", ".xz", ".bz2", ".gz")]
    monkeypatch.setenv("EXTREMAL_DATA", str(given))
    given.mkdir()
    for folder, suffix in reversed(order):
        path = put(folder, suffix)
        assert datasets.find("tiny") == path


def test_a_directory_of_the_right_name_is_not_found(user):
    (user / "tiny").mkdir(parents=True)
    assert datasets.find("tiny") is None


@pytest.mark.parametrize("call", [datasets.find, datasets.fetch, datasets.load, lambda name: datasets.table2()])
def test_a_variable_that_names_no_directory(tmp_path, monkeypatch, user, call):
    put(user)
    for wrong in (tmp_path / "gone", put(tmp_path / "x")):
        monkeypatch.setenv("EXTREMAL_DATA", str(wrong))
        with pytest.raises(InputError) as caught:
            call("tiny")
        assert (
            str(caught.value)
            == f"the environment variable EXTREMAL_DATA must name a directory with data sets, got {str(wrong)!r}"
        )


def test_an_empty_variable_is_none(user, monkeypatch):
    monkeypatch.setenv("EXTREMAL_DATA", "")
    path = put(user)
    assert datasets.find("tiny") == path


@pytest.mark.parametrize("call", [datasets.find, datasets.fetch, datasets.load, standins.stand_in, standins.describe])
def test_unknown_names(call):
    with pytest.raises(InputError, match="unknown data set 'mushroom'; did you mean 'mushrooms'") as caught:
        call("mushroom")
    for name in ("a8a", "a8a.t", "a9a", "a9a.t", "w8a", "madelon", "madelon.t", "breast-cancer", "breast-cancer_scale"):
        assert name in str(caught.value)


def test_loading_what_is_not_here(monkeypatch):
    with pytest.raises(InputError, match=r"tiny is not here: .*extremal data fetch tiny.*set EXTREMAL_DATA.*binary/tiny"):
        datasets.load("tiny", download=False)
    with pytest.raises(InputError, match="must be True or False"):
        datasets.load("tiny", download="no")


def test_loading_fetches(user, monkeypatch):
    monkeypatch.setattr(datasets, "fetch", lambda name: put(user, ".xz"))
    A, _ = datasets.load("tiny")
    assert A.shape == (6000, 3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda lines: lines[:-1], "expected rows 6000, got 5999"),
        (lambda lines: [lines[0] + " 4:1", *lines[1:]], "expected columns, at most 3, got 4"),
        (lambda lines: ["3" + lines[0][1:], *lines[1:]], r"expected labels \(1.0, 2.0\), got \(1.0, 2.0, 3.0\)"),
        (lambda lines: [line.replace("2 ", "-1 ", 1) if line[0] == "2" else line for line in lines], "expected labels"),
        (lambda lines: ["2" + lines[0][1:], *lines[1:]], "expected positive rows 2000, got 2001"),
        (lambda lines: ["1 1:1 2:0", *lines[1:]], "expected non-zeros 12000, got 11999"),
        (lambda lines: ["1 1:30 2:0.5", *lines[1:]], "expected the sum 26997.0, got 27026.0"),
        (lambda lines: ["1 1:x", *lines[1:]], "expected index:value"),
    ],
)
def test_a_file_with_another_content_is_refused(user, change, words):
    path = put(user, body="\n".join(change(LINES)).encode())
    with pytest.raises(InputError, match=words) as caught:
        datasets.load("tiny")
    assert str(path) in str(caught.value)


def test_rounding_of_the_values_is_allowed(user):
    put(user, body=BODY.replace(b"2:0.5", b"2:0.50001"))
    A, _ = datasets.load("tiny")
    assert A[0, 1] == 0.50001


def test_the_catalogue():
    assert set(datasets.NAMES) == set(CATALOGUE) - {"tiny"}
    known = {name for name in datasets.NAMES if CATALOGUE[name].sha256}
    assert known == {"a8a", "a8a.t", "a9a", "a9a.t", "w8a", "mushrooms"}
    assert all(len(CATALOGUE[name].sha256) == 64 for name in known)
    assert CATALOGUE["a9a"].n == CATALOGUE["a8a"].n + CATALOGUE["a8a.t"].n
    assert CATALOGUE["a9a"].positives == CATALOGUE["a8a"].positives + CATALOGUE["a8a.t"].positives
    assert CATALOGUE["w8a"].url == "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/w8a"
    for name in datasets.NAMES:
        assert CATALOGUE[name].name == name
        assert CATALOGUE[name].note


# ---- the paper's Table 2


def libsvm(A, y):
    A = A.tocsr()
    rows = (zip(A.indices[i:j] + 1, A.data[i:j], strict=True) for i, j in itertools.pairwise(A.indptr))
    return "\n".join(f"{t:g} " + " ".join(f"{c}:{v:g}" for c, v in row) for t, row in zip(y, rows, strict=True)).encode()


def small_family(folder, monkeypatch, wrong=False):
    """a8a, a8a.t and a9a in small: the last is the two others, shuffled; or nearly so."""
    rng = np.random.default_rng(0)
    A, y = standins.stand_in("a9a")
    A, y = A[:50], y[:50]
    shuffled = rng.permutation(50)
    whole = A[shuffled].toarray()
    if wrong:  # other rows of the same statistics
        whole = whole[:, ::-1]
    sets = {"a8a": (A[:30], y[:30]), "a8a.t": (A[30:], y[30:]), "a9a": (type(A)(whole), y[shuffled])}
    folder.mkdir(parents=True, exist_ok=True)
    for name, (B, z) in sets.items():
        (folder / name).write_bytes(libsvm(B, z))
        small = {"n": len(z), "positives": int((z > 0).sum()), "nonzeros": B.nnz, "total": float(B.sum())}
        monkeypatch.setitem(CATALOGUE, name, dataclasses.replace(CATALOGUE[name], **small))


def test_table2_without_data():
    rows = datasets.table2()
    assert [(r.paper, r.paper_d, r.paper_n) for r in rows] == [
        ("a9a", 123, 22696), ("breast cancer", 10, 683), ("madelon", 500, 2000), ("mushrooms", 112, 8124), ("w8a", 300, 49749)
    ]  # fmt: skip
    for row in rows:
        assert (row.d, row.n, row.density, row.positives) == (None,) * 4
        assert row.remark.startswith("not here")
    assert "n = 22696 is the size of a8a; a9a has 32561 rows" in rows[0].remark
    assert "not compared, for want of a9a, a8a, a8a.t" in rows[0].remark
    assert "verified" not in rows[0].remark


def test_table2_verifies_only_what_it_has_compared(user, monkeypatch):
    small_family(user, monkeypatch)
    row = datasets.table2()[0]
    A, y = datasets.load("a9a", download=False)
    assert (row.d, row.n, row.density, row.positives) == (123, 50, A.nnz / (50 * 123), (y > 0).mean())
    assert row.remark.endswith("(= a8a + a8a.t as multisets: verified)")
    (user / "a8a.t").unlink()
    row = datasets.table2()[0]
    assert row.n == 50
    assert row.remark.endswith("not compared, for want of a8a.t)")


def test_table2_says_if_the_comparison_fails(user, monkeypatch):
    small_family(user, monkeypatch, wrong=True)
    assert datasets.table2()[0].remark.endswith("but not so in the files that are here)")


def test_table2_refuses_a_file_that_is_not_the_set(user):
    put(user).rename(user / "w8a")
    with pytest.raises(InputError, match="not the content of w8a"):
        datasets.table2()


# ---- the command line


def run(*args, **env):
    plain = {"FORCE_COLOR": None, "TTY_COMPATIBLE": None, "GITHUB_ACTIONS": None}
    return CliRunner(env=plain | env).invoke(data_app, [str(a) for a in args])


def refused(result, *words):
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    for word in words:
        assert word in result.stderr


def test_list(user):
    path = put(user)
    rows = {row["name"]: row for row in json.loads(run("list", "--json").stdout)}
    assert list(rows) == list(CATALOGUE)
    assert rows["tiny"] == {"name": "tiny", "rows": 6000, "features": 3, "found": str(path), "note": "for tests"}
    assert rows["w8a"]["found"] is None
    lines = run("list").stdout.splitlines()
    assert lines[0].split() == ["name", "rows", "features", "found", "note"]
    assert [line.split()[0] for line in lines[1:]] == list(CATALOGUE)
    assert lines[-1].split(maxsplit=3)[:3] == ["tiny", "6000", "3"]
    assert str(path) in lines[-1]
    assert all("not here" in line for line in lines[1:-1])
    assert all(line.endswith(row["note"]) for line, row in zip(lines[1:], rows.values(), strict=True))


def test_list_with_a_wrong_variable(monkeypatch):
    monkeypatch.setenv("EXTREMAL_DATA", "gone")
    refused(run("list"), "EXTREMAL_DATA", "'gone'")


def test_fetch(server, user):
    result = run("fetch", "tiny", "--mirror", server.url)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"tiny: downloaded to {user / 'tiny'}\n"
    again = run("fetch", "tiny", "tiny", "--mirror", server.url)
    assert again.stdout == f"tiny: already here, {user / 'tiny'}\n" * 2
    assert len(server.ranges) == 1


def test_fetch_shows_a_bar_on_a_terminal(server):
    result = run("fetch", "tiny", "--mirror", server.url, FORCE_COLOR="1", COLUMNS="100")
    assert result.exit_code == 0
    assert "\x1b[" in result.stderr
    assert "tiny" in result.stderr
    assert "bytes" in result.stderr or "kB" in result.stderr
    assert "\x1b[" not in result.stdout


@pytest.mark.parametrize("answer", [404, 500])
def test_a_fetch_that_fails_is_one_line(server, user, answer):
    result = run("fetch", "tiny", "--mirror", server.expects(status(answer)).url)
    refused(result, f"cannot download {server.url}/tiny: the server answered {answer}", "set EXTREMAL_DATA")
    assert result.stdout == ""
    assert names(user) == []


def test_fetch_refuses_an_unknown_name_before_any_download(server):
    refused(run("fetch", "tiny", "w9a", "--mirror", server.url), "unknown data set 'w9a'", "did you mean 'w8a'?")
    assert server.ranges == []


def test_fetch_of_nothing_is_a_usage_error():
    assert run("fetch").exit_code == 2


def test_table2_on_the_command_line(user, monkeypatch):
    small_family(user, monkeypatch)
    rows = json.loads(run("table2", "--json").stdout)
    assert rows == [dataclasses.asdict(row) for row in datasets.table2()]
    lines = run("table2").stdout.splitlines()
    assert len(lines) == 6
    assert lines[1].split()[:6] == ["a9a", "123", "22696", "a9a", "123", "50"]
    assert lines[1].endswith("verified)")
    assert all(line.endswith("not here") for line in lines[2:])
    assert all(len(line.split(" - ")) == 5 for line in lines[2:])


# ---- the stand-ins


@pytest.mark.parametrize("name", datasets.NAMES)
def test_stand_ins_have_the_shape_of_the_sets(name):
    A, y = standins.stand_in(name)
    entry = CATALOGUE[name]
    assert (A.format, A.dtype, A.shape, y.shape) == ("csr", np.float64, (entry.n, entry.d), (entry.n,))
    assert set(np.unique(y)) == {-1.0, 1.0}
    assert (y > 0).sum() == pytest.approx(entry.positives, rel=0.02 if name.startswith("a8a") else 0)
    assert A.nnz == pytest.approx(entry.nonzeros, rel=1e-3)
    text = standins.describe(name)
    assert text.startswith(f"generated: {entry.n} x {entry.d}, ")
    assert text.endswith(f"; not {name}")
    if "0/1" in text:
        assert set(A.data) == {1.0}
        assert f"{round(A.nnz / entry.n, 2):g} a row" in text
    B, z = standins.stand_in(name)
    assert np.array_equal(A.indices, B.indices)
    assert np.array_equal(A.indptr, B.indptr)
    assert np.array_equal(A.data, B.data)
    assert np.array_equal(y, z)


def blocks(text):
    return [len(part.split()) for part in text.split("/")]


@pytest.mark.parametrize(
    ("name", "table", "ones"), [("a9a", standins.CENSUS, (12, 14)), ("mushrooms", standins.MUSHROOMS, (21, 21))]
)
def test_stand_ins_of_attributes(name, table, ones):
    A, _ = standins.stand_in(name)
    counts = np.diff(A.indptr)
    assert (counts.min(), counts.max()) == ones
    wanted = np.array(table.replace("/", " ").split(), dtype=float) / 1e4
    assert np.abs(A.mean(axis=0) - wanted).max() < 3e-4
    starts = np.concatenate([[0], np.cumsum(blocks(table))])
    for first, last in itertools.pairwise(starts):  # of each attribute a row has one category at most
        assert A[:, first:last].sum(axis=1).max() == 1


def test_stand_ins_of_a9a_are_one_family():
    A, y = standins.stand_in("a9a")
    (B, s), (C, t) = standins.stand_in("a8a"), standins.stand_in("a8a.t")
    assert (A[: len(s)] != B).nnz == (A[len(s) :] != C).nnz == 0
    assert np.array_equal(y, np.concatenate([s, t]))
    T, z = standins.stand_in("a9a.t")
    assert (A[: len(z)] != T).nnz > 0
    model = ex.LinearModel(ex.Logistic(), A, y)
    r = ex.minimize(model, ex.L1Ball(20.0), max_grads=20 * model.n, tol=0)
    assert np.mean(np.sign(T @ r.x) == z) > 0.8  # the rule of the one holds in the other; always saying -1 gives 0.76


def test_the_stand_in_of_mushrooms_is_separable():
    A, y = standins.stand_in("mushrooms")
    assert separable(A, y)
    assert not separable(type(A)([[0.0, 1, 1], [1, 0, 1], [0, 0, 1], [1, 1, 1]]), np.array([1.0, 1, -1, -1]))  # the test can fail


def separable(A, y):
    M = np.unique(A.toarray() * y[:, None], axis=0)
    return linprog(np.zeros(A.shape[1]), A_ub=-M, b_ub=-np.ones(len(M)), bounds=(None, None)).status == 0


def test_the_stand_in_of_w8a():
    A, _ = standins.stand_in("w8a")
    counts, frequency = np.diff(A.indptr), np.sort(A.mean(axis=0))[::-1]
    assert counts.var() == pytest.approx(128.7, rel=0.1)
    assert (counts == 0).mean() == pytest.approx(0.084, rel=0.33)
    assert frequency[[0, 50, 100, 200]] == pytest.approx([0.3515, 0.0741, 0.0418, 0.0029], rel=0.1)


def test_the_stand_in_of_madelon():
    A, y = standins.stand_in("madelon")
    X = A.toarray()
    assert np.array_equal(X, np.rint(X))
    assert X.mean() == pytest.approx(488, abs=2)
    assert X.mean(axis=0).min() > 472
    assert X.mean(axis=0).max() < 521
    correlation = np.abs(np.corrcoef(X.T, y)[-1, :-1])
    assert 0.15 < correlation.max() < 0.27
    assert 8 <= (correlation > 0.08).sum() <= 20  # of 500; by chance alone hardly one
    T, t = standins.stand_in("madelon.t")
    again = np.abs(np.corrcoef(T.toarray().T, t)[-1, :-1])
    assert again[correlation > 0.12].min() > 0.05  # the same columns carry the label


def test_the_stand_ins_of_breast_cancer():
    A, y = standins.stand_in("breast-cancer")
    B, z = standins.stand_in("breast-cancer_scale")
    X, S = A.toarray(), B.toarray()
    assert np.array_equal(y, z)
    assert (X[:, 0].min(), X[:, 0].max()) == (63375, 13454352)
    assert np.array_equal(X, np.rint(X))
    assert np.allclose(S, 2 * (X - X.min(axis=0)) / np.ptp(X, axis=0) - 1)
    assert np.array_equal(np.ptp(S, axis=0), np.full(10, 2.0))
    for label, text in ((-1, standins.BENIGN), (1, standins.MALIGNANT)):
        for j, part in enumerate(text.split("/"), 1):
            assert np.bincount(X[y == label, j].astype(int), minlength=11)[1:].tolist() == [int(k) for k in part.split()]


def test_the_sets_of_scikit_learn():
    for (X, y), shape in ((standins.breast_cancer(), (569, 30)), (standins.digits(), (1797, 64))):
        assert X.shape == shape
        assert np.abs(X.mean(axis=0)).max() < 1e-12
        assert np.all(np.isclose(X.std(axis=0), 1) | (X.std(axis=0) == 0))
        assert set(np.unique(y)) == {-1.0, 1.0}


# ---- the real files


@pytest.fixture
def real(monkeypatch):
    monkeypatch.setenv("EXTREMAL_DATA", str(FOLDER))


@needs_data
@pytest.mark.parametrize("name", datasets.NAMES)
def test_real_files(real, name):
    A, y = datasets.load(name, download=False)
    entry = CATALOGUE[name]
    assert A.shape == (entry.n, entry.d)
    assert (y > 0).sum() == entry.positives
    path = datasets.find(name)
    with {".xz": lzma.open, ".bz2": bz2.open, ".gz": gzip.open}.get(path.suffix, open)(path, "rb") as file:
        assert entry.sha256 in (None, hashlib.sha256(file.read()).hexdigest())


@needs_data
def test_a_real_file_that_is_fetched(real, server, user, monkeypatch):
    """All of it through the server: breast-cancer_scale, which has no checksum, with a break."""
    path = datasets.find("breast-cancer_scale")
    with lzma.open(path) if path.suffix == ".xz" else open(path, "rb") as file:
        server.body = file.read()
    monkeypatch.delenv("EXTREMAL_DATA")
    fetched = datasets.fetch("breast-cancer_scale", base_url=server.expects(cut(30000), good).url)
    assert fetched == user / "breast-cancer_scale"
    assert fetched.read_bytes() == server.body
    assert datasets.load("breast-cancer_scale")[0].shape == (683, 10)


@needs_data
def test_real_table2(real):
    rows = {row.paper: row for row in datasets.table2()}
    assert rows["a9a"].remark.endswith("(= a8a + a8a.t as multisets: verified)")
    assert rows["a9a"].n != rows["a9a"].paper_n
    for paper in ("breast cancer", "madelon", "mushrooms", "w8a"):
        row = rows[paper]
        assert (row.d, row.n, row.remark) == (row.paper_d, row.paper_n, "")
    assert rows["w8a"].positives == 1479 / 49749
    assert rows["mushrooms"].density == 21 / 112


@needs_data
@pytest.mark.parametrize(("name", "count"), [("a9a", 4), ("w8a", 3), ("mushrooms", 4), ("breast-cancer_scale", 2)])
def test_stand_ins_resemble_the_real_sets(real, name, count):
    """What their docstrings say: eigenvalues, and the value that Frank-Wolfe reaches, within a fifth."""
    eigenvalues, values = [], []
    for A, y in (datasets.load(name, download=False), standins.stand_in(name)):
        eigenvalues.append(np.linalg.eigvalsh((A.T @ A).toarray() / A.shape[0])[: -count - 1 : -1])
        model = ex.LinearModel(ex.Logistic(), A, y)
        values.append(ex.minimize(model, ex.L1Ball(20.0), "frank-wolfe", max_grads=200 * model.n, tol=1e-3).value)
    assert eigenvalues[1] == pytest.approx(eigenvalues[0], rel=0.2)
    assert values[1] == pytest.approx(values[0], rel=0.2)


@needs_data
def test_real_mushrooms_are_separable(real):
    assert separable(*datasets.load("mushrooms", download=False))
