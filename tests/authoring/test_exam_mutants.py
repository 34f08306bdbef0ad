"""Mutants: what becomes of parameters, the habits of students, and operators, each where its pattern occurs."""

from __future__ import annotations

import ast
import functools
import re

import pytest
from all_assignments import ASSIGNMENTS, each_assignment
from places import KIT

from autograder.authoring.exam.fates import Fate
from autograder.authoring.exam.mutants import CHANGES, Variant, changed_lines, mutants_of
from autograder.authoring.fixtures.regenerate import solution_source
from autograder.grading.assignment import Assignment, find_assignment


@functools.cache
def generated(name: str) -> list[Variant]:
    """The mutants of that assignment's solution, made once."""
    assignment = find_assignment(KIT, name)
    return mutants_of(solution_source(assignment), assignment.functions)


def afters(name: str, text: str) -> list[str]:
    """Lines after all changes of that name that are made of f; of tensors, if the text imports nothing."""
    whole = text if re.search(r"^import ", text, re.MULTILINE) else f"import torch\n\n\n{text}"
    made = [one for one in mutants_of(whole, ["f"]) if one.name == name]
    assert all(ast.parse(one.source) for one in made)
    return [one.after for one in made]


# Texts


def test_methods_of_a_graded_class_are_changed_but_for_their_names_and_self() -> None:
    text = "class Queue:\n    def push(self, item: int):\n        self.last = item + 1\n\n\nclass A:\n    b = 1 + 1\n"
    mutants = mutants_of(text, ["Queue"])
    assert {mutant.function for mutant in mutants} == {"Queue"}
    assert {"self.last = item - 1", "item = 1 ⏎ self.last = item + 1"} <= {mutant.after for mutant in mutants}
    assert not any("my_" in mutant.source or "self =" in mutant.source for mutant in mutants)
    named = [{mutant.slug for mutant in mutants_of(SHORT, ["f"], by_place)} for by_place in ((), ["f"])]
    assert named[0] - named[1] == {"names-changed"}


@pytest.mark.long
@each_assignment
def test_every_change_parses_differs_and_touches_its_own_function_only(assignment: Assignment) -> None:
    solution, mutants = solution_source(assignment), generated(assignment.name)
    assert len({mutant.source for mutant in mutants} | {solution}) == len(mutants) + 1
    before = {node.name: ast.dump(node) for node in ast.parse(solution).body if isinstance(node, ast.FunctionDef)}
    for mutant in mutants:
        tree = ast.parse(mutant.source)
        after = {node.name: ast.dump(node) for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert {name for name in before if before[name] != after[name]} == {mutant.function}, mutant.after


UNUSED = {"another-ddof", "global-random-state", "own-seed"}  # no assignment here has the pattern


def test_every_habit_finds_its_pattern_in_some_assignment() -> None:
    made = [one for assignment in ASSIGNMENTS for one in generated(assignment.name)]
    assert {one.slug for one in made if one.family == "habit"} == {name for name, *_ in CHANGES} - UNUSED - {"-"}


@pytest.mark.parametrize(
    ("line", "made"),
    [
        ("y = x * 2", ["y = None", "y = x / 2", "y = x * 3"]),
        ("y = 0 <= x < 9", ["y = None", "y = 0 < x < 9", "y = 0 <= x <= 9", "y = 1 <= x < 9", "y = 0 <= x < 10"]),
        ("y += (x)", ["y -= (x)", "y = (x)"]),
        ("y = a and b and not c", ["y = None", "y = a and b and c", "y = a or b and not c", "y = a and b or not c"]),
        ("f(a, b=1)", ["f((None), b=1)", "f(a, b=(None))", "f(b=1)", "f(a)", "f(a, b=2)"]),
        (
            "y = x if a in 'bc' else z",
            ["y = x", "y = z", "y = None", "y = x if a not in 'bc' else z", "y = x if a in 'XXbcXX' else z"],
        ),
        (
            "return x.find(y) is True",
            [
                "return x.find(y) is False",
                "return x.rfind(y) is True",
                "return x.find(y) is not True",
                "return x.find((None)) is True",
            ],
        ),
        ("raise ValueError(f'{x + 1}' + 'no')", ["pass"]),
        ("def g(z):\n        'Say.'\n        return -z", ["return +z"]),
    ],
)
def test_operator_changes_one_thing_outside_texts_of_errors(line: str, made: list[str]) -> None:
    found = afters("operator", f"import math\ndef f(x, y):\n    {line}\n")
    assert sorted(found) == sorted(made)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("a\nb  # why\nc\n", "a\n  B\nc\n", (2, "b", "B")),
        ("a\nb\n", "a\nnew\nb\n", (2, "b", "new ⏎ b")),
        ("a\nb\nc\n", "b\nc\na\n", (1, "a ⏎ b ⏎ c", "b ⏎ c ⏎ a")),
        (
            "a\n" + "x\n" * 9 + "b\n",
            "A\n" + "x\n" * 9 + "B\n",
            (1, "a" + " ⏎ x" * 5 + " ⏎ …", "A" + " ⏎ x" * 5 + " ⏎ …"),
        ),
    ],
)
def test_a_change_is_told_by_its_lines(before: str, after: str, told: tuple[int, str, str]) -> None:
    assert changed_lines(before, after) == told


