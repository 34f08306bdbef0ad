"""The build on a toy assignment: what it stores, and what it refuses when just one thing is broken."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest
import toy_kit
from places import KIT

from autograder.authoring.declarations import OPEN_SECRET, generator_for
from autograder.authoring.fixtures.regenerate import Generator, import_generator, regenerate, rounded
from autograder.grading.assignment import Assignment, find_assignment, load_assignment
from autograder.grading.fixtures import Case, read_fixtures
from autograder.sandbox.calls import Observation, Raised, Returned
from autograder.sandbox.sandbox import Sandbox
from autograder.vocabulary.errors import FixtureError

SOLUTION = "import torch\n\n\ndef ramp(x, factor):\n    return factor * x.clamp(min=0)\n"
OF_FLOAT32 = "[1, -1], shape)\n        x = x.astype(np.float32 if '32' in case else np.float64)\n"
WITH_FACT = 'unchanged("x", inputs["x"]), fact("times called", "calls", 1, "…", diagnosis=True)'
EDITS = {  # of the toy, which is left with one item: its hidden case is of float32, one fact is of diagnosis alone
    "items.toml": {"ramp-large": "ramp-float32", toy_kit.ITEMS[toy_kit.ITEMS.rindex("[[item]]") :]: ""},
    "cases.py": {
        '        ("shift-small", "two rows", (2, 3)),\n': "",
        '"ramp-large", "three rows"': '"ramp-float32", "float32 stays float32"',
        "[1, -1], shape)\n": OF_FLOAT32,
        '{"factor": 2.5}': '{"factor": 2.5 if case == "ramp-small" else 1.5}',
        '"float64"), unch': 'inputs["x"].dtype.name), unch',
        'unchanged("x", inputs["x"])': WITH_FACT,
        "import Draft,": "import Draft, fact,",
    },
    "mistakes.py": {
        '    Mistake("wrong-way", "shift", "Which way?", "def shift(x, factor): return x - factor"),\n': "",
        '"not-scaled", "ramp", "Where is the factor?"': '"raises", "ramp", "Does it run?"',
        "return x.clamp(min=0)": "return x + 'one'",
    },
    "probes.py": {
        'student.ramp(inputs["x"], factor=params': 'student.ramp(inputs["x"], params',
        "**inputs}, {}\n\n\ndef s": '**inputs}, {"times called": 1}\n\n\ndef s',
    },
}


class Toy(NamedTuple):
    """A toy assignment in a folder of its own."""

    root: Path
    sandbox: Sandbox

    def change(self, name: str, *edits: tuple[str, str]) -> Toy:
        """Replace text in one of its files; each right text must be there exactly once."""
        for right, wrong in edits:
            toy_kit.change(self.root / ("solution/toy" if name == "toy.py" else "fixtures/toy") / name, right, wrong)
        return self

    @property
    def assignment(self) -> Assignment:
        return load_assignment(self.root / "fixtures/toy")

    def build(self, secret: str = "toy secret") -> Path:
        regenerate(self.assignment, self.root / "built", secret=secret, sandbox=self.sandbox)
        return self.root / "built"

    def cases(self, secret: str = "toy secret") -> dict[str, Case]:
        return {case.id: case for case in read_fixtures(self.assignment, folder=self.build(secret)).cases}

    def refusal(self) -> str:
        """The text of the build's refusal, which must leave the target as it was."""
        with pytest.raises(FixtureError) as refused:
            self.build()
        assert not (self.root / "built").exists()
        return str(refused.value)


def made_in(root: Path, sandbox: Sandbox) -> Toy:
    for name, text in {**toy_kit.TEXTS, "solution/toy/toy.py": SOLUTION}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    toy = Toy(root, sandbox)
    for name, edits in EDITS.items():
        toy.change(name, *edits.items())
    return toy


@pytest.fixture
def toy(tmp_path: Path, sandbox: Sandbox) -> Toy:
    return made_in(tmp_path, sandbox)


# What is stored


