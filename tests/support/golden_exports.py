"""What every platform gets of two students: one who lost points, and one whose name has to be escaped."""

from __future__ import annotations

import functools
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from places import DOWNLOADS, GOLDEN

from autograder.gradebook.grades_folder import read_grades
from autograder.gradebook.roster import Roster, read_roster
from autograder.pages.student_page import feedback_page
from autograder.platforms import containers
from autograder.platforms.gradebooks import Export, canvas_csv, feedback_zip, moodle_csv, plain_csv
from autograder.vocabulary.files import file_stem, read_table
from autograder.vocabulary.report import Report

ASSIGNMENT = "policy_gradient"
STUDENTS = ("emeka", "o'brien, sean")
FOLDER = GOLDEN / ASSIGNMENT / "exports"
COLUMN = "HW5 GRPO (123456)"


@functools.cache
def sample_class() -> tuple[Report, ...]:
    """Golden reports, read as an export reads a folder of grades."""
    return tuple(one for one in read_grades(GOLDEN / ASSIGNMENT) if one.student in STUDENTS)


def each(make: Callable[[Report], dict[str, Any]]) -> str:
    """What a platform gets for each student, a line each."""
    return "".join(json.dumps({"student": one.student, "result": make(one)}) + "\n" for one in sample_class())


def hidden_later(one: Report) -> dict[str, Any]:
    return containers.gradescope_results(one, (), "after_published")


def roster() -> Roster:
    return read_roster(DOWNLOADS / "roster.csv")


def moodle_export() -> Export:
    return moodle_csv(sample_class(), read_table(DOWNLOADS / "moodle-worksheet.csv"), roster())


def feedback_listing(folder: Path) -> str:
    for one in sample_class():
        folder.mkdir(exist_ok=True)
        (folder / f"{file_stem(one.student)}.html").write_text(feedback_page(one), encoding="utf-8")
    data = feedback_zip(moodle_export().folders, folder)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return "".join(f"{member.filename}\n" for member in archive.infolist())


def exports(folder: Path) -> dict[str, str]:
    """Every golden export by the name of its file; feedback pages are made in `folder`."""
    gradebook = read_table(DOWNLOADS / "canvas-gradebook.csv")
    return {
        "plain.csv": plain_csv(sample_class(), roster()),
        "canvas.csv": canvas_csv(sample_class(), gradebook, COLUMN, roster()).text,
        "moodle.csv": moodle_export().text,
        "moodle-feedback-zip.txt": feedback_listing(folder),
        "gradescope.jsonl": each(containers.gradescope_results),
        "gradescope-hidden-later.jsonl": each(hidden_later),
        "prairielearn.jsonl": each(containers.prairielearn_results),
    }
