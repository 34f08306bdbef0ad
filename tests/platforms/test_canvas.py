"""What Canvas's importer would do with the gradebook that is made for it."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from canvas_importer import Course, imported
from sample_reports import item, not_graded, report

from autograder.gradebook.roster import Person, Roster, keys_of
from autograder.platforms.gradebooks import canvas_csv
from autograder.vocabulary.errors import GraderFault, UsageError
from autograder.vocabulary.files import Table, read_table
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


@pytest.mark.parametrize("cell", ["3.5", "", "EX", "ex", "MI", "0"])
@pytest.mark.parametrize("reports", [[points("somebody", 1.0)], [not_graded("Okoro, Ben")]])
def test_student_without_our_grade_keeps_the_cell(cell: str, reports: list[Report]) -> None:
    gradebook = table((*BEN[:5], cell), possible=str(int(reports[0].max_points)))
    rows = list(csv.reader(io.StringIO(canvas_csv(reports, gradebook, COLUMN).text)))
    assert rows[2] == [*BEN[:5], cell]


def test_an_excused_student_stays_excused() -> None:
    made = canvas_csv([points("ben02", 1.0)], table((*BEN[:5], " ex ")), COLUMN)
    assert made.text.endswith(", ex \n")
    assert made.kept == ("Okoro, Ben",)


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


def test_a_name_that_two_students_share_is_nobodys() -> None:
    twin = ("Diaz, Ana", "1003", "U3", "ana03", "CS336-02", "")
    made = canvas_csv([points("Diaz, Ana", 1.0)], table(ANA, twin), COLUMN)
    assert (made.graded, made.unknown) == (0, ("Diaz, Ana",))


def test_two_reports_for_one_student_are_both_reported() -> None:
    made = canvas_csv([points("Diaz, Ana", 1.0), points("ana01", 4.0)], table(ANA), COLUMN)
    assert (made.graded, made.unknown) == (0, ("Diaz, Ana", "ana01"))


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
