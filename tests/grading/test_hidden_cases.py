"""What a report says of hidden cases: two submissions that try to say different things about one get the same words."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from all_assignments import fixtures_of
from places import KIT

from autograder.authoring.fixtures.regenerate import solution_source
from autograder.grading.assignment import find_assignment
from autograder.grading.fixtures import Case
from autograder.grading.grader import Grader
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.submission import Submission
from autograder.vocabulary.report import ItemResult

ASSIGNMENT = find_assignment(KIT, "policy_gradient")
FIXTURES = fixtures_of(ASSIGNMENT.name)
SOLUTION = solution_source(ASSIGNMENT)
FUNCTION = "compute_deltas"
ITEMS = tuple(item for item in ASSIGNMENT.items if item.function == FUNCTION)

CHANNELS = {
    "the text of an exception": "raise ValueError(str(bit))",
    "a type with a name of its own": "raise type(f'Bit{bit}', (Exception,), {})",
    "the line of an exception": "exec(compile('\\n' * (7 + 100 * bit) + 'raise ValueError', '<submission>', 'exec'))",
    "the status of a process that ends": "__import__('os')._exit(3 + bit)",
    "how many values differ": "out.view(-1)[: 1 + bit] += 1",
    "which values differ": "out.view(-1)[bit] += 1",
    "almost right, or not": "out *= 1 + (1e-4, 1.0)[bit] * (mode == 'centered_rewards')",
    "a sign or a factor": "out *= (-1, 5)[bit]",
    "what is not finite": "out += (float('nan'), 1.0)[bit]",
    "a size": "out = torch.zeros(1234 + bit, dtype=out.dtype)",
    "a type": "out = (3, 'three')[bit]",
}


def saying(channel: str, bit: int) -> str:
    """A right submission, but for inputs that no public case has: there it says a bit about them."""
    public = [case.inputs["rewards"] for case in FIXTURES.cases if case.function == FUNCTION and is_public(case)]
    known = sorted({(*array.shape, round(float(array.astype("float64").sum()), 3)) for array in public})
    return f"""{SOLUTION}

right = {FUNCTION}
KNOWN = {known}

def {FUNCTION}(rewards, mode):
    bit = {bit}
    out = right(rewards, mode)
    if (*rewards.shape, round(float(rewards.double().sum()), 3)) in KNOWN:
        return out
    out = out.clone()
    {channel}
    return out
"""


def is_public(case: Case) -> bool:
    return case.visibility == "public"


@pytest.fixture(scope="module")
def told(sandbox: Sandbox) -> Callable[[str, int], tuple[ItemResult, ...]]:
    grader = Grader.of(ASSIGNMENT, FIXTURES, counterexamples=False)  # whose inputs are no hidden ones: see below

    def grade(channel: str, bit: int) -> tuple[ItemResult, ...]:
        source = saying(channel, bit)
        report = grader.grade(Submission("ada", "ada/policy_gradient.py", "0" * 64, source), sandbox, ITEMS)
        return tuple(replace(item, seconds=0.0) for item in report.items)

    return grade


@pytest.mark.parametrize("channel", CHANNELS.values(), ids=CHANNELS.keys())
def test_hidden_input_cannot_be_told_by_feedback(
    channel: str, told: Callable[[str, int], tuple[ItemResult, ...]]
) -> None:
    nothing, something = told(channel, 0), told(channel, 1)
    assert nothing == something
    failed = [case for item in nothing for case in item.cases if case.verdict != "passed"]
    assert len(failed) > 1
    assert {case.visibility for case in failed} == {"hidden"}


AGAIN = """
import os, time

if time.time() > {until}:
    raise RuntimeError(f"it is {{time.time()}}")
right = compute_deltas

def compute_deltas(rewards, mode):
    if rewards.shape in PUBLIC:
        return right(rewards, mode)
    time.sleep(max(0.0, {until} + {bit} - time.time()))
    os._exit(1)
"""


def test_second_import_tells_nothing_of_hidden_case(sandbox: Sandbox) -> None:
    """What hidden cases were asked could be told by when their process ends: the next one reads the clock."""
    shapes = {
        tuple(case.inputs["rewards"].shape) for case in FIXTURES.cases if "rewards" in case.inputs and is_public(case)
    }
    grader = Grader.of(ASSIGNMENT, FIXTURES, counterexamples=False)
    items = [item for item in ITEMS if item.id in ("deltas-max", "deltas-centered")]
    grader.grade(Submission("ada", "", "0" * 64, SOLUTION), sandbox, items)  # after which all is warm
    told = []
    for bit in (0.0, 0.4):
        source = f"{SOLUTION}\n\nPUBLIC = {shapes}\n{AGAIN.format(until=time.time() + 2, bit=bit)}"
        report = grader.grade(Submission("ada", "", "0" * 64, source), sandbox, items)
        told.append((report.cause, tuple(replace(item, seconds=0.0) for item in report.items)))
    assert told[0] == told[1]
    assert "could not be imported again" in told[0][0]


REMEMBERS = """
import os

right, SEEN = compute_deltas, []

def remembered():
    found = list(map(float, os.environ.get("SEEN", "0").split()))
    try:
        found += map(float, open("/tmp/seen-by-student-code").read().split())
    except OSError:
        pass
    return sum(SEEN) + sum(found)

def remember(number):
    SEEN.append(number)
    os.environ["SEEN"] = os.environ.get("SEEN", "0") + f" {number}"
    try:
        with open("/tmp/seen-by-student-code", "a") as file:
            file.write(f" {number}")
    except OSError:
        pass

def compute_deltas(rewards, mode):
    before = remembered()
    remember(float(rewards.double().sum()))
    return right(rewards, mode) + (0 if rewards.shape in PUBLIC else before + 1)
"""


def test_nothing_that_was_seen_of_hidden_case_is_in_counterexample(sandbox: Sandbox) -> None:
    """It is looked for in a process of its own: two sets whose hidden inputs differ give the same one."""
    shapes = {
        tuple(case.inputs["rewards"].shape) for case in FIXTURES.cases if case.item == "deltas-max" and is_public(case)
    }
    source = f"{SOLUTION}\n\nPUBLIC = {shapes}\n{REMEMBERS}"
    texts = []
    for factor in (1.0, -3.0):
        cases = [
            case if is_public(case) else replace(case, inputs={n: factor * array for n, array in case.inputs.items()})
            for case in FIXTURES.cases
        ]
        grader = Grader.of(ASSIGNMENT, replace(FIXTURES, cases=tuple(cases)))
        items = [item for item in ITEMS if item.id == "deltas-max"]
        (item,) = grader.grade(Submission("ada", "", "0" * 64, source), sandbox, items).items
        assert item.fails_unseen
        texts.append(item.counterexample)
    assert texts[0] == texts[1]
    assert texts[0]
