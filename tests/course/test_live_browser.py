"""The live view, the course and alike submissions in a real browser; axe-core finds nothing wrong in their pages.

The browser is the machine's own Chromium; where there is none these tests skip.
"""

from __future__ import annotations

import csv
import threading
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from chromium import chromium
from lengths import in_short
from places import KIT
from processes import PATIENCE
from sample_reports import index_page, item, report, write_report
from typer.testing import CliRunner

from autograder.cli.main import app
from autograder.course.live_decisions import Answer, LiveFolder
from autograder.course.live_view import LiveServer
from autograder.course.similarity import Pair, Similarity, similarity_page
from autograder.grading.assignment import find_assignment
from autograder.pages.listing import listing_of
from autograder.pages.student_page import feedback_page
from autograder.submissions.submission import Submission
from autograder.vocabulary.files import file_stem, write_atomically
from autograder.vocabulary.report import Report

ASSIGNMENT = find_assignment(KIT, "policy_gradient")
ITEM, WORTH = max(((one.id, one.points) for one in ASSIGNMENT.items), key=lambda pair: pair[1])
QUESTION = "question-spread"
HOSTILE = "<script>window.pwned=1</script>"


def graded(student: str, points: float = 0.0) -> Report:
    rest = [item(one.id, one.points, one.points) for one in ASSIGNMENT.items if one.id != ITEM]
    return report(student, item(ITEM, points, WORTH, "failed", message="wrong"), *rest)


def put(folder: Path, one: Report) -> None:
    write_report(one, folder / "reports" / f"{file_stem(one.student)}.json")
    write_atomically(folder / "feedback" / f"{file_stem(one.student)}.html", feedback_page(one))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


class Windows:
    """What a test has open in the browser, and what the pages in it complained of."""

    def __init__(self, browser: Any) -> None:
        self.browser, self.contexts, self.complaints = browser, [], []

    def go(self, address: str, width: int = 1300, **options: Any) -> Any:
        """A page of its own that shows the address."""
        context = self.browser.new_context(viewport={"width": width, "height": 900}, **options)
        self.contexts.append(context)
        page = context.new_page()
        page.on("console", lambda line: self.complaints.append(line.text) if line.type in ("error", "warning") else 0)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto(address)
        return page

    def close(self) -> None:
        """Close them all, having seen that no page has complained, or run what it should not."""
        contexts, self.contexts = self.contexts, []
        ran = [page.evaluate("window.pwned") for context in contexts for page in context.pages]
        for context in contexts:
            context.close()
        assert ran == [None] * len(ran)
        assert self.complaints == []


@pytest.fixture
def windows(browser: Any) -> Iterator[Windows]:
    made = Windows(browser)
    yield made
    made.close()


@pytest.fixture
def served(tmp_path: Path, windows: Windows) -> Iterator[tuple[str, Path]]:
    """The address of a live view of two students, and the folder behind it; it ends after its pages, which ask it."""
    folder = tmp_path / "grades"
    for name in ("ada", "bela"):
        put(folder, graded(name))
    write_atomically(folder / "index.html", index_page([graded("ada"), graded("bela")], {}))
    answers = {"ada": {QUESTION: Answer(HOSTILE, (), "00")}}
    server = LiveServer(folder, {"": LiveFolder(folder, ASSIGNMENT, "anna", answers)})
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.address, folder
        windows.close()
    finally:
        server.shutdown()
        thread.join()


def rows(folder: Path) -> list[list[str]]:
    with (folder / "decisions.csv").open(encoding="utf-8", newline="") as stream:
        return [row[2:] for row in list(csv.reader(stream))[1:]]


def test_points_are_overridden_and_taken_back(windows: Windows, served: tuple[str, Path]) -> None:
    address, folder = served
    page = windows.go(f"{address}feedback/ada.html")
    page.click(f"#decide-{ITEM} summary")
    page.fill(f"#decide-{ITEM} input[name=points]", str(WORTH))
    page.fill(f"#decide-{ITEM} textarea", HOSTILE)
    page.press(f"#decide-{ITEM} input[name=points]", "Enter")
    page.wait_for_selector(".said")
    assert page.evaluate("window.scrollY") > 0  # the page stands at the item
    assert page.inner_text(".said") == "Saved."
    assert rows(folder) == [["ada", ITEM, str(WORTH), HOSTILE]]
    with page.expect_navigation():
        page.click("text=Take back")
    assert rows(folder)[1:] == [["ada", ITEM, "", ""]]
    assert HOSTILE in page.inner_text(f"#decide-{ITEM} .decided")


def test_answers_are_marked_by_keys_and_buttons(windows: Windows, served: tuple[str, Path]) -> None:
    address, folder = served
    page = windows.go(f"{address}questions/{QUESTION}")
    page.keyboard.press("u")
    for key in "12":
        page.keyboard.press(key)
    with page.expect_navigation():
        page.keyboard.press("s")
    with page.expect_navigation():  # the first marks of all change what every grade is out of
        page.keyboard.press("s")
    assert rows(folder) == [["ada", QUESTION, "3", ""]]
    page.click(".silent summary")
    with page.expect_navigation():
        page.click(".silent [data-give='0']")
    assert rows(folder)[1:] == [["bela", QUESTION, "0", ""]]
    page.goto(f"{address}feedback/ada.html")
    with page.expect_navigation():
        page.keyboard.press("j")
    assert page.url.endswith("/feedback/bela.html")


