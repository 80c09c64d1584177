"""Files: every format gives the same data, every damaged file one InputError that names it; models are written whole."""

import bz2
import gzip
import lzma
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from text_files import TABLE, refused, write

import extremal as ex
from extremal import checks
from extremal.files import models
from extremal.files.models import Model, save_model
from extremal.files.outputs import check_out
from extremal.files.tables import load_table
from extremal.support import whole

PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
TEXT = "+1 1:0.5 3:-2e1\n-1 2:1\n"
A_TEXT, Y_TEXT = np.array([[0.5, 0, -20], [0, 1, 0]]), np.array([1.0, -1.0])


def sparse_sample(seed=0, n=40, d=17):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.3)
    A[:, -1] = 1.0  # so that the last feature is there
    return A, rng.choice([-1.0, 1.0], n)


# ---- LIBSVM text


@pytest.mark.parametrize("name", ["a8a", "w8a.t", "data.svm", "data.libsvm", "data.txt"])
def test_any_other_suffix_is_libsvm(here, name):
    A, y = load_table(write(name, TEXT))
    assert isinstance(A, sp.csr_array)
    assert A.dtype == y.dtype == np.float64
    assert np.array_equal(A.toarray(), A_TEXT)
    assert np.array_equal(y, Y_TEXT)


@pytest.mark.parametrize("suffix", PACKERS)
def test_compressed_text_is_the_same(here, suffix):
    A, y = load_table(write("a8a" + suffix, PACKERS[suffix](TEXT.encode())))
    assert np.array_equal(A.toarray(), A_TEXT)
    assert np.array_equal(y, Y_TEXT)
    B, z = load_table(write("t.csv" + suffix.upper(), PACKERS[suffix](TABLE.encode())))
    assert B.tolist() == [[1, 2], [4, 5]]
    assert z.tolist() == [3, 6]


def test_comments_blank_lines_and_line_ends(here):
    text = "\ufeff# a header\r\n\r\n+1 1:0.5 3:-20 # the first\r\n   \t\n-1\t2:1 #2:7\n#"
    A, y = load_table(write("d", text))
    assert np.array_equal(A.toarray(), A_TEXT)
    assert np.array_equal(y, Y_TEXT)


def test_a_row_without_features_stays(here):
    A, y = load_table(write("d", "1 2:3\n-1 \n1 1:1\n"))
    assert A.toarray().tolist() == [[0, 3], [0, 0], [1, 0]]
    assert y.tolist() == [1, -1, 1]


def test_libsvm_agrees_with_scikit_learn(here):
    datasets = pytest.importorskip("sklearn.datasets")
    A, y = sparse_sample()
    datasets.dump_svmlight_file(A, y, "d", zero_based=False, comment="from a test")
    B, z = load_table("d")
    theirs, labels = datasets.load_svmlight_file("d", zero_based=False)
    assert np.array_equal(B.toarray(), theirs.toarray())
    assert np.array_equal(z, labels)
    assert B.has_canonical_format


