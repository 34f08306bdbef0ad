"""Blackboard and Brightspace: files that they take back."""

from __future__ import annotations

import csv
import io
from functools import partial
from pathlib import Path

import pytest
from sample_reports import NASTY_NAMES, item, report

from autograder.platforms.gradebooks import END_OF_LINE, Export, column_csv
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import Table, read_table

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
    assert rows(blackboard_csv(REPORTS[:1], table(tmp_path, board), "HW5", scale=True))[1] == ["adiaz1", "S1", points]
