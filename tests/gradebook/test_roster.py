"""Who is who: rosters as platforms write them, and names that may be written in two ways."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.gradebook.roster import Roster, alternatives, key, read_roster
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import Table, table_of


def roster(tmp_path: Path, text: str) -> Roster:
    path = tmp_path / "roster.csv"
    path.write_text(text, encoding="utf-8")
    return read_roster(path)


def student(people: Roster, *names: str) -> str | None:
    person = people.person(*names)
    return person.student if person else None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("student,email\nAda Lovelace,ada@x.edu\n", ["Ada Lovelace", "ada@x.edu", "ADA@X.EDU", "ada  lovelace"]),
        ("First Name,Last Name,SID,Email\nAda,Lovelace,31,ada@x.edu\n", ["31", "Ada Lovelace", "Lovelace, Ada"]),
        ("id,first_name,last_name,email,lms_user_id\nada,Ada,Lovelace,,9\n", ["ada", "9", "Ada Lovelace"]),
        ("identifier,github_username,github_id,name\nada@x.edu,adal,7,Ada Lovelace\n", ["adal", "ada@x.edu", "7"]),
        ("Student;ID;SIS User ID;SIS Login ID\nLovelace, Ada;1001;U1;ada\n", ["1001", "U1", "ada", "lovelaceada"]),
        ("\ufeffname\tlogin\r\nAda Lovelace\tada\r\n", ["ada"]),
    ],
)
def test_roster_of_every_platform_names_its_students(tmp_path: Path, text: str, names: list[str]) -> None:
    people = roster(tmp_path, text)
    assert len(people.people) == 1
    assert {student(people, name) for name in names} <= {"Ada Lovelace", "Lovelace, Ada"}


def test_key_of_two_students_section_or_grade_stands_for_nobody(tmp_path: Path) -> None:
    people = roster(tmp_path, "student,id,login,section,HW1\nAda,7,x,3,9\nBen,8,7,4,5\n")
    assert [student(people, key) for key in ("7", "8", "x", "3", "9")] == [None, "Ben", "Ada", None, None]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("email,section\na@x.edu,1\n", "names no student"),
        ("student\n\n", "names no student"),
        ("student\nAda\nAda\n", "line 3: Ada stands here twice"),
    ],
)
def test_file_that_is_no_roster_gets_one_sentence(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        roster(tmp_path, text)
    assert "\n" not in str(caught.value)


CELL = st.text(st.characters(codec="utf-8", exclude_characters="\0"))


@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=5), st.sampled_from(",;\t"))
def test_table_reads_again_what_it_writes(rows: list[tuple[str, str]], mark: str) -> None:
    header = ("student name", "the email")
    found = table_of(Table(header, (), mark).text([header, *rows]).encode(), Path("t.csv"))
    assert (found.header, found.rows, found.delimiter) == (header, tuple(rows), mark)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ada Lovelace", "  ada   LOVELACE "),
        ("Jose\u0301", "JOS\u00c9"),
        ("\u202dمريم\u202c", "مريم"),
        ("Ｏｌｇａ", "olga"),
        ("straße", "STRASSE"),
    ],
)
def test_ways_of_writing_a_name_are_one_name(one: str, other: str) -> None:
    assert key(one) == key(other) != key("Оlga")  # whose first letter is Cyrillic


@pytest.mark.parametrize(
    ("student", "identity", "expected"),
    [
        ("diazana_1001", "canvas:1001", ["1001", "diazana_1001", "diazana"]),
        ("Ana Diaz_U1", "U1", ["U1", "Ana Diaz_U1", "Ana Diaz"]),
        ("x_1002", "", ["x_1002"]),
        ("Ana", "canvas:1001", ["1001", "Ana", "Ana"]),
    ],
)
def test_id_is_what_the_layout_said(student: str, identity: str, expected: list[str]) -> None:
    assert alternatives(student, identity) == expected
