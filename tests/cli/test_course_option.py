"""`--course DIR`, wherever it stands; a course found from the current folder; `--version`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hand_ins import put
from in_process import autograder_in_process as run
from toy_kit import toy_kit

from autograder.cli.options import course_first

SOLVED = "def ramp(x, factor): return factor * x.clamp(min=0)\ndef shift(x, factor): return x + factor\n"


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course of one toy assignment, with a class of one student, and no engine in it."""
    kit = toy_kit(tmp_path_factory.mktemp("somewhere") / "course", tmp_path_factory)
    put(kit / "class" / "ada" / "toy.py", SOLVED)
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


def test_no_course_is_one_sentence(course: Path, tmp_path: Path) -> None:
    done = run(tmp_path, "fixtures", "verify")
    assert (done.returncode, "--course DIR" in done.stderr) == (2, True)
    assert done.stderr.startswith("autograder: There is no course here: ")
    done = run(course, "doctor", "--course", course / "nowhere")
    sentence = f"There is no folder {course / 'nowhere'}: give --course the folder of a course."
    assert (done.returncode, done.stderr) == (2, f"autograder: {sentence}\n")


@pytest.mark.long
def test_doctor_names_a_half_written_assignment(course: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(course, tmp_path / "copy")
    (copy / "fixtures" / "half").mkdir()
    (copy / "fixtures" / "half" / "items.toml").write_text("assignment = [", encoding="utf-8")
    done = run(copy, "doctor")
    assert done.returncode == 3
    said = " ".join(done.stdout.split())
    assert [words for words in ("half", "not TOML", "toy: 3 cases") if words not in said] == []
    refused = run(copy, "grade", "class", "--out", tmp_path / "grades")
    assert (refused.returncode, refused.stdout) == (3, "")
    assert f"{Path('fixtures', 'half', 'items.toml')} is not TOML" in refused.stderr
    assert refused.stderr.endswith("name another assignment with --assignment: toy.\n")
    assert run(copy, "grade", "class", "--out", tmp_path / "grades", "--assignment", "toy").returncode == 0
    for command in (
        ["items"],
        ["selfcheck"],
        ["release"],
        ["fixtures", "regenerate"],
        ["fixtures", "verify"],
    ):  # which are about all
        refused = run(copy, *command)
        assert (refused.returncode, refused.stdout) == (3, "")
        assert f"{Path('fixtures', 'half', 'items.toml')}" in refused.stderr