@pytest.mark.skipif("EXTREMAL_DATA" not in os.environ, reason="EXTREMAL_DATA does not name the folder of data sets")
@pytest.mark.parametrize(("name", "shape"), [("w8a", (49749, 300)), ("breast-cancer_scale", (683, 10))])
def test_real_files_agree_with_scikit_learn(name, shape):
    datasets = pytest.importorskip("sklearn.datasets")
    path = next((p for p in Path(os.environ["EXTREMAL_DATA"]).rglob(f"{name}.xz")), None)
    if path is None:
        pytest.skip(f"EXTREMAL_DATA holds no {name}.xz")
    A, y = load_table(path)
    with lzma.open(path) as text:
        theirs, labels = datasets.load_svmlight_file(text, zero_based=False)
    assert A.shape == shape
    assert (sp.csr_array(theirs) != A).nnz == 0
    assert np.array_equal(y, labels)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1 3;1", "expected index:value after the label, got '3;1'"),
        ("1 3", "expected index:value after the label, got '3'"),
        ("1 3:", "expected index:value after the label, got '3:'"),
        ("1 :3", "expected index:value after the label, got ':3'"),
        ("1 2: 3", "expected index:value after the label, got '2:'"),
        ("1 2:3:4 5", "expected index:value after the label, got '2:3:4'"),
        ("1 a:3", "expected index:value after the label, got 'a:3'"),
        ("1 1.5:3", "expected index:value after the label, got '1.5:3'"),
        ("1 2:x", "expected index:value after the label, got '2:x'"),
        ("1 2:1_0", "expected index:value after the label, got '2:1_0'"),
        ("1 1_0:2", "expected index:value after the label, got '1_0:2'"),
        ("1 0:3", "expected an index from 1 to 2147483647, got '0:3'"),
        ("1 -4:3", "expected an index from 1 to 2147483647, got '-4:3'"),
        ("1 2147483648:3", "expected an index from 1 to 2147483647, got '2147483648:3'"),
        ("1 99999999999999999999:3", "expected an index from 1 to 2147483647"),
        ("1 5:1 3:1", "expected ascending indices, got '3:1' after index 5"),
        ("1 5:1 5:1", "expected ascending indices, got '5:1' after index 5"),
        ("1 qid:7 1:3", "'qid:7': ranking data with query ids are not supported"),
        ("cat 1:3", "expected a number as the label, got 'cat'"),
        ("1:3 2:4", "expected a number as the label, got '1:3'"),
        ("1,2 1:3", "expected a number as the label, got '1,2'"),
        ("1_0 1:3", "expected a number as the label, got '1_0'"),
        ("\x00\x01 1:3", "expected a number as the label"),
        ("1 2:nan", "expected finite numbers, got nan"),
        ("1 2:-inf", "expected finite numbers, got -inf"),
        ("1 2:1e999", "expected finite numbers, got inf"),
        ("nan 2:1", "expected finite numbers, got nan"),
    ],
)
def test_a_malformed_line_is_named(here, line, words):
    write("w8a", f"1 1:1\n\n# a comment\n{line}\n-1 1:2\n")
    assert refused("w8a", words).startswith("w8a:4: ")


def test_a_malformed_line_of_a_compressed_file_is_named(here):
    refused(write("w8a.xz", lzma.compress(b"1 1:1\n1 3;1\n")), "w8a.xz:2: expected index:value")


def test_a_long_wrong_field_is_cut(here):
    assert len(refused(write("d", "x" * 10_000))) < 200


def test_bytes_that_are_no_text_are_one_clear_error(here):
    refused(write("picture.png", bytes(range(128, 256)) * 10), "picture.png:1: expected a number as the label")


def test_libsvm_without_rows_or_features(here):
    refused(write("d", "\n# only a comment\n"), "holds no rows")
    refused(write("d", "1\n-1\n"), "labels, but no features")


def test_libsvm_takes_no_target(here):
    refused(write("d", TEXT), "leave out target", target=0)


# ---- .npz and .npy


@pytest.mark.parametrize("name", ["A", "X"])
def test_npz_of_arrays(here, name):
    A, y = sparse_sample()
    np.savez("d.npz", **{name: A.astype(np.float32), "y": y})
    B, z = load_table("d.npz")
    assert B.dtype == np.float32
    assert np.array_equal(B, A.astype(np.float32))
    assert np.array_equal(z, y)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
def test_npz_of_a_sparse_matrix(here, kind):
    A, y = sparse_sample()
    sp.save_npz("s.npz", sp.coo_matrix(A).asformat(kind))
    with np.load("s.npz") as held:
        np.savez("d.npz", **held, y=y)
    B, z = load_table("d.npz")
    assert isinstance(B, sp.csr_array)
    assert np.array_equal(B.toarray(), A)
    assert np.array_equal(z, y)
    np.save("y.npy", -y)
    for path in ("d.npz", "s.npz"):  # a target of its own file goes before the file's y
        assert np.array_equal(load_table(path, "y.npy")[1], -y)
    refused("s.npz", "holds no array y", "target=FILE.npy")


def test_npy_columns_and_target_file(here):
    M = np.arange(12.0).reshape(4, 3)
    np.save("m.npy", M)
    for target, column in ((None, 2), (0, 0), ("1", 1)):
        A, y = load_table("m.npy", target)
        assert np.array_equal(y, M[:, column])
        assert np.array_equal(A, np.delete(M, column, axis=1))
    np.save("y.npy", np.ones(4))
    A, y = load_table("m.npy", Path("y.npy"))
    assert np.array_equal(A, M)
    assert np.array_equal(y, np.ones(4))


