"""The sample class of policy_gradient_theory, graded from end to end; golden files as in test_golden.py.

    python tests/test_theory_golden.py        renews tests/golden_theory
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import places
import test_golden
from test_golden import PLACEHOLDERS, Kind, as_text, difference, golden_text

from autograder.course.batch import grade_all
from autograder.grading.choice import assignment_of_submissions
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.grading.items import find_assignment
from autograder.submissions.finding import find

ASSIGNMENT = find_assignment("policy_gradient_theory")
SUBMISSIONS = ASSIGNMENT.folder / "submissions"
GOLDEN = places.GOLDEN / "policy_gradient_theory"
RENEW = "If it is meant, renew the golden files and read the difference: python tests/test_theory_golden.py"

KINDS = (
    Kind("full marks, in the manner of the handout", "ada", 100, ""),
    Kind("full marks in another style: loops over numbers", "bela", 100, ""),
    Kind("untouched: the handout as it is", "chidi", 0, "missing"),
    Kind("half done: the estimators", "dana", 51, "missing"),
    Kind(
        "five mistakes: baselines, the penalty's gradient, clipping, and a fault left in the broken loss",
        "emeka",
        79.4,
        "failed",
        "corners-lost group-bias-ignored kl-gradients-k3-like-k2 old-not-frozen optimal-is-the-mean-reward",
    ),
    Kind("hostile: ends the process, looks for fixtures, equals everything", "farah", 91, "crashed failed raised"),
    Kind("a syntax error", "goran", 0, "raised"),
    Kind("a notebook with two mistakes", "hana", 93.8, "failed", "sets-compared standard-error-by-the-size"),
)


def grade_class(out: Path) -> dict[str, dict]:
    """Each report by student as its golden file should hold it."""
    grader = Grader.of(ASSIGNMENT, read_fixtures(ASSIGNMENT))
    candidates = find([SUBMISSIONS], ASSIGNMENT.module)
    grade_all(grader, candidates, out, untouched=ASSIGNMENT.untouched_source())
    return {candidate.student: test_golden.comparable(out, candidate.student) for candidate in candidates}


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    return grade_class(tmp_path_factory.mktemp("grades"))


@pytest.mark.parametrize("kind", KINDS, ids=[kind.student for kind in KINDS])
def test_each_submission_earns_exactly_its_golden_report(graded: dict[str, dict], kind: Kind) -> None:
    found = difference(golden_text(GOLDEN / f"{kind.student}.json"), as_text(graded[kind.student]))
    assert not found, f"{found}\n{RENEW}"


@pytest.mark.parametrize("kind", KINDS, ids=[kind.student for kind in KINDS])
def test_each_submission_earns_what_its_kind_says(graded: dict[str, dict], kind: Kind) -> None:
    report = graded[kind.student]
    lost = [item for item in report["items"] if item["points"] < item["max_points"]]
    assert report["points"] == kind.points
    assert sorted({item["verdict"] for item in lost}) == kind.verdicts.split()
    assert sorted({mistake for item in lost for mistake in item["mistakes"]}) == kind.mistakes.split()


def test_every_submission_has_a_row_and_a_golden_file_and_there_are_no_others() -> None:
    students = [kind.student for kind in KINDS]
    assert students == sorted(path.name for path in SUBMISSIONS.iterdir())
    assert students == sorted(path.stem for path in GOLDEN.iterdir())


def test_the_class_says_itself_which_assignment_it_did() -> None:
    assert assignment_of_submissions([SUBMISSIONS]).name == ASSIGNMENT.name
    assert PLACEHOLDERS


def test_the_untouched_submission_is_the_handout() -> None:
    assert (SUBMISSIONS / "chidi" / "policy_gradient_theory.py").read_text() == ASSIGNMENT.untouched_source()


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for student, report in grade_class(Path(folder)).items():
            (GOLDEN / f"{student}.json").write_text(as_text(report), encoding="utf-8")
