"""The house rules: imports go one way, every public part is tested and explained, files stay short."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from importlib import import_module
from pathlib import Path

import cases
import pytest
import test_catalogue

import extremal as ex
from extremal import data, gradients, losses, methods, moves, points, sets, steps
from extremal.objectives import base
from extremal.points import manifolds

SOURCE = Path(ex.__file__).parent
LABORATORY = SOURCE.parent / "extremal_lab"
TESTS = {str(path.relative_to(Path(__file__).parent)): path for path in sorted(Path(__file__).parent.rglob("*.py"))}
LONG_TESTS: set[str] = set()
ROOT = Path(__file__).parent.parent
MADE = {"_build", "auto_examples", "reference"}  # folders that the build of the site writes
PAGES = [path for path in (ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))) if not MADE & set(path.parts)]
MODULES = {".".join(p.relative_to(SOURCE).with_suffix("").parts): p for p in sorted(SOURCE.rglob("*.py"))}
ORDER = [  # each room may import those before it only
    "support", "checks", "laws", "kernels", "points", "quadratic", "sets", "rounding", "trust", "data", "losses", "objectives",
    "gradients", "steps", "moves", "methods", "run", "files", "scale", "sklearn", "cli",
]  # fmt: skip
SAME = {  # one meaning, and a number or a formula twice, since compiled code has its own
    "EARLY", "EPS", "FAR", "INNER", "NEAR", "OUTWARD", "ROUNDS", "SUFFICIENT", "T",
    "TAIL", "UNSEEN", "expit",
}  # fmt: skip
TOP = {name: getattr(ex, name) for name in ex.__all__}
ROOMS = [room for room in TOP.values() if inspect.ismodule(room) and hasattr(room, "__all__")]
CONTRACTS_ALONE = {  # what parts are made of: explained in docs/add-a-part.md, by examples that are longer than a docstring's
    "BentMulti", "Budget", "CATALOGUE", "Card", "Chord", "Curved", "Data", "Direction", "Estimate", "Faced", "Facts",
    "FlatMove", "Gradient", "InEpochs", "LOSSES", "Loss", "METHODS", "Manifold", "Move", "MultiLoss", "NAMES", "Objective",
    "Part", "Parts", "Phase", "Plan", "Point", "Projectable", "Recipe", "RowBlock", "RowData",
    "SETS", "Scheduled", "Segment", "Stack", "Step", "Tuned", "Vertex",
    "Warm", "Work", "as_data", "as_recipe", "check_step", "take",
    "Compressor", "Message",
}  # fmt: skip
PUBLIC = {name: item for name, item in TOP.items() if not inspect.ismodule(item)}
PUBLIC |= {name: getattr(room, name) for room in ROOMS for name in room.__all__ if name not in CONTRACTS_ALONE}
CLASSES = {name: item for name, item in PUBLIC.items() if inspect.isclass(item)}
CONTRACTS = {  # protocol: the instances that stand for the classes that keep it
    data.Data: cases.DATA + cases.SPECIAL_DATA,
    losses.Loss: cases.LOSSES + cases.SPECIAL_LOSSES + cases.MULTI_LOSSES,
    base.Smooth: (cases.model(ex.Squared()), cases.separable(ex.Squared()), *cases.SPECIAL_OBJECTIVES),
    points.Vertex: cases.VERTICES + cases.MATRIX_VERTICES,
    gradients.Compressor: cases.COMPRESSORS,
    gradients.Gradient: cases.GRADIENTS + cases.SPECIAL_GRADIENTS,
    moves.Move: cases.MOVES + cases.SPECIAL_MOVES,
    steps.Step: cases.STEPS + cases.SPECIAL_STEPS,
    manifolds.Manifold: cases.MANIFOLDS,
    methods.Recipe: cases.METHODS + cases.SPECIAL_METHODS,
}
OTHER = {type(law).__name__ for law in cases.LAWS} | {  # public, and no part of a run that could be exchanged
    "ActiveSet", "Calls", "Certificate", "ConvexSet", "DataSet", "DownloadError", "FactoredMatrix",
    "InputError", "LargeTableWarning", "ManyResult",
    "MatrixCompletion", "NonFiniteError", "Record", "Result", "Sampler", "State", "Status", "Table2Row", "Trace", "Verification",
    "checkpoint", "complete", "in_checkpoints", "iterate",
    "least_squares_many", "metropolis", "minimize", "path", "ring", "verify",
}  # fmt: skip


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports(path: Path) -> set[str]:
    """The modules of the package that a file imports, anywhere in it, as dotted names without the package's."""
    found, known = set(), {f"extremal.{module.removesuffix('.__init__')}" for module in MODULES}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if name in known else node.module for name in inside}
    found = {"extremal.run.driver" if name == "extremal" else name for name in found}  # the package itself holds all up to there
    return {name.removeprefix("extremal.") for name in found if name.startswith("extremal.")}


