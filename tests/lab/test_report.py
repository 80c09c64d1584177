"""What is said of panels: ranks, tables, pictures and the report's plain data."""

import csv
import json
from dataclasses import replace

import numpy as np
from panels_by_hand import made_up

import extremal as ex
from extremal.support.palette import colours_of_methods
from extremal_lab.reproduction import Figure, Problem, pictures, report, reproduce, tasks


def test_ranks():
    panels = [
        made_up({("a", "own"): 0.1, ("b", "own"): 0.2, ("c", "own"): 0.3}),
        made_up({("a", "own"): 1e-14, ("b", "own"): 1e-13, ("c", "own"): 0.3}),  # both below what is certified
    ]
    assert report.ranks(panels, "own") == {"a": [1, 1.5], "b": [2, 1.5], "c": [3, 3]}
    assert report.ranks(panels, "tuned") == {}
    rows = report.overview(panels, "own")
    assert [row["method"] for row in rows] == ["a", "b", "c"]
    assert (rows[0]["median"], rows[0]["first"], rows[0]["problems"]) == (1.25, 2, 2)
    same = [made_up({(m, "own"): 0.1 for m in "abc"})]
    assert [row["first"] for row in report.overview(same, "own")] == [1, 1, 1]  # all of them, and not none


def test_nothing_is_below_the_floor(panels):
    below = made_up({("sarah-fw", "own"): -1e-13})
    assert below.excess(below.curves[0]) == below.floor == 1e-12
    for panel in (*panels, below):
        for curve in panel.curves:
            assert (pictures._heights(panel, curve, "relative") > 0).all()
            assert (pictures._heights(panel, curve, "relative") * (panel.maximum - panel.minimum) >= panel.floor * 0.999).all()


def test_the_csv_has_every_number(figure, panels, tmp_path):
    path = tmp_path / "mine.csv"
    report.write_csv(path, figure, panels)
    with open(path, newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len({tuple(row.values()) for row in rows}) == len(rows)  # no row twice, where a run stays at a point
    runs = [run for panel in panels for curve in panel.curves for run in curve.runs]
    assert len(rows) == sum(len(set(zip(*(run[name] for name in tasks.COLUMNS), strict=True))) for run in runs)
    panel, curve = panels[1], panels[1].curves[3]
    want = [v for run in curve.runs for v in dict.fromkeys(run["value"].tolist())]
    mine = [r for r in rows if (r["loss"], r["method"], r["steps"]) == (panel.problem.loss, curve.method, curve.steps)]
    assert [float(r["value"]) for r in mine] == want  # to the last bit
    assert {float(r["f_min"]) for r in mine} == {panel.minimum}


def test_the_report_is_plain_data(figure, panels):
    said = json.loads(json.dumps(report.report("title", [(figure, panels)], quick=False), allow_nan=False))
    first = said["figures"][0]["problems"][0]
    assert first["f_min"] == panels[0].minimum
    assert first["curves"][0]["runs"][1]["value"] == panels[0].curves[0].runs[1]["value"].tolist()
    assert first["data"] == "mine.svm"
    assert figure.problems[0].data not in json.dumps(said)  # no path of the machine
    assert first["curves"][0]["runs"][0]["lmos"] == panels[0].curves[0].runs[0]["lmos"].tolist()
    assert said["versions"]["extremal"].startswith(ex.__version__)
    assert said["settings"]["trials of the tuning"] == [0.1, 1.0]
    assert {row["method"] for row in said["overview"]["tuned"]} == set(figure.methods)


def test_the_pictures(figure, panels, tmp_path):
    alone = [made_up({("sarah-fw", "own"): 0.1})]  # one small plot in each file
    made = pictures.draw(figure, alone, tmp_path)
    assert sorted(path.name for path in made) == sorted(
        f"mine-{x}.{s}" for x in ("passes", "lmos", "cpu") for s in ("png", "pdf")
    )
    assert all(path.stat().st_size > 5000 for path in made)
    drawn = pictures.picture_of(figure, panels, "lmos")
    axes = drawn.get_axes()
    assert len(axes) == 2 * 2 * 2  # steps x (suboptimality, gap) x problems
    assert axes[0].get_lines()[0].get_xdata()[-1] == np.median([run["lmos"][-1] for run in panels[0].curves[0].runs])


def test_a_method_has_one_colour_in_pictures_and_page():
    """Also where figures have other methods, in another order."""
    lists = ("svrf", "sarah-fw", "auto"), ("auto", "saga-sarah-fw", "sarah-fw", "svrf", "momentum-sfw")
    made = [[made_up({(m, s): 0.1 for m in methods for s in ("own", "tuned")})] for methods in lists]
    shown = [(Figure(m[0], "t", (Problem("x"),), m), panels) for m, panels in zip(lists, made, strict=True)]
    page = {item["name"]: item["colour"][0] for item in report.report("title", shown, quick=False)["methods"]}
    assert len(set(page.values())) == len(page) == 5
    looks = colours_of_methods(m for methods in lists for m in methods)
    for figure, panels in shown:
        for axes in pictures.picture_of(figure, panels, "passes", looks).get_axes():
            drawn = {line.get_label(): line.get_color() for line in axes.get_lines()}
            assert drawn == {report.label(m): page[m] for m in figure.methods}


def test_methods_that_project_are_marked():
    """In the table, in the legend and on the page, and no others."""
    panel = made_up({("vr-sliding", "own"): 0.1, ("svrf", "own"): 0.2})
    panel = replace(panel, curves=(replace(panel.curves[0], projects=True), panel.curves[1]))
    figure = Figure("mine", "t", (panel.problem,), ("vr-sliding", "svrf"), factors=())
    names = ["vr-sliding (projects)", "svrf"]
    assert [row[0] for row in reproduce.ends([panel])[1]][:2] == names
    assert [text.get_text() for text in pictures.picture_of(figure, [panel], "passes").legends[0].get_texts()] == names
    said = report.report("title", [(figure, [panel])], quick=False)
    assert [item["label"] for item in said["methods"]] == names
    assert any("projections" in sentence for sentence in said["summary"])


def test_short_runs_say_that_they_lie_inside_the_transient(figure, panels):
    (said,) = report.inside(20)
    assert "20 passes lie inside the transient" in said
    assert "8 % for Algorithm 1" in said
    assert "29 % for Algorithm 2" in said
    assert report.inside(100) == []
    assert report.inside(8)[0] in report.report("title", [(figure, panels)], quick=True)["caution"]  # of eight passes
    assert not any("transient" in said for said in report.cautions([made_up({("negiar-sfw", "own"): 0.1})], 8))
    study = {"caution": report.inside(20)}
    assert report.report("title", [], quick=True, studies=[study, study])["caution"] == report.inside(20)
