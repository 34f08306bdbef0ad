"""Generated mutants: what becomes of parameters, and the habits of students, each where its pattern occurs."""

from __future__ import annotations

import ast
import functools
import re
from dataclasses import replace
from textwrap import dedent

import pytest
from all_assignments import ASSIGNMENTS, each_assignment
from places import KIT

from autograder.authoring.declarations import error
from autograder.authoring.exam.mutants import (
    HABITS,
    Variant,
    changed_lines,
    mutants_of,
    mutated,
)
from autograder.authoring.exam.selfcheck import (
    ROUNDED,
    UNGRADED,
    Fate,
    differ_in_error_texts_alone,
    excused,
)
from autograder.authoring.fixtures.regenerate import solution_source
from autograder.grading.assignment import Assignment, find_assignment
from autograder.grading.fixtures import Case, Expectation


def changes(name: str, text: str, *functions: str) -> list[tuple[str, str]]:
    """Lines before and after of all changes of that name that are made of a text; of tensors, if it imports nothing."""
    graded, text = functions or ("f",), dedent(text)
    whole = text if re.search(r"^import ", text, re.MULTILINE) else f"import torch\n\n\n{text}"
    found = [one for one in mutants_of(whole, graded, operators=False) if one.name == name]
    for one in found:
        ast.parse(one.source)
    return [(one.before, one.after) for one in found]


@functools.cache
def generated(name: str) -> list[Variant]:
    """The generated changes of that assignment's solution, made once: it takes half a second of the longer ones."""
    assignment = find_assignment(KIT, name)
    return mutants_of(solution_source(assignment), assignment.functions, operators=False)


def afters(name: str, text: str, *functions: str) -> list[str]:
    return [after for _, after in changes(name, text, *functions)]


# Texts


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
    assert {one.slug for one in made if one.family == "habit"} == set(HABITS) - UNUSED


@pytest.mark.parametrize("end", ["", "\n", "\n\n# the end\n"])
def test_operator_changes_one_line_of_a_function_or_method(end: str) -> None:
    head = "# first\n\nLIMIT = 1 + 1\n\n\ndef f(x):\n    return x * 2\n\n\n"
    whole = f"{head}class Kept:\n    most = 2 + 1\n\n    def g(self, y):\n        return y + 1{end}"
    made = [(function, after) for _, _, function, after in mutated(whole, ["f", "g"])]
    for function, after in made:
        pairs = list(zip(whole.splitlines(), after.splitlines(), strict=True))
        assert [before for before, line in pairs if before != line] == [
            "    return x * 2" if function == "f" else "        return y + 1"
        ]
        assert after.endswith("\n") == whole.endswith("\n")
    assert {("f", whole.replace("x * 2", "x / 2")), ("g", whole.replace("y + 1", "y - 1"))} <= set(made)
    assert {function for _, _, function, _ in mutated(whole, ["g"])} == {"g"}


def test_parameters_that_are_passed_by_name_get_other_names() -> None:
    text = 'def f(x, /, n: int = 2, *, how="a"):\n    """Say."""\n    return x + n\n'
    assert afters("parameter:names-changed", text) == [
        'def f(x, /, my_n: int = 2, *, my_how="a"): ⏎ """Say.""" ⏎ n, how = my_n, my_how'
    ]
    assert afters("parameter:names-changed", "def f(x, /):\n    return x\n") == []


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("a\nb  # why\nc\n", "a\n  B\nc\n", ("b", "B")),
        ("a\nb\n", "a\nnew\nb\n", ("b", "new ⏎ b")),
        ("a\n\nb\n", "a\nnew\n\nb\n", ("b", "new ⏎ b")),
        ("a\nb\nc\n", "b\nc\na\n", ("a ⏎ b ⏎ c", "b ⏎ c ⏎ a")),
        ("a\n" + "x\n" * 9 + "b\n", "A\n" + "x\n" * 9 + "B\n", ("a" + " ⏎ x" * 5 + " ⏎ …", "A" + " ⏎ x" * 5 + " ⏎ …")),
    ],
)
def test_a_change_is_told_by_its_lines(before: str, after: str, told: tuple[str, str]) -> None:
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
    assert {one.line for one in made if one.reason} == {line}
    assert {one.reason for one in made if one.line == line} == {"no n is below 0"}
    assert {Fate(one).is_open for one in made if one.line == line} == {False}


