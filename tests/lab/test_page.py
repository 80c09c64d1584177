"""The page of a report in a browser: the report's numbers, shown as asked."""

from __future__ import annotations

import copy
import csv
import html
import json
import shutil
import time

import numpy as np
import pytest

pytest.importorskip("plotly", reason="plotly is not installed")
from made_report import ROWS, column, expected, make_report
from opened_page import Opened

from extremal.support.palette import LATER, METHOD_COLOURS
from extremal_lab.reproduction.page import write_page
from extremal_lab.reproduction.report import CSV_COLUMNS

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
ARGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run",
]  # fmt: skip
DOWNLOAD = "figure,data,origin,loss,set,method,steps,factor,batch,seed,passes,lmos,cpu,value,gap,f_min,f_min_gap"


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="the playwright package is not installed")
    if BROWSER is None:
        pytest.skip("there is no chromium or google-chrome on the PATH")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=BROWSER, args=ARGS)
        yield running
        running.close()


@pytest.fixture
def show(browser, tmp_path):
    """Write a report and open it; at the end nothing was asked of the network and nothing complained."""
    pages: list[Opened] = []

    def open_(report: dict, **options) -> Opened:
        path = tmp_path / f"page{len(pages)}.html"
        write_page(path, report)
        pages.append(Opened(browser, path, **options))
        return pages[-1]

    yield open_
    for opened in pages:
        opened.close()


@pytest.fixture(scope="module")
def opened(browser, tmp_path_factory):
    """The page of the report, for tests that only look at it or take files from it."""
    path = tmp_path_factory.mktemp("page") / "page.html"
    write_page(path, make_report())
    held = Opened(browser, path)
    yield held
    held.close()


def panel(figure: dict, number: int = 0) -> str:
    return f"#{figure['name']} .panel:nth-of-type({number + 1})"


def test_panels_show_medians_over_the_seeds(opened, report):
    for figure in report["figures"]:
        for i, held in enumerate(figure["problems"]):
            assert opened.shows(panel(figure, i), expected(held, "own"), "own")
    broken = opened.lines(panel(report["figures"][0]))["frank-wolfe", "own"][1]
    assert np.isfinite(broken[:-1]).all()  # two seeds of three are left
    assert np.isnan(broken[-1])


def test_axes_steps_and_bands_change_what_is_plotted(show, report):
    opened, figure = show(report), report["figures"][0]
    where, held = panel(figure, 1), figure["problems"][1]
    for x, y in [("cpu", "excess"), ("passes", "value"), ("passes", "gap")]:
        opened.choose("fig1", "x", x)
        opened.choose("fig1", "y", y)
        opened.until(lambda: opened.shows(where, expected(held, "own", x, y), "own"), f"{y} against {x}")  # noqa: B023
    opened.choose("fig1", "steps", "tuned")
    opened.until(lambda: opened.shows(where, expected(held, "tuned", y="gap"), "tuned"), "tuned steps")
    opened.choose("fig1", "steps", "both")
    opened.until(lambda: len(opened.lines(where)) == 6, "both")
    dashes = {(t["meta"]["steps"], t["line"]["dash"]) for t in opened.plot(where)["data"] if t["meta"]["role"] == "line"}
    assert dashes == {("own", "dash"), ("tuned", "solid")}
    assert opened.shows(panel(report["figures"][1]), expected(report["figures"][1]["problems"][0], "own"), "own")


@pytest.mark.parametrize(("band", "quantiles"), [("quartiles", (0.25, 0.75)), ("range", (0, 1)), ("none", None)])
def test_bands(band, quantiles, show, report):
    opened, figure = show(report), report["figures"][0]
    opened.choose("fig1", "y", "gap")
    opened.choose("fig1", "band", band)
    curves = {c["method"]: c for c in figure["problems"][1]["curves"] if c["steps"] == "own"}
    opened.until(lambda: len(opened.lines(panel(figure, 1), "band")) == (3 if quantiles else 0), band)
    for (method, _), (_, y) in opened.lines(panel(figure, 1), "band").items():
        low, high = np.quantile(column(curves[method], "gap"), quantiles, axis=1)
        np.testing.assert_allclose(y, np.concatenate([high, low[::-1]]), rtol=1e-12)


