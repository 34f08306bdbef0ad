"""What can be seen in wrong arrays: one change each, nothing in noise, and what the weights of a run tell."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from all_assignments import fixtures_of
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from places import KIT

from autograder.authoring.fixtures.regenerate import solution_source
from autograder.grading.assignment import find_assignment
from autograder.grading.clues import Wrong, about_updates, describe, explain
from autograder.grading.fixtures import Case, Expectation
from autograder.grading.grader import Grader
from autograder.sandbox.calls import Array, Observation, Returned
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.submission import Submission
from autograder.vocabulary.report import Visibility

AXES = ("batch", "trial", "pos")
FEW = settings(max_examples=15, deadline=None)


def drawn(shape: tuple[int, ...], seed: int) -> Array:
    """Values of both signs, none near 0, no two alike."""
    rng = np.random.default_rng(seed)
    return rng.uniform(0.5, 3.0, shape) * rng.permutation(np.resize([1, -1], int(np.prod(shape)))).reshape(shape)


def expected(array: Array, **more: Any) -> Expectation:
    plain = Expectation("value", "out", "the output", AXES[: array.ndim], "float64", 1e-6, 1e-8, array=array)
    return replace(plain, **more)


def wrongs(*pairs: tuple[Array, Any], **more: Any) -> list[Wrong]:
    return [
        Wrong(expected(wanted, **more), np.asarray(out), dict(zip(AXES, wanted.shape, strict=False)))
        for wanted, out in pairs
    ]


SHAPES = st.sampled_from([(7,), (2, 5), (3, 4), (5, 2), (2, 5, 3), (4, 3, 2)])
ARRAYS = st.builds(drawn, SHAPES, st.integers(0, 10**6))
TABLES = st.builds(drawn, SHAPES.filter(lambda shape: len(shape) > 1), st.integers(0, 10**6))
EACH = "Each of your values"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda x: -x, f"{EACH} has the right size and the wrong sign."),
        (lambda x: 0.7 * x, f"{EACH} is 0.7 times what it should be."),
        (lambda x: -1e6 * x, f"{EACH} is -1e+06 times what it should be."),
        (lambda x: x + 0.25, f"{EACH} is 0.25 too large."),
        (lambda x: x - 3.0, f"{EACH} is 3 too small."),
        (np.zeros_like, "All your values are zero."),
        (lambda x: np.full_like(x, 0.3), "All your values are the same, but they should not be."),
        (lambda x: x[None], ""),  # the message says the shape
        (np.exp, ""),
    ],
)
@given(wanted=ARRAYS)
@FEW
def test_one_change_of_all_values_is_seen(change: Any, sentence: str, wanted: Array) -> None:
    assert describe(wrongs((wanted, change(wanted)))) == sentence


@given(TABLES)
@FEW
def test_order_of_another_shape_is_seen(wanted: Array) -> None:
    swapped = np.swapaxes(wanted, 0, 1)
    for reshaped in (swapped.reshape(wanted.shape), np.swapaxes(wanted.reshape(swapped.shape), 0, 1)):
        assert "reshaping does not interchange" in describe(wrongs((wanted, reshaped)))


def test_interchanged_axes_of_one_size_are_seen() -> None:
    wanted = drawn((3, 3, 2), 0)
    sentence = "Your values are the expected ones with trial and batch interchanged."
    assert describe(wrongs((wanted, wanted.transpose(1, 0, 2)))) == sentence


def test_kind_of_values_that_alone_are_wrong_is_named() -> None:
    wanted = drawn((4, 6), 2)
    wanted[1, :3] = 0
    noise = np.random.default_rng(0).normal(size=wanted.shape)
    for where, name in ((wanted == 0, "zero"), (wanted < 0, "negative"), (wanted > 0, "positive")):
        out = np.where(where, wanted + noise, wanted)
        assert describe(wrongs((wanted, out))) == f"Only values that should be {name} are wrong."
    clipped = "Only values that should be negative are wrong: yours are zero there."
    assert describe(wrongs((wanted, np.maximum(wanted, 0)))) == clipped
    holes = "Yours is not a finite number only where it should be zero."
    assert describe(wrongs((wanted, np.where(wanted == 0, np.inf, wanted)))) == holes
    actions = np.array([0, 2, 1, 0, 0, 1, 3, 0, 0, 2])
    assert describe(wrongs((actions, np.where(actions == 0, 2, actions)))) == ""  # indices have no kind


def test_noise_is_never_described() -> None:
    rng = np.random.default_rng(20)
    shapes = [(), (3,), (6,), (2, 5), (3, 4), (1, 5), (2, 2), (4, 4), (2, 5, 3), (3, 3, 3)]
    for trial in range(2_000):
        shape = shapes[trial % len(shapes)]
        wanted, out = rng.normal(size=shape), rng.normal(size=shape)
        if trial % 4 == 1:  # half of it right
            out = np.where(rng.random(shape) < 0.5, wanted, out)
        if trial % 4 == 2:  # rewards are multiples of a quarter
            wanted, out = np.round(wanted * 8) / 4, np.round(out * 8) / 4
        assert describe(wrongs((wanted, out))) == "", (trial, wanted, out)


@given(
    hnp.arrays(
        hnp.floating_dtypes() | hnp.integer_dtypes() | hnp.boolean_dtypes(), hnp.array_shapes(min_dims=0, max_dims=4)
    ),
    hnp.arrays(np.float64, hnp.array_shapes(min_dims=0, max_dims=4)),
)
@settings(max_examples=150, deadline=None)
def test_any_answer_to_any_question_is_taken(out: Array, wanted: Array) -> None:
    assert len(describe(wrongs((wanted, out)))) < 300
    assert len(describe(wrongs((wanted, np.resize(out, wanted.shape))))) < 300


# Several cases

FIRST, SECOND = drawn((2, 5), 1), drawn((3, 4), 2)


@pytest.mark.parametrize(
    ("first", "second", "sentence"),
    [
        (-FIRST, SECOND + 1, ""),
        (FIRST * 5, SECOND * 4, f"{EACH} is the expected one times the size of trial. Is there a sum where a mean"),
        (FIRST / 2, SECOND / 3, f"{EACH} is the expected one divided by the size of batch. Is something divided by"),
        (FIRST * 5, SECOND * 5, f"{EACH} is 5 times what it should be."),
        (FIRST * 5, SECOND * 7.3, "All your values are off by the same factor."),
        (FIRST + 5, SECOND + 7.3, "All your values are off by the same amount."),
    ],
)
def test_clue_must_hold_in_every_case(first: Array, second: Array, sentence: str) -> None:
    text = describe(wrongs((FIRST, first), (SECOND, second)))
    assert text.startswith(sentence) if sentence else text == ""


def test_one_scalar_is_no_evidence_two_that_agree_are() -> None:
    one = Wrong(expected(np.array(1.7001234)), np.array(1.7001234 * 5), {"batch": 2, "trial": 5})
    other = Wrong(expected(np.array(-0.8301234)), np.array(-0.8301234 * 3), {"batch": 4, "trial": 3})
    assert describe([one]) == ""
    assert describe([one, other]).startswith("Your value is the expected one times the size of trial.")


@pytest.mark.parametrize(("factor", "is_told"), [(2, True), (1, False), (3, False)])
def test_gradient_bears_out_factor_of_one_scalar(factor: float, is_told: bool) -> None:
    slope = drawn((2, 5), 3)
    more = ((expected(slope, kind="gradient"), factor * slope),)
    wrong = Wrong(expected(np.array(1.7001234)), np.array(3.4002468), more=more)
    assert bool(describe([wrong])) == is_told


def case(wanted: Array, visibility: Visibility = "public") -> Case:
    calls = Expectation("fact", "calls", "the calls", value=1, message="calls")
    return Case("c", "item", "f", "a case", visibility, "probe", {}, {}, (expected(wanted), calls), {})


def seen(out: Array, calls: int = 1) -> Observation:
    return Observation({"out": Returned("tensor", "Tensor", out.dtype.name, out.shape, False, out)}, {"calls": calls})


def test_only_failing_cases_that_show_something_have_say() -> None:
    one, dim = (case(FIRST), seen(-FIRST)), (case(SECOND), seen(drawn(SECOND.shape, 5)))
    assert explain([one]) == explain([one, dim]) == f"{EACH} has the right size and the wrong sign."
    assert explain([one, dim, dim]) == ""
    assert explain([one, (case(SECOND), seen(SECOND, calls=2))]) == ""  # fails for another cause
    assert explain([one, (case(SECOND), seen(-SECOND, calls=2))]) == explain([one])
    assert explain([(case(FIRST, "hidden"), seen(-FIRST)), one]) == ""


# The weights of a run

DUE = np.array([1.0, -2.0, 3.0, -4.0, 5.0, -6.0, 7.0, -8.0, 9.0])
PATH = np.array([0 * DUE, DUE, 2 * DUE, 3 * DUE])
FOLLOWED = expected(PATH, name="weights before and after", axes=("update", "sum"), diagnosis=True)
LOSSES = expected(np.array([0.5, 0.25, 0.125]), name="losses of updates", axes=("update",), diagnosis=True)


def told_of_run(yours: Array, losses: Array | None) -> str:
    run = replace(case(DUE), expected=(FOLLOWED, LOSSES))
    arrays = {"weights before and after": yours, **({} if losses is None else {"losses of updates": losses})}
    tensors = {
        name: Returned("tensor", "Tensor", "float64", array.shape, False, array) for name, array in arrays.items()
    }
    return about_updates(run, Observation(tensors, {}))


def off_since(update: int, by: Array) -> Array:
    return np.array([weights + by * (number >= update) for number, weights in enumerate(PATH)])


RIGHT, WRONG = LOSSES.array, np.array([0.5, 9.0, 9.0])


@pytest.mark.parametrize(
    ("yours", "losses", "sentence"),
    [
        (off_since(3, DUE), None, "The weights are wrong from update 3 on."),
        (off_since(0, DUE), RIGHT, "The weights differ before the first update."),
        (off_since(3, DUE), WRONG, "on. The loss of update 2 is wrong: look at what it is made of."),
        (off_since(2, -0.75 * DUE), RIGHT, "right, and all weights move 0.25 times as far as they should."),
        (off_since(2, np.abs(DUE)), RIGHT, "right: look at what becomes of its gradient, and at the optimizer."),
        (PATH, RIGHT, "The weights that you train are right after every update: is it this model that you return?"),
        (PATH[:3], RIGHT, ""),
        (off_since(2, np.nan * DUE), RIGHT, ""),
    ],
)
def test_first_wrong_update_is_told(yours: Array, losses: Array | None, sentence: str) -> None:
    text = told_of_run(yours, losses)
    assert text.endswith(sentence) if sentence else text == ""


# Wrong functions that no catalogue holds, graded in a real sandbox

UNHEARD = """
right_reward, right_deltas, right_loss, right_penalty = compute_reward, compute_deltas, compute_loss, compute_kl_penalty

