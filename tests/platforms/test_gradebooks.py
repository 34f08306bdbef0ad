"""Gradebooks of Canvas, Moodle, Blackboard and Brightspace, as their importers would read what is made of them."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from sample_reports import NASTY_NAMES, item, not_graded, report

from autograder.gradebook.final_grades import Final
from autograder.gradebook.grades_folder import FinalReport
from autograder.gradebook.roster import Person, Roster, keys_of
from autograder.platforms.gradebooks import END_OF_LINE, Export, canvas_csv, column_csv, feedback_zip, moodle_csv
from autograder.vocabulary.errors import GraderFault, KitError, UsageError
from autograder.vocabulary.files import Table, file_stem, table_of
from autograder.vocabulary.report import Report

COLUMN = "HW5 GRPO (123456)"


def points(name: str, value: float) -> Report:
    return report(name, item("a", value, 4.0))


def stored(text: str, encoding: str = "utf-8") -> Table:
    return table_of(text.encode(encoding), Path("g.csv"))


def rows(made: Export) -> list[list[str]]:
    return list(csv.reader(io.StringIO(made.text, newline="")))


# Canvas's gradebook


def table(*rows: tuple[str, ...], possible: str = "4", extra: tuple[str, ...] = ()) -> Table:
    header = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section", COLUMN, *extra)
    blank = ("",) * len(extra)
    return Table(header, (("    Points Possible", "", "", "", "", possible, *blank), *((*row, *blank) for row in rows)))


ANA = ("Diaz, Ana", "1001", "U1", "ana01", "CS336-01", "")
BEN = ("Okoro, Ben", "1002", "U2", "ben02", "CS336-01", "3.5")
TWIN = ("Diaz, Ana", "1003", "U3", "ana03", "CS336-02", "")
FORGER = ("canvas:1001", "1003", "U3", "eve03", "CS336-01", "")
ROSTER = Roster((Person("Ben", "", keys_of(["7", "U2"])), Person("Diaz, Ana", "", keys_of(["Diaz, Ana"]))))

# Moodle's grading worksheet

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

# Whose row it is


def in_canvas(one: Report, *more: tuple[str, ...], roster: Roster | None = None) -> Export:
    return canvas_csv([one], table(ANA, BEN, *more), COLUMN, roster)


def in_moodle(one: Report) -> Export:
    return moodle_csv([one], Table(HEADER, (ADA, OKORO)))


@pytest.mark.parametrize(
    ("fill", "student", "identity", "whose"),
    [
        *(
            (in_canvas, name, "", "Diaz, Ana")
            for name in ("1001", "U1", "ana01", "Diaz, Ana", "Ana Diaz", "diazana", "DIAZANA")
        ),
        *((in_moodle, name, "", "Participant 7001") for name in ("Ada Lovelace", "ADA LOVELACE", "7001@x.edu", "7001")),
        (in_canvas, "diazana_1001", "canvas:1001", "Diaz, Ana"),
        (in_canvas, "x_1002", "canvas:1001", "Diaz, Ana"),
        (in_canvas, "x_1002", "", ""),
        (in_canvas, "diazana", "canvas:1009", ""),  # a name is anybody's choice
        (in_canvas, "1002", "canvas:1009", ""),
        (in_canvas, "Ana Diaz_1002", "moodle:1002", "Diaz, Ana"),  # a number of Moodle's
        (in_canvas, "Eve_1002", "brightspace:1002", ""),
        (in_canvas, "Ana Diaz_U2", "U2", "Okoro, Ben"),  # Gradescope has the school's ids
        (lambda one: in_canvas(one, FORGER), "x_1001", "canvas:1001", "Diaz, Ana"),
        (lambda one: in_canvas(one, TWIN), "Diaz, Ana", "", ""),
        # the roster decides where the gradebook lacks the id
        (partial(in_canvas, roster=ROSTER), "diazana_7", "canvas:7", "Okoro, Ben"),
        (partial(in_canvas, roster=ROSTER), "diazana_7", "canvas:1001", "Diaz, Ana"),
        (partial(in_canvas, roster=ROSTER), "diazana_7", "canvas:8", ""),
        (in_moodle, "Ben Okoro_7001", "moodle:7001", "Participant 7001"),
        (in_moodle, "Ben Okoro", "moodle:7009", ""),
        (in_moodle, "x_7001", "", ""),
        (in_moodle, "x_7001", "canvas:7001", ""),
    ],
)
def test_row_is_of_the_id_of_the_layout_or_a_name(
    fill: Callable[[Report], Export], student: str, identity: str, whose: str
) -> None:
    made = fill(report(student, item("a", 2.5, 4.0), identity=identity))
    assert made.unknown == (() if whose else (student,))
    assert [row[0] for row in rows(made) if "2.5" in row] == ([whose] if whose else [])


def test_two_names_for_one_row_are_nobodys() -> None:
    made = canvas_csv([points("Diaz, Ana", 1.0), points("ana01", 1.0)], table(ANA), COLUMN)
    assert (made.graded, made.unknown) == (0, ("Diaz, Ana", "ana01"))


# What stays as it is


@pytest.mark.parametrize("reports", [[points("somebody", 1.0)], [not_graded("Okoro, Ben")]])
def test_student_without_our_grade_keeps_the_cell(reports: list[Report]) -> None:
    for cell in ("3.5", "", "EX", " ex ", "MI", "0"):
        gradebook = table((*BEN[:5], cell), possible=str(int(reports[0].max_points)))
        assert rows(canvas_csv(reports, gradebook, COLUMN))[2] == [*BEN[:5], cell]
    sheet = row(7002, "Okoro, Ben", "3.50", most=f"{reports[0].max_points:.2f}")
    assert rows(moodle_csv(reports, Table(HEADER, (sheet,))))[1] == [*sheet]


def test_excused_student_with_a_grade_of_ours_is_named() -> None:
    made = canvas_csv([points("ana01", 1.0)], table((*ANA[:5], "ex"), BEN), COLUMN)
    assert (made.excused, made.graded) == (("ana01",), 0)


BONUS = FinalReport(**vars(points("Ada Lovelace", 4.0)), final=Final(4.5, (), 4.0))


@pytest.mark.parametrize(("one", "change"), [(points("Ada Lovelace", 1.0), "No"), (BONUS, "Yes")])
def test_grade_that_moodle_would_not_take_stays_and_is_reported(one: Report, change: str) -> None:
    made = moodle_csv([one], Table(HEADER, (row(7001, "Ada Lovelace", "2.00", change=change),)))
    assert (made.graded, made.locked) == (0, ("Ada Lovelace",))
    assert ",2.00,4.00," in made.text


def test_every_other_cell_comes_back_as_it_was() -> None:
    sheet = Table(HEADER, (row(7001, "Ada Lovelace", comment="=1+1, she wrote\n<p>-</p>"), OKORO))
    made = moodle_csv([points("7001", 4.0)], sheet)
    assert rows(made) == [list(HEADER), [*sheet.rows[0][:4], "4", *sheet.rows[0][5:]], list(OKORO)]


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
    cells = [values.get(name, "") for name in header]
    made = rows(canvas_csv([points("Ana Diaz", 1.5)], Table(header, (tuple(cells),)), COLUMN))
    assert (made[0], made[2]) == ([*header], [*cells[:-1], "1.5"])


@pytest.mark.parametrize(("newline", "bom"), [("\n", ""), ("\r\n", "\ufeff")])
def test_canvas_file_keeps_the_form_of_the_export(newline: str, bom: str) -> None:
    lines = [
        f"Student;ID;SIS Login ID;Section;{COLUMN}",
        "    Points Possible;;;;4,5",
        '"Diaz; Ana";1001;ana01;CS336-01;',
        "Okoro, Ben;1002;ben02;CS336-01;3,5",
    ]
    text = bom + newline.join(lines) + newline
    made = canvas_csv([report("ana01", item("a", 1.25, 4.5))], stored(text), COLUMN)
    assert made.text == text.replace(f"01;{newline}", f"01;1,25{newline}")


# Moodle's feedback zip, and other languages


def folder_of(path: str) -> tuple[str, str]:
    """The participant and the file's name that Moodle takes from a path; its older versions need a fifth part."""
    part, _, rest = path.partition("/")
    _, participant, *kind, name = part.split("_", 4)
    assert (participant.isdigit(), kind) == (True, ["assignsubmission", "file"])
    return participant, "/".join([name, rest]).strip("/")


