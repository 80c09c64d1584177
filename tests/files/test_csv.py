"""CSV: separators, headers, targets, True and False; a cell that is no number is named by line and column."""

import numpy as np
import pytest
from text_files import TABLE, refused, write

from extremal.files.tables import load_table


def test_csv_with_and_without_header(here):
    for text in (TABLE, TABLE.partition("\n")[2], "1, 2 ,3\r\n\r\n4,5,6\r\n", '"1","2","3"\n4,5,6', "\ufeff" + TABLE):
        A, y = load_table(write("t.csv", text))
        assert A.dtype == y.dtype == np.float64
        assert A.tolist() == [[1, 2], [4, 5]]
        assert y.tolist() == [3, 6]


@pytest.mark.parametrize("target", ["age", 0, "0"])
def test_csv_target_by_name_or_number(here, target):
    A, y = load_table(write("t.csv", TABLE), target)
    assert A.tolist() == [[2, 3], [5, 6]]
    assert y.tolist() == [1, 4]


def test_csv_text_labels_stay_text(here):
    A, y = load_table(write("iris.csv", "5.1,3.5,setosa\n6.2,2.9,vir_ginica\n"))
    assert A.tolist() == [[5.1, 3.5], [6.2, 2.9]]
    assert y.tolist() == ["setosa", "vir_ginica"]
    _, y = load_table(write("iris.csv", "species,a,b\n setosa ,1,2\nother,3,4\n"), "species")
    assert y.tolist() == ["setosa", "other"]


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a,b,y\n1,2,3\n1,2\n", 3, "expected 3 columns as in the first row, got 2"),
        ("a,b,y\n1,2,3\n\n1,2,3,4\n", 4, "expected 3 columns as in the first row, got 4"),
        ("a,b,y\n1,2,3\n1,x,3\n", 3, "column 'b' holds 'x', not a number"),
        ("a,b,y\n1,,3\n", 2, "column 'b' is empty"),
        ("a,b,y\n1,1_0,3\n", 2, "column 'b' holds '1_0', not a number"),
        (
            "a,b,y\n1,2,3\n1,2,cat\n",
            3,
            "column 'y' holds 'cat', not a number; the target is the last column, 'y'",
        ),
        ("a,b,y\n1,2,cat\n1,2,\n", 3, "column 'y' is empty"),
        ("a,b,y\n1,2,3\n1,nan,3\n", 3, "column 'b' holds nan, not a finite number"),
        ("a,b,y\n1,2,3\n1,2,inf\n", 3, "column 'y' holds inf, not a finite number"),
        ("1,2,nan\n", 1, "column 2 holds nan, not a finite number"),
        ("1,x,3\n4,5,6\n", 1, "column 1 holds 'x', not a number (a row with numbers in it is not taken for a header)"),
        (",a,y\n0,1,2\n", 1, "column 0 has no name"),
        ("a;y\n1,5;2\n", 2, "column 'a' holds '1,5', not a number (write it with a point, 1.5)"),
    ],
)
def test_a_malformed_csv_row_is_named(here, text, place, words):
    assert refused(write("t.csv", text), words).startswith(f"t.csv:{place}: ")


def test_a_target_that_was_named_is_not_explained(here):
    words = refused(write("t.csv", "city,y\nRome,1\n"), "t.csv:2: column 'city' holds 'Rome', not a number", target="y")
    assert words.endswith("not a number")


@pytest.mark.parametrize("text", ["a,b,y\nTrue,2,3\nfalse,5,TRUE\n", "a,b,y\n1,2,3\n False ,5,1\n"])
def test_csv_true_and_false_are_numbers(here, text):
    A, y = load_table(write("t.csv", text))
    assert (A.tolist(), y.tolist()) == ([[1, 2], [0, 5]], [3, 1])


def test_csv_true_and_false_in_a_target_of_labels_stay_labels(here):
    A, y = load_table(write("t.csv", "True,False,True\nFalse,False,False\n"))
    assert (A.tolist(), y.tolist()) == ([[1, 0], [0, 0]], ["True", "False"])
    assert load_table(write("t.csv", "true,guess\n1,2\n"))[0].tolist() == [[1]]


@pytest.mark.parametrize(
    "text", ["a;b;y\n1;2;3\n4;5;6\n", "a\tb\ty\n1\t2\t3\n4\t5\t6\n", '\n"a, b";c;y\n1;2;3\n4;5;6', "1;2;3\n4;5;6"]
)
@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
def test_csv_with_another_separator(here, text, name):
    A, y = load_table(write(name, text))
    assert (A.tolist(), y.tolist()) == ([[1, 2], [4, 5]], [3, 6])
    refused(write(name, text.replace("5", "x")), f"{name}:{3 + text.startswith(chr(10)) - text.startswith('1')}: column ")


def test_csv_shapes_and_targets_that_do_not_fit(here):
    refused(write("t.csv", "a\n1\n2\n"), "expected at least two columns")
    refused(write("t.csv", "1|2|3\n4|5|6\n"), "expected at least two columns")
    refused(write("t.csv", "a,b\n"), "no rows below its header")
    refused(write("t.csv", "\n,,\n"), "holds no rows")
    refused(write("t.csv", TABLE), "no column 'size'", "from 0 to 2", "age, height, price", target="size")
    refused("t.csv", "no column '3'", target=3)
    refused("t.csv", "no column '-1'", target=-1)
    refused(write("t.csv", "a,a,b\n1,2,3\n"), "2 columns are named 'a'", target="a")
    refused(write("t.csv", 'a,b\n1,"' + "2" * 200_000 + "\n"), "t.csv:2: field larger")
