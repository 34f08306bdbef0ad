"""What a public case calls, as a student would type it; of a hidden case nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from declared import Declared

from autograder.authoring.calls import Formula
from autograder.grading.counterexamples import CALLED, call_lines, short_call, with_calls
from autograder.grading.fixtures import Case
from autograder.vocabulary.report import CaseResult, ItemResult, Verdict, Visibility

ARGUMENTS: dict[str, Any] = {
    "logits": np.linspace(-2, 2, 6).reshape(2, 3) ** 3,
    "chosen": np.array([2, 0]),
    "f": Formula("x", "x * x - 2"),
    "temperature": 1.718,
    "steps": 7,
    "side": "left",
}


def case(values: Any = "torch", visibility: Visibility = "public", arguments: Any = None, **more: Any) -> Case:
    draft = Declared("", values).case("g", arguments or ARGUMENTS, "state", **more)
    return Case("g-small", "g-values", "g", "…", visibility, "call", draft.params, draft.inputs, (), {})


def pasted(one: Case) -> dict[str, Any]:
    """What the function gets where the lines are run as they stand."""
    names = list(one.params["arguments"])
    got: dict[str, Any] = {}

    def g(*arguments: Any, **named: Any) -> None:
        got.update(dict(zip(names, arguments, strict=False)) | named)

    exec("\n".join(call_lines(one)), {"g": g, "np": np, "torch": torch, "math": math})
    return got


@pytest.mark.parametrize("values", ["torch", "numpy", "python"])
def test_lines_make_call_of_case(values: str) -> None:
    one = case(values, by_name=["side"])
    got = pasted(one)
    assert list(got) == list(ARGUMENTS)
    for name, array in one.inputs.items():
        assert type(got[name]) is {"torch": torch.Tensor, "numpy": np.ndarray, "python": list}[values]
        assert np.allclose(np.asarray(got[name]), array, rtol=1e-5)
        assert values == "python" or np.asarray(got[name]).dtype == array.dtype
    assert {name: got[name] for name in one.params["given"]} == one.params["given"]
    assert got["f"](3.0) == 7.0
    assert call_lines(one)[-1].endswith("side='left')")


DRIVER = """
@driver
def pushed(student, {}):
    \"\"\"Push them.\"\"\"
    queue = student.Queue(steps)
    return [queue.push(one) for one in chosen]
"""


@pytest.mark.parametrize(("takes", "is_shown"), [("steps, chosen", True), ("chosen, steps", False)])
def test_driver_is_shown_line_by_line(takes: str, is_shown: bool) -> None:
    one = replace(case("numpy", arguments={"steps": {3: 1}, "chosen": np.array([2, 0])}), probe="pushed")
    lines = [
        "steps = {3: 1}",
        "chosen = np.array([2, 0])",
        "queue = Queue(steps)",
        "[queue.push(one) for one in chosen]",
    ]
    assert short_call(one, DRIVER.format(takes)) == "\n".join(lines) * is_shown
    assert short_call(one, DRIVER.format(takes).replace("@driver", "")) == ""


def test_long_or_hidden_call_is_not_shown() -> None:
    assert short_call(case())
    assert short_call(case(visibility="hidden")) == ""
    assert short_call(case(arguments={"x": np.ones((7, 6))})) == ""
    assert short_call(case(arguments={"word": "w" * 200})) == ""
    assert short_call(replace(case(), probe="trace")) == ""
    assert short_call(replace(case(), params={**case().params, "arguments": ["logits", "model"]})) == ""
    assert short_call(replace(case(), params={**case().params, "aliases": {"chosen": {"of": "logits"}}})) == ""


def item(*cases: tuple[Visibility, Verdict], hint: str = "", counterexample: str = "") -> ItemResult:
    results = tuple(CaseResult("g-small", seen, verdict, "wrong") for seen, verdict in cases)
    return ItemResult("g-values", "g", "", 0.0, 4.0, "failed", (), "wrong", hint, 0.0, results, counterexample)


@pytest.mark.parametrize(
    ("result", "is_shown"),
    [
        (item(("public", "failed")), True),
        (item(("public", "raised"), ("hidden", "failed")), True),
        (item(("public", "passed"), ("hidden", "failed")), False),
        (item(("public", "missing")), False),
        (item(("public", "failed"), hint="g-shapes fails too: start there."), False),
        (item(("public", "failed"), counterexample="g(1)"), False),
    ],
)
def test_call_stands_below_message_where_it_helps(result: ItemResult, is_shown: bool) -> None:
    (shown,) = with_calls([result], [case()])
    call = "\n".join(f"  {line}" for line in call_lines(case()))
    assert shown.message == (f"wrong\n{CALLED}\n{call}" if is_shown else "wrong")
