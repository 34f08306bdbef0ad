"""The line whose change fixes a function is found however it is written, and no line is named without evidence."""

from __future__ import annotations

import math
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import KIT

from autograder.checking.fault_lines import excerpt, fault_lines
from autograder.checking.repairs import Text
from autograder.checking.values import Known, Watching
from autograder.grading.assignment import find_assignment
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.sandbox.sandbox import Sandbox
from autograder.sandbox.worker.frames import WATCH
from autograder.sandbox.worker.worker import Watch
from autograder.submissions.submission import Submission
from autograder.vocabulary.report import ItemResult

CORPUS = Path(__file__).with_name("wrong_answers.toml")
RIGHT_SHARE, WRONG_SHARE = 0.75, 0.1  # of the corpus, less than what is reached and more
FUNCTION = """\
def f(x, old, mode):
    centered = x - x.mean(dim=-1, keepdim=True)
    if mode == "centered":
        return centered
    spread = x.std(dim=-1, keepdim=True)
    return centered / (spread + 1e-5)
"""


CALLER = """\
import torch

def score_table(probs):
    return probs - torch.eye(len(probs), dtype=probs.dtype)

def kl_expected_gradients(logits, ref_log_probs):
    log_probs = torch.log_softmax(logits.detach(), 0)
    x = ref_log_probs.detach() - log_probs
    factors = torch.stack([torch.ones_like(x), -x, -torch.expm1(x)])
    return (factors * log_probs.exp()) @ score_table(log_probs.exp())
"""


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("x.std(dim=-1, correction=0)", "x.std(dim=-1, correction=1)"),
        ("x.std(dim=0)", "x.std(dim=-1)"),
        ("b - a", "a - b"),
        ("x.clamp(min=0)", "x"),
        ("x - old", "x - old.detach()"),
        ("torch.max(x, old)", "torch.min(x, old)"),
        ("a * x - b", "a * (x - b)"),
        ("x[:, a:]", "x[:, a - 1:-1]"),
        ("x.clamp(a, 1 + b)", "x.clamp(b, 1 + a)"),
        ("-(x * old).mean()", "(x * old).mean()"),
        ("x < old", "x <= old"),
        ("torch.sqrt(x + EPS)", "torch.sqrt(x) + EPS"),
        ("f(x, y)", "f(y, x)"),
        ("g(x)", "g(x, old=old)"),
        ("old or 0.2", "old if old is not None else 0.2"),
        ("torch.sqrt(x * y / old)", "torch.sqrt(y / old) * x"),
        ("x.exp().sum(-1).log()", "x.logsumexp(-1)"),
        ("y.detach()", "(unused if unused is not None else y.detach())"),
        ("y", "copy.deepcopy(y)"),
        ("(y, x)", "y.T, x"),
        ("y + a * x - b", "y + a * (x - b)"),
        ("f(x, old=None)", "f(x, old=old)"),
        ("f(**{'x': x, 'b': b})", "f(**{'a': a, 'x': x, 'b': b})"),
    ],
)
def test_change_that_undoes_a_usual_mistake_is_tried(wrong: str, right: str) -> None:
    source = f"import torch\nEPS = 1\ndef f(x, old, a, b, y, unused=None):\n    z = {wrong}\n    return z\n"
    text = Text(source, "f")
    texts = (repair.source() for repair in text.repairs((), (), "values"))
    no_brackets = str.maketrans("", "", "()")
    tried = {changed.split("    z = ")[-1].split("\n")[0].translate(no_brackets) for changed in texts}
    assert right.translate(no_brackets) in tried


def test_call_of_a_loop_is_tried_before_it() -> None:
    text = Text("def f(x):\n    for y in x:\n        x = g(f(y)) + 1\n        h(x)\n    return x\n", "f")
    texts = (repair.source() for repair in text.repairs((), (), "values") if repair.line == 3)
    assert any("= f(y)\n    for y in x:\n        x = g(kept_before_the_loop) + 1" in changed for changed in texts)


def test_statement_that_was_handed_out_is_not_at_fault() -> None:
    given, own = "EPS = 1e-5\n\n", "def f(x):\n    return x / (x + EPS)\n"
    for handed_out, lines in ((given, {4}), (given.replace("5", "6"), {1, 4})):
        assert {repair.line for repair in Text(given + own, "f", (), handed_out).repairs((), (), "values")} == lines


def test_second_change_of_a_statement_is_tried_too() -> None:
    text = Text("def f(x):\n    share = x / (x + 1)\n    return share\n", "f")
    pairs = text.pairs(text.repairs((), (), "values"))
    assert "share = (((x - 1)) / x)" in {repair.source().split("\n")[1].strip() for repair in pairs}


def test_changed_text_keeps_the_lines_of_the_rest() -> None:
    source = (
        "def f(x):\n    if x:\n        y = 1\n    elif x > 2:\n        y = (1 +\n             x)  # why\n    return y\n"
    )
    text = Text(source, "f")
    texts = [repair.source() for repair in text.repairs((), (), "values") if repair.kind != "refused"]
    assert all(len(changed.split("\n")) >= len(source.split("\n")) for changed in texts)
    assert any("    elif (x >= 2):" in changed for changed in texts)
    assert any("y = ((1 - x\n))  # why\n    return y" in changed for changed in texts)


