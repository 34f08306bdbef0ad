"""The student's code on the page: the lines, what is marked at them, and that none of it can act."""

from __future__ import annotations

import html
import re
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest
from sample_reports import item, report

from autograder.pages.listing import MAX_BYTES, Listing, Piece, listing_of
from autograder.pages.student_page import feedback_page
from autograder.submissions.reading import read
from autograder.submissions.submission import Candidate, Submission, UnreadCell
from autograder.vocabulary.report import NOT_REACHED, ItemResult, Report

FUNCTIONS = ("one", "two")
HANDOUT = "def one(x):\n    raise NotImplementedError\n\n\ndef two(x):\n    raise NotImplementedError\n"
CODE = """\
import math

LIMIT = 3


def one(x):
    y = x.std(-1, unbiased=False)
    return y / 2


def helper(x):
    return x


@staticmethod
def two(x):
    return helper(x) + 1
"""
NOTEBOOK = Submission(
    "ada",
    "ada/n.ipynb",
    "0" * 64,
    "# cell 2\nimport math\n\n# cell 5\n\nx = 1\ndef one(x):\n    return 1 / 0\n",
    cells=((2, 2), (5, 5)),
)
RIGHT = "def one(x):\n    y = x.std(dim=-1)\n    return y / 2\n"
NO_LINES: dict[str, int] = {}
WRONG = "def one(x):\n    y = x.std(dim=-1, correction=0)\n    return y / 2\n"


def submission(source: str = CODE) -> Submission:
    return Submission("ada", "ada/m.py", "0" * 64, source)


def failed(
    name: str = "one-a", function: str = "one", message: str = "wrong", mistakes: tuple[str, ...] = ()
) -> ItemResult:
    return replace(item(name, 0.0, 4.0, "failed", message=message), function=function, mistakes=mistakes)


def listing(
    source: str | Submission = CODE, *items: ItemResult, cause: str = "", lines: dict[str, int] = NO_LINES
) -> Listing:
    handed = submission(source) if isinstance(source, str) else source
    return listing_of(handed, report_of(*items, cause=cause), FUNCTIONS, lines)


def report_of(*items: ItemResult, cause: str = "") -> Report:
    return replace(report("ada", *(items or (failed(),))), cause=cause)


def text_of(piece: Piece) -> list[tuple[int, str]]:
    return [(line.number, html.unescape(re.sub("<[^>]*>", "", line.html))) for line in piece.lines]


def marked(found: Listing) -> dict[int, list[str]]:
    pieces = [*found.pieces.values(), *found.rest.values()]
    lines = [line for piece in pieces for line in piece.lines if line.items or line.is_cause]
    return {line.number: [one.item for one in line.items] for line in lines}


def page(source: str | Submission, *items: ItemResult, cause: str = "") -> str:
    return feedback_page(report_of(*items, cause=cause), (), None, listing(source, *items, cause=cause))


# Lines


def test_functions_keep_the_numbers_of_their_file() -> None:
    found = listing()
    lines = CODE.split("\n")
    assert text_of(found.pieces["one"]) == [(at, lines[at - 1]) for at in (6, 7, 8)]
    assert text_of(found.pieces["two"]) == [(at, lines[at - 1]) for at in (15, 16, 17)]
    assert found.pieces["two"].place == "lines 15 to 17"
    assert [number for number, _ in text_of(found.rest[""]) if number] == [1, 2, 3, 11, 12]


def test_notebook_is_shown_by_cells_and_their_lines() -> None:
    found = listing(NOTEBOOK)
    assert text_of(found.pieces["one"]) == [(3, "def one(x):"), (4, "    return 1 / 0")]
    assert found.pieces["one"].place == "cell 5, lines 3 to 4"
    assert {cell: text_of(piece) for cell, piece in found.rest.items()} == {
        "2": [(1, "import math")],
        "5": [(2, "x = 1")],
    }


BROKEN = "import math\ndef two(x):\n    return (x\ny = 2\n"
NOTE = "cell 7 was left out: it has a syntax error on its line 3"


