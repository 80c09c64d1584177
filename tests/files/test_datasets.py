"""Data sets by name: what is found where, what a file must hold, the paper's Table 2, the command line."""

import bz2
import dataclasses
import gzip
import hashlib
import itertools
import json
import lzma

import numpy as np
import pytest
from command_line import PLAIN, refused
from server import BODY, LINES, cut, good, names, status
from typer.testing import CliRunner

import extremal as ex
from extremal.checks import InputError
from extremal.cli.data import data_app
from extremal.files import datasets
from extremal.files.datasets import CATALOGUE
from extremal_lab.reproduction import standins

pytestmark = pytest.mark.usefixtures("user", "waits")


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
    assert "not compared, missing a9a, a8a, a8a.t" in rows[0].remark
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
    assert row.remark.endswith("not compared, missing a8a.t)")


def test_table2_says_if_the_comparison_fails(user, monkeypatch):
    small_family(user, monkeypatch, wrong=True)
    assert datasets.table2()[0].remark.endswith("not true of the files that are here)")


def test_table2_refuses_a_file_that_is_not_the_set(user):
    put(user).rename(user / "w8a")
    with pytest.raises(InputError, match="not the content of w8a"):
        datasets.table2()


# ---- the command line


def run(*args, **env):
    return CliRunner(env=PLAIN | env).invoke(data_app, [str(a) for a in args])


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
    assert server.asked == ["/tiny"]


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
    assert server.asked == []


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


# ---- the real files


@pytest.mark.parametrize("name", datasets.NAMES)
def test_real_files(real, name):
    A, y = datasets.load(name, download=False)
    entry = CATALOGUE[name]
    assert A.shape == (entry.n, entry.d)
    assert (y > 0).sum() == entry.positives
    path = datasets.find(name)
    with {".xz": lzma.open, ".bz2": bz2.open, ".gz": gzip.open}.get(path.suffix, open)(path, "rb") as file:
        assert entry.sha256 in (None, hashlib.sha256(file.read()).hexdigest())


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


def test_real_table2(real):
    rows = {row.paper: row for row in datasets.table2()}
    assert rows["a9a"].remark.endswith("(= a8a + a8a.t as multisets: verified)")
    assert rows["a9a"].n != rows["a9a"].paper_n
    for paper in ("breast cancer", "madelon", "mushrooms", "w8a"):
        row = rows[paper]
        assert (row.d, row.n, row.remark) == (row.paper_d, row.paper_n, "")
    assert rows["w8a"].positives == 1479 / 49749
    assert rows["mushrooms"].density == 21 / 112
