"""JSON with margins is spelt as the standard library spells it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from autograder.vocabulary.report import indented


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        (),
        None,
        True,
        {"points": 4.0, "none": None, "passed": False, "count": 3, "small": 1e-17, "great": 10**30},
        {"nested": [{"empty": {}, "list": [], "inner": [1, [2, [3, "four"]], ("five",)]}], "last": ""},
        {'a "quoted" key\n': "back\\slash, tab\t, null \x00, \u2028, \U0001f642, \ud800"},
        {"not finite": [float("nan"), float("inf"), float("-inf")]},
    ],
)
def test_plain_data_is_spelt_as_json_spells_it_with_a_margin_of_one(value: Any) -> None:
    assert indented(value) == json.dumps(value, indent=1, ensure_ascii=False)


def test_what_is_no_plain_data_is_refused_as_json_refuses_it() -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        indented({"of": [object()]})
