"""The grading worksheet and the feedback zip, as Moodle's importers read them."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from sample_reports import item, not_graded, report

from autograder.gradebook.final_grades import Final
from autograder.gradebook.grades_folder import FinalReport
from autograder.platforms.gradebooks import feedback_zip, moodle_csv
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import Table, file_stem, read_table, table_of
from autograder.vocabulary.report import Report

HEADER = (
    "Identifier",
    "Full name",
    "Email address",
    "Status",
    "Grade",
    "Maximum Grade",
    "Grade can be changed",
    "Last modified (submission)",
    "Last modified (grade)",
    "Feedback comments",
)


def row(
    number: int, name: str, grade: str = "", *, most: str = "4.00", change: str = "Yes", comment: str = ""
) -> tuple[str, ...]:
    email = f"{number}@x.edu"
    return (f"Participant {number}", name, email, "Submitted for grading", grade, most, change, "then", "-", comment)


ADA, BEN = row(7001, "Ada Lovelace"), row(7002, "Ben Okoro", "3.50")


def points(name: str, value: float) -> Report:
    return report(name, item("a", value, 4.0))


def importer(text: str, existing: dict[str, str], maximum: float = 4.0) -> dict[str, str]:
    """The grades that Moodle would change: by participant, never an empty one, none above the maximum."""
    rows = list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True))
    columns = {name: rows[0].index(name) for name in ("Identifier", "Grade", "Last modified (grade)")}
    changed = {}
    for cells in rows[1:]:
        participant = cells[columns["Identifier"]].removeprefix("Participant ")
        grade = cells[columns["Grade"]]
        before = existing[participant]
        if grade and 0 <= float(grade) <= maximum and (before == "" or float(before) != float(grade)):
            changed[participant] = grade
    return changed


def folder_of(path: str) -> tuple[str, str]:
    """The participant and the file's name that Moodle takes from a path; its older versions need a fifth part."""
    part, _, rest = path.partition("/")
    info = part.split("_", 4)
    assert len(info) == 5
    assert info[1].isdigit()
    assert info[2:4] == ["assignsubmission", "file"]
    return info[1], "/".join([info[4], rest]).strip("/")


def test_every_other_cell_comes_back_as_it_was() -> None:
    sheet = Table(HEADER, (row(7001, "Ada Lovelace", comment="=1+1, she wrote\n<p>-</p>"), BEN))
    rows = list(csv.reader(io.StringIO(moodle_csv([points("7001", 4.0)], sheet).text, newline="")))
    assert rows == [list(HEADER), [*sheet.rows[0][:4], "4", *sheet.rows[0][5:]], list(BEN)]


@pytest.mark.parametrize("reports", [[not_graded("Ben Okoro")], [report("zoe", item("a", 1.0, 8.0))]])
def test_nothing_is_cleared(reports: list[Report]) -> None:
    sheet = Table(HEADER, (row(7002, "Ben Okoro", "3.50", most="8.00"),))
    assert importer(moodle_csv(reports, sheet).text, {"7002": "3.50"}, 8.0) == {}
    assert "3.50" in moodle_csv(reports, sheet).text


@pytest.mark.parametrize("name", ["Ada Lovelace", "ADA LOVELACE", "7001@x.edu", "7001"])
def test_a_student_is_found_by_name_address_or_number(name: str) -> None:
    assert moodle_csv([points(name, 1.0)], Table(HEADER, (ADA, BEN))).unknown == ()


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
    made = moodle_csv([report(student, item("a", 1.0, 4.0), identity=identity)], Table(HEADER, (ADA, BEN)))
    assert [folder.split("_")[1] for folder in made.folders.values()] == expected


def test_a_locked_grade_stays_and_is_reported() -> None:
    made = moodle_csv([points("Ada Lovelace", 1.0)], Table(HEADER, (row(7001, "Ada Lovelace", "2.00", change="No"),)))
    assert made.locked == ("Ada Lovelace",)
    assert ",2.00,4.00," in made.text


def test_other_maximum_grade_is_refused() -> None:
    sheet = Table(HEADER, (row(7001, "Ada Lovelace", most="3.00"),))
    with pytest.raises(UsageError, match=r"worth 3\.00 points in Moodle and 4 here"):
        moodle_csv([points("Ada Lovelace", 4.0)], sheet)


def test_a_decimal_comma_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text("﻿ID;Nombre;Calificación;Maximum Grade\nParticipante 7001;Ada;;4,00\n", encoding="utf-8")
    made = moodle_csv([points("7001", 2.5)], read_table(path))
    assert made.text == "﻿ID;Nombre;Calificación;Maximum Grade\nParticipante 7001;Ada;2,5;4,00\n"


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
    made = moodle_csv([bonus], Table(HEADER, (ADA, BEN)))
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
    made = moodle_csv([report("Ada Lovelace"), report("bela@x.edu")], sheet)
    filled = table_of(made.text.encode(), Path("w.csv"))
    assert [row[4] for row in filled.rows] == ["4", sheet.rows[1][4]]
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
