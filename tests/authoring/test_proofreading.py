"""Every slip of an author's is one line with file and line number: wrong edits of the toy assignment, one at a time."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import toy_kit
from in_process import autograder_in_process as autograder
from places import KIT
from toy_kit import change, regenerate_into

from autograder.authoring.faults import Faults, explained
from autograder.authoring.fixtures import regenerate as build
from autograder.authoring.proofreading import reading_faults, refuse_faults
from autograder.grading.assignment import find_assignments, load_assignment
from autograder.sandbox.sandbox import Sandbox
from autograder.vocabulary.times import OutOfTimeError

ITEMS, ORACLE, CASES = "fixtures/toy/items.toml", "fixtures/toy/oracle.py", "fixtures/toy/cases.py"
MISTAKES, PROBES = "fixtures/toy/mistakes.py", "fixtures/toy/probes.py"
MODULE, README, NOTEBOOK = "solution/toy/toy.py", "solution/toy/README.md", "solution/toy/notebook.toml"
CONTRACT, DRAWS = "fixtures/toy/contract.toml", "fixtures/toy/counterexamples.py"
OF_THE_EXAM = {
    CONTRACT: """\
[ramp]
"Return factor * x above 0 and 0 below." = ["ramp-values", "no-kink"]

[shift]
"Return x + factor." = ["wrong-way"]
""",
    DRAWS: "DRAWS: dict[str, object] = {\n    'ramp-values': None,\n}\nLEFT_OUT = {'shift-values': 'why'}\n",
}
LINE = re.compile(r"[\w./-]+:\d+: .+")
EXTRAS = """\
[[cell]]
after = "ramp"
id = "try-it"
kind = "code"
source = "ramp(x, 2)"

[[question]]
after = "shift"
id = "why"
points = 5
question = "Why?"
guide = "Because it is so."
"""


class Slip(NamedTuple):
    """A wrong edit, and what must be told: the file's name and line, and words of the sentence."""

    file: str
    right: str
    wrong: str
    place: str
    words: str


