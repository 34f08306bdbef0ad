"""Pages of the sample class as a run makes them: with the assignment's own catalogue and handout."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace

import pytest
from golden import golden_path, sample_class
from lengths import in_short
from places import KIT

from autograder.course import results
from autograder.course.results import UNLISTED, page_of
from autograder.grading.assignment import find_assignment, find_assignments
from autograder.grading.details import Curve, Details, Earlier, Picture, Series
from autograder.submissions.finding import find
from autograder.submissions.reading import read
from autograder.submissions.submission import Submission
from autograder.vocabulary.report import Report, from_json

LIMIT = 250_000  # bytes of a page
MOST_PICTURES = {"grpo_in_practice": 4}
NO_DETAILS = Details("", "")
ALL = [one.name for one in find_assignments(KIT)]


def page(name: str, submission: Submission, report: Report, details: Details) -> str:
    return page_of(submission, report, details, find_assignment(KIT, name))


def made(name: str, student: str, details: Details = NO_DETAILS) -> str:
    """The page of one student of the sample class, from the golden report."""
    assignment = find_assignment(KIT, name)
    (one,) = (one for one in find([sample_class(assignment)], assignment.module) if one.student == student)
    stored = from_json(json.loads(golden_path(assignment, student).read_text(encoding="utf-8")))
    return page(name, read(one, assignment.module, assignment.untouched_source()), stored, details)


@pytest.mark.parametrize("name", ALL)
def test_pages_have_room_for_pictures_and_curves_of_ordinary_work(name: str) -> None:
    """As many pictures and curves of 30 steps as any submission of that sample class has."""
    assignment = find_assignment(KIT, name)
    largest = max(golden_path(assignment, "x").parent.glob("*.json"), key=lambda path: path.stat().st_size)
    stored = json.loads(largest.read_text(encoding="utf-8"))
    ids = [item["item"] for item in stored["items"] if item["verdict"] == "failed"]
    pictures = tuple(
        Picture(one, "c", "x", ("a", "b"), (3, 5), "+-.+-.+-.+-.+-.") for one in ids[: MOST_PICTURES.get(name, 10)]
    )
    values = tuple(float(step % 7) for step in range(30))
    some = Curve("run", "some steps", "", tuple(Series("reward", values, values) for _ in range(2)))
    curves = (some,) if assignment.curves else ()
    text = made(name, stored["student"], Details("", "", curves, pictures))
    assert text.count("<svg") == len(pictures) + 2 * len(assignment.curves)
    assert "Left out, since" not in text
    assert len(text.encode()) < LIMIT


SCREAM = ("<\"&'>" * 400, "\u202e" * 2_000, "word " * 400)  # as long as the worker lets a message be


def screaming(report: Report, text: str) -> Report:
    """A report whose submission raised something else, at full length, in each case."""
    items = []
    for item in report.items:
        cases = [replace(one, verdict="raised", message=f"{at}{text}"[:2_000]) for at, one in enumerate(item.cases)]
        lost = replace(item, points=0.0, verdict="raised", mistakes=(), message=cases[0].message)
        items.append(replace(lost, cases=tuple(cases), counterexample=text))
    return replace(report, items=tuple(items))


@pytest.mark.parametrize("name", in_short(["policy_gradient", "grpo_in_practice", "grpo_language_model"]))
@pytest.mark.parametrize("text", in_short(SCREAM))
def test_page_stays_small_and_tells_what_is_left_out(name: str, text: str) -> None:
    assignment = find_assignment(KIT, name)
    stored = sorted(golden_path(assignment, "x").parent.glob("*.json"))[0]
    report = screaming(from_json(json.loads(stored.read_text(encoding="utf-8"))), text)
    code = "".join(f"def {one}(x):\n" + '    y = "<&>"\n' * 2_000 for one in assignment.functions)
    submission = Submission("eve", "eve/m.py", "0" * 64, code)
    ids = [item.item for item in report.items]
    earlier = tuple(Earlier("2027-01-01", "0" * 64, 1.0, 100.0, tuple(ids[at % 2 :: 2])) for at in range(20))
    pictures = tuple(Picture(one, "c", "x", ("a", "b"), (20, 20), "+-" * 200) for one in ids)
    text = page(name, submission, report, Details("", "", (), pictures, earlier))
    assert len(text.encode()) < LIMIT
    assert "Left out, since this page would be too large: the ends of long messages, what each case said" in text
    assert "more characters are left out)" in text
    assert all(f'id="item-{one}"' in text for one in ids)


@pytest.mark.parametrize("name", ALL)
def test_page_of_ordinary_faults_everywhere_keeps_messages_and_code(name: str) -> None:
    assignment = find_assignment(KIT, name)
    stored = sorted(golden_path(assignment, "x").parent.glob("*.json"))[0]
    report = screaming(from_json(json.loads(stored.read_text(encoding="utf-8"))), "It was 1.0.\n" * 25)
    code = "".join(f"def {one}(x):\n" + "    y = x + 1\n" * 20 for one in assignment.functions)
    text = page(name, Submission("eve", "eve/m.py", "0" * 64, code), report, NO_DETAILS)
    assert len(text.encode()) < LIMIT
    assert "more characters are left out" not in text
    assert text.count('<details class="listing"') == len(assignment.functions)


@pytest.mark.parametrize("name", ALL)
def test_page_of_the_handout_holds_no_line_of_the_solution(name: str) -> None:
    assignment = find_assignment(KIT, name)
    solution = (assignment.solution / f"{assignment.module}.py").read_text(encoding="utf-8")
    handed_out = assignment.untouched_source() + "".join(assignment.given_sources().values())
    secret = {line.strip() for line in solution.splitlines() if len(line.strip()) > 20}
    secret = {line for line in secret if line not in handed_out and not line.startswith("#")}
    text = html.unescape(re.sub("<[^>]*>", "", made(name, "chidi")))
    assert len(secret) > 20
    assert [line for line in secret if line in text] == []


def test_text_that_cannot_be_listed_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ValueError("of what a student wrote")

    told = UNLISTED[1:]  # the page begins a sentence with it
    assert told not in made("policy_gradient", "emeka")
    monkeypatch.setattr(results, "listing_of", fails)
    assert told in made("policy_gradient", "emeka")