def test_feedback_page_lies_where_moodle_looks(tmp_path: Path) -> None:
    names = ["Ada_von_Lovelace", "عمر", "=cmd", "../../x"]
    sheet = Table(HEADER, tuple(row(7001 + at, name) for at, name in enumerate(names)))
    made = moodle_csv([points(name, 1.0) for name in names], sheet)
    for name in names:
        (tmp_path / f"{file_stem(name)}.html").write_text(f"for {name}", encoding="utf-8")
    with zipfile.ZipFile(io.BytesIO(feedback_zip(made.folders, tmp_path))) as archive:
        found = {folder_of(name): archive.read(name).decode() for name in archive.namelist()}
    assert found == {(str(7001 + at), "feedback.html"): f"for {name}" for at, name in enumerate(names)}


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
UNCLEAR = stored(GERMAN.replace(",Ja,", ",5,").replace(",Nein,", ",5,"))
UNCLEAR = replace(UNCLEAR, rows=tuple((*row[:5], "offen", *row[6:]) for row in UNCLEAR.rows))


@pytest.mark.parametrize("text", [GERMAN, FRENCH])
def test_worksheet_in_another_language_is_filled_in(text: str) -> None:
    sheet = stored(text)
    made = moodle_csv([points("Ada Lovelace", 2.5), report("bela@x.edu")], sheet)
    filled = stored(made.text)
    assert [row[4] for row in filled.rows] == ["2,5", sheet.rows[1][4]]
    assert (made.graded, made.locked, made.unknown) == (1, ("bela@x.edu",), ())
    assert next(iter(made.folders.values())) == "Ada Lovelace_1_assignsubmission_file_"
    assert filled.header == sheet.header


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
LOST = report("only", item(points=None, verdict="not_graded"))
REPORTS = [report("adiaz1"), report("Sean O'Hara_S2", item(points=2.5), identity="S2"), report("stranger"), LOST]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_blackboard_gets_one_column_of_graded_students(encoding: str) -> None:
    made = blackboard_csv(REPORTS, stored(BOARD, encoding), TITLE)
    header, *found = rows(made)
    assert [cell.lstrip("\ufeff") for cell in header] == ["Username", "Student ID", TITLE]
    assert found == [["adiaz1", "S1", "4"], ["o_hara", "S2", "2.5"]]
    assert (made.graded, made.unknown) == (2, ("stranger",))