def test_selected_line_takes_a_comment(windows: Windows, served: tuple[str, Path]) -> None:
    address, folder = served
    function = ASSIGNMENT.functions[0]
    one = graded("ada")
    text = f"import os\n\n\ndef {function}(x):\n    return x\n"
    listing = listing_of(Submission("ada", "x.py", "00", text), one, ASSIGNMENT.functions)
    one = replace(one, submission=replace(one.submission, sha256="0" * 64))
    write_report(one, folder / "reports" / "ada.json")
    write_atomically(folder / "feedback" / "ada.html", feedback_page(one, listing=listing))
    page = windows.go(f"{address}feedback/ada.html")
    for place, line, comment in ((function, 5, "Why not 2 x?"), ("", 1, HOSTILE)):
        page.click(f"[id='code-{place}'] summary")
        page.click(f"[id='code-{place}'] .l[data-n='{line}']")
        page.keyboard.type(comment)
        with page.expect_navigation():
            page.click("#at-line .main")
        assert page.inner_text(f"[id='comment-{place}-{line}']").strip().endswith(comment)
    assert [row[1:] for row in rows(folder)] == [
        [f"{function}:5:00000000", "", "Why not 2 x?"],
        [":1:00000000", "", HOSTILE],
    ]


def test_second_of_two_at_one_item_is_told_of_the_first(windows: Windows, served: tuple[str, Path]) -> None:
    address, folder = served
    pages = [windows.go(f"{address}feedback/ada.html") for _ in range(2)]
    for page, comment in zip(pages, ("first", "second"), strict=True):
        page.click(f"#decide-{ITEM} summary")
        page.fill(f"#decide-{ITEM} textarea", comment)
    for page in pages:
        with page.expect_navigation():
            page.click(f"#decide-{ITEM} .main")
    assert pages[0].inner_text(".said") == "Saved."
    assert f'ada, {ITEM} has a comment ("first") by anna' in pages[1].inner_text(".said")
    assert pages[1].input_value(f"#decide-{ITEM} textarea") == "second"
    assert [row[3] for row in rows(folder)] == ["first"]
    assert [line for line in windows.complaints if "400" not in line] == []
    windows.complaints.clear()


@pytest.mark.long
def test_page_follows_the_files_but_never_while_typing(windows: Windows, served: tuple[str, Path]) -> None:
    address, folder = served
    still, typing = windows.go(f"{address}feedback/ada.html"), windows.go(f"{address}feedback/ada.html")
    typing.evaluate("window.same = true")
    typing.click(f"#decide-{ITEM} summary")
    typing.fill(f"#decide-{ITEM} textarea", "half a sent")
    with still.expect_event("load", timeout=1000 * PATIENCE):
        put(folder, graded("ada", 2.0))
    typing.wait_for_selector("#live-reload:visible", timeout=1000 * PATIENCE)
    assert typing.evaluate("window.same") is True
    assert typing.input_value(f"#decide-{ITEM} textarea") == "half a sent"


def course_page(folder: Path) -> Path:
    """A course of two assignments, one of which Émile has not handed in."""
    for assignment, students in (("policy_gradient", ("ada", "Émile")), ("grpo_language_model", ("ada",))):
        for student in students:
            made = report(student)
            path = folder / "course" / assignment / "reports" / f"{file_stem(student)}.json"
            write_report(Report(**{**made.__dict__, "assignment": assignment}), path)
    done = CliRunner().invoke(app, ["gradebook", str(folder / "course")])
    assert done.exit_code == 0, done.output
    return folder / "course" / "index.html"


def alike_page(folder: Path) -> Path:
    text = "import torch\n\n\ndef f(x):\n    return x + 1\n"
    pair = Pair(("ada", HOSTILE), (1.0, 0.5), 90.0, (((15, 40),), ((15, 40),)))
    found = Similarity({"ada": text, HOSTILE: text}, (pair,), {"chidi": "is empty"}, frozenset({"import torch"}))
    path = folder / "similar.html"
    path.write_text(similarity_page(found, "Toy"), encoding="utf-8")
    return path


@pytest.mark.parametrize(("width", "scheme"), in_short([(390, "light"), (1300, "dark")]))
@pytest.mark.parametrize("name", in_short(["question", "course", "over the course", "alike", "student", "class"], 4))
def test_axe_finds_nothing_wrong_and_pages_fit(
    windows: Windows, served: tuple[str, Path], tmp_path: Path, name: str, width: int, scheme: str
) -> None:
    pytest.importorskip("axe_playwright_python", reason="the package axe-playwright-python is not installed")
    live = {"student": "feedback/ada.html", "class": "", "question": f"questions/{QUESTION}"}
    if name in live:
        address = f"{served[0]}{live[name]}"
    else:
        page = course_page if "course" in name else alike_page
        path = page(tmp_path)
        address = (path.parent / "by-student" / "ada.html" if name == "over the course" else path).as_uri()
    shown = windows.go(address, width, color_scheme=scheme, bypass_csp=True)
    shown.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true })")
    shown.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    wrong = shown.evaluate("axe.run().then(found => found.violations.map(one => [one.id, one.nodes[0].html]))")
    assert wrong == []
    assert shown.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
