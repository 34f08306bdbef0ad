"""What holds for every assignment of the course, whatever it is about: catalogue, oracle, text, right answers.

That its mistakes are caught, its right answers accepted and its handout empty and without an answer is the exam's and
release's matter: tests/authoring.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from all_assignments import each_assignment, fixtures_of, generator_of, handout_bytes

from autograder.grading.assignment import Assignment
from autograder.grading.fixtures import read_fixtures


def text_of(assignment: Assignment) -> str:
    return (assignment.solution / "README.md").read_text(encoding="utf-8")


def mistakes_of(assignment: Assignment) -> Sequence[Any]:
    return generator_of(assignment.name)["mistakes"].MISTAKES


# The catalogue


@each_assignment
def test_a_hint_is_one_or_two_plain_sentences_without_code(assignment: Assignment) -> None:
    for mistake in mistakes_of(assignment):
        assert 1 <= len(re.split(r"(?<=[.?])\s+(?=[A-Z])", mistake.hint)) <= 2, mistake.slug
        assert mistake.hint[-1] in ".?", mistake.slug
        assert len(mistake.hint) <= 200, mistake.slug
        assert not re.search(r"\w\(|[=`!{}]|\bself\b|torch\.", mistake.hint), mistake.slug


@each_assignment
def test_what_an_item_says_of_a_case_or_a_value_is_of_one_that_students_see(assignment: Assignment) -> None:
    fixtures = read_fixtures(assignment)
    for item in assignment.items:
        shown = [case for case in fixtures.of_item(item.id) if case.visibility == "public"]
        values = {one.name for case in shown for one in case.expected if one.kind == "value"}
        assert item.hints.keys() <= {*values, *(case.id for case in shown)}, item.id
        for hint in item.hints.values():
            assert re.fullmatch(r"[A-Z][^!`]{15,}[.?]", hint), hint


# The generator code


def modules_of(assignment: Assignment, part: str) -> list[Path]:
    """The files of `oracle`, `cases` or `mistakes`, which is a module or a package."""
    alone = assignment.folder / f"{part}.py"
    return [alone] if alone.is_file() else sorted((assignment.folder / part).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """The packages that a module imports, but for what lies beside it."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    found = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    found |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 0}
    return {name.partition(".")[0] for name in found}


@each_assignment
def test_generator_code_imports_neither_torch_nor_the_solution(assignment: Assignment) -> None:
    usual = {"numpy", *sys.stdlib_module_names} - {"importlib", "runpy"}
    for part, allowed in (("oracle", usual), ("cases", usual | {"autograder"}), ("mistakes", usual | {"autograder"})):
        for path in modules_of(assignment, part):
            assert imported(path) <= allowed, path
            called = {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}
            assert called.isdisjoint({"__import__", "exec", "eval"}), path
    assert modules_of(assignment, "oracle")


@each_assignment
def test_no_case_expects_what_another_function_answers_in_one(assignment: Assignment) -> None:
    def numbers(function: str, array: Any) -> tuple[str, bytes]:
        return function, (np.round(np.asarray(array, float), 6) + 0.0).tobytes()

    cases = fixtures_of(assignment.name).cases
    values = [(case.function, one.array) for case in cases for one in case.expected if one.kind == "value"]
    expected = {numbers(*one) for one in values}
    for case in cases:
        for name, _, result in case.params.get("answered", ()):  # of one number, as a score of 0, nothing is told
            told = {numbers(name, result), numbers(case.function, result)} if len(result) > 1 else {}
            assert name != case.function
            assert expected.isdisjoint(told), case.id


# The text


@each_assignment
def test_the_text_names_every_graded_function_and_every_file_that_students_get(assignment: Assignment) -> None:
    files = {name.split("/")[0] for name in handout_bytes(assignment.name)} - {"autograder", "fixtures", "README.md"}
    seen = sorted(name for name in files if not name.startswith("."))
    assert [name for name in (*assignment.functions, *seen) if name not in text_of(assignment)] == []


@each_assignment
def test_formulas_use_only_what_both_github_and_jupyter_render(assignment: Assignment) -> None:
    prose = re.sub(r"```.*?```|`[^`]*`", "", text_of(assignment), flags=re.DOTALL)
    formulas = re.findall(r"\$\$.*?\$\$|\$[^$]+\$", prose, flags=re.DOTALL)
    assert prose.count("$") == sum(formula.count("$") for formula in formulas)
    for formula in formulas:
        assert "operatorname" not in formula  # GitHub refuses it
        assert not re.search(r"\\[^A-Za-z]", formula)  # Markdown eats a backslash before punctuation
        assert not re.search(r"[<>|*]", formula)  # HTML, table cells, emphasis
        if not formula.startswith("$$"):
            assert "\n" not in formula
            assert "}_" not in formula  # can open emphasis
