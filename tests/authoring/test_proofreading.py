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
from toy_kit import ITEMS as ITEMS_TEXT
from toy_kit import change

from autograder.authoring.fixtures import regenerate as time_limit
from autograder.authoring.fixtures.verify import regenerate_into
from autograder.authoring.handout.release import without_hidden
from autograder.authoring.proofreading.fault import Fault, Faults
from autograder.authoring.proofreading.proofread import explained, proofread, reading_faults, refuse_faults
from autograder.authoring.proofreading.text_files import read_toml
from autograder.grading.assignment import find_assignments
from autograder.sandbox.sandbox import Sandbox
from autograder.vocabulary.errors import FixtureError

ITEMS, ORACLE, CASES = "fixtures/toy/items.toml", "fixtures/toy/oracle.py", "fixtures/toy/cases.py"
MISTAKES, PROBES = "fixtures/toy/mistakes.py", "fixtures/toy/probes.py"
MODULE, README, NOTEBOOK = "solution/toy/toy.py", "solution/toy/README.md", "solution/toy/notebook.toml"
CONTRACT = "fixtures/toy/contract.toml"
OF_THE_EXAM = {
    CONTRACT: """\
[costly]
ramp = "one value"

[ramp]
"Return factor * x above 0 and 0 below." = ["ramp-values", "no-kink"]

[shift]
"Return x + factor." = ["wrong-way"]
""",
}
LINE = re.compile(r"[\w./-]+:\d+: .+; .+")
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
CATALOGUE = """\
from autograder.authoring.catalogue import Correct

RAMP = Correct("ramp", "def ramp(x, factor): return factor * x.clamp(min=0)")

MISTAKES = (
    RAMP.but("no-kink", "What happens below 0?", (".clamp(min=0)", "")),
    RAMP.but("not-scaled", "Where is the factor?", ("factor * ", "")),
)
"""


FORMULA = '__import__("autograder.authoring.drafts.draws").authoring.drafts.draws.Formula("x", "x")'
FORMULA_TOLD = r"stored: raises\.none\.f is Formula; a Formula among the arguments of the call"


class Slip(NamedTuple):
    """A wrong edit, and what must be told: the file's name and line, and words of the sentence."""

    file: str
    right: str
    wrong: str
    place: str
    words: str


