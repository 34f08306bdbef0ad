"""The engine's own probe, and cases as declarations: what a call of NumPy, plain Python or torch is held to."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from autograder.authoring.calls import Calls, Drawn, Formula, Number
from autograder.authoring.declarations import Draft, check_draft
from autograder.grading.compare import compare
from autograder.sandbox.inside import calling
from autograder.sandbox.observation import Observation, Returned
from autograder.vocabulary.errors import FixtureError


def module(source: str) -> ModuleType:
    made = ModuleType("made")
    exec(source, made.__dict__)
    return made


def observed(draft: Draft, student: str) -> Observation:
    """What the probe sees of a student's text in this draft, as a worker would send it."""
    of_torch = draft.params["values"] == "torch"
    inputs = {
        name: torch.from_numpy(array.copy()) if of_torch else array.copy() for name, array in draft.inputs.items()
    }
    returned, facts = calling.call(module(student), inputs, draft.params)
    return Observation({name: _returned(value) for name, value in returned.items()}, facts)


def _returned(value: Any) -> Returned:
    if not isinstance(value, torch.Tensor | np.ndarray):
        return Returned("none" if value is None else "other", type=type(value).__name__)
    attached = isinstance(value, torch.Tensor) and value.requires_grad
    array = value.detach().numpy() if isinstance(value, torch.Tensor) else value
    return Returned("tensor", "Tensor", array.dtype.name, array.shape, attached, array)


def verdict(draft: Draft, student: str) -> str:
    """ "" where the answer is right, else the rung and what it is about."""
    check_draft(draft)
    mismatch = compare(draft.answer(draft.inputs, draft.params), observed(draft, student))
    return "" if mismatch is None else f"{mismatch.rung} of {mismatch.expectation.name}"


def calls(oracle: str, values: Any) -> Calls:
    return Calls("secret", None, module(f"import math, numpy as np\n{oracle}"), values)


SCALED = calls("def scaled(x, factor): return np.array([[factor * v for v in row] for row in x])", "numpy").case(
    "scaled", "…", "scaled", {"x": Drawn("row column", (2, 3)), "factor": Number(0.5, 3.0)}, "row column",
    kind="a NumPy array",
)  # fmt: skip


@pytest.mark.parametrize(
    ("student", "told"),
    [
        ("def scaled(x, factor): return factor * x", ""),
        ("def scaled(x, factor): return x", "values of scaled"),
        ("def scaled(x, factor): return (factor * x).T", "shape of scaled"),
        ("def scaled(x, factor): return (factor * x).tolist()", "fact of kind"),
        ("def scaled(x, factor): return None", "returned of scaled"),
        ("def scaled(x, factor):\n x *= factor\n return x.copy()", "purity of x afterwards"),
        ("import numpy as np\ndef scaled(x, factor): return (factor * x).astype(np.float32)", "dtype of scaled"),
    ],
)
def test_an_array_is_held_to_its_values_its_kind_and_its_argument(student: str, told: str) -> None:
    assert verdict(SCALED, student) == told


@pytest.mark.parametrize(
    "answer", ["'many'", "[[1.0], [2.0, 3.0]]", "[[None] * 3] * 2", "x.astype(str).tolist()", "{1: x}"]
)
def test_what_cannot_be_read_as_numbers_is_no_array(answer: str) -> None:
    assert compare_values(f"def scaled(x, factor): return {answer}") == "tensor"


def test_an_array_of_other_things_than_numbers_is_one_of_another_dtype() -> None:
    assert compare_values("def scaled(x, factor): return (x * factor).astype(object)") == "dtype"


OF_FORM, OF_VALUES = (
    calls("def scaled(x, factor): return factor * x", "numpy").case(
        "scaled", "…", "scaled", {"x": Drawn("row column", (2, 3)), "factor": 2.0}, "row column",
        kind="a NumPy array", form=form,
    )
    for form in (True, False)
)  # fmt: skip


@pytest.mark.parametrize(
    ("student", "of_form", "of_values"),
    [
        ("def scaled(x, factor): return factor * x", "", ""),
        ("def scaled(x, factor): return x", "", "values of scaled"),
        ("def scaled(x, factor): return (factor * x).T", "", "shape of scaled"),
        ("def scaled(x, factor): return (factor * x).tolist()", "fact of kind", ""),
        ("def scaled(x, factor):\n x *= factor\n return x.copy()", "purity of x afterwards", ""),
        ("import numpy as np\ndef scaled(x, factor): return (factor * x).astype(np.float32)", "dtype of scaled", ""),
    ],
)
def test_form_and_values_may_be_judged_apart(student: str, of_form: str, of_values: str) -> None:
    assert (verdict(OF_FORM, student), verdict(OF_VALUES, student)) == (of_form, of_values)


