"""When students handed in, from what each platform gives: the file as it is, or the download that is graded."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hand_ins import put_all
from places import KIT

from autograder.gradebook.rules import keep_seen, times_of
from autograder.gradebook.rules import read_times as kept_times
from autograder.grading.assignment import find_assignment
from autograder.platforms.layouts import gathered
from autograder.platforms.times import read_times
from autograder.submissions.submission import Candidate
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.times import moment_in_words

ASSIGNMENT = find_assignment(KIT, "policy_gradient")
PY = f"{ASSIGNMENT.module}.py"
EVENING, MORNING = datetime(2027, 3, 12, 23, 59), datetime(2027, 3, 13, 0, 5)
ENGLISH = ("Friday, 12 March 2027, 11:59 PM", "Saturday, 13 March 2027, 12:05 AM")


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        *((text, EVENING) for text in (
            ENGLISH[0], "Friday, March 12, 2027, 11:59\u202fPM", "Friday, 12 March 2027, 23:59", "Mar 12, 2027 2359",
            "Fri, 12 Mar 2027, 11:59 PM", "FRIDAY, 12 MARCH 2027, 11:59 PM", "12 March, 2027 1159 PM",
        )),
        *((text, MORNING) for text in (
            ENGLISH[1], "Saturday, March 13, 2027, 12:05\u202fAM", "Saturday, 13 March 2027, 00:05", "Mar 13, 2027 005",
            "Sat, 13 Mar 2027, 12:05 am", "SATURDAY, 13 MARCH 2027, 12:05 AM", "13 March, 2027 1205 AM",
        )),
        ("2 Sept 2027 958", datetime(2027, 9, 2, 9, 58)),
        *((text, None) for text in (
            "12/03/2027 23:59", "Freitag, 12. März 2027, 23:59", "Friday, 12 March 2027, 23:59 PM", "Friday, 12 March",
            "Friday, 12 March 2027, halva 11:59", "Friday, 12 March 2570, 11:59 PM", "٣", "Marraskuu 2, 2027 1158",
            "2 Maaliskuu 2027 2358", "Jun2, 2027 958", "Friday " * 9999,
        )),
    ],
)  # fmt: skip
def test_dates_in_english_words_are_read_where_they_are_sure(text: str, moment: datetime | None) -> None:
    assert moment_in_words(text) == moment


WORKSHEET = "\ufeff" + "\n".join([
    "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,Last modified (submission)",
    f'Participant 11,Ana Diaz,ana@x.edu,in,,100.00,Yes,"{ENGLISH[0]}"',
    f'Participant 12,Bo Li,bo@x.edu,in,,100.00,Yes,"{ENGLISH[1]}"',
    "Participant 13,Cy Ash,cy@x.edu,none,,100.00,Yes,-",
])  # fmt: skip
BERLIN = timezone(timedelta(hours=1))
PAGE = [
    {"user_id": 11, "submitted_at": "2027-03-12T22:59:00Z", "body": "while(1);"},
    {"user_id": 13, "submitted_at": None},
]
FILES = {
    "moodle": ("worksheet.csv", WORKSHEET),
    "gradescope": (
        "scores.csv",
        "First Name,Last Name,SID,Email,Total Score,Max Points,Status,Submission ID,Submission Time,Lateness (H:M:S)\n"
        "Ana,Diaz,11,ana@x.edu,,100,Graded,1,2027-03-12 23:59:00 +0100,00:00:00\n"
        "Bo,Li,12,bo@x.edu,,100,Graded,2,2027-03-13 00:05:00 +0100,00:06:00\nCy,Ash,13,cy@x.edu,,,Missing,,,\n",
    ),
    "canvas": (
        "submissions.json",
        f'while(1);{json.dumps(PAGE)}\nwhile(1);[{{"user_id": 12, "submitted_at": "2027-03-12T23:05:00Z"}}]',
    ),
    "by hand": (
        "t.csv",
        "student;submitted\nBo Li_12;2027-03-12 10:00\nBo Li_12;2027-03-13 00:05\nAna Diaz_11;2027-03-12 23:59\n",
    ),
}


PREFIX = {"moodle": "moodle:", "canvas": "canvas:", "gradescope": ""}


@pytest.mark.parametrize("platform", FILES)
def test_a_platforms_file_says_when_students_handed_in(tmp_path: Path, platform: str) -> None:
    name, text = FILES[platform]
    (tmp_path / name).write_text(text, encoding="utf-8")
    prefix = PREFIX.get(platform)
    people = [
        Candidate(student, tmp_path, "", identity="" if prefix is None else f"{prefix}{student[-2:]}")
        for student in ("Ana Diaz_11", "Bo Li_12", "Cy Ash_13", "nobody_99")
    ]
    found = read_times(tmp_path / name, ASSIGNMENT, people)
    local = {
        student: when.astimezone(BERLIN).replace(tzinfo=None) if when.tzinfo else when
        for student, when in found.items()
    }
    assert local["Ana Diaz_11"] == EVENING
    assert local["Bo Li_12"] == MORNING
    assert not {"Cy Ash_13", "nobody_99"} & set(found)


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("t.csv", "student,submitted\nada,yesterday\n", "'yesterday' is no time that can be read for sure"),
        ("t.csv", "student,submitted\nada,03/04/2027 10:00\n", "is no time that can be read for sure"),
        ("t.csv", "student,submitted\n,2027-03-12 10:00\n", "line 2: a row without a student"),
        ("t.csv", "student,submitted\na,2027-03-12 10:00\na,2027-03-12 10:00Z\n", "names a zone and one does not"),
        ("t.csv", "student,points\nada,3\n", "has no column that says when students handed in"),
        ("t.json", '{"user_id": 1}', "is no list of submissions as Canvas's API gives it"),
        ("t.json", "while(1);", ""),
    ],
)
def test_unusable_file_of_times_is_refused(tmp_path: Path, name: str, text: str, sentence: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    if not sentence:
        assert read_times(tmp_path / name, ASSIGNMENT, [Candidate("ada", tmp_path, "")]) == {}
        return
    with pytest.raises(UsageError) as refused:
        read_times(tmp_path / name, ASSIGNMENT, [Candidate("ada", tmp_path, "")])
    assert str(tmp_path / name) in str(refused.value)
    assert sentence in str(refused.value)


# Downloads


METADATA = """submission_1:
  :submitters:
  - :name: Ana Diaz
    :sid: '11'
  :created_at: 2027-03-12 22:59:00.000000000 Z