OF_TEXT = [
    # items.toml: names
    Slip(ITEMS, 'assignment = "toy"', 'assignment = "toys"', "items.toml:1", "'toys' in a folder called 'toy'"),
    Slip(ITEMS, 'assignment = "toy"\n', "", "items.toml:1", "assignment is missing"),
    Slip(ITEMS, 'title = "Toy"', 'title = ""', "items.toml:2", "title is ''"),
    Slip(ITEMS, 'module = "toy"', 'module = "tony"', "items.toml:3", "there is no toy/tony.py in solution/; .*'toy'"),
    Slip(ITEMS, 'module = "toy"', 'module = "toy.py"', "items.toml:3", "no name in Python"),
    Slip(ITEMS, 'module = "toy"', 'module = "class"', "items.toml:3", "no name in Python"),
    Slip(ITEMS, "given = []", 'given = ["data"]', "items.toml:4", "'data' of given is not in solution/toy"),
    Slip(ITEMS, "given = []", 'given = "data"', "items.toml:4", "a list of text"),
    Slip(ITEMS, "given = []", 'given = []\nalso = ["plot.png"]', "items.toml:5", "the file 'plot.png' of also"),
    Slip(ITEMS, "given = []", 'packages = "numpy"', "items.toml:4", "packages is 'numpy'; a list of text"),
    Slip(ITEMS, "load_timeout = 20", "load_timeout = -1", "items.toml:5", "a number above 0"),
    Slip(ITEMS, "load_timeout = 20", "load_timout = 20", "items.toml:5", "unknown entry 'load_timout'; 'load_timeout'"),
    Slip(ITEMS, "given = []", "given = []\npoints = 100", "items.toml:5", "worth 10 points, not 100"),
    Slip(ITEMS, 'id = "ramp-values"', 'id = "ramp/values"', "items.toml:8", "'ramp/values' cannot be a file's name"),
    Slip(ITEMS, 'id = "ramp-values"', 'id = "ramp values"', "items.toml:8", "single dashes"),
    Slip(ITEMS, 'id = "ramp-values"', 'id = "rämp-values"', "items.toml:8", "'rämp-values'"),
    Slip(ITEMS, 'id = "ramp-values"\n', "", "items.toml:7", "id is missing"),
    Slip(
        ITEMS,
        'id = "ramp-values"',
        'id = "ramp-values"\ncalls = "shift"',
        "items.toml:9",
        "calls names 'shift'; .*in a list",
    ),
    Slip(ITEMS, 'id = "ramp-values"', 'id = "ramp-values"\ncalls = ["shit"]', "items.toml:9", "calls names 'shit'"),
    Slip(ITEMS, 'id = "shift-values"', 'id = "ramp-values"', "items.toml:18", "'ramp-values' stands twice"),
    Slip(ITEMS, 'function = "ramp"', 'function = "rump"', "items.toml:9", "does not define rump; .*'ramp'"),
    Slip(ITEMS, 'function = "ramp"', 'function = "the ramp"', "items.toml:9", "no name in Python"),
    Slip(ITEMS, "scaled above 0, nothing", "scaled | nothing", "items.toml:10", "break the table"),
    # items.toml: numbers, hints, cases, layout
    Slip(ITEMS, "points = 6", 'points = "6"', "items.toml:11", "points is '6'; a number above 0"),
    Slip(ITEMS, "points = 6", "points = 0", "items.toml:11", "points is 0"),
    Slip(ITEMS, "points = 6\n", "", "items.toml:7", "points is missing"),
    Slip(ITEMS, "points = 6\ntimeout = 5", "points = 6\ntimeout = nan", "items.toml:12", "timeout is nan"),
    Slip(ITEMS, "points = 6\ntimeout = 5", "points = 6\ntimout = 5", "items.toml:12", "'timout'; 'timeout' is there"),
    Slip(ITEMS, 'hint = "What happens below 0?"', 'hint = "  "', "items.toml:13", "hint is ' '"),
    Slip(ITEMS, 'hint = "Which way?"\n', "", "items.toml:17", "hint is missing"),
    Slip(ITEMS, 'public = ["shift-small"]', "public = []", "items.toml:17", "the item shift-values has no case"),
    Slip(ITEMS, 'public = ["shift-small"]', 'public = "shift-small"', "items.toml:24", "public is 'shift-small'"),
    Slip(ITEMS, '["shift-small"]', '["ramp-small"]', "items.toml:24", "'ramp-small' stands twice"),
    Slip(ITEMS, '["shift-small"]', '["shift/small"]', "items.toml:24", "cannot be stored"),
    Slip(ITEMS, 'hidden = ["ramp-large"]', '"hidden" = ["ramp-large"]', "items.toml:15", "cannot be taken out of the"),
    Slip(ITEMS, "points = 4", "points = 4 points", "items.toml:21", "not TOML"),
    Slip(ITEMS, '[[item]]\nid = "ramp', '[item]\nid = "ramp', "items.toml:17", "not TOML"),
    # the solution and its texts
    Slip(MODULE, "def shift(x, factor):", "def shift(x, factor)", "toy.py:13", "not Python"),
    Slip(
        MODULE,
        "torch.clamp(x, min=0)\n    ### END SOLUTION",
        "torch.clamp(x, min=0)",
        "toy.py:14",
        "inside an answer that began in line 8",
    ),
    Slip(MODULE, "    ### BEGIN SOLUTION\n    return torch.add", "    return torch.add", "toy.py:16", "ends no answer"),
    Slip(MODULE, "import torch", "### BEGIN SOLUTION\nimport torch\n### END SOLUTION", "toy.py:3", "outside every"),
    Slip(README, "<!-- points:end -->", "", "README.md:3", "no place for the table of points"),
    Slip(README, "<!-- points:begin -->", "<!-- not in the notebook -->", "README.md:", "points"),
    Slip(
        NOTEBOOK, 'after = "ramp"', 'after = "rump"', "notebook.toml:1", "after 'rump', which README.md does not have"
    ),
    Slip(NOTEBOOK, 'id = "why"', 'id = "try-it"', "notebook.toml:7", "two cells are called 'try-it'"),
    Slip(NOTEBOOK, "points = 5", 'points = "five"', "notebook.toml:7", "points of why are 'five'"),
    Slip(NOTEBOOK, "Because it is so.", "", "notebook.toml:7", "guide of why is ''"),
    Slip(NOTEBOOK, 'kind = "code"', 'kind = "python"', "notebook.toml:1", "'code' or 'text'"),
    Slip(NOTEBOOK, "[[cell]]", "[[cells]]", "notebook.toml:1", "unknown entry 'cells'; 'cell' is there"),
    # what the exam reads
    Slip(CONTRACT, "[shift]", "[shift", "contract.toml:7", "not TOML"),
    Slip(CONTRACT, '["wrong-way"]', "3", "contract.toml:8", "should have a list of items and mistakes, or the reason"),
    Slip(CONTRACT, "[shift]", "[shft]", "contract.toml:7", "no item grades 'shft'; 'shift' is there"),
    Slip(CONTRACT, "[ramp]\n", "[ramp.a]\n", "contract.toml:1", "'a' of .ramp. should have a list"),
    Slip(CONTRACT, '"one value"', '" "', "contract.toml:2", r"'ramp' of \[costly\] should have the reason, .* ' '"),
    Slip(CONTRACT, '[costly]\nramp = "one value"', "costly = 3", "contract.toml:1", "'costly' is no table"),
    Slip(CONTRACT, 'ramp = "one value"', 'rump = "one value"', "contract.toml:2", "no item grades 'rump'; 'ramp' is"),
]

