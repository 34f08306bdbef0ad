"""Gradebooks of Canvas, Moodle, Blackboard and Brightspace, as their importers would read what is made of them."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from canvas_importer import Course, imported
from sample_reports import NASTY_NAMES, item, not_graded, report

from autograder.gradebook.final_grades import Final
from autograder.gradebook.grades_folder import FinalReport
from autograder.gradebook.roster import Person, Roster, keys_of
from autograder.platforms.gradebooks import END_OF_LINE, Export, canvas_csv, column_csv, feedback_zip, moodle_csv
from autograder.vocabulary.errors import GraderFault, UsageError
from autograder.vocabulary.files import Table, file_stem, read_table, table_of
from autograder.vocabulary.report import Report

COLUMN = "HW5 GRPO (123456)"


def table(*rows: tuple[str, ...], possible: str = "4", extra: tuple[str, ...] = ()) -> Table:
    header = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section", COLUMN, *extra)
    blank = ("",) * len(extra)
    return Table(header, (("    Points Possible", "", "", "", "", possible, *blank), *((*row, *blank) for row in rows)))


ANA = ("Diaz, Ana", "1001", "U1", "ana01", "CS336-01", "")
BEN = ("Okoro, Ben", "1002", "U2", "ben02", "CS336-01", "3.5")


def points(name: str, value: float) -> Report:
    return report(name, item("a", value, 4.0))


@pytest.mark.parametrize("cell", ["3.5", "", "EX", " ex ", "MI", "0"])
@pytest.mark.parametrize("reports", [[points("somebody", 1.0)], [not_graded("Okoro, Ben")]])
def test_student_without_our_grade_keeps_the_cell(cell: str, reports: list[Report]) -> None:
    gradebook = table((*BEN[:5], cell), possible=str(int(reports[0].max_points)))
    rows = list(csv.reader(io.StringIO(canvas_csv(reports, gradebook, COLUMN).text)))
    assert rows[2] == [*BEN[:5], cell]


def test_excused_student_with_a_grade_of_ours_is_named() -> None:
    made = canvas_csv([points("ana01", 1.0)], table((*ANA[:5], "ex"), BEN), COLUMN)
    assert (made.excused, made.graded) == (("ana01",), 0)


@pytest.mark.parametrize("name", ["1001", "U1", "ana01", "Diaz, Ana", "Ana Diaz", "diazana", "DIAZANA"])
def test_a_student_is_found_by_id_login_or_name(name: str) -> None:
    made = canvas_csv([points(name, 2.5)], table(ANA, BEN), COLUMN)
    assert made.unknown == ()
    assert '"Diaz, Ana",1001,U1,ana01,CS336-01,2.5\n' in made.text


@pytest.mark.parametrize(
    ("student", "identity", "row"),
    [
        ("diazana_1001", "canvas:1001", "Diaz"),
        ("x_1002", "canvas:1001", "Diaz"),
        ("x_1002", "", ""),
        ("diazana", "canvas:1009", ""),  # a name is anybody's choice
        ("1002", "canvas:1009", ""),
        ("Ana Diaz_1002", "moodle:1002", "Diaz"),  # a number of Moodle's
        ("Eve_1002", "brightspace:1002", ""),
        ("Ana Diaz_U2", "U2", "Okoro"),  # Gradescope has the school's ids
    ],
)
def test_row_is_of_the_id_of_the_layout(student: str, identity: str, row: str) -> None:
    made = canvas_csv([report(student, item("a", 2.5, 4.0), identity=identity)], table(ANA, BEN), COLUMN)
    assert made.unknown == (() if row else (student,))
    assert [line.split(",")[0].lstrip('"') for line in made.text.splitlines()[2:] if line.endswith(",2.5")] == (
        [row] if row else []
    )


def test_a_students_own_name_cannot_hide_anothers_row() -> None:
    forger = ("canvas:1001", "1003", "U3", "eve03", "CS336-01", "")
    made = canvas_csv([report("x_1001", item("a", 2.5, 4.0), identity="canvas:1001")], table(ANA, forger), COLUMN)
    assert '"Diaz, Ana",1001,U1,ana01,CS336-01,2.5\n' in made.text


@pytest.mark.parametrize(("identity", "row"), [("canvas:7", "Okoro"), ("canvas:1001", "Diaz"), ("canvas:8", "")])
def test_the_roster_decides_where_the_gradebook_lacks_the_id(identity: str, row: str) -> None:
    roster = Roster((Person("Ben", "", keys_of(["7", "U2"])), Person("Diaz, Ana", "", keys_of(["Diaz, Ana"]))))
    made = canvas_csv([report("diazana_7", item("a", 2.5, 4.0), identity=identity)], table(ANA, BEN), COLUMN, roster)
    assert made.unknown == (() if row else ("diazana_7",))
    assert row in next((line for line in made.text.splitlines()[2:] if line.endswith(",2.5")), "")


TWIN = ("Diaz, Ana", "1003", "U3", "ana03", "CS336-02", "")


@pytest.mark.parametrize(("names", "rows"), [(("Diaz, Ana",), (ANA, TWIN)), (("Diaz, Ana", "ana01"), (ANA,))])
def test_two_for_one_are_nobodys(names: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> None:
    made = canvas_csv([points(name, 1.0) for name in names], table(*rows), COLUMN)
    assert (made.graded, made.unknown) == (0, names)


@pytest.mark.parametrize(
    "header",
    [
        ("Student", "ID", "Section", COLUMN),
        ("Student", "ID", "SIS Login ID", "Section", COLUMN),
        ("Student", "ID", "SIS User ID", "SIS Login ID", "Integration ID", "Root Account", "Section", COLUMN),
        ("LastName", "FirstName", "ID", "SIS User ID", "SIS Login ID", "Section", COLUMN),
    ],
)
def test_every_set_of_columns_about_students_is_kept(header: tuple[str, ...]) -> None:
    values = {"Student": "Diaz, Ana", "LastName": "Diaz", "FirstName": "Ana", "ID": "1001"}
    gradebook = Table(header, (tuple(values.get(name, "") for name in header),))
    made = canvas_csv([points("Ana Diaz", 1.5)], gradebook, COLUMN)
    rows = list(csv.reader(io.StringIO(made.text)))
    assert tuple(rows[0]) == header
    assert rows[2] == [*(values.get(name, "") for name in header[:-1]), "1.5"]


@pytest.mark.parametrize(("newline", "bom"), [("\n", False), ("\r\n", True)])
def test_canvas_file_keeps_the_form_of_the_export(tmp_path: Path, newline: str, bom: bool) -> None:
    lines = [
        f"Student;ID;SIS Login ID;Section;{COLUMN}",
        "    Points Possible;;;;4,5",
        '"Diaz; Ana";1001;ana01;CS336-01;',
        "Okoro, Ben;1002;ben02;CS336-01;3,5",
    ]
    path = tmp_path / "course.csv"
    path.write_bytes((("\ufeff" if bom else "") + newline.join(lines) + newline).encode())
    made = canvas_csv([report("ana01", item("a", 1.25, 4.5))], read_table(path), COLUMN)
    assert made.text.encode() == path.read_bytes().replace(b"01;" + newline.encode(), b"01;1,25" + newline.encode())
    found = imported(made.text.encode(), Course({"1001": ("", "ana01", "")}, {"123456": ("HW5 GRPO", 4.5)}))
    assert found.changes["1001", "123456"] == ("", "1,25")


FORGER = ("Points Possible", "1003", "", "x", "CS336", "1000")


@pytest.mark.parametrize(
    ("gradebook", "column", "says"),
    [
        (table(ANA), "HW5 GRPO", r"no assignment 'HW5 GRPO'. It has: HW5 GRPO \(123456\)"),
        (table(ANA), "HW9 (9)", "no assignment"),
        (table(ANA, extra=("Current Score",)), "Current Score", "no assignment"),
        (table(ANA), "Section", "no assignment"),
        (Table(("student", "points"), ()), COLUMN, "export it from Canvas"),
        (Table(("Student", "ID", COLUMN), ()), COLUMN, "export it from Canvas"),
        (Table(("ID", "Student", "Section", COLUMN), ()), COLUMN, "export it from Canvas"),
        (table(ANA, possible="0"), COLUMN, r"is worth 0 points in Canvas and 4 here: change it there\."),
        (table(ANA, possible="(read only)"), COLUMN, "read only"),
        (table(ANA, possible="a lot"), COLUMN, "is no number"),
        (table(FORGER, ANA), COLUMN, "for the row of points"),
        (table(("Diaz, Ana", "", "", "", "", "3")), COLUMN, "has no ID: 'Diaz, Ana'"),
    ],
)
def test_a_gradebook_that_canvas_would_take_otherwise_is_refused(gradebook: Table, column: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        canvas_csv([points("ana01", 1.0)], gradebook, column, scale=True)


def test_other_worth_is_refused_unless_scaled() -> None:
    with pytest.raises(UsageError, match=r"worth 40 points in Canvas and 4 here.*--scale"):
        canvas_csv([points("ana01", 1.0)], table(ANA, possible="40"), COLUMN)
    made = canvas_csv([points("ana01", 2.5)], table(ANA, possible="40"), COLUMN, scale=True)
    assert made.text.splitlines()[1:] == ["    Points Possible,,,,,40", '"Diaz, Ana",1001,U1,ana01,CS336-01,25']


def test_reports_of_two_versions_are_not_mixed() -> None:
    with pytest.raises(GraderFault, match="out of 4 and 5 points"):
        canvas_csv([points("ana01", 1.0), report("ben02", item("a", 1.0, 5.0))], table(ANA, BEN), COLUMN)


# Moodle: the grading worksheet and the feedback zip

HEADER = (
    *("Identifier", "Full name", "Email address", "Status", "Grade", "Maximum Grade", "Grade can be changed"),
    *("Last modified (submission)", "Last modified (grade)", "Feedback comments"),
)


def row(
    number: int, name: str, grade: str = "", *, most: str = "4.00", change: str = "Yes", comment: str = ""
) -> tuple[str, ...]:
    email = f"{number}@x.edu"
    return (f"Participant {number}", name, email, "Submitted for grading", grade, most, change, "then", "-", comment)


ADA, OKORO = row(7001, "Ada Lovelace"), row(7002, "Ben Okoro", "3.50")


def folder_of(path: str) -> tuple[str, str]:
    """The participant and the file's name that Moodle takes from a path; its older versions need a fifth part."""
    part, _, rest = path.partition("/")
    info = part.split("_", 4)
    assert len(info) == 5
    assert info[1].isdigit()
    assert info[2:4] == ["assignsubmission", "file"]
    return info[1], "/".join([info[4], rest]).strip("/")


