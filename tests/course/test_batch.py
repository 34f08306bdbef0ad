"""Batch: a class into a folder, the same bytes however often it was stopped and however many work at it."""

from __future__ import annotations

import csv
import dataclasses
import html
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import unicodedata
import urllib.parse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from graded_folder import comparable
from markupsafe import escape
from processes import PATIENCE, descendants, is_running, wait_for
from sample_reports import NASTY_NAMES

from autograder.cli.grade import class_table
from autograder.course.batch import grade_all
from autograder.course.results import Run
from autograder.grading.grader import Grader
from autograder.sandbox.sandbox import Sandbox, in_sandboxes
from autograder.submissions.finding import find
from autograder.submissions.submission import Candidate
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import file_stem
from autograder.vocabulary.report import from_json, read_report, to_json
from autograder.vocabulary.text import INVISIBLE, visible

MODULE = "toy.py"
SLOW = """\
import time
import torch

time.sleep(1)  # long enough to be killed meanwhile

def ramp(x, factor):
    return factor * torch.clamp(x, min=0)

def shift(x, factor):
    return x + factor
"""
SIZE = 4
CLASS_FILES = ("grades.csv", "index.html", "run.json")

HOSTILE = (
    *NASTY_NAMES,
    *("/absolute", "a\\b", "..", " ", "con", "é" * 200, "[red]bold[/red]", "\x1b[2J\x1b]0;title\x07"),
    *("nul\0byte", "lone\udcff", "%2e%2e"),
)