"""
DOWNLOADS = {
    "blackboard": (
        {f"HW5_ana_attempt_2027-03-12-23-59-00_{PY}": "", f"HW5_bo_attempt_2027-03-13-00-05-00_{PY}": ""},
        EVENING,
    ),
    "brightspace": (
        {f"1-9 - Ana Diaz - Mar 12, 2027 1159 PM/{PY}": "", f"2-9 - Bo Li - Mar 13, 2027 1205 AM/{PY}": ""},
        EVENING,
    ),
    "gradescope": ({f"submission_1/{PY}": "", "submission_metadata.yml": METADATA}, EVENING.replace(tzinfo=BERLIN)),
    "nbgrader": (
        {f"ana/ps5/{PY}": "", "ana/ps5/timestamp.txt": "2027-03-12 22:59:00.000000 UTC"},
        EVENING.replace(tzinfo=BERLIN),
    ),
    "canvas": ({f"diazana_LATE_11_1_{PY}": "", f"libo_12_2_{PY}": ""}, None),
    "moodle": ({f"Ana Diaz_11_assignsubmission_file/{PY}": ""}, None),
    "a timestamp of one student's own making": (
        {f"ana/ps5/{PY}": "", "ana/ps5/timestamp.txt": "2020-01-01", f"bo/{PY}": ""},
        None,
    ),
}


@pytest.mark.parametrize(("files", "first"), DOWNLOADS.values(), ids=DOWNLOADS)
def test_download_says_when_work_was_handed_in(tmp_path: Path, files: dict[str, str], first: datetime | None) -> None:
    put_all(tmp_path / "d", {name: text or "x = 1\n" for name, text in files.items()})
    with gathered([tmp_path / "d"], ASSIGNMENT.module) as class_:
        assert class_.candidates[0].submitted == first
    if first is None:
        with pytest.raises(UsageError, match="does not say when students handed in"):
            read_times(tmp_path / "d", ASSIGNMENT, [])
    else:
        assert first in read_times(tmp_path / "d", ASSIGNMENT, []).values()


# What a folder of grades keeps


def test_what_staff_say_counts_before_what_a_download_said(tmp_path: Path) -> None:
    keep_seen(tmp_path, {"bo": EVENING, "cy": EVENING})
    keep_seen(tmp_path, {"cy": MORNING})
    assert kept_times(tmp_path / "handed_in.csv") == {"bo": EVENING, "cy": MORNING}
    zoned = times_of(tmp_path, BERLIN, {"bo": MORNING.replace(tzinfo=UTC)})
    assert zoned == {"bo": MORNING.replace(tzinfo=UTC), "cy": MORNING.replace(tzinfo=BERLIN)}
    with pytest.raises(UsageError, match=r"bo, 2027-03-12 23:59, names no time zone: give `timezone`"):
        times_of(tmp_path, None)