def test_arrays_that_do_not_fit(here):
    A, y = sparse_sample()
    np.savez("d.npz", B=A, y=y)
    refused("d.npz", "expected an array A or X, got B, y")
    np.savez("d.npz", A=A, X=A, y=y)
    refused("d.npz", "expected an array A or X, got A, X, y")
    np.savez("d.npz", A=A, y=y[1:])
    refused("d.npz", "expected one target for each of the 40 rows", "(39,)")
    np.savez("d.npz", A=A, y=y)
    refused("d.npz", "target='y' is not a .npy file", target="y")
    np.savez("d.npz", A=A[0], y=y)
    refused("d.npz", "expected a matrix of real numbers", "(17,)")
    np.savez("d.npz", A=A.astype(complex), y=y)
    refused("d.npz", "expected a matrix of real numbers", "complex128")
    np.savez("d.npz", A=A[:0], y=y[:0])
    refused("d.npz", "expected a matrix of real numbers", "(0, 17)")
    np.save("m.npy", A[0])
    refused("m.npy", "expected a matrix", "(17,)")
    np.save("m.npy", A)
    refused("m.npy", "no column '17'", target=17)
    refused("m.npy", "no column 'price'", target="price")
    with pytest.raises(ex.InputError, match=r"^gone\.npy: cannot be read"):
        load_table("m.npy", "gone.npy")


def test_pickled_objects_are_never_read(here):
    class Bomb:
        def __reduce__(self):
            return (Path("exploded").touch, ())

    objects = np.array([[Bomb(), 1]], dtype=object)
    np.save("m.npy", objects, allow_pickle=True)
    refused("m.npy", "Object arrays cannot be loaded")
    np.savez("d.npz", A=objects, y=np.ones(1))
    refused("d.npz", "Object arrays cannot be loaded")
    np.savez("d.npz", A=np.ones((1, 2)), y=objects[0])
    refused("d.npz", "Object arrays cannot be loaded")
    assert not Path("exploded").exists()


def test_sparse_indices_out_of_bounds_are_refused(here):
    good = sp.csr_matrix(np.eye(3))
    for indices in ([0, 1, 7], [0, 1, -1]):
        parts = {"data": good.data, "indices": np.array(indices, np.int32), "indptr": good.indptr}
        np.savez("d.npz", format=b"csr", shape=(3, 3), y=np.ones(3), **parts)
        refused("d.npz", "truncated or damaged")


# ---- files that cannot be read


@pytest.mark.parametrize("name", ["d", "d.gz", "d.bz2", "d.xz", "d.csv", "d.csv.gz", "d.npz", "d.npy"])
def test_missing_directory_and_empty(here, name):
    refused(name, "cannot be read", "No such file")
    refused(write(name, b""), "the file is empty")
    Path(name).unlink()
    Path(name).mkdir()
    refused(name, "cannot be read", "Is a directory")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_no_permission(here):
    Path(write("d", TEXT)).chmod(0)
    refused("d", "Permission denied")