def layer(module: str) -> str:
    return module.split(".")[0]


def methods_of(contract: type) -> set[str]:
    return {name for name, item in vars(contract).items() if inspect.isfunction(item) and not name.startswith("_")}


def keeps(kind: type, contract: type) -> bool:
    return all(callable(getattr(kind, name, None)) for name in methods_of(contract))


# imports


def test_every_module_has_its_place():
    assert {layer(m) for m in MODULES} - {"__init__", "__main__"} <= set(ORDER)


@pytest.mark.parametrize("module", [m for m in MODULES if layer(m) in ORDER])
def test_imports_go_one_way(module):
    before = ORDER[: ORDER.index(layer(module))]
    for name in imports(MODULES[module]):
        assert layer(name) in before or layer(name) == layer(module), f"{module} imports {name}"


@pytest.mark.parametrize("module", [m for m in MODULES if m != "support.linalg"])
def test_decompositions_that_may_never_end_are_asked_for_in_one_place(module):
    assert not re.findall(r"np\.linalg\.(?:svd|lstsq)\(", MODULES[module].read_text())


def test_packages_have_no_circles_inside():
    """A base imports none of its kind, and nothing but an __init__ imports from an __init__."""
    for module, path in MODULES.items():
        inside = {name for name in imports(path) if layer(name) == layer(module)}
        if module.endswith(".base") and module.count(".") == 1:
            assert not inside, module
        if not module.endswith("__init__"):
            assert layer(module) not in inside, f"{module} imports its own package"


@pytest.mark.parametrize(
    "module", [m for m in MODULES if layer(m) in ("sets", "steps", "moves", "gradients", "methods", "solver")]
)
def test_only_objectives_know_of_data(module):
    assert not {"data", "kernels", "losses"} & {layer(name) for name in imports(MODULES[module])}


@pytest.mark.parametrize("module", [m for m in MODULES if layer(m) == "sets"])
def test_sets_know_only_points_and_small_problems(module):
    assert {layer(name) for name in imports(MODULES[module])} <= {"support", "checks", "points", "quadratic", "sets"}


def test_the_map_is_the_order():
    text = (SOURCE.parents[1] / "docs" / "design.md").read_text()
    rows = text.partition("## The map")[2].partition("## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", rows, re.MULTILINE) == ORDER


@pytest.mark.parametrize("module", MODULES)
def test_the_library_knows_nothing_of_the_laboratory(module):
    for node in ast.walk(tree(MODULES[module])):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not [name for name in names if name.startswith("extremal_lab")]


