"""What `new` finds out about a solution by calling it: arguments, what comes back, what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autograder.authoring.beginning.answers import Tried, Unanswered
from autograder.authoring.beginning.entries import Allowances, entries
from autograder.authoring.beginning.signatures import solution_of
from autograder.authoring.beginning.trial import Bench
from autograder.authoring.calls import Drawn, Number, Whole
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
    assert [one.name for one in refused.value.functions] == ["picky"]


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
        ("returns   float[place], float", "values[1:], low", {"part1": "place", "part2": ""}),
        ("Returns:\n        array of shape (place,)", "values[1:]", "place"),
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


# Arrays of whole numbers


INDICES = '''\
import numpy as np


def picked(logits, targets, ignore_index=-100):
    """Return the logit of each target.

    logits    float[token label]
    targets   int[token]   SAID
    returns   float[token]
    """
    return logits[np.arange(len(targets)), targets] * (targets != ignore_index)
'''


@pytest.mark.parametrize(
    ("said", "most"), [("from 0 to 2", (2, 2)), ("of whole numbers, 1 to 2", (2, 2)), ("below label", (3, 6))]
)
def test_what_counts_places_of_an_axis_stays_within_its_bounds(
    said: str, most: tuple[int, int], sandbox: Sandbox
) -> None:
    found = tried(INDICES.replace("SAID", said), sandbox)
    drawn = [one["targets"] for one in (found.small, found.large)]
    assert all(isinstance(one, Drawn) and one.kind == "whole" for one in drawn)
    assert tuple(one.high for one in drawn) == most
    (entry,) = entries([found], Allowances())
    assert f'"whole", {drawn[0].low}, {most[0]})' in next(iter(entry.public.values()))


def test_a_default_outside_the_bounds_of_the_docstring_gives_way_to_them(sandbox: Sandbox) -> None:
    source = 'def powers(x, n=20):\n    """Return powers.\n\n    x   float\n    n   int   from 2 to 6\n    """\n'
    found = tried(f"{source}    return [x**k for k in range(n)]\n", sandbox)
    assert all(2 <= one["n"] <= 6 for one in (found.small, found.large, found.other))


# What cannot be graded, and why


BESIDE_TORCH = "import torch\nimport numpy as np\n\n\ndef mask(n: int):\n    return RETURNED\n"


@pytest.mark.parametrize(
    ("returned", "why"),
    [
        ("np.tri(n)", "a NumPy array that is no tensor: the file imports torch, so all functions take and return"),
        ("torch.full((n,), torch.nan)", "it returned nan, which no answer equals and which is not graded"),
        ("None", "it returned nothing"),
    ],
)
def test_why_an_answer_cannot_be_graded_is_said(returned: str, why: str, sandbox: Sandbox) -> None:
    with pytest.raises(Unanswered, match=re.escape(why)):
        tried(BESIDE_TORCH.replace("RETURNED", returned), sandbox)


def test_all_functions_that_answer_nothing_are_told_at_once(sandbox: Sandbox) -> None:
    solution = solution_of(
        PICKY + PICKY.replace("picky", "fussy") + "def easy(x: float):\n    return x\n", Path("s.py")
    )
    with pytest.raises(Unanswered) as refused:
        Bench(solution, sandbox).all_tried()
    assert [line.split()[0] for line in refused.value.lines] == ["picky", "fussy"]


def test_each_argument_that_one_sentence_asks_to_mention_is_held_to_that(sandbox: Sandbox) -> None:
    said = "Raises ValueError, which mentions mode, of another one, and ValueError, which mentions window, below 1."
    (function,) = solution_of(windowed(said, '("window")'), Path("s.py")).functions
    assert function.asks_to_mention("mode")
    assert function.asks_to_mention("window")
    assert not function.asks_to_mention("values")


def test_a_misspelt_row_of_the_docstring_is_told(sandbox: Sandbox) -> None:
    said = 'between.\n\n    low   float\n    hihg   float   from 200 to 201\n    """'
    with pytest.raises(Unanswered, match="its docstring has 'hihg' where 'high' is an argument"):
        tried(PICKY.replace('between."""', said), sandbox)