AT_CASE = "cases.py:1[789]"  # which write the names of the three cases
OF_TEXT = [
    # items.toml: names
    Slip(ITEMS, 'assignment = "toy"', 'assignment = "toys"', "items.toml:1", "'toys' in a folder called 'toy'"),
    Slip(ITEMS, 'assignment = "toy"\n', "", "items.toml:1", "'assignment' .* is missing"),
    Slip(ITEMS, 'title = "Toy"', 'title = ""', "items.toml:2", "'title' .* is ''"),
    Slip(ITEMS, 'module = "toy"', 'module = "tony"', "items.toml:3", "there is no toy/tony.py in solution/; .*'toy'"),
    Slip(ITEMS, 'module = "toy"', 'module = "toy.py"', "items.toml:3", "no name in Python"),
    Slip(ITEMS, 'module = "toy"', 'module = "class"', "items.toml:3", "no name in Python"),
    Slip(ITEMS, "given = []", 'given = ["data"]', "items.toml:4", "'data' of given is not in solution/toy"),
    Slip(ITEMS, "given = []", 'given = "data"', "items.toml:4", "a list of text"),
    Slip(ITEMS, "given = []", 'given = []\nalso = ["plot.png"]', "items.toml:5", "'plot.png' of also is not in"),
    Slip(ITEMS, "given = []", 'packages = "numpy"', "items.toml:4", "a list of text, but is 'numpy'"),
    Slip(ITEMS, "load_timeout = 20", "load_timeout = -1", "items.toml:5", "a number above 0"),
    Slip(ITEMS, "load_timeout = 20", "load_timout = 20", "items.toml:5", "unknown entry 'load_timout': 'load_timeout'"),
    Slip(ITEMS, "given = []", "given = []\npoints = 100", "items.toml:5", "worth 10 points, not 100"),
    Slip(ITEMS, 'id = "ramp-values"', 'id = "ramp/values"', "items.toml:8", "'id' 'ramp/values' .* single dashes"),
    Slip(ITEMS, 'id = "ramp-values"', 'id = "ramp values"', "items.toml:8", "single dashes"),
    Slip(ITEMS, 'id = "ramp-values"', 'id = "rämp-values"', "items.toml:8", "'rämp-values'"),
    Slip(ITEMS, 'id = "ramp-values"\n', "", "items.toml:7", "'id' .* is missing"),
    Slip(ITEMS, "points = 6", 'points = 6\ncalls = "shift"', "items.toml:12", "'calls' .* list of text, .* 'shift'"),
    Slip(ITEMS, "points = 6", 'points = 6\ncalls = ["shit"]', "items.toml:12", "does not define shit .*; 'shift'"),
    Slip(ITEMS, 'id = "shift-values"', 'id = "ramp-values"', "items.toml:18", "item 'ramp-values' is listed twice"),
    Slip(ITEMS, 'function = "ramp"', 'function = "rump"', "items.toml:9", "does not define rump .*'ramp'"),
    Slip(ITEMS, 'id = "shift-values"', 'id = "ramp"', "items.toml:18", "'ramp' is .* a function's cell .*; .*ramp-v"),
    Slip(MODULE, "def shift(x", "async def shift(x", "items.toml:19", "does not define shift as a plain function or"),
    Slip(ITEMS, 'function = "ramp"', 'function = "the ramp"', "items.toml:9", "no name in Python"),
    Slip(ITEMS, "scaled above 0, nothing", "scaled | nothing", "items.toml:10", "break the table"),
    # items.toml: numbers, hints, cases, layout
    Slip(ITEMS, "points = 6", 'points = "6"', "items.toml:11", "a number above 0, but is '6'"),
    Slip(ITEMS, "points = 6", "points = 0", "items.toml:11", "a number above 0, but is 0"),
    Slip(ITEMS, "points = 6\n", "", "items.toml:7", "'points' .* is missing"),
    Slip(ITEMS, "points = 6\ntimeout = 5", "points = 6\ntimeout = nan", "items.toml:12", "'timeout' .* is nan"),
    Slip(ITEMS, "points = 6\ntimeout = 5", "points = 6\ntimout = 5", "items.toml:12", "'timout': 'timeout' is there"),
    Slip(ITEMS, 'hint = "What happens below 0?"', 'hint = "  "', "items.toml:13", "'hint' .* is ' '"),
    Slip(ITEMS, 'hint = "Which way?"\n', "", "items.toml:17", "'hint' of shift-values should be text, but is missing"),
    Slip(ITEMS, 'public = ["shift-small"]', "public = []", "items.toml:18", "shift-values has no case"),
    Slip(ITEMS, '["shift-small"]', '"shift-small"', "items.toml:24", "'public' .* a list of text, .* 'shift-small'"),
    Slip(ITEMS, '["shift-small"]', '["ramp-small"]', "items.toml:24", "case 'ramp-small' is listed twice"),
    Slip(ITEMS, '["shift-small"]', '["shift/small"]', "items.toml:24", "small letters, digits"),
    Slip(ITEMS, 'hidden = ["ramp-large"]', '"hidden" = ["ramp-large"]', "items.toml:15", "cannot be taken out of the"),
    Slip(ITEMS, "points = 4", "points = 4 points", "items.toml:21", "cannot be read: "),
    Slip(ITEMS, '[[item]]\nid = "ramp', '[item]\nid = "ramp', "items.toml:17", "cannot be read: "),
    # the solution and its texts
    Slip(MODULE, "def shift(x, factor):", "def shift(x, factor)", "toy.py:13", "not Python"),
    Slip(NOTEBOOK, "points = 5", 'points = "five"', "notebook.toml:10", "question.0.points: Input should be a valid"),
    Slip(NOTEBOOK, "Because it is so.", "", "notebook.toml:12", "question.0.guide"),
    Slip(NOTEBOOK, 'kind = "code"', 'kind = "python"', "notebook.toml:4", "'code' or 'text'"),
    Slip(NOTEBOOK, "[[cell]]", "[[cells]]", "notebook.toml:1", "cells: Extra inputs are not permitted"),
    # what the exam reads
    Slip(CONTRACT, "[shift]", "[shift", "contract.toml:4", "cannot be read: "),
    Slip(CONTRACT, '["wrong-way"]', "3", "contract.toml:5", "should have a list of items and mistakes, or the reason"),
    Slip(CONTRACT, "[shift]", "[shft]", "contract.toml:4", "no item grades 'shft'; 'shift' is there"),
    Slip(CONTRACT, "[ramp]\n", "[ramp.a]\n", "contract.toml:1", "'a' of .ramp. should have a list"),
    Slip(CONTRACT, '["wrong-way"]', '" "', "contract.toml:5", "'Return x . factor.' of .shift. should have a list"),
    Slip(CONTRACT, "[ramp]", "so = 3\n[ramp]", "contract.toml:1", "'so' is no table"),
    Slip(DRAWS, "ramp-values", "ramp-value", "counterexamples.py:2", "the item 'ramp-value'; 'ramp-values'"),
    Slip(DRAWS, "shift-values", "shift", "counterexamples.py:4", "LEFT_OUT has the item 'shift'"),
]  # fmt: skip