def test_a_list_of_whole_numbers_is_at_fault_as_a_list_and_not_for_its_dtype() -> None:
    first = calls("def first(x): return x.argmax(axis=1)", "numpy").case(
        "first", "…", "first", {"x": Drawn("row column", (2, 3))}, "row", kind="a NumPy array", free=["x"]
    )
    assert verdict(first, "def first(x): return x.argmax(axis=1).tolist()") == "fact of kind"
    assert verdict(first, "def first(x): return x.argmax(axis=1).astype(float)") == "dtype of first"


def compare_values(student: str) -> str:
    """The rung of what SCALED returns, whatever kind of thing it is."""
    value = next(one for one in SCALED.answer(SCALED.inputs, SCALED.params) if one.kind == "value")
    mismatch = compare([value], observed(SCALED, student))
    return mismatch.rung if mismatch else ""


PLAIN = calls("def spread(x): return {'mean': math.fsum(x) / len(x), 'range': max(x) - min(x)}", "python").case(
    "spread", "…", "spread", {"x": Drawn("entry", (5,))}, {"mean": "", "range": ""}, kind="a dictionary"
)


@pytest.mark.parametrize(
    ("student", "told"),
    [
        ("def spread(x): return {'mean': sum(x) / len(x), 'range': max(x) - min(x)}", ""),
        ("def spread(x): return {'mean': sum(x) / len(x)}", "returned of range"),
        ("def spread(x): return sum(x) / len(x), max(x) - min(x)", "fact of kind"),
        ("def spread(x): return {'mean': x.pop() and sum(x) / len(x), 'range': max(x) - min(x)}", "values of mean"),
    ],
)
def test_lists_and_dictionaries_of_numbers_are_values(student: str, told: str) -> None:
    assert verdict(PLAIN, student) == told


@pytest.mark.parametrize(
    ("student", "told"),
    [
        ("def words(text): return sorted(set(text.split()))", ""),
        ("def words(text): return text.split()", "fact of result"),
        ("def words(text): return set(text.split())", "fact of result"),
    ],
)
def test_text_and_lists_of_text_are_compared_as_they_are(student: str, told: str) -> None:
    oracle = calls("def words(text): return ['a', 'b']", "python")
    assert verdict(oracle.case("words", "…", "words", {"text": "b a b"}, None), student) == told


ROOT = calls(
    "def root(f, low, high):\n"
    " while high - low > 0.25:\n"
    "  middle = (low + high) / 2\n"
    "  low, high = (middle, high) if f(middle) < 0 else (low, middle)\n"
    " return (low + high) / 2",
    "python",
).case(
    "root", "…", "root", {"f": Formula("x", "x * x - 2"), "low": 0.0, "high": 2.0}, counted=["f"], free=["low", "high"]
)
HALVING = """\
def root(f, low, high):
    while high - low > 0.25:
        middle = (low + high) / 2
        if f(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2
"""


def test_calls_of_a_function_argument_are_counted() -> None:
    assert verdict(ROOT, HALVING) == ""
    assert verdict(ROOT, HALVING.replace("    while", "    f(low)\n    while")) == "fact of calls of f"
    assert observed(ROOT, HALVING).returned["calls of f"].array.tolist() == [[1.0], [1.5], [1.25]]


GRADED = Calls("secret", None, module(
    "import numpy as np\ndef energy(x): return np.array((x * x).sum())\ndef energy_gradient(x): return 2 * x"
)).case("energy", "…", "energy", {"x": Drawn("row column", (2, 3))}, leaves=["x"])  # fmt: skip


@pytest.mark.parametrize(
    ("student", "told"),
    [
        ("def energy(x): return (x * x).sum()", ""),
        ("def energy(x): return (x * x).sum().detach()", "graph of energy"),
        ("def energy(x): return (x * x.detach()).sum()", "gradient of gradient x"),
    ],
)
def test_gradients_with_respect_to_named_leaves_are_held_against_the_oracles(student: str, told: str) -> None:
    assert verdict(GRADED, student) == told