def test_a_file_that_cannot_be_loaded_is_told_once_and_as_that(sandbox: Sandbox) -> None:
    source = "import nosuchpackage\n\n\ndef f(x):\n    return x\n\n\ndef g(x):\n    return x\n"
    with pytest.raises(Unanswered) as refused:
        Bench(solution_of(source, Path("s.py")), sandbox).all_tried()
    assert len(refused.value.lines) == 1
    assert refused.value.lines[0].startswith("s.py cannot be loaded: ModuleNotFoundError: No module named 'nosuchpack")


UNGRADED = {
    "x.sort()\n    return x": "it changes its argument x, which must stay as it is",
    "(yield x)": "it returned a generator, and numbers, arrays, text",
    "return x + np.random.default_rng().normal()": "it answers the same arguments with other numbers: give it a seed",
    "print(x)": "it returned nothing, and what it prints or changes is not graded",
}


@pytest.mark.parametrize("body", UNGRADED)
def test_what_no_case_can_hold_to_anything_is_told_without_advice_on_arguments(body: str, sandbox: Sandbox) -> None:
    source = f'import numpy as np\n\n\ndef f(x):\n    """Do it.\n\n    x   float[entry]\n    """\n    {body}\n'
    with pytest.raises(Unanswered, match=UNGRADED[body]) as refused:
        tried(source, sandbox)
    assert "docstring" not in str(refused.value)


OPTIONS = '''\
import numpy as np


def scaled(x, weights=None, bounds=(0, 1), *, by=2.0, HOW):
	"""Return it.

	x   float[row column]
	"""
	found = x * by if weights is None else x * weights
	return found + bounds[0] if how else found
'''


def test_optional_arguments_arguments_by_name_and_tabs_are_taken_as_they_are(sandbox: Sandbox) -> None:
    found = tried(OPTIONS.replace("HOW", "how=True"), sandbox)
    assert (found.small["weights"], found.small["bounds"], found.small["by"]) == (None, [0, 1], 2.0)
    (entry,) = entries([found], Allowances())
    assert 'by_name=["x", "weights", "bounds", "by", "how"]' in next(iter(entry.public.values()))
    assert any('by_name=["by", "how"]' in text for text in entry.hidden.values())


# What a term draws

MASK = """\
import numpy as np


def band(length, width, causal=True):
    \"\"\"Return which keys a query sees.

    length   int   from 3 to 12
    width    int   from 1 to 2
    \"\"\"
    k = np.arange(length)
    distance = k[:, None] - k[None, :]
    seen = (np.abs(distance) < width) & ((distance >= 0) | (not causal))
    return seen * 1.0
"""


def test_hidden_cases_of_whole_numbers_alone_draw_them(sandbox: Sandbox) -> None:
    found = tried(MASK, sandbox)
    assert all(type(one) in (int, bool) for one in found.small.values())
    for arguments in (found.large, found.other, found.brief):
        assert isinstance(arguments["length"], Whole)
        assert 3 <= arguments["length"].low < arguments["length"].high <= 12
        assert arguments["width"] == 1
    text = "\n".join(entries([found], Allowances())[0].hidden.values())
    assert '"length": Whole(' in text
    assert "example=True" not in text


def test_a_hidden_case_in_which_nothing_can_be_drawn_is_a_named_example(sandbox: Sandbox) -> None:
    source = """\
def kind(word):
    \"\"\"Return what it is.

    word   "up" or "down"
    \"\"\"
    return "a way" if word in ("up", "down") else "nothing"
"""
    entry = entries([tried(source, sandbox)], Allowances())[0]
    assert all("example=True" in text for text in entry.hidden.values())
    assert entry.hidden


def test_parts_are_called_as_the_last_return_with_names_calls_them(sandbox: Sandbox) -> None:
    source = """\
def split(values, whole):
    \"\"\"Return both halves.

    values   list of numbers
    whole    float   above 0
    \"\"\"
    if not values:
        return 0.0, whole
    low, high = sum(values) - 1.0, whole + 1.0
    return low, high
"""
    assert list(tried(source, sandbox).returns) == ["low", "high"]
