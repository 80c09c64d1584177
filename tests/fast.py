"""A look at everything in a minute: `make test-fast`, or `python tests/fast.py [arguments of pytest]`.

The selection is every example of the docstrings and the tests below, none of which may start a process or a browser. The
run notes the files whose functions were called, in all workers, and fails if a module of src/ has functions of which none was.
Compiled code is not seen, so that kernels need only be imported.
"""

from __future__ import annotations

import ast
import inspect
import os
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCE = HERE.parent / "src"
SELECTION = [  # a name after :: that is no longer there fails in tests/test_fast.py
    "src",
    "tests/test_fast.py",
    "tests/cli/test_cli.py::test_lists",
    "tests/cli/test_predicting.py::test_columns_go_by_name_whatever_their_order",
    "tests/cli/test_solve_shards.py::test_what_is_printed",
    "tests/data/test_row_data.py::test_other_columns_and_rows",
    "tests/files/shards/test_shard_sources.py::test_streams",
    "tests/files/shards/test_shards_command.py::test_build_info_verify",
    "tests/files/test_saved_answers.py::test_the_command_proves_and_refutes",
    "tests/files/test_datasets.py::test_list",
    "tests/lab/test_cli_experiments.py::test_mistakes_are_one_line_and_leave_nothing",
    "tests/lab/test_demo.py::test_without_scikit_learn_one_line_says_what_to_install",
    "tests/lab/test_experiments.py::test_the_memory_of_a_table_is_seen",
    "tests/lab/test_experiments.py::test_the_study_of_starts_reads_every_convex_problem_of_the_figures",
    "tests/lab/test_ledger.py",
    "tests/lab/test_page_file.py",
    "tests/lab/test_pool.py::test_a_damaged_file_counts_as_none",
    "tests/lab/test_rates.py",
    "tests/lab/test_report.py::test_a_method_has_one_colour_in_pictures_and_page",
    "tests/lab/test_report.py::test_ranks",
    "tests/lab/test_report.py::test_the_report_is_plain_data",
    "tests/losses",
    "tests/methods/test_parse.py",
    "tests/moves/test_newton.py::test_many_columns_go_by_products",
    "tests/moves/test_newton.py::test_which_objectives_have_slices",
    "tests/moves/test_newton.py::test_sums_without_second_derivatives_learn_them",
    "tests/objectives/test_output_slices.py::test_hessians_are_derivatives_of_gradients_formed_or_not",
    "tests/rounding/test_rounding.py::test_parts_and_rows",
    "tests/rounding/test_rounding.py::test_inequalities_hold_as_computed",
    "tests/run/test_run_progress.py",
    "tests/scale/test_in_process.py",
    "tests/sets/test_oracle.py",
    "tests/sets/test_products.py",
    "tests/sklearn/test_sklearn.py::test_batches_seen_once",
    "tests/steps",
]
SELECTION += ["--deselect=src/extremal_lab/bench/children.py::extremal_lab.bench.children.output"]  # it starts two processes
FOLDER = "EXTREMAL_FAST"  # names the folder to which each worker writes what it called
called: set = set()


def watch(config) -> None:
    """Note the code of each call from here on, and let no process start, if this is where a fast run has its tests."""
    here = hasattr(config, "workerinput") or not config.getoption("numprocesses", None)
    if FOLDER in os.environ and here and sys.gettrace() is None:
        sys.addaudithook(_no_process)
        threading.settrace(_note)
        sys.settrace(_note)


def _no_process(event: str, arguments: tuple) -> None:
    if event == "subprocess.Popen" and arguments[0] != "git":  # which is asked for the commit of the code
        raise PermissionError(f"a fast test starts no process: {arguments[0]}")


def _note(frame, event, argument) -> None:
    called.add(frame.f_code)


def tell() -> None:
    """Write down the modules of which a function was called."""
    if FOLDER in os.environ:
        sys.settrace(None)
        files = {code.co_filename for code in called if code.co_flags & inspect.CO_OPTIMIZED}  # modules and classes are not
        Path(os.environ[FOLDER], str(os.getpid())).write_text("\n".join(sorted(files)))


def modules() -> dict[str, Path]:
    """Dotted names of all modules of src/, and their files."""
    paths = {".".join(p.relative_to(SOURCE).with_suffix("").parts): p for p in sorted(SOURCE.rglob("*.py"))}
    return {name.removesuffix(".__init__"): path for name, path in paths.items()}


@cache
def runs(path: Path) -> bool:
    """Whether a function or a method in a file does something and is not compiled."""
    found = ast.parse(path.read_text()).body
    found += [node for kind in found if isinstance(kind, ast.ClassDef) for node in kind.body]
    return path.parent.name != "kernels" and any(isinstance(node, ast.FunctionDef) and not _empty(node) for node in found)


def _empty(function: ast.FunctionDef) -> bool:
    """Whether a function is nothing but its words: a part of a protocol."""
    return all(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in function.body)


def left(written: set[str]) -> list[str]:
    """The modules that have functions, and none of these was called."""
    return [name for name, path in modules().items() if runs(path) and str(path) not in written]


def main() -> int:
    """Run the selection; return 0 if it passed and left out no module."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ[FOLDER] = folder
        os.chdir(HERE.parent)
        code = pytest.main([*SELECTION, *sys.argv[1:]])
        written = {line for path in Path(folder).iterdir() for line in path.read_text().splitlines()}
    if code == 0 and (missing := left(written)):
        print("==== no function was called of", *missing, "==== let tests/test_fast.py call one", sep="\n")
        return 1
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
