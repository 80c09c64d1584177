"""Answers in files, and their check: honest answers are proved, answers with one changed number never are."""

from __future__ import annotations

import ast
import inspect
import io
import json
import pickle
import zipfile
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import cases
import numpy as np
import pytest
import scipy.sparse as sp
from test_catalogue import CASES as CATALOGUE
from typer.testing import CliRunner

import extremal as ex
from extremal.checks import InputError
from extremal.cli.commands import app
from extremal.files.answers import FACTS, arrays_of, load_answer, row_blocks, verify_arrays
from extremal.sets import membership
from extremal.sets.membership import exact_dot, excesses
from extremal.trust import verifier
from extremal.trust.plans import plan_of, set_from
from extremal.trust.verifier import check_answer, fingerprint, seal_of

PART = 1e-6  # the share by which numbers are changed
RNG = np.random.default_rng(0)
B = RNG.standard_normal((40, 4))
LABELS = np.argmax(B[:, :3] + RNG.standard_normal((40, 3)), axis=1)
COUNTS = RNG.poisson(1.0, 40).astype(np.float64)
SIGNS = np.where(B[:, 0] + RNG.standard_normal(40) > 0, 1.0, -1.0)


def sealed(held):
    """The arrays with a new seal, as by somebody who knows how it is made."""
    return held | {"seal": np.asarray(seal_of(held))}


def changed(a: np.ndarray) -> np.ndarray:
    """The array with its largest number changed by one part in 10^6, or another text or whole number."""
    if a.dtype.kind == "U":
        return np.asarray(str(a) + " ")
    new = a.copy().reshape(-1)
    j = int(np.nan_to_num(np.abs(new.astype(np.float64)), posinf=0.0).argmax())
    new[j] = new[j] * (1 + PART) if a.dtype.kind == "f" and new[j] else new[j] + 1 if a.dtype.kind in "iu" else PART
    return new.reshape(a.shape) if a.dtype.kind != "b" else ~a


def model(kind: str = "logistic"):
    """A small problem with an active constraint, and its answer."""
    f = ex.LinearModel(ex.Logistic(), B, SIGNS) if kind == "logistic" else ex.InterceptModel(ex.Logistic(), B, SIGNS)
    return f, ex.minimize(f, ex.L1Ball(1.5), tol=1e-2, method="frank-wolfe")


# honest answers


@pytest.mark.parametrize("loss", [*cases.LOSSES, *cases.SPECIAL_LOSSES[:2]], ids=repr)
@pytest.mark.parametrize("C", cases.SETS, ids=repr)
def test_answers_are_proved(loss, C, tmp_path):
    f = cases.model(loss)
    r = ex.minimize(f, C, tol=1e-7)
    r.save(tmp_path / "answer.npz")
    found = ex.verify(tmp_path / "answer.npz", f, C)
    assert found.verdict == "proved", found
    assert found.value[0] <= cases.full(loss, r.x)[0] * (1 + 1e-12)
    assert found.gap[1] <= r.gap + 1e-11
    assert found.stated == (r.value, r.gap)


LINES = ex.Logistic(), ex.Squared(), ex.Huber(0.3), ex.Quantile(0.8, 0.5), ex.Quantile(0.3, 1e-2)


@pytest.mark.parametrize("loss", LINES, ids=repr)
@pytest.mark.parametrize("rows", [np.asarray, sp.csr_array, lambda A: A.astype(np.float32)], ids=["dense", "csr", "float32"])
def test_intercepts_weights_and_kinds_of_rows(loss, rows):
    y = SIGNS if loss.labels else B @ [1.0, -1.0, 0.0, 2.0] + COUNTS
    for kind in (ex.LinearModel, ex.InterceptModel):
        f = kind(loss, rows(B), y, weights=1.0 + COUNTS)
        found = ex.verify(ex.minimize(f, ex.L1Ball(0.7), tol=1e-8), f)
        assert found.verdict == "proved", found


