"""Show: stored cases as staff read them."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
from places import KIT

from autograder.authoring.fixtures.regenerate import load_expanded
from autograder.authoring.fixtures.show import case_lines, item_text
from autograder.grading.fixtures import Case, Expectation, read_fixtures
from autograder.sandbox.calls import Observation, Raised

ASSIGNMENT = load_expanded(KIT / "fixtures/policy_gradient")


def shown(case: Case) -> str:
    return "\n".join(case_lines(case)) + "\n"


def stored(**changed: object) -> Case:
    case = Case(
        id="ramp-small",
        item="ramp-values",
        function="ramp",
        title="two rows",
        visibility="hidden",
        probe="ramp",
        params={},
        inputs={"x": np.array([[1.5, -2.0], [0.25, 4.0], [0.0, 1.0]])},
        expected=(),
        mistakes={},
    )
    return dataclasses.replace(case, **changed)


RAMP = Expectation(
    "value", "ramp", "the ramp", ("row", "column"), "float32", rtol=1e-4, atol=2e-6, array=np.array([[3.0, 0.0]])
)


def test_case_is_shown_with_call_inputs_expectations_and_mistakes() -> None:
    case = stored(
        params={"factor": 2.5},
        expected=(RAMP, Expectation("unchanged", "x", "x", array=np.zeros(1))),
        mistakes={"no-kink": Observation({}, {}), "adds": Raised(("TypeError",), "", None, "")},
    )
    assert (
        shown(case)
        == """\
ramp-small  (hidden)  two rows
  probe     ramp({"factor": 2.5})
  given     x   float64[3, 2]
            [[ 1.5  -2.  ]
             [ 0.25  4.  ]
             [ 0.    1.  ]]
  expected  the ramp   float32[row=1 column=2]
            allowed: 0.0001 relative, 2e-06 absolute
            [[3. 0.]]
  unchanged x
  separates 2 mistakes: adds, no-kink
"""
    )


def test_expected_errors_and_facts_are_shown_with_their_words() -> None:
    error = Expectation("error", "raised", "ramp with no factor", value={"type": "ValueError", "mentions": ["factor"]})
    fact = Expectation("fact", "calls", "the number of calls", value=[1, "one"])
    lines = shown(stored(expected=(error, fact))).splitlines()
    assert "  expected  ramp with no factor: ValueError that names 'factor'" in lines
    assert '  expected  the number of calls: [1, "one"]' in lines


def test_number_is_shown_plain_and_long_array_shortened() -> None:
    number = dataclasses.replace(RAMP, axes=(), array=np.array(-1.25))
    long = dataclasses.replace(RAMP, axes=("step",), array=np.arange(1000.0))
    text = shown(stored(inputs={}, expected=(number, long)))
    assert "float32[]\n            allowed: 0.0001 relative, 2e-06 absolute\n            -1.25\n" in text
    assert "float32[step=1000]\n" in text
    assert "[  0.   1. ... 998. 999.]\n" in text


def test_every_item_is_shown_whole_on_lines_that_fit() -> None:
    fixtures = read_fixtures(ASSIGNMENT)
    for item in ASSIGNMENT.items:
        text = item_text(item, fixtures)
        lines, words = text.splitlines(), " ".join(text.split())
        shown_cases = [line.split()[0] for line in lines if re.search(r"  \((public|hidden)\)  ", line)]
        assert shown_cases == [*item.public, *item.hidden]
        for case in fixtures.of_item(item.id):
            assert " ".join(f"{case.id} ({case.visibility}) {case.title}".split()) in words
            for expectation in case.expected:
                if expectation.kind != "unchanged" and not expectation.diagnosis:
                    assert f"expected {' '.join(expectation.what.split())}" in words
            assert all(slug in text for slug in case.mistakes)
        assert max(map(len, lines)) <= 120
        assert lines == [line.rstrip() for line in lines]
        assert text == text.rstrip() + "\n"


def test_call_is_shown_as_one_would_type_it() -> None:
    params = {
        "function": "ramp",
        "arguments": ["x", "f", "factor", "side"],
        "values": "numpy",
        "returns": [],
        "given": {"factor": 2.5, "side": "left"},
        "formulas": {"f": {"of": "t", "is": "t + 1"}},
        "by_name": ["side"],
        "raises": {"refused": {"factor": -1}},
        "leaves": ["x", "f"],
    }
    refused = Expectation(
        "error", "refused", "ramp with factor=-1", value={"type": "ValueError", "mentions": ["factor"]}
    )
    kept = Expectation("unchanged", "x afterwards", "x", array=np.zeros(1))
    lines = shown(stored(probe="call", params=params, expected=(refused, kept), mistakes={"adds": Observation({}, {})}))
    assert [line for line in lines.splitlines() if "[" not in line] == [
        "ramp-small  (hidden)  two rows",
        "  given     f = lambda t: t + 1",
        "  call      ramp(x, f, 2.5, side='left')",
        "  and then  with factor=-1   (refused)",
        "  leaves    x, f",
        "  expected  ramp with factor=-1: ValueError that names 'factor'",
        "  unchanged x",
        "  separates 1 mistake: adds",
    ]


def test_driver_is_shown_with_its_arguments() -> None:
    params = {"function": "Momentum", "arguments": ["x", "rate"], "given": {"rate": 0.25}}
    assert "  probe     steps(x, 0.25)" in shown(stored(probe="steps", params=params)).splitlines()
