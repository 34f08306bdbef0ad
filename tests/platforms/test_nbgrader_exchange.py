"""nbgrader's exchange, the whole circle by its own commands: released, fetched, submitted, collected, handed back.

Instructor and students have folders of their own, and users of their own where this Python may be run by another one.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from forked import run_module
from nbgrader_course import NAME, autograder, cell, course, environment, nbgrader, solved, wrong

pytest.importorskip("nbgrader", reason="the extra nbgrader is not installed")
pytestmark = pytest.mark.long

NOBODY = 65534
STUDENTS = {"ada": solved, "dov": wrong}
SETTINGS = 'c.CourseDirectory.course_id = "rl"\nc.Exchange.root = "{}"\n'


def others_may_run(path: Path) -> bool:
    """Whether another user reaches this program."""
    return os.geteuid() == 0 and all(place.stat().st_mode & 0o1 for place in (path, *path.parents))


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder that every user may enter, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="exchange-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def as_student(folder: Path, student: str, *arguments: str) -> str:
    other = others_may_run(Path(sys.executable).resolve())
    environ = environment(folder) | {"HOME": str(folder)}
    for path in (folder, folder / ".jupyter") if other else ():
        os.chown(path, NOBODY, NOBODY)
    if arguments[0] in ("submit", "fetch_feedback"):  # the one user there is hands in for two students
        arguments += ("--student", student)
    returned, printed = run_module(folder, "nbgrader", *arguments, environ=environ, user=NOBODY if other else None)
    assert returned == 0, printed
    return printed


def test_exchange_brings_feedback_back_to_the_student(place: Path) -> None:
    root = course(place / "kit")
    exchange = place / "exchange"
    exchange.mkdir()
    exchange.chmod(0o777)
    with (root / "solution" / "nbgrader_config.py").open("a", encoding="utf-8") as stream:
        stream.write(SETTINGS.format(exchange))
    nbgrader(root, "generate_assignment", NAME)
    nbgrader(root, "release_assignment", NAME)
    released = {path.name for path in (exchange / "rl" / "outbound" / NAME).rglob("*") if path.is_file()}
    handed_out = {path.name for path in (root / "handout" / NAME).rglob("*") if path.is_file()}
    assert released == {name for name in handed_out if not name.startswith(".") and not name.endswith(".pyc")}

    for student, answers in STUDENTS.items():
        folder = place / student
        folder.mkdir()
        (folder / "nbgrader_config.py").write_text(f"c = get_config()\n{SETTINGS.format(exchange)}", encoding="utf-8")
        as_student(folder, student, "fetch_assignment", NAME)
        assert (folder / NAME / "autograder" / "checking" / "check.py").is_file()
        notebook = answers(root)
        cell(notebook, "question-spread")["source"] = "All of them agree."
        (folder / NAME / f"{NAME}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
        as_student(folder, student, "submit", NAME)

    nbgrader(root, "collect", NAME)
    assert {path.name for path in (root / "submitted").iterdir()} == set(STUDENTS)
    for student in STUDENTS:
        assert (root / "submitted" / student / NAME / f"{NAME}.ipynb").is_file(), "the notebook that was collected"
    autograder(root, "grade", "submitted", "--out", "grades", "--jobs", "1")
    autograder(root, "export", "nbgrader", "grades", "--course", "solution")
    nbgrader(root, "generate_feedback", NAME)
    nbgrader(root, "release_feedback", NAME)

    for student in STUDENTS:
        as_student(place / student, student, "fetch_feedback", NAME)
    pages = {student: list((place / student / NAME / "feedback").rglob(f"{NAME}.html")) for student in STUDENTS}
    assert all(pages.values())
    text = {student: found[0].read_text(encoding="utf-8") for student, found in pages.items()}
    told = {student: re.findall(r"\d+ of \d+ values differ", page) for student, page in text.items()}
    assert not told["ada"]
    assert told["dov"]
    items = json.loads((root / "grades" / "reports" / "ada.json").read_bytes())["items"]
    assert sum(item["points"] for item in items) == 100
    assert "All of them agree." in text["ada"]
