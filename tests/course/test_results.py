"""The folder of a run: reports and pages read back, nothing in it taken on trust, the class's page made again."""

from __future__ import annotations

import gc
import itertools
import json
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from graded_folder import page_without_times
from lengths import in_short
from page_tree import Element, tree
from places import KIT
from sample_reports import item, report
from toy_kit import made_once

from autograder.authoring.fixtures.regenerate import solution_source
from autograder.authoring.fixtures.stored_set import versions
from autograder.course.batch import grade_all
from autograder.course.results import DECIDING, background, grading_key, kit, open_results, run_in, settle, with_history
from autograder.gradebook.decisions import Override
from autograder.gradebook.grades_folder import stored_reports
from autograder.gradebook.rules import Policy, Rules
from autograder.grading.assignment import find_assignment
from autograder.grading.details import Details, Earlier, read_details
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.submissions.finding import find
from autograder.submissions.submission import Candidate, outline
from autograder.vocabulary.errors import GraderFault, UsageError
from autograder.vocabulary.report import Report

ASSIGNMENT = find_assignment(KIT, "policy_gradient")
MODULE = f"{ASSIGNMENT.module}.py"


def nobody_handed_in_a_line(folder: Path, count: int, module: str = "toy") -> list[Candidate]:
    """A class that needs no sandbox."""
    for index in range(count):
        (folder / f"student {index:05}").mkdir(parents=True)
        (folder / f"student {index:05}" / f"{module}.py").touch()
    return find([folder], module)


# A class of any size


@pytest.mark.long
def test_student_more_costs_the_grader_next_to_nothing(tmp_path: Path) -> None:
    """A report is 20 KiB of JSON and five times that as objects: whoever held them would need far more than this."""
    grader = Grader.of(ASSIGNMENT, read_fixtures(ASSIGNMENT))
    small, large, most = 5, 25, 5_000
    held = {}
    grade_all(
        grader, nobody_handed_in_a_line(tmp_path / "first", 1, ASSIGNMENT.module), tmp_path / "of first"
    )  # fills what is cached

    def grade(count: int) -> None:
        left = itertools.count(count - 1, -1)

        def told(candidate: Candidate, report: Report) -> None:
            if next(left) == 0:  # the last of them, while all else is still held that a run holds
                gc.collect()
                held[count] = tracemalloc.get_traced_memory()[0]

        candidates = find([tmp_path / str(count)], ASSIGNMENT.module)
        run = grade_all(grader, candidates, tmp_path / f"of {count}", progress=told)
        assert sum(report.points == 0 for report in run.reports) == run.figures.students == count

    for count in (small, large):
        nobody_handed_in_a_line(tmp_path / str(count), count, ASSIGNMENT.module)
        tracemalloc.start()
        try:
            grade(count)
        finally:
            tracemalloc.stop()
    assert (held[large] - held[small]) / (large - small) < most


# Reports that lie on disk


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (Path.unlink, "cannot be read any more"),
        (lambda path: path.write_bytes(path.read_bytes().replace(b": 0.0", b": 3.0", 1)), "is not what the run wrote"),
        (lambda path: shutil.copy(path.with_name("student 00002.json"), path), "is not what the run wrote"),
    ],
)
def test_report_changed_during_the_run_ends_it_loudly(
    grader: Grader, tmp_path: Path, spoil: Callable[[Path], object], says: str
) -> None:
    out = tmp_path / "out"
    path = out / "reports" / "student 00000.json"

    def progress(candidate: Candidate, report: Report) -> None:
        if candidate.student == "student 00002":
            spoil(path)

    candidates = nobody_handed_in_a_line(tmp_path / "class", 3)
    with pytest.raises(GraderFault, match=rf"{path} {says}.*: somebody changed it meanwhile\."):
        grade_all(grader, candidates, out, progress=progress)
    assert {path.name for path in out.iterdir()} == {"reports", "feedback", "details"}
    assert grade_all(grader, candidates, out).figures.graded == 3


# The folder