def test_the_toy_is_stored_and_read_back(toy: Toy) -> None:
    folder = toy.build()
    stored = read_fixtures(toy.assignment, folder=folder)
    small, single = stored.cases
    assert [(case.id, case.item, case.visibility) for case in stored.cases] == [
        ("ramp-small", "ramp-values", "public"),
        ("ramp-float32", "ramp-values", "hidden"),
    ]
    np.testing.assert_array_equal(small.expected[0].array, 2.5 * np.maximum(small.inputs["x"], 0))
    assert (small.expected[0].dtype, single.expected[0].dtype) == ("float64", "float32")
    assert stored.hints == {"no-kink": "What happens below 0?", "raises": "Does it run?"}
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*")) == [
        "hidden/mistakes.json",
        "hidden/ramp-values.safetensors",
        "items.toml",
        "manifest.json",
        "probes.py",
        "public/ramp-values.safetensors",
    ]


def test_case_stores_only_what_each_mistake_gets_wrong(toy: Toy) -> None:
    case = toy.cases()["ramp-small"]
    wrong = case.mistakes["no-kink"]
    assert isinstance(wrong, Observation)
    assert set(wrong.returned) == {"ramp"}
    assert np.allclose(np.array(wrong.returned["ramp"].array), 2.5 * case.inputs["x"])
    assert case.mistakes["raises"] == Raised(("TypeError", "Exception", "BaseException", "object"), "", None, "")
    above = ("* np.resize([1, -1], shape)", "* np.resize([1, -1], shape) ** (2 if case == 'ramp-small' else 1)")
    assert set(toy.change("cases.py", above).cases()["ramp-small"].mistakes) == {"raises"}  # the other is right there


def test_a_build_leaves_no_case_of_an_earlier_one_behind(toy: Toy) -> None:
    built = toy.build()
    manifest = json.loads((built / "manifest.json").read_text())
    manifest["files"]["hidden/dropped.safetensors"] = "0" * 64
    (built / "manifest.json").write_text(json.dumps(manifest))
    for name in ("dropped", "foreign"):
        (built / f"hidden/{name}.safetensors").write_bytes(b"")
    toy.build()
    assert not (built / "hidden/dropped.safetensors").exists()
    assert (built / "hidden/foreign.safetensors").exists()


# Random numbers


@pytest.mark.parametrize(("secret", "case"), [("one", "b"), ("two", "a"), ("", "one\na")])
def test_numbers_depend_on_the_secret_and_on_the_case(secret: str, case: str) -> None:
    drawn = generator_for("one", "a").random(4)
    assert np.array_equal(drawn, generator_for("one", "a").random(4))
    assert not np.array_equal(drawn, generator_for(secret, case).random(4))


THIRD = '        ("ramp-third", "four rows", (4, 2)),\n'


def test_adding_a_case_changes_no_other_cases_numbers(toy: Toy) -> None:
    before = toy.cases()
    toy.change("items.toml", ('public = ["ramp-small"]', 'public = ["ramp-third", "ramp-small"]'))
    after = toy.change("cases.py", ('        ("ramp-small"', f'{THIRD}        ("ramp-small"')).cases()
    assert set(after) == {*before, "ramp-third"}
    for name, case in before.items():
        assert np.array_equal(case.inputs["x"], after[name].inputs["x"])


# Refusals, each with just one thing broken


SPARE = ('{"x": x}', '{"x": x, "spare": np.array([[1.0, 2.0]])}')
COUNTS = ('{"x": x}', '{"x": x, "counts": np.array([[3, 1, 2]])}')
FAILS = "ramp-small: the solution does not pass its own case: "
IDLE = "does not matter; a wrong use of it would pass."
ONLY_SINGLES = "if factor == 1.5: assert x.dtype == torch.float32, 'only singles'\n    return factor"
NONE_IN_DOUBLES = "if factor == 1.5 and x.dtype == torch.float64: return None\n    return factor"
DRAWS = ("    for case,", '    draw("ramp", {"x": np.ones((2, 3))}, {"factor": "none"})\n    for case,')


