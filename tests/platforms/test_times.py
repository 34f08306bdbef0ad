"""When students handed in, from what each platform gives: the file as it is, or the download that is graded."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from places import KIT

from autograder.gradebook.rules import keep_seen, times_of
from autograder.gradebook.rules import read_times as kept_times
from autograder.grading.assignment import find_assignment
from autograder.platforms.layouts import gathered
from autograder.platforms.times import moments_in_words, read_times
from autograder.submissions.submission import Candidate
from autograder.vocabulary.errors import UsageError

ASSIGNMENT = find_assignment(KIT, "policy_gradient")
PY = f"{ASSIGNMENT.module}.py"
EVENING, MORNING = datetime(2027, 3, 12, 23, 59), datetime(2027, 3, 13, 0, 5)
ENGLISH = ("Friday, 12 March 2027, 11:59 PM", "Saturday, 13 March 2027, 12:05 AM")
IN_WORDS = {
    "English": ENGLISH,
    "American": ("Friday, March 12, 2027, 11:59 PM", "Saturday, March 13, 2027, 12:05 AM"),
    "German": ("Freitag, 12. März 2027, 23:59", "Samstag, 13. März 2027, 00:05"),
    "French": ("vendredi 12 mars 2027, 23:59", "samedi 13 mars 2027, 00:05"),
    "Spanish": ("viernes, 12 de marzo de 2027, 23:59", "sábado, 13 de marzo de 2027, 00:05"),
    "Catalan": ("divendres, 12 de març 2027, 23:59", "dissabte, 13 de març 2027, 00:05"),
    "Portuguese": ("sexta-feira, 12 de março de 2027, 23:59", "sábado, 13 de março de 2027, 00:05"),
    "Polish": ("piątek, 12 marca 2027, 23:59", "sobota, 13 marca 2027, 00:05"),
    "Czech": ("pátek, 12. března 2027, 23.59", "sobota, 13. března 2027, 00.05"),
    "Finnish": ("perjantaina 12. maaliskuuta 2027, 23.59", "lauantaina 13. maaliskuuta 2027, 00.05"),
    "Hungarian": ("2027. március 12., péntek, 23:59", "2027. március 13., szombat, 00:05"),
    "Turkish": ("12 Mart 2027, Cuma, 23:59", "13 Mart 2027, Cumartesi, 00:05"),
    "Russian": ("пятница, 12 марта 2027, 23:59", "суббота, 13 марта 2027, 00:05"),
    "Hebrew": ("יום שישי, 12 מרץ 2027, 23:59", "שבת, 13 מרץ 2027, 00:05"),
    "Arabic": ("الجمعة، 12 مارس 2027، 11:59 م", "السبت، 13 مارس 2027، 12:05 ص"),
    "Vietnamese": ("Thứ Sáu, 12 tháng 3 2027, 11:59 PM", "Thứ Bảy, 13 tháng 3 2027, 12:05 AM"),
    "Japanese": ("2027年 03月 12日(金曜日) 23:59", "2027年 03月 13日(土曜日) 00:05"),
    "Chinese": ("2027年03月12日 星期五 23:59", "2027年03月13日 星期六 00:05"),
    "Korean": ("2027년 3월 12일 금요일 오후 11:59", "2027년 3월 13일 토요일 오전 12:05"),
}


@pytest.mark.parametrize("texts", IN_WORDS.values(), ids=IN_WORDS)
def test_dates_in_words_are_read_in_their_language(texts: tuple[str, str]) -> None:
    assert moments_in_words(texts) == [EVENING, MORNING]


@pytest.mark.parametrize(
    "text",
    [
        "12/03/2027 23:59",
        "Friday, 11 March 2027, 11:59 PM",  # a Thursday
        "Friday, 12 March 2027, 23:59 PM",
        "Friday, 12 March 2027, halva 11:59",  # perhaps of the evening
        "12 March 2027, 11:59 PM",
        "Friday, 12 March 2570, 11:59 PM",
        "Friday, 12 March",
        "٣",
        "Friday " * 9999,
    ],
)
def test_dates_that_are_not_sure_are_none(text: str) -> None:
    assert moments_in_words([text]) is None


def worksheet(times: tuple[str, str], *, english: bool = True) -> str:
    header = (
        "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,Last modified (submission)"
    )
    if not english:
        header = "ID,Nome completo,Indirizzo email,Stato,Valutazione,Valutazione massima,Modificabile,Ultima modifica"
    yes = "Yes" if english else "Sì"
    rows = [
        f'Participant 11,Ana Diaz,ana@x.edu,in,-,100.00,{yes},"{times[0]}",-',
        f'Participant 12,Bo Li,bo@x.edu,in,-,100.00,{yes},"{times[1]}",-',
        f"Participant 13,Cy Ash,cy@x.edu,none,-,100.00,{yes},-,-",
    ]
    rows = [row.replace(",-,100.00", ",,100.00") for row in rows]
    return "\N{BYTE ORDER MARK}" + "\n".join([f"{header},Last modified (grade)", *rows]) + "\n"


BERLIN = timezone(timedelta(hours=1))
PAGE = [
    {"user_id": 11, "submitted_at": "2027-03-12T22:59:00Z", "body": "while(1);"},
    {"user_id": 13, "submitted_at": None},
]
FILES = {
    "moodle": ("worksheet.csv", worksheet(ENGLISH)),
    "moodle, German": ("worksheet.csv", worksheet(IN_WORDS["German"])),
    "moodle, Italian headings": (
        "w.csv",
        worksheet(("venerdì, 12 marzo 2027, 23:59", IN_WORDS["English"][1])[:1] * 2, english=False),
    ),
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
    prefix = PREFIX.get(platform.partition(",")[0])
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
    assert local["Bo Li_12"] == (EVENING if "Ultima" in text else MORNING)
    assert not {"Cy Ash_13", "nobody_99"} & set(found)


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("t.csv", "student,submitted\nada,yesterday\n", "'yesterday' is no time that can be read for sure"),
        ("t.csv", "student,submitted\nada,03/04/2027 10:00\n", "is no time that can be read for sure"),
        ("t.csv", "student,submitted\n,2027-03-12 10:00\n", "line 2: a row without a student"),
        (
            "t.csv",
            "student,submitted\nada,2027-03-12 10:00\nada,2027-03-12 10:00Z\n",
            "one names a zone and one does not",
        ),
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


SETTINGS = json.dumps({"active_version": 1, "history": [{"version": 1, "time": "2027-03-12 23:59:00+0100"}]})
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
    "submitty": ({f"ana/1/{PY}": "", "ana/user_assignment_settings.json": SETTINGS}, EVENING.replace(tzinfo=BERLIN)),
    "codegrade": ({f"Ana Diaz - 2027-03-12 22:59:00/{PY}": ""}, EVENING.replace(tzinfo=BERLIN)),
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
    for name, text in files.items():
        (tmp_path / "d" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "d" / name).write_text(text or "x = 1\n", encoding="utf-8")
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
