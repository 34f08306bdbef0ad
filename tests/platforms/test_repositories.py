"""What Submitty, CodeGrade and Classroom 50 give for download: whose, which version, and what nobody can claim."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from autograder.gradebook.roster import Person, Roster, keys_of
from autograder.platforms.downloads import BY_NAMES
from autograder.platforms.hand_in import Gathered
from autograder.platforms.layouts import evident, gathered
from autograder.submissions.reading import read
from autograder.submissions.submission import Submission
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import entries_of

MODULE = "policy_gradient"
PY = f"{MODULE}.py"
SETTINGS = "user_assignment_settings.json"


def put(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def gather(place: Path, **asked: Any) -> tuple[Gathered, dict[str, Submission]]:
    with gathered([place], MODULE, **asked) as found:
        return found, {one.student: read(one, MODULE) for one in found.candidates}


def sources(place: Path, **asked: Any) -> dict[str, str]:
    return {student: one.source for student, one in gather(place, **asked)[1].items()}


def zipped(path: Path, files: Mapping[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


# Submitty


def settings(active: Any, *times: str) -> str:
    history = [{"version": at, "time": when, "who": "x", "type": "upload"} for at, when in enumerate(times, 1)]
    return json.dumps({"active_version": active, "history": history})


ALL = {
    f"submissions/ada/1/{PY}": "x = 'ada 1'\n",
    f"submissions/ada/2/{PY}": "x = 'ada 2'\n",
    f"submissions/ada/{SETTINGS}": settings(1, "2027-03-01 22:10:11-0500", "2027-03-04 01:00:00-0500"),
    f"submissions/ben/1/part1/{PY}": "x = 'ben 1'\n",
    f"submissions/ben/{SETTINGS}": settings(1, "2027-03-03 09:00:00-0500 America/New_York"),
}
RESULTS = {"results/ada/1/grade.txt": "9", "results/ben/1/results.json": "{}"}


def test_the_version_that_counts_in_submitty_is_graded(tmp_path: Path) -> None:
    found, read_ = gather(put(tmp_path, ALL | RESULTS))
    assert {student: one.source for student, one in read_.items()} == {"ada": "x = 'ada 1'\n", "ben": "x = 'ben 1'\n"}
    assert read_["ada"].notes == ("version 1 of 2 was graded, which counts in Submitty",)
    assert (found.ignored, found.refused) == ((), ())


@pytest.mark.parametrize("top", ["", "hw01/"])
@pytest.mark.parametrize("beside", [{}, RESULTS])
def test_submitty_zip_is_read_like_its_folder(tmp_path: Path, top: str, beside: dict[str, str]) -> None:
    path = zipped(tmp_path / "hw01_all_students.zip", {f"{top}{name}": text for name, text in (ALL | beside).items()})
    assert sources(path, class_zip=True) == {"ada": "x = 'ada 1'\n", "ben": "x = 'ben 1'\n"}
    with pytest.raises(UsageError, match=r"looks like a whole class.*--class-zip"):
        gather(path)


def test_submitty_says_when_a_version_was_handed_in(tmp_path: Path) -> None:
    read_ = gather(put(tmp_path, ALL), deadline=datetime(2027, 3, 3, 0, 0, tzinfo=UTC))[1]
    assert "handed in late" not in " ".join(read_["ada"].notes)
    assert read_["ben"].notes == ("handed in late, at 2027-03-03 14:00 UTC",)


def test_submitty_grades_what_was_pulled(tmp_path: Path) -> None:
    by_git = {
        "submissions/ada/2/.submit.VCS_CHECKOUT": "",
        f"submissions/ada/{SETTINGS}": settings(2, "2027-03-01 22:10:11-0500"),
        f"checkout/ada/1/{PY}": "x = 'old'\n",
        f"checkout/ada/2/{PY}": "x = 'pulled'\n",
        f"submissions/ben/1/{PY}": "x = 'uploaded'\n",
        f"submissions/ben/{SETTINGS}": settings(1, "2027-03-01 22:10:11-0500"),
    }
    assert sources(put(tmp_path, by_git)) == {"ada": "x = 'pulled'\n", "ben": "x = 'uploaded'\n"}


# On Submitty's server

COURSE = {
    "submissions/hw1/ada/2/.submit.VCS_CHECKOUT": "",
    f"submissions/hw1/ada/{SETTINGS}": settings(2, "2027-03-01 22:10:11-0500", "2027-03-02 22:10:11-0500"),
    f"checkout/hw1/ada/1/{PY}": "x = 'old'\n",
    f"checkout/hw1/ada/2/{PY}": "x = 'pulled'\n",
    "submissions/hw1/ben/1/.submit.VCS_CHECKOUT": "",
    f"submissions/hw1/ben/{SETTINGS}": settings(1, "2027-03-01 22:10:11-0500"),
    f"checkout/hw1/ben/1/work/{PY}": "x = 'in a folder'\n",
    "results/hw1/ada/1/grade.txt": "9",
}
PULLED = {"ada": "x = 'pulled'\n", "ben": "x = 'in a folder'\n"}


@pytest.mark.parametrize("given", ["submissions/hw1", "checkout/hw1", ""])
def test_submitty_server_folder_is_read_with_its_neighbour(tmp_path: Path, given: str) -> None:
    place = put(tmp_path / "f26", COURSE) / given
    assert sources(place) == PULLED
    assert (
        gather(place, deadline=datetime(2027, 3, 2, 12, 0, tzinfo=UTC))[1]["ada"].notes[0].startswith("handed in late")
    )


def test_of_several_gradeables_none_is_taken_for_a_student(tmp_path: Path) -> None:
    other = {name.replace("hw1", "hw2"): text for name, text in COURSE.items()}
    with pytest.raises(UsageError, match=r"hw1 is one of several gradeables of Submitty's: give the folder of one\."):
        gather(put(tmp_path, COURSE | other))
    assert sources(tmp_path / "checkout" / "hw2") == PULLED


def test_what_submitty_did_not_pull_is_nobodys_zero(tmp_path: Path) -> None:
    failed = "checkout/hw1/ada/2/failed_to_clone_repository.txt"
    files = {name: text for name, text in COURSE.items() if "checkout/hw1/ada/2" not in name} | {failed: "error"}
    found, read_ = gather(put(tmp_path / "one", files) / "submissions" / "hw1")
    assert set(read_) == {"ben"}
    assert found.refused == (
        "ada is not graded: Submitty could not pull the repository (failed_to_clone_repository.txt).",
    )
    alone = {name: text for name, text in COURSE.items() if not name.startswith("checkout/hw1/ben")}
    found, read_ = gather(put(tmp_path / "two", alone) / "submissions" / "hw1")
    assert set(read_) == {"ada"}
    assert found.refused == ("ben is not graded: it was handed in by git, and what was pulled is not there.",)


def test_a_checkout_that_is_a_link_leads_nowhere(tmp_path: Path) -> None:
    put(tmp_path / "elsewhere", {f"2/{PY}": "x = 'stolen'\n"})
    place = put(tmp_path / "f26", {name: text for name, text in COURSE.items() if "checkout/hw1/ada" not in name})
    (place / "checkout" / "hw1" / "ada").symlink_to(tmp_path / "elsewhere")
    assert set(sources(place / "submissions" / "hw1")) == {"ben"}


# What staff cannot use


UNUSABLE = ['"1"', "true", "-1", "1e3", "null", "9" * 5_000, "[1]"]
UNCLEAR = f"ben is not graded: Submitty's {SETTINGS} does not say which version counts."


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        (settings(0, "2027-03-03 09:00:00-0500"), "ben has cancelled the submission in Submitty."),
        (settings(7), "ben is not graded: version 7, which counts in Submitty, is not there."),
        *((text, UNCLEAR) for text in ("", "[]", "{", "[" * 100_000)),
        *((f'{{"active_version": {version}}}', UNCLEAR) for version in UNUSABLE),
    ],
)
def test_submitty_settings_without_a_version_cost_that_student_alone(tmp_path: Path, text: str, refused: str) -> None:
    found, read_ = gather(put(tmp_path, ALL | {f"submissions/ben/{SETTINGS}": text}))
    assert set(read_) == {"ada"}
    assert found.refused == (refused,)


def test_settings_and_versions_that_are_links_lead_nowhere(tmp_path: Path) -> None:
    put(tmp_path / "class", ALL)
    put(tmp_path / "elsewhere", {PY: "x = 'stolen'\n", SETTINGS: settings(1)})
    ada, ben = (tmp_path / "class" / "submissions" / name for name in ("ada", "ben"))
    (ada / SETTINGS).unlink()
    (ada / SETTINGS).symlink_to(tmp_path / "elsewhere" / SETTINGS)
    (ben / "3").symlink_to(tmp_path / "elsewhere")
    (ben / SETTINGS).write_text(settings(3), encoding="utf-8")
    put(tmp_path / "class" / "submissions" / "cleo", {f"1/{PY}": "x = 1\n", SETTINGS: settings(1)})
    found, read_ = gather(tmp_path / "class")
    assert set(read_) == {"cleo"}
    assert len(found.refused) == 2


def test_one_students_settings_make_no_class_submittys(tmp_path: Path) -> None:
    put(tmp_path, {f"ada/{PY}": "x = 1\n", f"ben/{PY}": "x = 2\n"})
    put(tmp_path / "eve", {PY: "x = 3\n", f"9/{PY}": "x = 4\n", SETTINGS: settings(9)})
    assert sources(tmp_path) == {"ada": "x = 1\n", "ben": "x = 2\n", "eve": "x = 3\n"}


# CodeGrade


RED = Roster(
    tuple(Person(name, group, keys_of([name])) for name, group in (("Ana", "red"), ("Ben", "red"), ("Cleo", "")))
)
AT = "2027-03-02 23:58:01"


@pytest.mark.parametrize(
    ("folders", "roster", "students"),
    [
        ([f"Ana Diaz - {AT}", "Jean - Luc P. - 2027-03-04 00:00:00/w"], None, ["Ana Diaz", "Jean - Luc P."]),
        ([f'Group "red" - {AT}', f"Cleo - {AT}"], None, ['Group "red"', "Cleo"]),
        ([f'Group "red" - {AT}', f"Cleo - {AT}"], RED, ["Ana", "Ben", "Cleo"]),
        (["Ana - 2027-13-45 99:99:99", "Ben - 9999-01-01 00:00:00"], None, ["Ana", "Ben"]),  # no moments
        (["ada", "ben", f"Ana - {AT}"], None, ["ada", "ben", f"Ana - {AT}"]),  # one name makes no class CodeGrade's
    ],
)
def test_codegrade_folder_says_whose_it_is(
    tmp_path: Path, folders: list[str], roster: Roster | None, students: list[str]
) -> None:
    put(tmp_path, {f"{name}/{PY}": "x = 1\n" for name in folders})
    put(tmp_path, {f"{folders[0]}/.cg-group-members": "Eve\n"})  # a student's own file
    assert set(sources(tmp_path, roster=roster)) == set(students)


@pytest.mark.parametrize("when", ["2027-03-01 23:58:01", "2027-03-02T23:58:01.123456", "2027-03-09 23_58_01"])
def test_two_codegrade_folders_of_one_name_are_refused(tmp_path: Path, when: str) -> None:
    put(tmp_path, {f"{name} - {when}/{PY}": "x = 2\n" for name in ("Ana", 'Group "red"', "Cleo")})
    put(tmp_path, {f"{name} - 2027-03-05 10:00:00/{PY}": "x = 1\n" for name in ("Ana", 'Group "red"')})
    found, read_ = gather(tmp_path, deadline=datetime(2027, 3, 6, tzinfo=UTC))
    assert set(read_) == {"Cleo"}
    assert all("handed in twice, or two of that name did: " in one for one in found.refused)
    assert set(sources(tmp_path, roster=RED)) == {"Cleo"}


def test_codegrade_zone_counts(tmp_path: Path) -> None:
    put(tmp_path, {f"Ana - 2027-03-02T23:58:01+02:00/{PY}": "x = 1\n", f"Ben - 2027-03-02T23:58:01Z/{PY}": "x = 2\n"})
    read_ = gather(tmp_path, deadline=datetime(2027, 3, 2, 22, 0, tzinfo=UTC))[1]
    assert read_["Ana"].notes == ()
    assert read_["Ben"].notes == ("handed in late, at 2027-03-02 23:58 UTC",)


def test_classroom_50_folder_says_where_usernames_begin(tmp_path: Path) -> None:
    folder = tmp_path / "cs336-grpo_submissions_2026_11_22_T_10_11_12"
    for name in ("cs336-grpo-ann-lee", "cs336-grpo-ann-kim"):
        put(folder, {f"{name}/{PY}": "x = 1\n", f"{name}/.git/HEAD": "", f"{name}/result.json": "{}"})
    found, read_ = gather(put(folder, {"scores.csv": "username,score\n"}))
    assert set(read_) == {"ann-lee", "ann-kim"}
    assert found.ignored == ("scores.csv",)
    group = Roster(
        tuple(Person(name, "red", keys_of([name, login])) for name, login in (("Ann", "ann-lee"), ("Ben", "b")))
    )
    assert set(sources(folder, roster=group)) == {"Ann", "Ben", "ann-kim"}


# Classroom 50


# One layout takes no other's class

DOWNLOADS = {
    "blackboard": [
        "HW5_ana_attempt_2027-03-02-23-58-01_policy_gradient.py",
        "HW5_ben_attempt_2027-03-02-23-58-01_x.py",
    ],
    "brightspace": [f"1-2 - Ana Diaz - Mar 2, 2027 1158 PM/{PY}", f"1-3 - Ben - Mar 2, 2027 1159 PM/{PY}"],
    "canvas": [f"ana_1_5_{PY}", f"ben_LATE_2_6_{PY}"],
    "moodle": [f"Ana_1_assignsubmission_file/{PY}", f"Ben_2_assignsubmission_file/{PY}"],
    "gradescope": ["submission_metadata.yml", f"submission_1/{PY}"],
    "submitty": list(ALL),
    "codegrade": [f"Ana - 2027-03-02 23:58:01/{PY}", f"Ben - 2027-03-02 23:58:01/{PY}"],
    "": [f"ada/{PY}", f"ben/{PY}", f"submissions/{PY}"],
}


@pytest.mark.parametrize("layout", DOWNLOADS)
def test_download_is_recognised_by_one_layout_alone(tmp_path: Path, layout: str) -> None:
    entries = entries_of(put(tmp_path, dict.fromkeys(DOWNLOADS[layout], "x = 1\n")))
    assert evident(entries) == layout
    assert [one.name for one in BY_NAMES if one.recognised(entries)] == ([layout] if layout else [])
