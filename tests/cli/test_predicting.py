"""Predictions on the command line: columns by name, classes, probabilities, and what does not fit."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from command_line import predicted, problem, refused, run, solve, solved, table

from extremal.files import reading


def test_columns_go_by_name_whatever_their_order(data):
    A, _ = table()
    said = solved("--set", "nonneg", "--loss", "squared", "--intercept", "--out", "m.npz")
    expected = A @ said["x"] + said["intercept"]
    table("other.csv", order=(2, 0, 1))
    assert predicted("m.npz", "other.csv")["value"] == pytest.approx(expected, rel=1e-12)
    np.save("A.npy", A)
    np.savez("A.npz", A=A)
    for name in ("A.npy", "A.npz"):
        assert predicted("m.npz", name)["value"] == pytest.approx(expected, rel=1e-12)
    table("bare.csv", header=False)
    refused(
        run("predict", "m.npz", "bare.csv"), "bare.csv: expected 3 columns", "got 4; name the column that is not a feature by"
    )
    assert predicted("m.npz", "bare.csv", "--target", "3")["value"] == pytest.approx(expected, rel=1e-12)
    assert run("predict", "m.npz", "A.npy", "--out", "p.csv").stdout == ""
    assert len(Path("p.csv").read_text().splitlines()) == 81
    assert json.loads(run("predict", "m.npz", "A.npy", "--json").stdout)["value"] == pytest.approx(expected, rel=1e-12)


def test_classes_and_probabilities_are_those_of_the_estimators(data):
    from extremal.sklearn import ConstrainedMultinomialRegression

    A, _ = table(n=120)
    y = np.array(["c", "a", "b"])[np.where(A[:, 0] > 0.5, 0, np.where(A[:, 1] > 0, 1, 2))]
    rows = [["u", "v", "w", "kind"], *([*a, k] for a, k in zip(A.tolist(), y, strict=True))]
    Path("k.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    args = ("--loss", "multinomial", "--intercept", "--tol", 1e-5, "--passes", 1000, "--out", "m.npz")
    result = run("solve", "k.csv", "--set", "groups:5", *args, "--json")
    assert result.exit_code == 0, result.output
    said = predicted("m.npz", "k.csv")
    model = ConstrainedMultinomialRegression("groups:5", tol=1e-5).fit(A, y)
    assert list(said) == ["class", "probability of a", "probability of b", "probability of c"]
    shares = np.column_stack([said[f"probability of {k}"] for k in "abc"])
    np.testing.assert_allclose(shares, model.predict_proba(A), atol=2e-2)
    assert np.mean(said["class"] == model.predict(A)) > 0.97


def test_two_classes_keep_their_labels(data):
    for positive, expected in ((["--positive", "-1"], {"-1", "1.0"}), ([], {"-1.0", "1.0"})):
        assert run("solve", "data", "--set", "l1:2", "--out", "m.npz", *positive).exit_code == 0
        result = run("predict", "m.npz", "data")
        head, *rows = result.stdout.splitlines()
        assert {row.split(",")[0] for row in rows} == expected
        assert set(head.split(",")[1:]) == {f"probability of {label}" for label in expected}
    _, y = problem()
    right = [row.split(",")[0] for row in rows] == np.array([str(v) for v in y])
    assert right.mean() > 0.7


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["m.npz", "other.csv"], ["other.csv: has no column 'income' (2 more", "its columns are 'a, b, c, d'"]),
        (["m.npz", "wide"], ["wide: expected 3 features as in the model, got 8"]),
        (["m.npz", "m.npz"], ["m.npz: expected an array A or X"]),
        (["other.csv", "t.csv"], ["other.csv: this is not a model of `extremal solve --out`: it is another kind of file"]),
        (["m.joblib", "t.csv"], ["m.joblib: this is not a model of `extremal solve --out`: it is a pickle"]),
        (["cut.npz", "t.csv"], ["cut.npz: the file is truncated or damaged"]),
        (["m.npz", "t.csv", "--out", "./t.csv"], ["--out t.csv: this file is read by the same command"]),
        (["m.npz", "t.csv", "--out", "m.npz"], ["--out m.npz: this file is read by the same command"]),
        (["no.npz", "t.csv"], ["no.npz: this is not a model"]),
        (["odd.npz", "t.csv"], ["odd.npz: this is not a usable model"]),
        (["gone.npz", "t.csv"], ["gone.npz: cannot be read"]),
        (["m.npz", "gone.csv"], ["gone.csv: cannot be read"]),
        (["m.npz", "t.csv", "--out", "gone/p.csv"], ["there is no directory gone"]),
    ],
)
def test_what_does_not_fit_is_one_line(data, args, words):
    table()
    solved("--set", "nonneg", "--loss", "squared", "--out", "m.npz")
    Path("other.csv").write_text("a,b,c,d\n1,2,3,4\n")
    Path("m.joblib").write_bytes(pickle.dumps({"x": 1}))
    Path("cut.npz").write_bytes(Path("m.npz").read_bytes()[:-40])
    data.rename("wide")
    np.savez("no.npz", A=np.eye(3))
    np.savez("odd.npz", x=np.array([1.0, np.nan]), loss="squared")
    refused(run("predict", *args), *words)


def test_features_that_no_memory_can_hold(data, monkeypatch):
    Path("wide").write_text("1 1:1\n-1 2147483647:1\n")
    monkeypatch.setattr(reading, "free_memory", lambda: 10**9)
    refused(run("solve", "wide", "--set", "l1:1"), "wide: 2147483647 features are more than the memory can hold")
    monkeypatch.setattr(reading, "free_memory", lambda: None)  # where the system does not say
    assert run("solve", "data", "--set", "l1:2").exit_code == 0


def test_methods_that_draw_batches_take_no_intercept(data):
    refused(solve("--intercept"), "batch")