@pytest.mark.parametrize("path", sorted(LABORATORY.rglob("*.py")), ids=lambda path: str(path.relative_to(LABORATORY)))
def test_the_laboratory_uses_public_names(path):
    """Names of the library or of a room; and what commands share."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "extremal":
            if node.module in ("extremal.checks", "extremal.cli.common", "extremal.cli.data", "extremal.files.datasets"):
                continue
            known = import_module(node.module).__all__
            assert {alias.name for alias in node.names} <= set(known), f"{path.name}:{node.lineno}"


# the text


@pytest.mark.parametrize("module", MODULES)
def test_files_are_short_and_explained(module):
    assert len(MODULES[module].read_text().splitlines()) <= 300
    assert ast.get_docstring(tree(MODULES[module]))


@pytest.mark.parametrize("module", [m for m in MODULES if layer(m) != "data"])
def test_sparsity_lives_in_the_room_of_data(module):
    """Nobody else reads the arrays that data keep for themselves."""
    reached = [n for n in ast.walk(tree(MODULES[module])) if isinstance(n, ast.Attribute) and n.attr == "_A"]
    assert not reached


def defined(path: Path) -> set[str]:
    """The names that a module defines at its top, but for private ones."""
    found = set()
    for node in tree(path).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    return {name for name in found if not name.startswith("_")}


def test_a_name_has_one_meaning():
    """Defined twice are constants of compiled code, which are the same numbers as those of the readable form."""
    where: dict[str, list[str]] = {}
    for module, path in MODULES.items():
        for name in defined(path):
            where.setdefault(name, []).append(module)
    assert {name for name, modules in where.items() if len(modules) > 1} <= SAME


@pytest.mark.parametrize("name", TESTS)
def test_files_of_tests_are_short(name):
    assert len(TESTS[name].read_text().splitlines()) <= 500 or name in LONG_TESTS, "split it by subject"


def test_pages_of_the_documentation_are_short():
    lines = {page: len(page.read_text().splitlines()) for page in PAGES}
    assert {page.name: n for page, n in lines.items() if n > (120 if page.name == "README.md" else 300)} == {}


@pytest.mark.parametrize("module", MODULES)
def test_nothing_prints_or_asks_the_global_generator(module):
    for node in ast.walk(tree(MODULES[module])):
        if isinstance(node, ast.Call):
            assert not (isinstance(node.func, ast.Name) and node.func.id == "print"), f"{module}:{node.lineno} prints"
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "np.random":
            assert node.attr in ("default_rng", "Generator"), f"{module}:{node.lineno} draws from a global generator"


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_explained_by_example(name):
    item = PUBLIC[name]
    text = inspect.getdoc(item) if isinstance(item, type) or callable(item) else ""
    assert text
    assert item.__doc__, "the docstring is inherited"
    if not (isinstance(item, type) and issubclass(item, (Warning, ex.NonFiniteError))):
        assert re.search(r"Examples\n--------\n(.+\n\n)?>>> ", text)


@pytest.mark.parametrize("name", CLASSES)
def test_public_methods_are_explained(name):
    for member, item in vars(CLASSES[name]).items():
        if inspect.isfunction(item) and not member.startswith("_"):
            assert inspect.getdoc(item), member


def test_public_names_are_sorted_and_exist():
    assert ex.__all__ == sorted(set(ex.__all__))
    assert dir(ex) == ex.__all__


def test_options_are_given_by_name():
    """A number by position must not land in another option."""
    for call in (ex.minimize, ex.iterate):
        parameters = inspect.signature(call).parameters.values()
        assert [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY] == ["f", "C", "method"]


def test_every_status_has_a_sentence():
    assert len({status.sentence for status in ex.Status}) == len(ex.Status) >= 7
    assert all(status == status.value for status in ex.Status)


# the lists of cases


def test_every_public_class_is_a_case():
    for contract, instances in CONTRACTS.items():
        public = {name for name, kind in CLASSES.items() if keeps(kind, contract)}
        assert public, contract
        assert public == {type(item).__name__ for item in instances}, f"cases.py lacks one of {public}"
    sets_ = {name for name, kind in CLASSES.items() if issubclass(kind, ex.ConvexSet) and not inspect.isabstract(kind)}
    assert sets_ == {type(C).__name__ for C in (*cases.SETS, *cases.SPECIAL_SETS, *(case.C for case in test_catalogue.CASES))}


def test_every_public_name_is_of_some_kind():
    known = {name for name, kind in CLASSES.items() if any(keeps(kind, contract) for contract in CONTRACTS)}
    known |= {name for name, kind in CLASSES.items() if issubclass(kind, ex.ConvexSet)}
    assert set(CLASSES) - known <= OTHER
    assert set(PUBLIC) >= OTHER


def test_every_part_has_a_name_on_the_command_line():
    assert {sets.named(name) for name in sets.SETS} >= {type(C) for C in cases.SETS}
    assert set(losses.LOSSES.values()) == {type(loss) for loss in cases.LOSSES}
    assert set(methods.METHODS.values()) == {type(m) for m in cases.METHODS + cases.SPECIAL_METHODS} - {ex.Method}


def test_every_kind_of_part_has_its_truth():
    """The formulas that the contracts are held against know each loss and set."""
    for loss in cases.LOSSES:
        assert cases.truth(loss)
    for C in cases.SETS:
        assert cases.corners(C, cases.DIM).shape[1] == cases.DIM


def test_the_licence_of_every_dependency_is_listed():
    """Packages that users get; those of tests, checks and the site stay with developers."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [needs for name, needs in told["optional-dependencies"].items() if name not in ("test", "docs", "lint")]
    names = {re.match(r"[\w-]+", need)[0] for needs in (told["dependencies"], *extras) for need in needs} - {"extremal"}
    listed = (ROOT / "docs/security.md").read_text()
    assert [name for name in sorted(names) if name not in listed] == []
