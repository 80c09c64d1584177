"""The examples: what they promise holds at a small size, and the page says what their code says."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.special import xlogy

ROOT = Path(__file__).parents[1]
EXAMPLES, PAGE = ROOT / "examples", ROOT / "docs" / "examples.md"
NAMES = sorted(p.stem for p in EXAMPLES.glob("*.py") if p.stem not in ("common", "run_all"))

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")
pytest.importorskip("pandas")


@pytest.fixture
def example(monkeypatch):
    """name -> the module, found beside its helpers."""
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module


@pytest.mark.parametrize("name", NAMES)
def test_example(name, example, tmp_path, capsys):
    contest = example(name).main(["--small", "--out", str(tmp_path)])
    ours, models = contest.best, contest.best.answer
    models = models if isinstance(models, list) else [models]

    # the constraint holds, by the example's own ruler and by the estimator's
    assert ours.violation == 0.0
    assert all(m.constraint_violation_ == 0.0 for m in models)
    # the objective that the example computes by itself is the estimator's, and no feasible answer beats it by more than the gap
    assert ours.objective == pytest.approx(np.mean([m.objective_ for m in models]), rel=1e-7)
    assert all(m.dual_gap_ <= 1e-4 * m.objective_ for m in models)
    rivals = [row for row in contest.rows[:-1] if not row.skipped]
    assert len(rivals) >= 3
    assert ours.objective <= min(row.objective for row in rivals) + contest.gap + 1e-12 * abs(ours.objective)
    # the table has every tool, and the picture is there
    printed = capsys.readouterr().out
    assert all(f"| {row.name} " in printed for row in contest.rows)
    picture = (tmp_path / f"{name}.png").read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    assert 3000 < len(picture) < 80_000
    # the contest is not blind: some tool is outside the constraint, or above the minimum
    assert any(row.violation > 1e-6 or contest.above(row) > 1e-4 for row in rivals)


def test_a_rival_that_fails_is_a_row(example):
    common = example("common")
    contest = common.Contest(np.sum, violation=lambda x: max(0.0, -x.min()), repair=lambda x: np.maximum(x, 0), small=True)
    assert contest.rival("breaks", lambda: 1 / 0) is None
    contest.rival("outside", lambda: np.array([-1.0, 2.0]))
    assert [row.skipped for row in contest.rows] == ["failed: ZeroDivisionError", ""]
    assert (contest.rows[1].violation, contest.rows[1].objective) == (1.0, 2.0)


def test_objectives_have_the_best_intercept(example):
    common, rng = example("common"), np.random.default_rng(0)
    X, w = rng.standard_normal((50, 3)), rng.standard_normal(3)
    labels, counts = rng.random(50) < 0.3, rng.poisson(2.0, 50)
    z = X @ w
    shifts = np.linspace(-5, 5, 200_001)[:, None]
    for made, each in (
        (common.squared_loss(X, counts), lambda b: 0.5 * np.square(z + b - counts)),
        (common.logistic_loss(X, labels), lambda b: np.logaddexp(0, np.where(labels, -1, 1) * (z + b))),
        (common.poisson_loss(X, counts), lambda b: np.exp(z + b) - counts * (z + b) + xlogy(counts, counts) - counts),
    ):
        best = min(each(part).mean(axis=1).min() for part in np.array_split(shifts, 100))
        assert made(w) == pytest.approx(best, rel=1e-8)
        assert made(w) <= best


@pytest.mark.parametrize("seed", range(5))
def test_the_nearest_point_of_the_simplex(example, seed):
    common, rng = example("common"), np.random.default_rng(seed)
    w = 3 * rng.standard_normal(6)
    near = common.to_simplex(w)
    assert common.off_simplex(near) <= 1e-15
    others = rng.dirichlet(np.ones(6), 2000)
    assert np.all(np.linalg.norm(others - w, axis=1) >= np.linalg.norm(near - w))
    assert common.off_simplex(np.array([0.5, -0.1, 0.6])) == pytest.approx(0.1)
    assert common.off_simplex(np.array([0.5, 0.6])) == pytest.approx(0.1)


# the page


def test_the_page_has_every_example_with_its_code_and_picture():
    page = PAGE.read_text()
    assert re.findall(r"\(\.\./examples/(\w+)\.py\)", page) == [n for n in example_order() if n in NAMES]
    for name in NAMES:
        section = page[page.index(f"(../examples/{name}.py)") :]
        snippet = re.search(r"```python\n(.*?)```", section, re.DOTALL)[1]
        code = re.sub(r"\s+", "", (EXAMPLES / f"{name}.py").read_text())
        for line in snippet.splitlines():
            assert re.sub(r"\s+", "", line) in code, f"{name}: the page shows a line that is not in the example: {line}"
        assert (ROOT / "docs" / "examples" / f"{name}.png").stat().st_size < 80_000
        assert f"examples/{name}.png" in section


def example_order() -> list[str]:
    """The order of run_all.py."""
    names = re.search(r"NAMES = \((.*?)\)", (EXAMPLES / "run_all.py").read_text(), re.DOTALL)[1]
    return re.findall(r'"(\w+)"', names)


def test_all_examples_are_run_together():
    assert sorted(example_order()) == NAMES
