from __future__ import annotations

import json
import unicodedata
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from observed import tensor

from autograder.grading.assignment import Item
from autograder.grading.compare import compare
from autograder.grading.fixtures import Case, Expectation
from autograder.grading.hints import Failure, hint_of
from autograder.grading.judging import Judged
from autograder.grading.wording import (
    MAX_MESSAGE,
    about_exception,
    about_fact,
    about_mismatch,
    about_outcome,
    about_updates,
    stored_text,
)
from autograder.sandbox.calls import Array, Observation, Outcome, Raised, Returned, Status
from autograder.vocabulary.report import Visibility
from autograder.vocabulary.text import INVISIBLE

WANTED = np.array([[1.0, -2.0, 0.5], [4.0, 8.0, 0.25]])
ITEM = Item("item", "compute_deltas", "", 4.0, 1.0, "", (), ("c",))
FEW = settings(max_examples=30, deadline=None)
ANY_TEXT = st.text(st.characters(exclude_categories=()))


def deltas(array: Array = WANTED, **more: Any) -> Expectation:
    axes = ("batch", "trial", "pos")[: array.ndim]
    plain = Expectation("value", "deltas", "deltas", axes, "float64", 1e-6, 1e-8, array=array)
    return replace(plain, **more)


def gradient(array: Array = WANTED) -> Expectation:
    return deltas(array, kind="gradient", what="the gradient with respect to log_probs")


def fact(expected: Any, message: str, **more: Any) -> Expectation:
    return replace(Expectation("fact", "calls", "the calls", value=expected, message=message), **more)


def error(*mentions: str) -> Expectation:
    wanted = {"type": "ValueError", "mentions": list(mentions)}
    return Expectation("error", "calls", "compute_deltas with mode 'centred'", value=wanted)


def case(*expected: Expectation, visibility: Visibility = "public") -> Case:
    return Case("c", "item", "compute_deltas", "a case", visibility, "deltas", {}, {}, expected, {})


def message(
    expected: Expectation | tuple[Expectation, ...], out: Any = None, calls: Any = None, *, hidden: bool = False
) -> str:
    """What a student reads who returned `out`, in a public or a hidden case."""
    expected = expected if isinstance(expected, tuple) else (expected,)
    returned = {} if out is None else {"deltas": out if isinstance(out, Returned) else tensor(out)}
    found = compare(expected, Observation(returned, {} if calls is None else {"calls": calls}))
    assert found is not None
    return about_mismatch(case(*expected, visibility="hidden" if hidden else "public"), found)


def assert_harmless(text: str, limit: int = MAX_MESSAGE) -> None:
    assert len(text) <= limit
    assert {character for character in text if unicodedata.category(character) in INVISIBLE} <= {"\n"}
    text.encode()


# A failure as a student sees it


def test_public_failure_shows_yours_and_expected_side_by_side() -> None:
    wanted = np.arange(15.0).reshape(3, 5)
    out = np.where(np.arange(3)[:, None] == 1, np.nan, wanted)
    assert message(deltas(wanted, dtype="float32", rtol=1e-4), out.astype(np.float32)) == (
        "deltas   float32[batch=3 trial=5]\n"
        "5 of 15 values differ, all at batch 1 (allowed: 0.0001 relative)\n"
        "  [batch trial]  yours  expected\n"
        "  [1 0]            nan         5\n"
        "  [1 1]            nan         6\n"
        "  [1 2]            nan         7\n"
        "  … 2 more"
    )


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("nothing", "compute_deltas returned nothing where deltas should be."),
        ("a tensor", "compute_deltas should return 2 values (deltas, mean), but this came back: a tensor."),
    ],
)
def test_what_came_back_in_place_of_several_parts_is_said(kind: str, text: str) -> None:
    asked = replace(case(deltas()), params={"returns": ["deltas", "mean"]})
    found = compare(asked.expected, Observation({"deltas": Returned("none")}, {"kind": kind}))
    assert found is not None
    assert about_mismatch(asked, found) == text
    told = about_mismatch(replace(asked, visibility="hidden"), found)
    assert told == text.replace("this came back: a tensor", "something else came back")


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize(
    ("expected", "out", "text"),
    [
        (deltas(), None, "compute_deltas returned nothing where deltas should be."),
        (deltas(), Returned("none"), "compute_deltas returned nothing where deltas should be."),
        (gradient(), None, "the gradient with respect to log_probs does not exist: the graph is cut."),
        (
            deltas(),
            replace(tensor(WANTED), array=None),
            "The values of deltas cannot be read: the tensor is too large, or not dense.",
        ),
        (
            deltas(attached=True),
            WANTED,
            "deltas should carry a graph: the value is right, but nothing can be learned from it.",
        ),
        (deltas(attached=False), tensor(WANTED, requires_grad=True), "deltas should not require a gradient."),
        (
            deltas(kind="unchanged", what="rewards"),
            WANTED + 1,
            "compute_deltas changed its argument rewards. Compute something new instead.",
        ),
    ],
)
def test_each_rung_has_its_sentence(expected: Expectation, out: Any, text: str, hidden: bool) -> None:
    assert message(expected, out, hidden=hidden) == text


