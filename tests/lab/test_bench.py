"""The benchmarks: that ratios are what they say, every part runs, and what is written is whole and has a history."""

import json
import math
import os
import subprocess
import sys
import types

import numpy as np
import pytest
from test_cli import refused, run

from extremal.checks import InputError
from extremal.files import datasets
from extremal.run.result import Trace
from extremal_lab.bench import (
    iterations,
    machine,
    memory,
    methods,
    peer_copt,
    peers,
    picture,
    problems,
    report,
    rows,
    sizes,
    suite,
    timing,
    variance,
    worker,
)
from extremal_lab.bench.timing import Measurement, Skipped
from extremal_lab.threads import ONE_THREAD

UNIT = "scipy full gradients"


def measured(part="methods", name="w8a: SarahFW, b = n/100", ratios=(1.0, 1.1, 3.0), bar=1.2):
    return Measurement.of(part, name, ratios, unit=UNIT, bar=bar)


class FakeClock:
    """Goes on by what is spent, and by nothing else."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def spends(self, seconds):
        def work():
            self.now += seconds

        return work


# ratios


def test_a_measurement_is_the_median_and_its_spread():
    found = measured(ratios=[1.0, 3.0, 1.1])
    assert (found.ratio, found.low, found.high, found.repeats) == (1.1, 1.0, 3.0, 3)
    assert found.verdict == "met"
    assert measured(ratios=[1.3]).verdict == "missed"
    assert measured(bar=None).verdict == ""


@pytest.mark.parametrize("ratios", [[], [1.0, math.nan], [math.inf]])
def test_what_is_no_number_is_no_measurement(ratios):
    with pytest.raises(ValueError, match="no finite ratios"):
        measured(ratios=ratios)


def test_seconds_are_the_mean_of_the_calls():
    clock = FakeClock()
    assert timing.seconds(clock.spends(0.5), times=8, clock=clock) == 0.5
    assert clock.now == 4.0


def test_enough_calls_take_the_target():
    clock = FakeClock()
    assert timing.enough(clock.spends(0.01), 0.1, clock=clock) == 16
    assert timing.enough(clock.spends(0.0), 0.1, most=100, clock=clock) == 100


def test_turns_divide_by_the_neighbours():
    """A base that becomes slower in between counts half before and half after."""
    bases = iter([1.0, 3.0, 3.0, 5.0, 5.0])
    ratios = timing.in_turns(lambda: next(bases), {"a": lambda: 4.0, "b": lambda: 6.0}, repeats=2)
    assert ratios == {"a": [2.0, 1.0], "b": [2.0, 1.2]}


def test_several_bases_are_for_the_same_runs():
    runs = iter([4.0, 8.0])
    found = timing.against({"slow": lambda: 2.0, "fast": lambda: 1.0}, {"a": lambda: next(runs)}, repeats=2)
    assert found == {"slow": {"a": [2.0, 4.0]}, "fast": {"a": [4.0, 8.0]}}


def test_exponents():
    assert timing.exponent([10, 100, 1000], [5, 50, 500]) == pytest.approx(1.0)
    assert timing.exponent([10, 100, 1000], [7, 7, 7]) == pytest.approx(0.0)
    with pytest.raises(InputError):
        timing.exponent([10], [1])


def fake_result(cpu, passes, iters):
    trace = Trace()
    for row in zip(iters, passes, cpu, strict=True):
        trace.append(dict(zip(("iter", "passes", "cpu"), row, strict=True)))
    return types.SimpleNamespace(trace=trace)


def test_costs_are_from_the_first_state_on():
    r = fake_result(cpu=[1.0, 4.0], passes=[1.0, 7.0], iters=[0, 12])
    assert problems.per_pass(r) == 0.5
    assert problems.per_iteration(r) == 0.25


def test_scipys_gradient_is_the_gradient():
    problem = problems.generated(300, 40, per_row=4)
    x = np.linspace(-1, 1, 40)
    assert np.allclose(problem.scipy_gradient()(), problem.f.grad(x), rtol=1e-12)


def test_generated_rows_are_what_they_should_be():
    problem = problems.generated(70_000, 60, per_row=5)
    A = problem.A
    assert A.indices.dtype == np.int32
    assert A.data.dtype == np.float64
    assert set(np.diff(A.indptr)) == {5}
    assert (np.diff(A.indices.reshape(-1, 5)) > 0).all()
    assert abs(A.data[-5000:].mean()) < 0.1  # the last block is filled, too
    assert 0.9 < A.data[-5000:].std() < 1.1
    assert set(problem.y) == {-1.0, 1.0}


def test_a_stand_in_is_called_so(monkeypatch, tmp_path):
    monkeypatch.delenv("EXTREMAL_DATA", raising=False)
    monkeypatch.setattr(datasets, "user_dir", lambda: tmp_path)
    assert problems.named("mushrooms").name == "like mushrooms"


# the parts


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


@pytest.mark.parametrize("part", [part for part in worker.PARTS if part not in suite.NETWORK])
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


def test_rows_by_a_fake_clock(monkeypatch):
    """Ours over the other's, not the other way round."""
    times = {"ours": 3.0, "other": 2.0}
    monkeypatch.setattr(rows, "seconds", lambda work, times_: times[work()])
    monkeypatch.setattr(rows, "enough", lambda work, target: 1)
    found = rows.compared(rows.Pair("dot", lambda: "ours", lambda: "other"), rows.Sizes(repeats=3))
    assert (found.ratio, found.repeats, found.bar, found.unit) == (1.5, 3, 1.5, rows.SCIPY)


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
    do = peers._do
    monkeypatch.setattr(peers, "_folder", lambda: tmp_path)
    monkeypatch.setattr(peers, "_do", lambda command: do(fails) if "pip" in command else "")
    (item,) = peers.measure("smoke")
    assert isinstance(item, Skipped)
    assert item.reason.endswith("no wheel for this system")
    assert not (tmp_path / "installed.txt").exists()


