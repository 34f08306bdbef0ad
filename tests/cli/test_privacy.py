"""Whose files are whose: what holds students' grades or work is its owner's alone, what is for students is not."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hand_ins import put_all
from in_process import autograder_in_process
from places import KIT
from sample_reports import report, write_report
from toy_kit import toy_kit

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's"),
    pytest.mark.usefixtures("open_umask"),
]


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)  # which hides nothing from others
    yield
    os.umask(before)


def run(folder: Path, *arguments: str | Path) -> None:
    done = autograder_in_process(folder, *arguments)
    assert done.returncode == 0, done.stderr


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def read_by_somebody_else(folder: Path) -> list[str]:
    """The files below `folder` that others can open, for they may enter every folder above."""
    entered = [folder]
    for each in entered:
        entered += [path for path in each.iterdir() if path.is_dir() and mode(path) & 0o005 == 0o005]
    files = [path for each in entered for path in each.iterdir() if path.is_file() and mode(path) & 0o004]
    return sorted(path.relative_to(folder).as_posix() for path in files)


NAMED = ("--assignment", "bandits")


@pytest.fixture
def class_(tmp_path: Path) -> Path:
    return put_all(tmp_path / "class", {f"{student}/bandits.py": "" for student in ("ada", "bela")})


def test_nobody_else_reads_what_the_verbs_write_of_students(class_: Path, tmp_path: Path) -> None:
    course = tmp_path / "course"
    run(KIT, "grade", class_, "--out", course / "one", *NAMED)
    assert (mode(course), mode(course / "one")) == (0o700, 0o700)
    run(KIT, "gradebook", course)
    run(KIT, "similar", class_, "--out", tmp_path / "similar.html", *NAMED)
    run(KIT, "export", "csv", course / "one", "--out", tmp_path / "grades.csv")
    run(KIT, "bundle", "gradescope", *NAMED, "--zip", tmp_path / "gradescope.zip")
    run(KIT, "bundle", "github", *NAMED, "--zip", tmp_path / "for_students.zip")
    assert (course / "grades.csv").is_file()
    theirs = [f"class/{student}/bandits.py" for student in ("ada", "bela")]
    assert read_by_somebody_else(tmp_path) == [*theirs, "for_students.zip"]


def test_what_is_there_keeps_its_mode_and_a_course_has_that_of_its_folders(class_: Path, tmp_path: Path) -> None:
    course = tmp_path / "course"
    for name, rights in (("policy_gradient", 0o755), ("bandits", 0o750)):
        write_report(replace(report("ada"), assignment=name), course / name / "reports" / "ada.json")
        (course / name).chmod(rights)
    run(KIT, "grade", class_, "--out", course / "bandits", *NAMED)
    (course / "bandits" / "grades.csv").chmod(0o640)
    run(KIT, "grade", class_, "--out", course / "bandits", *NAMED, "--fresh")
    assert (mode(course / "bandits"), mode(course / "bandits" / "grades.csv")) == (0o750, 0o640)
    run(KIT, "gradebook", course)
    assert [mode(course / name) for name in ("index.html", "grades.csv")] == [0o640, 0o640]


@pytest.mark.usefixtures("warm_pool")
def test_terms_cases_are_their_owners_and_a_handout_is_students(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    os.umask(0o022)
    kit, out = toy_kit(tmp_path / "kit", tmp_path_factory), tmp_path / "terms" / "spring"
    (kit / "secret").write_bytes(b"a secret of this course")
    run(kit, "fixtures", "regenerate", "--term", "spring", "--secret-file", kit / "secret", "--out", out)
    assert (mode(out.parent), mode(out)) == (0o700, 0o700)
    run(kit, "release", "--zip", tmp_path / "new" / "toy.zip")
    assert (mode(tmp_path / "new"), mode(tmp_path / "new" / "toy.zip")) == (0o755, 0o644)
    assert mode(kit / "handout" / "toy") == 0o755
