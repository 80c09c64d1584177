"""The page of a report: one whole file that loads nothing."""

from __future__ import annotations

import json
import os
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

pytest.importorskip("plotly", reason="plotly is not installed")
from extremal.checks import InputError
from extremal_lab.reproduction.page import page, write_page


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict]] = []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))


def test_the_file_loads_nothing(report):
    text, tags = page(report), Tags()
    tags.feed(text)
    for tag, attributes in tags.seen:
        for name in ("src", "href", "data", "action", "poster", "srcset"):
            assert attributes.get(name, "#").startswith(("#", "data:")), (tag, attributes)
    style = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert len(style) == 1
    assert "url(" not in style[0]
    assert "@import" not in style[0]
    policy = next(a["content"] for tag, a in tags.seen if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy


def test_nothing_in_a_report_ends_a_script(report):
    text = page(report)
    assert len(re.findall("</script", text, re.IGNORECASE)) == len(re.findall("<script", text, re.IGNORECASE)) == 3
    assert "<title>A rerun &lt;/script&gt;&lt;b&gt;bold&lt;/b&gt;</title>" in text


def test_the_report_is_inside_with_null_for_nan(report):
    found = re.search(r'<script type="application/json" id="report">(.*?)</script>', page(report), re.DOTALL)
    assert found
    held = json.loads(found[1], parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert held["figures"][0]["problems"][0]["curves"][2]["runs"][0]["value"][-1] is None
    for run in report["figures"][0]["problems"][0]["curves"][2]["runs"]:
        run["value"] = [None if np.isnan(v) else v for v in run["value"]]
    assert held == report


def test_the_page_is_plotly_the_report_and_little_else(report):
    from plotly.offline import get_plotlyjs

    rest = len(page(report)) - len(get_plotlyjs()) - len(json.dumps(report, separators=(",", ":")))
    assert 20_000 < rest < 80_000


def test_written_whole(report, tmp_path):
    path = tmp_path / "page.html"
    write_page(path, report)
    assert path.read_text(encoding="utf-8") == page(report)
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize("name", ["replace", "fsync"])
def test_absent_if_writing_fails(name, report, tmp_path, monkeypatch):
    def fail(*args):
        raise OSError("the disk is full")

    monkeypatch.setattr(os, name, fail)
    with pytest.raises(OSError, match="full"):
        write_page(tmp_path / "page.html", report)
    assert not list(tmp_path.iterdir())


def test_an_older_page_stays_if_the_report_is_no_data(report, tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old")
    with pytest.raises(TypeError):
        write_page(path, report | {"settings": {"x": object()}})
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_a_directory_that_does_not_exist_is_a_mistake(report, tmp_path):
    with pytest.raises(InputError, match="there is no directory"):
        write_page(tmp_path / "no" / "page.html", report)


def test_without_plotly_it_says_what_to_install(report, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(InputError, match="pip install"):
        page(report)