def test_an_environment_is_made_once(monkeypatch, tmp_path):
    done = []
    (tmp_path / "kept").mkdir()
    monkeypatch.setattr(peers, "_do", lambda command: done.append(command[1:3]) or "")
    for _ in range(2):
        peers.environment(tmp_path / "kept", ("copt",))
    assert done == [["-m", "venv"], ["-m", "pip"]]
    peers.environment(tmp_path / "kept", ("another",))
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
    monkeypatch.setattr(peers, "environment", lambda folder, packages: tmp_path)
    line = '{"variant": "SAG", "version": "0.9.2", "ratios": [60.0, 50.0, 70.0]}'
    monkeypatch.setattr(peers, "_do", lambda command: f"a stray line\n{line}\n")
    (found,) = peers.measure("smoke")
    assert (found.ratio, found.low, found.high) == (60.0, 50.0, 70.0)
    assert found.name.endswith("mushrooms: copt SAG, b = n/100")


# the suite


def test_a_part_runs_on_one_thread_in_a_process_of_its_own(monkeypatch):
    for name in ONE_THREAD:
        monkeypatch.setenv(name, "2")
    seen, made = [], []
    popen = subprocess.Popen
    monkeypatch.setattr(suite.subprocess, "Popen", lambda *args, **more: made.append(more["env"]) or popen(*args, **more))
    items = suite.run(["variance"], "smoke", seen.append)
    assert items == seen
    assert len(items) == 2
    assert {name: made[0][name] for name in ONE_THREAD} == ONE_THREAD


def test_a_part_that_fails_is_told_and_the_others_go_on(monkeypatch):
    monkeypatch.setenv("EXTREMAL_DATA", "/no such folder")
    items = suite.run(["variance", "iterations"], "smoke", lambda item: None)
    assert suite.failed(items)
    assert isinstance(items[0], Skipped)
    assert "EXTREMAL_DATA" in items[0].reason
    assert any(isinstance(item, Measurement) for item in items)


def test_parts_are_chosen_by_name():
    assert suite.chosen(["memory", "methods"]) == ["methods", "memory"]
    assert suite.chosen(["methods"], peers=True) == ["methods", *suite.NETWORK]
    assert not set(suite.OPTIONAL) & set(suite.chosen([]))
    assert suite.complete(suite.chosen([]))
    assert not suite.complete(["methods"])
    with pytest.raises(InputError, match="did you mean 'memory'"):
        suite.chosen(["memroy"])