def test_every_other_cell_comes_back_as_it_was() -> None:
    sheet = Table(HEADER, (row(7001, "Ada Lovelace", comment="=1+1, she wrote\n<p>-</p>"), OKORO))
    rows = list(csv.reader(io.StringIO(moodle_csv([points("7001", 4.0)], sheet).text, newline="")))
    assert rows == [list(HEADER), [*sheet.rows[0][:4], "4", *sheet.rows[0][5:]], list(OKORO)]


@pytest.mark.parametrize("reports", [[not_graded("Ben Okoro")], [report("zoe", item("a", 1.0, 8.0))]])
def test_nothing_is_cleared(reports: list[Report]) -> None:
    sheet = Table(HEADER, (row(7002, "Ben Okoro", "3.50", most="8.00"),))
    assert table_of(moodle_csv(reports, sheet).text.encode(), Path("w.csv")).rows == sheet.rows


@pytest.mark.parametrize("name", ["Ada Lovelace", "ADA LOVELACE", "7001@x.edu", "7001"])
def test_a_student_is_found_by_name_address_or_number(name: str) -> None:
    assert moodle_csv([points(name, 1.0)], Table(HEADER, (ADA, OKORO))).unknown == ()


@pytest.mark.parametrize(
    ("student", "identity", "expected"),
    [
        ("Ben Okoro_7001", "moodle:7001", ["7001"]),
        ("Ben Okoro", "moodle:7009", []),
        ("x_7001", "", []),
        ("x_7001", "canvas:7001", []),
    ],
)
def test_the_number_that_moodle_gave_decides(student: str, identity: str, expected: list[str]) -> None:
    made = moodle_csv([report(student, item("a", 1.0, 4.0), identity=identity)], Table(HEADER, (ADA, OKORO)))
    assert [folder.split("_")[1] for folder in made.folders.values()] == expected