@pytest.mark.parametrize(
    ("name", "edit", "refusal"),
    [
        (
            "toy.py",
            ("factor * x", "(1 + 1e-11) * factor * x"),
            r"ramp-small: oracle and solution differ by .* in ramp \(allowed: ",
        ),
        (
            "toy.py",
            ("factor * x", "(1 + 1e-11 * (factor == 1.5)) * factor * x"),
            "ramp-float32: oracle and solution differ by ",
        ),
        ("toy.py", ("x.clamp(min=0)", "x.clamp(min=-1)"), f"{FAILS}values of ramp"),
        ("toy.py", ("return factor", "raise RuntimeError('no ramps')\n    return factor"), f"{FAILS}.*no ramps"),
        ("toy.py", ("import torch", "import torch_of_tomorrow"), f"{FAILS}.*ModuleNotFoundError"),
        ("toy.py", ("return factor", ONLY_SINGLES), "ramp-float32: the solution fails in float64: .*only singles"),
        ("toy.py", ("return factor", NONE_IN_DOUBLES), "ramp-float32: the solution returns no ramp in float64."),
        (
            "probes.py",
            ('"times called": 1', '"times called": 2'),
            f"{FAILS}fact of times called: the oracle says 1, and the solution 2.",
        ),
        ("cases.py", SPARE, f"ramp-small: spare {IDLE}"),
        (
            "cases.py",
            ('{"factor": 2.5 if', '{"settings": {"slack": 0.5, "steps": 3}, "factor": 2.5 if'),
            f"ramp-small: settings.slack {IDLE}",
        ),
        ("cases.py", COUNTS, f"ramp-small: counts {IDLE}"),
        (
            "mistakes.py",
            ('def ramp(x, factor): return factor * x"', 'def ramp(x, factor): return x.relu() * factor"'),
            "No case separates these mistakes from a right answer: no-kink.",
        ),
        (
            "mistakes.py",
            ("return x + 'one'", "__import__('os')._exit(3)"),
            "raises ends the worker in ramp-small: crashed exited with status 3.",
        ),
        ("cases.py", DRAWS, "A case is drawn with the probe ramp, which failed: "),
    ],
)
def test_set_that_could_not_grade_is_refused(toy: Toy, name: str, edit: tuple[str, str], refusal: str) -> None:
    assert re.match(refusal, toy.change(name, edit).refusal())


def test_solution_that_refuses_its_oracles_call_is_told_with_arguments(toy: Toy) -> None:
    asked = 'draw.solution("ramp", small, {"function": "ramp", "arguments": ["x", "factor"], "given": {"factor": "a"}})'
    toy.change("probes.py", ("def ramp(", "from autograder.sandbox.worker.calling import call\n\n\ndef ramp("))
    text = toy.change(
        "cases.py", ("    for case,", f"    small = {{'x': np.ones((2, 3))}}\n    {asked}\n    for case,")
    ).refusal()
    assert text.startswith("A case is drawn with ramp(x, 'a'), which failed: TypeError: ")


def test_a_branch_that_only_another_items_case_takes_is_refused(toy: Toy) -> None:
    items = (toy.root / "fixtures/toy/items.toml").read_text()
    other = items[items.index("[[item]]") :].replace('"ramp-values"', '"ramp-above"')
    other = other.replace('hidden = ["ramp-float32"]', "").replace("ramp-small", "ramp-above")
    toy.change("items.toml", ('hidden = ["ramp-float32"]\n', f'hidden = ["ramp-float32"]\n\n{other}'))
    third = THIRD.replace("ramp-third", "ramp-above")
    squared = ("[1, -1], shape)", "[1, -1], shape) ** (1 + (case == 'ramp-above'))")
    toy.change("cases.py", ('        ("ramp-small"', f'{third}        ("ramp-small"'), squared)
    toy.change("oracle.py", ('{"above", "below"}}', '{"above", "below"}, "ramp-above": {"above", "below"}}'))
    assert toy.refusal() == "ramp-above: no case takes the branch ['below']."


def test_drawing_runs_a_probe_without_student_code(toy: Toy) -> None:
    toy.change(
        "probes.py",
        ("def ramp", "def doubled(student, inputs, params):\n    return {'x': 2 * inputs['x']}, {}\n\n\ndef ramp"),
    )
    asks = ('{"x": x}', '{"x": x + 0 * draw("doubled", {"x": x}, {})["x"].sum()}')
    assert len(toy.change("cases.py", asks).cases()) == 2


# Two assignments in one process


CURVE = """
[[curve]]
id = "climb"
function = "ramp"
title = "a climb"
timeout = 5
"""
SHOWING = """

def curves():
    x = np.array([[-1.0, 0.12345, 2.0]])
    axes = {"height": {"unit": "metres", "most": 6.0}}
    yield Showing("climb", "climb", {"x": x}, {"factor": 2.5}, {"height": "the height"}, axes)
"""
CLIMB = """

def climb(student, inputs, params):
    return {"height": student.ramp(inputs["x"], params["factor"])[0]}, {}
"""