@pytest.mark.parametrize("kind", [ex.LinearModel, ex.InterceptModel])
@pytest.mark.parametrize("weights", [None, 1.0 + COUNTS], ids=["equal", "weighted"])
def test_several_outputs_and_counts(kind, weights):
    for loss, y in (
        (ex.Multinomial(3), LABELS),
        (ex.MultiTask(ex.Huber(0.5), 2), B[:, :2] ** 2),
        (ex.MultiTask(ex.Logistic(), 2), np.sign(B[:, :2])),
        (ex.Poisson(), COUNTS),
    ):
        f = kind(loss, B, y, weights=weights)
        found = ex.verify(ex.minimize(f, ex.L1Ball(1.0), tol=1e-7), f)
        assert found.verdict == "proved", found


def problem_over(C: ex.ConvexSet) -> ex.LinearModel:
    """A quadratic problem over points of any shape."""
    rng = np.random.default_rng(1)
    if len(C.shape) == 1:
        A = rng.standard_normal((C.shape[0] + 3, C.shape[0]))
        return ex.LinearModel(ex.Squared(), A, rng.standard_normal(len(A)))
    places = np.indices(C.shape).reshape(2, -1)
    return ex.LinearModel(ex.Squared(), ex.Entries(*places, C.shape), rng.standard_normal(places.shape[1]))


CUT = ex.AffineCut


@pytest.mark.parametrize("case", [c for c in CATALOGUE if len(c.C.shape) <= 2 and not isinstance(c.C, CUT)], ids=str)
def test_every_set_is_kept_and_checked(case):
    arrays = {}
    plan = plan_of(case.C, arrays)
    plain = "Oracle" not in str(plan)
    if plain:
        assert set_from(json.loads(json.dumps(plan)), arrays) == case.C
    f = problem_over(case.C)
    r = ex.minimize(f, case.C, tol=1e-3, max_iter=300)
    found = ex.verify(r, f, None if plain else case.C)
    if isinstance(case.C, ex.MaxNormBall):  # two answers of its oracle differ by its tolerance
        assert found.gap[1] <= r.gap * (1 + 1e-3) + 1e-12
    else:
        assert found.verdict == "proved", found


@pytest.mark.parametrize("case", [c for c in CATALOGUE if not isinstance(c.C, CUT)], ids=str)
def test_membership_follows_the_definition(case):
    x = case.sample(np.random.default_rng(3)).astype(np.float64)
    D = case.C.diameter
    assert max(off - rough for off, rough in excesses(case.C, x)) <= 1e-9 * D + 1e-12 * np.abs(x).max()
    away = x + (np.random.default_rng(4).standard_normal(x.shape) + 3.0) * 10 * D
    assert max(off + rough for off, rough in excesses(case.C, away)) > D


def test_low_rank_answers_keep_their_factors(tmp_path):
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(0, 12, 80), rng.integers(0, 9, 80)
    f = ex.LinearModel(ex.Huber(1.0), ex.Entries(rows, cols, (12, 9)), rng.standard_normal(80))
    r = ex.minimize(f, ex.NuclearBall(4.0), tol=1e-5)
    r.save(tmp_path / "a.npz")
    held = load_answer(tmp_path / "a.npz")
    assert {"left", "right"} <= set(held)
    assert "x" not in held
    assert ex.verify(tmp_path / "a.npz", f).verdict == "proved"


