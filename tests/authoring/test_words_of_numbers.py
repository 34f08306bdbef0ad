"""Words of a docstring that say what numbers are like: each is drawn, or the author is told that it is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from places import KIT

from autograder.authoring.beginning.arguments import choices, every_draw, larger, others, sized, with_wholes
from autograder.authoring.beginning.entries import _argument
from autograder.authoring.beginning.signatures import Function, read_solution, solution_of
from autograder.authoring.calls import Drawn, Number, Whole
from autograder.vocabulary.errors import UsageError


def function(row: str, body: str = "pass") -> Function:
    name = row.split()[0].strip(":`")
    text = f'def g({name}):\n    """Return it.\n\n    {row}\n    """\n    {body}\n'
    return solution_of(text, Path("s.py")).functions[0]


def first_draw(row: str, sizes: tuple[int, ...] = (5, 7, 6, 8)) -> list[np.ndarray]:
    """Arrays that `new` tries first for that row, of several seeds."""
    chosen = function(row)
    (one,) = sized(chosen, next(iter(choices(chosen))), sizes).values()
    assert isinstance(one, Drawn)
    return [one.array(np.random.default_rng(seed)) for seed in range(20)]


def rises(array: np.ndarray) -> bool:
    return bool((np.diff(array) > 0).all())


HOLDS = {
    "x   float[step]   sorted": lambda x: bool((np.diff(x) >= 0).all()),
    "x : array_like, 1-D, sorted in ascending order": lambda x: bool((np.diff(x) >= 0).all()),
    "x   int[step]   sorted": lambda x: bool((np.diff(x) >= 0).all()),
    "x   float[step]   strictly increasing": rises,
    "x   int[step]   strictly increasing": rises,
    "x   int[row step]   increasing": rises,
    "x   float[step]   monotonically decreasing": lambda x: rises(-x),
    "x   float[step]   sorted in descending order": lambda x: rises(-x),
    "x   int[step]   in decreasing order": lambda x: rises(-x),
    "x   int[row step]   distinct": lambda x: len(set(x.ravel().tolist())) == x.size,
    "x   int[step]   unique values": lambda x: len(set(x.tolist())) == x.size,
    "x   int[step]   even numbers": lambda x: bool((x % 2 == 0).all()),
    "x   int[step]   odd": lambda x: bool((x % 2 == 1).all()),
    "x   int[step]   positive": lambda x: bool((x > 0).all()),
    "x   int[step]   nonzero": lambda x: bool((x != 0).all()),
    "x   int[step]   non-negative": lambda x: bool((x >= 0).all()),
    "x   float[step]   non-negative": lambda x: bool((x >= 0).all()),
    "x   float[step]   negative": lambda x: bool((x < 0).all()),
    "x   float[state]   non-negative, summing to 1": lambda x: bool(np.isclose(x.sum(), 1)),
    "x   float[state]   weights that add up to one": lambda x: bool(np.isclose(x.sum(), 1)),
    "x   int[n]   a permutation of 0 to n - 1": lambda x: sorted(x.tolist()) == list(range(x.size)),
    "x   square matrix": lambda x: x.shape[0] == x.shape[1],
}


@pytest.mark.parametrize("row", HOLDS)
def test_a_word_that_binds_holds_of_everything_that_is_drawn(row: str) -> None:
    assert all(HOLDS[row](x) for x in first_draw(row))
    assert function(row).unbound == []


@pytest.mark.parametrize(
    "row",
    [
        "x   int[step]   not necessarily distinct",
        "x   float[step]   need not be sorted",
        "x   float[step]   unsorted",
        "x   float[step]   may be negative, if sorted or not",
        "x   float[step]   the positive class comes first",
        "x   float[step]   positive or negative",
        "x   int[step]   number of even steps",
    ],
)
def test_what_need_not_be_binds_nothing(row: str) -> None:
    (one,) = function(row).arguments
    assert (one.also, one.range, one.likely in ("", "whole")) == ("", None, True)


@pytest.mark.parametrize(
    ("row", "low", "high"),
    [
        ("x   float   at least 1", 1, 3),
        ("x   float   greater than 1", 1, 3),
        ("x   float   no less than 2", 2, 4),
        ("x   float   0 < x < 1", 0, 1),
        ("x   float   less than 1", -1, 1),
        ("x   float   negative", -3, -0.5),
        ("x   float   positive", 0, 9),
        ("x   float   > 0", 0, 9),
    ],
)
def test_every_number_that_is_tried_is_within_what_is_said(row: str, low: float, high: float) -> None:
    tried = [arguments["x"] for arguments in choices(function(row))]
    assert all(isinstance(one, Number) and low <= one.low < one.high <= high for one in tried)


@pytest.mark.parametrize(
    ("row", "right"),
    [
        ("n   int   even", lambda n: n % 2 == 0),
        ("n   int   odd and positive", lambda n: n % 2 == 1),
        ("n   int   even, from 4 to 12", lambda n: n % 2 == 0 and 4 <= n <= 12),
        ("n   int   at least 3", lambda n: n >= 3),
        ("n   int   1 <= n < 4", lambda n: 1 <= n < 4),
        ("n   int   fewer than 3", lambda n: n < 3),
    ],
)
def test_every_whole_number_that_is_tried_is_as_it_is_said(row: str, right: object) -> None:
    chosen = function(row)
    (argument,) = chosen.arguments
    assert callable(right)
    for arguments in choices(chosen):
        n = arguments["n"]
        assert right(n)
        assert all(right(one) for one in (*larger(argument, n), *others(argument, n)))
        varied = with_wholes(chosen, arguments)
        assert all(right(one["n"]) for one in every_draw(varied)) or varied == arguments
        if isinstance(varied["n"], Whole):
            assert {right(varied["n"].drawn(np.random.default_rng(seed))) for seed in range(9)} == {True}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("a   float[row column]   symmetric positive definite", ["symmetric", "positive definite"]),
        ("a   float[row column]   a square matrix", ["square"]),
        ("a   float[n n]   a square matrix", []),
        ("f   function   monotonically increasing", ["monotonically increasing"]),
        ("f   function   convex and continuous", []),
        ("text   str   a palindrome", ["palindrome"]),
        ("k   int   a power of two", ["power of two"]),
        ("grid   float[step]   evenly spaced, increasing", ["evenly spaced"]),
        ("a   float[row column]   not symmetric", []),
        ("x   float[step]   non-empty", []),
    ],
)
def test_a_word_that_binds_nothing_is_told_with_its_line(row: str, words: list[str]) -> None:
    name = row.split()[0]
    assert function(row).unbound == [(4, f"{word!r} of {name}") for word in words]


def test_an_array_as_long_as_another_has_its_axes() -> None:
    text = (
        'def g(x, y):\n    """Return it.\n\n    x : array_like of shape (n,)\n        Positions.\n'
        '    y : array_like, same length as `x`\n        Values, prime.\n    """\n    pass\n'
    )
    (found,) = solution_of(text, Path("s.py")).functions
    assert [one.axes for one in found.arguments] == [("n",), ("n",)]
    assert found.unbound == [(7, "'prime' of y")]


