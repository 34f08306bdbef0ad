"""Generated mutants: what becomes of parameters, and the habits of students, each where its pattern occurs."""

from __future__ import annotations

import ast
import functools
import re
from textwrap import dedent

import pytest
from all_assignments import ASSIGNMENTS, each_assignment
from places import KIT

from autograder.authoring.declarations import error
from autograder.authoring.exam.habits import HABITS
from autograder.authoring.exam.mutants import (
    Mutant,
    changed_lines,
    mutants_of,
    mutated,
)
from autograder.authoring.exam.selfcheck import (
    ROUNDED,
    Fate,
    differ_in_error_texts_alone,
    excused,
    functions_whose_errors_are_read,
)
from autograder.authoring.fixtures.regenerate import solution_source
from autograder.grading.assignment import Assignment, find_assignment
from autograder.grading.fixtures import Case


def changes(name: str, text: str, *functions: str) -> list[tuple[str, str]]:
    """Lines before and after of all changes of that name that are made of a text; of tensors, if it imports nothing."""
    graded, text = functions or ("f",), dedent(text)
    whole = text if re.search(r"^import ", text, re.MULTILINE) else f"import torch\n\n\n{text}"
    found = [one for one in mutants_of(whole, graded, operators=False) if one.name == name]
    for one in found:
        ast.parse(one.source)
    return [(one.before, one.after) for one in found]


@functools.cache
def generated(name: str) -> list[Mutant]:
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


OF_ARRAYS_ALONE = {"another-ddof", "global-random-state", "own-seed"}  # which no assignment here has the pattern of


def test_every_habit_finds_its_pattern_in_some_assignment() -> None:
    made = [one for assignment in ASSIGNMENTS for one in generated(assignment.name)]
    assert {one.slug for one in made if one.family == "habit"} == set(HABITS) - OF_ARRAYS_ALONE


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
        ("a\n" + "x\n" * 9 + "b\n", "A\n" + "x\n" * 9 + "B\n", ("a ⏎ b", "A ⏎ B")),
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


def test_errors_are_read_if_a_case_asks_for_words() -> None:
    def case(function: str, *mentions: str) -> Case:
        expected = (error("refused", function, "ValueError", *mentions),)
        return Case("c", "i", function, "", "hidden", "call", {}, {}, expected, {})

    assert functions_whose_errors_are_read([case("f"), case("g", "n"), case("h")]) == {"g"}


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


@pytest.mark.parametrize(
    ("habit", "line", "made"),
    [
        (
            "clamp",
            "y = torch.exp(a - b)",
            ["y = torch.exp((a - b).clamp(-10, 10))", "y = torch.exp((a - b).clamp(-20, 20))"],
        ),
        ("clamp", "y = x / x.std()", ["y = x / x.std().clamp(min=1e-3)"]),
        ("clamp", "y = x / (n - 1)", []),
        ("constant-in-logarithm", "y = x.log()", ["y = (x + 1e-8).log()"]),
        ("constant-in-logarithm", "y = F.log_softmax(x, dim=-1)", ["y = torch.log(torch.softmax(x, dim=-1) + 1e-8)"]),
        ("nan-to-num", "y = x / x.sum()", ["y = torch.nan_to_num(x / x.sum())"]),
        ("isclose-for-eq", "y = x == best", ["y = torch.isclose(torch.as_tensor(x), torch.as_tensor(best))"]),
        ("isclose-for-eq", "y = x == 0", []),
        ("one-pass-variance", "y = p @ (x - m).square()", ["y = (p @ x.square() - m.square())"]),
        ("one-pass-variance", "y = (x - m[:, None]).square() @ p", ["y = (x.square() @ p - m.square())"]),
        ("truncation", "y = a / b", ["y = a // b"]),
        ("truncation", "y = loss.item()", ["y = int(loss.item())"]),
        ("dtype-dropped", "y = torch.tensor(rows, dtype=torch.float32)", ["y = torch.tensor(rows)"]),
        ("dtype-dropped", "y = torch.zeros_like(x)", ["y = torch.zeros(x.shape)"]),
        ("in-place", "y = z.clamp(0, 1)", ["y = z.clamp_(0, 1)"]),
        ("in-place", "y = y + 2", ["y += 2"]),
        ("not-cloned", "y = x.clone()", ["y = x"]),
        ("reshape-for-permute", "y = x.permute(1, 0)", ["y = x.reshape(x.permute(1, 0).shape)"]),
        ("reshape-for-permute", 'y = rearrange(x, "a b -> b a")', ['y = x.reshape(rearrange(x, "a b -> b a").shape)']),
        ("reshape-for-permute", 'y = rearrange(x, "a b -> a b 1")', []),
        ("axis-dropped", "y = x.mean(dim=-1, keepdim=True)", ["y = x.mean(dim=-1)"]),
        ("axis-dropped", "y = x[:, None]", ["y = x"]),
        ("axis-dropped", "y = x.unsqueeze(-1)", ["y = x"]),
        ("size-written-in", "y = int(x.max()) + 1", ["y = int(x[0].max()) + 1", "y = int(x[..., 0].max()) + 1"]),
        ("detach-dropped", "y = x.detach()", ["y = x"]),
        ("another-optimizer", "y = torch.optim.SGD(p)", None),
        ("shallow-copy", "y = copy.deepcopy(x)", ["y = x", "y = copy.copy(x)"]),
    ],
)
def test_a_habit_is_made_where_its_pattern_stands(habit: str, line: str, made: list[str] | None) -> None:
    found = afters(f"habit:{habit}", f"def f(x, y, z):\n    {line}\n    return y\n")
    if made is None:
        assert [text.partition("(")[0] for text in found][:3] == [
            f"y = torch.optim.{n}" for n in ("Adam", "AdamW", "RMSprop")
        ]
        made = found
    assert found == made


