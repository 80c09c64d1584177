"""The colours of pictures: told apart by all readers, the same for a method everywhere; legends that hide no points."""

import itertools

import numpy as np
import pytest

import extremal as ex
from extremal.methods import METHODS
from extremal.support.palette import LATER, METHOD_COLOURS, PALETTE, colours_of_methods, colours_of_series
from extremal_lab.bench import picture
from extremal_lab.reproduction import FIGURES, demo

GROUNDS = ("#ffffff", "#161b21")  # of the page, light and dark
# Machado, Oliveira, Fernandes (2009), A physiologically-based model for simulation of color vision deficiency, severity 1
SIGHTS = {
    "all cones": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]])


def linear(text):
    """The amounts of light of a colour such as "#0b4fd0"."""
    rgb = np.array([int(text[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def seen(text, sight):
    """The colour in CIELAB, as a reader sees it."""
    xyz = TO_XYZ @ np.clip(np.array(SIGHTS[sight]) @ linear(text), 0, 1) / (0.95047, 1.0, 1.08883)
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def nearest(colours, sight):
    return min(np.linalg.norm(seen(a, sight) - seen(b, sight)) for a, b in itertools.combinations(colours, 2))


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("ground", [0, 1], ids=["light", "dark"])
def test_methods_that_are_drawn_together_are_told_apart(sight, ground):
    together = [FIGURES["fig1"].methods, tuple(demo.METHODS), tuple(METHOD_COLOURS)]
    for methods in together:
        assert nearest([pair[ground] for pair in colours_of_methods(methods).values()], sight) > 14.9


def test_colours_that_a_reader_confuses_are_found_out():
    confused = ["#b92800", "#5c6b00"]
    assert nearest(confused, "all cones") > 60
    assert max(nearest(confused, sight) for sight in ("protanopia", "deuteranopia")) < 14.9


@pytest.mark.parametrize("ground", [0, 1], ids=["light", "dark"])
def test_every_colour_stands_out_from_the_ground(ground):
    for pair in (*PALETTE, *LATER):
        dark, light = sorted(float(TO_XYZ[1] @ linear(text)) for text in (pair[ground], GROUNDS[ground]))
        assert (light + 0.05) / (dark + 0.05) >= 3.0


def test_a_method_has_its_own_colour_in_every_list():
    for others in ((), ("svrf", "auto"), ("sarah-fw:batch=1", *METHOD_COLOURS)):
        for assign in (colours_of_methods, colours_of_series):
            assert assign([*others, "sarah-fw"])["sarah-fw"] == METHOD_COLOURS["sarah-fw"]
    variants = colours_of_methods(["sarah-fw:batch=1", "sarah-fw:batch=10", "svrf"])
    assert variants["sarah-fw:batch=1"] == METHOD_COLOURS["sarah-fw"]
    assert len(set(variants.values())) == 3
    assert colours_of_methods(["svrf"])["svrf"] in LATER  # no colour that another method is known by
    assert len(set(colours_of_methods(map(str, range(14))).values())) == 14
    assert len(colours_of_methods(map(str, range(40)))) == 40


def test_the_methods_are_those_of_the_library():
    assert METHOD_COLOURS.keys() <= METHODS.keys()


def boxes(axes):
    axes.figure.draw_without_rendering()
    return axes.get_legend().get_window_extent(), axes.get_window_extent()


def test_legends_of_the_benchmarks_lie_beside_their_panels():
    from matplotlib.figure import Figure

    axes = Figure(layout="constrained").add_subplot()
    found = {"ratio": 1.0, "low": 0.9, "high": 1.2, "bar": 1.1, "unit": "passes"}
    picture._panel(axes, "methods", [("SarahFW", "b = 1", found), ("SarahFW", "b = n", found)])
    legend, inside = boxes(axes)
    assert not legend.overlaps(inside)


def test_legends_of_runs_lie_beside_their_curves():
    pytest.importorskip("sklearn")
    from extremal.sklearn import ConvergenceDisplay

    f = ex.LinearModel(ex.Squared(), np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([1.0, 3.0]))
    runs = {m: ex.minimize(f, ex.Simplex(), m, max_iter=5, record=1).trace for m in ("frank-wolfe", "sarah-fw")}
    display = ConvergenceDisplay(runs).plot()
    assert [line.get_color() for line in display.lines_] == [METHOD_COLOURS[m][0] for m in runs]
    legend, inside = boxes(display.ax_)
    assert legend.x0 >= inside.x1
