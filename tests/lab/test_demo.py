"""The demonstration: what it says fits on a screen, and the picture has nothing on top of anything else."""

import io
import re
import sys
import tomllib
from pathlib import Path

import pytest
from command_line import refused, run
from rich.console import Console

from extremal_lab.reproduction import demo, extras

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Lines, the picture's file and the picture itself, of a run with a tenth of the passes."""
    out, kept, text = tmp_path_factory.mktemp("demo") / "picture.png", [], io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "PASSES", 10)
        draw = demo._draw
        patch.setattr(demo, "_draw", lambda *parts: kept.append(draw(*parts)))
        demo.run(out, Console(file=text, width=80))
    return text.getvalue().splitlines(), out, kept[0]


def test_the_demonstration_in_twenty_lines(shown):
    lines, out, _ = shown
    text = "\n".join(lines)
    assert len(lines) <= 20
    assert 'ConstrainedLogisticRegression([{"radius": ">= 0"' in text  # by feature names
    assert "3 of 10 signs are wrong: perimeter -0." in text
    assert "none is; violation 0, l1 norm 12" in text
    lower = float(re.search(r"no model that keeps the constraint is lower by more than (\S+)", text)[1])
    assert lower <= 1e-6 * float(re.search(r"loss (0\.\d+);", text)[1])
    rows = {line.split()[0]: line.split()[1:] for line in lines if line.strip().startswith(tuple(demo.METHODS))}
    assert list(rows) == ["auto", "sarah-fw", "saga-sarah-fw", "frank-wolfe"]
    values = {name: float(row[0]) for name, row in rows.items()}
    assert values["auto"] == min(values.values())
    assert rows["auto"][-1] == "gap"
    assert str(out) in text
    assert out.read_bytes().startswith(b"\x89PNG")


def test_nothing_in_the_picture_is_cut_off_or_overlaps(shown):
    _, _, picture = shown
    picture.draw_without_rendering()
    edge = picture.get_window_extent()
    for axes in picture.get_axes():
        (title,) = [text for text in (axes._left_title, axes.title, axes._right_title) if text.get_text()]
        low, high = axes.get_ylim()
        names = [text for text in axes.get_yticklabels() if low <= text.get_position()[1] <= high]  # others are not drawn
        boxes = [text.get_window_extent() for text in (title, axes.xaxis.label, *names)]
        assert all(edge.x0 <= box.x0 and box.x1 <= edge.x1 and edge.y0 <= box.y0 and box.y1 <= edge.y1 for box in boxes)
        assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])
    left, right = picture.get_axes()
    assert left.get_title("left") != right.get_title("left")
    drawn = {line.get_label(): line.get_color() for line in right.get_lines() if not line.get_label().startswith("_")}
    assert len(set(drawn.values())) == len(demo.METHODS)  # one colour for each method
    for axes in (left, right):  # legends hide nothing
        legend, label = axes.get_legend().get_window_extent(), axes.xaxis.label.get_window_extent()
        assert not legend.overlaps(axes.get_window_extent())
        assert not legend.overlaps(label)
        assert edge.x0 <= legend.x0
        assert legend.x1 <= edge.x1
        assert edge.y0 <= legend.y0


def test_without_scikit_learn_one_line_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    refused(run("demo"), "scikit-learn", "pip install 'extremal[demo]'")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("extra", extras.EXTRAS)
def test_what_is_asked_for_is_what_the_extra_brings(extra):
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

    def brought(name):
        for line in groups[name]:
            package, inner = re.match(r"([\w-]+)(?:\[(.*?)\])?", line).groups()
            yield from [package] if package != "extremal" else (p for held in inner.split(",") for p in brought(held))

    assert set(extras.EXTRAS[extra].values()) <= set(brought(extra))
    assert "$(BIN)/extremal demo" in (ROOT / "Makefile").read_text().partition("demo: $(VENV)/demo.stamp")[2]
