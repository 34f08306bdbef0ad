"""Blackboard and Brightspace: whose each download is, which attempt counts, and files that they take back."""

from __future__ import annotations

import csv
import io
from functools import partial
from pathlib import Path

import pytest
from sample_reports import NASTY_NAMES, item, report

from autograder.gradebook.roster import Person, Roster, keys_of
from autograder.platforms.gradebooks import END_OF_LINE, Export, column_csv
from autograder.platforms.layouts import gathered
from autograder.submissions.reading import read
from autograder.submissions.submission import Submission
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import Table, read_table

MODULE = "policy_gradient"
PY = f"{MODULE}.py"


def put(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def grade(folder: Path, roster: Roster | None = None) -> dict[str, Submission]:
    with gathered([folder], MODULE, roster) as found:
        assert found.refused == ()
        return {one.student: read(one, MODULE) for one in found.candidates}


# Blackboard


def attempt(username: str, when: str, name: str = "", title: str = "HW5_GRPO") -> str:
    return f"{title}_{username}_attempt_2027-03-02-{when}" + (f"_{name}" if name else ".txt")


def about(name: str, username: str) -> str:
    return f"Name: {name} ({username})\nAssignment: HW5 GRPO\nDate Submitted: Tuesday, March 2, 2027\n"


BLACKBOARD = {
    attempt("adiaz1", "10-00-00"): about("Ana Diaz", "adiaz1"),
    attempt("adiaz1", "10-00-00", PY): "x = 'first'\n",
    attempt("adiaz1", "11-30-00"): about("Ana Diaz", "adiaz1"),
    attempt("adiaz1", "11-30-00", PY): "x = 'second'\n",
    attempt("o_hara", "09-00-00"): about("Sean O'Hara", "o_hara"),
    attempt("o_hara", "09-00-00", "Copy of hw.py"): "x = 'third'\n",
}


def test_blackboard_username_is_the_student_and_latest_attempt_counts(tmp_path: Path) -> None:
    found = grade(put(tmp_path, BLACKBOARD))
    assert {name: one.source for name, one in found.items()} == {"adiaz1": "x = 'second'\n", "o_hara": "x = 'third'\n"}
    assert "not graded: HW5_GRPO_adiaz1_attempt_2027-03-02-10-00-00" in found["adiaz1"].notes[0]


def test_forged_blackboard_file_stays_its_students(tmp_path: Path) -> None:
    forged = {
        attempt("eve", "12-00-00", f"HW5_GRPO_adiaz1_attempt_2027-03-03-00-00-00_{PY}"): "x = 'eve'\n",
        attempt("eve", "12-00-00"): about("Ana Diaz", "adiaz1"),
    }
    found = grade(put(tmp_path, BLACKBOARD | forged))
    assert found["adiaz1"].source == "x = 'second'\n"
    assert found["eve"].source == "x = 'eve'\n"


# Brightspace

FOLDERS = {
    f"71001-500 - Ana Diaz - Mar 2, 2027 958 AM/{PY}": "x = 'first'\n",
    f"71001-500 - Ana Diaz - Mar 2, 2027 1158 PM/{PY}": "x = 'second'\n",
    "71002-500 - Jean-Luc Le Roux - Mar 1, 2027 1205 AM/work.py": "x = 'third'\n",
    "index.html": "<html>",
}


@pytest.mark.parametrize("flat", [False, True])
def test_brightspace_name_is_the_student_and_latest_counts(tmp_path: Path, flat: bool) -> None:
    files = {name.replace("/", " - ") if flat else name: text for name, text in FOLDERS.items()}
    found = grade(put(tmp_path, files))
    assert {name: one.source for name, one in found.items()} == {
        "Ana Diaz_71001": "x = 'second'\n",
        "Jean-Luc Le Roux_71002": "x = 'third'\n",
    }


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("1 March, 2027 1158 PM", "2 March, 2027 1205 AM"),
        ("Mar 1, 2027 2358", "Mar 2, 2027 005"),
        ("28 Feb 2027 958", "1 Mar 2027 1005"),
        ("December 31, 2026 1200 PM", "January 1, 2027 1159 AM"),
        ("2 Sept 2027 2358", "Sept 3, 2027 005"),
    ],
)
def test_brightspace_moment_is_read_in_every_english_form(tmp_path: Path, first: str, second: str) -> None:
    files = {f"71-500 - Ana - {second}/{PY}": "x = 'second'\n", f"71-500 - Ana - {first}/{PY}": "x = 'first'\n"}
    assert grade(put(tmp_path, files))["Ana_71"].source == "x = 'second'\n"


@pytest.mark.parametrize(
    "when", ["Marraskuu 2, 2027 1158", "2 Maaliskuu 2027 2358", "Mayo 2, 2027 1158", "Jun2, 2027 958"]
)
def test_brightspace_month_of_no_english_name_is_no_moment(tmp_path: Path, when: str) -> None:
    with gathered([put(tmp_path, {f"71-500 - Ana - {when}/{PY}": "x = 1\n"})], MODULE) as found:
        assert [(one.student, one.submitted) for one in found.candidates] == [("Ana_71", None)]


def test_brightspace_number_that_differs_is_the_students(tmp_path: Path) -> None:
    files = {
        f"500-71001 - Ana - Mar 2, 2027 958 AM/{PY}": "x = 1\n",
        f"500-71002 - Ana - Mar 2, 2027 958 AM/{PY}": "y = 1\n",
    }
    assert set(grade(put(tmp_path, files))) == {"Ana_71001", "Ana_71002"}


