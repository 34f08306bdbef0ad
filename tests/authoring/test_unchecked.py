"""Refusals that come without a check: what selfcheck says of cases that NumPy or torch refuse by themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
import toy_kit
from toy_kit import change, regenerate_into, toy_assignment

from autograder.authoring.exam.selfcheck import Exam, selfcheck, unchecked
from autograder.grading.fixtures import read_fixtures

CHECK = """\
if not np.all(np.isfinite(factor)) or np.any(np.greater(factor, 9)):
        raise ValueError(f"no factor: {factor}")
    x = x + torch.tensor(np.zeros((2, 3)) * factor).sum()
"""
ITEM = """
[[item]]
id = "shift-errors"
function = "shift"
title = "factors that make no sense"
points = 2
timeout = 5
hint = "Which are they?"
public = ["shift-refused"]
hidden = ["shift-refused-other"]
"""
DRAFTS = """
    for case, factor in (("shift-refused", {}), ("shift-refused-other", {})):
        params = {{"function": "shift", "arguments": ["x", "factor"], "values": "torch", "returns": []}}
        params |= {{"given": {{"factor": 2.0}}, "raises": {{"refused": {{"factor": factor}}}}}}
        told = [error("refused", "shift", "ValueError")]
        inputs = {{"x": np.array([[1.0]])}}
        yield Draft(case, f"factor {{factor}}", "call", inputs, lambda *given: told, params, free=("x", "factor"))
"""


@pytest.fixture
def kit(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_kit.toy_kit(tmp_path / "kit", tmp_path_factory)


def refusing(kit: Path, first: object, second: object) -> Exam:
    """The exam of a toy whose `shift` refuses factors above 9, in cases with these two."""
    toy = kit / "fixtures" / "toy"
    change(kit / "solution" / "toy" / "toy.py", "return torch.add(", f"{CHECK}    return torch.add(")
    change(toy / "items.toml", "points = 4", "points = 2")
    for path, more in (
        (toy / "items.toml", ITEM),
        (toy / "cases.py", DRAFTS.format(first, second)),
        (toy / "probes.py", "\n\nfrom autograder.sandbox.worker.calling import call\n"),
    ):
        path.write_text(path.read_text() + more)
    change(kit / "solution" / "toy" / "toy.py", "import torch\n", "import numpy as np\nimport torch\n")
    change(
        toy / "cases.py",
        "import numpy as np\n",
        "import numpy as np\nfrom autograder.authoring.declarations import error\n",
    )
    regenerate_into(toy, toy)
    return selfcheck(toy_assignment(kit), read_fixtures(toy_assignment(kit)))


def about_checks(told: tuple[str, ...]) -> list[str]:
    return [line for line in told if "no check" in line]


def test_the_checks_are_taken_out_and_exceptions_raised_again_stay() -> None:
    text = "def f(x):\n    if not x:\n        raise ValueError(x)\n    try:\n        g(x)\n    except E:\n        raise"
    assert unchecked(text) == text.replace("raise ValueError(x)", "pass")


@pytest.mark.long
@pytest.mark.parametrize(
    ("factors", "notes", "complaints"),
    [
        ((10.0, 11.0), [], []),
        (
            (10.0, [10.0, 10.0]),
            ["shift-refused-other asks for no check: without one, what the solution calls refuses the same."],
            [],
        ),
        (
            ([10.0] * 4, [10.0, 10.0]),
            [],
            [
                "shift-errors asks for no check: the solution without a single `raise` earns it all, since what it "
                "calls refuses the same."
            ],
        ),
    ],
)
def test_refusals_by_numpy_itself_are_told_with_remedy(
    kit: Path, factors: tuple[object, object], notes: list[str], complaints: list[str]
) -> None:
    exam = refusing(kit, *factors)
    remedy = "Let it be called with what nothing refuses where nothing is checked."
    assert about_checks(exam.notes) == [f"{line} {remedy}" for line in notes]
    assert about_checks(exam.complaints) == [f"{line} {remedy}" for line in complaints]