def test_a_locked_grade_stays_and_is_reported() -> None:
    made = moodle_csv([points("Ada Lovelace", 1.0)], Table(HEADER, (row(7001, "Ada Lovelace", "2.00", change="No"),)))
    assert made.locked == ("Ada Lovelace",)
    assert ",2.00,4.00," in made.text


def test_other_maximum_grade_is_refused() -> None:
    sheet = Table(HEADER, (row(7001, "Ada Lovelace", most="3.00"),))
    with pytest.raises(UsageError, match=r"worth 3\.00 points in Moodle and 4 here"):
        moodle_csv([points("Ada Lovelace", 4.0)], sheet)


@pytest.mark.parametrize(
    "header", [("student", "points"), ("Identifier", "Bewertung"), ("Identifier", "Grade", "Grade")]
)
def test_file_that_is_no_worksheet_is_refused_with_its_columns(header: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match=re.escape(", ".join(header))):
        moodle_csv([points("x", 1.0)], Table(header, ()))


def test_feedback_page_lies_where_moodle_looks(tmp_path: Path) -> None:
    names = ["Ada_von_Lovelace", "عمر", "=cmd", "../../x"]
    sheet = Table(HEADER, tuple(row(7001 + at, name) for at, name in enumerate(names)))
    made = moodle_csv([points(name, 1.0) for name in names], sheet)
    for name in names:
        (tmp_path / f"{file_stem(name)}.html").write_text(f"for {name}", encoding="utf-8")
    with zipfile.ZipFile(io.BytesIO(feedback_zip(made.folders, tmp_path))) as archive:
        found = {folder_of(name): archive.read(name).decode() for name in archive.namelist()}
    assert found == {(str(7001 + at), "feedback.html"): f"for {name}" for at, name in enumerate(names)}