OF_PYTHON = [
    # syntax and imports
    Slip(ORACLE, "def shift(x, factor):", "def shift(x, factor)", "oracle.py:12", "not Python"),
    Slip(CASES, "from . import oracle", "from . import oracles", "cases.py:4", "ImportError"),
    Slip(CASES, "import numpy as np\n", "import nunpy as np\n", "cases.py:1", "No module named 'nunpy'"),
    Slip(MISTAKES, "MISTAKES = (", "MISSTEPS = (", "mistakes.py:1", "MISTAKES is NoneType"),
    Slip(MISTAKES, '"shift", "Which way?", ', '"shift", ', "mistakes.py:14", "TypeError"),
    Slip(PROBES, "def ramp(student, inputs, params):", "def ramp(student, inputs):", "probes.py:1", "takes 2 arg"),
    Slip(PROBES, "def ramp(", "import autograder\n\n\ndef ramp(", "probes.py:1", "there is no autograder"),
    Slip(PROBES, "def shift(", "def shft(", "cases.py:23", "does not define 'shift'; .*'shft'"),
    # cases
    Slip(CASES, "def drafts(secret, draw)", "def draw_all(secret, draw)", "cases.py:1", "no function drafts"),
    Slip(CASES, "def drafts(secret, draw)", "def drafts(secret)", "cases.py:15", "drafts takes 1, not two arguments"),
    Slip(CASES, '("ramp-large", "three', '("ramp-huge", "three', "cases.py:23", "ramp-huge is in no item"),
    Slip(ITEMS, 'hidden = ["ramp-large"]', 'hidden = ["ramp-huge"]', "items.toml:15", "ramp-huge has no draft"),
    Slip(CASES, '("shift-small"', '("ramp-small"', "cases.py:23", "two drafts are called ramp-small"),
    Slip(CASES, "yield Draft(case, title,", 'yield Draft(case, "",', "cases.py:23", "the title of ramp-small is ''"),
    Slip(CASES, '{"x": x}, answer', '{"x": x.tolist()}, answer', "cases.py:23", "the input x .* is of type list"),
    Slip(CASES, '{"x": x}, answer', '{"x": x * np.inf}, answer', "cases.py:23",
         "is (?:nan|infinite) somewhere"),
    Slip(CASES, '{"x": x}, answer', '[x], answer', "cases.py:23", "the inputs of ramp-small are list"),
    Slip(CASES, '{"factor": 2.5}', '{"factor": np.ones(2)}', "cases.py:23", "cannot be stored: factor is ndarray"),
    Slip(CASES, '{"factor": 2.5}', '{"factor": [2.5, {1}]}', "cases.py:23", r"stored: factor\[1\] is set"),
    Slip(CASES, '{"factor": 2.5}', '{"factor": 2.5, (1,): 2}', "cases.py:23", r"stored: the key \(1,\) of params is"),
    Slip(CASES, "2.5})", f'2.5, "raises": {{"none": {{"f": {FORMULA}}}}}}})', "cases.py:23", FORMULA_TOLD),
    Slip(CASES, "yield Draft(", "yield (", "cases.py:23", "drafts yields tuple; a Draft"),
    Slip(CASES, "np.resize([1, -1], shape)", "np.resize([1, -1], shapes)", "cases.py:22", "NameError: .*'shapes'"),
    Slip(CASES, 'inputs["x"], params["factor"]', 'inputs["y"], params["factor"]', "cases.py:9", "KeyError: 'y'"),
    Slip(CASES, "return [value(", "return (value(", "cases.py:10", "not Python|closing parenthesis"),
    Slip(CASES, 'unchanged("x", inputs["x"])', 'unchanged(name, inputs["x"])', "cases.py:23", "expects 'ramp' twice"),
    Slip(CASES, '"row column", "float64"', '"row column", "float46"', "cases.py:10", "dtype 'float46'; one of float64"),
    Slip(CASES, '"row column", "float64"', '"row", "float64"', "cases.py:23", "has axes .'row',. and shape .2, 3."),
    Slip(CASES, "(3, 5)", "(3, 3)", "cases.py:23", "equal axis lengths"),
    Slip(CASES, "    return right", "    return None", "cases.py:23", "TypeError: 'NoneType' object is not callable"),
    Slip(CASES, '        return [value(', "        return []\n        return [value(", "cases.py:24", "an empty list"),
    Slip(CASES, '{"factor": 2.5}', '{"factor": 2.5, "lam": 0.0}', "cases.py:23", "lam does not matter"),
    # the oracle
    Slip(ORACLE, '{"above", "below"}', '{"above", "below", "at"}', "oracle.py:4", "takes the branch 'at'"),
    Slip(ORACLE, '{"ramp-values":', '{"ramp-value":', "oracle.py:4", "the item 'ramp-value'; .*'ramp-values'"),
    Slip(ORACLE, "TAKEN = set()", "TAKEN = []", "oracle.py:8", "AttributeError"),
    Slip(ORACLE, "value + factor for", "value + facto for", "oracle.py:13", "NameError: name 'facto'"),
    Slip(ORACLE, "value + factor for", "value + 0 * factor for", "cases.py:23", "shift-small: factor does not matter"),
    Slip(ORACLE, "factor * max(value, 0.0)", "factor / 0.0", "oracle.py:9", "ZeroDivisionError"),
    Slip(ORACLE, "    TAKEN.update", "    x += 1\n    TAKEN.update", "cases.py:23", "the oracle changes the input x"),
    Slip(ORACLE, "factor * max(value, 0.0)", "1e-12 * factor * max(value, 0.0)", "cases.py:23",
         "ramp is too small for its tolerance; other numbers; atol=… of a tenth of them; zero="),
    Slip(ORACLE, "value + factor for", "value * np.inf + factor for", "cases.py:23",
         "shift is infinite somewhere, and the case does not say .* meant; infinite=\"why\" where that is meant"),
    # the catalogue
    Slip(MISTAKES, '"no-kink"', '"no kink"', "mistakes.py:12", "'no kink' is no slug"),
    Slip(MISTAKES, '"not-scaled"', '"no-kink"', "mistakes.py:13", "slug of no-kink is that of another mistake"),
    Slip(MISTAKES, '"shift", "Which', '"shfit", "Which', "mistakes.py:14", "shfit, which no item grades; 'shift'"),
    Slip(MISTAKES, '"Which way?"', '""', "mistakes.py:14", "the hint of wrong-way is empty"),
    Slip(MISTAKES, "def shift(x, factor): return x - factor", "def shift(x, factor) x", "mistakes.py:14", "not Python"),
    Slip(MISTAKES, "def shift(x", "def shft(x", "mistakes.py:14", "wrong-way defines shft"),
    Slip(MISTAKES, "return factor * x\"", "return x.clamp(min=0)\"", "mistakes.py:13", "source of not-scaled is that"),
]  # fmt: skip
REPRESENTATIVE = 7  # of so many wrong edits one is tried by every run of the tests


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = toy_kit.toy_kit(tmp_path_factory.mktemp("proofreading") / "kit", tmp_path_factory)
    for name, text in {NOTEBOOK: EXTRAS, **OF_THE_EXAM}.items():
        (root / name).write_text(text)
    return root


