"""The class's page, made of what lies in the folder of a run: as grading ends, and again when rules change grades.

`settle` puts a course's rules into the whole folder: the verbs `grade` and `gradebook` call it, and the live view after
each decision, so that none of them forgets a file.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

from autograder.authoring.exam.contract import read_contract
from autograder.gradebook.final_grades import Final
from autograder.gradebook.grades_folder import read_grades, tells_of_class, write_finals, write_standings
from autograder.gradebook.rules import Rules
from autograder.grading.items import Assignment
from autograder.grading.remarks.details import read_details
from autograder.pages.class_page import Background, Change, ClassPage
from autograder.vocabulary.errors import FixtureError
from autograder.vocabulary.files import file_stem, replacing
from autograder.vocabulary.report import Report

PAGE, RUN, DETAILS = "index.html", "run.json", "details"
HEADING = re.compile(r"^#{2,4} +(.+?)\s*$", re.MULTILINE)


def background(assignment: Assignment, out: Path) -> Background:
    """What the page says besides figures: of the contract, of the handout's text, of the code that lies in `out`."""

    def code_of(student: str, function: str) -> str:
        details = read_details(_details(out, student))
        return details.code.get(function, "") if details else ""

    return Background(_clauses(assignment), _sections(assignment), code_of, assignment.title)


def answers_of(out: Path, student: str) -> Mapping[str, str]:
    """The fingerprints of a student's answers that no known mistake gives, by item."""
    details = read_details(_details(out, student))
    return details.answers if details else {}


def described_changes(changes: Iterable[Change] | None) -> list[list[float | str]] | None:
    """Changes as `run.json` keeps them."""
    return None if changes is None else [list(astuple(change)) for change in changes]


def settle(out: Path, reports: Sequence[Report], assignment: Assignment, rules: Rules | None) -> dict[str, Final]:
    """Write the final grades of all `reports`, or with None take those of an earlier run away; the finals by student.

    The caller has the folder alone. Whether students are told where they stand stays as it was.
    """
    told = tells_of_class(out)
    finals = write_finals(out, reports, assignment, rules)
    rewrite_class_page(out, reports, assignment, finals if rules else None)
    if told:
        write_standings(out, read_grades(out))
    return finals


def rewrite_class_page(
    out: Path, reports: Iterable[Report], assignment: Assignment, finals: Mapping[str, Final] | None
) -> None:
    """Write the page of a run that has ended once more, where there is one: with these final grades, or with none."""
    if not (out / PAGE).is_file():
        return
    run, page, listed = run_in(out), ClassPage(), list(reports)
    for report in listed:
        page.add(report, None if finals is None else finals.get(report.student), answers_of(out, report.student))
    with replacing(out / PAGE) as stream:
        stream.writelines(page.html(listed, run, _changes(run), finals, background(assignment, out)))


def _details(out: Path, student: str) -> Path:
    return out / DETAILS / f"{file_stem(student)}.json"


def run_in(out: Path) -> dict[str, Any]:
    """What `run.json` says of the last run in a folder; empty where there is none that says anything."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        found = json.loads((out / RUN).read_bytes())
        return found if isinstance(found, dict) else {}
    return {}


def _changes(run: Mapping[str, Any]) -> list[Change] | None:
    """What `described_changes` made; None where there was nothing to compare with, or it cannot be read."""
    found = run.get("changes")
    with contextlib.suppress(TypeError):
        return None if found is None else [Change(*one) for one in found]
    return None


def _clauses(assignment: Assignment) -> dict[str, str]:
    """Mistake → the first sentence of the contract that it goes against; nothing where there is no contract to read."""
    with contextlib.suppress(FixtureError):
        contract = read_contract(assignment)
        clauses = () if contract is None else contract.clauses
        return {mistake: _quotable(one.sentence) for one in reversed(clauses) for mistake in one.mistakes}
    return {}


def _quotable(sentence: str) -> str:
    """A sentence of a docstring as one quotes it: no marks of code, commas between columns, no colon at its end."""
    columns = re.sub(r"(?<=\S) {3,}(?=\S)", ", ", sentence.replace("`", ""))
    return " ".join(columns.split()).rstrip(":; ")


def _sections(assignment: Assignment) -> dict[str, str]:
    """Function → the heading in the assignment's text that names it."""
    for folder in (assignment.solution, assignment.handout):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            headings = HEADING.findall((folder / "README.md").read_text(encoding="utf-8"))
            named = {name: next((one for one in headings if name in one), "") for name in assignment.functions}
            return {name: heading.replace("`", "") for name, heading in named.items() if heading}
    return {}