def test_final_grade_above_the_maximum_is_reported() -> None:
    bonus = FinalReport(**vars(points("Ada Lovelace", 4.0)), final=Final(4.5, (), 4.0))
    made = moodle_csv([bonus], Table(HEADER, (ADA, OKORO)))
    assert (made.graded, made.locked) == (0, ("Ada Lovelace",))


# Other languages

GERMAN = """\
ID,"Vollständiger Name",E-Mail-Adresse,Status,Bewertung,Bestwertung,"Bewertung kann geändert werden","Zuletzt geändert"
"Teilnehmer/in1","Ada Lovelace",ada@x.edu,"Zur Bewertung abgegeben",,"4,00",Ja,"Montag, 1. März"
"Teilnehmer/in2","Béla Kovács",bela@x.edu,"Nicht abgegeben",,"4,00",Nein,-
"""
FRENCH = """\
Identifiant;Nom complet;Adresse de courriel;Statut;Note;Note maximale;La note peut être modifiée;Dernière modification
Participant1;Ada Lovelace;ada@x.edu;Remis pour évaluation;;4,00;Oui;lundi
Participant2;Béla Kovács;bela@x.edu;Pas de travail remis;1,00;4,00;Non;-
"""


@pytest.mark.parametrize("text", [GERMAN, FRENCH])
def test_worksheet_in_another_language_is_filled_in(text: str) -> None:
    sheet = table_of(text.encode(), Path("w.csv"))
    made = moodle_csv([points("Ada Lovelace", 2.5), report("bela@x.edu")], sheet)
    filled = table_of(made.text.encode(), Path("w.csv"))
    assert [row[4] for row in filled.rows] == ["2,5", sheet.rows[1][4]]
    assert (made.graded, made.locked, made.unknown) == (1, ("bela@x.edu",), ())
    assert next(iter(made.folders.values())) == "Ada Lovelace_1_assignsubmission_file_"
    assert filled.header == sheet.header
    with pytest.raises(UsageError, match=r"is worth 10,00 points in Moodle and 4 here"):
        moodle_csv([report("Ada Lovelace")], table_of(text.replace("4,00", "10,00").encode(), Path("w.csv")))


def test_worksheet_whose_grade_column_is_not_clear_is_refused() -> None:
    sheet = table_of(GERMAN.replace(",Ja,", ",5,").replace(",Nein,", ",5,").encode(), Path("w.csv"))
    sheet = replace(sheet, rows=tuple((*row[:5], "offen", *row[6:]) for row in sheet.rows))
    with pytest.raises(UsageError, match="no single column 'Grade'"):
        moodle_csv([report("Ada Lovelace")], sheet)


# Blackboard and Brightspace: one column