def test_the_roster_names_them_by_number_or_name(tmp_path: Path) -> None:
    roster = Roster((Person("Ana", "", keys_of(["71001"])), Person("Picard", "", keys_of(["Jean-Luc Le Roux"]))))
    assert set(grade(put(tmp_path, FOLDERS), roster)) == {"Ana", "Picard"}


# What they take back

blackboard_csv, brightspace_csv = partial(column_csv, "Blackboard"), partial(column_csv, "Brightspace")
TITLE = "HW5 GRPO [Total Pts: 4 Score] |123456"
BOARD = f'"Last Name","First Name","Username","Student ID","Last Access","{TITLE}","Other [Total Pts: 9 Score] |7"\n'
BOARD += '"Diaz","Ana","adiaz1","S1","","",""\n"O\'Hara","Sean","o_hara","S2","","3",""\n'
BOARD += '"Only","Their","only","S3","","2",""\n'
GERMAN = BOARD.replace('"Username","Student ID"', '"Benutzername","Studierenden-ID"')
ITEM = "HW5 Points Grade <Numeric MaxPoints:4 Weight:10>"
SPACE = f"OrgDefinedId,Username,Last Name,First Name,{ITEM},End-of-Line Indicator\n"
SPACE += "#S1,#adiaz1,Diaz,Ana,,#\n#S2,#o_hara,O'Hara,Sean,3,#\n#S3,#only,Only,Their,2,#\n"


def table(tmp_path: Path, text: str, encoding: str = "utf-8") -> Table:
    (tmp_path / "g.csv").write_bytes(text.encode(encoding))
    return read_table(tmp_path / "g.csv")


def rows(made: Export) -> list[list[str]]:
    return list(csv.reader(io.StringIO(made.text)))


LOST = report("only", item(points=None, verdict="not_graded"))
REPORTS = [report("adiaz1"), report("Sean O'Hara_S2", item(points=2.5), identity="S2"), report("stranger"), LOST]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_blackboard_gets_one_column_of_graded_students(tmp_path: Path, encoding: str) -> None:
    made = blackboard_csv(REPORTS, table(tmp_path, BOARD, encoding), TITLE)
    header, *found = rows(made)
    assert [cell.lstrip("\ufeff") for cell in header] == ["Username", "Student ID", TITLE]
    assert found == [["adiaz1", "S1", "4"], ["o_hara", "S2", "2.5"]]
    assert (made.graded, made.unknown) == (2, ("stranger",))


def test_brightspace_gets_points_and_end_of_line_marks(tmp_path: Path) -> None:
    made = brightspace_csv(REPORTS, table(tmp_path, SPACE), "HW5 Points Grade")
    assert rows(made) == [
        ["OrgDefinedId", "Username", "HW5 Points Grade <Numeric MaxPoints:4 Weight:10>", END_OF_LINE],
        ["#S1", "#adiaz1", "4", "#"],
        ["#S2", "#o_hara", "2.5", "#"],
    ]
    assert made.unknown == ("stranger",)


@pytest.mark.parametrize(
    ("platform", "text", "column", "says"),
    [
        (blackboard_csv, BOARD, "Final", "has no single column 'Final'"),
        (blackboard_csv, BOARD, "Username", "has no single column 'Username'"),
        (blackboard_csv, GERMAN, TITLE, "has no column username or .*, with English as your language there"),
        (blackboard_csv, BOARD.replace("Pts: 4", "Pts: 10"), "HW5", "is worth 10 points in Blackboard and 4 here"),
        (brightspace_csv, SPACE.replace("MaxPoints:4", "MaxPoints:50"), "HW5", "50 points in Brightspace and 4 here"),
        (brightspace_csv, "a,b\n1,2\n", "", "has no single column ''"),
    ],
)
def test_a_gradebook_that_does_not_fit_is_refused(tmp_path: Path, platform, text: str, column: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        platform(REPORTS, table(tmp_path, text), column)


def test_points_are_converted_where_that_is_asked_for(tmp_path: Path) -> None:
    made = column_csv(
        "Brightspace", REPORTS, table(tmp_path, SPACE.replace("MaxPoints:4", "MaxPoints:40")), "HW5", scale=True
    )
    assert [row[2] for row in rows(made)[1:]] == ["40", "25"]


def test_no_name_gets_into_either_file_as_a_formula(tmp_path: Path) -> None:
    lines = "".join(f'"{name.replace(chr(34), chr(34) * 2)}","",""\n' for name in NASTY_NAMES)
    text = f'"Username","Student ID","{TITLE}"\n{lines}'
    made = blackboard_csv([report(name) for name in NASTY_NAMES], table(tmp_path, text), "HW5")
    assert made.graded + len(made.unknown) == len(NASTY_NAMES)
    assert {"=cmd|' /C calc'!A0", "@SUM(A1)"} <= set(made.unknown)
    assert not any(row[0].startswith(("=", "+", "-", "@")) for row in rows(made))


def test_a_column_worth_nothing_makes_nobodys_grade_a_zero(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is worth 0 points in Blackboard and 4 here: change it there\."):
        blackboard_csv(REPORTS, table(tmp_path, BOARD.replace("Pts: 4", "Pts: 0")), "HW5", scale=True)


@pytest.mark.parametrize(
    ("worth", "points"), [("1,000", "1000"), ("up to 1.000", "1000"), ("2,50", "2.5"), ("8.0", "8")]
)
def test_a_mark_before_three_digits_is_one_of_thousands(tmp_path: Path, worth: str, points: str) -> None:
    board = BOARD.replace(f'"{TITLE}"', f'"HW5 [Total Pts: {worth} Score] |123456"')
    assert rows(blackboard_csv(REPORTS[:1], table(tmp_path, board), "HW5", scale=True))[1] == [
        "adiaz1",
        "S1",
        points,
    ]
