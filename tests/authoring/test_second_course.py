"""A course that is none of ours goes through a term: made by `new`, edited as an instructor would, graded twice."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from in_process import autograder_in_process as run

from autograder.vocabulary.report import Report, read_report

TEXTS = '''\
def is_palindrome(text: str) -> bool:
    """Return whether a text reads the same backwards, spaces aside."""
    letters = text.replace(" ", "")
    return letters == letters[::-1]


def sort_by_length(words: list[str]) -> None:
    """Sort the words in place by their lengths; words of one length stay in order."""
    words.sort(key=len)
'''
SIGNALS = '''\
import numpy as np


def moving_average(signal, window=3):
    """Return the mean of each stretch of `window` neighbours.

    signal   float[step]
    """
    sums = np.cumsum(np.concatenate([[0.0], signal]))
    return (sums[window:] - sums[:-window]) / window


def centre_in_place(signals):
    """Subtract from each row its mean, in place.

    signals   float[row step]
    """
    signals -= signals.mean(axis=1, keepdims=True)
'''
OPTIMISERS = '''\
import torch


class Momentum:
    """Steps of gradient descent with momentum."""

    def __init__(self, parameter, rate, decay):
        self.parameter, self.rate, self.decay = parameter, rate, decay
        ### BEGIN SOLUTION
        self.velocity = torch.zeros_like(parameter)
        ### END SOLUTION

    def step(self, gradient):
        """Move the parameter in place: velocity = decay * velocity + gradient, parameter -= rate * velocity."""
        ### BEGIN SOLUTION
        self.velocity = self.decay * self.velocity + gradient
        self.parameter -= self.rate * self.velocity
        ### END SOLUTION


def squared_norm(x):
    """Return the sum of squares of each row.

    x   float[row column]
    """
    return (x * x).sum(dim=1)
'''
ORACLES = {
    "texts": """\
def is_palindrome(text):
    letters = [letter for letter in text if letter != " "]
    return all(letter == letters[-1 - place] for place, letter in enumerate(letters))


def sort_by_length(words):
    ranked = sorted((len(word), place) for place, word in enumerate(words))
    return {"words afterwards": [words[place] for _, place in ranked]}
""",
    "signals": """\
import math

import numpy as np


def moving_average(signal, window=3):
    return np.array([math.fsum(signal[k : k + window]) / window for k in range(len(signal) - window + 1)])


def centre_in_place(signals):
    return np.array([[value - math.fsum(row) / len(row) for value in row] for row in signals.tolist()])
""",
    "optimisers": """\
import numpy as np


def squared_norm(x):
    return np.array([sum(value**2 for value in row) for row in x.tolist()])


def squared_norm_gradient(x):
    return 2 * x


def Momentum(parameter, gradients, rate, decay):
    moved = [gradients[: n + 1] * decay ** np.arange(n, -1, -1)[:, None] for n in range(len(gradients))]
    return parameter - rate * sum(each.sum(axis=0) for each in moved)
""",
}
DRIVER = """\
from autograder.sandbox.worker.calling import again, call, driver


@driver
def steps(student, parameter, gradients, rate, decay):
    parameter = parameter.clone()
    optimiser = student.Momentum(parameter, rate, decay)
    for gradient in gradients:
        optimiser.step(gradient)
    return parameter
"""
DECLARED = """\
    Function(
        "Momentum",
        {"parameter": "float[entry]", "gradients": "float[step entry]", "rate": "float", "decay": "float"},
        "float[entry]",
        sizes={"step": (1, 4, 6), "entry": (1, 3, 5)},
        draws={
            "usual": lambda rng, step, entry: {
                "parameter": rng.uniform(-1, 1, entry), "gradients": rng.uniform(-1, 1, (step, entry)),
                "rate": 0.25, "decay": 0.5,
            }
        },
        driver="steps",
    ),
)
"""
ITEM = """
[[item]]
id = "momentum-steps"
function = "Momentum"
title = "where several steps lead"
points = 50
hint = "What does the velocity hold after the first step?"
laws = ["values", "sizes", "state", "unmodified"]
"""
COURSE = {  # assignment → its solution, and what of it a wrong answer has otherwise
    "texts": (TEXTS, ('.replace(" ", "")', "")),
    "signals": (SIGNALS, ("axis=1", "axis=0")),
    "optimisers": (OPTIMISERS, ("self.decay * self.velocity + gradient", "gradient")),
}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The course as its instructor has it before the first term: made, edited, its fixtures stored."""
    root = tmp_path_factory.mktemp("course")
    for name, (solution, _) in COURSE.items():
        (root / "mine.py").write_text(solution)
        assert run(root, "new", name, "--from", "mine.py").returncode == 0
        (root / "fixtures" / name / "oracle.py").write_text(ORACLES[name])
    folder = root / "fixtures" / "optimisers"
    (folder / "probes.py").write_text(DRIVER)
    declared = (folder / "functions.py").read_text()
    (folder / "functions.py").write_text(declared.removesuffix(")\n") + DECLARED)
    items = (folder / "items.toml").read_text().replace("points = 100", "points = 150")
    (folder / "items.toml").write_text(items + ITEM)
    assert "NOT INDEPENDENT" not in run(root, "fixtures", "regenerate").stdout
    return root


def graded(course: Path, name: str, *options: str | Path) -> list[Report]:
    """Grade the solution, the untouched handout and the wrong answer."""
    solution, (right, wrong) = (course / "solution" / name / f"{name}.py").read_text(), COURSE[name][1]
    handed_out = (course / "handout" / name / f"{name}.py").read_text()
    assert solution.count(right) == 1
    for student, text in {"ada": solution, "bela": handed_out, "chidi": solution.replace(right, wrong)}.items():
        (course / name / student).mkdir(parents=True, exist_ok=True)
        (course / name / student / f"{name}.py").write_text(text)
    out = course / f"grades-{name}-{len(options)}"
    assert run(course, "grade", name, "--assignment", name, "--out", out, "--jobs", "1", *options).returncode == 0
    reports = [read_report(out / "reports" / f"{student}.json") for student in ("ada", "bela", "chidi")]
    return [report for report in reports if report is not None]


@pytest.mark.long
@pytest.mark.parametrize("name", COURSE)
def test_assignment_of_another_course_goes_through_a_term(name: str, course: Path) -> None:
    assert run(course, "release", "--assignment", name).returncode == 0
    asked = re.findall(r"^[a-z-]+", (course / "handout" / name / "requirements.txt").read_text(), re.MULTILINE)
    assert {*asked} - {"torch"} == {"numpy", "safetensors", "pytest", "pytest-timeout"}  # what the kit needs itself
    assert ("torch" in asked) == (name == "optimisers")
    secret, term = course.parent / "secret", course.parent / f"spring-{name}"
    secret.write_text("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
    own = ("--term", "2027-spring", "--secret-file", secret, "--out", term, "--assignment", name)
    assert run(course, "fixtures", "regenerate", *own).returncode == 0
    for options in ((), ("--fixtures", term)):
        ada, bela, chidi = graded(course, name, *options)
        assert ada.points == ada.max_points, [item.message for item in ada.items if item.verdict != "passed"]
        assert bela.points == 0
        assert 0 < (chidi.points or 0) < ada.max_points
        assert all(item.message for item in chidi.items if item.verdict != "passed")