@pytest.mark.parametrize(
    ("habit", "line", "made"),
    [
        ("clamp", "y = np.exp(a - b)", ["y = np.exp(np.clip(a - b, -10, 10))"]),
        ("clamp", "y = x / x.std()", ["y = x / np.maximum(x.std(), 1e-3)"]),
        ("clamp", "y = np.log(x)", ["y = np.maximum(np.log(x), -20)"]),
        ("clamp", "y = x / x.sum()", []),
        ("nan-to-num", "y = z / x.sum()", []),
        ("nan-to-num", "y = z / x.std()  # nan", []),
        ("isclose-for-eq", "y = z == best", ["y = np.isclose(z, best)"]),
        ("isclose-for-eq", "y = z != best", ["y = ~np.isclose(z, best)"]),
        ("another-ddof", "y = z.std(axis=1)", ["y = z.std(axis=1, ddof=1)"]),
        ("another-ddof", "y = np.var(z, ddof=1)", ["y = np.var(z)"]),
        (
            "one-pass-variance",
            "y = z.var(axis=1, ddof=1)",
            ["y = (np.maximum((z ** 2).mean(axis=1) - z.mean(axis=1) ** 2, 0) * z.shape[1] / (z.shape[1] - 1))"],
        ),
        ("one-pass-variance", "y = np.std(z)", ["y = np.sqrt(np.maximum(((z) ** 2).mean() - (z).mean() ** 2, 0))"]),
        ("cast", "y = z", ["x = np.asarray(x, dtype=np.float32) ⏎ y = z", "return y.astype(np.float32)"]),
        ("dtype-dropped", "y = z.astype(np.int64)", ["y = z"]),
        ("dtype-dropped", "y = np.zeros_like(z)", ["y = np.zeros(z.shape)"]),
        ("truncation", "y = z / 2", ["y = z // 2", "x = np.trunc(x) ⏎ y = z / 2"]),
        ("in-place", "y = x - z", ["y = np.subtract(x, z, out=x)"]),
        ("in-place", "y = y + z", ["y += z"]),
        ("in-place", "y = z.clip(0, 1)", []),
        ("not-cloned", "y = z.copy()", ["y = z"]),
        ("reshape-for-permute", "y = z.T", ["y = z.reshape(z.T.shape)"]),
        ("reshape-for-permute", "y = np.transpose(z)", ["y = z.reshape(np.transpose(z).shape)"]),
        ("axis-dropped", "y = z.sum(axis=1, keepdims=True)", ["y = z.sum(axis=1)"]),
        ("axis-dropped", "y = z[:, np.newaxis]", ["y = z"]),
        ("axis-dropped", "y = np.expand_dims(z, 1)", ["y = z"]),
        ("array-of-integers", "y = np.zeros((2, 3))", ["y = np.zeros((2, 3), dtype=int)"]),
        ("array-of-integers", "y = np.zeros(3, dtype=float)", []),
        ("global-random-state", "y = rng.integers(0, 5, 3)", ["y = np.random.randint(0, 5, 3)"]),
        ("own-seed", "y = rng.random()", ["rng = np.random.default_rng(0) ⏎ y = rng.random()"]),
        ("size-written-in", "y = len(z)", [f"y = {size}" for size in (2, 3, 4, 5)]),
    ],
)
def test_a_habit_with_arrays_is_written_as_numpy_is(habit: str, line: str, made: list[str]) -> None:
    docstring = '"""Return it.\n\n    x         float[a]\n    returns   float[a]\n    """'
    text = f"import numpy as np\n\n\ndef f(x, z, rng):\n    {docstring}\n    {line}\n    return y\n"
    found = afters(f"habit:{habit}", text)
    assert found == made


@pytest.mark.parametrize("module", ["numpy as np", "math"])
def test_changes_of_arrays_or_numbers_hold_no_torch_word(module: str) -> None:
    body = "y = x - z / x.sum()\n    y = math.exp(y) if y == z else math.log(x)\n    return y.copy()\n"
    made = mutants_of(f"import {module}\n\n\ndef f(x: list, z: float):\n    {body}", ["f"], operators=False)
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


