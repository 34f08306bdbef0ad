"""`--course DIR`, wherever it stands; a course found from the current folder; `--version`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from in_process import autograder_in_process as run
from lengths import in_short
from places import KIT
from toy_kit import toy_kit

import autograder
from autograder.cli.options import course_first

SOLVED = "def ramp(x, factor): return factor * x.clamp(min=0)\ndef shift(x, factor): return x + factor\n"


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course of one toy assignment, with a class of one student, and no engine in it."""
    kit = toy_kit(tmp_path_factory.mktemp("somewhere") / "course", tmp_path_factory)
    shutil.rmtree(kit / "autograder")
    (kit / "class" / "ada").mkdir(parents=True)
    (kit / "class" / "ada" / "toy.py").write_text(SOLVED, encoding="utf-8")
    return kit


@pytest.mark.parametrize(
    ("given", "moved"),
    [
        (["grade", "A", "--course", "C"], ["--course", "C", "grade", "A"]),
        (["grade", "--course=C", "A"], ["--course=C", "grade", "A"]),
        (["--course", "C", "grade"], ["--course", "C", "grade"]),
        (["grade", "--", "--course", "C"], ["grade", "--", "--course", "C"]),
        (["grade", "--course"], ["grade", "--course"]),
        ([], []),
    ],
    ids=str,
)
def test_the_course_may_be_named_anywhere_before_two_dashes(given: list[str], moved: list[str]) -> None:
    assert course_first(given) == moved


def test_the_course_is_found_from_any_folder_in_it(course: Path) -> None:
    """In a process of its own: no engine lies in the course, so the installed one is found."""
    command = [sys.executable, "-m", "autograder", "grade", course / "class", "--out", course / "here", "--jobs", "1"]
    done = subprocess.run(command, cwd=course / "solution" / "toy", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "ada,10" in (course / "here" / "grades.csv").read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.parametrize("place", in_short(["fixtures/toy", ".", "solution"]))
def test_a_course_elsewhere_is_named_by_any_folder_in_it(course: Path, tmp_path: Path, place: str) -> None:
    out = tmp_path / "grades"
    done = run(tmp_path, "grade", course / "class", "--out", out, "--course", course / place)
    assert done.returncode == 0, done.stderr
    assert "ada,10" in (out / "grades.csv").read_text(encoding="utf-8")


@pytest.mark.long
def test_nothing_is_written_into_another_course_than_the_one_that_is_named(course: Path, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (KIT / "handout").rglob("*")}
    copy = shutil.copytree(course, tmp_path / "copy")
    shutil.rmtree(copy / "handout")
    done = run(KIT, "release", "--course", copy)
    assert done.returncode == 0, done.stderr
    assert (copy / "handout" / "toy" / "toy.py").is_file()
    assert {path: path.stat().st_mtime_ns for path in (KIT / "handout").rglob("*")} == before


def test_outside_any_course_one_sentence_says_so(tmp_path: Path) -> None:
    done = run(tmp_path, "fixtures", "verify")
    assert done.returncode == 2
    assert done.stderr.startswith("autograder: There is no course here: ")
    assert "--course DIR" in done.stderr


def test_a_course_that_is_no_folder_is_refused(course: Path) -> None:
    done = run(course, "doctor", "--course", course / "nowhere")
    assert (done.returncode, done.stderr) == (
        2,
        f"autograder: There is no folder {course / 'nowhere'}: give --course the folder of a course.\n",
    )


@pytest.mark.long
def test_the_doctor_names_a_half_written_assignment_and_examines_the_others(course: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(course, tmp_path / "copy")
    (copy / "fixtures" / "half").mkdir()
    (copy / "fixtures" / "half" / "items.toml").write_text("assignment = [", encoding="utf-8")
    done = run(copy, "doctor")
    assert done.returncode == 3
    assert "half" in done.stdout
    assert "not TOML" in " ".join(done.stdout.split())
    assert "toy: 3 cases" in " ".join(done.stdout.split())
    grade = (copy, "grade", "class", "--out", tmp_path / "grades")
    refused = run(*grade)
    assert (refused.returncode, refused.stdout) == (3, "")
    assert f"{Path('fixtures', 'half', 'items.toml')} is not TOML" in refused.stderr
    assert refused.stderr.endswith("name another assignment with --assignment: toy.\n")
    assert not (tmp_path / "grades").exists()
    graded = run(*grade, "--assignment", "toy")
    assert graded.returncode == 0, graded.stderr


def test_the_version_is_printed(tmp_path: Path) -> None:
    done = run(tmp_path, "--version")
    assert (done.returncode, done.stdout) == (0, f"autograder {autograder.__version__}\n")


def test_help_speaks_of_assignments_and_of_completion(tmp_path: Path) -> None:
    shown = " ".join(run(tmp_path, "--help").stdout.split())
    assert "Grade assignments" in shown
    assert "policy-gradient" not in shown
    assert "--install-completion" in shown