def test_scales(show, report):
    opened, where = show(report), panel(report["figures"][0])

    def scales() -> tuple[str, str]:
        opened.lines(where)
        return tuple(opened.plot(where)["layout"][side]["type"] for side in "xy")

    assert scales() == ("linear", "log")
    opened.choose("fig1", "log_y", False)
    opened.choose("fig1", "log_x", True)
    opened.until(lambda: scales() == ("log", "linear"), "the other scales")
    assert opened.lines(where)["sarah-fw", "own"][0].min() > 0  # a log axis has no place for the start
    opened.choose("fig1", "x", "lmos")
    opened.choose("fig1", "y", "excess")
    opened.until(lambda: scales() == ("log", "log"), "the usual scales of new axes")
    assert opened.locator("#fig1 [data-control=log_x]").is_checked()


def test_hiding_a_method_hides_it_in_every_panel(show, report):
    opened = show(report)
    chip = opened.locator("#fig1 .chip[data-method=svrf]")
    chip.focus()
    opened.keyboard.press("Enter")
    for figure in report["figures"]:
        for i, held in enumerate(figure["problems"]):
            curves = expected(held, "own", hidden=("svrf",))
            opened.until(lambda: opened.shows(panel(figure, i), curves, "own"), "hiding")  # noqa: B023
    assert [c.get_attribute("aria-pressed") for c in opened.locator(".chip[data-method=svrf]").all()] == ["false", "false"]
    opened.locator("#fig2 .chip[data-method=sarah-fw]").click(modifiers=["Shift"])
    opened.until(lambda: list(opened.lines(panel(report["figures"][0]))) == [("sarah-fw", "own")], "leaving one alone")
    opened.locator("#fig2 .chip.all").click()
    opened.until(lambda: len(opened.lines(panel(report["figures"][0]))) == 3, "showing all")


@pytest.mark.parametrize(("at", "least", "name"), [(0, 3e-6, "floor"), (1, 1e-6, "accuracy of f<sub>min</sub>")])
def test_nothing_is_drawn_below_the_floor(at, least, name, show, report):
    opened, figure, where = show(report), report["figures"][0], panel(report["figures"][0], at)
    opened.choose("fig1", "steps", "both")
    opened.choose("fig1", "band", "range")
    for y, floor in [("excess", least), ("value", 0.25), ("relative", 2 * least)]:
        opened.choose("fig1", "y", y)
        opened.until(lambda: np.allclose(opened.lines(where, "floor")[None, None][1], floor, rtol=1e-12), y)  # noqa: B023
        drawn = [pair[1] for role in ("line", "band") for pair in opened.lines(where, role).values()]
        assert min(np.nanmin(y) for y in drawn) == pytest.approx(floor, rel=1e-12)
        assert opened.plot(where)["layout"]["y"]["range"][0] < (floor if y == "value" else np.log10(floor))
    names = [t["text"][1] for t in opened.plot(where)["data"] if t["meta"]["role"] == "floor"]
    assert names == [f"{name}: {2e6 * least:.1f} × 10⁻⁶"]
    facts = opened.locator(f"{where} .facts").inner_text()
    assert ("floor" in facts) == ("floor" in figure["problems"][at])
    assert "gap 10⁻⁶" in facts


@pytest.mark.parametrize("floor", [3e-6, 0.0, None])
@pytest.mark.parametrize("f_max", [0.25, 0.25 - 1e-9])
def test_a_problem_solved_from_the_start_is_drawn_at_the_floor(floor, f_max, show, report):
    held = report["figures"][0]["problems"][1]
    held |= {"f_max": f_max, "floor": floor, "f_min_gap": 0.0}
    for run in (run for curve in held["curves"] for run in curve["runs"]):
        run["value"] = [f_max] * ROWS
    opened, where = show(report), panel(report["figures"][0], 1)
    for y, level in [("relative", 1.0), ("excess", floor or 1e-16)]:
        opened.choose("fig1", "y", y)
        opened.until(lambda: np.allclose(opened.lines(where, "floor")[None, None][1], level, rtol=1e-12), y)  # noqa: B023
        lines = opened.lines(where)
        assert len(lines) == 3
        for x, drawn in lines.values():
            assert len(x) == ROWS
            np.testing.assert_allclose(drawn, level, rtol=1e-12)


