"""Files of a course that somebody has spoilt: refused with place and reason, or read; never a traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from places import KIT
from sample_reports import report

from autograder.gradebook.decisions import decisions_of
from autograder.gradebook.grades_folder import read_grades
from autograder.gradebook.roster import read_roster
from autograder.gradebook.rules import read_policy
from autograder.grading.assignment import Assignment, find_assignment
from autograder.grading.details import read_details
from autograder.platforms.times import read_times
from autograder.vocabulary.errors import GraderFault, KitError, UsageError
from autograder.vocabulary.files import write_atomically
from autograder.vocabulary.report import to_json


def refusal(read: Callable[[], object]) -> str:
    """Why something cannot be read; "" where it can."""
    try:
        read()
    except KitError as refused:
        return str(refused)
    return ""


DIGITS = "9" * 5000
TABLES = "late.deadline = 2027-03-12T23:59:00Z\n"


@pytest.fixture(scope="module")
def assignment() -> Assignment:
    return find_assignment(KIT, "policy_gradient")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"drop.lowest = {DIGITS}", "this is not TOML: Exceeds the limit"),
        (f"drop.lowest = 0x{'f' * 5000}", "line 1: drop.lowest should be"),
        (f"{TABLES}late.per_day = 0x{'f' * 5000}", "line 2: late.per_day should be a valid number"),
        (f"timezone = 0x{'f' * 5000}", "timezone should be a time zone"),
        ("a = " + "[" * 50_000 + "]" * 50_000, "TOML"),
        pytest.param("a." * 20_000 + "b = 1", "a", marks=pytest.mark.long),
        ("late.deadline = 9999-12-31T23:59:59-23:59", "line 1: late.deadline lies in the year 9999"),
        ("late.deadline = 0001-01-01T00:00:00+23:59", "line 1: late.deadline lies in the year 1"),
        ("excused.items.ada = [[1], {}]", "excused.items.ada should be a valid string"),
        ("excused.students = [[]]", "excused.students should be a valid string"),
        ("late = 1", "late should be a valid dictionary"),
        ('timezone = "\\u0000"', "timezone should be a time zone"),
        (f'timezone = "{"x" * 5000}"', "timezone should be a time zone"),
        ('"\\u202e" = 1', r"\u202e is no rule"),
    ],
)
def test_hostile_policy_is_refused_in_a_sentence(tmp_path: Path, assignment: Assignment, text: str, says: str) -> None:
    (tmp_path / "policy.toml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as refused:
        read_policy(tmp_path / "policy.toml", assignment)
    sentence = str(refused.value)
    assert says in sentence
    assert sentence.startswith(str(tmp_path / "policy.toml"))
    assert len(sentence) < 1000
    assert "\n" not in sentence


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"\0", b"\xff\xfe", b"student\n" + b'"' * 99_999, b"student;id;" * 9999, b"student\r\n\x1b[2J,\r\n"),
        f"student,id\n{DIGITS},{DIGITS}".encode(),
    ],
    ids=range(7),
)
def test_spoilt_csv_is_read_or_refused_with_its_path(tmp_path: Path, assignment: Assignment, data: bytes) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(data)
    for read in (
        lambda: read_roster(path),
        lambda: decisions_of(tmp_path, assignment, [path]).merged(),
        lambda: read_times(path, assignment, []),
    ):
        assert str(path) in (refusal(read) or str(path))


def test_time_at_the_edge_of_the_calendar_is_refused(tmp_path: Path, assignment: Assignment) -> None:
    path = tmp_path / "t.csv"
    path.write_text("student,submitted\nada,9999-12-31 23:59:59 -23:59\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"t.csv: '9999-12-31 23:59:59 -23:59' is no time that can be read"):
        read_times(path, assignment, [])
    for student, text in (
        ("ada", b"2027-03-12 10:00:00 UTC"),
        ("cleo", b"2027-03-12 10:00:00 UTC"),
        ("dora", b"2027-03-12 10:00:00 UTC"),
        ("eve", b"9999-12-31 23:59:59 -23:59"),
        ("bob", b"\xff"),
    ):
        (tmp_path / student / assignment.name).mkdir(parents=True)
        (tmp_path / student / assignment.name / "timestamp.txt").write_bytes(text)
        (tmp_path / student / assignment.name / f"{assignment.module}.py").write_bytes(b"")
    path.unlink()
    assert set(read_times(tmp_path, assignment, [])) == {"ada", "cleo", "dora"}


FINAL = to_json(report("ada")) | {"final": 3.0, "final_max": 4.0, "adjustments": []}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        *((text, "is no report") for text in ("[" * 100_000, DIGITS, f'{{"schema": {DIGITS}}}', "null", "[1]", "{}")),
        *(
            (json.dumps(FINAL | wrong), "final is none that the rules wrote")
            for wrong in ({"final": "3"}, {"final": 1e308}, {"final_max": -1}, {"adjustments": [{}]})
        ),
    ],
)
def test_damaged_report_or_final_grade_is_refused_with_its_path(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "reports" / "ada.json"
    write_atomically(path, text)
    with pytest.raises(GraderFault, match=f"^{path}.* {says}"):
        read_grades(tmp_path)
    assert read_details(path) is None