# Errors and facts


@pytest.mark.parametrize(
    ("observed", "text"),
    [
        (None, "raise ValueError, but raised nothing."),
        ({"types": ["KeyError", "LookupError"], "message": "x"}, "raise ValueError, but raised KeyError."),
        ({"types": ["ValueError"], "message": "x"}, "raise ValueError and name 'centred', but its text does not."),
        ({"types": {"a": 1}}, "raise ValueError, but raised something else."),
        ({"types": [["a"], 3, "B"]}, "raise ValueError, but raised B."),
        ([1], "raise ValueError, but raised nothing."),
    ],
)
def test_error_that_was_not_raised_is_told_with_what_was(observed: Any, text: str) -> None:
    assert message(error("centred"), calls=observed) == f"compute_deltas with mode 'centred' should {text}"


def test_fact_is_told_in_case_s_own_words() -> None:
    expected = fact([3, [None, True], {"a": 1}], "Should be {expected}; yours: {observed}.")
    assert (
        message(expected, calls={"a": [1, None], "b": "c"})
        == "Should be [3, [nothing, True], {a: 1}]; yours: {a: [1, nothing], b: c}."
    )
    assert message(expected) == "Should be [3, [nothing, True], {a: 1}]; yours: nothing."


def test_result_is_told_as_python() -> None:
    expected = replace(fact({"3": ["a"], "('b', 1)": None, "'3'": 0}, "{expected}; yours: {observed}."), name="result")
    wanted = "{'3': 0, ('b', 1): None, 3: ['a']}"
    assert about_fact(expected, {"a": True}, reveal=True) == f"{wanted}; yours: {{'a': True}}."
    rows = {"3": [[1, 2.5], ["a" * 60]]}
    both = replace(expected, value=rows), {"3": [[1, 2.5 + 1e-12], ["a" * 59 + "b"]], "more": 0}
    assert about_fact(*both, reveal=True).endswith(f"\nFirst at [3][1][0]: expected '{'a' * 60}', yours '{'a' * 59}b'")
    assert about_fact(replace(expected, name="a afterwards", value="a"), "a ", reveal=True) == "'a'; yours: 'a '."
    assert [stored_text(expected, {"1": "a"}), stored_text(fact("a", ""), "a")] == ["{1: 'a'}", "a"]
    assert "First" not in about_fact(both[0], ["a" * 200], reveal=True)
    assert "…" in about_fact(expected, json.loads('[{"a":' * 400 + "1" + "}]" * 400), reveal=True)


@pytest.mark.parametrize("hidden", [False, True])
def test_json_that_is_deeply_nested_is_told_in_short(hidden: bool) -> None:
    deep = json.loads('[{"a":' * 400 + "1" + "}]" * 400)
    assert "…" in message(fact(3, "yours: {observed}"), calls=deep) or hidden
    assert_harmless(message(error("x"), calls={"types": deep, "message": deep}, hidden=hidden))
    assert_harmless(message(error("x"), calls={"types": ["ValueError"], "message": deep}, hidden=hidden))


