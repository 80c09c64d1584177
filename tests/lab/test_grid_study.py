"""The study of the grid: each number is that of a run, parts that do not go together are refused, and finished runs are kept."""

from __future__ import annotations

import math

import numpy as np
import pytest
from panels_by_hand import libsvm
from rich.console import Console

import extremal as ex
from extremal_lab.reproduction import grid, sources, studies
from extremal_lab.reproduction.plan import Work
from extremal_lab.reproduction.store import Store


@pytest.fixture
def small(monkeypatch):
    """Two estimators, two moves, three steps."""
    for name, kept in (
        ("ESTIMATORS", ("Full", "Saga, curved")), ("MOVES", ("VertexMove", "InFacePairwise")),
        ("STEPS", ("OpenLoop", "BatchCurvature", "SelfConcordant")),
    ):  # fmt: skip
        monkeypatch.setattr(grid, name, {part: getattr(grid, name)[part] for part in kept})


def found(file, folder):
    with open(folder / "said", "w") as said:
        (finding,) = studies.run_studies(["grid"], Work(Store(folder / "kept")), Console(file=said), quick=True, data=str(file))
    return finding, (folder / "said").read_text()


def test_the_grid_has_a_number_for_every_cell_or_a_reason(small, file, tmp_path):
    finding, said = found(file, tmp_path)
    (table,) = finding.page["tables"]
    assert table["columns"] == ["estimator", "move", "OpenLoop", "BatchCurvature", "SelfConcordant"]
    assert [row[:2] for row in table["rows"]] == [
        ["Full", "VertexMove"], ["Full", "InFacePairwise"], ["Saga, curved", "VertexMove"], ["Saga, curved", "InFacePairwise"],
    ]  # fmt: skip
    cells = {(row[0], row[1], step): cell for row in table["rows"] for step, cell in zip(grid.STEPS, row[2:], strict=True)}
    for (estimator, move, step), cell in cells.items():
        assert (cell == "-") == (step == "SelfConcordant" and estimator == "Full"), (estimator, move)
    assert "SelfConcordant needs an estimator" in finding.page["text"]
    assert "mine.svm" in finding.on
    assert "InFacePairwise" in said


def test_a_cell_is_what_minimize_does(file):
    source = sources.resolve(str(file))
    cell = grid.Cell(source, "logistic", "l1:20", "Saga", "InFacePairwise", "Secant", batch=2, seed=1, passes=5.0)
    A, y = libsvm(file)
    method = ex.Method(ex.gradients.Reshuffled(ex.gradients.Saga(2)), ex.steps.Secant(), ex.moves.InFacePairwise())
    f = ex.LinearModel(ex.Logistic(), A, y)
    x = ex.minimize(f, ex.L1Ball(20.0), method, seed=1, max_grads=5 * f.n, tol=0, atol=0).x
    assert cell.execute()["value"] == pytest.approx(np.mean(np.log1p(np.exp(-y * (A @ x)))), rel=1e-9)
    refused = grid.Cell(
        source, "logistic", "l1:20", "Saga", "VertexMove", "SelfConcordant", batch=2, seed=1, passes=5.0
    ).execute()
    assert math.isnan(refused["value"])
    assert str(refused["refused"]).startswith("SelfConcordant needs an estimator")


def test_the_whole_grid_is_of_parts_of_the_library(file):
    names = {cell[0][:3] for cell in [(key, 0) for key in grid._cells(studies.Look(Work(None), str(file)), quick=True)]}
    assert len(names) == len(grid.ESTIMATORS) * len(grid.MOVES) * len(grid.STEPS)
    for estimator, move, step in names:
        assert ex.Method(grid.ESTIMATORS[estimator](100, 5), grid.STEPS[step](), grid.MOVES[move]())


def test_finished_cells_are_kept(small, file, tmp_path, monkeypatch):
    first, _ = found(file, tmp_path)
    monkeypatch.setattr(grid.Cell, "execute", lambda cell: pytest.fail("it was done before"))
    assert found(file, tmp_path)[0].page == first.page