def test_nan_to_num_is_tried_where_docstring_mentions_nan() -> None:
    told = '''
        import numpy as np

        def f(x, n):
            """Return the mean; nan of no entries.

            x         float[a]
            n         int[a]
            returns   float[a]
            """
            return x / x.sum()
    '''
    assert "return np.nan_to_num(x / x.sum())" in afters("habit:nan-to-num", told)
    assert afters("habit:nan-to-num", told.replace("; nan of no entries", "")) == []
    assert afters("habit:isclose-for-eq", told.replace("x / x.sum()", "x[n == best]")) == []


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
    assert casts[:4] == ["x = x.float()", "x = x.double()", "x = x.half()", "w = w if w is None else w.float()"]
    assert casts[-1] == "return (x - 1).half()"
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


def test_model_is_called_twice_and_its_result_kept() -> None:
    assert "new = score(model, ids) ⏎ return new - old.detach()" in afters("habit:second-pass", MODEL)
    assert "return new - score(model, ids).detach()" in afters("habit:second-pass", MODEL)
    (kept,) = afters("habit:calls-remembered", MODEL)
    assert kept.startswith("kept = {} ⏎ with torch.no_grad():")
    assert "new = kept['new'] if 'new' in kept else kept.setdefault('new', score(model, ids))" in kept


def test_callback_in_a_loop_remembers_its_answers() -> None:
    names: dict[str, object] = {}
    text = "def f(rows, reward_fn):\n    return [reward_fn(row) for row in rows]\n"
    (remembering,) = [one for one in mutants_of(text, ["f"], operators=False) if one.name == "habit:calls-remembered"]
    exec(remembering.source, names)
    asked: list[list[int]] = []
    assert names["f"]([[1], [1], [2]], lambda row: asked.append(row) or len(asked)) == [1, 1, 2]  # type: ignore[operator]
    assert asked == [[1], [2]]
    assert remembering.after.endswith("reward_fn = remembered ⏎ return [reward_fn(row) for row in rows]")


LOOP = """
    def f(rewards: Tensor) -> float:
        model = Model()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        for epoch in range(3):
            deltas = g(rewards)
            loss = g(deltas)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""


def test_an_optimizer_is_made_anew_scheduled_clipped_and_cleared_late() -> None:
    assert afters("habit:optimizer-anew", LOOP) == [
        "optimizer = torch.optim.Adam(model.parameters(), lr=0.1) ⏎ deltas = g(rewards)"
    ]
    assert "for group in optimizer.param_groups: group['lr'] *= 0.9" in afters("habit:learning-rate-schedule", LOOP)[0]
    assert "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0) ⏎ optimizer.step()" in afters(
        "habit:gradients-clipped", LOOP
    )
    cleared = changes("habit:gradients-cleared-late", LOOP)
    assert cleared[0] == (
        "optimizer.zero_grad() ⏎ loss.backward() ⏎ optimizer.step()",
        "loss.backward() ⏎ optimizer.step() ⏎ optimizer.zero_grad()",
    )
    assert ("optimizer.zero_grad()", "model.zero_grad()") in cleared


def test_requested_clip_is_left_out_or_replaced() -> None:
    clip = "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
    text = f"def f(model, optimizer):\n    {clip}\n    optimizer.step()\n"
    assert changes("habit:gradients-clipped", text) == [(clip, ""), (clip, clip.replace("norm", "value"))]


def test_training_is_left_where_nothing_seems_to_be_learned() -> None:
    made = [after.partition(" ⏎")[0] for after in afters("habit:stopped-early", LOOP, "f", "g")]
    assert made[:2] == [
        "if not deltas.any(): continue",
        "if deltas.dim() > 1 and (deltas == deltas[..., :1]).all(): continue",
    ]
    assert "if not deltas.any(): break" in made
    assert not [after for after in made if after.startswith("if not loss")]
    step = "def f(x: Tensor) -> float:\n    loss = g(x)\n    loss.backward()\n    return loss.item()\n"
    assert afters("habit:stopped-early", step, "f", "g") == [
        "if x.dim() > 1 and (x == x[..., :1]).all(): return 0.0 ⏎ loss = g(x)"
    ]


@pytest.mark.parametrize(
    ("slug", "after", "whole_numbers", "reason"),
    [
        ("cast", "x = np.asarray(x, dtype=np.float32)", (), ROUNDED),
        ("cast", "x = np.asarray(x, dtype=np.float32)", ("f",), ""),
        ("cast", "x = x.half()", (), ""),
        ("in-place", "np.add(x, 1, out=np.asarray(x))", (), ""),
    ],
)
def test_rounded_array_is_excused_unless_whole_numbers_are_answered(
    slug: str, after: str, whole_numbers: tuple[str, ...], reason: str
) -> None:
    mutant = Mutant("habit", slug, "f", "def f(x): return 1", "return x", after)
    assert excused(mutant, "def f(x): return 2", ("f",), whole_numbers).reason == reason
