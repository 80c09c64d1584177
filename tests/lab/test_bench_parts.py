"""The parts of the benchmarks: that every part runs at its smallest size, and bars and peers are judged as they are said."""

import json
import subprocess
import sys
import types

import numpy as np
import pytest
from test_bench_timing import FakeClock, fake_result

from extremal_lab.bench import (
    copt,
    iterations,
    machine,
    memory,
    methods,
    peer_copt,
    peers,
    problems,
    rows,
    sizes,
    suite,
    variance,
    worker,
)
from extremal_lab.bench.timing import Measurement, Skipped, seconds


@pytest.fixture
def three_gradients(monkeypatch):
    """Runs that take 6 ms a pass, scipy gradients that take 2 ms, and what was asked for."""
    asked = []

    def fake_run(f, recipe, loop=False, seed=0, max_grads=0):
        asked.append((type(recipe).__name__, getattr(recipe, "batch", None), loop))
        return fake_result([0.0, 0.006 * 5], [1.0, 6.0], [0, 100])

    monkeypatch.setattr(methods, "run", fake_run)
    monkeypatch.setattr(methods, "seconds", lambda work, times=1: 0.002)
    monkeypatch.setattr(methods, "enough", lambda work, target: 1)
    return asked


def test_methods_by_a_fake_clock(three_gradients):
    problem = problems.generated(1000, 24, per_row=12)
    found = {m.name: m for m in methods.on(problem, "w8a", methods.Sizes(slow=("w8a",), repeats=2))}
    usual = {name: m for name, m in found.items() if "whole call" not in name}
    assert all(m.ratio == pytest.approx(3.0) for m in usual.values())
    assert len(usual) == 8 * 4 + 2  # two batches, with and without bursts; the classic method has no batch
    assert set(three_gradients) >= {("SarahFW", 10, True), ("SarahFW", 1, False), ("FrankWolfe", None, True)}


@pytest.mark.parametrize(("data", "more"), [("w8a", {"b = n/100, loop": 4.0}), ("a8a", {"b = 1": 4.0}), ("mushrooms", {})])
def test_the_bars_of_the_methods(three_gradients, data, more):
    found = methods.on(problems.generated(1000, 24, per_row=12), data, methods.Sizes(repeats=1))
    bars = {m.name.partition(": ")[2]: m.bar for m in found if m.bar is not None}
    assert bars == {f"{method}, {which}": bar for method in methods.OURS for which, bar in ({"b = n/100": 1.2} | more).items()}


@pytest.mark.parametrize("part", [part for part in worker.PARTS if part not in worker.NETWORK])
def test_every_part_runs(part):
    items = list(worker.found(part, "smoke"))
    found = [item for item in items if isinstance(item, Measurement)]
    assert found
    assert {item.part for item in items} == {part}
    assert len({item.name for item in items}) == len(items), "a name stands for one measurement"
    assert all(item.low <= item.ratio <= item.high and item.unit for item in found)
    assert [worker.read(worker.line(item)) for item in items] == items


@pytest.mark.parametrize("part", worker.PARTS)
def test_every_part_has_every_level(part):
    module = __import__(f"extremal_lab.bench.{part}", fromlist=["LEVELS"])
    assert set(module.LEVELS) == set(suite.LEVELS)
    assert module.PART == part


def test_the_bars_of_the_iterations(monkeypatch):
    """One of Sarah's in a million dimensions, at b = 1, against the dense pass; the plain pass is told of the same runs."""
    monkeypatch.setattr(iterations, "_iteration", lambda f, b, recipe, sizes: lambda: 1e-5)
    passes = {iterations.PASS: lambda: 1e-3, iterations.PLAIN: lambda: 5e-4}
    monkeypatch.setattr(iterations, "_passes", lambda d, target: passes)
    few = iterations.Sizes((1000, iterations.LARGEST), (1, 10), rows=10, per_row=5, repeats=2)
    monkeypatch.setitem(iterations.LEVELS, "smoke", few)
    found = {m.name: m for m in iterations.measure("smoke") if isinstance(m, Measurement)}
    assert {name: m.bar for name, m in found.items() if m.bar is not None} == {"SarahFW by abs(g).max(): d = 10^6, b = 1": 0.02}
    for dense, ratio in (("abs(g).max()", 0.01), ("g.sum()", 0.02)):
        m = found[f"SarahFW by {dense}: d = 10^6, b = 1"]
        assert (m.ratio, dense in m.unit) == (pytest.approx(ratio), True)
    slopes = {name: m.ratio for name, m in found.items() if name.startswith("exponents: ")}
    assert len(slopes) == 4
    assert all(abs(slope) < 1e-9 for slope in slopes.values())  # the same cost everywhere


