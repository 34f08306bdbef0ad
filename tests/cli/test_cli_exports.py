"""`export` and `bundle` on the command line: exit codes, what is printed, and one sentence for whatever goes wrong."""

from __future__ import annotations

import json
import subprocess
import zipfile
from dataclasses import asdict
from functools import partial
from pathlib import Path

import pytest
from in_process import autograder_in_process
from places import DOWNLOADS, KIT
from sample_reports import item, report, write_grades

from autograder.gradebook.final_grades import Adjustment
from autograder.pages.student_page import feedback_page
from autograder.vocabulary.files import file_stem, write_atomically

COLUMN = "HW5 GRPO (123456)"
CANVAS = ("--gradebook", DOWNLOADS / "canvas-gradebook.csv", "--assignment-column", COLUMN)
autograder = partial(autograder_in_process, KIT)


@pytest.fixture
def grades(tmp_path: Path) -> Path:
    """The grades of two students whom every platform knows, and of one whom none does."""
    points = {"ada": 100.0, "bela": 62.5, "stranger\u202e": 1.0}
    reports = [report(student, item("a", earned, 100.0)) for student, earned in points.items()]
    for one in reports:
        page = tmp_path / "grades" / "feedback" / f"{file_stem(one.student)}.html"
        write_atomically(page, feedback_page(one))
    return write_grades(tmp_path / "grades", *reports)


def export(platform: str, grades: Path, *options: str | Path) -> subprocess.CompletedProcess[str]:
    return autograder("export", platform, grades, *options, "--out", grades.parent / "made")


@pytest.mark.parametrize(("platform", "options"), [("csv", ()), ("canvas", CANVAS)])
def test_every_export_says_which_question_is_half_marked(
    grades: Path, platform: str, options: tuple[str | Path, ...]
) -> None:
    adjusted = {"ada": [Adjustment("question", "why", None, 3, "")], "bela": [Adjustment("excused", "", 3, None, "")]}
    for path in (grades / "reports").iterdir():
        stored = json.loads(path.read_text(encoding="utf-8"))
        stored |= {"final": 3, "adjustments": [asdict(row) for row in adjusted.get(path.stem, [])]}
        path.write_text(json.dumps(stored), encoding="utf-8")
    done = export(platform, grades, *options)
    assert "autograder: HALF MARKED: why: 1 marked, 1 left: stranger\\u202e.\n" in done.stderr


def test_canvas_says_who_got_no_grade(grades: Path, tmp_path: Path) -> None:
    done = export("canvas", grades, *CANVAS)
    made = tmp_path / "made"
    assert (done.returncode, done.stdout) == (0, f"{made}: 2 grades; 15 cells unchanged.\n")
    assert "NOT EXPORTED" in done.stderr
    assert "stranger\\u202e" in done.stderr
    assert "\u202e" not in done.stderr + done.stdout + made.read_text(encoding="utf-8")


def test_moodle_gets_a_worksheet_and_feedback(grades: Path, tmp_path: Path) -> None:
    feedback, worksheet = tmp_path / "feedback.zip", DOWNLOADS / "moodle-worksheet.csv"
    options = ("--worksheet", worksheet, "--roster", DOWNLOADS / "roster.csv", "--feedback-zip", feedback)
    done = export("moodle", grades, *options)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'made'}: 2 grades.\n{feedback}: 2 feedback pages.\n")
    with zipfile.ZipFile(feedback) as archive:
        assert "Ada Lovelace_40001_assignsubmission_file_/feedback.html" in archive.namelist()


@pytest.mark.parametrize(
    "command",
    [
        "export csv {grades} --out {made}",
        "export moodle {grades} --worksheet {of}/moodle-worksheet.csv --roster {of}/roster.csv --out {made}",
        "bundle github --assignment bandits --zip {made}",
    ],
)
def test_only_what_the_kit_wrote_is_replaced(grades: Path, tmp_path: Path, command: str) -> None:
    made = tmp_path / "made"
    words = [word.format(grades=grades, made=made, of=DOWNLOADS) for word in command.split()]
    made.write_text("mine", encoding="utf-8")
    done = autograder(*words)
    assert done.returncode == 2
    assert f"{made} is not as autograder wrote it. Move what you need out of the way" in done.stderr
    assert made.read_text(encoding="utf-8") == "mine"
    assert autograder(*words, "--replace").returncode == 0
    written = made.read_bytes()
    assert written != b"mine"
    assert autograder(*words).returncode == 0
    made.write_bytes(written + b" ")
    assert autograder(*words).returncode == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("csv nowhere --out o.csv", "holds no reports"),
        ("csv {grades} --out /proc/nowhere/o", "cannot be written"),
        ("csv {grades} --out o.csv --roster nowhere.csv", "cannot be read"),
        ("canvas {grades} --gradebook {platforms}/roster.csv --column x --out o.csv", "export it from Canvas"),
        ("moodle {grades} --worksheet {platforms}/roster.csv --out o.csv", "has no single column"),
        ("moodle {grades} --worksheet {platforms}/moodle-worksheet.csv --out o.csv", "for each of 3 students: give"),
    ],
)
def test_unexportable_is_one_sentence_and_code_two(grades: Path, arguments: str, says: str) -> None:
    done = autograder("export", *(one.format(grades=grades, platforms=DOWNLOADS) for one in arguments.split()))
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "top"),
    [
        ("gradescope --hidden-cases after_due_date", "setup.sh"),
        ("github", "bandits/.github/workflows/check.yml"),
        ("prairielearn --image course/grader:1", "bandits/info.json"),
    ],
)
def test_every_bundle_is_one_zip(tmp_path: Path, command: str, top: str) -> None:
    path = tmp_path / "bundle.zip"
    done = autograder("bundle", *command.split(), "--zip", path, "--assignment", "bandits")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{path}: ")
    with zipfile.ZipFile(path) as archive:
        assert top in archive.namelist()


def test_class_is_graded_from_a_download(tmp_path: Path) -> None:
    path, out = tmp_path / "submissions.zip", tmp_path / "grades"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("lovelaceada_1001_5_policy_gradient.py", "")
        archive.writestr("eve_LATE_1666_6_policy_gradient.py", "")
    roster = tmp_path / "roster.csv"
    roster.write_text("student,id\nAda,1001\nBen,1002\n", encoding="utf-8")
    command = ("grade", path, "--roster", roster, "--out", out, "--assignment", "policy_gradient")
    assert autograder(*command).returncode == 2
    done = autograder(*command, "--class-zip", "--deadline", "2027-03-01")
    assert done.returncode == 0
    assert "Handed in nothing: Ben." in done.stderr
    assert "NOT IN THE ROSTER, but graded: eve_1666." in done.stderr
    assert sorted(one.name for one in (out / "reports").iterdir()) == ["Ada.json", "eve_1666.json"]
    assert "handed in late" in (out / "feedback" / "eve_1666.html").read_text(encoding="utf-8")
