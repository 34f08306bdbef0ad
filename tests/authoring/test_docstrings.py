"""What `new` reads in a docstring, in whichever style it is written."""

from __future__ import annotations

import pytest

from autograder.authoring import docstrings

STYLES = {
    "columns": """\
Return what is scaled.

logits        float[state action]
temperature   float   above 0
mode          "up" or "down"
returns       float[state action]
""",
    "google": """\
Return what is scaled.

Args:
    logits (np.ndarray): The logits, an array of shape (state, action).
    temperature (float): How flat, above 0.
    mode (str): "up" or "down".

Returns:
    np.ndarray: an array of shape (state, action).
""",
    "numpy": """\
Return what is scaled.

Parameters
----------
logits : ndarray
    The logits, of shape (state, action).
temperature : float
    How flat, above 0.
mode : {"up", "down"}
    "up" or "down".
""",
    "sphinx": """\
Return what is scaled.

:param logits: the logits, an array of shape (state, action)
:param temperature: float, above 0
:param str mode: "up" or "down"
:returns: array of shape (state, action)
""",
}


@pytest.mark.parametrize("style", STYLES)
def test_axes_kinds_bounds_and_words_are_read_in_every_style(style: str) -> None:
    text = STYLES[style]
    assert docstrings.described("logits", text)[0] == ("state", "action")
    assert docstrings.described("temperature", text) == ((), "number")
    assert docstrings.likely(docstrings.paragraph("temperature", text)) == "positive"
    assert docstrings.words("mode", text) == ("up", "down")
    assert docstrings.returned(text) == (() if style == "numpy" else (("state", "action"),))


PROSE = """\
Return what is taken over the tokens.

mode "max": the greatest of each; other words are refused, and
learning_rate times the gradient is taken off.

"""


@pytest.mark.parametrize("row", ["{}   {}", "{}: {}", "{} : {}", "{} ({}): as above", ":param {}: {}"])
def test_a_line_of_prose_that_begins_with_the_name_of_an_argument_is_not_its_row(row: str) -> None:
    text = PROSE + row.format("mode", '"mean", "max" or "last"') + "\n" + row.format("learning_rate", "float, 0 to 1")
    assert docstrings.words("mode", text) == ("mean", "max", "last")
    assert docstrings.paragraph("learning_rate", text).endswith(row.format("learning_rate", "float, 0 to 1").strip())
    assert docstrings.bounds(docstrings.paragraph("learning_rate", text)) == (0, 1)


@pytest.mark.parametrize("kind", ["int[step]", "float from 0 to 1", "probabilities[action]"])
def test_a_row_may_have_a_single_blank_before_its_kind(kind: str) -> None:
    assert docstrings.paragraph("rate", f"Return it.\n\nrate times x is taken off.\nrate {kind}\n") == f"rate {kind}"


@pytest.mark.parametrize(
    ("said", "axes"),
    [
        ("returns   float[state], float", (("state",), ())),
        ("returns   (float[a b], int[c])", (("a", "b"), ("c",))),
        ("returns   float[a], sorted, float numbers", (("a",),)),
        ("Returns the softmax of a vector.", ()),
        ("", ()),
    ],
)
def test_axes_of_each_part_that_is_returned(said: str, axes: object) -> None:
    assert docstrings.returned(f"Return it.\n\n{said}\n") == axes


@pytest.mark.parametrize(
    ("said", "bounds"),
    [
        ("from 0 to 3", (0, 3)),
        ("int, 0 to 3", (0, 3)),
        ("between -1.5 and 2", (-1.5, 2)),
        ("in [0, 1]", (0, 1)),
        ("of size 3", None),
        ("x0 to 3", None),
    ],
)
def test_bounds_are_the_two_numbers_that_are_said(said: str, bounds: object) -> None:
    assert docstrings.bounds(said) == bounds


ROWS = """\
Return the area.

width    float[entry]
height   float   from 1 to 3
side     "up" or "down"
f        function
"""


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("height", "hieght", ["'hieght' where 'height' is an argument"]),
        ("float[entry]", "flaot[entry]", ["'flaot' of width, where 'float' may be meant"]),
        ("function", "fucntion", ["'fucntion' of f, where 'function' may be meant"]),
        ("from 1 to 3", "from 3 to 1", ["'from 3 to 1' of height: the lesser number first"]),
        ("float   from", "a float from", []),
        ("float   from", "factor   from", []),
        ("float   from", "floats   from", []),
        ("float   from", "flot   from", ["'flot' of height, where 'float' may be meant"]),
        ("", "", []),
    ],
)
def test_slips_of_a_docstring_are_told_apart_from_what_is_read(right: str, wrong: str, told: list[str]) -> None:
    assert list(docstrings.slips(ROWS.replace(right, wrong, 1), ["width", "height", "side", "f"])) == told
