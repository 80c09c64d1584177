"""Whatever rows come from, the shards hold these rows; and what is wrong with a source names it and the row."""

import bz2
import gzip
import lzma
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from shard_rows import built, rows

import extremal as ex
from extremal.files.shards import arrow, chunks, intake, sources
from extremal.files.shards.build import build
from extremal.support import lazy

A, Y = rows()
W = np.arange(1, len(Y) + 1) / 4
LABELS = np.where(Y > 0, "yes", "no")


def libsvm_text(A, y):
    pairs = (" ".join(f"{j + 1}:{v}" for j, v in enumerate(row) if v) for row in A.tolist())
    return "".join(f"{label} {row}\n" for label, row in zip(y.tolist(), pairs, strict=True))


def csv_text(A, y, w=None, header=True):
    columns = np.column_stack([A, y] if w is None else [A, w, y])
    names = ",".join([*"abcdefg", *([] if w is None else ["w"]), "price"]) + "\n"
    return names * header + "".join(",".join(map(str, row)) + "\n" for row in columns.tolist())


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Chunks of some rows, so that every source has several."""
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 2000)
    monkeypatch.setattr(arrow, "CHUNK_BYTES", 2000)
    monkeypatch.setattr(sources, "FIELDS_AT_ONCE", 300)
    monkeypatch.setattr(sources, "TEXT_AT_ONCE", 1000)


def same(found, kind="csr", y=Y, w=None, dtype="float64"):
    manifest, B, z, v = found
    assert (manifest.kind, manifest.n, manifest.d, manifest.dtype, manifest.shuffled) == (kind, *A.shape, dtype, False)
    assert manifest.nnz == (np.count_nonzero(A) if kind == "csr" else A.size)
    np.testing.assert_array_equal(B, A)
    np.testing.assert_array_equal(z, y)
    np.testing.assert_array_equal(v, w) if w is not None else None
    assert (v is None) == (w is None)
    return manifest


@pytest.mark.parametrize(
    ("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_libsvm_text(tmp_path, suffix, pack):
    (tmp_path / f"t.svm{suffix}").write_bytes(pack(libsvm_text(A, Y).encode()))
    manifest = same(built(tmp_path / f"t.svm{suffix}", tmp_path / "s"))
    assert manifest.targets.classes == (-1.0, 1.0)


def test_patterns_and_lists(tmp_path):
    for i in range(4):
        (tmp_path / f"part-{i}.svm").write_text(libsvm_text(A[50 * i : 50 * i + 50], Y[50 * i : 50 * i + 50]))
    same(built(str(tmp_path / "part-*.svm"), tmp_path / "s"))
    same(built([tmp_path / f"part-{i}.svm" for i in range(4)], tmp_path / "t"))
    same(built([str(tmp_path / "part-[01].svm"), str(tmp_path / "part-[23].svm")], tmp_path / "u"))


def test_the_number_of_columns_of_text(tmp_path):
    (tmp_path / "t").write_text("1 2:3\n0 5:1\n")
    assert build(tmp_path / "t", tmp_path / "s").d == 5
    assert build(tmp_path / "t", tmp_path / "u", d=9).d == 9
    with pytest.raises(ex.InputError, match="t:2: expected columns below 4, got 4"):
        build(tmp_path / "t", tmp_path / "v", d=4)


@pytest.mark.parametrize("header", [True, False])
def test_csv(tmp_path, header):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(csv_text(A, Y, header=header).encode()))
    manifest = same(built(tmp_path / "t.csv.gz", tmp_path / "s"), "dense")
    assert manifest.names == (tuple("abcdefg") if header else None)


@pytest.mark.parametrize("names", [("price", "w"), (8, 7), ("8", "7"), (None, "w")])
def test_csv_with_weights(tmp_path, names):
    (tmp_path / "t.csv").write_text(csv_text(A, Y, W))
    manifest = same(built(tmp_path / "t.csv", tmp_path / "s", target=names[0], weights=names[1]), "dense", w=W)
    assert manifest.names == tuple("abcdefg")
    assert manifest.weights.total == W.sum()


@pytest.mark.parametrize("shuffle", [False, True])
def test_labels_that_are_text(tmp_path, shuffle):
    """Numbered in sorted order, whichever comes first."""
    (tmp_path / "t.csv").write_text(csv_text(A, LABELS[:, None].astype(object)))
    manifest, B, y, _ = built(tmp_path / "t.csv", tmp_path / "s", shuffle=shuffle, shard_bytes=3000)
    assert manifest.targets.classes == ("no", "yes")
    assert manifest.targets.text
    place = B[:, -1].astype(int) - 1  # the last column names the row
    np.testing.assert_array_equal(np.array(manifest.targets.classes)[y.astype(int)], LABELS[place])


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npz(tmp_path, save, order):
    save(tmp_path / "t.npz", X=np.array(A, order=order), y=Y, w=W)
    same(built(tmp_path / "t.npz", tmp_path / "s", weights="w"), "dense", w=W)


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array, sp.coo_array])
def test_sparse_npz(tmp_path, make):
    sp.save_npz(tmp_path / "a.npz", make(A))
    held = dict(np.load(tmp_path / "a.npz"))
    np.savez(tmp_path / "t.npz", y=Y, **held)
    same(built(tmp_path / "t.npz", tmp_path / "s"))
    np.save(tmp_path / "y.npy", Y)
    same(built(tmp_path / "a.npz", tmp_path / "u", target=str(tmp_path / "y.npy")))


@pytest.mark.parametrize(
    "change",
    [
        {"indptr": np.arange(201)[::-1]}, {"indptr": np.arange(100)}, {"indptr": np.full(201, 10**9)},
        {"indptr": np.arange(201) * 0.5}, {"indices": np.zeros(3, int)},
        {"shape": np.array([10**15, 7])}, {"shape": np.array([200, -1])}, {"shape": np.array(3)},
        {"format": np.array([], "S3")}, {"format": np.array(7)}, {"format": np.array(b"xyz")}, {"y": np.array(3.0)}, {"y": Y[1:]},
    ],
)  # fmt: skip
def test_sparse_npz_that_is_none(tmp_path, change):
    sp.save_npz(tmp_path / "a.npz", sp.csr_array(A))
    np.savez(tmp_path / "t.npz", **{"y": Y, **dict(np.load(tmp_path / "a.npz"))} | change)
    with pytest.raises(ex.InputError, match=r"t.npz"):
        build(tmp_path / "t.npz", tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_npy(tmp_path):
    np.save(tmp_path / "t.npy", np.column_stack([A, Y]))
    same(built(tmp_path / "t.npy", tmp_path / "s"), "dense")
    np.save(tmp_path / "x.npy", A)
    np.save(tmp_path / "y.npy", Y)
    same(built(tmp_path / "x.npy", tmp_path / "u", target=str(tmp_path / "y.npy")), "dense")


# ---- arrays


def test_arrays(tmp_path):
    same(built((A, Y), tmp_path / "a"), "dense")
    same(built((A, Y, W), tmp_path / "b"), "dense", w=W)
    same(built((A.tolist(), Y.tolist()), tmp_path / "c"), "dense")
    same(built((np.asfortranarray(A), Y.astype(int)), tmp_path / "d"), "dense")
    same(built((A.astype(np.float32), Y), tmp_path / "e"), "dense", dtype="float32")
    same(built(np.column_stack([Y, A]), tmp_path / "f", target=0), "dense")
    mapped = np.memmap(tmp_path / "m", np.float64, "w+", shape=A.shape)
    mapped[:] = A
    same(built((mapped, Y), tmp_path / "g"), "dense")


def test_types(tmp_path):
    same(built((A, Y), tmp_path / "a", dtype="float32"), "dense", dtype="float32")
    same(built((A.astype(np.float32), Y), tmp_path / "b", dtype="float64"), "dense")
    assert build((np.eye(3, dtype=bool), [1, 2, 3]), tmp_path / "c").dtype == "float64"
    with pytest.raises(ex.InputError, match="row 1: expected finite numbers, got 1e\\+300"):
        build((np.array([[1.0], [1e300]]), [1, 2]), tmp_path / "d", dtype="float32")
    with pytest.raises(ex.InputError, match="dtype"):
        build((A, Y), tmp_path / "d", dtype="int8")


@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array])
def test_sparse_arrays(tmp_path, make):
    same(built((make(A), Y), tmp_path / "s"))


def test_entries_out_of_order_and_twice(tmp_path):
    """As `CSR` takes them: sorted, and entries of one place summed."""
    X = sp.csr_array((np.array([1.0, 2.0, 3.0, 4.0]), np.array([2, 0, 2, 1]), np.array([0, 3, 3, 4])), shape=(3, 4))
    manifest, B, _, _ = built((X, [1, 2, 3]), tmp_path / "s")
    np.testing.assert_array_equal(B, X.toarray())
    assert manifest.nnz == 3


def test_sparse_rows_that_are_none(tmp_path):
    X = sp.csr_array(A)
    X.indices[5] = 100
    with pytest.raises(ex.InputError, match=r"row .*: expected columns from 0 to 6, got 100"):
        build((X, Y), tmp_path / "s")
    X = sp.csr_array(A)
    X.indptr[100] = 10**6
    with pytest.raises(ex.InputError, match="not sparse rows"):
        build((X, Y), tmp_path / "s")


def test_zarr(tmp_path):
    zarr = pytest.importorskip("zarr")
    X = zarr.open(str(tmp_path / "x.zarr"), mode="w", shape=A.shape, chunks=(30, 3), dtype="f8")
    X[:] = A
    same(built((X, Y), tmp_path / "s"), "dense")


def test_h5py(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        X, y = file.create_dataset("X", data=A, chunks=(13, 7)), file.create_dataset("y", data=Y)
        same(built((X, y), tmp_path / "s"), "dense")


def test_frames(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(A, columns=list("abcdefg"), index=np.arange(1000, 1200))
    manifest = same(built((frame, pandas.Series(Y)), tmp_path / "s"), "dense")
    assert manifest.names == tuple("abcdefg")


def test_iterators(tmp_path):
    some = [(A[:70], Y[:70]), (A[70:70], Y[70:70]), (A[70:], Y[70:])]
    same(built(some, tmp_path / "a"), "dense")
    same(built(iter(some), tmp_path / "b"), "dense")
    same(built(((sp.csr_array(X), y) for X, y in some[::2]), tmp_path / "c"))
    same(built(((A[i : i + 1], Y[i : i + 1], W[i : i + 1]) for i in range(len(Y))), tmp_path / "d"), "dense", w=W)


def test_several_targets_for_each_row(tmp_path):
    T = np.column_stack([Y, 2.5 * Y])
    manifest = same(built((A, T), tmp_path / "s"), "dense", y=T)
    assert (manifest.targets.outputs, manifest.targets.classes, manifest.targets.whole) == (2, None, False)


def test_classes_are_whole_numbers_if_there_are_few(tmp_path):
    X = np.ones((2000, 1))
    assert build((X, np.arange(2000) % 1000), tmp_path / "a").targets.classes == tuple(range(1000))
    assert build((X, np.arange(2000) % 1001), tmp_path / "b").targets.classes is None
    assert build((X, np.arange(2000) % 3 + 0.5), tmp_path / "c").targets.classes is None
    assert build((X, np.full(2000, -0.0)), tmp_path / "d").targets.classes == (0.0,)


# ---- Arrow


@pytest.fixture
def table():
    pyarrow = pytest.importorskip("pyarrow")
    return pyarrow.table({**{name: A[:, j] for j, name in enumerate("abcdefg")}, "w": W, "label": LABELS, "price": Y})


def test_parquet(tmp_path, table):
    parquet = pytest.importorskip("pyarrow.parquet")
    for i in range(2):
        parquet.write_table(table.drop(["label", "w"]).slice(100 * i, 100), tmp_path / f"{i}.parquet", row_group_size=17)
    manifest = same(built(str(tmp_path / "*.parquet"), tmp_path / "s"), "dense")
    assert manifest.names == tuple("abcdefg")


def test_streams(tmp_path, table):
    same(built(table.drop(["label"]), tmp_path / "a", target="price", weights="w"), "dense", w=W)
    manifest, _, y, _ = built(table.drop(["price"]), tmp_path / "b", target="label", weights="w")
    assert manifest.targets.classes == ("no", "yes")
    np.testing.assert_array_equal(y, LABELS == "yes")
    coded = table.set_column(8, "label", table["label"].dictionary_encode()).drop(["price", "w"])
    np.testing.assert_array_equal(built(coded, tmp_path / "c", target="label")[2], LABELS == "yes")


def test_polars(tmp_path, table):
    polars = pytest.importorskip("polars")
    same(built(polars.from_arrow(table.drop(["label", "w"])), tmp_path / "s"), "dense")


def test_sparse_columns_of_arrow(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    X = sp.csr_array(A)
    entries = {"indices": np.split(X.indices, X.indptr[1:-1]), "values": np.split(X.data, X.indptr[1:-1])}
    table = pyarrow.table({**{name: [a.tolist() for a in lists] for name, lists in entries.items()}, "y": Y, "w": W})
    same(built(table.drop(["w"]), tmp_path / "a"))
    same(built(table, tmp_path / "b", target="y", weights="w"), w=W)
    with pytest.raises(ex.InputError, match="beside indices and values"):
        build(table, tmp_path / "c")


def test_holes_in_columns(tmp_path, table):
    pyarrow = pytest.importorskip("pyarrow")
    holed = pyarrow.array([*Y[:150], None, *Y[151:]])
    with pytest.raises(ex.InputError, match="row 150: column 'price' has no value"):
        build(table.drop(["label", "w"]).set_column(7, "price", holed), tmp_path / "s")
    with pytest.raises(ex.InputError, match="column 'label': expected numbers, got string"):
        build(table, tmp_path / "s", target="price")


def test_without_pyarrow(tmp_path):
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    absent = mock.patch.object(arrow, "imported", side_effect=lambda name: lazy.imported("no_such_package"))
    with absent, pytest.raises(ex.InputError, match=r"t.parquet .*pip install 'extremal\[shards\]'"):
        build(tmp_path / "t.parquet", tmp_path / "s")


def test_damaged_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "t.parquet").write_bytes(b"PAR1" + bytes(100))
    with pytest.raises(ex.InputError, match=r"t.parquet: the file is truncated or damaged"):
        build(tmp_path / "t.parquet", tmp_path / "s")


# ---- mistakes


def bad(place, value):
    B = A.copy()
    B[place] = value
    return B


MISTAKES = {
    "nan": (lambda: (bad((170, 2), np.nan), Y), "row 170: expected finite numbers, got nan in column 2"),
    "infinity": (lambda: (sp.csr_array(bad((171, 6), np.inf)), Y), "row 171: expected finite numbers, got inf"),
    "a target": (lambda: (A, np.where(np.arange(200) == 150, np.nan, Y)), "row 150: expected a finite target, got nan"),
    "a weight": (lambda: (A, Y, np.where(np.arange(200) == 190, -1, W)), "row 190: expected a weight .*-1"),
    "a target too few": (lambda: (A, Y[:-1]), "one target for each of the 200 rows"),
    "a weight too few": (lambda: (A, Y, W[:-1]), "one weight for each of the 200 rows"),
    "no matrix": (lambda: (Y, Y), "expected a matrix"),
    "complex numbers": (lambda: (A * 1j, Y), "real numbers"),
    "text": (lambda: (A.astype(str), Y), "real numbers"),
    "two widths": (lambda: [(A, Y), (A[:, 1:], Y)], "row 200: expected 7 columns, got 6"),
    "two kinds": (lambda: [(A, Y), (sp.csr_array(A), Y)], "row 200: rows: expected 'dense' as before, got 'csr'"),
    "weights once": (lambda: [(A, Y, W), (A, Y)], "row 200: weights"),
    "two types": (lambda: [(A.astype(np.float32), Y), (A, Y)], "row 200: expected float32 as before, got float64"),
    "text after numbers": (lambda: [(A, Y), (A, LABELS)], "row 200: labels that are text"),
    "numbers after text": (lambda: [(A, LABELS), (A, Y)], "row 200: labels that are text"),
    "an empty label": (
        lambda: (A, np.where(np.arange(200) == 160, "", LABELS)),
        "row 160: expected a text",
    ),
    "labels of two kinds": (lambda: (A, np.array([*LABELS[:-1], 3], object)), "row 199: expected a text"),
    "an array alone": (lambda: A, "an array has no targets"),
    "no pairs": (lambda: [A, Y], "ndarray instead of a pair"),
    "a number": (lambda: 3, "must be files of LIBSVM text"),
    "nothing": (list, "no rows"),
    "no columns": (lambda: (np.empty((3, 0)), [1, 2, 3]), "expected 1 to 2147483647 columns, got 0"),
    "no such file": (lambda: "no such file", "no such file: cannot be read"),
    "no match": (lambda: "no such folder/*.csv", "no file has such a name"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(tmp_path, name):
    make, words = MISTAKES[name]
    with pytest.raises(ex.InputError, match=words):
        build(make(), tmp_path / "s")
    assert not (tmp_path / "s").exists()


TEXTS = {
    "t.svm": ("1 1:2\n1 1:x\n", r"t.svm:2: expected index:value"),
    "inf.svm": ("1 1:2\n" * 300 + "1 1:1e999\n", r"inf.svm:301: expected finite numbers"),
    "labels.svm": ("1\n2\n", "targets, but no features"),
    "comments.svm": ("# nothing\n", r"comments.svm: the file holds no rows"),
    "t.csv": ("a,b\n1,2\n" + "3,4\n" * 300 + "3\n", r"t.csv:303: expected 2 columns"),
    "mixed.csv": ("a,b\n" + "1,2\n" * 400 + "1,x\n" * 400, "column 'b' holds 'x'|labels that are text"),
    "none.csv": ("a,b\n", r"none.csv: the file holds no rows below its header"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_mistakes_in_text(tmp_path, name):
    text, words = TEXTS[name]
    (tmp_path / name).write_text(text)
    with pytest.raises(ex.InputError, match=words) as caught:
        build(tmp_path / name, tmp_path / "s")
    assert name in str(caught.value) or name == "labels.svm"


def test_labels_without_end(tmp_path, monkeypatch):
    """Names of persons, say: they would all be held in memory."""
    monkeypatch.setattr(intake, "MOST_LABELS", 100)
    build((A, [f"person {i % 100}" for i in range(200)]), tmp_path / "s")
    with pytest.raises(ex.InputError, match="row 100: more than 100 different labels"):
        build((A, [f"person {i}" for i in range(200)]), tmp_path / "t")


def test_columns_that_are_not_there(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c\n1,2,3\n")
    for options in ({"target": "x"}, {"weights": "x"}, {"target": "a", "weights": "a"}, {"target": 3}):
        with pytest.raises(ex.InputError, match=r"t.csv: "):
            build(tmp_path / "t.csv", tmp_path / "s", **options)
    (tmp_path / "t.svm").write_text("1 1:1\n")
    for options in ({"target": "x"}, {"weights": "x"}):
        with pytest.raises(ex.InputError, match=r"t.svm: LIBSVM text"):
            build(tmp_path / "t.svm", tmp_path / "s", **options)


def test_what_compressed_files_may_hold(tmp_path):
    (tmp_path / "t.svm.gz").write_bytes(gzip.compress(libsvm_text(A, Y).encode()))
    with pytest.raises(ex.InputError, match="more than 100 bytes"):
        build(tmp_path / "t.svm.gz", tmp_path / "s", max_bytes=100)


@pytest.mark.parametrize("name", ["t.svm", "t.csv", "t.npz", "t.npy", "arrays"])
def test_progress(tmp_path, name):
    """It is told after each chunk, of which there are several here."""
    (tmp_path / "t.svm").write_text(libsvm_text(A, Y))
    (tmp_path / "t.csv").write_text(csv_text(A, Y))
    np.savez(tmp_path / "t.npz", X=A, y=Y)
    np.save(tmp_path / "t.npy", np.column_stack([A, Y]))
    told = {"read": [], "written": []}
    source = (A, Y) if name == "arrays" else tmp_path / name
    how = {"max_memory": 8 * 2000, "shard_bytes": 2000}
    build(source, tmp_path / "s", **how, progress=lambda stage, *seen: told[stage].append(seen))
    for stage, total in (("read", None), ("written", 200)):
        seen = told[stage]
        assert seen[-1][0] == 200
        assert [(n, size) for n, size, _ in seen] == sorted((n, size) for n, size, _ in seen)
        assert len(seen) > 3
        assert {all_rows for *_, all_rows in seen} == {total}
    seen = told["read"]
    assert name != "t.svm" or seen[-1][1] == (tmp_path / name).stat().st_size


def test_the_index_of_a_frame_is_no_feature(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"a": np.arange(6.0), "b": np.ones(6), "y": [0.0, 1.0] * 3})
    few = frame[frame["a"] > 1]
    manifest = build(few, tmp_path / "rows", target="y", shuffle=False)
    assert manifest.names == ("a", "b")
    few.to_parquet(tmp_path / "rows.parquet")
    assert build(tmp_path / "rows.parquet", tmp_path / "other", target="y", shuffle=False).names == ("a", "b")