def with_a_curve(toy: Toy) -> Toy:
    toy.change("cases.py", ("import Draft,", "import Draft, Showing,"))
    for name, more in (("items.toml", CURVE), ("cases.py", SHOWING), ("probes.py", CLIMB)):
        with (toy.root / "fixtures" / "toy" / name).open("a") as file:
            file.write(more)
    return toy


def test_a_curve_expects_the_solutions_series_to_three_decimals(toy: Toy) -> None:
    stored = read_fixtures(with_a_curve(toy).assignment, folder=toy.build())
    assert "climb" not in {case.id for case in stored.cases}
    (curve,) = stored.curves
    (height,) = curve.expected
    assert (curve.item, curve.visibility, height.what, height.axes) == ("climb", "public", "the height", ("step",))
    assert height.array is not None
    assert height.array.tolist() == [0.0, 0.309, 5.0]
    assert height.value == {"unit": "metres", "most": 6.0}


@pytest.mark.parametrize(
    ("name", "edit", "said"),
    [
        ("items.toml", ('id = "climb"', 'id = "descent"'), "The curves of items.toml and cases.py differ"),
        ("cases.py", ('{"height": "the', '{"depth": "the'), "climb: the solution has no series depth"),
        ("probes.py", ('params["factor"])[0]', "float('inf'))[0]"), "climb: the solution has no series height"),
    ],
)
def test_a_curve_without_a_reference_is_refused(toy: Toy, name: str, edit: tuple[str, str], said: str) -> None:
    assert said in with_a_curve(toy).change(name, edit).refusal()


def test_each_assignment_is_built_by_its_own_generator(tmp_path: Path, sandbox: Sandbox, toy: Toy) -> None:
    other = made_in(tmp_path / "other", sandbox).change("cases.py", ('"two rows"', '"of the other"'))
    titles = [toys.cases()["ramp-small"].title for toys in (toy, other, toy)]
    assert titles == ["two rows", "of the other", "two rows"]


OWN = "fixtures_of_toy"  # the package that the generator of the toy assignment is imported as


def test_a_build_leaves_what_was_imported_before_in_its_place(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    another = ModuleType("oracle")
    monkeypatch.setitem(sys.modules, "oracle", another)
    (toy.root / "fixtures/toy/kinks.py").write_text("")
    toy.change("mistakes.py", ("from autograder", "from . import kinks\nfrom autograder"))
    before, folders = dict(sys.modules), list(sys.path)
    generator = import_generator(toy.assignment)
    assert generator["cases"].oracle is generator["oracle"]
    assert generator["oracle"] is not another
    assert sys.modules["oracle"] is another
    changed = {name for name in {*before, *sys.modules} if sys.modules.get(name) is not before.get(name)}
    assert {name.partition(".")[0] for name in changed} <= {OWN}
    assert sys.path == folders


# The real assignment


def test_numbers_of_the_lecture_are_the_same_whatever_the_secret(sandbox: Sandbox) -> None:
    drafts = Generator(find_assignment(KIT, "policy_gradient"), sandbox).drafts(OPEN_SECRET)
    assert {name for name, draft in drafts.items() if draft.example} == {
        "reward-distance",
        "reward-inclusion-ordering",
        "deltas-centered-walkthrough",
        "deltas-normalized-walkthrough",
        "deltas-max-walkthrough",
        "baseline-5.323-1.155",
        "loss-naive-walkthrough",
        "clip-table-above-0",
        "clip-table-below-0",
        "frozen-ratio-sigmoid",
        "loop-steps-default",  # whose prompts are the handout's own
    }


@pytest.mark.parametrize("rtol", [1e-6, 1e-9, 1e-12])
def test_mistake_numbers_are_rounded_far_below_the_tolerance(rtol: float) -> None:
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1.75e308]
    given = np.append(np.random.default_rng(0).standard_normal(500), special)
    stored = rounded(Returned("tensor", "Tensor", "float64", given.shape, array=given), rtol).array
    assert stored is not None
    np.testing.assert_allclose(stored, given, rtol=rtol / 100, atol=1e-300)
    assert rtol == 1e-12 or not (stored[:500] == given[:500]).any()
    point = rounded(Returned("tensor", "Tensor", "float64", (), array=np.array(1 / 3)), rtol).array
    assert point is not None
    assert point.shape == ()
