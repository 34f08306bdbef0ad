"""Files of a course that somebody has spoilt: refused with place and reason, or read; never a traceback."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from places import KIT
from sample_reports import report

from autograder.gradebook.decisions import decisions_of
from autograder.gradebook.final_grades import Adjustment
from autograder.gradebook.grades_folder import read_grades
from autograder.gradebook.roster import read_roster
from autograder.gradebook.rules import read_policy
from autograder.grading.assignment import Assignment, find_assignment
from autograder.grading.details import read_details
from autograder.platforms.gradebooks import plain_csv
from autograder.platforms.times import read_times
from autograder.vocabulary.errors import KitError, UsageError
from autograder.vocabulary.report import from_bytes, to_json


def told(read: Callable[[], Any]) -> tuple[Any, str]:
    """What is read, or the sentence why not."""
    try:
        return read(), ""
    except KitError as refused:
        return None, str(refused)


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


BROKEN = [
    b"",
    b"\0",
    b"\xff\xfe",
    b"student\n" + b'"' * 99_999,
    b"student,id\n" + DIGITS.encode() + b"," + DIGITS.encode(),
]


@pytest.mark.parametrize("data", [*BROKEN, b"student;id;" * 9999, b"student\r\n\x1b[2J,\r\n"])
def test_spoilt_csv_is_read_or_refused_with_its_path(tmp_path: Path, assignment: Assignment, data: bytes) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(data)
    for read in (
        read_roster,
        lambda path: decisions_of(tmp_path, assignment, [path]).merged(),
        lambda path: read_times(path, assignment, []),
    ):
        found, refused = told(partial(read, path))
        assert found is not None or str(path) in refused


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


def mutated(value: Any, random: random.Random) -> Any:
    """The same JSON with one thing in it another."""
    value = copy.deepcopy(value)
    places: list[tuple[Any, Any]] = []

    def walk(inner: Any) -> None:
        for key in inner if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else ():
            places.append((inner, key))
            walk(inner[key])

    walk(value)
    holder, key = random.choice(places)
    strange = [None, True, -1, 10**400, 1e308, "", "x" * 999, "\u202e", [], [[]], {}, {"a": 1}, [None], float("nan"), 0]
    if random.random() < 0.2:
        holder.pop(key)
    else:
        holder[key] = random.choice(strange)
    return value


def test_changed_report_is_read_whole_or_refused(tmp_path: Path) -> None:
    generator = random.Random(0)
    whole = to_json(report("ada")) | {
        "final": 3.0,
        "final_max": 4.0,
        "adjustments": [asdict(Adjustment("late", "", 4.0, 3.0, "late"))],
    }
    (tmp_path / "reports").mkdir()
    read = 0
    for _ in range(400):
        text = json.dumps(mutated(whole, generator))
        (tmp_path / "reports" / "ada.json").write_text(text, encoding="utf-8")
        found, refused = told(partial(read_grades, tmp_path))
        if found is None:
            assert str(tmp_path) in refused
            continue
        read += 1
        assert plain_csv(found)
    assert 0 < read < 270


@pytest.mark.parametrize("text", ["[" * 100_000, DIGITS, '{"schema": ' + DIGITS + "}", "null", "[1]", "{}"])
def test_other_json_is_no_report_and_no_details(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    assert from_bytes(text.encode()) is None
    assert read_details(tmp_path / "x.json") is None