def test_brightspace_gets_points_and_end_of_line_marks() -> None:
    made = brightspace_csv(REPORTS, stored(SPACE), "HW5 Points Grade")
    found = [["#S1", "#adiaz1", "4", "#"], ["#S2", "#o_hara", "2.5", "#"]]
    assert rows(made) == [["OrgDefinedId", "Username", ITEM, END_OF_LINE], *found]
    assert made.unknown == ("stranger",)


@pytest.mark.parametrize(
    ("worth", "points"), [("1,000", "1000"), ("up to 1.000", "1000"), ("2,50", "2.5"), ("8.0", "8")]
)
def test_a_mark_before_three_digits_is_one_of_thousands(worth: str, points: str) -> None:
    board = BOARD.replace(f'"{TITLE}"', f'"HW5 [Total Pts: {worth} Score] |123456"')
    assert rows(blackboard_csv(REPORTS[:1], stored(board), "HW5", scale=True))[1] == ["adiaz1", "S1", points]


def test_no_name_gets_into_a_column_file_as_a_formula() -> None:
    lines = "".join(f'"{name.replace(chr(34), chr(34) * 2)}","",""\n' for name in NASTY_NAMES)
    text = f'"Username","Student ID","{TITLE}"\n{lines}'
    made = blackboard_csv([report(name) for name in NASTY_NAMES], stored(text), "HW5")
    assert made.graded + len(made.unknown) == len(NASTY_NAMES)
    assert {"=cmd|' /C calc'!A0", "@SUM(A1)"} <= set(made.unknown)
    assert not any(row[0].startswith(("=", "+", "-", "@")) for row in rows(made))


# What would be taken otherwise


def canvas(gradebook: Table, column: str = COLUMN) -> Export:
    return canvas_csv([points("ana01", 1.0)], gradebook, column, scale=True)