def test_without_f_max_there_is_nothing_relative(show, report):
    report["figures"][0]["problems"][0]["f_max"] = float("inf")
    opened, where = show(report), panel(report["figures"][0])
    assert all(np.isnan(y).all() for _, y in opened.lines(where).values())
    opened.choose("fig1", "y", "excess")
    opened.until(lambda: all(np.isfinite(y[:-1]).all() for _, y in opened.lines(where).values()), "the excess")


def test_a_constant_at_the_end_of_the_grid_is_marked(show, report):
    opened, where = show(report), panel(report["figures"][0])
    opened.choose("fig1", "steps", "both")
    opened.until(lambda: len(opened.lines(where)) == 6, "both")
    for number in (0, 1):
        opened.lines(panel(report["figures"][0], number))
        traces = opened.plot(panel(report["figures"][0], number))["data"]
        tips = {(t["meta"]["method"], t["meta"]["steps"]): t["hovertemplate"] for t in traces if t["meta"]["role"] == "line"}
        marked = [key for key, text in tips.items() if "tuned, × 0.125, end of the grid<br>" in text]
        assert marked == [("svrf", "tuned")] * (number == 0)
        assert sum("end of the grid" in text for text in tips.values()) == len(marked)
    opened.locator("#fig1 summary", has_text="numbers behind").click()
    rows = opened.locator("#fig1 .behind tbody tr")
    opened.until(lambda: rows.count() == 12, "the table")
    cells = [row.locator("td").nth(3).inner_text() for row in rows.all()]
    assert cells == ["1", "0.125", "1", "0.125", "1", "0.125\nend of the grid", *["1", "0.125"] * 3]
    assert "†: the tuned constant lies at the end of the grid" in opened.locator("#overview .note").inner_text()


def test_non_convex_problems_show_their_gap_as_well(show, report):
    opened, held = show(report), report["figures"][1]["problems"][0]
    assert opened.shows("#fig2 .second .panel", expected(held, "own", y="gap"), "own")
    assert "best f known" in opened.locator("#fig2 .facts").inner_text()
    assert "best value known" in opened.locator("#fig2 .hint").inner_text()
    assert opened.locator("#fig1 .second").count() == 0
    stationary = "nearly stationary, not that it is good"
    assert stationary in opened.locator("#fig2 .second").inner_text()
    assert stationary not in opened.locator("#fig2 .hint").inner_text()
    opened.choose("fig2", "y", "gap")
    assert opened.locator("#fig2 .second").is_hidden()
    assert stationary in opened.locator("#fig2 .hint").inner_text()
    opened.choose("fig1", "y", "gap")
    assert stationary not in opened.locator("#fig1").inner_text()


def test_panels_say_what_their_data_are(opened, report):
    texts = opened.locator("#fig1 .panel").all_inner_texts()
    assert "Real data" in texts[0]
    assert "Stand-in" not in texts[0]
    assert "Stand-in, not the real data" in texts[1]
    assert "Data from a file" in opened.locator("#fig2 .panel").first.inner_text()
    for text in texts:
        assert "1234" in text
        assert "0.25, gap 10⁻⁶" in text
        assert "a long run" in text
        assert "where " in text
    opened.lines(panel(report["figures"][0], 1))
    marks = opened.evaluate(
        "[...document.querySelectorAll('#fig1 .plot')].map(p => (p.layout?.annotations ?? []).map(a => a.text))"
    )
    assert marks == [[], ["stand-in data"]]


def test_the_view_of_a_figure_can_be_given(show, report):
    report["figures"][0]["view"] = {"steps": "tuned", "y": "gap", "x": "cpu"}
    opened, held = show(report), report["figures"][0]["problems"][0]
    assert opened.shows(panel(report["figures"][0]), expected(held, "tuned", "cpu", "gap"), "tuned")
    assert opened.locator("#fig1 [data-control=steps]").input_value() == "tuned"


def test_plots_are_drawn_when_they_come_into_view(show, report):
    report["figures"] = [copy.deepcopy(report["figures"][0]) | {"name": f"fig{i}"} for i in range(8)]
    opened = show(report, viewport={"width": 390, "height": 700})
    opened.lines("#fig0 .panel")
    time.sleep(1)  # for those that should not come
    drawn = opened.evaluate("[...document.querySelectorAll('.plot')].map(p => Boolean(p.data))")
    assert drawn[0]
    assert not any(drawn[6:])