def with_broken_cell(source: str = NOTEBOOK.source, line: int = 3, code: str = BROKEN) -> Submission:
    cell = UnreadCell(7, code, line, NOTE)
    functions = NOTEBOOK.functions if source else {}
    return replace(NOTEBOOK, source=source, functions=functions, unread={"two": NOTE}, unread_cells=(cell,))


def test_unreadable_cell_is_marked_at_its_fault() -> None:
    lost = failed("two-a", "two", f"{NOT_REACHED}: its cell could not be read.")
    cause = f"{NOTE[0].upper()}{NOTE[1:]}."
    found = listing(with_broken_cell(), lost, cause=cause)
    (cell,) = found.unread
    assert (cell.place, text_of(cell)) == ("cell 7, lines 1 to 5", [*enumerate(BROKEN.split("\n"), 1)])
    (marked_,) = [line for line in cell.lines if line.said]
    assert (marked_.number, marked_.is_cause, marked_.said) == (3, True, "Python cannot read on from here")
    assert found.cause == (marked_.at, "Line 3 of cell 7 (text cells count)")
    assert "one" in found.pieces
    shown = page(with_broken_cell(), lost, cause=cause)
    assert f'id="line-{marked_.at}"' in shown
    assert f'<a href="#line-{marked_.at}">Line 3 of cell 7' in shown


def test_wholly_unreadable_notebook_is_shown() -> None:
    found = listing(with_broken_cell(source="", line=0))
    assert text_of(found.unread[0])[2] == (3, "    return (x")
    assert [line.said for line in found.unread[0].lines if line.said] == ["Python cannot read this cell"]
    assert (found.pieces, found.rest) == ({}, {})


@pytest.mark.parametrize(
    "code", ["x = (\n" * 20_000, "(" * 100_000, "<script>\0" * 9_000, '"""' + "é\u202e\n" * 10_000]
)
def test_hostile_unreadable_cells_are_bounded_text(code: str) -> None:
    cells = tuple(UnreadCell(number, code, 50_000, NOTE) for number in range(1, 201))
    shown = feedback_page(report_of(), (), None, listing(replace(NOTEBOOK, unread_cells=cells)))
    assert len(shown.encode()) < MAX_BYTES + 40_000
    assert "<script>\\" not in shown
    assert "188 more cells that could not be read" in shown


def test_unparsable_file_is_shown_whole() -> None:
    broken = "def one(x:\n    return 1\n"
    found = listing(broken)
    assert not found.pieces
    assert text_of(found.rest[""]) == [(1, "def one(x:"), (2, "    return 1")]


# Marks

CELL = "Line 4 of cell 5 (text cells count)"


@pytest.mark.parametrize(
    ("source", "told", "cause", "at", "place"),
    [
        (CODE, "one raised E.\nLine 8 of your file:\n  return y / 2", "", 8, (8, "Line 8 of your file")),
        (NOTEBOOK, "one raised E.\nLine 4 of cell 5 (text cells count).", "", 4, (8, CELL)),
        (CODE, f"{NOT_REACHED}: no import.", "No import.\nLine 3 of your file:\n  L", 3, (3, "Line 3 of your file")),
    ],
    ids=["file", "cell", "not reached"],
)
def test_failure_is_marked_at_its_line(
    source: str | Submission, told: str, cause: str, at: int, place: tuple[int, str]
) -> None:
    found = listing(source, failed(message=told), cause=cause)
    assert marked(found) == {at: [] if cause else ["one-a"]}
    assert (found.cause if cause else found.places["one-a"]) == place
    assert f'<a href="#line-{place[0]}">{place[1]}' in page(source, failed(message=told), cause=cause)


def test_failure_without_evidence_marks_no_line_and_names_its_function() -> None:
    found = listing(CODE, failed(), replace(item("two-a"), function="two"))
    assert marked(found) == {}
    assert 'Somewhere in <a href="#code-one">your <code>one</code></a>, lines 6 to 8' in page(CODE, failed())


LINES = {"one-a": 7}
NAMED = failed(mistakes=("population-std",))


