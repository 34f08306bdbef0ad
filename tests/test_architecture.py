"""The plan of the house, held by tests: packages from the bottom up, no cycles, and what says where things are."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from pathlib import Path

import pytest
from house import ENGINE, TENSORS, WORKER, engine_imports, imported, module_names, package_of, source, tree
from lengths import LONGEST
from places import KIT, TESTS

from autograder.authoring.handout.release import STUDENT_PACKAGES

# From the bottom up: a package imports from those above its own line, and from itself.
PACKAGES = (
    "vocabulary",  # errors, report, text, files, rows
    "sandbox",  # calls and outcomes; server and workers; worker/ and isolation/ run beside student code
    "submissions",  # find and read what was handed in
    "grading",  # items, cases, comparison, feedback → Report
    "checking",  # what students run
    "authoring",  # solution → fixtures, exam, handout
    "gradebook",  # a class's points: statistics, roster, rules, final grades
    "pages",  # reports → HTML
    "course",  # a class as one run: batch, cluster, results, similarity
    "platforms",  # Canvas, Moodle, Gradescope, …: reading and writing
    "cli",  # one verb, one function
)
LEVEL = {name: level for level, name in enumerate(PACKAGES)}
HEAVY = {"torch", "matplotlib", "einops"}
MODULES = module_names()


def folders() -> list[Path]:
    return [ENGINE, *(path.parent for path in sorted(ENGINE.rglob("__init__.py")) if path.parent != ENGINE)]


def test_the_list_of_packages_is_the_folder() -> None:
    assert sorted(path.name for path in ENGINE.iterdir() if (path / "__init__.py").is_file()) == sorted(PACKAGES)
    assert {path.name for path in ENGINE.glob("*.py")} == {"__init__.py", "__main__.py"}


def test_imports_point_down_the_list_of_packages() -> None:
    levels = {module: LEVEL[package_of(module)] for module in MODULES if package_of(module)}
    upward = {
        module: [name for name in engine_imports(module) if LEVEL[package_of(name)] > level]
        for module, level in levels.items()
    }
    assert {module: names for module, names in upward.items() if names} == {}


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {module: {name for name in engine_imports(module) if name in MODULES} for module in MODULES}
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def test_nothing_imports_the_command_line() -> None:
    assert {name for name in MODULES if "cli" in map(package_of, engine_imports(name))} <= {
        "__main__",
        *(name for name in MODULES if package_of(name) == "cli"),
    }


def test_what_runs_beside_student_code_imports_nothing_else_of_the_kit() -> None:
    inside = [name for name in MODULES if name.startswith(("sandbox.worker.", "sandbox.isolation."))]
    assert WORKER in inside
    for module in inside:
        assert engine_imports(module) <= set(inside), module


def test_only_the_warm_server_and_what_runs_in_a_notebook_import_the_worker() -> None:
    importers = [module for module in MODULES if WORKER in engine_imports(module)]
    assert importers == ["checking.live", "sandbox.worker.server"]


def test_hand_ins_are_read_within_limits_but_by_students() -> None:
    without = [
        module
        for module in MODULES
        for node in ast.walk(tree(module))
        if isinstance(node, ast.ImportFrom) and node.module == "autograder.submissions.reading"
        if {"read", "written_cells"} & {alias.name for alias in node.names}
    ]
    assert without == ["checking.checker"]


def test_one_module_alone_knows_torch() -> None:
    knowing = [module for module in MODULES if {name.split(".")[0] for name in imported(module)} & HEAVY]
    assert knowing == [TENSORS]


@pytest.mark.long
def test_the_worker_does_without_torch_until_it_is_told_to_know_it() -> None:
    code = "import sys, autograder.sandbox.worker.server; print('torch' in sys.modules)"
    code += "; autograder.sandbox.worker.server.worker.know_torch(); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=KIT)
    assert done.stdout.split() == ["False", "True"]


def test_the_command_line_answers_without_torch() -> None:
    code = "import sys, autograder.cli.main; print(sorted({'torch', 'matplotlib', 'einops'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=KIT)
    assert done.stdout.strip() == "[]"


def test_students_get_whole_packages_that_need_no_other() -> None:
    assert PACKAGES[: len(STUDENT_PACKAGES)] == STUDENT_PACKAGES
    assert PACKAGES[len(STUDENT_PACKAGES) - 1] == "checking"


# Texts and tests


@pytest.mark.parametrize("folder", folders()[1:], ids=lambda path: path.relative_to(KIT).as_posix())
def test_package_says_what_lives_there(folder: Path) -> None:
    text = (folder / "__init__.py").read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text))


def test_every_file_of_tests_that_is_begun_first_is_there() -> None:
    names = {path.stem for path in TESTS.rglob("test_*.py")}
    assert [name for name in LONGEST if name not in names] == []
    assert len(set(LONGEST)) == len(LONGEST)


# They write by no other way than `vocabulary.files`; authoring replaces whole folders, and the others write nothing.
WRITERS = ("vocabulary", "grading", "checking", "gradebook", "pages", "course", "platforms", "cli")


def test_whole_files_are_written_in_one_way_and_wording() -> None:
    def calls(module: str) -> set[str]:
        called = (node.func for node in ast.walk(tree(module)) if isinstance(node, ast.Call))
        return {each.attr for each in called if isinstance(each, ast.Attribute)}

    modules = [name for name in module_names() if package_of(name) in WRITERS]
    assert modules
    assert [name for name in modules if {"write_text", "write_bytes"} & calls(name)] == []
    assert [name for name in module_names() if "cannot be written:" in source(name)] == ["vocabulary.files"]
    assert [name for name in module_names() if {"reader", "DictReader", "Sniffer"} & calls(name)] == [
        "vocabulary.files"
    ]  # of CSV
