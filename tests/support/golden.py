"""Golden files: what the sample classes earned when somebody last read it.

After a change that is meant to alter reports or exports, renew them, read what changed, and commit them with it:

    python tests/support/golden.py

tests/golden/<assignment>/ holds a report for each student, and `kinds.toml`: what kind of submission each one is and
what it should earn, which is written by hand. A golden report is one without what changes for other reasons: measured
times are 0, and PLACEHOLDERS stand for the fixtures' hash and the machine's layers of isolation.
"""

from __future__ import annotations

import difflib
import json
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import places
from graded_folder import without_times
from places import KIT

from autograder.course.batch import grade_all
from autograder.grading.assignment import Assignment, find_assignments
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.submissions.finding import find
from autograder.vocabulary.files import file_stem
from autograder.vocabulary.report import read_report, to_json

RENEW = "If it is meant, renew the golden files and read the difference: python tests/support/golden.py"
PLACEHOLDERS = {"fixtures": "the manifest's SHA-256", "isolation": ["the machine's layers"], "kit": "its version"}
UNTOUCHED = "chidi"  # of every class, the one who handed in the handout as it is
MAX_LINES = 60

Reports = Mapping[str, dict[str, Any]]


def sample_class(assignment: Assignment) -> Path:
    return assignment.folder / "submissions"


def golden_folder(assignment: Assignment) -> Path:
    return places.GOLDEN / assignment.name


def golden_path(assignment: Assignment, student: str) -> Path:
    return golden_folder(assignment) / f"{file_stem(student)}.json"


def kinds(assignment: Assignment) -> dict[str, dict[str, Any]]:
    """Student → `kind`, `points`, and of the items that lost some: `verdicts`, `mistakes`, `functions`."""
    path = golden_folder(assignment) / "kinds.toml"
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def grade_class(assignment: Assignment, out: Path, jobs: int = 1) -> Reports:
    """Grade the sample class into `out`; each report by student as its golden file should hold it."""
    grader = Grader.of(assignment, read_fixtures(assignment))
    candidates = find([sample_class(assignment)], assignment.module)
    grade_all(grader, candidates, out, jobs=jobs)
    return {candidate.student: comparable(out, candidate.student) for candidate in candidates}


def comparable(out: Path, student: str) -> dict[str, Any]:
    """The report that was written for a student, without what changes for other reasons."""
    report = read_report(out / "reports" / f"{file_stem(student)}.json")
    assert report is not None, f"No report was written for {student}."
    return to_json(without_times(report)) | PLACEHOLDERS


def as_text(report: Mapping[str, Any]) -> str:
    return json.dumps(report, indent=1, ensure_ascii=False) + "\n"


def golden_text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def difference(golden: str, now: str) -> str:
    """The lines that differ, with a little around them; empty where none does."""
    lines = list(difflib.unified_diff(golden.splitlines(), now.splitlines(), "golden", "now", n=2, lineterm=""))
    more = [f"… {len(lines) - MAX_LINES} more lines"] if len(lines) > MAX_LINES else []
    return "\n".join(lines[:MAX_LINES] + more)


def renew(assignment: Assignment) -> None:
    """Rewrite the golden reports, remove those whose submission is gone, and print what changed."""
    handed_in = sample_class(assignment) / UNTOUCHED / f"{assignment.module}.py"
    handed_in.write_text(assignment.untouched_source(), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        reports = grade_class(assignment, Path(folder), jobs=2)
    write({golden_path(assignment, name): as_text(report) for name, report in reports.items()}, "*.json")


def write(texts: Mapping[Path, str], pattern: str) -> None:
    """Make these texts all that matches `pattern` in their folder, and print what changed."""
    folder = next(iter(texts)).parent
    folder.mkdir(exist_ok=True)
    for path in sorted(texts.keys() | set(folder.glob(pattern))):
        if path not in texts:
            path.unlink()
            print(f"{path.name}: removed")
        elif changed := difference(golden_text(path), texts[path]):
            path.write_bytes(texts[path].encode())
            print(f"{path.name}: changed\n{changed}")
    print(f"{len(texts)} golden files are up to date in {folder}.")


if __name__ == "__main__":
    from golden_exports import FOLDER, exports

    for one in find_assignments(KIT):
        renew(one)
    with tempfile.TemporaryDirectory() as pages:
        write({FOLDER / name: text for name, text in exports(Path(pages)).items()}, "*")