@pytest.mark.parametrize("level", ["quick", "default", "full"])
def test_what_a_run_costs_once_is_shared_by_many_iterations(monkeypatch, level):
    asked = []

    def fake_run(f, recipe, seed=0, max_iter=0):
        asked.append(max_iter)
        return fake_result([0.0, 1.0], [1.0, 2.0], [0, max_iter])

    monkeypatch.setattr(iterations, "run", fake_run)
    for b in (1, 1000):
        assert iterations._iteration(None, b, None, iterations.LEVELS[level])() == 1 / asked[-1]
    assert asked[1] >= 20_000
    assert asked[3] >= 200


def test_rows_compare_passes_over_the_same_bytes():
    """Both calls of a pair that has a bar find the same; without one is what random rows cost more."""
    found = list(rows.pairs(rows.Sizes((240,), (60,), 8, (70,))))
    assert [pair.name for pair in found if pair.bar is None] == ["rows at random: A[idx] x, 240 x 60"]
    assert {pair.bar for pair in found} == {1.5, None}
    lmos = [pair for pair in found if pair.unit == rows.VECTOR]
    assert len(found) - 1 - len(lmos) == 4  # gradients of sparse and dense rows, and both products
    for pair in found:
        if pair.bar is not None and pair not in lmos:
            assert np.allclose(pair.ours(), pair.other(), rtol=1e-12), pair.name
    g = np.random.default_rng(3).standard_normal(70)
    for pair in lmos:
        assert 20 * pair.other() == -pair.ours().dot(g)


def test_sizes_compare_what_exceeds_the_cache(monkeypatch):
    monkeypatch.setattr(sizes, "largest_cache", lambda: 200_000 * sizes.ROW)
    costs = {10_000: [9.0, 9.0, 9.0], 300_000: [1.0, 2.0, 2.0], 1_000_000: [3.0, 2.2, 2.0]}
    slope, constant = sizes._growth("SarahFW", "rows", costs)
    assert constant.ratio == pytest.approx(1.1)  # of the medians
    assert (constant.low, constant.high, constant.bar) == (1.0, 3.0, 1.2)
    assert slope.ratio < 1
    monkeypatch.setattr(sizes, "largest_cache", lambda: 10**12)
    assert isinstance(list(sizes._growth("SarahFW", "rows", costs))[1], Skipped)


def test_sizes_that_do_not_fit_are_left_out(monkeypatch):
    monkeypatch.setattr(sizes, "free_memory", lambda: sizes.needed(1000))
    items = list(sizes.measure("smoke"))
    assert [item.name for item in items if isinstance(item, Skipped) and item.name.startswith("n =")] == ["n = 2 10^3"]
    assert not any("2 10^3" in item.name for item in items if isinstance(item, Measurement))


def test_variance_of_blocks_is_that_of_rows_if_they_are_shuffled():
    found = {m.name.rpartition(", ")[2]: m.ratio for m in variance.measure("smoke")}
    assert 0.3 < found["shuffled"] < 3
    assert found["sorted by target"] > 10


def test_memory_is_held_against_its_bound(monkeypatch):
    """24 bytes a row beside the data are allowed, 25 are not, once the allowance is used up."""

    def fake_peak(method, case, each=25):
        data = 100 * case.n
        return {"n": case.n, "d": case.d, "data": data, "peak": data + each * case.n + 64 * case.d + 200e6}

    monkeypatch.setattr(memory, "peak_of", fake_peak)
    peak, row = memory.measure("smoke")
    assert (peak.bar, peak.verdict) == (1.0, "missed")
    assert (row.ratio, row.bar) == (pytest.approx(25), None)
    assert peak.ratio == pytest.approx(1, rel=1e-3)
    monkeypatch.setattr(memory, "peak_of", lambda method, case: fake_peak(method, case, each=24))
    assert next(iter(memory.measure("smoke"))).verdict == "met"


def test_the_peak_of_a_process_is_its_own():
    """What is allocated shows, also after it has been given back."""
    code = "from extremal_lab.bench.machine import peak_memory as p; a = p(); x = bytearray(50_000_000); del x; print(p() - a)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 45e6 < int(out.stdout) < 60e6


def test_what_the_system_says_of_its_memory(tmp_path, monkeypatch):
    said = tmp_path / "meminfo"
    said.write_text("MemTotal: 10 kB\nMemAvailable:    7 kB\n")
    assert machine._field(said, "MemAvailable") == 7 * 1024
    assert machine._field(tmp_path / "absent", "MemAvailable") is None
    size = tmp_path / "size"
    for text, number in (("512K", 512 * 1024), ("32M", 32 * 2**20), ("1", 1), ("what", 0)):
        size.write_text(text + "\n")
        assert machine._bytes(size) == number


# peers


