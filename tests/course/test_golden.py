"""A small sample class, graded from end to end: each submission earns exactly the report in its golden file.

One kind of submission a row of KINDS, one golden file a submission: tests/golden/<file stem of the student>.json.
After a change that is meant to alter reports, renew the golden files, read what changed, and commit them with it:

    python tests/test_golden.py

A golden file is a report without what changes for other reasons: measured times are 0, and PLACEHOLDERS stand for
the fixtures' hash and the machine's layers of isolation.
"""

from __future__ import annotations

import csv
import difflib
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import places
import pytest

from autograder.course.batch import grade_all
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.grading.items import find_assignment
from autograder.submissions.finding import find
from autograder.vocabulary.files import file_stem
from autograder.vocabulary.report import read_report, to_json, without_times

ASSIGNMENT = find_assignment("policy_gradient")
SUBMISSIONS = ASSIGNMENT.folder / "submissions"
GOLDEN = places.GOLDEN / "policy_gradient"
RENEW = "If it is meant, renew the golden files and read the difference: python tests/test_golden.py"
PLACEHOLDERS = {"fixtures": "the manifest's SHA-256", "isolation": ["the machine's layers"]}
MAX_LINES = 60


class Kind(NamedTuple):
    """One kind of submission: what it is, who handed it in, what it earns and how its lost items fare."""

    kind: str
    student: str
    points: float
    verdicts: str
    mistakes: str = ""


KINDS = (
    Kind("full marks, in the manner of the handout", "ada", 100, ""),
    Kind("full marks in another style: loops, distributions, where", "bela", 100, ""),
    Kind("untouched: the handout as it is", "chidi", 0, "missing"),
    Kind("half done: reward, deltas and log-probs", "dana", 44, "missing"),
    Kind(
        "three mistakes: deltas, loss, and a reference that is the model itself",
        "emeka",
        83,
        "failed",
        "old-log-probs-not-frozen population-std reference-is-the-model reference-scores-from-model",
    ),
    Kind(
        "three mistakes: log-probs, loss, penalty",
        "farah",
        69,
        "failed",
        "all-unit-axes-dropped log-ratio-swapped ratio-of-differences",
    ),
    Kind(
        "three mistakes: deltas, penalty, loop; a bare file named for its student",
        "goran",
        61.5,
        "failed",
        "mean-over-prompts penalty-averaged-over-positions sampled-every-step",
    ),
    Kind("a syntax error", "hana", 0, "raised"),
    Kind("imports a package that is not there", "ivan", 0, "raised"),
    Kind("a loop that never ends, in one mode of one function", "jun", 97, "timed_out"),
    Kind("right, and prints more than a megabyte", "kira", 100, ""),
    Kind("leaves the Python process while it is imported", "luca", 0, "crashed"),
    Kind("a notebook with experiments and plots", "mina", 100, ""),
    Kind("a zip from a Mac, partly done, with one mistake", "noor", 54, "failed missing", "first-maximum-only"),
    Kind("a name to escape, and one wrong constant", "o'brien, sean", 93.8, "failed", "eps-1e-8"),
)
BY_STUDENT = pytest.mark.parametrize("kind", KINDS, ids=[file_stem(kind.student) for kind in KINDS])

Reports = Mapping[str, dict[str, Any]]


def grade_class(out: Path, jobs: int = 1) -> Reports:
    """Grade the sample class into `out`; return each report by student as its golden file should hold it."""
    grader = Grader.of(ASSIGNMENT, read_fixtures(ASSIGNMENT))
    candidates = find([SUBMISSIONS], ASSIGNMENT.module)
    grade_all(grader, candidates, out, jobs=jobs, untouched=ASSIGNMENT.untouched_source())
    return {candidate.student: comparable(out, candidate.student) for candidate in candidates}


def comparable(out: Path, student: str) -> dict[str, Any]:
    """The report that was written for a student, without what changes for other reasons."""
    report = read_report(out / "reports" / f"{file_stem(student)}.json")
    assert report is not None, f"No report was written for {student}."
    return to_json(without_times(report)) | PLACEHOLDERS


def as_text(report: Mapping[str, Any]) -> str:
    return json.dumps(report, indent=1, ensure_ascii=False) + "\n"


def golden_path(student: str) -> Path:
    return GOLDEN / f"{file_stem(student)}.json"