# What hidden cases keep to themselves

FLOATS = hnp.arrays(np.float64, (2, 3), elements=st.floats(1e-3, 1e6).map(lambda number: number + 1 / 7))


@FEW
@given(FLOATS, FLOATS, st.sampled_from(["value", "gradient", "unchanged"]), st.integers(0, 5), st.data())
def test_no_number_of_hidden_case_is_told(wanted: Array, found: Array, kind: Any, place: int, data: Any) -> None:
    found.flat[place] = wanted.flat[place] * data.draw(st.sampled_from([1.0001, 1.5, np.nan, -np.inf]))
    text = message(deltas(wanted, kind=kind), found, hidden=True)
    numbers = [number for number in (*wanted.flat, *found.flat) if np.isfinite(number)]
    assert not [number for number in numbers if f"{abs(number):.7g}"[:6] in text]
    assert "nan" not in text
    assert "inf" not in text


def test_hidden_case_says_what_shape_is_right_alone() -> None:
    assert message(deltas(), np.zeros((1234, 1)), hidden=True) == (
        "deltas should have shape [batch=2 trial=3], and yours has another."
    )
    told = message(deltas(axes=("batch", "3")), np.zeros((1234, 1)), hidden=True)
    assert told == "deltas should have shape [batch=2 3], and yours has another."
    assert message(deltas(), Returned("other", type="secret_1234"), hidden=True) == (
        "deltas should be a torch.Tensor, but something else was found."
    )
    unsent = Returned("tensor", "Tensor", "secret_1234", (2, 3))
    assert message(deltas(), unsent, hidden=True) == "deltas should have dtype float64, and yours has another."


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("Should be {expected}; yours: {observed}.", "In a hidden case this does not hold: Should be …"),
        (
            "Called {expected} times a step; yours: {observed}.",
            "In a hidden case this does not hold: Called … times a step.",
        ),
        ("Called once, {expected} times here; yours: {observed}.", "In a hidden case this does not hold: Called once."),
        ("Left as it came ({expected}); yours: {observed}.", "In a hidden case this does not hold: Left as it came."),
        ("Once a call ({expected} in all); yours: {observed}.", "In a hidden case this does not hold: Once a call."),
        ("It has a graph.", "It has a graph."),
        ("It returned {observed}.", "In a hidden case this is not as it should be: the calls."),
    ],
)
def test_hidden_case_tells_neither_side_of_fact(words: str, told: str) -> None:
    assert message(fact(12345, words), calls=67890, hidden=True) == told


def test_hidden_case_has_one_diagnosis_without_its_numbers() -> None:
    traces = [fact(12345, "trace {expected} {observed}", diagnosis=True, what=what) for what in ("one", "two")]
    text = message((deltas(np.array([1.0])), *traces), np.array([2.0]), 67890, hidden=True)
    assert text.splitlines()[1:] == ["Look at this: one."]


def test_hidden_case_does_not_say_what_error_should_mention() -> None:
    text = message(error("secret_1234"), calls={"types": ["ValueError"], "message": "m"}, hidden=True)
    says = "should raise ValueError and name what is wrong, but its text does not."
    assert text == f"compute_deltas with mode 'centred' {says}"


def test_hidden_case_names_no_exception_that_student_named() -> None:
    text = message(error(), calls={"types": ["Secret1234", "list", "KeyError"], "message": "secret"}, hidden=True)
    assert text == "compute_deltas with mode 'centred' should raise ValueError, but raised something else."


# Exceptions and other ends


def outcome(status: Status, raised: Raised | None = None, detail: str = "") -> Outcome:
    return Outcome(status, raised=raised, detail=detail)


SHAPE_ERROR = Raised(
    ("EinopsError", "RuntimeError", "Exception"), "shape [1234] is wrong", 7, "x = rearrange(secret, 'b -> c')"
)


def test_public_exception_comes_with_its_text_and_student_s_line() -> None:
    assert about_outcome(case(), outcome("raised", SHAPE_ERROR), 5) == (
        "compute_deltas raised EinopsError: shape [1234] is wrong.\n"
        "Line 7 of your file:\n"
        "  x = rearrange(secret, 'b -> c')"
    )