def test_csv_has_every_number_of_the_figure(opened, report, tmp_path):
    with opened.expect_download() as download:
        opened.locator("#fig1 [data-download=csv]").click()
    assert download.value.suggested_filename == "fig1.csv"
    download.value.save_as(tmp_path / "runs.csv")
    with open(tmp_path / "runs.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0] == DOWNLOAD.split(",")
    assert tuple(rows[0]) == CSV_COLUMNS
    wanted = [
        ["fig1", held["data"], held["origin"], "logistic", "l1:20", curve["method"], curve["steps"], curve["factor"], 7]
        + [run["seed"]] + [run[key][i] for key in rows[0][-7:-2]] + [held["f_min"], held["f_min_gap"]]
        for held in report["figures"][0]["problems"] for curve in held["curves"] for run in curve["runs"] for i in range(ROWS)
    ]  # fmt: skip
    assert [row[:7] for row in rows[1:]] == [row[:7] for row in wanted]
    found = np.array([[float(x or "nan") for x in row[7:]] for row in rows[1:]])
    np.testing.assert_array_equal(found, np.array([row[7:] for row in wanted], dtype=float))
    assert [row[11] for row in rows[1:]] == [str(row[11]) for row in wanted]  # whole numbers of calls


def test_json_is_the_report(opened, report, tmp_path):
    with opened.expect_download() as download:
        opened.locator("#fig2 [data-download=json]").click()
    download.value.save_as(tmp_path / "report.json")
    held = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert held["figures"][1] == report["figures"][1]
    assert held["title"] == report["title"]


def test_a_plot_is_saved_with_its_legend(opened, report, tmp_path):
    opened.lines(panel(report["figures"][0], 1))
    with opened.expect_download() as download:
        opened.locator(f"{panel(report['figures'][0], 1)} header button").click()
    download.value.save_as(tmp_path / "plot.svg")
    text = (tmp_path / "plot.svg").read_text(encoding="utf-8")
    assert text.startswith("<svg")
    for part in ("Frank-Wolfe, own steps", "SVRF <& co>, own steps", "(stand-in, not the real data)"):
        assert part in html.unescape(text)


def test_tables_behind_the_figures(opened, report):
    opened.locator("#fig1 summary", has_text="numbers behind").click()
    rows = opened.locator("#fig1 .behind tbody tr")
    opened.until(lambda: rows.count() == 12, "the table")
    cells = rows.nth(7).locator("td").all_inner_texts()
    assert cells[:5] == ['w8a, "odd" (stand-in)', "Algorithm 1 (Sarah FW)", "tuned", "0.125", "7"]
    assert cells[5] == "≤ 10⁻⁶"
    assert rows.nth(2).locator("td").all_inner_texts()[5] == "–"


def test_overview_says_where_each_method_ends(opened, report):
    assert opened.locator("#overview .ranking").count() == 2
    first = opened.locator("#overview .ranking").first.locator("tbody tr").first.locator("td").all_inner_texts()
    assert first[:3] + first[4:] == ["Algorithm 1 (Sarah FW)", "1", "1 – 3", "3 of 3"]
    heads = opened.locator("#overview .heat").first.locator("th[scope=col]").all_inner_texts()
    assert heads == ["method", "a8a", 'w8a, "odd"*', "mine°"]
    problems = [held for figure in report["figures"] for held in figure["problems"]]
    for kind, heat in zip(("own", "tuned"), opened.locator("#overview .heat").all(), strict=True):
        names = [row["method"] for row in report["overview"][kind]]
        for name, row in zip(names, heat.locator("tbody tr").all(), strict=True):
            ends = [np.log10(expected(held, kind)[name][1][-1]) for held in problems]
            floors = [kind == "tuned" for _ in problems]
            edges = [kind == "tuned" and name == "svrf" and held["data"] == "a8a" for held in problems]
            wanted = [
                f"{'≤' * low}{end:.1f}{'†' * edge}".replace("-", "−") if np.isfinite(end) else "–"
                for end, low, edge in zip(ends, floors, edges, strict=True)
            ]
            assert row.locator("td").all_inner_texts() == wanted


def test_all_sections_and_the_way_to_them(show, report):
    opened = show(report)
    titles = opened.locator("main h2").all_inner_texts()
    assert titles == opened.locator("#toc a").all_inner_texts()
    assert len(titles) == 8
    assert opened.locator("#ledger .verdict").all_inner_texts()[5:] == [
        "✓ holds",
        "◐ holds in part",
        "✗ does not hold here",
        "? undecided",
        "○ not measured",
    ]
    assert opened.lines("#study-batch .panel", "line").keys() == {(None, None)}
    opened.locator("#toc a", has_text="Figure 2").click()
    opened.until(
        lambda: opened.evaluate("Math.abs(document.querySelector('#fig2').getBoundingClientRect().top) < 60"), "going there"
    )
    opened.until(lambda: opened.locator("#toc a[aria-current]").all_inner_texts() == ["Figure 2: non-convex"], "marking it")


def test_the_ledger_says_when_a_claim_holds_and_on_which_data(show, report):
    del report["ledger"][2]["rule"]
    opened = show(report)
    rows = [row.locator("td").all_inner_texts() for row in opened.locator("#ledger tbody tr").all()]
    assert [(row[0], row[2]) for row in rows] == [(f"short {i}", f"{i} of 5" if i < 4 else "–") for i in range(5)]
    assert not opened.locator("#ledger dl").first.is_visible()  # evidence is folded
    opened.locator("#ledger summary").nth(1).click()
    assert opened.locator("#ledger dl").nth(1).is_visible()
    facts = [[term.text_content() for term in held.locator("dd").all()] for held in opened.locator("#ledger dl").all()]
    rule = [f"{i} < 5 & <so on>" for i in range(5)]
    shown = "extremal reproduce"
    assert facts == [["claim 0", "4", "m", rule[0], shown], ["claim 1", "4", "m", rule[1], "LIBSVM's a9a", shown],
                     ["claim 2", "4", "m", shown], ["claim 3", "4", "m", rule[3], shown],
                     ["claim 4", "4", rule[4], shown]]  # fmt: skip
    counts = opened.locator("#ledger .counts .verdict").all_inner_texts()
    assert counts[3] == "? undecided: 1"
    looks = "n => { const s = getComputedStyle(n); return [s.borderTopStyle, s.borderTopWidth].join() }"
    tags = [tag.evaluate(looks) for tag in opened.locator("#ledger .counts .verdict").all()]
    assert len(set(tags)) == 5  # told apart by their frames too, not by colour alone


def test_a_verdict_may_say_what_is_left_open(show, report):
    for row, verdict in zip(
        report["ledger"], ("holds in part; 2 of 4 undecided", "refuted by proof; undecided here"), strict=False
    ):
        row["verdict"] = verdict
    counts = show(report).locator("#ledger .counts .verdict").all_inner_texts()
    assert counts[0] == "◐ holds in part; 2 of 4 undecided: 1"
    assert "✗ refuted by proof; undecided here: 1" in counts


def test_notices(show, report):
    def notices() -> list[str]:
        return show(report).locator(".notice").all_inner_texts()

    assert notices() == []
    report |= {"quick": True, "caution": []}
    assert notices() == ["A quick run, smaller than the full one."]
    report |= {"summary": ["This is the Quick version: fewer passes.", "More."], "caution": ["Careful & <so>.", "f_min is off."]}
    assert notices() == ["A quick run.", "Caution. Careful & <so>. fmin is off."]
    report["quick"] = False
    assert notices() == ["Caution. Careful & <so>. fmin is off."]


def test_how_to_read_the_plots(opened):
    opened.locator("summary", has_text="How to read").click()
    opened.until(lambda: opened.locator("#fig1 .behind li").count() > 0, "the list")
    text = " ".join(opened.locator("#fig1 .behind li").all_inner_texts())
    assert "fmax is the largest value at a recorded point of any curve of the panel" in text
    assert "Relative suboptimality is (f − fmin) / (fmax − fmin)." in text
    assert "the least difference to fmin that means something" in text


def test_empty_sections_vanish(show, report):
    figure = report["figures"][0] | {"problems": report["figures"][0]["problems"][:1]}
    kept = {"title": "One", "generated": "", "quick": True, "figures": [figure]}
    empty = {name: [] for name in ("summary", "methods", "studies", "ledger")}
    opened = show(kept | empty | {"overview": {}, "settings": {}, "versions": {}, "machine": {}, "table2": None})
    assert opened.locator("main h2").all_inner_texts() == ["Figure 1: convex"]
    assert opened.locator("#toc a").count() == 1
    assert "quick run" in opened.locator(".notice").inner_text()
    assert len(opened.lines("#fig1 .panel")) == 3
    nothing = show({"title": "None", "figures": []})
    assert nothing.locator("main section").count() == 0


def test_colours_are_those_of_the_report(show, report):
    """The pictures take theirs from the same place; a method without one gets the next of the palette."""
    report["methods"][1]["colour"] = ["#123456", "#fedcba"]
    opened, where = show(report, color_scheme="light"), panel(report["figures"][0])
    opened.lines(where)
    drawn = {t["meta"]["method"]: t["line"]["color"] for t in opened.plot(where)["data"] if t["meta"]["role"] == "line"}
    assert drawn == {"sarah-fw": METHOD_COLOURS["sarah-fw"][0], "frank-wolfe": "#123456", "svrf": LATER[1][0]}


def test_text_stays_text(opened, report):
    assert opened.locator("h1").inner_text() == report["title"]
    assert opened.title() == report["title"]
    assert opened.locator("main b").count() == 0
    assert "SVRF <& co>" in opened.locator("#fig1 .chips").inner_text()
    where = panel(report["figures"][0])
    opened.lines(where)
    assert "SVRF &lt;&amp; co&gt;, own steps" in [t["name"] for t in opened.plot(where)["data"] if "name" in t]


def test_light_and_dark(show, report):
    background = "getComputedStyle(document.body).backgroundColor"
    ink = "document.querySelector('#fig1 .plot').layout.font.color"
    opened = show(report, color_scheme="light")
    opened.lines("#fig1 .panel")
    light = opened.evaluate(background), opened.evaluate(ink)
    opened.emulate_media(color_scheme="dark")
    opened.until(lambda: opened.evaluate(background) != light[0] and opened.evaluate(ink) != light[1], "dark")
    opened.locator("#theme").click()
    opened.until(lambda: (opened.evaluate(background), opened.evaluate(ink)) == light, "light by the button")


@pytest.mark.parametrize("width", [390, 1440])
def test_the_page_never_scrolls_sideways(width, show, report):
    report["figures"][0]["problems"] *= 7
    report["ledger"][0]["command"] = "extremal reproduce --out /a/" + "very/" * 30 + "long/path.html"
    report["caution"] = ["Rough: " + "a-very-long-key/" * 30]
    opened = show(report, viewport={"width": width, "height": 900})
    for summary in opened.locator("summary").all():
        summary.click()
    for selector in ("#fig1 .panel", "#fig2 .second .panel", "#study-batch .panel"):
        opened.lines(selector)
        plot = opened.locator(f"{selector} .plot").first.bounding_box()
        drawn = opened.locator(f"{selector} .plot .main-svg").first.bounding_box()
        assert drawn["width"] == pytest.approx(plot["width"], abs=1)
        assert plot["x"] >= 0
        assert plot["x"] + plot["width"] <= width
    assert opened.evaluate("document.documentElement.scrollWidth") == width
    assert opened.locator("#menu").is_visible() == (width == 390)


def test_contents_on_a_phone(show, report):
    opened = show(report, viewport={"width": 390, "height": 844})
    assert opened.locator("#toc").is_hidden()
    opened.locator("#menu").click()
    opened.locator("#toc a", has_text="How it was run").click()
    assert opened.locator("#toc").is_hidden()
    opened.until(
        lambda: opened.evaluate("document.querySelector('#settings').getBoundingClientRect().top < innerHeight"), "going there"
    )


def test_controls_have_labels(opened, report):
    for node in opened.locator("main select, main input, main button, nav button").all():
        name = node.evaluate("n => n.getAttribute('aria-label') || n.closest('label')?.textContent || n.textContent")
        assert name.strip()
    for node in opened.locator(".scroll, .plot").all():
        assert node.get_attribute("role") in ("region", "img")


def test_paper_gets_every_plot(show, report):
    opened = show(report, color_scheme="dark")
    opened.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert opened.evaluate("[...document.querySelectorAll('.plot')].every(p => p.data && p._fullLayout.width === 320)")
    assert opened.evaluate("document.querySelector('.plot').layout.font.color") == "#1c2126"
    opened.evaluate("dispatchEvent(new Event('afterprint'))")
    opened.until(
        lambda: opened.plot("#fig1 .panel") and opened.evaluate("document.querySelector('.plot')._fullLayout.width") != 320,
        "back",
    )