def test_surviving_change_is_told_with_its_line() -> None:
    (made,) = [one for one in mutants_of(SHORT, ["f"]) if one.after == "if n <= 0:"]
    (told,) = Fate(made).complaints
    assert told == "This change of the solution loses nothing. line 2, f: if n < 0: → if n <= 0:"


@pytest.mark.parametrize(
    ("other", "alone"),
    [
        ("raise ValueError(None)", True),
        ("raise ValueError", True),
        ("raise ValueError(f'{n}')", True),
        ("raise TypeError('too \"small\"')", False),
        ("raise ValueError('too') from None", False),
        ("pass", False),
    ],
)
def test_error_text_is_told_from_error_type(other: str, alone: bool) -> None:
    changed = SHORT.replace("raise ValueError('too \"small\"')", other)
    assert differ_in_error_texts_alone(SHORT, changed) is alone


REFUSED, WORDLESS = error("refused", "f", "ValueError", "n"), error("refused", "f", "ValueError")
WHOLE = Expectation("value", "result", "f", dtype="int64")
ROUNDING = Variant("habit", "cast", "f", "def f(x): return 1", after="x = np.asarray(x, dtype=np.float32)")
RAISING = Variant("operator", "", "f", SHORT.replace("'too", "'XX"), after="raise ValueError('XX')")


@pytest.mark.parametrize(
    ("mutant", "expected", "reason"),
    [
        (ROUNDING, WORDLESS, ROUNDED),
        (ROUNDING, WHOLE, ""),
        (replace(ROUNDING, after="x = x.half()"), WORDLESS, ""),
        (replace(ROUNDING, slug="in-place"), WORDLESS, ""),
        (RAISING, WORDLESS, UNGRADED),
        (RAISING, REFUSED, ""),
        (replace(RAISING, reason="its own"), REFUSED, "its own"),
    ],
)
def test_change_is_excused_where_nothing_is_asked(mutant: Variant, expected: Expectation, reason: str) -> None:
    cases = [
        Case("c", "i", function, "", "hidden", "call", {}, {}, (what,), {})
        for function, what in (("f", expected), ("g", REFUSED), ("g", WHOLE))
    ]
    assert excused(mutant, SHORT, cases).reason == reason


# Parameters


def test_ignored_parameter_takes_default_or_likely_values() -> None:
    text = """
        def f(x: Tensor, mode: str, n: int, size: float = 0.2):
            if mode == "a" or mode in ("b", "c"):
                return x * n * size
    """
    assert afters("parameter:size-ignored", text) == ['size = 0.2 ⏎ if mode == "a" or mode in ("b", "c"):']
    assert [after.partition(" ⏎")[0] for after in afters("parameter:mode-ignored", text)] == [
        "mode = 'a'",
        "mode = 'b'",
        "mode = 'c'",
    ]
    assert [after.partition(" ⏎")[0] for after in afters("parameter:n-ignored", text)] == ["n = 1", "n = 2", "n = 3"]
    assert len(afters("parameter:x-ignored", text)) == 2


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


def test_is_not_0_becomes_above_0_but_for_tensors() -> None:
    text = """
        def f(weight: float, mask: Tensor):
            if weight != 0 and weight == 0.0 and weight != 1:
                return mask == 0
    """
    assert afters("parameter:weight-above-0", text) == [
        "if weight > 0 and weight == 0.0 and weight != 1:",
        "if weight != 0 and weight <= 0.0 and weight != 1:",
    ]
    assert afters("parameter:mask-above-0", text) == []


# Habits


AND_TORCH = "def f(x, y, z):\n    {}\n    return y\n"
AND_ARRAYS = (
    'import numpy as np\n\n\ndef f(x, z, rng):\n    """Return it.\n\n    x         float[a]\n    returns   float[a]\n'
    '    """\n    {}\n    return y\n'
)
ADAMW = [f"y = o.Adam(p, {option})" for option in ("weight_decay=0.01", "betas=(0.9, 0.95)", "eps=1e-5")]