def moodle(sheet: Table) -> Export:
    return moodle_csv([points("Ada Lovelace", 4.0)], sheet)


NO_WORKSHEETS = (("student", "points"), ("Identifier", "Bewertung"), ("Identifier", "Grade", "Grade"))
REFUSED: list[tuple[Callable[[], Export], str]] = [
    (lambda: canvas(table(ANA), "HW5 GRPO"), r"no assignment 'HW5 GRPO'. It has: HW5 GRPO \(123456\)"),
    (lambda: canvas(table(ANA), "HW9 (9)"), "no assignment"),
    (lambda: canvas(table(ANA, extra=("Current Score",)), "Current Score"), "no assignment"),
    (lambda: canvas(table(ANA), "Section"), "no assignment"),
    (lambda: canvas(Table(("student", "points"), ())), "export it from Canvas"),
    (lambda: canvas(Table(("Student", "ID", COLUMN), ())), "export it from Canvas"),
    (lambda: canvas(Table(("ID", "Student", "Section", COLUMN), ())), "export it from Canvas"),
    (lambda: canvas(table(ANA, possible="0")), r"is worth 0 points in Canvas and 4 here: change it there\."),
    (lambda: canvas(table(ANA, possible="(read only)")), "read only"),
    (lambda: canvas(table(ANA, possible="a lot")), "is no number"),
    (lambda: canvas(table(("Points Possible", "1003", "", "x", "CS336", "1000"), ANA)), "for the row of points"),
    (lambda: canvas(table(("Diaz, Ana", "", "", "", "", "3"))), "has no ID: 'Diaz, Ana'"),
    (
        lambda: canvas_csv([points("ana01", 1.0)], table(ANA, possible="40"), COLUMN),
        r"worth 40 points in Canvas and 4 here.*--scale",
    ),
    (
        lambda: canvas_csv([points("ana01", 1.0), report("ben02", item("a", 1.0, 5.0))], table(ANA, BEN), COLUMN),
        "out of 4 and 5 points",
    ),
    (lambda: moodle(Table(HEADER, (row(7001, "Ada", most="3.00"),))), r"worth 3\.00 points in Moodle and 4 here"),
    (lambda: moodle(stored(GERMAN.replace("4,00", "10,00"))), r"is worth 10,00 points in Moodle and 4 here"),
    (lambda: moodle(UNCLEAR), "no single column 'Grade'"),
    *((partial(moodle, Table(header, ())), re.escape(", ".join(header))) for header in NO_WORKSHEETS),
    (lambda: blackboard_csv(REPORTS, stored(BOARD), "Final"), "has no single column 'Final'"),
    (lambda: blackboard_csv(REPORTS, stored(BOARD), "Username"), "has no single column 'Username'"),
    (
        lambda: blackboard_csv(REPORTS, stored(GERMAN_BOARD), TITLE),
        "has no column username or .*, with English as your language there",
    ),
    (
        lambda: blackboard_csv(REPORTS, stored(BOARD.replace("Pts: 4", "Pts: 10")), "HW5"),
        "is worth 10 points in Blackboard and 4 here",
    ),
    (
        lambda: brightspace_csv(REPORTS, stored(SPACE.replace("MaxPoints:4", "MaxPoints:50")), "HW5"),
        "50 points in Brightspace and 4 here",
    ),
    (lambda: brightspace_csv(REPORTS, stored("a,b\n1,2\n"), ""), "has no single column ''"),
]


@pytest.mark.parametrize(("make", "says"), REFUSED)
def test_a_gradebook_that_does_not_fit_is_refused(make: Callable[[], Export], says: str) -> None:
    with pytest.raises(KitError, match=says) as refused:
        make()
    assert type(refused.value) is (GraderFault if "out of" in says else UsageError)


def test_points_are_converted_where_that_is_asked_for() -> None:
    made = canvas_csv([points("ana01", 2.5)], table(ANA, possible="40"), COLUMN, scale=True)
    assert made.text.splitlines()[1:] == ["    Points Possible,,,,,40", '"Diaz, Ana",1001,U1,ana01,CS336-01,25']
    made = brightspace_csv(REPORTS, stored(SPACE.replace("MaxPoints:4", "MaxPoints:40")), "HW5", scale=True)
    assert [row[2] for row in rows(made)[1:]] == ["40", "25"]