# Equivalents


SHORT = "def f(x, n=2):\n    if n < 0:\n        raise ValueError('too \"small\"')\n    return x\n"


@pytest.mark.parametrize(
    ("right", "marked", "line"),
    [
        ("    if n < 0:", "    if n < 0:  # equivalent: no n is below 0", 2),
        ("    if n < 0:", "    # equivalent: no n is below 0\n    if n < 0:", 3),
        ("l\"')", "l\"')  # n  # equivalent: no n is below 0", 3),
    ],
)
def test_equivalent_mark_gives_its_reason_to_its_line_alone(right: str, marked: str, line: int) -> None:
    made = mutants_of(SHORT.replace(right, marked), ["f"])
    assert {(one.line, one.reason) for one in made if one.reason or one.line == line} == {(line, "no n is below 0")}
    assert [complaint for one in made if one.line == line for complaint in Fate(one).complaints] == []


def test_surviving_change_is_told_with_its_line() -> None:
    (made,) = [one for one in mutants_of(SHORT, ["f"]) if one.after == "if n <= 0:"]
    (told,) = Fate(made).complaints
    assert told == "This change of the solution loses nothing. line 2, f: if n < 0: → if n <= 0:"


# Parameters


WORDS = (
    "def f(x: Tensor, mode: str, n: int, size: float = 0.2):\n    if mode == 'a' or mode in ('b', 'c'):\n        pass"
)
ZERO = "def f(weight: float, mask: Tensor):\n    return weight != 0 and weight == 0.0 and weight != 1 and mask == 0"
BY_NAME = "def f(x, /, n: int = 2, *, how='a'):\n    'Say.'\n    return x + n\n"


@pytest.mark.parametrize(
    ("text", "name", "made"),
    [
        (WORDS, "size-ignored", ["size = 0.2"]),
        (WORDS, "mode-ignored", ["mode = 'a'", "mode = 'b'", "mode = 'c'"]),
        (WORDS, "n-ignored", ["n = 1", "n = 2", "n = 3"]),
        (WORDS, "x-ignored", ["x = torch.zeros_like(x)", "x = torch.ones_like(x)"]),
        (ZERO, "mask-above-0", []),
        (
            ZERO,
            "weight-above-0",
            [
                "return weight > 0 and weight == 0.0 and weight != 1 and mask == 0",
                "return weight != 0 and weight <= 0 and weight != 1 and mask == 0",
            ],
        ),
        (BY_NAME, "names-changed", ["def f(x, /, my_n: int = 2, *, my_how='a'):"]),
        ("def f(x, /):\n    return x\n", "names-changed", []),
    ],
)
def test_parameter_is_ignored_renamed_or_held_above_0(text: str, name: str, made: list[str]) -> None:
    assert [after.partition(" ⏎")[0] for after in afters(f"parameter:{name}", text)] == made