OF_PYTHON = [
    # syntax and imports
    Slip(ORACLE, "def shift(x, factor):", "def shift(x, factor)", "oracle.py:12", "not Python"),
    Slip(CASES, "from . import oracle", "from . import oracles", "cases.py:4", "ImportError"),
    Slip(CASES, "import numpy as np\n", "import nunpy as np\n", "cases.py:1", "No module named 'nunpy'"),
    Slip(MISTAKES, "MISTAKES = (", "MISSTEPS = (", "mistakes.py:1", "no attribute 'MISTAKES'"),
    Slip(MISTAKES, '"shift", "Which way?", ', '"shift", ', "mistakes.py:6", "TypeError"),
    Slip(PROBES, "def ramp(student, inputs, params):", "def ramp(student, inputs):", AT_CASE, "takes 2 positional"),
    Slip(PROBES, "def ramp(", "import pandas\n\n\ndef ramp(", "probes.py:1", "pandas, which is not in packages"),
    Slip(PROBES, "def ramp(", "import autograder\n\n\ndef ramp(", "probes.py:1", "there is no autograder"),
    Slip(PROBES, "def shift(", "def shft(", AT_CASE, "does not define 'shift'; .*'shft'"),
    # cases
    Slip(CASES, "def drafts(secret, draw)", "def draw_all(secret, draw)", "cases.py:1", "no attribute 'drafts'"),
    Slip(CASES, "def drafts(secret, draw)", "def drafts(secret)", "cases.py:15", "does not take two"),
    Slip(CASES, '("ramp-large", "three', '("ramp-huge", "three', AT_CASE, "ramp-huge is in no item"),
    Slip(ITEMS, 'hidden = ["ramp-large"]', 'hidden = ["ramp-huge"]', "items.toml:15", "ramp-huge has no draft"),
    Slip(CASES, '("shift-small"', '("ramp-small"', AT_CASE, "ramp-small: two drafts"),
    Slip(CASES, '{"x": x}, answer', '{"x": x.tolist()}, answer', AT_CASE, "the input x is of type list"),
    Slip(CASES, '{"x": x}, answer', '{"x": x * np.inf}, answer', AT_CASE,
         "is (?:nan|infinite) somewhere"),
    Slip(CASES, '{"factor": 2.5}', '{"factor": np.ones(2)}', AT_CASE, "stored .*ndarray"),
    Slip(CASES, '{"factor": 2.5}', '{"factor": [2.5, {1}]}', AT_CASE, r"stored .*set"),
    Slip(CASES, '{"factor": 2.5}', '{"factor": 2.5, (1,): 2}', AT_CASE, r"stored .*not tuple"),
    Slip(CASES, "yield Draft(", "yield (", "cases.py:1", "drafts yields tuple; a Draft"),
    Slip(CASES, "np.resize([1, -1], shape)", "np.resize([1, -1], shapes)", "cases.py:22", "NameError: .*'shapes'"),
    Slip(CASES, 'inputs["x"], params["factor"]', 'inputs["y"], params["factor"]', "cases.py:9", "KeyError: 'y'"),
    Slip(CASES, "return [value(", "return (value(", "cases.py:10", "not Python|closing parenthesis"),
    Slip(CASES, 'unchanged("x", inputs["x"])', 'unchanged(name, inputs["x"])', AT_CASE, "expects 'ramp' twice"),
    Slip(CASES, '"row column", "float64"', '"row column", "float46"', "cases.py:10", "dtype 'float46'; one of float64"),
    Slip(CASES, '"row column", "float64"', '"row", "float64"', AT_CASE, "has axes .'row',. and shape .2, 3."),
    Slip(CASES, "(3, 5)", "(3, 3)", AT_CASE, "equal axis lengths"),
    Slip(CASES, '        return [value(', "        return []\n        return [value(", AT_CASE, "nothing is expected"),
    Slip(CASES, '{"factor": 2.5}', '{"factor": 2.5, "lam": 0.0}', AT_CASE, "lam does not matter"),
    # the oracle
    Slip(ORACLE, '{"above", "below"}', '{"above", "below", "at"}', "oracle.py:4", "takes the branch .'at'"),
    Slip(ORACLE, '{"ramp-values":', '{"ramp-value":', "oracle.py:4", "ramp-value: .*'ramp-values'"),
    Slip(ORACLE, "TAKEN = set()", "TAKEN = []", "oracle.py:8", "AttributeError"),
    Slip(ORACLE, "value + factor for", "value + facto for", "oracle.py:13", "NameError: name 'facto'"),
    Slip(ORACLE, "value + factor for", "value + 0 * factor for", AT_CASE, "shift-small: factor does not matter"),
    Slip(ORACLE, "factor * max(value, 0.0)", "factor / 0.0", "oracle.py:9", "ZeroDivisionError"),
    Slip(ORACLE, "    TAKEN.update", "    x += 1\n    TAKEN.update", AT_CASE, "the oracle changes the input x"),
    Slip(ORACLE, "factor * max(value, 0.0)", "1e-12 * factor * max(value, 0.0)", AT_CASE,
         "ramp is too small for its tolerance: other numbers.*zero="),
    Slip(ORACLE, "value + factor for", "value * np.inf + factor for", AT_CASE,
         "shift is infinite somewhere: .*infinite=\"why\" where that is meant"),
    # the catalogue
    Slip(MISTAKES, '"no-kink"', '"no kink"', "mistakes.py:4", "'no kink' is no slug"),
    Slip(MISTAKES, '"not-scaled"', '"no-kink"', "mistakes.py:4", "no-kink: two mistakes"),
    Slip(MISTAKES, '"shift", "Which', '"shfit", "Which', "mistakes.py:6", "defines shift; a text with def shfit"),
    Slip(MISTAKES, '"Which way?"', '""', "mistakes.py:6", "the hint of wrong-way is empty"),
    Slip(MISTAKES, "def shift(x, factor): return x - factor", "def shift(x, factor) x", "mistakes.py:6", "not Python"),
    Slip(MISTAKES, "def shift(x", "def shft(x", "mistakes.py:6", "wrong-way defines shft"),
    Slip(MISTAKES, "return factor * x\"", "return x.clamp(min=0)\"", "mistakes.py:5", "not-scaled: its source is that"),
]  # fmt: skip
REPRESENTATIVE = 7  # of so many wrong edits one of Python is tried by every run of the tests: each builds a set
SLIPS = [*OF_TEXT, *OF_PYTHON]


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = toy_kit.toy_kit(tmp_path_factory.mktemp("proofreading") / "kit", tmp_path_factory)
    for name, text in {NOTEBOOK: EXTRAS, **OF_THE_EXAM}.items():
        (root / name).write_text(text)
    return root