# what is written


@pytest.fixture
def canned(tmp_path, monkeypatch):
    """The command with results that are there already, in a folder of its own; add to the list what should be found."""
    monkeypatch.chdir(tmp_path)
    items = []
    monkeypatch.setattr(suite, "run", lambda parts, level, see: [item for item in items if item.part == parts[0]])
    items += [measured(), measured(name="w8a: SarahFW, b = 1", ratios=[5.0], bar=None), Skipped("sizes", "blocks", "none yet")]
    return items


def test_a_run_of_all_parts_is_kept(canned, tmp_path):
    result = run("bench", "--out", "out")
    assert result.exit_code == 0, result.output
    (path,) = (tmp_path / "out").glob("20*.json")
    assert (tmp_path / "out" / "latest.png").read_bytes().startswith(b"\x89PNG")
    said = json.loads(path.read_text())
    assert path.stem == report.stem(said)
    assert set(said) == {
        "schema", "date", "version", "commit", "changed", "level", "machine", "versions", "measurements", "skipped",
    }  # fmt: skip
    assert set(said["machine"]) == {"processor", "cores", "system"}
    assert set(said["versions"]) == {"python", "numpy", "scipy", "numba"}
    assert said["level"] == "default"
    assert said["measurements"][0] == {
        "part": "methods", "name": "w8a: SarahFW, b = n/100", "ratio": 1.1, "low": 1.0, "high": 3.0, "repeats": 3,
        "unit": UNIT, "bar": 1.2, "note": "",
    }  # fmt: skip
    assert said["measurements"][1]["bar"] is None
    assert said["skipped"] == [{"part": "sizes", "name": "blocks", "reason": "none yet"}]
    for word in ("SarahFW", "1.1", "1.2", "met", "not measured: none yet", "latest.png"):
        assert word in result.stdout


def test_nothing_that_names_the_machine_is_written(canned, tmp_path):
    import platform

    run("bench", "--out", "out")
    (path,) = (tmp_path / "out").glob("20*.json")
    assert str(tmp_path) not in path.read_text()
    assert os.sep + "src" not in path.read_text()
    assert json.dumps(platform.node()) not in path.read_text()


@pytest.mark.parametrize(("words", "name"), [(["--quick"], "quick"), (["methods"], "parts"), (["methods", "--quick"], "quick")])
def test_quick_runs_and_single_parts_are_not_history(canned, tmp_path, words, name):
    assert run("bench", *words, "--out", "out").exit_code == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {f"{name}.json", f"{name}.png"}


def test_a_run_that_failed_is_not_history(canned, tmp_path):
    canned.append(Skipped("memory", suite.FAILED, "MemoryError"))
    result = run("bench", "--out", "out")
    assert result.exit_code == 1
    assert "MemoryError" in result.stdout
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"parts.json", "parts.png"}


def test_strict_ends_with_3_where_a_bar_is_missed(canned):
    assert run("bench", "--strict").exit_code == 0
    canned.append(measured(name="a8a: SarahFW, b = n/100", ratios=[1.21]))
    assert run("bench").exit_code == 0
    result = run("bench", "--strict")
    assert result.exit_code == 3
    assert "Bars met: 1 of 2\nmissed: methods, a8a: SarahFW, b = n/100: 1.21, bar 1.2\n" in result.stdout


def test_brackets_are_shown_as_they_are(canned):
    canned.append(measured("rows", "9 x 9: A[idx] x, all rows", ratios=[9.0]))
    assert run("bench").stdout.count("A[idx] x") == 2  # in its table, and as missed


def test_mistakes_are_one_line(canned, tmp_path):
    refused(run("bench", "memroy"), "memroy", "memory")
    refused(run("bench", "--quick", "--full"), "--quick", "--full")
    (tmp_path / "file").write_text("")
    refused(run("bench", "--out", "file"), "file")


