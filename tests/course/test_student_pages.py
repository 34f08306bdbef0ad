"""Pages of the sample class as a run makes them: with the assignment's own catalogue and handout."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from golden import golden_path, sample_class
from places import KIT

from autograder.course.student_pages import StudentPages
from autograder.grading.assignments import find_assignment
from autograder.grading.items import Assignment
from autograder.grading.remarks.details import Details, Earlier, Picture
from autograder.pages.listing.wrong_expressions import known_texts
from autograder.submissions.finding import find
from autograder.submissions.reading import read
from autograder.submissions.submission import Submission
from autograder.vocabulary.report import Report, from_json

LIMIT = 150_000  # bytes of a page


@cache
def pages_of(name: str) -> dict[str, str]:
    """Student → page, from the golden reports."""
    assignment = find_assignment(KIT, name)
    pages = StudentPages(assignment)
    found = {}
    for candidate in find([sample_class(assignment)], assignment.module):
        submission = read(candidate, assignment.module, assignment.untouched_source())
        report = from_json(json.loads(golden_path(assignment, candidate.student).read_text(encoding="utf-8")))
        found[candidate.student] = pages.html(submission, report, Details("", ""))
    return found


def marked(page: str) -> list[str]:
    lines = re.findall(r'<span class="l bad"[^>]*>(.*)', page)
    return [html.unescape(re.sub("<[^>]*>", "", line)).strip() for line in lines]


def test_a_recognised_mistake_is_marked_at_the_line_that_makes_it() -> None:
    found = marked(pages_of("policy_gradient")["emeka"])
    assert "std = rewards.std(-1, keepdim=True, unbiased=False)" in found
    assert "ratio = torch.exp(log_probs - old_log_probs)" in found


def test_a_file_that_cannot_be_imported_is_marked_where_it_stopped() -> None:
    assert marked(pages_of("policy_gradient")["hana"]) == ["else"]


def test_nothing_is_marked_for_who_has_all_points() -> None:
    assert marked(pages_of("policy_gradient")["ada"]) == []


@pytest.mark.parametrize("name", ["policy_gradient", "policy_gradient_theory"])
def test_pages_with_code_stay_small(name: str) -> None:
    sizes = {student: len(page.encode()) for student, page in pages_of(name).items()}
    assert {student: size for student, size in sizes.items() if size >= LIMIT} == {}


SCREAM = ("<\"&'>" * 400, "\u202e" * 2_000, "word " * 400)  # as long as the worker lets a message be


def screaming(report: Report, text: str) -> Report:
    """A report whose submission raised something else, at full length, in each case."""
    items = []
    for item in report.items:
        cases = [replace(one, verdict="raised", message=f"{at}{text}"[:2_000]) for at, one in enumerate(item.cases)]
        lost = replace(item, points=0.0, verdict="raised", mistakes=(), message=cases[0].message)
        items.append(replace(lost, cases=tuple(cases), counterexample=text))
    return replace(report, items=tuple(items))


@pytest.mark.parametrize("name", ["policy_gradient", "grpo_language_model"])
@pytest.mark.parametrize("text", SCREAM)
def test_a_page_stays_small_whatever_a_submission_says_and_tells_what_is_left_out(name: str, text: str) -> None:
    assignment = find_assignment(KIT, name)
    stored = sorted(golden_path(assignment, "x").parent.glob("*.json"))[0]
    report = screaming(from_json(json.loads(stored.read_text(encoding="utf-8"))), text)
    code = "".join(f"def {one}(x):\n" + '    y = "<&>"\n' * 2_000 for one in assignment.functions)
    submission = Submission("eve", "eve/m.py", "0" * 64, code)
    ids = [item.item for item in report.items]
    earlier = tuple(Earlier("2027-01-01", "0" * 64, 1.0, 100.0, tuple(ids[at % 2 :: 2])) for at in range(20))
    pictures = tuple(Picture(one, "c", "x", ("a", "b"), (20, 20), "+-" * 200) for one in ids)
    page = StudentPages(assignment).html(submission, report, Details("", "", (), pictures, earlier))
    assert len(page.encode()) < LIMIT
    assert "Left out, since this page would be too large: the ends of long messages, pictures of differences" in page
    assert "more characters are left out)" in page
    assert all(f'id="item-{one}"' in page for one in ids)


def test_an_ordinary_page_leaves_nothing_out() -> None:
    assert not [page for page in pages_of("policy_gradient").values() if "Left out, since" in page]


@pytest.mark.parametrize("name", ["policy_gradient", "policy_gradient_theory"])
def test_no_line_of_the_solution_is_on_the_page_of_who_handed_in_the_handout(name: str) -> None:
    assignment = find_assignment(KIT, name)
    solution = (assignment.solution / f"{assignment.module}.py").read_text(encoding="utf-8")
    handed_out = assignment.untouched_source() + "".join(assignment.given_sources().values())
    secret = {line.strip() for line in solution.splitlines() if len(line.strip()) > 20}
    secret = {line for line in secret if line not in handed_out and not line.startswith("#")}
    text = html.unescape(re.sub("<[^>]*>", "", pages_of(name)["chidi"]))
    assert len(secret) > 50
    assert [line for line in secret if line in text] == []


def test_pages_of_one_class_are_the_same_bytes_again() -> None:
    again = pages_of.__wrapped__("policy_gradient")
    assert again == pages_of("policy_gradient")


@pytest.mark.parametrize("text", [None, "MISTAKES = (", "MISTAKES = 3", "raise SystemExit(3)"])
def test_a_catalogue_that_cannot_be_read_keeps_no_page_from_being_made(tmp_path: Path, text: str | None) -> None:
    source = find_assignment(KIT, "policy_gradient").folder
    (tmp_path / "items.toml").write_bytes((source / "items.toml").read_bytes())
    if text is not None:
        (tmp_path / "mistakes.py").write_text(text)
    assert known_texts(tmp_path) == {}


def test_the_catalogue_says_of_each_mistake_what_it_departs_from() -> None:
    assignment: Assignment = find_assignment(KIT, "policy_gradient")
    known = known_texts(assignment.folder)
    right, wrong = known["compute_deltas", "population-std"]
    assert "correction=0" in wrong
    assert "correction=0" not in right
    assert {function for function, _ in known} == set(assignment.functions)