def test_named_mistake_is_marked_at_its_line_with_two_lines_around() -> None:
    found = listing(CODE, NAMED, lines=LINES)
    assert marked(found) == {7: ["one-a"]}
    assert [line.number for line in found.around(7)] == [6, 7, 8]


# Hostile text

HOSTILE = {
    "script": 'def one(x):\n    return "</span></pre></script><script>window.pwned=1</script>"\n',
    "attributes": "def one(x):\n    \"' onmouseover='alert(1)' x=\"\n# \"><img src=x onerror=alert(1)>\n",
    "right to left": "def one(x):\n    # \u202e } \u2066 if admin\u2069 \u200bbegin\n    return 1\n",
    "controls": "def one(x):\n    '''\x1b[2J\x07\x0c\x85\u2028'''\n    return 1\n",
    "surrogates": "def one(x):\n    return '\ud800'\n",
    "tabs": "def one(x):\n\tif x:\n\t\treturn 1\r\n\treturn 2\r",
    "one line": "def one(x):\n    return '" + "a" * 100_000 + "'\n",
    "many numbers": "def one(x):\n    return [" + "1," * 30_000 + "]\n",
    "many lines": "def one(x):\n" + "    x = [1, 2, 3, 'four']  # <five>\n" * 8_000 + "    return x\n",
    "many functions": "".join(f"def f{n}(x):\n    return {n}\n" for n in range(1_000)) + "def one(x):\n    return 1\n",
    "brackets": "def one(x):\n    return " + "(" * 5_000 + "\n",
    "deep": "def one(x):\n    return " + "-" * 9_000 + "1\n",
    "long sum": "def one(x):\n    return " + "+".join("x" * 2_000) + "\n",
    "open string": 'def one(x):\n    """' + "\n<b>" * 2_000,
    "a null": "def one(x):\n    return 1\0\n",
    "template": "def one(x):\n    return '{{ 7 * 7 }} {% raw %}'\n",
}


@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_code_is_bounded_text(source: str) -> None:
    found = listing(source, NAMED, lines=LINES)
    pieces = [*found.pieces.values(), *found.rest.values()]
    assert sum(len(line.html.encode()) for piece in pieces for line in piece.lines) <= MAX_BYTES + 2_000
    shown = feedback_page(report_of(NAMED), (), None, found)
    assert len(shown.encode(errors="surrogatepass")) < 150_000
    tags = set(re.findall(r"<(\w+)[^>]*>", "".join(line.html for piece in pieces for line in piece.lines)))
    assert tags <= {"span"}
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\ud800-\udfff]", shown)


def test_long_function_keeps_what_is_marked() -> None:
    lines = [
        "def one(x):",
        *(f"    x = {n} + 1  # a comment that takes some room" for n in range(5_000)),
        "    return x",
    ]
    told = failed(message="one raised E.\nLine 4000 of your file.")
    found = listing("\n".join(lines), told)
    numbers = [line.number for line in found.pieces["one"].lines]
    assert {1, 3995, 4000, 4005} <= set(numbers)
    assert "lines not shown here" in "".join(line.html for line in found.pieces["one"].lines)
    assert marked(found) == {4000: ["one-a"]}


def handed_in(data: bytes, folder: Path) -> Submission:
    (folder / "m.py").write_bytes(data)
    return read(Candidate("ada", folder / "m.py", "ada/m.py"), "m", HANDOUT)


def test_bytes_that_are_no_text_are_told_and_not_shown(tmp_path: Path) -> None:
    submission = handed_in(b"def one(x):\n    return 'caf\xe9'\n", tmp_path)
    assert "is not UTF-8 text" in submission.problem
    assert not listing(submission).rest


def test_ten_megabytes_are_told_and_take_no_memory(tmp_path: Path) -> None:
    tracemalloc.start()
    submission = handed_in(b"x = 1\n" * 1_700_000, tmp_path)
    shown = page(submission)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert submission.problem == "ada/m.py is larger than 1 MiB."
    assert len(shown) < 60_000
    assert most < 40e6
