"""The gallery: every example runs, keeps its constraint, and no rival that keeps it too is below the certified bound."""

from __future__ import annotations

import ast
import io
import os
import re
import shutil
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest

import extremal as ex
from extremal.run.many import ManyResult

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
SCRIPTS = {str(path.relative_to(EXAMPLES)): path for path in sorted(EXAMPLES.glob("*/plot_*.py"))}
LONGER = (  # run when the site is built, not here
    "research/plot_float32.py", "research/plot_larger_than_memory.py", "research/plot_paper_methods.py",
    "signs/plot_quantile_signs.py", "start/plot_gap_of_a_run.py", "start/plot_l1_path.py",
    "structure/plot_gene_groups.py", "structure/plot_low_rank_classes.py", "structure/plot_multiclass_svm.py",
    "structure/plot_recommender.py", "weights/plot_stacking.py",
)  # fmt: skip
TUTORIALS = ("start/plot_csv_to_model.py", "weights/plot_forecast_combination.py", "signs/plot_credit_scoring.py")  # as notebooks
RIVALS = re.compile(
    r"\b(scipy\.optimize|sklearn\.(linear_model|svm|ensemble|utils\.extmath)|statsmodels|cvxpy|NegiarSFW|stop by change)"
)

pytest.importorskip("sklearn", minversion="1.8")  # where an l1 penalty is l1_ratio=1
pytest.importorskip("matplotlib")
pytest.importorskip("pandas")


def code_lines(path: Path) -> list[str]:
    """The lines that are neither blank nor comments nor the docstring."""
    source = path.read_text()
    lines = source.splitlines()[ast.parse(source).body[0].end_lineno :]
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_is_a_page(name):
    source = SCRIPTS[name].read_text()
    title, line, blank, *intro = (ast.get_docstring(ast.parse(source)) or "").splitlines()
    assert line == "=" * len(title)
    assert not blank
    assert len(" ".join(intro)) > 150
    assert len(re.findall(r"^# %%\n# \S", source, re.MULTILINE)) >= 2  # blocks with text
    assert len(code_lines(SCRIPTS[name])) <= 80
    assert "extremal" in source
    assert RIVALS.search(source), "an example stands beside what people do today"


def test_every_folder_is_a_section_of_the_gallery():
    (order,) = re.findall(r'"subsection_order": .*? in \((.*?)\)', (ROOT / "docs" / "conf.py").read_text())
    folders = re.findall(r'"(\w+)"', order)
    assert set(folders) == {name.split("/")[0] for name in SCRIPTS}
    assert all((EXAMPLES / folder / "GALLERY_HEADER.rst").exists() for folder in folders)
    assert len(SCRIPTS) >= 15
    assert {*LONGER, *TUTORIALS} <= set(SCRIPTS)


# runs


@pytest.fixture
def run():
    """path -> the names that the script has defined at its end, and what it printed; figures are left open."""
    import matplotlib as mpl
    from matplotlib import pyplot as plt
    from threadpoolctl import threadpool_limits

    mpl.use("Agg")
    plt.close("all")

    def call(path: Path) -> tuple[dict[str, object], str]:
        names: dict[str, object] = {"__name__": "__main__", "__file__": str(path)}
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(path.read_text(), path, "exec"), names)
        return names, printed.getvalue()

    with threadpool_limits(1):
        yield call
    plt.close("all")


def certified(names: dict[str, object]) -> tuple[list, list]:
    """The fitted models of this library and the results of runs, also within lists and dicts."""
    from sklearn.base import BaseEstimator

    values = [inside for value in names.values() for inside in (value.values() if isinstance(value, dict) else [value])]
    values = [inside for value in values for inside in (value if isinstance(value, list) else [value])]
    models = [value for value in values if isinstance(value, BaseEstimator) and "dual_gap_" in vars(value)]
    return models, [value for value in values if isinstance(value, ex.Result | ManyResult)]


def below_the_bound(rows: dict) -> list[str]:
    """Rows of a table that keep the constraint and have a smaller objective than is possible."""
    found = []
    for name, row in rows.items():
        row = row if isinstance(row, dict) else {}
        above = [text for key, text in row.items() if key.endswith("above the bound")]
        if above and float(row.get("violation", "1").split()[0]) == 0 and float(above[0]) < -1e-9:
            found.append(name)
    return found


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name not in (*LONGER, *TUTORIALS)])
def test_an_example_keeps_its_promises(name, run):
    from matplotlib import pyplot as plt

    names, printed = run(SCRIPTS[name])
    assert 1 <= len(plt.get_fignums()) <= 3
    assert "nan" not in printed
    models, results = certified(names)
    assert models or results
    assert all(model.constraint_violation_ == 0.0 for model in models)
    assert all(model.status_ == "tol" for model in models)
    assert all(np.all(result.gap >= 0) and np.isfinite(result.value).all() for result in results)
    assert below_the_bound(names.get("rows", {})) == []


def test_rivals_of_the_scorecard_keep_all_rules_but_for_the_free_fit(run):
    names, _ = run(SCRIPTS["signs/plot_credit_scoring.py"])
    broken = [name for name, row in names["rows"].items() if float(row["violation"]) > 0]
    assert broken == ["free fit"]
    assert below_the_bound(names["rows"]) == []


def test_a_row_below_the_bound_is_found():
    rows = {
        "ours": {"violation": "0", "loss above the bound": "+1.0e-12"},
        "outside": {"violation": "1.0e-01 (cap)", "loss above the bound": "-1.0e-01"},
        "impossible": {"violation": "0.0e+00", "variance above the bound": "-1.0e-06"},
    }
    assert below_the_bound(rows) == ["impossible"]


# notebooks


@pytest.mark.filterwarnings("ignore")  # of the packages that convert and run notebooks
def test_tutorials_run_as_notebooks(tmp_path):
    """The notebooks that the site offers for download, one after the other in one kernel."""
    notebook = pytest.importorskip("sphinx_gallery.notebook")
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    made = []
    for name in TUTORIALS:
        script = Path(shutil.copy(SCRIPTS[name], tmp_path))
        notebook.python_to_jupyter_cli([str(script)])
        made.append(nbformat.read(script.with_suffix(".ipynb"), as_version=4))
    together = nbformat.v4.new_notebook(cells=[cell for one in made for cell in one.cells])
    quiet = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    nbclient.NotebookClient(together, timeout=120).execute(env=os.environ | quiet, cwd=str(tmp_path))
    for one in made:  # the cells are those that were run
        outputs = [output for cell in one.cells for output in cell.get("outputs", [])]
        kinds = {kind for output in outputs for kind in output.get("data", ())}
        assert {"image/png", "text/html"} <= kinds  # a picture and a table
        assert "violated by 0\n" in "".join(output.get("text", "") for output in outputs)
        assert [cell.cell_type for cell in one.cells].count("markdown") >= 3