@pytest.fixture
def edited(
    kit: Path, sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., list[str]]]:
    """A function that makes wrong edits and the fixtures, and returns what is told; afterwards files are as before."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # which knows no two edits within a second apart
    before = {name: (kit / name).read_bytes() for name in {slip.file for slip in SLIPS}}

    def told_after(*slips: Slip) -> list[str]:
        for slip in slips:
            change(kit / slip.file, slip.right, slip.wrong)
        folder = kit / "fixtures/toy"
        if faults := reading_faults(folder):
            return [fault.text for fault in faults]
        try:
            build.regenerate(load_assignment(folder), tmp_path / "made", sandbox=sandbox)
        except (Exception, OutOfTimeError) as error:
            return str(explained(error, folder)).splitlines()
        return []

    yield told_after
    for name, data in before.items():
        (kit / name).write_bytes(data)


def is_told(slip: Slip, told: list[str]) -> bool:
    assert all(LINE.fullmatch(line) for line in told), told
    return any(re.search(f"/{slip.place}.*{slip.words}", line) for line in told)


def slip_of(words: str) -> Slip:
    return next(slip for slip in SLIPS if words in slip.words)


def test_assignments_of_the_kit_are_read_without_a_fault() -> None:
    for assignment in find_assignments(KIT):
        assert reading_faults(assignment.folder) == []


def test_wrong_edits_are_told_with_file_and_line(edited: Callable[..., list[str]], kit: Path) -> None:
    assert edited() == []
    before = {name: (kit / name).read_bytes() for name in {slip.file for slip in SLIPS}}
    for slip in dict.fromkeys([*OF_TEXT, *SLIPS[::REPRESENTATIVE]]):
        assert is_told(slip, told := edited(slip)), (slip, told)
        (kit / slip.file).write_bytes(before[slip.file])


@pytest.mark.long
@pytest.mark.parametrize("slip", OF_PYTHON, ids=lambda slip: slip.place + " " + slip.wrong[:20])
def test_every_wrong_edit_of_python_is_told_with_file_and_line(slip: Slip, edited: Callable[..., list[str]]) -> None:
    assert is_told(slip, told := edited(slip)), told


def test_faults_of_several_files_are_told_in_one_run(kit: Path, edited: Callable[..., list[str]]) -> None:
    slips = [slip_of(text) for text in ("'id' 'ramp/values'", "question.0.points", "list of items and mistakes")]
    slips.append(Slip(ORACLE, "def shift(x, factor):", "def shift(x, factor)", "oracle.py:12", "not Python"))
    told = edited(*slips)
    assert all(is_told(slip, told) for slip in slips)
    with pytest.raises(Faults) as refused:
        refuse_faults(kit / "fixtures/toy")
    assert sorted(str(refused.value).splitlines()) == sorted(told)


@pytest.mark.parametrize(
    ("right", "wrong", "count"),
    [
        ("points = 6", "pionts = 6", 1),
        ("given = []", "given = []\npoints = 9", 1),
        ('hidden = ["ramp-large"]', 'hidden = [\n    "ramp-large",  # three rows\n]', 0),
    ],
)
def test_slip_is_told_once_and_what_is_right_not_at_all(
    right: str, wrong: str, count: int, edited: Callable[..., list[str]]
) -> None:
    told = edited(Slip(ITEMS, right, wrong, "", ""))
    assert len(told) == count, told


def test_missing_files_are_named(kit: Path, edited: Callable[..., list[str]]) -> None:
    for name in (ORACLE, MODULE):
        (kit / name).unlink()
    told = " ".join(edited())
    assert "oracle.py:1: is missing; expected values" in told
    assert "items.toml:3: there is no toy/toy.py in solution/" in told


def test_regenerate_prints_faults_and_no_traceback(kit: Path, edited: Callable[..., list[str]]) -> None:
    edited(slip_of("'hint' of shift-values should be text, but is missing"))
    done = autograder(kit, "fixtures", "regenerate")
    assert done.returncode == 3
    assert [line.split(": ")[:2] for line in done.stderr.splitlines()] == [["autograder", "fixtures/toy/items.toml:17"]]


@pytest.mark.usefixtures("edited")
def test_folder_that_cannot_be_written_is_no_fault_of_the_author(kit: Path, tmp_path: Path) -> None:
    (tmp_path / "public").write_text("a file where a folder is to be")
    with pytest.raises(OSError, match="public"):
        regenerate_into(kit / "fixtures/toy", tmp_path)


ENDLESS = "    while True:\n        pass\n"


@pytest.mark.parametrize(
    ("file", "before", "told"),
    [
        (ORACLE, "    TAKEN.update", r"oracle.py:(8|9): the oracle of ramp-\w+ has"),
        (CASES, "    for case, title", r"cases.py:(16|17): the next case has"),
    ],
)
def test_endless_code_is_interrupted_and_told_with_its_line(
    file: str, before: str, told: str, edited: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "MOST_SECONDS", 0.2)
    monkeypatch.setattr("autograder.vocabulary.times.MOST_WAITED", 10_000)  # however busy the machine is
    (line,) = edited(Slip(file, before, f"{ENDLESS}{before}", "", ""))
    assert re.search(rf"{told} not ended after 0.2 s of processor time", line)


def test_text_of_another_encoding_is_told(kit: Path, edited: Callable[..., list[str]]) -> None:
    (kit / CONTRACT).write_bytes(b'a = 1\nb = "\xe9"\n')
    (line,) = edited()
    assert re.match(r"fixtures/toy/contract\.toml:1: cannot be read: .*invalid continuation", line)