@pytest.mark.parametrize(
    ("signature", "others"),
    [
        ("n: int = 5", ["n: int = 6"]),
        ("x: float = 0.0", ["x: float = 0.1"]),
        ("x: float = 0.2", ["x: float = 0.4"]),
        ("on: bool = True", ["on: bool = False"]),
        ("n: int | None = None", ["n: int | None = 8"]),
        ("n: int = MOST", ["n: int = MOST + 1"]),
        ("rows: list[int] = ROWS", ["rows: list[int] = ROWS[:1]"]),
        ("reward_fn: Reward = own", ["reward_fn: Reward = lambda *given, **named: 0.0"]),
        ("mode: str = 'a'", ["mode: str = 'b'", "mode: str = 'c'"]),
        ("x: Tensor | None = None", []),
    ],
)
def test_a_default_is_another(signature: str, others: list[str]) -> None:
    text = f"def g(mode):\n    return mode == 'a' or mode in ('b', 'c')\n\n\ndef f({signature}):\n    return 1\n"
    name = signature.partition(":")[0]
    assert afters(f"parameter:{name}-default", text) == [f"def f({other}):" for other in others]


# Habits


AND_TORCH = "def f(x, y, z):\n    {}\n    return y\n"
AND_NUMBERS = "def f(x, n: int, y: float):\n    {}\n    return y\n"
AND_ARRAYS = (
    'import numpy as np\n\n\ndef f(x, z, rng):\n    """Return it.\n\n    x         float[a]\n    returns   float[a]\n'
    '    """\n    {}\n    return y\n'
)


@pytest.mark.parametrize(
    ("text", "habit", "line", "made"),
    [
        (AND_TORCH, "clamp", "y = torch.exp(a - b)", ["y = torch.exp((a - b).clamp(-20, 20))"]),
        (AND_TORCH, "clamp", "y = x / (x.std() + e)", ["y = x / (x.std() + e).clamp(min=1e-3)"]),
        (AND_TORCH, "clamp", "y = x / (n - 1)", []),
        (
            AND_TORCH,
            "isclose-for-eq",
            "y = x == best",
            ["y = torch.isclose(torch.as_tensor(x), torch.as_tensor(best))"],
        ),
        (AND_TORCH, "detached", "y = 1", []),
        (AND_TORCH, "truncation", "y = (a + b) / c", ["y = (a + b) // c"]),
        (AND_TORCH, "in-place", "y = z.clamp(0, 1)", ["y = z.clamp_(0, 1)"]),
        (AND_TORCH, "in-place", "y = (z - x).exp()", []),
        (AND_TORCH, "in-place", "y = y + 2", ["y += 2"]),
        (AND_TORCH, "in-place", "y = x + 2", []),
        (AND_NUMBERS, "in-place", "y = y + x", []),
        (AND_NUMBERS, "in-place", "z = y; z = z + x", []),
        (AND_NUMBERS, "isclose-for-eq", "y = x == n", []),
        (AND_NUMBERS, "isclose-for-eq", "y = n == y", ["y = torch.isclose(torch.as_tensor(n), torch.as_tensor(y))"]),
        (AND_TORCH, "size-written-in", "y = x.max()", ["y = x[0].max()", "y = x[..., 0].max()"]),
        (AND_TORCH, "size-written-in", "y = x.shape[0]", [f"y = {size}" for size in (2, 3, 4, 5)]),
        (AND_TORCH, "detach-dropped", "y = (a - b).detach().sum()", ["y = (a - b).sum()"]),
        (AND_ARRAYS, "clamp", "y = np.exp(a)", ["y = np.exp(np.clip(a, -10, 10))"]),
        (AND_ARRAYS, "clamp", "y = x / x.std()", ["y = x / np.maximum(x.std(), 1e-3)"]),
        (AND_ARRAYS, "isclose-for-eq", "y = z != best", ["y = ~np.isclose(z, best)"]),
        (AND_ARRAYS, "another-ddof", "y = z.std(axis=1)", ["y = z.std(axis=1, ddof=1)"]),
        (AND_ARRAYS, "another-ddof", "y = z.std()", ["y = z.std(ddof=1)"]),
        (AND_ARRAYS, "another-ddof", "y = np.var(z, ddof=1)", []),
        (AND_ARRAYS, "truncation", "y = z / 2", ["y = z // 2", "x = np.trunc(x) ⏎ y = z / 2"]),
        (AND_ARRAYS, "in-place", "y = x - z", ["y = np.subtract(x, z, out=x)"]),
        (AND_ARRAYS, "in-place", "y = z.clip(0, 1)", []),
        (AND_ARRAYS, "global-random-state", "y = rng.integers(0, 5, 3)", ["y = np.random.randint(0, 5, 3)"]),
        (AND_ARRAYS, "own-seed", "y = np.random.default_rng()", ["y = np.random.default_rng(0)"]),
    ],
)
def test_habit_is_made_where_its_pattern_stands(text: str, habit: str, line: str, made: list[str]) -> None:
    found = afters(f"habit:{habit}", text.format(line))
    assert [after.removeprefix("return ") for after in found] == made