def test_half_written_files_of_killed_runs_are_taken_away(grader: Grader, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ours = [out / f".writing-{index}" for index in range(2)] + [
        out / "reports" / ".writing-x",
        out / "feedback" / ".writing-y",
    ]
    theirs = [out / "notes.txt", out / "reports" / ".hidden", out / "more" / ".writing-z", tmp_path / ".writing-a"]
    for path in (*ours, *theirs):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    grade_all(grader, [], out)
    assert [path for path in ours if path.exists()] == []
    assert [path for path in theirs if not path.exists()] == []


def test_second_run_into_one_folder_is_refused(grader: Grader, tmp_path: Path) -> None:
    with open_results(tmp_path, grader, []):
        with pytest.raises(UsageError, match=rf"Another run is writing into {tmp_path}: wait until it has ended"):
            grade_all(grader, [], tmp_path)
        grade_all(grader, [], tmp_path / "elsewhere")
    grade_all(grader, [], tmp_path)


def test_names_that_a_folder_cannot_tell_apart_are_refused(grader: Grader, tmp_path: Path) -> None:
    empty = tmp_path / "empty.py"
    empty.touch()
    candidates = [Candidate(name, empty, "empty.py") for name in ("Ada", "ada", "Émile", "bela")]
    assert grade_all(grader, candidates, tmp_path / "out").figures.students == 4
    (tmp_path / "mac" / "reports").mkdir(parents=True)
    (tmp_path / "mac" / "REPORTS").symlink_to("reports")  # as a file system looks that does not tell case apart
    says = r"mac does not tell Ada and ada apart, which differ in case alone: rename one of them, or give an --out that"
    with pytest.raises(UsageError, match=says):
        grade_all(grader, candidates, tmp_path / "mac")
    assert grade_all(grader, candidates[1:], tmp_path / "mac").figures.students == 3


# What a grade depends on besides submission and fixtures


TWO_DIGESTS = """
import sys
from autograder.course.results import kit
before = kit()["kit"]
with open(sys.argv[1], "a") as module:
    module.write("# a comment\\n")
kit.cache_clear()
print(before, kit()["kit"])
"""


@pytest.mark.parametrize("package", in_short(DECIDING))
def test_engine_is_named_by_the_files_that_grade(tmp_path: Path, package: str) -> None:
    """Wherever they lie, as a wheel would install them: without what Python made of them."""
    shutil.copytree(KIT / "autograder", tmp_path / "autograder", ignore=shutil.ignore_patterns("__pycache__", "*.md"))
    (tmp_path / "autograder/course/scratch.py").write_text("x = 1")  # which grades nothing
    path = next(p for p in sorted((tmp_path / "autograder" / package).rglob("*.py")) if p.stat().st_size)
    command = [sys.executable, "-c", TWO_DIGESTS, str(path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    same, other = done.stdout.split()
    assert same == kit()["kit"] != other


def test_versions_and_given_modules_are_part_of_the_key() -> None:
    assert kit().items() >= versions().items()
    assert versions().keys() == {"python", "torch", "numpy", "safetensors", "einops"}
    assert grading_key({"task": "a"}) == grading_key({"task": "a"})
    assert len({grading_key({}), grading_key({"task": "a"}), grading_key({"task": "b"})}) == 3


# Earlier gradings

EMPTY = Details("", "")
RIGHT, WRONG = report("ada", item("a")), report("ada", item("a", 1.0, 4.0, "failed"))
AT = "2031-03-01T10:00:00+00:00"


SLOWER = replace(RIGHT, items=tuple(replace(one, seconds=9.0) for one in RIGHT.items))
OTHER = replace(RIGHT, submission=replace(RIGHT.submission, sha256="11"))


@pytest.mark.parametrize(
    ("now", "before", "told"),
    [
        (RIGHT, None, ()),
        (RIGHT, WRONG, (Earlier(AT, "00", 1.0, 4.0, ()),)),
        (OTHER, RIGHT, (Earlier(AT, "00", 4.0, 4.0, ("a",)),)),  # the same points for other bytes
        (SLOWER, RIGHT, ()),
        (RIGHT, replace(WRONG, student="bob"), ()),
    ],
)
def test_report_tells_of_the_one_it_replaced(now: Report, before: Report | None, told: tuple[Earlier, ...]) -> None:
    assert with_history(EMPTY, now, before, None, AT).earlier == told


def test_killed_run_tells_nothing_twice() -> None:
    killed = with_history(EMPTY, RIGHT, WRONG, EMPTY, AT)
    assert with_history(EMPTY, RIGHT, WRONG, killed, AT) == killed


def test_second_hand_in_shows_what_the_first_gave(grader: Grader, tmp_path: Path) -> None:
    """Both times a file without a line of code, which needs no sandbox."""
    candidates = nobody_handed_in_a_line(tmp_path / "class", 1)
    (ada,) = (replace(candidate, student="ada") for candidate in candidates)

    def grade(text: str) -> tuple[Details | None, str]:
        (ada.path / "toy.py").write_text(text)
        grade_all(grader, [ada], tmp_path / "out")
        page = (tmp_path / "out" / "feedback" / "ada.html").read_text(encoding="utf-8")
        return read_details(tmp_path / "out" / "details" / "ada.json"), page

    first, page = grade("")
    assert first is not None
    assert first.earlier == ()
    assert "Earlier gradings" not in page
    began = run_in(tmp_path / "out")["started"]
    for text in ("\n", "\n"):  # the second time nothing is graded, and the page tells the same
        again, page = grade(text)
        assert again is not None
        assert [(one.graded, one.submission, one.points) for one in again.earlier] == [(began, first.submission, 0.0)]
        assert "Earlier gradings" in page
        assert began in page


# The class's page

RIGHT_LINE = "return torch.tensor(rewards, dtype=torch.float32, device=responses.device)"
QUESTION = "question-spread"
SHARED = ("ada", "bela")  # who wrote one wrong answer in two ways


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = made_once("class-with-shared-answers", grade_shared_answers, tmp_path_factory)
    return Path(shutil.copytree(made / "grades", tmp_path_factory.mktemp("shared") / "grades"))


def grade_shared_answers(folder: Path) -> Path:
    reward = "compute_reward"
    handed_out, solution = ASSIGNMENT.untouched_source(), solution_source(ASSIGNMENT)
    stub, right = (
        "\n".join(source.split("\n")[outline(source)[reward].first - 1 : outline(source)[reward].last])
        for source in (handed_out, solution)
    )
    solved_alone = handed_out.replace(stub, right)  # what is not written costs no time
    assert solved_alone.count(RIGHT_LINE) == 1
    wrong = {
        "ada": f"{RIGHT_LINE} * 3.7",
        "bela": "scaled = [[3.7 * one for one in row] for row in rewards]\n    "
        + RIGHT_LINE.replace("rewards", "scaled"),
        "cyd": f"{RIGHT_LINE} * 2.9",
        "dana": RIGHT_LINE,
    }
    for student, text in wrong.items():
        (folder / student).mkdir()
        (folder / student / MODULE).write_text(solved_alone.replace(RIGHT_LINE, text))
    answer = {"cell_type": "markdown", "id": QUESTION, "metadata": {}, "source": "Both are spreads."}
    beside = json.dumps({"cells": [answer], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    (folder / "dana" / f"{ASSIGNMENT.module}.ipynb").write_text(beside)
    grader = Grader.of(ASSIGNMENT, read_fixtures(ASSIGNMENT), counterexamples=False)
    grade_all(grader, find([folder], ASSIGNMENT.module), folder / "grades")
    return folder


def page(out: Path) -> Element:
    return tree((out / "index.html").read_text())


def answers_of(solved: Path, student: str) -> Mapping[str, str]:
    return background(ASSIGNMENT, solved).answers_of(student)


def test_students_with_one_wrong_answer_share_it(solved: Path) -> None:
    ada, bela, cyd = (answers_of(solved, student) for student in ("ada", "bela", "cyd"))
    assert ada == bela
    assert ada.keys() == cyd.keys()
    assert not set(ada.values()) & set(cyd.values())
    assert answers_of(solved, "dana") == answers_of(solved, "nobody") == {}
    (card,) = page(solved).find("section", **{"aria-labelledby": "shared"})[0].find("article")
    assert {link.text for link in card.find(class_="people")[0].find("a")} == set(SHARED)


def test_catalogue_entry_holds_the_students_own_text(solved: Path) -> None:
    (card,) = page(solved).find("section", **{"aria-labelledby": "shared"})[0].find("article")
    entry = card.find("pre")[-1].text if card.find("pre") else ""
    assert "return torch.tensor(rewards, dtype=torch.float32, device=responses.device) * 3.7" in entry
    assert "Return the reward of every response" not in entry


def test_fingerprints_stay_with_staff(solved: Path) -> None:
    """They are made of hidden cases too: no report, no student's page and no gradebook may hold one."""
    marks = {mark.encode() for student in (*SHARED, "cyd") for mark in answers_of(solved, student).values()}
    assert marks
    holding = {
        path.parent.name for path in solved.rglob("*") if path.is_file() and any(m in path.read_bytes() for m in marks)
    }
    assert holding == {"details"}


def test_page_knows_the_contract_of_the_assignment(solved: Path) -> None:
    known = background(ASSIGNMENT, solved)
    assert "standard deviation" in known.clauses["population-std"]
    assert not [one for one in known.clauses.values() if "`" in one or one.endswith((":", ";"))]
    assert known.clauses["ratio-of-differences"].startswith("unclipped, loss = -mean(ratio * delta), ratio = exp(")
    assert known.code_of("dana", "compute_reward") == ""  # what is right is nobody's example
    assert known.code_of("nobody", "compute_reward") == ""


def test_answer_in_words_is_counted_until_it_has_a_mark(solved: Path) -> None:
    def unmarked() -> list[str]:
        rows = page(solved).find("table", id="class")[0].find("tbody")[0].find("tr")
        return [row.find("th")[0].text for row in rows if "unmarked" in row.attributes.get("data-g", "").split()]

    assert unmarked() == ["dana"]
    marked = Override("dana", QUESTION, 2.0, "", "line 2", on_top=5.0)
    finals = settle(solved, stored_reports(solved), ASSIGNMENT, Rules(overrides=[marked]))
    assert unmarked() == []
    (solved / "index.html").write_text("of these grades")
    settle(solved, stored_reports(solved), ASSIGNMENT, Rules(overrides=[marked]), finals)
    assert (solved / "index.html").read_text() == "of these grades"  # it is not written twice
    settle(solved, stored_reports(solved), ASSIGNMENT, None)
    assert unmarked() == ["dana"]


def test_rules_write_finals_into_the_page_and_out_again(solved: Path) -> None:
    before = (solved / "index.html").read_text()
    reports = stored_reports(solved)
    policy = Policy(excused={"students": ["cyd"]})
    settle(solved, reports, ASSIGNMENT, Rules(policy, [Override("ada", "", 50.5, "agreed", "line 2")]))
    root = page(solved)
    rows = root.find("table", id="class")[0].find("tbody")[0].find("tr")
    told = [row.find("td")[0].text.split(", ")[0] for row in rows]
    assert (told[0], told[2]) == ("50.5", "–")
    assert [row.find("td")[0].text for row in rows][2] == "–, excused"
    assert "cyd" not in root.find("section", **{"aria-labelledby": "items"})[0].text
    settle(solved, reports, ASSIGNMENT, None)
    assert page_without_times((solved / "index.html").read_text()) == page_without_times(before)
    assert (solved / "index.html").read_text() == before  # times and changes, too, are those of the run
    assert json.loads((solved / "run.json").read_text())["changes"] is None  # a first run has none


@pytest.mark.parametrize("spoilt", ["", "[]", '{"changes": 3}', '{"changes": [[1]]}', "[" * 100_000])
def test_unreadable_run_still_leaves_a_page(solved: Path, tmp_path: Path, spoilt: str) -> None:
    (tmp_path / "index.html").write_text("old")
    (tmp_path / "run.json").write_text(spoilt)
    settle(tmp_path, stored_reports(solved), ASSIGNMENT, None)
    assert len(page(tmp_path).find("table", id="class")[0].find("tbody")[0].find("tr")) == 4
