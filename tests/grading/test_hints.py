"""Which hint follows a failure; an item's own hint is about values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from observed import tensor

from autograder.grading.assignment import Item
from autograder.grading.compare import compare
from autograder.grading.fixtures import Case, Expectation
from autograder.grading.hints import Failure, hint_of, item_to_start_with, other_default
from autograder.grading.judging import Judged
from autograder.sandbox.calls import Array, Observation, Returned
from autograder.submissions.submission import Function
from autograder.vocabulary.report import Visibility

ITEM = Item("deltas-small", "f", "a title", 2, 5, "Think again.", ("c1",), ("c2",))
WANTED = np.array([[1.0, -2.0, 0.5], [4.0, 8.0, 3.0]])
ERROR = Expectation("error", "error", "f", value={"type": "ValueError", "mentions": ["avg"]})


def value(array: Array = WANTED, **more: Any) -> Expectation:
    axes = more.pop("axes", ("batch", "trial")[: array.ndim])
    kind, name = more.pop("kind", "value"), more.pop("name", "out")
    what = more.pop("what", name)
    return Expectation(kind, name, what, axes, array.dtype.name, 1e-6, 1e-8, array=array, **more)


def judged(
    *expected: Expectation,
    visibility: Visibility = "public",
    facts: dict[str, Any] | None = None,
    case_hint: str = "",
    withheld: bool = False,
    **returned: Returned,
) -> Judged:
    case = Case("c", ITEM.id, "f", "a case", visibility, "probe", {}, {}, expected, {}, case_hint)
    mismatch = compare(expected, Observation(returned, facts or {}))
    assert mismatch is not None
    return replace(Judged.of(case, "failed", "", mismatch), withheld=withheld)


def hint(*expected: Expectation, item: Item = ITEM, before: int = 0, more: Any = None, **wrong: Any) -> str:
    return hint_of(Failure(item, judged(*expected, **wrong), before, **(more or {})))


LARGER = tensor(WANTED + 1)


SLOPE = value(kind="gradient", name="slope")


@pytest.mark.parametrize(
    ("expected", "wrong", "begins"),
    [
        ((value(),), {"out": LARGER}, "Think again."),
        ((value(),), {"out": tensor(np.full_like(WANTED, np.nan))}, "Think again."),
        ((value(),), {"out": tensor(WANTED * (1 + 1e-4)), "more": {"all_near": True}}, "All values are almost right"),
        ((value(),), {"out": tensor(WANTED * (1 + 1e-4))}, "Think again."),  # other cases are far off
        ((value(),), {"out": tensor(WANTED.astype(np.float32))}, "The values are not compared yet."),
        ((value(),), {"out": tensor(WANTED[0])}, "Write down the shape"),
        ((value(),), {"out": Returned("other", type="list")}, "Return a torch.Tensor"),
        ((value(),), {"out": Returned("none")}, ""),
        ((ERROR,), {"facts": {"error": None}}, "Think again."),
        ((ERROR,), {"facts": {"error": {"types": ["KeyError"], "message": "avg"}}}, ""),  # the message says all
        ((value(), SLOPE), {"out": tensor(WANTED), "slope": Returned("none")}, "Look between inputs and result"),
        ((value(), SLOPE), {"out": tensor(WANTED), "slope": LARGER}, "The value is right and its gradient is not."),
        ((value(), SLOPE), {"out": tensor(WANTED), "slope": tensor(np.full_like(WANTED, np.nan))}, "The value is fin"),
        ((Expectation("fact", "result", "f", value=["a"]),), {"facts": {"result": ["b"]}}, "Think again."),
        ((Expectation("fact", "kind", "f", value=["a"]),), {"facts": {"kind": ["b"]}}, ""),
        # the number of turns is no question of shapes
        ((value(axes=("step", "vocab")),), {"out": tensor(np.concatenate([WANTED, WANTED]))}, ""),
    ],
)
def test_hint_depends_on_kind_of_failure(expected: Any, wrong: dict[str, Any], begins: str) -> None:
    text = hint(*expected, **wrong)
    assert text.startswith(begins) if begins else text == ""


def test_value_or_case_with_own_hint_gets_it() -> None:
    item = replace(ITEM, hints={"slope": "Which way?", "c": "What is 0?"})
    both = (value(), value(name="slope"))
    wrong = {"out": tensor(WANTED), "slope": LARGER}
    assert hint(*both, **wrong) == ""  # another value is right: the item's hint may be about that
    assert hint(*both, item=item, **wrong) == "Which way?"
    assert hint(value(), item=item, before=1, out=LARGER) == "What is 0?"
    assert hint(value(), item=item, out=tensor(WANTED[0])).startswith("Write down the shape")


def test_law_hint_is_given_where_nothing_else_fails() -> None:
    longer, alone = tensor(np.concatenate([WANTED, WANTED])), {"law_alone": True}
    assert hint(value(), case_hint="Which size?", before=1, more=alone, out=longer) == "Which size?"
    assert hint(value(), case_hint="Which size?", before=1, more=alone, out=LARGER) == "Which size?"
    assert hint(value(), case_hint="Which size?", before=1, out=LARGER) == ""  # sizes are not what matters
    assert hint(value(), case_hint="Which size?", more=alone, out=longer).startswith("Write down the shape")
    assert hint(value(), before=1, out=LARGER) == ""  # the item's own hint is about something else
    before = value(kind="unchanged", what="rewards")
    assert hint(before, case_hint="Which dtype?", before=1, more=alone, out=LARGER).startswith("A method that ends")


def test_backward_inside_function_is_told() -> None:
    code = {"code": "def f(x):\n    loss = x.sum()\n    loss.backward()\n    return x.grad\n"}
    for out in (Returned("none"), tensor(WANTED)):
        assert hint(value(attached=True), more=code, out=out).startswith("Your function calls backward itself.")
    assert hint(value(), more=code, out=Returned("none")) == ""  # here it may be what is asked for
    raised = "f raised RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn."
    for message, begins in ((raised, "backward finds no graph here. Which "), ("f raised ValueError: no.", "")):
        assert hint_of(Failure(ITEM, Judged.of(judged(value(), out=LARGER).case, "raised", message)))[:36] == begins


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"names": ("sign",), "hints": {"sign": "Which way is up?"}}, "Which way is up?"),
        ({"names": ("sign", "same"), "hints": {"sign": "Up?", "same": "Up?"}}, "Up?"),
        ({"names": ("a", "b"), "hints": {"a": "A?", "b": "B?"}}, "This has one of two causes. A? Or: B?"),
        ({"names": ("a", "b", "c"), "hints": {"a": "A?", "b": "B?", "c": "C?"}}, ""),
        ({"names": ("unknown",), "hints": {}}, ""),
        ({"other_default": "By default x is 1."}, "By default x is 1."),
        ({"updates": "The weights differ from the first update on."}, ""),
        ({"is_first": False}, ""),
        ({"elsewhere": "values"}, "values fails too: start there."),
        ({"elsewhere": "values", "names": ("a",), "hints": {"a": "A?"}}, "A?"),
    ],
)
def test_what_is_known_of_item_comes_first(more: dict[str, Any], text: str) -> None:
    begins = hint(value(), more=more, out=LARGER)
    assert begins.startswith(text) if text else begins == ""


def test_hidden_failure_gets_no_hint_that_numbers_decide() -> None:
    hints = {hint(value(), visibility="hidden", out=tensor(WANTED * by)) for by in (0.0, 1.0001, 2.0, np.nan)}
    slope = value(kind="gradient")
    hints |= {hint(slope, visibility="hidden", out=tensor(WANTED * by)) for by in (0.0, np.nan)}
    assert hints == {""}
    assert hint(value(), visibility="hidden", out=tensor(WANTED[:1])).startswith("Write down the shape")


def test_only_proven_item_is_named_to_start_with() -> None:
    values, form = (replace(ITEM, id=name) for name in ("values", "form"))
    items = [
        replace(ITEM, id="run", function="g", calls=("f", "h")),
        values,
        form,
        replace(ITEM, id="mean", function="h"),
    ]
    seen = {visibility: judged(value(), visibility=visibility, out=LARGER) for visibility in ("public", "hidden")}
    of_items = {item.id: replace(seen["public"], case=replace(seen["public"].case, item=item.id)) for item in items}
    every = {"values": [of_items["values"]], "form": [replace(of_items["form"], withheld=True)]}

    def start(name: str, *, withheld: bool = False, code: str = "", **more: Any) -> str:
        code_of = {"g": code, "f": "def f(x):\n    return h(x)", "h": "def h(x):\n    return f(x)"}
        first = replace(of_items[name], withheld=withheld)
        return item_to_start_with(items, first, {**every, name: [first], **more}, code_of)

    assert start("form", withheld=True) == "values"
    assert start("form") == ""
    assert start("run", code="def g(x):\n    return f(x)") == "values"
    assert start("run", code="def g(x):\n    return x") == ""
    assert start("run", code="def g(x):\n    return f(x)", values=[seen["hidden"]]) == ""
    own = {"values": [replace(of_items["values"], case=replace(of_items["values"].case, probe="call"))]}
    mean = {"mean": [of_items["mean"]]}
    assert start("run", code="def g(x):\n    return f(x) + h(x)", **own, **mean) == "mean", "which f calls"


@pytest.mark.parametrize(
    ("params", "inputs", "handed_out", "written", "differs"),
    [
        ({}, {}, "0.2", "0.1", True),
        ({}, {}, "'mean_std'", "'mean'", True),
        ({"options": {"mode": "clipped"}}, {"log_probs": WANTED}, "0.2", "0.1", True),
        ({"options": {"epsilon": 0.5}}, {}, "0.2", "0.1", False),
        ({"calls": [{"epsilon": 0.5}]}, {}, "0.2", "0.1", False),
        ({}, {"epsilon": WANTED}, "0.2", "0.1", False),
        ({}, {}, "0.0", "0", False),
        ({}, {}, "None", "None", False),
    ],
)
def test_other_default_is_named_where_cases_leave_it_out(
    params: dict[str, Any], inputs: dict[str, Array], handed_out: str, written: str, differs: bool
) -> None:
    case = Case("c", ITEM.id, "f", "a case", "hidden", "probe", params, inputs, (), {})
    sentence = f"By default epsilon is {handed_out} in the handout; in your first line of f it is {written}."
    both = [{"f": Function(1, 1, 2, (), {"epsilon": default})} for default in (handed_out, written)]
    assert other_default([case], *both) == (sentence if differs else "")
    given = replace(case, params={}, inputs={"epsilon": WANTED})
    assert other_default([case, given], *both) == ""  # not all failing cases leave it out