def test_exception_in_a_driver_is_not_said_to_be_the_functions() -> None:
    raised = Raised(("TypeError", "Exception"), "'float' object is not callable", None, "", probe_line=7)
    said = "What uses compute_deltas raised TypeError: 'float' object is not callable."
    assert about_outcome(case(), outcome("raised", raised), 5) == said


def test_hidden_exception_tells_nothing_that_code_chose() -> None:
    nameless = Raised(("Secret1234",), "secret", None, "secret")
    for raised in (SHAPE_ERROR, nameless, PERMISSION):
        assert about_outcome(case(visibility="hidden"), outcome("raised", raised), 5) == (
            "compute_deltas raised an exception. Which one and where is not told of a hidden case."
        )


PERMISSION = Raised(("PermissionError", "OSError", "Exception"), "[Errno 1] Operation not permitted", 3, "os.fork()")
READ_ONLY = Raised(("OSError", "Exception"), "[Errno 30] Read-only file system: 'log.txt'", 3, "open('log.txt', 'w')")
TORCH = Raised(("RuntimeError", "Exception"), "open file failed: Permission denied", 3, "torch.save(x, 'm')")
REFUSAL = "Graded code runs in a sandbox that refuses files, new processes and the network; the answer needs none."


@pytest.mark.parametrize("raised", [PERMISSION, READ_ONLY, TORCH])
def test_what_sandbox_refused_is_said_to_be_its_refusal(raised: Raised) -> None:
    text = about_exception("compute_deltas", raised)
    assert text == (
        f"compute_deltas raised {raised.types[0]}: {raised.message}. {REFUSAL}\nLine 3 of your file:\n  {raised.code}"
    )


@pytest.mark.parametrize("status", ["timed_out", "out_of_memory", "crashed"])
@pytest.mark.parametrize("visibility", ["public", "hidden"])
def test_budget_that_was_exceeded_is_named(status: Status, visibility: Visibility) -> None:
    stopped = Outcome(status, detail="stopped", exceeded="used more than 5 s of processor time")
    text = about_outcome(case(visibility=visibility), stopped, 0.5)
    assert text == "compute_deltas used more than 5 s of processor time."


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ("missing", "compute_deltas is not defined."),
        ("timed_out", "compute_deltas had not finished after 0.5 seconds. Is there a loop that never ends?"),
        ("out_of_memory", "compute_deltas asked for more memory than it may have."),
        ("crashed", "compute_deltas ended the Python process{how}."),
        ("not_run", "Not run: signal 11."),
    ],
)
@pytest.mark.parametrize("visibility", ["public", "hidden"])
def test_each_way_to_end_has_its_sentence(status: Status, text: str, visibility: Visibility) -> None:
    assert about_outcome(case(visibility=visibility), outcome(status, detail="signal 11"), 0.5) == text.format(
        how=": signal 11" if visibility == "public" else ""
    )


# Hostile text


@FEW
@given(ANY_TEXT, ANY_TEXT, ANY_TEXT, st.sampled_from(["public", "hidden"]), st.integers(1, 50))
def test_any_exception_makes_short_message(name: str, text: str, code: str, visibility: Visibility, times: int) -> None:
    raised = Raised((name * times,), text * times, 3, code * times)
    for status in ("raised", "out_of_memory"):
        assert_harmless(about_outcome(case(visibility=visibility), outcome(status, raised), 5), limit=700)
    assert_harmless(about_outcome(case(visibility=visibility), outcome("crashed", detail=text * times), 5), limit=300)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=10,
)


@FEW
@given(JSON, st.booleans())
def test_any_fact_makes_short_message(observed: Any, hidden: bool) -> None:
    secret = {"what nobody sends": 12345}
    assert_harmless(message(fact(secret, "{expected} {observed}"), calls=observed, hidden=hidden), limit=300)
    if not isinstance(observed, dict):
        assert_harmless(message(error(), calls=observed, hidden=hidden), limit=300)