@pytest.fixture(scope="module")
def students(grader: Grader, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A class of SIZE: right and slow, and so the last to be done; untouched, a syntax error, an empty file."""
    folder = tmp_path_factory.mktemp("students")
    texts = {"zoe": SLOW, "chidi": grader.assignment.untouched_source(), "hana": "def ramp(x, factor:\n", "emeka": ""}
    for name, text in texts.items():
        put(folder, name, text)
    return folder


@pytest.fixture(scope="module")
def reference(grader: Grader, students: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    """The class graded once, by one job, without a break."""
    out = tmp_path_factory.mktemp("reference") / "grades"
    return out, grade(grader, students, out)


@pytest.fixture
def unfinished(tmp_path: Path) -> Path:
    """A class that needs no sandbox: nobody handed in a line."""
    for index, name in enumerate(("ada", "bela", "chidi")):
        put(tmp_path / "class", name, "\n" * index)
    return tmp_path / "class"


def put(folder: Path, student: str, text: str) -> Path:
    path = folder / student / MODULE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def grade(grader: Grader, folder: Path, out: Path, **options: Any) -> Run:
    return grade_all(grader, find([folder], grader.assignment.module), out, **options)


def rows(out: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((out / "grades.csv").read_text(), newline="")))


def make_old(out: Path) -> None:
    """Let the reports be of long ago, so that a later run shows which of them it wrote."""
    for path in (out / "reports").iterdir():
        os.utime(path, (1, 1))


def rewritten(out: Path) -> set[str]:
    return {path.name for path in (out / "reports").iterdir() if path.stat().st_mtime != 1}


# What a run writes


def test_run_writes_exactly_what_the_design_lists(reference: tuple[Path, Run], students: Path, grader: Grader) -> None:
    out, run = reference
    names = sorted(path.name for path in students.iterdir())
    files = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert files == {
        *(f"reports/{name}.json" for name in names),
        *(f"feedback/{name}.html" for name in names),
        *(f"details/{name}.json" for name in names),
        *CLASS_FILES,
    }
    assert [row["student"] for row in rows(out)] == names
    assert [report.student for report in run.reports] == names
    assert {row["student"]: row["points"] for row in rows(out)} == {
        "zoe": "10",
        **dict.fromkeys(("chidi", "emeka", "hana"), "0"),
    }
    described = json.loads((out / "run.json").read_text())
    assert described["fixtures"] == grader.fixtures.sha256
    assert (described["submissions"], described["not_graded"], described["reused"]) == (SIZE, 0, 0)
    assert (described["jobs"], described["assignment"]) == (1, "toy")
    assert described["versions"].keys() >= {"torch", "python", "numpy"}
    assert described["seconds"] > 0


# A second run


def test_second_run_keeps_reports_of_unchanged_work(
    reference: tuple[Path, Run], grader: Grader, students: Path, tmp_path: Path
) -> None:
    out = shutil.copytree(reference[0], tmp_path / "grades")
    make_old(out)
    run = grade(grader, students, out)
    assert run.reused == SIZE
    assert rewritten(out) == set()
    assert comparable(out) == comparable(reference[0])
    assert json.loads((out / "run.json").read_text())["reused"] == SIZE


def test_second_run_grades_the_changed_file(unfinished: Path, grader: Grader, tmp_path: Path) -> None:
    out = tmp_path / "out"
    grade(grader, unfinished, out)
    make_old(out)
    put(unfinished, "bela", "# a comment\n" * 100_000)
    run = grade(grader, unfinished, out)
    assert (run.reused, rewritten(out)) == (2, {"bela.json"})
    assert "larger than" in list(run.reports)[1].cause
    assert "larger than" in (out / "feedback" / "bela.html").read_text()
    assert grade(grader, unfinished, out, fresh=True).reused == 0
    of_next_term = dataclasses.replace(grader, fixtures=dataclasses.replace(grader.fixtures, sha256="f" * 64))
    run = grade(of_next_term, unfinished, out)
    assert run.reused == 0
    assert {report.fixtures for report in run.reports} == {"f" * 64}


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda text: text[: len(text) // 2], id="cut in half"),
        pytest.param(lambda text: text.replace('"points": 0.0', '"points": ""'), id="points of no kind"),
        pytest.param(lambda text: "[" * 100_000, id="deep"),
        pytest.param(lambda text: text.replace('"schema": 1', '"schema": 99'), id="another schema"),
        pytest.param(lambda text: text.replace('"isolation": [', '"isolation": ["wishes", '), id="another isolation"),
        pytest.param(lambda text: text.replace('"points": 0.0', '"points": 1e999'), id="points without an end"),
        pytest.param(lambda text: edited(text, items=json.loads(text)["items"][:-1]), id="an item less"),
        pytest.param(lambda text: edited(text, fixtures=""), id="other fixtures"),
    ],
)
def test_damaged_or_foreign_report_is_made_anew(
    unfinished: Path, grader: Grader, tmp_path: Path, spoil: Callable[[str], str]
) -> None:
    out = tmp_path / "out"
    grade(grader, unfinished, out)
    right, path = comparable(out), out / "reports" / "bela.json"
    text = path.read_text()
    path.write_text(spoil(text), encoding="latin-1")
    assert path.read_text(encoding="latin-1") != text
    assert grade(grader, unfinished, out).reused == 2
    assert comparable(out) == right


def edited(text: str, **changed: Any) -> str:
    return json.dumps(json.loads(text) | changed)


def test_report_of_a_failed_grader_is_never_kept(unfinished: Path, grader: Grader, tmp_path: Path) -> None:
    out = tmp_path / "out"
    candidates = find([unfinished], grader.assignment.module)
    (unfinished / "bela").rename(tmp_path / "away")
    run = grade_all(grader, candidates, out)
    assert [report.status for report in run.reports] == ["graded", "not_graded", "graded"]
    row = rows(out)[1]
    assert (row["student"], row["points"], row["status"]) == ("bela", "", "not_graded")
    assert {row[item.id] for item in grader.assignment.items} == {""}
    assert json.loads((out / "run.json").read_text())["not_graded"] == 1
    assert grade_all(grader, candidates, out).reused == 2
    (tmp_path / "away").rename(unfinished / "bela")
    assert [report.status for report in grade_all(grader, candidates, out).reports] == ["graded"] * 3
    assert rows(out)[1]["points"] == "0"


@pytest.mark.parametrize("left", [None, "<p>the page of an earlier report"])
def test_page_unlike_its_report_is_made_anew(
    unfinished: Path, grader: Grader, tmp_path: Path, left: str | None
) -> None:
    """A run may be killed between the report and the page."""
    out = tmp_path / "out"
    grade(grader, unfinished, out)
    right, page = comparable(out), out / "feedback" / "bela.html"
    page.unlink()
    if left is not None:
        page.write_text(left, encoding="latin-1")
    assert grade(grader, unfinished, out).reused == 3
    assert comparable(out) == right


def test_part_of_a_class_is_graded_again_alone(unfinished: Path, grader: Grader, tmp_path: Path) -> None:
    out = tmp_path / "out"
    grade(grader, unfinished, out)
    before = comparable(out)
    shutil.rmtree(unfinished / "bela")
    run = grade(grader, unfinished, out)
    assert [report.student for report in run.reports] == ["ada", "bela", "chidi"]
    assert comparable(out) == before


# Killed and interrupted runs


@pytest.fixture
def running(course: Path, students: Path, tmp_path: Path) -> Iterable[Callable[[], subprocess.Popen[str]]]:
    """A function that starts grading the class into `grades`, two at a time, in a process of its own."""
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "autograder", "grade", students, "--out", tmp_path / "grades", "--jobs", "2"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen([*map(str, command)], cwd=course, text=True, **pipes))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.long
def test_killed_run_ends_with_the_same_bytes(
    reference: tuple[Path, Run], running: Callable[[], subprocess.Popen[str]], tmp_path: Path
) -> None:
    out = tmp_path / "grades"
    killed = running()
    wait_for_a_report(out, killed)
    family = descendants(killed.pid)
    killed.kill()
    killed.communicate()
    finished = len(list(out.glob("reports/*.json")))
    assert 0 < finished < SIZE
    assert not (out / "grades.csv").exists()
    assert family
    wait_for(lambda: not any(map(is_running, family)))

    (out / "reports" / ".writing-abc").write_text('{"schema": 1, "student": "half')
    again = running()
    said, complaints = again.communicate(timeout=PATIENCE)
    assert (again.returncode, complaints) == (0, "")
    kept = re.search(rf"{SIZE} graded in [\d.]+ s, (\d+) of them unchanged since the last run\.", said)
    assert kept is not None
    assert int(kept[1]) == finished
    assert list(out.rglob(".writing-*")) == []
    assert comparable(out) == comparable(reference[0])


@pytest.mark.long
def test_ctrl_c_leaves_one_sentence_and_nothing_running(
    running: Callable[[], subprocess.Popen[str]], tmp_path: Path
) -> None:
    out = tmp_path / "grades"
    process = running()
    wait_for_a_report(out, process)
    family = descendants(process.pid)
    process.send_signal(signal.SIGINT)
    said, complaints = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert said == ""
    assert complaints == "autograder: stopped. Run the same command again to go on where it stopped.\n"
    assert family
    wait_for(lambda: not any(map(is_running, family)))
    names = [path.name for path in out.rglob("*") if path.is_file()]
    assert 0 < len(list(out.glob("reports/*.json"))) < SIZE
    assert not [name for name in names if name.startswith(".writing-") or name == "grades.csv"]


def wait_for_a_report(out: Path, process: subprocess.Popen[str]) -> None:
    wait_for(lambda: any(out.glob("reports/*.json")) or process.poll() is not None)
    assert process.poll() is None, process.communicate()


# Folders that cannot be written


@pytest.mark.parametrize(
    "occupied", [*("", "reports"), *("reports/bela.json/x", "feedback/bela.html/x", "grades.csv/x", "run.json/x")]
)
def test_unwritable_folder_is_named_with_what_to_do(
    unfinished: Path, grader: Grader, tmp_path: Path, occupied: str
) -> None:
    out = tmp_path / "out"
    (out / occupied).parent.mkdir(parents=True, exist_ok=True)
    (out / occupied).write_text("in the way")
    with pytest.raises(UsageError, match=rf"{out} cannot be written: .+\. Give another folder with --out\."):
        grade(grader, unfinished, out)
    assert (out / occupied).read_text() == "in the way"
    assert list(tmp_path.rglob(".writing-*")) == []


# Names


@pytest.fixture(scope="module")
def hostile(grader: Grader, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    """Students of every awkward name, who handed in one and the same thing."""
    folder = tmp_path_factory.mktemp("hostile")
    path = put(folder / "class", "someone", "")
    candidates = [Candidate(name, path, f"someone/{MODULE}") for name in HOSTILE]
    return folder / "out", grade_all(grader, candidates, folder / "out")


def test_each_name_gets_its_own_files_and_is_text(hostile: tuple[Path, Run]) -> None:
    out, run = hostile
    assert [report.student for report in run.reports] == sorted(HOSTILE)
    for folder in ("reports", "feedback"):
        assert len([path for path in (out / folder).iterdir() if path.is_file()]) == len(HOSTILE)
    assert {path.name for path in out.iterdir()} == {"details", "feedback", "reports", *CLASS_FILES}
    assert sorted(path.name for path in out.parent.iterdir()) == ["class", "out"]
    index = (out / "index.html").read_text()
    links = re.findall(r'href="feedback/([^"#]+)(?:#item-[^"]*)?"', index)
    assert {urllib.parse.unquote(html.unescape(link)) for link in links} == {
        path.name for path in (out / "feedback").iterdir()
    }
    for name in HOSTILE:
        report = read_report(out / "reports" / f"{file_stem(name)}.json")
        assert report is not None
        assert report.student == name
        page = (out / "feedback" / f"{file_stem(name)}.html").read_text()
        assert str(escape(visible(name, 120))) in page
        for text in (page, index):
            assert "<script>alert" not in text
            assert not any(unicodedata.category(character) in INVISIBLE for character in text.replace("\n", ""))


def test_not_graded_is_no_zero_in_the_terminal(hostile: tuple[Path, Run], grader: Grader) -> None:
    data = to_json(next(report for report in hostile[1].reports if report.student == "Diaz, Ana")) | {"cause": ""}
    for item in data["items"]:
        item.update(points=None, verdict="not_graded", message="the disk failed")
    reports = [from_json(json.loads(json.dumps(data)))]
    table = class_table(reports, grader.assignment, "", 110)
    cells = [str(cell) for column in table.columns for cell in column.cells]
    assert cells == ["Diaz, Ana", "not graded", *[""] * len(grader.assignment.functions), "the disk failed"]


# in_sandboxes


def test_results_come_in_the_order_of_the_tasks() -> None:
    second_is_done = threading.Event()

    def work(task: int, sandbox: Sandbox) -> int:
        if task == 0:
            assert second_is_done.wait(PATIENCE)
        else:
            second_is_done.set()
        return task * 10

    assert in_sandboxes(work, [0, 1, 2], 2) == [0, 10, 20]


@pytest.mark.parametrize("fault", [ValueError("no"), SystemExit(4)])
def test_first_exception_ends_the_run_and_is_raised(fault: BaseException) -> None:
    started: list[int] = []

    def work(task: int, sandbox: Sandbox) -> int:
        started.append(task)
        if task == 1:
            raise fault
        return task

    with pytest.raises(type(fault)) as caught:
        in_sandboxes(work, [0, 1, 2, 3], 1)
    assert caught.value is fault
    assert started == [0, 1]


def test_raising_callback_ends_the_run_and_keeps_its_report(unfinished: Path, grader: Grader, tmp_path: Path) -> None:
    def progress(candidate: Candidate, report: object) -> None:
        raise RuntimeError(f"after {candidate.student}")

    with pytest.raises(RuntimeError, match="after ada"):
        grade(grader, unfinished, tmp_path / "out", progress=progress)
    assert [path.name for path in (tmp_path / "out" / "reports").iterdir()] == ["ada.json"]
    assert not (tmp_path / "out" / "grades.csv").exists()