def test_atoms_are_kept(tmp_path):
    f, _ = model()
    r = ex.minimize(f, ex.L1Ball(1.5), method="pairwise-fw")
    r.save(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as held:
        starts, at, values, w = (held[f"atom{name}"] for name in (" starts at", "s at", "s values", " weights"))
        x = np.zeros(4)
        for i, weight in enumerate(w):
            x[at[starts[i] : starts[i + 1]]] += weight * values[starts[i] : starts[i + 1]]
        np.testing.assert_allclose(x, held["x"], atol=1e-12)


class Cubic:
    """A loss of the user."""

    curvature, convex, labels = 2.0, True, None

    def value(self, z, y):
        return np.sqrt(1 + (z - y) ** 2)

    def deriv(self, z, y):
        return (z - y) / np.sqrt(1 + (z - y) ** 2)


def test_what_belongs_to_the_user_is_said():
    corners = RNG.standard_normal((6, 4))
    C = ex.Oracle(lambda g: corners[(corners @ g).argmin()], diameter=10.0, shape=4)
    own = ex.LinearModel(Cubic(), B, COUNTS)
    found = ex.verify(ex.minimize(own, C, tol=1e-6), own, C)
    assert found.verdict == "proved", found
    assert "user's own code" in repr(found)
    assert "user's own oracle" in repr(found)
    f = cases.separable(ex.Squared())
    found = ex.verify(ex.minimize(f, ex.Simplex(), tol=1e-6), f)
    assert found.verdict == "proved", found
    assert "user's own code" in repr(found)


def test_what_is_not_a_proof_of_a_minimum_is_said():
    f = cases.model(ex.NonlinearLeastSquares())
    assert any("not convex" in note for note in ex.verify(ex.minimize(f, ex.L1Ball(2.0)), f).notes)
    g = ex.LinearModel(ex.Squared(), np.eye(3), np.array([0.2, 0.3, 0.5]))
    found = ex.verify(ex.minimize(g, ex.Simplex(), tol=0.0, atol=1e-30), g)
    assert any("below what float64 can say" in note for note in found.notes)
    karcher = ex.KarcherMean([np.eye(2), 2 * np.eye(2)])
    method = ex.RiemannianSFW(batch=2, manifold=ex.points.SPD())
    r = ex.minimize(karcher, ex.LoewnerInterval(np.eye(2), 3 * np.eye(2)), method=method, max_iter=5)
    assert ex.verify(r, karcher).verdict == "not proved"


def test_a_cut_that_is_approached_only_is_not_proved():
    f = cases.model(ex.Squared())
    C = ex.AffineCut(ex.L1Ball(2.0), np.ones((1, 8)), upper=-0.5)
    found = ex.verify(ex.minimize(f, C, method=ex.MostFW(batch=5), max_iter=50), f, C)
    assert found.verdict != "proved"


def test_shards_answer_for_their_manifest(tmp_path):
    data = ex.ShardDir.build((B, SIGNS), tmp_path / "rows", seed=0)
    f = ex.LinearModel(ex.Logistic(), data)
    ex.minimize(f, ex.L1Ball(1.5)).save(tmp_path / "a.npz")
    assert ex.verify(tmp_path / "a.npz", f).verdict == "proved"
    said = json.loads(str(load_answer(tmp_path / "a.npz")["answer"]))
    assert said["data"]["shards"]
    other = ex.ShardDir.build((B, SIGNS), tmp_path / "others", seed=1)
    assert ex.verify(tmp_path / "a.npz", ex.LinearModel(ex.Logistic(), other)).verdict == "refuted"
    path = next((tmp_path / "rows").glob("*.rows.npy"))
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    with pytest.raises(InputError, match="checksum"):
        ex.verify(tmp_path / "a.npz", f)


# changed answers


@pytest.mark.parametrize("kind", ["logistic", "intercept"])
def test_one_changed_number_breaks_the_seal(kind):
    f, r = model(kind)
    held = arrays_of(r)
    for name in set(held) - {"seal"}:
        found = verify_arrays(held | {name: changed(held[name])}, f, None, "a") if name != "answer" else None
        assert found is None or found.verdict == "refuted", name
    said = json.loads(str(held["answer"]))
    for name in set(said) - {"format", "version"}:
        text = np.asarray(json.dumps(said | {name: said[name] + "!" if isinstance(said[name], str) else [7]}))
        with suppress(InputError):
            assert verify_arrays(held | {"answer": text}, f, None, "a").verdict == "refuted", name


@pytest.mark.parametrize("kind", ["logistic", "intercept"])
def test_with_a_new_seal_the_numbers_themselves_are_checked(kind):
    f, r = model(kind)
    held = arrays_of(r)
    for name in ("value", "gap", "low", "x", *["intercept"] * (kind == "intercept")):
        for new in (changed(held[name]), 2 * held[name] - changed(held[name])):
            assert verify_arrays(sealed(held | {name: np.asarray(new)}), f, None, "a").verdict != "proved", name
    said = json.loads(str(held["answer"]))
    for radius in (1.5 * (1 + PART), 1.5 * (1 - PART), 3.0):
        said["set"]["fields"]["radius"] = radius
        new = sealed(held | {"answer": np.asarray(json.dumps(said))})
        assert verify_arrays(new, f, None, "a").verdict != "proved", radius
        assert verify_arrays(new, f, ex.L1Ball(1.5), "a").reasons == ("the set is not that of the answer",)


def test_other_data_and_other_problems_are_refuted(tmp_path):
    f, r = model()
    r.save(tmp_path / "a.npz")
    touched, swapped = B.copy(), SIGNS.copy()
    touched[7, 2] *= 1 + PART
    swapped[[0, 1]] = -swapped[[0, 1]]
    twice = np.vstack([B, B]), np.tile(SIGNS, 2)
    for A, y in ((touched, SIGNS), (B, swapped), (B[::-1], SIGNS[::-1]), (B[:-1], SIGNS[:-1]), twice):
        found = ex.verify(tmp_path / "a.npz", ex.LinearModel(ex.Logistic(), A, y))
        assert (found.verdict, found.reasons) == ("refuted", ("the data is not that of the answer",))
    assert ex.verify(tmp_path / "a.npz", ex.LinearModel(ex.Squared(), B, SIGNS)).verdict == "refuted"
    assert ex.verify(tmp_path / "a.npz", ex.InterceptModel(ex.Logistic(), B, SIGNS)).verdict == "refuted"
    assert ex.verify(tmp_path / "a.npz", ex.LinearModel(ex.Logistic(), B[:, :3], SIGNS)).verdict == "refuted"
    assert ex.verify(tmp_path / "a.npz", f, ex.L2Ball(1.5)).verdict == "refuted"
    assert ex.verify(tmp_path / "a.npz", ex.LinearModel(ex.Logistic(), sp.csr_array(B), SIGNS)).verdict == "proved"


def test_a_point_outside_is_refuted_by_the_check_itself():
    f, r = model()
    held = arrays_of(r)
    found = check_answer(sealed(held | {"x": 2 * r.x}), ex.L1Ball(1.5), row_blocks(f))
    assert found.verdict == "refuted"
    assert "x is outside the set" in found.reasons
    assert "f(x) is not as stated" in found.reasons


def test_fingerprints_do_not_depend_on_the_form_of_the_rows(monkeypatch):
    monkeypatch.setattr(verifier, "_PART", 16)
    A = B * (np.abs(B) > 0.5)

    def blocks(step):
        for i in range(0, 40, step):
            rows = sp.csr_array(A[i : i + step])
            yield rows.indptr, rows.indices, rows.data, SIGNS[i : i + step]

    one = fingerprint(lambda: blocks(40), 4)
    assert len(one["parts"]) == 3
    assert one == fingerprint(lambda: blocks(7), 4) == fingerprint(row_blocks(ex.LinearModel(ex.Logistic(), A, SIGNS)), 4)


# files


def test_files_are_refused_in_one_sentence(here):
    f, r = model()
    r.save("a.npz")
    whole = Path("a.npz").read_bytes()

    class Bomb:
        def __reduce__(self):
            return (Path.touch, (here / "executed",))

    boxed = np.empty((), object)
    boxed[()] = Bomb()
    held = dict(load_answer("a.npz"))
    huge = io.BytesIO()
    np.lib.format.write_array_header_1_0(huge, {"descr": "<f8", "fortran_order": False, "shape": (10**14,)})
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        for name, a in (held | {"x": None}).items():
            part = io.BytesIO()
            np.save(part, a) if name != "x" else part.write(huge.getvalue())
            packed.writestr(f"{name}.npy", part.getvalue())
    said = json.loads(str(held["answer"]))
    bad = {
        "empty.npz": b"", "cut.npz": whole[: len(whole) // 2], "pickle.npz": pickle.dumps(Bomb()), "huge.npz": archive.getvalue(),
        "boxed.npz": _npz(held | {"x": boxed}), "no_seal.npz": _npz({k: v for k, v in held.items() if k != "seal"}),
        "shape.npz": _npz(sealed(held | {"x": np.zeros(5)})), "text.npz": _npz(held | {"answer": np.asarray("{")}),
        "deep.npz": _npz(held | {"answer": np.asarray("[" * 10**5)}), "number.npz": _npz(held | {"value": np.zeros(3)}),
        "newer.npz": _npz(held | {"answer": np.asarray(json.dumps(said | {"version": 2}))}),
        "set.npz": _npz(sealed(held | {"answer": np.asarray(json.dumps(said | {"set": {"kind": "os.system", "fields": {}}}))})),
    }  # fmt: skip
    for i, plan in enumerate(({"kind": "L1Ball", "fields": {"r": 1}}, {"kind": "Box", "fields": {"lower": {"array": "x"}}})):
        bad[f"set{i}.npz"] = _npz(sealed(held | {"answer": np.asarray(json.dumps(said | {"set": plan}))}))
    for name, content in bad.items():
        Path(name).write_bytes(content)
        with pytest.raises(InputError, match=name.replace(".", r"\.")):
            ex.verify(name, f)
    assert not (here / "executed").exists()
    with pytest.raises((InputError, OSError)):
        ex.verify("nowhere.npz", f)


def _npz(arrays) -> bytes:
    held = io.BytesIO()
    np.savez(held, **arrays)
    return held.getvalue()


def test_damaged_files_never_crash(here):
    """Bytes overwritten at random, as in test_damaged_files.py; and texts of the answer in which parts are exchanged."""
    f, r = model()
    r.save("a.npz")
    whole, rng = Path("a.npz").read_bytes(), np.random.default_rng(5)
    held = dict(load_answer("a.npz"))
    said = json.loads(str(held["answer"]))
    for _ in range(60):
        damaged = bytearray(whole)
        for at in rng.integers(0, len(whole), 8):
            damaged[at] = int(rng.integers(256))
        Path("b.npz").write_bytes(damaged)
        with suppress(InputError):
            ex.verify("b.npz", f)
    others = [
        3,
        [],
        {},
        "x",
        None,
        1e400,
        10**400,
        {"kind": "L1Ball", "fields": {"radius": 10**400}},
        {"kind": "Huber", "fields": 3},
    ]
    for name in said:
        for other in others:
            Path("b.npz").write_bytes(_npz(sealed(held | {"answer": np.asarray(json.dumps(said | {name: other}))})))
            with suppress(InputError):
                assert ex.verify("b.npz", f).verdict != "proved" or name not in FACTS
            found = CliRunner().invoke(app, ["verify", "b.npz", "nothing.csv"])
            assert found.exit_code == 2, (name, other, found.exception)


def test_saving_is_whole_and_says_what_it_cannot_keep(here):
    f, r = model()
    r.save("a.npz")
    r.save("a.npz")
    assert [path.name for path in here.iterdir()] == ["a.npz"]
    for path in ("a.txt", "no/a.npz"):
        with pytest.raises(InputError):
            r.save(path)
    copy = pickle.loads(pickle.dumps(r))
    assert copy.objective is None
    assert len(pickle.dumps(r)) < 20_000 + 100 * f.n
    with pytest.raises(InputError, match="pickled"):
        copy.save("b.npz")
    assert ex.verify(copy, f).verdict == "proved"
    for wrong in ((3, f, None), (r, 3, None), (r, f, 3)):
        with pytest.raises(InputError):
            ex.verify(*wrong)


def test_the_command_proves_and_refutes(here):
    lines = [",".join(map(str, row)) + (",yes" if y > 0 else ",no") for row, y in zip(B, SIGNS, strict=True)]
    table = "\n".join(["a,b,c,d,y", *lines])
    Path("d.csv").write_text(table)
    Path("other.csv").write_text(table.replace(",yes", ",no", 1))
    run = CliRunner().invoke
    made = run(app, ["solve", "d.csv", "--set", "l1:1.5", "--positive", "yes", "--intercept", "--out", "m.npz", "--quiet"])
    assert made.exit_code == 0, made.output
    found = run(app, ["verify", "m.npz", "d.csv"])
    assert (found.exit_code, "proved" in found.output) == (0, True)
    found = run(app, ["verify", "m.npz", "d.csv", "--set", "l1:1.5", "--json"])
    assert (found.exit_code, json.loads(found.output)["verdict"]) == (0, "proved")
    for other in (["other.csv"], ["d.csv", "--set", "l1:1.500001"]):
        found = run(app, ["verify", "m.npz", *other])
        assert (found.exit_code, "refuted" in found.output) == (4, True), found.output
    assert run(app, ["verify", "d.csv", "d.csv"]).exit_code == 2
    assert run(app, ["verify", "m.npz", "d.csv", "--set", "nonneg"]).exit_code == 2
    f = ex.LinearModel(ex.Huber(0.5), B, B[:, 0] ** 2)
    ex.minimize(f, ex.L1Ball(0.5), tol=1e-2, max_iter=1).save("open.npz")
    np.savez("open_data.npz", A=B, y=B[:, 0] ** 2)
    assert run(app, ["verify", "open.npz", "open_data.npz"]).exit_code == 0


# the check itself


def test_the_verifier_is_one_short_module_over_numpy_and_sets():
    for module, allowed in ((verifier, {"numpy", "extremal.sets.membership"}), (membership, {"numpy"})):
        text = inspect.getsource(module)
        assert len(text.splitlines()) <= 300
        names = {node.module for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)}
        names |= {alias.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import) for alias in node.names}
        plain = {"__future__", "hashlib", "json", "math", "collections.abc", "dataclasses", "itertools", "typing"}
        assert names - plain <= allowed