@pytest.mark.parametrize("kind", ["", ".csv"])
@pytest.mark.parametrize("suffix", PACKERS)
def test_truncated_compressed_text(here, suffix, kind):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((2000, 2)).tolist()
    text = "".join(f"{a},{b}\n" if kind else f"1 1:{a} 2:{b}\n" for a, b in rows)
    whole = PACKERS[suffix](text.encode())
    name = "d" + kind + suffix
    assert load_table(write(name, whole))[0].shape[0] == 2000
    for size in (5, len(whole) // 2, len(whole) - 5):
        refused(write(name, whole[:size]), "truncated or damaged")


@pytest.mark.parametrize("suffix", PACKERS)
def test_compressed_in_name_only(here, suffix):
    refused(write("d" + suffix, TEXT), f"d{suffix}: ")


def test_bits_flipped_in_a_compressed_file(here):
    whole = bytearray(gzip.compress(TEXT.encode() * 1000))
    whole[-8] ^= 0xFF  # the checksum
    refused(write("d.gz", bytes(whole)), "truncated or damaged (CRC check failed")
    whole[10] = 0xFF  # the first block: zlib itself gives up
    refused(write("d.gz", bytes(whole)), "truncated or damaged (Error -3")


def test_truncated_arrays(here):
    A, y = sparse_sample(n=500)
    np.savez_compressed("d.npz", A=A, y=y)
    np.save("m.npy", A)
    for name in ("d.npz", "m.npy"):
        whole = Path(name).read_bytes()
        for size in (3, 20, 100, len(whole) // 2, len(whole) - 8):
            refused(write(name, whole[:size]))


def test_damaged_or_disguised_arrays(here):
    A, y = sparse_sample(n=500)
    np.savez_compressed("d.npz", A=A, y=y)
    whole = bytearray(Path("d.npz").read_bytes())
    whole[len(whole) // 2] ^= 0xFF
    refused(write("d.npz", bytes(whole)), "truncated or damaged")
    refused(write("d.npz", TEXT), "truncated or damaged")
    refused(write("m.npy", TEXT), "cannot be read")
    refused(write("m.npy", bytes(whole)), "cannot be read")
    refused(write("d.npz.gz", gzip.compress(bytes(whole))), "decompress it first")


def test_damaged_sparse_npz(here):
    sp.save_npz("s.npz", sp.csr_matrix(np.eye(3)))
    with np.load("s.npz") as held:
        parts = dict(held)
    np.savez("d.npz", **{k: v for k, v in parts.items() if k != "indptr"}, y=np.ones(3))
    refused("d.npz", "cannot be read")
    np.savez("d.npz", **parts | {"format": np.array(b"xyz")}, y=np.ones(3))
    refused("d.npz", "cannot be read")


# ---- models


@pytest.fixture
def result():
    A, y = sparse_sample()
    return ex.minimize(ex.LinearModel(ex.Logistic(), A, y), ex.L1Ball(2.0), "sarah-fw", max_iter=5, tol=0)


ABOUT = {"loss": "logistic", "set": "l1:2", "method": "sarah-fw"}


def save(path, result):
    save_model(path, Model(result.x, **ABOUT), result)


def test_a_model_round_trips_without_pickle(here, result):
    save("model.npz", result)
    with np.load("model.npz", allow_pickle=False) as held:
        assert np.array_equal(held["x"], result.x)
        assert (float(held["value"]), float(held["gap"])) == (result.value, result.gap)
        assert (str(held["status"]), bool(held["converged"])) == ("max_iter", False)
        assert (int(held["n_iter"]), int(held["grads"]), int(held["lmos"])) == (5, result.calls.grads, result.calls.lmos)
        assert {name: str(held[name]) for name in ABOUT} == ABOUT
    assert os.listdir() == ["model.npz"]
    assert Path("model.npz").stat().st_mode & 0o777 == Path(write("other", "")).stat().st_mode & 0o777


def test_a_model_is_written_whole_or_not_at_all(here, result, monkeypatch):
    write("model.npz", "what was there")

    def fails(file, **arrays):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(models.np, "savez", fails)
    with pytest.raises(OSError, match="No space"):
        save("model.npz", result)
    assert os.listdir() == ["model.npz"]
    assert Path("model.npz").read_text() == "what was there"


def test_ctrl_c_while_saving_leaves_what_was_there(here, result, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(whole.os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save("model.npz", result)
    assert os.listdir() == []


def test_saving_overwrites_and_follows_links(here, result):
    Path("folder").mkdir()
    write("folder/model.npz", "old")
    Path("link.npz").symlink_to("folder/model.npz")
    save("link.npz", result)
    assert Path("link.npz").is_symlink()
    with np.load("folder/model.npz") as held:
        assert np.array_equal(held["x"], result.x)


def test_check_out(here, monkeypatch):
    assert check_out(Path("model.npz")) == Path("model.npz")
    assert check_out(Path(write("there", "")))
    with pytest.raises(ex.InputError, match=r"^gone/model\.npz: cannot be written, there is no directory gone"):
        check_out(Path("gone/model.npz"))
    for path in (here, Path(os.devnull)):
        with pytest.raises(ex.InputError, match="it is not a file"):
            check_out(path)
    monkeypatch.setattr(checks.os, "access", lambda path, mode: False)  # root may write everywhere, so it is made up
    with pytest.raises(ex.InputError, match="read-only"):
        check_out(Path("model.npz"))