def golden_text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def difference(golden: str, now: str) -> str:
    """The lines that differ, with a little around them; empty where none does."""
    lines = list(difflib.unified_diff(golden.splitlines(), now.splitlines(), "golden", "now", n=2, lineterm=""))
    more = [f"… {len(lines) - MAX_LINES} more lines"] if len(lines) > MAX_LINES else []
    return "\n".join(lines[:MAX_LINES] + more)


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Reports]:
    """The folder that the class was graded into, and its reports; graded once for all tests here."""
    out = tmp_path_factory.mktemp("grades")
    return out, grade_class(out)


@BY_STUDENT
def test_each_submission_earns_exactly_its_golden_report(graded: tuple[Path, Reports], kind: Kind) -> None:
    path = golden_path(kind.student)
    changed = difference(golden_text(path), as_text(graded[1][kind.student]))
    assert not changed, f"{kind.student} earns another report than {path.name} holds. {RENEW}\n{changed}"


@BY_STUDENT
def test_each_submission_earns_what_its_kind_says(graded: tuple[Path, Reports], kind: Kind) -> None:
    report = graded[1][kind.student]
    lost = [item for item in report["items"] if item["verdict"] != "passed"]
    mistakes = {slug for item in lost for slug in item["mistakes"]}
    verdicts = {item["verdict"] for item in lost}
    found = (report["points"], " ".join(sorted(verdicts)), " ".join(sorted(mistakes)))
    assert found == (kind.points, kind.verdicts, kind.mistakes)


@pytest.mark.parametrize(
    ("student", "functions"),
    [
        ("emeka", {"compute_deltas", "compute_loss", "run_policy_gradient"}),
        ("farah", {"compute_log_probs", "compute_loss", "compute_kl_penalty"}),
        ("goran", {"compute_deltas", "compute_kl_penalty", "run_policy_gradient"}),
        ("jun", {"compute_deltas"}),
        ("o'brien, sean", {"compute_deltas"}),
    ],
)
def test_a_mistake_costs_points_in_its_own_function_alone(
    graded: tuple[Path, Reports], student: str, functions: set[str]
) -> None:
    items = graded[1][student]["items"]
    assert {item["function"] for item in items if item["verdict"] != "passed"} == functions


def test_every_submission_has_one_row_and_one_golden_file_and_there_are_no_others() -> None:
    students = sorted(candidate.student for candidate in find([SUBMISSIONS], ASSIGNMENT.module))
    assert students == sorted(kind.student for kind in KINDS)
    assert sorted(path.name for path in GOLDEN.glob("*.json")) == sorted(golden_path(name).name for name in students)


def test_the_untouched_submission_is_the_handout() -> None:
    handed_in = (SUBMISSIONS / "chidi" / f"{ASSIGNMENT.module}.py").read_text(encoding="utf-8")
    handed_out = (ASSIGNMENT.handout / f"{ASSIGNMENT.module}.py").read_text(encoding="utf-8")
    assert handed_in == handed_out, "The handout has changed: python tests/test_golden.py copies it again."


def test_the_gradebook_holds_a_row_for_each_student_with_the_points_of_the_report(
    graded: tuple[Path, Reports],
) -> None:
    out, reports = graded
    with (out / "grades.csv").open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["student"] for row in rows] == sorted(reports)
    for row in rows:
        report = reports[row["student"]]
        assert row["status"] == report["status"]
        assert float(row["points"]) == report["points"]
        assert float(row["max_points"]) == report["max_points"]
        for item in report["items"]:
            assert float(row[item["item"]]) == item["points"], f"{item['item']} of {row['student']}"


def test_every_student_gets_a_feedback_page(graded: tuple[Path, Reports]) -> None:
    pages = sorted(path.name for path in (graded[0] / "feedback").iterdir())
    assert pages == sorted(f"{file_stem(kind.student)}.html" for kind in KINDS)


def renew() -> None:
    """Rewrite the golden files, remove those whose submission is gone, and print what changed."""
    handout = ASSIGNMENT.handout / f"{ASSIGNMENT.module}.py"
    (SUBMISSIONS / "chidi" / handout.name).write_bytes(handout.read_bytes())
    with tempfile.TemporaryDirectory() as folder:
        texts = {golden_path(name): as_text(report) for name, report in grade_class(Path(folder), jobs=2).items()}
    GOLDEN.mkdir(exist_ok=True)
    for path in sorted(texts.keys() | set(GOLDEN.glob("*.json"))):
        if path not in texts:
            path.unlink()
            print(f"{path.name}: removed")
        elif changed := difference(golden_text(path), texts[path]):
            path.write_bytes(texts[path].encode())
            print(f"{path.name}: changed\n{changed}")
    print(f"{len(texts)} golden files are up to date in {GOLDEN}.")


if __name__ == "__main__":
    from test_exports import renew as renew_exports

    renew()
    renew_exports()