@pytest.mark.parametrize(
    ("text", "habit", "line", "made"),
    [
        (AND_TORCH, "clamp", "y = torch.exp(a - b)", ["y = torch.exp((a - b).clamp(-20, 20))"]),
        (AND_TORCH, "clamp", "y = x / (x.std() + e)", ["y = x / (x.std() + e).clamp(min=1e-3)"]),
        (AND_TORCH, "clamp", "y = x / (n - 1)", []),
        (AND_TORCH, "constant-in-logarithm", "y = x.log()", ["y = (x + 1e-8).log()"]),
        (
            AND_TORCH,
            "constant-in-logarithm",
            "y = torch.log_softmax(x, dim=-1)",
            ["y = torch.log(torch.softmax(x, dim=-1) + 1e-8)"],
        ),
        (
            AND_TORCH,
            "isclose-for-eq",
            "y = x == best",
            ["y = torch.isclose(torch.as_tensor(x), torch.as_tensor(best))"],
        ),
        (AND_TORCH, "isclose-for-eq", "y = x == 0", []),
        (AND_TORCH, "truncation", "y = (a + b) / c", ["y = (a + b) // c"]),
        (AND_TORCH, "truncation", "y = loss.item()", ["y = int(loss.item())"]),
        (AND_TORCH, "dtype-dropped", "y = torch.zeros_like(x)", ["y = torch.zeros(x.shape)"]),
        (AND_TORCH, "in-place", "y = z.clamp(0, 1)", ["y = z.clamp_(0, 1)"]),
        (AND_TORCH, "in-place", "y = (z - x).exp()", []),
        (AND_TORCH, "in-place", "y = y + 2", ["y += 2"]),
        (AND_TORCH, "in-place", "y = x + 2", []),
        (AND_TORCH, "not-cloned", "y = x.clone()", ["y = x"]),
        (AND_TORCH, "reshape-for-permute", "y = x.permute(1, 0)", ["y = x.reshape(x.permute(1, 0).shape)"]),
        (AND_TORCH, "axis-dropped", "y = x[:, None]", ["y = x"]),
        (AND_TORCH, "axis-dropped", "y = (a - b).unsqueeze(-1) * c", ["y = (a - b) * c"]),
        (AND_TORCH, "size-written-in", "y = x.max()", ["y = x[0].max()", "y = x[..., 0].max()"]),
        (AND_TORCH, "size-written-in", "y = x.shape[0]", [f"y = {size}" for size in (2, 3, 4, 5)]),
        (AND_TORCH, "detach-dropped", "y = (a - b).detach().sum()", ["y = (a - b).sum()"]),
        (
            AND_TORCH,
            "another-optimizer",
            "y = o.Adam(p)",
            [*(f"y = o.{name}(p)" for name in ("AdamW", "SGD", "RMSprop")), *ADAMW],
        ),
        (AND_TORCH, "another-optimizer", "y = torch.Adam()", []),
        (AND_TORCH, "gradients-not-cleared", "o.zero_grad()", ["None"]),
        (AND_TORCH, "gradients-clipped", "u.clip_grad_norm_(p, 1)", ["None", "u.clip_grad_value_(p, 1)"]),
        (AND_TORCH, "shallow-copy", "y = copy.deepcopy(x)", ["y = x", "y = copy.copy(x)"]),
        (AND_ARRAYS, "clamp", "y = np.exp(a)", ["y = np.exp(np.clip(a, -10, 10))"]),
        (AND_ARRAYS, "clamp", "y = x / x.std()", ["y = x / np.maximum(x.std(), 1e-3)"]),
        (AND_ARRAYS, "clamp", "y = x / x.sum()", []),
        (AND_ARRAYS, "isclose-for-eq", "y = z != best", ["y = ~np.isclose(z, best)"]),
        (AND_ARRAYS, "another-ddof", "y = z.std(axis=1)", ["y = z.std(axis=1, ddof=1)"]),
        (AND_ARRAYS, "another-ddof", "y = z.std()", ["y = z.std(ddof=1)"]),
        (AND_ARRAYS, "another-ddof", "y = np.var(z, ddof=1)", []),
        (
            AND_ARRAYS,
            "cast",
            "y = z",
            ["x = np.asarray(x, dtype=np.float32) ⏎ y = z", "np.asarray(y, dtype=np.float32)"],
        ),
        (AND_ARRAYS, "dtype-dropped", "y = z.astype(np.int64)", ["y = z"]),
        (AND_ARRAYS, "truncation", "y = z / 2", ["y = z // 2", "x = np.trunc(x) ⏎ y = z / 2"]),
        (AND_ARRAYS, "in-place", "y = x - z", ["y = np.subtract(x, z, out=x)"]),
        (AND_ARRAYS, "in-place", "y = z.clip(0, 1)", []),
        (AND_ARRAYS, "not-cloned", "y = z.copy()", ["y = z"]),
        (AND_ARRAYS, "reshape-for-permute", "y = z.T", ["y = z.reshape(z.T.shape)"]),
        (AND_ARRAYS, "reshape-for-permute", "y = np.transpose(z)", ["y = z.reshape(np.transpose(z).shape)"]),
        (AND_ARRAYS, "axis-dropped", "y = z[:, np.newaxis]", ["y = z"]),
        (AND_ARRAYS, "axis-dropped", "y = np.expand_dims(z, 1)", ["y = z"]),
        (AND_ARRAYS, "array-of-integers", "y = np.zeros((2, 3))", ["y = np.zeros(((2, 3)), dtype=int)"]),
        (AND_ARRAYS, "array-of-integers", "y = np.zeros(3, dtype=float)", []),
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
    made = mutants_of(
        f"import math\nimport {module}\n\n\ndef f(x: list, z: float):\n    {body}", ["f"], operators=False
    )
    assert len(made) > 8
    for word in ("torch", "clamp(", "sub_(", ".float()", ".trunc()", "keepdim="):
        assert not [one.after for one in made if word in one.after]


def test_annotated_arrays_change_as_the_docstring_types_them() -> None:
    text = '''
        import numpy as np

        def f(x: np.ndarray, n: np.ndarray):
            """Return it.

            x   float[a]
            n   int[a]
            """
            return x[n]
    '''
    assert afters("parameter:n-ignored", text) == ["n = 0 * n ⏎ return x[n]", "n = 0 * n + 1 ⏎ return x[n]"]
    assert len(afters("parameter:x-ignored", text)) == 2
    assert [after for after in afters("habit:cast", text) if after.startswith("n")] == []


def test_float_tensors_are_cast_truncated_and_written_into() -> None:
    text = '''
        def f(x: Tensor, ids: Tensor, w: Tensor | None = None) -> Tensor:
            """Return it.

            x     float[a]
            ids   int[a]
            """
            return x - 1
    '''
    casts = [after.partition(" ⏎")[0] for after in afters("habit:cast", text)]
    assert casts == [
        "x = x.float()",
        "w = w if w is None else w.float()",
        "return (x - 1).float()",
        "x = x.double()",
        "w = w if w is None else w.double()",
        "return (x - 1).double()",
    ]
    assert not [after for after in casts if after.startswith("ids")]
    assert "x = x.trunc() ⏎ return x - 1" in afters("habit:truncation", text)
    assert afters("habit:in-place", text) == ["return x.sub_(1)"]


MODEL = """
    def f(model, ids):
        with torch.no_grad():
            old = score(model, ids)
        for step in range(3):
            new = score(model, ids)
        return new - old.detach()
"""


def test_the_mode_of_a_model_is_changed_around_its_calls() -> None:
    made = afters("habit:mode-around-call", MODEL)
    assert "model.eval() ⏎ new = score(model, ids) ⏎ model.train()" in made
    assert "was_training = model.training; model.eval() ⏎ old = score(model, ids) ⏎ model.train(was_training)" in made
    assert len(made) == 10


def test_no_grad_becomes_detach_or_nothing() -> None:
    made = ["if True: ⏎ old = score(model, ids).detach()", "if True:"]
    assert afters("habit:detach-for-no-grad", MODEL) == made


def test_model_is_called_twice() -> None:
    assert "new = score(model, ids) ⏎ return new - old.detach()" in afters("habit:second-pass", MODEL)