def test_sums_are_rounded_once():
    a, b = RNG.standard_normal(1000) * 10.0 ** RNG.integers(-9, 9, 1000), RNG.standard_normal(1000)
    true = sum(Fraction(x) * Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True))
    assert exact_dot(a, b) == float(true)


def test_enclosures_hold_in_extended_precision():
    """Value and gap in fractions lie between the bounds of the check."""
    f = ex.LinearModel(ex.Huber(0.3), B, COUNTS)
    r = ex.minimize(f, ex.L1Ball(0.7), method="frank-wolfe", max_iter=7)
    found = ex.verify(r, f)
    x, A, y = ([Fraction(float(v)) for v in np.ravel(a)] for a in (r.x, B, COUNTS))
    delta, value, g = Fraction(0.3), Fraction(0), [Fraction(0)] * 4
    for i in range(40):
        row = A[4 * i : 4 * i + 4]
        z = sum(p * q for p, q in zip(row, x, strict=True)) - y[i]
        m = min(abs(z), delta)
        value += m * (abs(z) - m / 2) / 40
        g = [q + p * (m if z > 0 else -m) / 40 for p, q in zip(row, g, strict=True)]
    gap = sum(p * q for p, q in zip(g, x, strict=True)) + Fraction(0.7) * max(map(abs, g))
    assert found.value[0] <= value <= found.value[1]
    assert found.gap[0] <= gap <= found.gap[1]
    assert found.value[1] - found.value[0] <= 1e-13
