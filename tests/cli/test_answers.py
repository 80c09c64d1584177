"""What `extremal solve` prints of its coefficients, and the picture of them."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import refused, run, solve, table

from extremal.cli import answers, solving


def shown(*args):
    """The coefficients that are printed, by name, and the line below them."""
    result = run("solve", *args)
    assert result.exit_code in (0, 3), result.output
    block = result.stdout.partition("\ncoefficients ")[2].partition("\nintercept ")
    rows = [line.rsplit(maxsplit=1) for line in block[0].splitlines()[1:] if line.startswith("  ") and line[2] != " "]
    rest = [line.strip() for line in block[0].splitlines()[1:] if line.startswith("   ")]
    return {name.strip(): float(value) for name, value in rows}, rest, block[2].splitlines()[0].strip()


def test_coefficients_are_printed_by_name_the_largest_first(data):
    table()
    args = ("t.csv", "--loss", "squared", "--set", "free", "--intercept")
    said = json.loads(run("solve", *args, "--json").stdout)
    found, rest, level = shown(*args)
    assert (list(found), rest) == (["income", "debt", "age"], [])
    assert [*found.values(), float(level)] == pytest.approx([*said["x"], said["intercept"]], rel=1e-5)


def test_of_many_coefficients_the_largest_are_printed(data):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((80, 50))
    np.savez("d.npz", A=A, y=np.sign(A @ rng.standard_normal(50)))
    x = np.array(json.loads(run("solve", "d.npz", "--set", "l2:1", "--json").stdout)["x"])
    found, rest, level = shown("d.npz", "--set", "l2:1")
    assert list(found) == [f"x{j}" for j in np.argsort(-np.abs(x))[:20]]
    assert (rest, level) == (["and 30 more, in --json or --out"], "none (--intercept fits one)")
    found, rest, _ = shown("d.npz", "--set", "l1:0.1")
    assert rest == [f"the other {50 - len(found)} are 0"]
    assert all(found.values())


def test_coefficients_of_classes_are_named_by_both(data):
    Path("k.csv").write_text("a,b,kind\n" + "1,2,u\n3,1,v\n0,1,w\n" * 5)
    found, _, level = shown("k.csv", "--set", "l1:2", "--loss", "multinomial", "--intercept")
    assert set(found) == {f"{name} ({kind})" for name in "ab" for kind in "uvw"}
    assert [part.split()[1] for part in level.split(", ")] == ["(u)", "(v)", "(w)"]


@pytest.mark.parametrize(("name", "start"), [("p.png", b"\x89PNG"), ("p.PDF", b"%PDF"), ("p.svg", b"<?xml")])
def test_plot_draws_the_coefficients(data, name, start):
    pytest.importorskip("matplotlib")
    pytest.importorskip("sklearn")
    table()
    Path("t.csv").write_text(Path("t.csv").read_text().replace("debt", r"$debt\x$"))  # no formula
    assert run("solve", "t.csv", "--loss", "squared", "--set", "box:-1,1", "--plot", name).exit_code == 0
    assert Path(name).read_bytes().startswith(start)


def test_a_picture_that_cannot_be_drawn_is_refused_before_the_run(data, monkeypatch):
    monkeypatch.setattr(solving, "read_table", lambda *_: pytest.fail("the file was read"))
    refused(solve("--plot", "p.jpg"), "--plot p.jpg: the name of a picture ends in .png, .pdf or .svg")
    refused(solve("--plot", "gone/p.png"), "there is no directory gone")
    monkeypatch.setattr(answers, "find_spec", lambda module: None if module == "matplotlib" else sys)
    refused(solve("--plot", "p.png"), "--plot needs matplotlib: pip install 'extremal[demo]'")