# In the words of NumPy and of plain Python


@pytest.mark.parametrize(
    ("values", "wanted", "out", "told"),
    [
        ("numpy", WANTED, Returned("other", type="str"),
         "deltas should be an array of numbers, but this was found: str."),
        ("python", WANTED[0], Returned("other", type="set"),
         "deltas should be a list of numbers, but this was found: set."),
        ("python", WANTED, Returned("other", type="list"),
         "deltas should be a list of rows of numbers, but this was found: list of other things than numbers, or of "
         "rows that differ in length."),
        ("numpy", np.array(2.5), WANTED, "deltas should be a number, but an array of shape [2, 3] was found."),
        ("python", np.array(2.5), WANTED[0], "deltas should be a number, but a list of shape [3] was found."),
        ("numpy", WANTED, np.array(2.5), "deltas should be an array of numbers, but a number was found."),
        ("numpy", WANTED, WANTED[:, :2], "deltas should have shape [batch=2 trial=3], but yours has [2, 2]."),
        ("numpy", WANTED, WANTED.astype(np.int64), "deltas should have dtype float64, but yours has int64."),
        ("python", np.array(2.5), np.array(3.5), "deltas\nits value differs (allowed: 1e-06 relative)"),
        ("sampled", np.array(2.5), np.array(3.5), "deltas\nits value differs (allowed: 0.025 more or less)"),
        ("python", WANTED[0], WANTED[0] + 1, "deltas   [batch=3]\n3 of 3 values differ"),
    ],
)  # fmt: skip
def test_arrays_lists_and_numbers_are_told_as_such(values: str, wanted: Array, out: Any, told: str) -> None:
    expected = replace(deltas(wanted), **({"rtol": 0.0, "atol": 0.025} if values == "sampled" else {}))
    found = compare((expected,), Observation({"deltas": out if isinstance(out, Returned) else tensor(out)}, {}))
    assert found is not None
    for visibility in ("public", "hidden"):
        asked = replace(case(expected, visibility=visibility), params={"values": values})  # type: ignore[arg-type]
        text = about_mismatch(asked, found)
        hint = hint_of(Failure(ITEM, Judged.of(asked, "failed", text, found)))
        assert "ensor" not in text + hint
        assert text.startswith(told) or visibility == "hidden", text


# The weights of a run

DUE = np.array([1.0, -2.0, 3.0, -4.0, 5.0, -6.0, 7.0, -8.0, 9.0])
PATH = np.array([0 * DUE, DUE, 2 * DUE, 3 * DUE])
FOLLOWED = deltas(PATH, name="weights before and after", axes=("update", "sum"), diagnosis=True)
LOSSES = deltas(np.array([0.5, 0.25, 0.125]), name="losses of updates", axes=("update",), diagnosis=True)


def off_since(update: int, by: Array) -> Array:
    return np.array([weights + by * (number >= update) for number, weights in enumerate(PATH)])


RIGHT, WRONG = LOSSES.array, np.array([0.5, 9.0, 9.0])


@pytest.mark.parametrize(
    ("yours", "losses", "sentence"),
    [
        (off_since(3, DUE), None, "The weights are wrong from update 3 on."),
        (off_since(0, DUE), RIGHT, "The weights differ before the first update."),
        (off_since(3, DUE), WRONG, "on. The loss of update 2 is wrong: look at what it is made of."),
        (off_since(2, np.abs(DUE)), RIGHT, "right: look at what becomes of its gradient, and at the optimizer."),
        (PATH, RIGHT, ""),
        (PATH[:3], RIGHT, ""),
        (off_since(2, np.nan * DUE), RIGHT, ""),
    ],
)
def test_first_wrong_update_is_told(yours: Array, losses: Array | None, sentence: str) -> None:
    arrays = {"weights before and after": yours, "losses of updates": losses}
    returned = {name: tensor(array) for name, array in arrays.items() if array is not None}
    text = about_updates(case(FOLLOWED, LOSSES), Observation(returned, {}))
    assert text.endswith(sentence) if sentence else text == ""