def test_ctrl_c_writes_nothing(canned, tmp_path, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(suite, "run", interrupted)
    result = run("bench", "--out", "out")
    assert result.exit_code == 130
    assert result.stderr.count("\n") == 1
    assert not list((tmp_path / "out").iterdir())


def test_without_matplotlib_the_numbers_are_written_all_the_same(canned, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run("bench", "--out", "out")
    assert result.exit_code == 0, result.output
    assert "pip install 'extremal[figures]'" in result.stdout
    assert [path.suffix for path in (tmp_path / "out").iterdir()] == [".json"]


def test_the_command_needs_no_extras():
    """Everything it imports is there without matplotlib, plotly, scikit-learn and the like."""
    modules = ", ".join(f"extremal_lab.bench.{name}" for name in (*worker.PARTS, "report", "picture", "suite", "worker"))
    absent = "('matplotlib', 'plotly', 'sklearn', 'platformdirs', 'pooch', 'requests', 'pandas', 'highspy', 'networkx')"
    code = f"import sys; sys.modules.update(dict.fromkeys({absent})); import {modules}, extremal_lab.commands.bench"
    subprocess.run([sys.executable, "-c", code], check=True)


# history


def document(date, commit, ratio):
    said = report.document([measured(ratios=[ratio])], "default")
    return said | {"date": f"{date}T00:00:00Z", "commit": commit, "changed": False}


def test_the_history_is_in_order_and_leaves_other_files_alone(tmp_path):
    for date, commit in (("2026-03-02", "aaaaaaa"), ("2026-03-01", "bbbbbbb"), ("2026-03-01", "0000000")):
        said = document(date, commit, 1.0)
        report.write(tmp_path / f"{report.stem(said)}.json", said)
    (tmp_path / "quick.json").write_text("{}")
    assert [said["date"][:10] for said in report.history(tmp_path)] == ["2026-03-01", "2026-03-01", "2026-03-02"]
    (tmp_path / "2026-03-03-ccccccc.json").write_text('{"schema": 1}')
    with pytest.raises(InputError, match="not a file of this suite"):
        report.history(tmp_path)


def test_the_name_of_a_file_tells_commit_or_version():
    said = document("2026-03-01", "0a1b2c3", 1.0)
    assert report.stem(said) == "2026-03-01-0a1b2c3"
    assert report.stem(said | {"changed": True}) == "2026-03-01-0a1b2c3+"
    assert report.stem(said | {"commit": None, "changed": True, "version": "1.2"}) == "2026-03-01-1.2"


def test_the_picture_shows_the_history_where_there_is_one(tmp_path, monkeypatch):
    past = [document("2026-03-01", "aaaaaaa", 2.4), document("2026-03-02", "bbbbbbb", 1.2)]
    seen = []
    monkeypatch.setattr(picture, "_history", lambda axes, kept: seen.append(len(kept)))
    picture.draw(tmp_path / "one.png", past[0], past[:1])
    assert not seen
    picture.draw(tmp_path / "two.png", past[1], past)
    assert seen == [2]


def test_the_history_is_drawn_in_units_of_the_bar():
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    picture._history(axes, [document("2026-03-01", "aaaaaaa", 2.4), document("2026-03-02", "bbbbbbb", 0.6)])
    (line,) = [line for line in axes.lines if line.get_label() == "methods, w8a: SarahFW, b = n/100"]
    assert line.get_xydata().tolist() == [[0, 2.0], [1, 0.5]]


def test_a_panel_shows_ratio_spread_and_bar():
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    ((title, rows),) = picture.panels_of([measured(ratios=[1.0, 1.5, 3.0]).as_dict()]).items()
    picture._panel(axes, title, rows)
    spread, ratio, bar = axes.lines[:3]
    assert (title, list(spread.get_xdata()), list(ratio.get_xdata())) == ("methods, w8a", [1.0, 3.0], [1.5])
    assert (ratio.get_marker(), list(bar.get_xdata())) == ("X", [1.2])  # a cross: missed


def test_it_is_listed_in_the_help():
    result = run("bench", "--help")
    assert result.exit_code == 0
    assert all(part in result.stdout for part in worker.PARTS)
    assert "Exit codes: 0 measured" in result.stdout