@pytest.fixture
def edited(kit: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., list[Fault]]]:
    """A function that makes wrong edits and reads the whole assignment; afterwards the files are what they were."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # which knows no two edits within a second apart
    before = {name: (kit / name).read_bytes() for name in {slip.file for slip in (*OF_TEXT, *OF_PYTHON)}}

    def proofread_after(*slips: Slip) -> list[Fault]:
        for slip in slips:
            change(kit / slip.file, slip.right, slip.wrong)
        return proofread(kit / "fixtures/toy")

    yield proofread_after
    for name, data in before.items():
        (kit / name).write_bytes(data)


def is_told(slip: Slip, faults: list[Fault]) -> bool:
    texts = [fault.text for fault in faults]
    assert all(LINE.fullmatch(text) for text in texts), texts
    return any(f"/{slip.place}" in text and re.search(slip.words, text) for text in texts)


def test_the_toy_assignment_and_all_others_are_read_without_a_fault(kit: Path) -> None:
    assert proofread(kit / "fixtures/toy") == []
    for assignment in find_assignments(KIT):
        assert reading_faults(assignment.folder) == []


def test_there_are_sixty_wrong_edits_and_half_of_them_are_of_python() -> None:
    assert len(OF_TEXT) + len(OF_PYTHON) >= 60
    assert len(OF_PYTHON) >= 30


@pytest.mark.parametrize(
    "slip", [*OF_TEXT, *OF_PYTHON][::REPRESENTATIVE], ids=lambda slip: slip.place + " " + slip.wrong[:20]
)
def test_a_wrong_edit_is_one_line_that_names_file_and_line(slip: Slip, edited: Callable[..., list[Fault]]) -> None:
    faults = edited(slip)
    assert is_told(slip, faults), [fault.text for fault in faults]


@pytest.mark.long
@pytest.mark.parametrize("slip", [*OF_TEXT, *OF_PYTHON], ids=lambda slip: slip.place + " " + slip.wrong[:20])
def test_every_wrong_edit_is_one_line_that_names_file_and_line(slip: Slip, edited: Callable[..., list[Fault]]) -> None:
    faults = edited(slip)
    assert is_told(slip, faults), [fault.text for fault in faults]


def test_what_is_wrong_in_several_files_is_told_in_one_run(edited: Callable[..., list[Fault]]) -> None:
    slips = [
        next(slip for slip in OF_TEXT if "cannot be a file's name" in slip.words),
        next(slip for slip in OF_TEXT if slip.place == "items.toml:24" and "public is" in slip.words),
        next(slip for slip in OF_TEXT if "no place for the table" in slip.words),
        next(slip for slip in OF_TEXT if "two cells" in slip.words),
        next(slip for slip in OF_PYTHON if "ends no" in slip.words or "not Python" in slip.words),
        next(slip for slip in OF_PYTHON if "there is no autograder" in slip.words),
    ]
    faults = edited(*slips)
    for slip in slips:
        assert is_told(slip, faults), slip
    assert len(faults) >= len(slips)


def test_every_edit_of_a_catalogue_whose_text_does_not_occur_is_told(
    kit: Path, edited: Callable[..., list[Fault]]
) -> None:
    (kit / MISTAKES).write_text(CATALOGUE)
    assert edited() == []
    (kit / MISTAKES).write_text(
        CATALOGUE.replace('(".clamp(min=0)"', '(".clip(min=0)"').replace('("factor * "', '("factor"')
    )
    told = [fault.text for fault in edited()]
    assert [text.partition(" ")[0] for text in told] == ["fixtures/toy/mistakes.py:6:", "fixtures/toy/mistakes.py:7:"]
    assert "'.clip(min=0)' occurs 0 times" in told[0]
    assert "'factor' occurs 2 times" in told[1]


def test_a_parameter_of_zero_matters_where_another_number_does(edited: Callable[..., list[Fault]]) -> None:
    zero = Slip(CASES, '{"factor": 2.5}', '{"factor": 0.0 if probe == "shift" else 2.5}', "", "")
    assert edited(zero) == []


def test_hidden_cases_may_stand_on_several_lines(edited: Callable[..., list[Fault]]) -> None:
    several = 'hidden = [\n    "ramp-large",  # three rows\n]'
    assert edited(Slip(ITEMS, 'hidden = ["ramp-large"]', several, "", "")) == []
    text = ITEMS_TEXT.replace('hidden = ["ramp-large"]', several)
    assert without_hidden(text) == ITEMS_TEXT.replace('hidden = ["ramp-large"]\n', "").replace("hidden = []\n", "")


def test_files_that_are_missing_are_named(kit: Path, edited: Callable[..., list[Fault]]) -> None:
    for name in (ORACLE, MODULE):
        (kit / name).unlink()
    told = " ".join(fault.text for fault in edited())
    assert "oracle.py:1: is missing; expected values" in told
    assert "items.toml:3: there is no toy/toy.py in solution/" in told


def test_where_the_solution_and_the_oracle_differ_each_case_is_named_with_its_line(
    kit: Path, sandbox: Sandbox, edited: Callable[..., list[Fault]]
) -> None:
    assert edited(Slip(ORACLE, "factor * max", "factor * 1.01 * max", "", "")) == []
    told = str(explained(ValueError(), kit / "fixtures/toy", sandbox)).splitlines()
    assert [line.partition(":")[0] for line in told] == ["fixtures/toy/cases.py"] * 2
    for name, line in zip(("ramp-large", "ramp-small"), told, strict=True):
        assert f"{name}: the solution does not pass its own case" in line


def test_an_exception_of_a_probe_shows_the_probes_line(
    kit: Path, sandbox: Sandbox, edited: Callable[..., list[Fault]]
) -> None:
    assert edited(Slip(PROBES, 'student.shift(inputs["x"],', 'student.shift(inputs["y"],', "", "")) == []
    told = str(explained(ValueError(), kit / "fixtures/toy", sandbox))
    assert "shift-small: the solution does not pass its own case: KeyError: 'y' in line 6 of probes.py" in told


def test_mistakes_that_no_case_separates_are_all_named(
    kit: Path, sandbox: Sandbox, edited: Callable[..., list[Fault]]
) -> None:
    right = 'MISTAKES = (\n    Mistake("harmless", "shift", "?", "def shift(x, factor): return factor + x"),'
    assert edited(Slip(MISTAKES, "MISTAKES = (", right, "", "")) == []
    told = str(explained(ValueError(), kit / "fixtures/toy", sandbox))
    assert told.startswith("fixtures/toy/mistakes.py:12: no case separates harmless from a right answer; ")


def test_regenerate_prints_all_faults_and_no_traceback(kit: Path, edited: Callable[..., list[Fault]]) -> None:
    edited(
        next(slip for slip in OF_TEXT if "hint is missing" in slip.words),
        next(slip for slip in OF_PYTHON if "ZeroDivisionError" in slip.words),
    )
    done = autograder(kit, "fixtures", "regenerate")
    assert done.returncode == 3
    places = [line.split(": ")[:2] for line in done.stderr.splitlines()]
    assert places == [["autograder", f"fixtures/toy/{place}"] for place in ("items.toml:17", "oracle.py:9")]


def test_what_stands_below_an_items_hints_is_told_at_its_line_as_one_of_them(
    edited: Callable[..., list[Fault]],
) -> None:
    inside = '[item.hints]\nramp-small = "?"\nhidden = ["ramp-large"]'
    told = [fault.text for fault in edited(Slip(ITEMS, 'hidden = ["ramp-large"]', inside, "", ""))]
    right = "hidden above the line [item.hints]"
    assert f"fixtures/toy/items.toml:17: hidden stands inside [item.hints]; {right}" in told
    assert "cannot be taken out" not in " ".join(told)


@pytest.mark.parametrize(
    "slip",
    [
        Slip(
            ORACLE, "    TAKEN.update", '    open("nosuch.txt")\n    TAKEN.update', "oracle.py:8", "FileNotFoundError"
        ),
        Slip(MISTAKES, '"Which way?"', '" "', "mistakes.py:14", "the hint of wrong-way is empty"),
        Slip(MISTAKES, "def shift(x, factor): return", "def shift(x, factor) return", "mistakes.py:14", "not Python"),
    ],
    ids=lambda slip: slip.words,
)
def test_a_build_refuses_a_slip_of_the_authors_at_its_line(
    slip: Slip, kit: Path, edited: Callable[..., list[Fault]], tmp_path: Path
) -> None:
    edited(slip)
    with pytest.raises(FixtureError, match=rf"^fixtures/toy/{slip.place}: .*{slip.words}.*; "):
        regenerate_into(kit / "fixtures/toy", tmp_path / "made")


@pytest.mark.usefixtures("edited")
def test_a_folder_that_cannot_be_written_is_no_fault_of_the_authors(kit: Path, tmp_path: Path) -> None:
    (tmp_path / "public").write_text("a file where a folder is to be")
    with pytest.raises(OSError, match="public"):
        regenerate_into(kit / "fixtures/toy", tmp_path)


def test_a_refusal_is_one_line_for_each_fault(kit: Path, edited: Callable[..., list[Fault]]) -> None:
    edited(OF_TEXT[0], OF_TEXT[2])
    with pytest.raises(Faults) as refused:
        refuse_faults(kit / "fixtures/toy")
    assert len(refused.value.lines) == 2


RAMP = "    ### BEGIN SOLUTION\n    return factor * torch"


@pytest.mark.parametrize(
    "slip",
    [
        Slip(ITEMS, "points = 6", "pionts = 6", "items.toml:11", "unknown entry 'pionts'; 'points' is there"),
        Slip(ITEMS, "given = []", "given = []\npoints = 9", "items.toml:5", "items that are worth 1 fewer together"),
        Slip(MODULE, RAMP, RAMP.partition("\n")[2], "toy.py:", "'### END SOLUTION' ends no answer"),
    ],
    ids=lambda slip: slip.words,
)
def test_one_slip_is_told_once_and_at_its_own_line(slip: Slip, edited: Callable[..., list[Fault]]) -> None:
    faults = edited(slip)
    assert is_told(slip, faults), [fault.text for fault in faults]
    assert len(faults) == 1


ENDLESS = "    while True:\n        pass\n"


@pytest.mark.parametrize(
    ("file", "before", "told"),
    [
        (ORACLE, "    TAKEN.update", r"oracle.py:(8|9): the oracle of ramp-\w+ has"),
        (CASES, "    for case, title", r"cases.py:(16|17): the next case has"),
    ],
)
def test_code_that_does_not_end_is_interrupted_and_told_with_its_line(
    file: str, before: str, told: str, edited: Callable[..., list[Fault]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_limit, "MOST_SECONDS", 0.2)
    monkeypatch.setattr("autograder.vocabulary.times.MOST_WAITED", 10_000)  # however busy the machine is
    (fault,) = edited(Slip(file, before, f"{ENDLESS}{before}", "", ""))
    assert re.search(rf"{told} not ended after 0.2 s of processor time; a loop that ends", fault.text)


@pytest.mark.usefixtures("edited")
def test_a_build_ends_too_where_an_oracle_does_not(kit: Path, tmp_path: Path) -> None:
    change(kit / ORACLE, "    TAKEN.update", f"{ENDLESS}    TAKEN.update")
    change(kit / ORACLE, "import numpy", f"import {time_limit.__name__} as it\nit.MOST_SECONDS = 0.2\nimport numpy")
    with pytest.raises(FixtureError, match=r"oracle.py:\d+: the oracle of ramp-small has not ended after 0\.[26] s"):
        regenerate_into(kit / "fixtures/toy", tmp_path / "made")


@pytest.mark.parametrize(
    ("data", "line", "what"),
    [
        (b'a = 1\nb = "\xe9"\n', 1, "not UTF-8: invalid continuation byte at byte 11"),
        (b"a = 1\nb = = 2\n", 2, "not TOML: "),
    ],
)
def test_a_file_that_is_no_toml_is_one_fault_at_its_line(tmp_path: Path, data: bytes, line: int, what: str) -> None:
    path = tmp_path / "rows.toml"
    path.write_bytes(data)
    found = read_toml(path, "a = 1")
    assert isinstance(found, Fault)
    assert (found.path, found.line) == (path, line)
    assert found.what.startswith(what)
    path.write_bytes(b"a = 1\n")
    assert read_toml(path, "a = 1") == ("a = 1\n", {"a": 1})