def compute_reward(prompts, responses, reward_fn):
    return right_reward(prompts, responses, reward_fn) * 10

def compute_deltas(rewards, mode):
    out = right_deltas(rewards, mode)
    return out.T.reshape(out.shape)

def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    out = right_loss(log_probs, deltas, mode, old_log_probs, epsilon)
    return out * log_probs.shape[0] * log_probs.shape[2] if mode == "clipped" else 3 * out - 2 * out.detach()

def compute_kl_penalty(log_probs, ref_log_probs):
    return right_penalty(log_probs, ref_log_probs) / (log_probs.shape[1] * log_probs.shape[2])
"""
RESHAPED = "Your values are the expected ones in another order: reshaping does not interchange trial and batch."
OF_ITEMS = {
    "reward-values": f"{EACH} is 10 times what it should be.",
    "deltas-rewards": RESHAPED,
    "deltas-centered": RESHAPED,
    "loss-naive": "Each entry of your gradient is 3 times what it should be.",
    "loss-clipped": "Your value is the expected one times the sizes of batch and pos. Is there a sum where a mean",
    "kl-values": "Your value is the expected one divided by the sizes of trial and pos. Is something divided by",
}


def test_mistake_without_name_gets_its_reason(sandbox: Sandbox) -> None:
    assignment = find_assignment(KIT, "policy_gradient")
    source = f"{solution_source(assignment)}\n{UNHEARD}"
    grader = Grader.of(assignment, fixtures_of(assignment.name), counterexamples=False)
    items = [item for item in assignment.items if item.id in OF_ITEMS]
    report = grader.grade(Submission("ada", "ada/policy_gradient.py", "", source), sandbox, items)
    for item in report.items:
        assert OF_ITEMS[item.item] in item.message
        assert item.mistakes == ()
        failed = [case.message for case in item.cases if case.verdict == "failed"]
        assert failed[0] == item.message
        assert not any(OF_ITEMS[item.item] in message for message in failed[1:])