@pytest.mark.parametrize(
    ("drawn", "told"),
    [
        (Drawn("step", (9,), "whole", 0, 4, "distinct"), "there are 5 different numbers, and 9 are to be drawn"),
        (Drawn("step", (4,), "whole", 0, 4, "increasing even"), "there are 3 different even numbers, and 4 are"),
        (
            Drawn("step", (4,), also="incraesing"),
            "also has the word 'incraesing': of the words sorted, increasing, decr",
        ),
        (Drawn("step", (4,), also="even"), "numbers that are even are whole"),
        (Whole(3, 3, "even"), "from 3 to 3 there is no even number"),
        (Whole(3, 9, "evn"), "also has the word 'evn': of the words even, odd"),
    ],
)
def test_what_cannot_be_drawn_is_said(drawn: Drawn | Whole, told: str) -> None:
    draw = drawn.array if isinstance(drawn, Drawn) else drawn.drawn
    with pytest.raises(ValueError, match=told):
        draw(np.random.default_rng(0))


def test_words_are_written_into_cases_as_they_are_drawn() -> None:
    for one in (
        Drawn("step", (3,), "whole", 0, 9, "distinct"),
        Whole(2, 8, "even"),
        Drawn("a b", (2, 3), also="sorted"),
    ):
        assert eval(_argument(one), {"Drawn": Drawn, "Whole": Whole}) == one


def test_new_tells_which_words_bind_nothing_and_draws_the_others(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(
        "import numpy as np\n\n\n"
        'def gaps(grid, weights):\n    """Return the gaps.\n\n    grid      float[node]   increasing\n'
        '    weights   float[node]   symmetric\n    """\n'
        '    if np.any(np.diff(grid) <= 0):\n        raise TypeError("no grid")\n'
        "    return np.diff(grid) * weights[1:]\n"
    )
    command = [sys.executable, "-m", "autograder", "new", "gaps", "--from", "s.py", "--yes"]
    done = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": str(KIT)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "s.py:8: 'symmetric' of weights binds nothing that is drawn; fixtures/gaps/cases.py says what" in done.stdout
    assert 'Drawn("node", (3,), also="increasing")' in (tmp_path / "fixtures/gaps/cases.py").read_text()


@pytest.mark.parametrize(
    "row", ["words   list of words", "words (list[str]): what is read", "words : sequence of strings"]
)
def test_lists_of_texts_are_tried_and_never_arrays(row: str) -> None:
    chosen = function(row)
    (argument,) = chosen.arguments
    assert (argument.kind, argument.axes) == ("texts", ())
    (first,) = next(iter(choices(chosen))).values()
    assert first == ["pear", "fig", "apple"]
    assert larger(argument, first)[0][:3] == first


@pytest.mark.parametrize(
    ("row", "word"),
    [
        ("f   function of x and y, such as np.hypot(x, y)", "such as np.hypot(x, y)"),
        ("f   function of x, e.g. that of a pendulum", "e.g. that of a pendulum"),
        ("f   function of x, such as x * x", ""),
    ],
)
def test_an_example_of_a_function_that_is_no_formula_is_told(row: str, word: str) -> None:
    assert function(row).unbound == ([(4, f"{word!r} of f")] if word else [])


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("s.py", b'def f(x):\n    "caf\xe9"\n', r"s.py is not UTF-8: .* at byte 18. Save it as UTF-8\."),
        ("s.ipynb", b"{}", r"s.ipynb is a notebook: give a Python file"),
    ],
)
def test_a_file_that_is_no_solution_is_one_sentence(name: str, data: bytes, told: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UsageError, match=told):
        read_solution(tmp_path / name)
