"""What `new` finds out about a solution by calling it: arguments, what comes back, what is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.authoring.beginning.entries import Allowances, entries
from autograder.authoring.beginning.signatures import solution_of
from autograder.authoring.beginning.trial import Bench, Tried, Unanswered
from autograder.authoring.calls import Number
from autograder.sandbox.sandbox import Sandbox

WINDOWED = '''\
import numpy as np


def averages(values, window):
    """Return the mean of every `window` consecutive values.

    values    float[step]
    window    int
    SAID
    """
    if window < 1 or window > len(values):
        raise ValueErrorTEXT
    sums = np.concatenate([[0.0], np.cumsum(values)])
    return (sums[window:] - sums[:-window]) / window
'''


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as opened:
        yield opened


def tried(source: str, sandbox: Sandbox, function: str = "") -> Tried:
    """What is found of that function of a file, or of its only one."""
    solution = solution_of(source, Path("s.py"))
    chosen = next(one for one in solution.functions if function in ("", one.name))
    return Bench(solution, sandbox).tried(chosen)


def windowed(said: str, text: str) -> str:
    return WINDOWED.replace("SAID", said).replace("TEXT", text)


# What is refused


def test_no_error_has_to_mention_what_the_docstring_does_not_ask_for(sandbox: Sandbox) -> None:
    source = windowed("Raises ValueError if window is more than the number of values.", '("window and values")')
    assert {mention for _, mention in tried(source, sandbox).errors} == {""}


def test_an_error_whose_text_should_mention_an_argument_is_held_to_that(sandbox: Sandbox) -> None:
    source = windowed("Raises ValueError, which mentions window, if there are fewer values.", '("window and values")')
    found = tried(source, sandbox).errors
    assert {mention for instead, mention in found if "window" in instead} == {"window"}
    assert {mention for instead, mention in found if "values" in instead} == {""}


def test_a_refusal_without_a_text_is_found_too(sandbox: Sandbox) -> None:
    source = windowed("Raises ValueError if window is less than 1.", "")
    assert any("window" in instead for instead, _ in tried(source, sandbox).errors)


def test_what_the_docstring_does_not_refuse_is_not_graded(sandbox: Sandbox) -> None:
    assert tried(windowed("returns   float[place]", '("window and values")'), sandbox).errors == ()


def test_what_is_refused_without_any_check_as_well_is_not_graded(sandbox: Sandbox) -> None:
    found = tried(windowed("Raises ValueError if window is less than 1.", '("too small")'), sandbox).errors
    assert {"window": 0} not in [instead for instead, _ in found]  # NumPy cannot subtract arrays of 6 values and 0
    assert {"window": -1} in [instead for instead, _ in found]


# What is answered


ROOT = '''\
def find_root(function, low, high):
    """Return the middle of [low, high] after one halving.

    function  function
    low       float
    high      float
    """
    if function(low) * function(high) > 0:
        raise ValueError("the function must change its sign")
    middle = (low + high) / 2
    return (low + middle) / 2 if function(low) * function(middle) < 0 else (middle + high) / 2
'''
PICKY = '''\
def picky(low: float, high: float):
    """Return what lies between."""
    if not 100 < low < 101:
        raise ValueError("far from it")
    return high - low
'''
SIDES = '''\
import numpy as np


def clipped(values, side, bound):
    """Return the values, none beyond the bound.

    values   float[step]
    side     str   "up" or "down"
    bound    float
    """
    if side == "up":
        return np.minimum(values, bound)
    if side == "down":
        return np.maximum(values, bound)
    raise ValueError("side")
'''


def test_numbers_of_different_ranges_are_tried_and_have_to_be_answered_in_several_draws(sandbox: Sandbox) -> None:
    found = tried(ROOT, sandbox)
    low, high = found.small["low"], found.small["high"]
    assert low.high <= 2**0.5 <= high.low or high.high <= 2**0.5 <= low.low


def test_a_refusal_shows_the_call_that_was_made_and_a_line_to_write_for_each_argument(sandbox: Sandbox) -> None:
    with pytest.raises(Unanswered) as refused:
        tried(PICKY, sandbox)
    told = str(refused.value)
    assert told.startswith("picky answers nothing that was tried: ValueError: far from it (line 4). It was called with")
    assert re.search(r"called with low = \d\.\d+, high = \d\.\d+\. Say in its docstring", told)
    assert "`low   float   from 0.5 to 3`, `high   float   from 0.5 to 3`" in told
    assert refused.value.function.name == "picky"


def test_bounds_of_a_docstring_are_what_a_number_is_drawn_between(sandbox: Sandbox) -> None:
    said = 'between.\n\n    low   float   from 100 to 101\n    high   float   from 20 to 40\n    """'
    found = tried(PICKY.replace('between."""', said), sandbox)
    assert (found.small["low"], found.small["high"]) == (Number(100.1, 100.9), Number(22.0, 38.0))


@pytest.mark.parametrize("said", ['str   "up" or "down"', '"up" or "down"', "str", ""])
def test_each_word_that_an_argument_may_be_is_drawn(said: str, sandbox: Sandbox) -> None:
    found = tried(SIDES.replace('str   "up" or "down"', said), sandbox)
    words = {found.small["side"], *found.worded}
    assert words == {"up", "down"}
    assert {one.large["side"] for one in found.worded.values()} == words - {found.small["side"]}


def test_a_word_has_a_case_of_its_own(sandbox: Sandbox) -> None:
    source = SIDES.replace("side, bound", 'side="up", bound=0.5')
    (entry,) = entries([tried(source, sandbox)], Allowances())
    assert '"side": "down"' in entry.hidden["clipped-case-down"]
    assert entries([tried(source, sandbox)], Allowances(dropped={"clipped-case-down"}))[0].hidden.keys() == (
        entry.hidden.keys() - {"clipped-case-down"}
    )


# What comes back


@pytest.mark.parametrize(
    ("said", "returned", "names"),
    [
        ("", "low, high", {"low": "", "high": ""}),
        ("", "low, low + 1", {"part1": "", "part2": ""}),
        ("returns   float[place]", "values[1:]", "place"),
        ("returns   float[]", "values[1:]", "axis0"),
        ("returns   float[step place]", "values", "step"),
    ],
)
def test_parts_and_axes_are_named_as_the_solution_says(
    said: str, returned: str, names: object, sandbox: Sandbox
) -> None:
    source = f"""\
import numpy as np


def interval(values):
    \"\"\"Return it.

    values   float[step]
    {said}
    \"\"\"
    low, high = values.min(), values.max()
    return {returned}
"""
    assert tried(source, sandbox).returns == names


def test_other_settings_are_other_in_each_argument_that_keeps_the_shape(sandbox: Sandbox) -> None:
    source = (
        "import numpy as np\n\n\n"
        "def told(x, n=2, shift=0.5, keep=True, wide=False):\n"
        '    """Return it.\n\n    x   float[step]\n    """\n'
        "    found = x * n + shift if keep else x - n\n"
        "    return found[:, None] * x if wide else found\n"
    )
    found = tried(source, sandbox)
    other = {name: value for name, value in found.other.items() if value != found.large[name]}
    assert other == {"n": 3, "shift": 1.5, "keep": False}
