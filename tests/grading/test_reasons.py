"""What a student reads whose mistake has no name: wrong functions that no catalogue holds, graded in a real sandbox."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from all_assignments import fixtures_of
from lengths import in_short
from places import KIT

from autograder.authoring.fixtures.regenerate import solution_source
from autograder.grading.assignment import find_assignment
from autograder.grading.clues import explain
from autograder.grading.fixtures import Case, Expectation
from autograder.grading.grader import Grader
from autograder.sandbox.calls import Array, Observation, Raised, Returned
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.submission import Submission
from autograder.vocabulary.report import ItemResult, Report, Visibility

ASSIGNMENT = find_assignment(KIT, "policy_gradient")
FIXTURES = fixtures_of(ASSIGNMENT.name)
SOLUTION = solution_source(ASSIGNMENT)


@pytest.fixture(scope="module")
def grade(sandbox: Sandbox) -> Callable[[str], Report]:
    grader = Grader.of(ASSIGNMENT, FIXTURES)

    @cache
    def grade_once(change: str) -> Report:
        source = f"{SOLUTION}\n\n{change}"
        return grader.grade(Submission("ada", "ada/policy_gradient.py", "0" * 64, source, "", ""), sandbox)

    return grade_once


class Unheard(NamedTuple):
    """A wrong function that the catalogue does not hold.

    reasons   what the messages of some items end with
    kind      what every reason holds that is told of any item
    """

    name: str
    source: str
    reasons: dict[str, str]
    kind: str


def around(function: str, body: str) -> str:
    """The function redefined, with the right one at hand as `right`."""
    signature = {
        "compute_reward": "prompts, responses, reward_fn",
        "compute_deltas": "rewards, mode",
        "compute_log_probs": "prompts, responses, model",
        "compute_loss": "log_probs, deltas, mode, old_log_probs=None, epsilon=0.2",
        "compute_kl_penalty": "log_probs, ref_log_probs",
    }[function]
    arguments = re.sub(r"=[^,]+", "", signature)
    out = f"    out = right({arguments})\n"
    return f"right = {function}\ndef {function}({signature}):\n{out}    return {body}\n"


ALONG_AMOUNT = "Along trial, all your values are off by the same amount. What is added or subtracted there?"
SUM = "Is there a sum where a mean should be?"

UNHEARD = (
    Unheard(
        "a reward multiplied by 10",
        around("compute_reward", "out * 10"),
        {
            "reward-values": "Each of your values is 10 times what it should be.",
            "reward-contract": "Each of your values is 10 times what it should be.",
        },
        "times what it should be",
    ),
    Unheard(
        "a bonus for every response",
        around("compute_reward", "out + 40.0"),
        {"reward-values": "Each of your values is 40 too large."},
        "too large|by the same amount",
    ),
    Unheard(
        "deltas reshaped where they should be transposed",
        around("compute_deltas", "out.T.reshape(out.shape)"),
        {
            "deltas-rewards": (
                "Your values are the expected ones in another order: reshaping does not interchange trial and batch."
            ),
            "deltas-centered": (
                "Your values are the expected ones in another order: reshaping does not interchange trial and batch."
            ),
        },
        "reshaping",
    ),
    Unheard(
        "a baseline at the middle of the range",
        "right = compute_deltas\ndef compute_deltas(rewards, mode):\n"
        "    middle = (rewards.amax(-1, keepdim=True) + rewards.amin(-1, keepdim=True)) / 2\n"
        "    return rewards - middle if mode == 'centered_rewards' else right(rewards, mode)\n",
        {"deltas-centered": ALONG_AMOUNT},
        "by the same amount",
    ),
    Unheard(
        "a mean absolute deviation for the spread",
        "right = compute_deltas\ndef compute_deltas(rewards, mode):\n"
        "    centered = rewards - rewards.mean(-1, keepdim=True)\n"
        "    spread = centered.abs().mean(-1, keepdim=True)\n"
        "    return centered / (spread + 1e-5) if mode == 'normalized_rewards' else right(rewards, mode)\n",
        {"deltas-normalized": "Along trial, all your values are off by the same factor. What are they divided by?"},
        "by the same factor",
    ),
    Unheard(
        "log-probs divided by the number of positions",
        around("compute_log_probs", "out / out.shape[-1]"),
        {
            "log-probs-values": (
                "Each of your values is the expected one divided by the size of pos. "
                "Is something divided by once too often?"
            )
        },
        "divided by the size of pos|of pos over",
    ),
    Unheard(
        "a loss times 2",
        around("compute_loss", "2 * out"),
        dict.fromkeys(("loss-naive", "loss-unclipped", "loss-clipped"), "Your value is 2 times what it should be."),
        "times what it should be",
    ),
    Unheard(
        "a loss summed over positions and prompts",
        around("compute_loss", "out * log_probs.shape[0] * log_probs.shape[2]"),
        {"loss-clipped": f"Your value is the expected one times the sizes of batch and pos. {SUM}"},
        "times the sizes? of (batch and )?pos",  # in the clipping table batch has size 1
    ),
    Unheard(
        "a right value whose gradient is 3 times too large",
        around("compute_loss", "3 * out - 2 * out.detach()"),
        {"loss-naive": "Each entry of your gradient is 3 times what it should be."},
        "times what it should be",
    ),
    Unheard(
        "a penalty divided by responses and positions",
        around("compute_kl_penalty", "out / (log_probs.shape[1] * log_probs.shape[2])"),
        {
            "kl-values": (
                "Your value is the expected one divided by the sizes of trial and pos. "
                "Is something divided by once too often?"
            )
        },
        "divided by the sizes of trial and pos",
    ),
    Unheard(
        "noise",
        around("compute_log_probs", "out * (1 + 0.3 * torch.rand(out.shape, dtype=out.dtype))"),
        {"log-probs-values": "", "log-probs-shapes": "", "log-probs-gradient": ""},
        "nothing",
    ),
)


def lost(report: Report) -> list[ItemResult]:
    return [item for item in report.items if item.points != item.max_points]


REASON = re.compile(r"(Each |Yours? |All your |Along |Only values |None  |The values are right)")


def reason(message: str) -> str:
    """The line of a message that says what can be seen; "" where there is none."""
    found = [line for line in message.splitlines() if REASON.match(line)]
    assert len(found) <= 1, message
    return found[0] if found else ""


@pytest.mark.parametrize("unheard", in_short(UNHEARD, 4), ids=lambda unheard: unheard.name)
def test_a_mistake_without_a_name_gets_its_reason(unheard: Unheard, grade: Callable[[str], Report]) -> None:
    items = {item.item: item for item in lost(grade(unheard.source))}
    assert {item: reason(items[item].message) for item in unheard.reasons} == unheard.reasons
    assert {items[item].mistakes for item in unheard.reasons} == {()}


def test_a_reason_stands_in_the_first_failing_case_alone(grade: Callable[[str], Report]) -> None:
    (item,) = [item for item in lost(grade(UNHEARD[0].source)) if item.item == "reward-values"]
    first, *others = item.cases
    assert item.message == first.message
    assert reason(first.message) == UNHEARD[0].reasons["reward-values"]
    assert {reason(case.message) for case in others} == {""}


# Cases made up


def case(wanted: Array, number: int = 1, visibility: Visibility = "public", **mistakes: Array | Raised) -> Case:
    axes = ("batch", "trial", "pos")[: wanted.ndim]
    expected = (Expectation("value", "out", "the output", axes, "float64", 1e-6, 1e-8, array=wanted),)
    calls = Expectation("fact", "calls", "the calls", value=1, message="calls")
    known = {slug: one if isinstance(one, Raised) else seen(one) for slug, one in mistakes.items()}
    return Case(f"c{number}", "item", "f", "a case", visibility, "probe", {}, {}, (*expected, calls), known)


def seen(out: Array, calls: int = 1) -> Observation:
    return Observation({"out": Returned("tensor", "Tensor", out.dtype.name, out.shape, False, out)}, {"calls": calls})


def drawn(shape: tuple[int, ...], number: int) -> Array:
    return np.random.default_rng(number).normal(size=shape)


FIRST, SECOND = drawn((2, 5), 1), drawn((3, 4), 2)


def test_of_an_item_that_fails_in_hidden_cases_first_nothing_is_explained() -> None:
    hidden = [(case(FIRST, 1, "hidden"), seen(7.5 * FIRST)), (case(SECOND, 2), seen(7.5 * SECOND))]
    assert explain(hidden) == ""
    assert explain(hidden[::-1]) == "Each of your values is 7.5 times what it should be."


def test_a_case_that_fails_for_another_cause_withdraws_it() -> None:
    one = (case(FIRST), seen(-FIRST))
    assert explain([one, (case(SECOND, 2), seen(SECOND, calls=2))]) == ""
    assert explain([one, (case(SECOND, 2), seen(-SECOND, calls=2))]) != ""


def test_a_case_in_which_nothing_can_be_seen_has_no_say_unless_most_are_so() -> None:
    one, dim = (case(FIRST), seen(-FIRST)), (case(SECOND, 2), seen(drawn(SECOND.shape, 5)))
    assert explain([one, dim]) == explain([one]) != ""
    assert explain([one, dim, dim]) == ""