blackboard_csv, brightspace_csv = partial(column_csv, "Blackboard"), partial(column_csv, "Brightspace")
TITLE = "HW5 GRPO [Total Pts: 4 Score] |123456"
BOARD = f'"Last Name","First Name","Username","Student ID","Last Access","{TITLE}","Other [Total Pts: 9 Score] |7"\n'
BOARD += '"Diaz","Ana","adiaz1","S1","","",""\n"O\'Hara","Sean","o_hara","S2","","3",""\n'
BOARD += '"Only","Their","only","S3","","2",""\n'
GERMAN_BOARD = BOARD.replace('"Username","Student ID"', '"Benutzername","Studierenden-ID"')
ITEM = "HW5 Points Grade <Numeric MaxPoints:4 Weight:10>"
SPACE = f"OrgDefinedId,Username,Last Name,First Name,{ITEM},End-of-Line Indicator\n"
SPACE += "#S1,#adiaz1,Diaz,Ana,,#\n#S2,#o_hara,O'Hara,Sean,3,#\n#S3,#only,Only,Their,2,#\n"


def stored(tmp_path: Path, text: str, encoding: str = "utf-8") -> Table:
    (tmp_path / "g.csv").write_bytes(text.encode(encoding))
    return read_table(tmp_path / "g.csv")


def rows(made: Export) -> list[list[str]]:
    return list(csv.reader(io.StringIO(made.text)))


LOST = report("only", item(points=None, verdict="not_graded"))
REPORTS = [report("adiaz1"), report("Sean O'Hara_S2", item(points=2.5), identity="S2"), report("stranger"), LOST]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_blackboard_gets_one_column_of_graded_students(tmp_path: Path, encoding: str) -> None:
    made = blackboard_csv(REPORTS, stored(tmp_path, BOARD, encoding), TITLE)
    header, *found = rows(made)
    assert [cell.lstrip("\ufeff") for cell in header] == ["Username", "Student ID", TITLE]
    assert found == [["adiaz1", "S1", "4"], ["o_hara", "S2", "2.5"]]
    assert (made.graded, made.unknown) == (2, ("stranger",))


def test_brightspace_gets_points_and_end_of_line_marks(tmp_path: Path) -> None:
    made = brightspace_csv(REPORTS, stored(tmp_path, SPACE), "HW5 Points Grade")
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
        (blackboard_csv, GERMAN_BOARD, TITLE, "has no column username or .*, with English as your language there"),
        (blackboard_csv, BOARD.replace("Pts: 4", "Pts: 10"), "HW5", "is worth 10 points in Blackboard and 4 here"),
        (brightspace_csv, SPACE.replace("MaxPoints:4", "MaxPoints:50"), "HW5", "50 points in Brightspace and 4 here"),
        (brightspace_csv, "a,b\n1,2\n", "", "has no single column ''"),
    ],
)
def test_a_gradebook_that_does_not_fit_is_refused(tmp_path: Path, platform, text: str, column: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        platform(REPORTS, stored(tmp_path, text), column)


def test_points_are_converted_where_that_is_asked_for(tmp_path: Path) -> None:
    made = column_csv(
        "Brightspace", REPORTS, stored(tmp_path, SPACE.replace("MaxPoints:4", "MaxPoints:40")), "HW5", scale=True
    )
    assert [row[2] for row in rows(made)[1:]] == ["40", "25"]


def test_no_name_gets_into_either_file_as_a_formula(tmp_path: Path) -> None:
    lines = "".join(f'"{name.replace(chr(34), chr(34) * 2)}","",""\n' for name in NASTY_NAMES)
    text = f'"Username","Student ID","{TITLE}"\n{lines}'
    made = blackboard_csv([report(name) for name in NASTY_NAMES], stored(tmp_path, text), "HW5")
    assert made.graded + len(made.unknown) == len(NASTY_NAMES)
    assert {"=cmd|' /C calc'!A0", "@SUM(A1)"} <= set(made.unknown)
    assert not any(row[0].startswith(("=", "+", "-", "@")) for row in rows(made))


@pytest.mark.parametrize(
    ("worth", "points"), [("1,000", "1000"), ("up to 1.000", "1000"), ("2,50", "2.5"), ("8.0", "8")]
)
def test_a_mark_before_three_digits_is_one_of_thousands(tmp_path: Path, worth: str, points: str) -> None:
    board = BOARD.replace(f'"{TITLE}"', f'"HW5 [Total Pts: {worth} Score] |123456"')
    assert rows(blackboard_csv(REPORTS[:1], stored(tmp_path, board), "HW5", scale=True))[1] == ["adiaz1", "S1", points]