def test_changed_text_leaves_out_what_the_function_does_not_use() -> None:
    parts = (
        "import math",
        "@cache\ndef other():\n    return 1",
        "def part(x):\n    return x",
        "def f(x):\n    return part(x) + 1",
    )
    source = "\n\n".join(parts)
    text = Text(source, "f")
    changed = text.repairs((), (), "values")[0].source()
    assert "other" not in changed
    assert "def part(x)" in changed
    assert changed != source
    assert {repair.line for repair in text.repairs((), (), "values")} == {8, 11}


NEARLY_EQUAL_IS_EQUAL = '''\
def has_signal(rewards):
    """Say which groups can teach anything."""
    return rewards.std(dim=-1) > 1e-6
'''
COUNTED_AGAIN = """\
def repaired_reward(prompt, response):
    points = 0
    for token in response:
        if token in prompt:
            points += 1
    for at in range(len(response) - 1):
        points += response[at] <= response[at + 1]
    return points
"""
REFUSES_TOO_MUCH = """\
def has_signal(rewards):
    if rewards.shape[-1] < 9:
        raise ValueError("few")
    return (rewards != rewards[:, :1]).any(dim=-1)
"""
ALONE_IS_LET_THROUGH = """\
def group_advantages(rewards, mode):
    if mode not in ("mean", "mean_std", "mean_population_std"):
        raise ValueError(mode)
    if mode == "mean" and rewards.shape[-1] > 3:
        raise ValueError("more than three")
    centered = rewards - rewards.mean(dim=-1, keepdim=True)
    if mode == "mean":
        return centered
    return centered / (rewards.std(dim=-1, keepdim=True, correction=int(mode == "mean_std")) + 1e-5)
"""


@pytest.mark.parametrize(
    ("function", "source", "line"),
    [
        ("has_signal", NEARLY_EQUAL_IS_EQUAL, 3),
        ("has_signal", REFUSES_TOO_MUCH, 2),
        ("repaired_reward", COUNTED_AGAIN, 4),
        ("group_advantages", ALONE_IS_LET_THROUGH, 4),
    ],
)
def test_value_of_the_solution_tells_the_line_where_there_is_one(function: str, source: str, line: int) -> None:
    chosen = find_assignment(KIT, "policy_gradient_theory")
    grader = Grader.of(chosen, read_fixtures(chosen, hidden=False))
    submission = Submission("ada", "ada/m.py", "", source)
    items = [item for item in chosen.items if item.function == function]
    with Sandbox() as sandbox:
        results = grader.grade(submission, sandbox, items).items
        lines = fault_lines(grader, submission, results, sandbox)
        without = fault_lines(replace(grader, solution=""), submission, results, sandbox)  # as in a handout
    assert {*lines.values()} == {line}
    assert {*without.values()} <= {line}


@pytest.mark.parametrize(
    "body",
    [
        "return (x[0] + 2) * len(x)",
        "return [y * 2 for y in x if y] + [*x, *(1 for _ in x)]",
        "return f'{x[0]:>{x[1]}}' + str(x[:1]) + str({'a': x, **{}})",
        "match x:\n        case [int(), first]:\n            return first\n        case _:\n            return None",
        "y = x\n    y += [3]\n    return x, y",
        "class A(list):\n        def __init__(self):\n            super().__init__(x)\n    return A()",
        "g = lambda y=1, *z: y + len(z)\n    x[1] += (k := g(3, 4))\n    return x, k, -k, not x",
        "def g():\n        y = yield 3\n        yield y\n    return list(g())",
    ],
)
def test_watched_source_computes_the_same(body: str) -> None:
    source = f"def f(x):\n    'Return.'\n    {body}\n"
    watching = Watching(source, {1}, ("len",))
    plain, watched = dict[str, Any](), {WATCH: (watch := Watch())}
    exec(source, plain)
    exec(watching.text, watched)
    assert watched["f"]([1, 2]) == plain["f"]([1, 2])
    assert watch.numbers.keys() <= watching.lines.keys()


def test_method_that_a_name_is_asked_for_may_change_it_and_no_constant_does() -> None:
    source = (
        "def f(x):\n    rows, total = [], np.pi\n    rows = []\n    rows.append(x)\n    total += x\n    return rows\n"
    )
    watching = Watching(source, {1}, {"np"})
    assert {name: [line for line, value in at if value != -1] for name, at in watching.stores.items()} == {
        "rows": [2, 4],
        "total": [2, 5],
    }