def test_a_peer_that_does_not_install_is_said_so(monkeypatch, tmp_path):
    fails = [sys.executable, "-c", "import sys; sys.exit('a line\\nno wheel for this system')"]
    do = copt._do
    monkeypatch.setattr(copt, "_folder", lambda: tmp_path)
    monkeypatch.setattr(copt, "_do", lambda command: do(fails) if "pip" in command else "")
    (item,) = copt.measure("smoke")
    assert isinstance(item, Skipped)
    assert item.reason.endswith("no wheel for this system")
    assert not (tmp_path / "installed.txt").exists()


def test_an_environment_is_made_once(monkeypatch, tmp_path):
    done = []
    (tmp_path / "kept").mkdir()
    monkeypatch.setattr(copt, "_do", lambda command: done.append(command[1:3]) or "")
    for _ in range(2):
        copt.environment(tmp_path / "kept", ("copt",))
    assert done == [["-m", "venv"], ["-m", "pip"]]
    copt.environment(tmp_path / "kept", ("another",))
    assert len(done) == 4


def test_copts_epochs_by_a_fake_clock(monkeypatch, tmp_path, capsys):
    """An epoch of 0.8 s that covers 96 of 97 rows, and 2 s that a run costs before, over a scipy gradient of 0.1 s."""
    clock = FakeClock()

    def minimize_sfw(deriv, A, y, x0, lmo, batch_size, max_iter, tol, variant):
        assert set(y) <= {0.0, 1.0}
        assert (batch_size, tol) == (1 if A.shape[0] <= 100 else 2, 0)
        clock.now += 2.0 + 0.8 * max_iter

    loss = types.SimpleNamespace(LogLoss=lambda A, y: types.SimpleNamespace(partial_deriv=None))
    constraint = types.SimpleNamespace(L1Ball=lambda radius: types.SimpleNamespace(lmo=None))
    monkeypatch.setitem(sys.modules, "copt", types.SimpleNamespace(loss=loss, constraint=constraint, __version__="0"))
    monkeypatch.setitem(sys.modules, "copt.randomized", types.SimpleNamespace(minimize_sfw=minimize_sfw))
    monkeypatch.setattr(peer_copt, "time", types.SimpleNamespace(process_time=clock))
    monkeypatch.setattr(peer_copt, "scipy_pass", lambda A, y: 0.1)
    problem = problems.generated(101, 24, per_row=12)
    A = problem.A
    np.savez(tmp_path / "data.npz", data=A.data, indices=A.indices, indptr=A.indptr, shape=A.shape, y=problem.y)
    peer_copt.main(str(tmp_path / "data.npz"), repeats=2, epochs=3)
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["variant"] for line in said] == ["SAG", "SAGA", "MHK", "LF"]
    assert said[0]["ratios"] == pytest.approx([8.0 * 101 / 100] * 2)


def test_what_a_peer_says_is_measured(monkeypatch, tmp_path):
    monkeypatch.setattr(copt, "environment", lambda folder, packages: tmp_path)
    line = '{"variant": "SAG", "version": "0.9.2", "ratios": [60.0, 50.0, 70.0]}'
    monkeypatch.setattr(copt, "_do", lambda command: f"a stray line\n{line}\n")
    (found,) = copt.measure("smoke")
    assert (found.ratio, found.low, found.high) == (60.0, 50.0, 70.0)
    assert found.name.endswith("mushrooms: copt SAG, b = n/100")


# the best tool for each problem


def contest(error, others, ours=lambda: 0.0):
    return peers.Contest("a problem", ours, others, error, 1e-4, 2.0)


def test_the_fastest_tool_at_its_loosest_good_tolerance_counts(monkeypatch):
    clock = FakeClock()

    def slow(tol):
        clock.now += 5.0
        return 0.0

    def quick(tol):
        clock.now += 1.0 if tol > 1e-5 else 2.0
        return 5 * tol

    def ours():
        clock.now += 6.0
        return 0.0

    monkeypatch.setattr(peers, "seconds", lambda work, times=1: seconds(work, times, clock))
    monkeypatch.setattr(peers, "enough", lambda work, target: 1)
    found = peers.held(contest(abs, {"slow": slow, "quick": quick}, ours), peers.Sizes(repeats=2))
    assert (found.name, found.ratio, found.verdict) == ("a problem, over quick", 3.0, "missed")
    assert found.note == "quick at 1e-05, to 0.0001"


def test_a_precision_that_is_missed_is_said_so():
    ours = peers.held(contest(lambda x: 0.5, {}), peers.Sizes())
    assert isinstance(ours, Skipped)
    assert ours.reason == "ours ends at 5.0e-01, and 0.0001 was asked for"
    theirs = peers.held(contest(abs, {"rough": lambda tol: 1.0}), peers.Sizes())
    assert isinstance(theirs, Skipped)
    assert theirs.reason == "not reached by rough"
    unsure = peers.Contest("a problem", lambda: 0.0, {}, abs, 1e-4, None, 1e-3)
    assert peers.held(unsure, peers.Sizes()) == Skipped("peers", "a problem", "the least value is known to 1.0e-03 only")
