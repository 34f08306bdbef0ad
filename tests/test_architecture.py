"""The layers of the engine and the sizes of its parts, held by tests: imports point strictly downward."""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.authoring.release import STUDENT_MODULES

ENGINE = Path(__file__).resolve().parent.parent / "autograder"

# From the bottom up. A module may import from lines above its own, never from its own line or one below.
LAYERS = (
    ("__init__",),
    ("catalogue", "errors", "frames", "postponed", "processes", "observation", "report"),
    ("text", "apart", "calls", "cgroup", "namespaces", "details", "mutants"),
    ("items", "isolation"),
    ("sheets",),
    ("worker", "workers", "fixtures", "notebook", "render", "gradebook", "drawing", "roster", "policy"),
    ("compare", "detect", "submission", "sandbox", "pages", "drafts", "variants", "adjust"),
    ("choice", "feedback", "reasons", "build", "source_notebook"),
    ("pictures", "terms"),
    ("grading", "show", "verify", "release", "gradescope_metadata", "downloads"),
    ("layouts",),
    ("check", "live", "results", "cluster", "exports"),
    ("batch", "exports.grades", "exports.nbgrader"),
    tuple(f"exports.{name}" for name in ("plain", "canvas", "moodle", "gradescope", "classroom", "prairielearn")),
    ("exports.harness", "exports.bundles"),
    ("cli_options",),
    ("cli_exports",),
    ("course", "selfcheck", "diff", "similar"),
    ("doctor",),
    ("table",),
    ("cli_fixtures",),
    ("cli_gradebook",),
    ("cli",),
    ("__main__",),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
HEAVY = {"torch", "matplotlib", "einops"}
PACKAGES = ("autograder", "autograder.platforms")


def modules() -> list[str]:
    names = (path.relative_to(ENGINE).with_suffix("").as_posix() for path in ENGINE.rglob("*.py"))
    return sorted(name.replace("/", ".").removesuffix(".__init__") for name in names)


def source(module: str) -> str:
    path = ENGINE.joinpath(*module.split("."))
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8")


def tree(module: str) -> ast.Module:
    return ast.parse(source(module))


def imported(module: str) -> Iterator[str]:
    """Every module that is imported anywhere in this one, `from autograder import x` as `autograder.x`.

    So for every package of ours: `from autograder.platforms import canvas` is `autograder.platforms.canvas`.
    """
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            base = node.module or ""
            yield from ((f"{base}.{alias.name}" for alias in node.names) if base in PACKAGES else (base,))


def engine_imports(module: str) -> set[str]:
    return {name.removeprefix("autograder.") for name in imported(module) if name.startswith("autograder.")}


def functions(module: str) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(tree(module)) if isinstance(node, ast.FunctionDef)]


def length(function: ast.FunctionDef) -> int:
    """Lines of code: what is left of a function without signature, docstring, comments and empty lines."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return len({line for node in body for inner in ast.walk(node) if (line := getattr(inner, "lineno", 0))})


def test_every_module_has_its_place_in_the_layers() -> None:
    assert modules() == sorted(LEVEL)


@pytest.mark.parametrize("module", modules())
def test_imports_point_strictly_downward(module: str) -> None:
    upward = [name for name in engine_imports(module) if LEVEL[name] >= LEVEL[module]]
    assert not upward, f"{module} imports {upward}"


def test_the_worker_shares_nothing_with_the_engine_but_frames() -> None:
    assert engine_imports("worker") == {"frames", "isolation", "postponed", "processes"}
    for module in ("frames", "processes", "cgroup", "postponed"):
        assert engine_imports(module) == set()
    assert engine_imports("isolation") == {"cgroup", "namespaces", "processes"}
    assert engine_imports("namespaces") == {"processes"}


def test_only_what_runs_in_a_notebook_imports_the_worker() -> None:
    assert [module for module in modules() if "worker" in engine_imports(module)] == ["live"]


@pytest.mark.parametrize("module", [name for name in modules() if name != "worker"])
def test_only_the_worker_knows_torch(module: str) -> None:
    assert not {name.split(".")[0] for name in imported(module)} & HEAVY


def test_the_command_line_answers_without_torch() -> None:
    code = "import sys, autograder.cli.main; print(sorted({'torch', 'matplotlib', 'einops'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ENGINE.parent)
    assert done.stdout.strip() == "[]"


def test_what_students_get_imports_nothing_that_they_do_not_get() -> None:
    for module in STUDENT_MODULES:
        if module == "__main__":  # it asks first whether the whole command line is there
            continue
        assert engine_imports(module) <= set(STUDENT_MODULES), module


def test_what_students_get_is_all_needed() -> None:
    needed, waiting = set(), ["check", "live", "worker"]
    while waiting:
        module = waiting.pop()
        needed.add(module)
        waiting += engine_imports(module) - needed
    assert needed | {"__init__", "__main__"} == set(STUDENT_MODULES)


def test_the_generator_code_of_an_assignment_imports_neither_torch_nor_the_solution() -> None:
    for path in (ENGINE.parent / "fixtures" / "policy_gradient").glob("*.py"):
        if path.name == "probes.py":  # runs in the sandbox
            continue
        text = path.read_text(encoding="utf-8")
        names = {
            name
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""])
        }
        assert not {name.split(".")[0] for name in names} & {"torch", "policy_gradient", "sorting_task"}, path.name


def test_no_module_outgrows_its_noun() -> None:
    sizes = {name: len(source(name).splitlines()) for name in modules()}
    assert {name: size for name, size in sizes.items() if size > 520} == {}
    assert statistics.median(sizes.values()) <= 250


def test_nine_functions_in_ten_stay_under_thirty_lines() -> None:
    lengths = sorted(length(function) for module in modules() for function in functions(module))
    assert lengths[len(lengths) * 9 // 10] < 30
    assert statistics.median(lengths) <= 9
    longest = max((length(f), f.name, module) for module in modules() for f in functions(module))
    assert longest[0] <= 45, longest