def test_values_are_those_of_each_time_and_can_be_exchanged() -> None:
    watching = Watching("def f(x):\n    return [\n        y * 3\n        for y in x]\n", {1}, ())
    module: dict[str, Any] = {WATCH: (watch := Watch())}
    exec(watching.text, module)
    assert module["f"]([1, 2]) == [3, 6]
    (product,) = (at for at, line in watching.lines.items() if line == 3 and len(watching.parts.get(at, ())) == 1)
    described, numbers = watch.observed()
    assert [product, [2]] in described
    assert numbers.size == sum(math.prod(shape) for _, shape in described)
    assert not Known([np.array([[1.0, 2.0], [30.0, 40.0]])]).holds(np.array([3.0, 6.0]))
    assert Known([np.array([[1.0, 2.0], [30.0, 40.0]])]).holds(np.array([40.0, 30.0]))
    watch.numbers.clear()
    watch.instead = {product: np.array([5.0, 7.0])}
    assert module["f"]([1, 2]) == [5, 7]


@pytest.mark.parametrize(
    ("unknown", "lines"), [((8, 12), {4}), ((9, 11, 12), {3, 4}), ((), {4}), ((0, 1, 3), {4}), ((5, 8, 12), {4})]
)
def test_lines_of_an_expression_are_those_of_what_is_unknown(unknown: tuple[int, ...], lines: set[int]) -> None:
    watching = Watching("def f(x, y):\n    z = x * y\n    z -= y\n    return (x + y) * (z + 1)\n", {1}, ())
    found = [watching.lines_of(expression, unknown, (2, 3, 4)) for expression in (12, 5)]
    assert found == [lines, {3}]


@pytest.mark.long
@pytest.mark.timeout(600)
def test_most_wrong_answers_of_the_corpus_are_marked_rightly() -> None:
    """Wrong answers that were written without a look at the changes that are tried, in several styles."""
    entries = tomllib.loads(CORPUS.read_text(encoding="utf-8"))["wrong"]
    right, wrong = 0, 0
    for name in dict.fromkeys(entry["assignment"] for entry in entries):
        chosen = find_assignment(KIT, name)
        grader = Grader.of(chosen, read_fixtures(chosen, hidden=False))
        with Sandbox() as sandbox:
            for entry in (entry for entry in entries if entry["assignment"] == name):
                submission = Submission("ada", f"{chosen.module}.py", "", entry["text"])
                items = [item for item in chosen.items if item.function == entry["function"]]
                found = fault_lines(grader, submission, grader.grade(submission, sandbox, items).items, sandbox)
                lines = {*found.values()}
                right += bool(lines & {*entry["lines"]})
                wrong += bool(lines) and not lines & {*entry["lines"]}
    assert right >= RIGHT_SHARE * len(entries)
    assert wrong <= WRONG_SHARE * len(entries)


def test_caller_of_what_is_wrong_gets_its_line_and_no_name_of_its_own() -> None:
    chosen = find_assignment(KIT, "policy_gradient_theory")
    submission = Submission("ada", f"{chosen.module}.py", "", CALLER)
    fixtures = read_fixtures(chosen, hidden=False)
    own = tuple(replace(case, params={**case.params, "answered": []}) for case in fixtures.cases)
    grader = Grader.of(chosen, replace(fixtures, cases=own))
    items = [item for item in chosen.items if item.id in ("score-table", "kl-gradients")]
    with Sandbox() as sandbox:
        called, caller = grader.grade(submission, sandbox, items).items
        lines = fault_lines(grader, submission, [called, caller], sandbox)
    assert called.mistakes == ("score-sign",)
    assert (caller.mistakes, caller.hint) == ((), "score-table fails too: start there.")
    assert lines["kl-gradients"] == lines["score-table"]


def failed(**changes: Any) -> ItemResult:
    item = ItemResult("i", "f", "title", 0.0, 1.0, "failed", (), "wrong", "", 0.0, ())
    return replace(item, **changes)


def test_excerpt_shows_the_line_with_two_around_it() -> None:
    submission = Submission("ada", "ada/m.py", "", "import torch\n\n\n" + FUNCTION + "\nx = 1\n")
    assert excerpt(failed(), submission, 9) == [
        "Line 9 of your file:",
        "     7           return centered",
        "     8       spread = x.std(dim=-1, keepdim=True)",
        ">    9       return centered / (spread + 1e-5)",
        "    10",
        "    11   x = 1",
    ]
    assert excerpt(failed(), submission, None) == ["Somewhere in f, lines 4 to 9 of your file."]
    helped = Submission("ada", "f.py", "", "def g(x):\n    return x\ndef f(x):\n    return g(x)")
    helped = replace(helped, functions={"f": helped.functions["f"]})
    assert excerpt(failed(), helped, None) == ["Somewhere in f, lines 3 to 4 of your file, or in what it calls."]
    assert excerpt(failed(verdict="missing"), submission, 9) == []


def test_excerpt_ends_with_its_cell() -> None:
    cells = Submission("ada", "ada/m.ipynb", "", f"# cell 3\n{FUNCTION}\n# cell 5\ny = 1\n", cells=((2, 3), (10, 5)))
    first, *rows = excerpt(failed(), cells, 6)
    assert first == "Line 5 of cell 3 (text cells count):"
    assert [row[:6].rstrip() for row in rows] == ["     3", "     4", ">    5", "     6", "     7"]
    assert excerpt(failed(), cells, None) == ["Somewhere in f, lines 1 to 6 of cell 3 (text cells count)."]