@pytest.mark.parametrize("module", ["numpy as np", "math"])
def test_changes_of_arrays_or_numbers_hold_no_torch_word(module: str) -> None:
    body = "y = x - z / x.sum()\n    y = math.exp(y) if y == z else math.log(x)\n    return y.copy()\n"
    made = mutants_of(f"import math\nimport {module}\n\n\ndef f(x: list, z: float):\n    {body}", ["f"])
    assert len(made) > 8
    for word in ("torch", "clamp(", "sub_(", ".float()", ".trunc()", "keepdim="):
        assert not [one.after for one in made if word in one.after]


ARRAYS = """
import numpy as np

def f(x: np.ndarray, n: np.ndarray):
    '''Return it.

    x   float[a]
    n   int[a]
    '''
    return x[n]
"""
OPTIONAL = [("x", ""), ("w", "w if w is None else ")]
WRITTEN = "def f(x: Tensor, y: Tensor) -> None:\n    x.add_(y)\n"
MASKED = 'def f(x: Tensor):\n    """Return it.\n\n    returns   bool[a]\n    """\n    return x > 0\n'
TENSORS = """
def f(x: Tensor, ids: Tensor, w: Tensor | None = None) -> Tensor:
    '''Return it.

    x     float[a]
    ids   int[a]
    '''
    return x - 1
"""


@pytest.mark.parametrize(
    ("text", "name", "made"),
    [
        (ARRAYS, "parameter:n-ignored", ["n = 0 * n", "n = 0 * n + 1"]),
        (ARRAYS, "parameter:x-ignored", ["x = 0 * x", "x = 0 * x + 1"]),
        (
            TENSORS,
            "habit:cast",
            [
                *(f"{name} = {start}{name}.{dtype}()" for dtype in ("float", "double") for name, start in OPTIONAL),
                *(f"return (x - 1).{dtype}()" for dtype in ("float", "double")),
            ],
        ),
        (WRITTEN, "habit:cast", ["x = x.float()", "x = x.double()"]),
        (MASKED, "habit:cast", []),
        (TENSORS, "habit:truncation", ["x = x.trunc()", "w = w if w is None else w.trunc()"]),
        (TENSORS, "habit:in-place", ["return x.sub_(1)"]),
    ],
)
def test_floats_change_as_annotations_and_docstring_type_them(text: str, name: str, made: list[str]) -> None:
    assert [after.partition(" ⏎")[0] for after in afters(name, text)] == made