def test_a_result_that_is_to_be_constant_must_carry_no_graph() -> None:
    oracle = Calls("secret", None, module("def centre(x): return x - x.mean()"))
    draft = oracle.case("centre", "…", "centre", {"x": Drawn("entry", (4,))}, "entry", constant=True)
    assert verdict(draft, "def centre(x): return x - x.mean()") == ""
    assert verdict(draft, "def centre(x): return (x - x.mean()).requires_grad_()") == "graph of centre"


REFUSED = calls("", "numpy").case(
    "refused",
    "…",
    "share",
    {"x": Drawn("entry", (3,)), "n": 2},
    raises={"none": ({"n": 0}, ["n is 0"]), "empty": ({"x": []}, [])},
)
SHARE = """\
def share(x, n):
    if n == 0 or not x.size:
        raise ValueError(f"n is {n}")
    return x / n
"""


def test_each_refusal_must_come_as_a_value_error_that_says_what_it_is_about() -> None:
    assert verdict(REFUSED, SHARE) == ""
    assert verdict(REFUSED, SHARE.replace("n is", "no")) == "error of none"
    assert verdict(REFUSED, SHARE.replace(" or not x.size", "")) == "error of empty"
    assert verdict(REFUSED, SHARE.replace("ValueError", "TypeError")) == "error of none"


def test_what_should_be_refused_may_be_drawn() -> None:
    instead = {"n": Number(-3.0, -1.0), "x": Drawn("entry", (4,), "whole")}
    draft = calls("", "numpy").case("odd", "…", "share", {"x": [1.0, 2.0], "n": 2}, raises={"odd": (instead, [])})
    n, x = draft.params["raises"]["odd"].values()
    assert -3.0 <= n <= -1.0
    assert [type(one) for one in x] == [int] * 4
    assert verdict(draft, SHARE.replace("n == 0 or not x.size", "n < 0 and x.size == 4")) == ""


def test_a_stand_in_takes_the_place_of_what_the_function_calls_and_leaves_afterwards() -> None:
    oracle = calls("def twice(x): return 6 * x", "python")
    draft = oracle.case("twice", "…", "twice", {"x": Number(1.0, 2.0)}, stand_ins={"once": Formula("x", "3 * x")})
    student = module("def once(x): return x + 1\ndef twice(x): return 2 * once(x)")
    returned, facts = calling.call(student, {}, draft.params)
    assert returned["twice"].item() == pytest.approx(6 * draft.params["given"]["x"])
    assert facts["calls of once"] == 1
    assert student.once(1.0) == 2.0


def test_an_oracle_that_is_missing_is_named_with_the_list_it_may_stand_in() -> None:
    draft = calls("", "numpy").case("lost", "…", "lost", {"x": Drawn("entry", (3,))}, "entry")
    with pytest.raises(FixtureError, match=r"oracle\.py does not define lost, and NOT_INDEPENDENT does not list lost"):
        draft.answer(draft.inputs, draft.params)


def test_the_same_secret_draws_the_same_numbers_and_another_others() -> None:
    one, again, other = (
        Calls(secret, None, module("")).case(
            "case", "…", "f", {"x": Drawn("entry", (4,), "probabilities"), "n": Number(0, 1)}
        )
        for secret in ("a", "a", "b")
    )
    assert np.array_equal(one.inputs["x"], again.inputs["x"])
    assert one.params == again.params
    assert not np.array_equal(one.inputs["x"], other.inputs["x"])
    assert one.inputs["x"].sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("drawn", "told"),
    [
        (Drawn("row", (3,), "positiv"), "one of real, positive, probabilities, whole, not 'positiv'"),  # type: ignore[arg-type]
        (Drawn("row column", (3,)), "the axes 'row column' and the sizes (3,): one for each axis"),
        (Drawn("row", (3, 4)), "one for each axis"),
        (Number(0.9, 0.2), "not from 0.9 to 0.2"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_what_can(drawn: Drawn | Number, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        calls("", "numpy").case("a", "", "f", {"x": drawn}, "row")


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        ({"n": 0}, "a pair of a dictionary and a list"),
        (({"n": 0}, "n"), "a pair of a dictionary and a list"),
        (({"m": 0}, []), "raises has 'm' instead of an argument; the call has x, n"),
    ],
)
def test_what_is_no_refusal_of_the_calls_own_arguments_is_told(refusal: Any, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        calls("", "numpy").case("a", "", "f", {"x": [1.0], "n": 2}, raises={"refused": refusal})
