"""The live view: the pages of a folder of grades over http, decisions into the journal, and nobody else let in."""

from __future__ import annotations

import csv
import errno
import hashlib
import html
import http.client
import json
import os
import re
import threading
import urllib.parse
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from places import KIT
from sample_reports import NASTY_NAMES, item, report, write_report

from autograder.course.live_decisions import REQUESTS, Answer, LiveFolder, Question, add_requests, requests_of
from autograder.course.live_view import MAX_BODY, LiveServer
from autograder.gradebook.decisions import JOURNAL, Decisions, line_of
from autograder.gradebook.grades_folder import read_grades
from autograder.grading.assignment import find_assignment
from autograder.pages.listing import listing_of
from autograder.pages.student_page import feedback_page
from autograder.submissions.submission import Candidate, Submission
from autograder.vocabulary.files import alone, file_stem, write_atomically
from autograder.vocabulary.report import Report, SubmissionInfo
from autograder.vocabulary.text import number

ASSIGNMENT = find_assignment(KIT, "policy_gradient")
ITEM, WORTH = ASSIGNMENT.items[0].id, ASSIGNMENT.items[0].points
QUESTION = "question-spread"


def graded(student: str, points: float = 1.0) -> Report:
    """A report on every item of the assignment; of the first, these points."""
    rest = [item(one.id, one.points, one.points) for one in ASSIGNMENT.items[1:]]
    return report(student, item(ITEM, points, WORTH, "passed" if points == WORTH else "failed"), *rest)


@dataclass
class Reply:
    status: int
    text: str
    headers: dict[str, str]


@dataclass
class Browser:
    """Asks a server as a browser does: its own page's origin where it writes, and no redirect followed."""

    server: LiveServer
    grades: LiveFolder

    @property
    def folder(self) -> Path:
        return self.grades.folder

    @property
    def journal(self) -> Path:
        return self.folder / JOURNAL

    def ask(
        self, path: str, fields: dict[str, str] | bytes | None = None, *, whole: str = "", **headers: str | None
    ) -> Reply:
        """The reply to GET, or to POST where there are fields; `whole` is a path that is not below the token."""
        body = urllib.parse.urlencode(fields).encode() if isinstance(fields, dict) else fields
        sent: dict[str, str | None] = {"Host": f"127.0.0.1:{self.server.port}"}
        if body is not None:
            sent |= {"Origin": f"http://127.0.0.1:{self.server.port}", "Content-Length": str(len(body))}
            sent |= {"Content-Type": "application/x-www-form-urlencoded"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        try:
            method = "GET" if body is None else "POST"
            connection.putrequest(method, whole or f"/{self.server.token}/{path}", skip_host=True)
            for name, value in sent.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(body)
            reply = connection.getresponse()
            return Reply(reply.status, reply.read().decode(), dict(reply.getheaders()))
        finally:
            connection.close()

    def decide(
        self, student: str, comment: str = "as agreed", points: str = "", item: str = ITEM, **more: str
    ) -> Reply:
        """What the form at an item sends, by somebody who has seen what was decided before."""
        seen = self.grades.history().get((file_stem(student), item), ())
        fields = {"report": file_stem(student), "item": item, "points": points, "comment": comment}
        fields |= {"seen": line_of(seen[-1]) if seen else "", **more}
        reply = self.ask("decide", fields)
        if "sure" not in more and (asked := re.search('name="sure" value="([^"]*)"', reply.text)):
            return self.ask("decide", {**fields, "sure": html.unescape(asked[1])})
        return reply

    @property
    def rows(self) -> list[list[str]]:
        """The journal without its header and its times."""
        with self.journal.open(encoding="utf-8", newline="") as stream:
            return [row[1:] for row in csv.reader(stream)][1:]

    def stored(self, student: str) -> dict[str, float]:
        return dict(json.loads((self.folder / "reports" / f"{student}.json").read_bytes()))


Serving = Callable[..., Browser]


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    """A function that serves these reports."""
    running: list[tuple[LiveServer, threading.Thread]] = []

    def begin(*reports: Report, answers: dict[str, dict[str, Answer]] | None = None) -> Browser:
        folder = tmp_path / "grades"
        for one in reports:
            write_report(one, folder / "reports" / f"{file_stem(one.student)}.json")
            write_atomically(folder / "feedback" / f"{file_stem(one.student)}.html", feedback_page(one))
        grades = LiveFolder(folder, ASSIGNMENT, "anna", answers or {})
        server = LiveServer(folder, {"": grades})
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        running.append((server, thread))
        return Browser(server, grades)

    yield begin
    for server, thread in running:
        server.shutdown()
        thread.join()


# The same pages, live


def test_student_page_is_served_with_forms_and_kept_on_disk(serving: Serving) -> None:
    browser = serving(graded("o'brien, sean"))
    path = browser.folder / "feedback" / "o'brien, sean.html"
    before = path.read_bytes()
    reply = browser.ask(f"feedback/{urllib.parse.quote(path.name)}")
    assert reply.status == 200
    without = re.sub(r'<details class="override.*?</details>', "", reply.text, flags=re.DOTALL)
    main = before.decode().partition("<main>")[2].partition("</main>")[0]
    assert re.sub(r"\s+", "", main) in re.sub(r"\s+", "", without)
    assert path.read_bytes() == before


def test_headers_allow_this_server_and_hashed_scripts_alone(serving: Serving) -> None:
    headers = serving(graded("ada")).ask("feedback/ada.html").headers
    policy = {rule.split()[0]: rule.partition(" ")[2] for rule in headers["Content-Security-Policy"].split("; ")}
    assert "'unsafe-inline'" not in policy["script-src"]
    assert "'sha256-" in policy["script-src"]
    ours = {"connect-src": "'self'", "form-action": "'self'", "frame-ancestors": "'none'"}
    assert {name: policy[name] for name in ours} == ours
    kept = {"Referrer-Policy": "same-origin", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
    assert kept.items() <= headers.items()
    assert (headers["Server"], "Set-Cookie" in headers) == ("autograder", False)


def test_unreadable_report_is_told_in_a_sentence(serving: Serving, capsys: pytest.CaptureFixture[str]) -> None:
    browser = serving(graded("ada"))
    (browser.folder / "reports" / "ada.json").write_text("{")
    reply = browser.ask("")
    assert (reply.status, "is no report, or is damaged" in reply.text) == (503, True)
    assert capsys.readouterr().err == ""


# Deciding


def test_points_and_reason_become_a_final_grade(serving: Serving) -> None:
    browser = serving(graded("ada"), graded("bela"))
    reply = browser.decide("ada", "half: the copy is right", "2,5")
    place = f"/{browser.server.token}/feedback/ada.html?saved=decide-{ITEM}#decide-{ITEM}"
    assert (reply.status, reply.headers["Location"]) == (303, place)
    assert browser.rows == [["anna", "ada", ITEM, "2,5", "half: the copy is right"]]
    assert browser.decide("bela", "", "2").status == 303  # points need no comment
    assert f"<li>{ITEM} 1 → 2</li>" in (browser.folder / "feedback" / "bela.html").read_text()
    assert browser.stored("ada")["final"] == browser.stored("ada")["points"] + 1.5
    page = browser.ask(f"feedback/ada.html?saved=decide-{ITEM}").text
    assert "1 → 2.5: half: the copy is right" in page
    assert "Saved." in page


def test_journal_is_only_added_to_and_its_history_shown(serving: Serving) -> None:
    browser = serving(graded("ada"), graded("bela"))
    typed = (
        f'\ufeffcomment;student;item;points;who;when\r\n"2 ""marks""";bela;;90;by hand;\r\nfirst;ada;{ITEM};1;me;\r\n'
    )
    browser.journal.write_bytes(typed.encode())
    assert browser.decide("ada", "second", "2").status == 303
    assert browser.decide("ada", remove="1").status == 303
    kept = browser.journal.read_bytes().decode()
    assert kept.startswith(typed)
    assert [line.rpartition(";")[0] for line in kept.removeprefix(typed).splitlines()] == [
        f"second;ada;{ITEM};2;anna",
        f";ada;{ITEM};;anna",
    ]
    assert [row.student for row in Decisions(browser.folder, ASSIGNMENT).merged()[1]] == ["bela"]
    form = browser.ask("feedback/ada.html").text.partition(f'id="decide-{ITEM}"')[2].partition("</ol>")[0]
    assert re.findall(r"<strong>(.*?)</strong>", form) == ["1 point", "2 points", "taken back"]


def test_decision_made_meanwhile_is_shown_and_not_replaced(serving: Serving) -> None:
    browser = serving(graded("ada"))
    browser.decide("ada", "by bela", "2")
    reply = browser.decide("ada", "by cleo", "1.5", seen="")
    assert (reply.status, len(browser.rows)) == (400, 1)
    assert f'ada, {ITEM} has 2 points ("by bela") by anna on 20' in html.unescape(reply.text)
    assert "by cleo</textarea>" in reply.text
    assert browser.decide("ada", "by bela", "2", seen="").status == 303  # the same form, sent twice
    assert len(browser.rows) == 1


@pytest.mark.parametrize(
    ("item", "points", "asked"),
    [
        ("", "3", "ada 98 → 3 of 100"),
        ("", "88.1", ""),
        (ITEM, "0", ""),
        (QUESTION, "5", "Every grade is then out of 1"),
    ],
)
def test_large_change_is_asked_from_what_to_what(serving: Serving, item: str, points: str, asked: str) -> None:
    browser = serving(graded("ada"))
    reply = browser.decide("ada", "typed", points, item, sure="")
    assert (reply.status, asked in reply.text) == (200 if asked else 303, True)
    assert browser.journal.exists() == (not asked)
    if asked:
        assert "typed</textarea>" in reply.text
        assert browser.decide("ada", "typed", points, item).status == 303
        assert "Save again if you mean it" in browser.decide("ada", item=item, remove="1", sure="").text
        assert browser.decide("ada", item=item, remove="1").status == 303
        assert Decisions(browser.folder, ASSIGNMENT).merged()[1] == []


def test_full_disk_leaves_the_journal_as_it_was(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = serving(graded("ada"))
    browser.decide("ada", "first", "2")
    before = browser.journal.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    reply = browser.decide("ada", "second", "1")
    assert (reply.status, browser.journal.read_bytes()) == (400, before)
    assert "decisions.csv cannot be written: No space left on device" in reply.text
    assert not list(browser.folder.glob(".writing-*"))


def test_answer_in_words_is_marked_beside_its_guide(serving: Serving) -> None:
    words = Answer("Both are <b>standard</b> deviations.", ("data:image/png;base64,AAAA",), "00")
    browser = serving(graded("ada", WORTH), graded("bela"), answers={"ada": {QUESTION: words}})
    page = browser.ask(f"questions/{QUESTION}").text
    assert "Both are &lt;b&gt;standard&lt;/b&gt; deviations." in page
    assert 'src="data:image/png;base64,AAAA"' in page
    assert "5.323 and 1.155 are standard deviations" in page
    assert "0 of 1 answers marked" in page
    assert "1 student without an answer" in page
    reply = browser.decide("ada", "no word of the gradient", "3", QUESTION, back="question")
    assert reply.headers["Location"].endswith(f"/questions/{QUESTION}#answer-ada")
    assert "1 of 1 answers marked" in browser.ask(f"questions/{QUESTION}").text
    stored, page = browser.stored("ada"), browser.ask("feedback/ada.html").text
    assert stored["final"] == stored["points"] + 3
    assert stored["final_max"] == stored["max_points"] + 5
    assert f"{QUESTION} 3 of 5 on top: no word of the gradient" in page
    assert f"of {number(stored['max_points'] + 5)} points, the final grade" in page


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"points": "7000"}, "7000 points, but"),
        ({"points": "=1"}, "is no number of points"),
        ({"comment": " "}, "There is nothing to save"),
        ({"comment": "x" * 2001}, "longer than 2,000 characters"),
        ({"item": "nothing"}, "there is no item"),
    ],
)
def test_wrong_form_is_refused_with_a_sentence(serving: Serving, fields: dict[str, str], sentence: str) -> None:
    browser = serving(graded("ada"))
    assert [browser.decide(name).status for name in ("../reports/ada", "x" * 300, "mallory")] == [404] * 3
    reply = browser.decide("ada", **{"comment": "typed <i>", **fields})
    assert reply.status == 400
    assert sentence in reply.text
    assert 'role="alert"' in reply.text
    assert ("typed &lt;i&gt;" in reply.text) == ({"comment", "item"}.isdisjoint(fields))  # it stays in the form
    assert not browser.journal.exists()


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("'=1", "''=1"),
        ('one\r\nada,,100,"hacked"\nthree\u202e,"', 'one ada,,100,"hacked" three\\u202e,"'),
    ],
)
def test_comment_is_one_line_and_no_formula_in_the_journal(serving: Serving, typed: str, stored: str) -> None:
    browser = serving(graded("ada"))
    assert browser.decide("ada", typed).status == 303
    assert browser.rows == [["anna", "ada", ITEM, "", stored]]
    (row,) = Decisions(browser.folder, ASSIGNMENT).merged()[1]
    assert row.comment == stored.removeprefix("'")


ALIKE = ("eve", "eve\u200b", "e\u0301ve", "\u00e9ve", "еve", "eve\\u200b", *NASTY_NAMES[:2])
SCRIPTS = ("می\u200cخواهم رضا", "สมชาย ใจดี", "İpek")


@pytest.mark.parametrize(("page", "names"), [("student", ALIKE), ("question", SCRIPTS)])
def test_form_reaches_its_own_student_however_names_look(serving: Serving, page: str, names: Sequence[str]) -> None:
    browser = serving(*map(graded, names))
    item = QUESTION if page == "question" else ITEM
    for place, name in enumerate(names):
        at = f"questions/{QUESTION}" if page == "question" else f"feedback/{urllib.parse.quote(file_stem(name))}.html"
        keys = re.findall('name="report" value="(.*?)"', browser.ask(at).text)
        (key,) = {html.unescape(text) for text in keys} & {file_stem(name)}
        given = {"report": key, "item": item, "back": page}
        assert browser.decide(name, f"of {place}", "1.5", **given).status == 303
    decided = Decisions(browser.folder, ASSIGNMENT).merged()[1]
    expected = {file_stem(name): f"of {place}" for place, name in enumerate(names)}
    assert {override.student: override.comment for override in decided} == expected
    reports = {one.student: one for one in read_grades(browser.folder)}
    for place, name in enumerate(names):
        assert f"of {place}" in reports[name].final.reasons  # type: ignore[attr-defined]


def test_decisions_that_come_at_once_are_all_kept(serving: Serving) -> None:
    students = [f"student-{place}" for place in range(4)]
    browser = serving(*map(graded, students))
    threads = [threading.Thread(target=browser.decide, args=(student, f"for {student}")) for student in students]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(row[4] for row in browser.rows) == sorted(f"for {student}" for student in students)


def test_decision_during_a_run_counts_at_its_end(serving: Serving) -> None:
    browser = serving(graded("ada"))
    with alone(browser.folder):
        assert browser.decide("ada", "meanwhile", "2").status == 303
        assert "final" not in browser.stored("ada")
        assert json.loads(browser.ask("version").text)["grading"]
    browser.ask("version")  # as the open page does every other second
    assert browser.stored("ada")["final"] > 0


def test_all_without_an_answer_get_the_same_in_one_go(serving: Serving) -> None:
    words = Answer("words", (), "00")
    browser = serving(*map(graded, ("ada", "bela", "cleo, dora", "emil")), answers={"ada": {QUESTION: words}})
    browser.decide("emil", "by word of mouth", "1", QUESTION)
    assert f"{QUESTION} (1 unmarked)" in browser.ask("").text
    assert 'name="report" value="bela/cleo, dora"' in browser.ask(f"questions/{QUESTION}").text

    def give(students: str, points: str = "0") -> Reply:
        return browser.ask("decide", {"report": students, "item": QUESTION, "points": points, "back": "question"})

    assert give("bela/cleo, dora").status == 303
    assert [row[1:4] for row in browser.rows[1:]] == [["bela", QUESTION, "0"], ["cleo, dora", QUESTION, "0"]]
    assert give("bela/..").status == 404
    assert "cleo has no report" in give("bela/cleo", "1").text
    assert len(browser.rows) == 3


# Comments at lines, and requests

FUNCTION = ASSIGNMENT.functions[0]
CODE = "\n".join([f"def {FUNCTION}(x):", "    return '<b>' + x", ""])


def with_code(browser: Browser, student: str, code: str = CODE) -> str:
    """Put a page with this code in place, as grading does; the beginning of the hand-in's digest."""
    sha256 = hashlib.sha256(code.encode()).hexdigest()
    one = replace(graded(student), submission=SubmissionInfo("x.py", sha256))
    listing = listing_of(Submission(student, "x.py", sha256, code), one, ASSIGNMENT.functions)
    write_report(one, browser.folder / "reports" / f"{student}.json")
    write_atomically(browser.folder / "feedback" / f"{student}.html", feedback_page(one, listing=listing))
    return sha256[:8]


def test_comment_stands_at_its_line_of_just_this_hand_in(serving: Serving) -> None:
    browser = serving(graded("ada"))
    hand_in = with_code(browser, "ada")
    page = browser.folder / "feedback" / "ada.html"
    at = {"item": "", "function": FUNCTION, "line": "2", "hand_in": hand_in}
    assert browser.decide("ada", "Why <i>text</i>: it is a number.", **at).status == 303
    note = "Why &lt;i&gt;text&lt;/i&gt;: it is a number.\n</span><!-- end of line -->"
    assert re.search(
        f'data-n="2">.*\n</span><!-- line --><span class="note staff" id="comment-{FUNCTION}-2">{re.escape(note)}',
        page.read_text(),
    )
    assert f'<a href="#comment-{FUNCTION}-2">{FUNCTION}, line 2: Why' in page.read_text()
    assert browser.rows[0][1:4] == ["ada", f"{FUNCTION}:2:{hand_in}", ""]
    live = browser.ask("feedback/ada.html").text
    assert f"Comment: {FUNCTION}, line 2" in live
    taken = {"item": f"{FUNCTION}:2:{hand_in}", "remove": "1"}
    assert browser.decide("ada", **taken).status == 303
    assert "note staff" not in page.read_text()
    browser.decide("ada", "Again.", **at, seen="3")
    with_code(browser, "ada", CODE + "# handed in again\n")
    browser.decide("ada", "of the item")
    assert "Again." not in page.read_text()
    assert "another hand-in by now" in browser.decide("ada", "late", **at).text


def test_comment_stands_at_a_line_outside_graded_functions(serving: Serving) -> None:
    browser = serving(graded("ada"))
    hand_in = with_code(browser, "ada", f"import os\n{CODE}")
    at = {"item": "", "function": "", "line": "1", "hand_in": hand_in}
    assert browser.decide("ada", "What for?", **at).status == 303
    page = (browser.folder / "feedback" / "ada.html").read_text()
    assert 'data-n="1"><span class="k">import</span> os\n</span><!-- line --><span class="note staff"' in page
    assert '<a href="#comment--1">line 1: What for?' in page
    assert "Comment: line 1" in browser.ask("feedback/ada.html").text


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"line": "9"}, f"shows no line 9 of {FUNCTION}"),
        ({"line": '2"><b>'}, "shows no line 2&#34;&gt;&lt;b&gt;"),
        ({"function": "nothing"}, "shows no line 2 of nothing"),
        ({"hand_in": "zz"}, "there is no item"),
        ({"comment": ""}, "There is nothing to save"),
        ({"points": "1"}, "1 points, but"),
    ],
)
def test_comment_at_no_line_is_refused(serving: Serving, fields: dict[str, str], sentence: str) -> None:
    browser = serving(graded("ada"))
    at = {"item": "", "comment": "why", "function": FUNCTION, "line": "2", "hand_in": with_code(browser, "ada")}
    reply = browser.decide("ada", **(at | fields))
    assert (reply.status, sentence in reply.text, browser.journal.exists()) == (400, True, False)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (f"{ITEM}: the sign is right\n  as the lecture has it\n", {ITEM: "the sign is right as the lecture has it"}),
        ("please look again: all of it", {"": "please look again: all of it"}),
        (
            f"Hello,\r\n{ITEM}:why\r\n\r\n{QUESTION} : and\u202e this",
            {"": "Hello,", ITEM: "why", QUESTION: "and\\u202e this"},
        ),
        (f"{ITEM}: " + "x" * 20_000, {ITEM: "x" * 999 + "…"}),
        ("\ufeff\n\n", {}),
    ],
)
def test_request_names_items_line_by_line(tmp_path: Path, text: str, asked: dict[str, str]) -> None:
    (tmp_path / REQUESTS).write_text(text)
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / REQUESTS).symlink_to(tmp_path / REQUESTS)  # it might lead to any file of staff
    (tmp_path / "more").mkdir()
    with zipfile.ZipFile(tmp_path / "more" / "work.zip", "w") as packed:
        packed.writestr("work/regrade.txt", text)
    (tmp_path / "damaged.zip").write_bytes(b"PK\3\4")
    places = {"ada": tmp_path, "bela": linked, "cleo": tmp_path / "more", "dora": tmp_path / "more" / "work.zip"}
    places |= {"emil": tmp_path / "damaged.zip", "finn": tmp_path / "none"}
    candidates = [Candidate(student, path, student) for student, path in places.items()]
    told = requests_of(candidates, [ITEM, QUESTION])
    assert told == ({"ada": asked, "cleo": asked, "dora": asked} if asked else {})


@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", ["link to a folder", "link to a zip", "pipe", "bomb"])
def test_request_in_no_folder_and_no_zip_of_ones_own_is_not_read(tmp_path: Path, kind: str) -> None:
    (tmp_path / "bela").mkdir()
    (tmp_path / "bela" / REQUESTS).write_text("mine")
    with zipfile.ZipFile(tmp_path / "bela.zip", "w") as packed:
        packed.writestr(REQUESTS, "mine")
    handed_in = tmp_path / "ada.zip"
    if kind == "pipe":
        os.mkfifo(handed_in)
    elif kind == "bomb":
        with zipfile.ZipFile(handed_in, "w", zipfile.ZIP_BZIP2) as packed:  # zipfile unpacks a block of these whole
            packed.writestr(REQUESTS, "a" * 2**20)
    else:
        handed_in.symlink_to("bela" if kind.endswith("folder") else "bela.zip")
    assert requests_of([Candidate("ada", handed_in, "ada")], [ITEM]) == {}


def test_request_stands_at_its_item_until_somebody_decides(serving: Serving) -> None:
    browser = serving(graded("ada"), graded("bela"), graded("cleo"))
    browser.grades.requests = {"ada": {ITEM: "<b>mine</b> is right"}, "bela": {}}
    page = browser.ask("feedback/cleo.html").text
    assert 'feedback/ada.html" data-key="u"' in page
    assert 'feedback/bela.html" data-key="k"' in page
    assert 'data-key="j"' not in page
    asked = browser.ask("feedback/ada.html").text
    assert asked.index('id="item-') < asked.index("&lt;b&gt;mine&lt;/b&gt; is right")
    assert '<span class="flag">asks for a regrade' in asked
    assert 'feedback/ada.html">1 asks for a regrade</a>' in browser.ask("").text
    browser.decide("ada", "the case of one response is not", "")
    assert "asks for a regrade" not in browser.ask("feedback/ada.html").text
    assert 'data-key="u"' not in browser.ask("feedback/cleo.html").text


@pytest.mark.parametrize(
    ("who", "item", "why", "asked"),
    [
        ("ADA@school.edu", ITEM, "the sign is right", {ITEM: "the sign is right"}),
        ("ada", ITEM, "=1+1 <b>\u202e</b>", {ITEM: "=1+1 <b>\\u202e</b>"}),
        ("1001", QUESTION, "x" * 2_000, {QUESTION: "x" * 999 + "…"}),
        ("Ada", "all of it", "please look again", {"": "all of it: please look again"}),
        ("Ada", "", "", {"": "(no reason given)"}),
    ],
)
def test_form_names_student_and_item(tmp_path: Path, who: str, item: str, why: str, asked: dict[str, str]) -> None:
    (tmp_path / "form.csv").write_text(
        f"Timestamp;Student;Item;Reason\n2027;{who};{item};{why}\n", encoding="utf-8-sig"
    )
    requests: dict[str, dict[str, str]] = {}
    reports = [replace(graded("ada"), identity="canvas:1001"), graded("bela")]
    assert add_requests(tmp_path / "form.csv", requests, reports, [ITEM, QUESTION]) == []
    assert requests == {"ada": asked}


def test_form_adds_to_what_hand_ins_ask_and_tells_of_strangers(serving: Serving, tmp_path: Path) -> None:
    form = f"student,item,reason\nada,{ITEM},and the form too\n<i>mallory</i>,{ITEM},points for all of us\n,,"
    (tmp_path / "form.csv").write_text(form, encoding="utf-8")
    browser = serving(graded("ada"), graded("bela"))
    grades = browser.grades
    grades.requests = {"ada": {ITEM: "in my folder"}}
    grades.strangers = add_requests(tmp_path / "form.csv", grades.requests, grades.reports(), [ITEM])
    assert grades.requests == {"ada": {ITEM: "in my folder and the form too"}}
    assert grades.strangers == ["line 3 is of nobody, or of several, of this class: <i>mallory</i>"]
    assert "&lt;i&gt;mallory&lt;/i&gt;" in browser.ask("").text


def test_large_change_of_several_is_asked_of_each(serving: Serving) -> None:
    browser = serving(graded("ada", WORTH), graded("bela", WORTH), graded("cleo", WORTH))
    fields = {"report": "ada/bela/cleo", "item": "", "points": "3", "comment": "x"}
    asked = re.search('name="sure" value="([^"]*)"', browser.ask("decide", fields).text)
    assert asked is not None
    assert re.findall(r"(\w+) 100 → 3 of 100", html.unescape(asked[1])) == ["ada", "bela", "cleo"]
    assert browser.ask("decide", {**fields, "sure": html.unescape(asked[1])}).status == 303
    assert [row[1] for row in browser.rows] == ["ada", "bela", "cleo"]


def test_guide_gives_the_points_of_its_lines() -> None:
    def rubric(guide: str) -> list[tuple[float, str]]:
        return Question("q", "", guide, 3.0).rubric

    assert rubric("- 2 points: both\n  of them.\n- 1 point for one of: a, b\n\nNo more.") == [
        (2, "both of them."),
        (1, "for one of: a, b"),
    ]
    assert rubric("- 2 points: both") == []  # not the whole question
    assert rubric("3 points for anything") == []


def test_others_on_a_page_are_named_and_their_students_left_to_them(serving: Serving) -> None:
    browser = serving(graded("ada"), graded("cleo"))
    browser.grades.requests = {"ada": {ITEM: "why"}}
    bela = LiveFolder(browser.folder, ASSIGNMENT, "bela\u202e")

    def told(query: str) -> str:
        return str(json.loads(browser.ask(f"version{query}").text)["others"])

    assert told("?student=ada") == ""
    assert bela.others() == {"anna": "student ada"}
    assert browser.grades.around("cleo")["open"] == "ada"
    bela.look_at("student ada")
    (browser.folder / ".live" / "damaged.json").write_text('{"at": "student ada", "when": "x", "who": []}')
    assert told("?student=ada") == "Open here, too: bela\\u202e."
    assert told("") == "Marking now: bela\\u202e (student ada)."
    assert told(f"?question={QUESTION}") == ""
    assert browser.grades.around("cleo")["open"] == ""


# Who is not let in


def test_strangers_are_not_let_in(serving: Serving) -> None:
    browser = serving(graded("ada"))
    port = browser.server.port
    for path in ("/", "/wrong/feedback/ada.html", "/%00/", "//", "/?token=x"):
        reply = browser.ask("", whole=path)
        assert (reply.status, "ada" in reply.text, browser.server.token in reply.text) == (404, False, False), path
    for host in (f"evil.example:{port}", "127.0.0.1", "", None, f"[::1]:{port}"):
        reply = browser.ask("feedback/ada.html", Host=host)
        assert (reply.status in (400, 421), "form" in reply.text) == (True, False), host
    fields = {"report": "ada", "item": ITEM, "points": "1", "comment": "x"}
    for origin in ("http://evil.example", None, f"https://127.0.0.1:{port}"):
        assert browser.ask("decide", fields, Origin=origin).status == 403, origin
    assert browser.ask("decide", fields, Sec_Fetch_Site="cross-site").status == 403
    assert not browser.journal.exists()


OUTSIDE = (
    "secret.txt", "reports/ada.json", JOURNAL, "feedback", "../secret.html", "feedback/..%2f..%2fsecret.html",
    "feedback/%252e%252e%252fsecret.html", "feedback/ada.html%00.html", "feedback/%ff.html",
    "feedback/link.html", "feedback/folder.html", "linked/ada.html", "version?student=../../secret",
    "questions/..", "questions/%2e%2e%2fdecide",
)  # fmt: skip


def test_no_path_leads_out_of_the_folder(serving: Serving) -> None:
    browser = serving(graded("ada"), graded("link"))
    (browser.folder / "grades.csv").write_text("student\nada\n")
    assert browser.ask("grades.csv").text == "student\nada\n"
    (browser.folder / "secret.txt").write_text("the secret")
    secret = browser.folder.parent / "secret.html"
    secret.write_text("<body>the secret</body>")
    link = browser.folder / "feedback" / "link.html"
    link.unlink()
    link.symlink_to(secret)
    (browser.folder / "feedback" / "folder.html").mkdir()
    (browser.folder / "linked").symlink_to(browser.folder / "feedback")
    for path in OUTSIDE:
        reply = browser.ask(path)
        assert (reply.status in (400, 404), "the secret" in reply.text) == (True, False), path


def test_body_that_is_no_small_form_is_refused(serving: Serving) -> None:
    browser = serving(graded("ada"))
    assert browser.ask("decide", b"", Content_Length="9" * 11).status == 400
    assert browser.ask("decide", b"", Content_Length="-1").status == 400
    assert browser.ask("decide", b"", Content_Length=f"{MAX_BODY + 1}").status == 400  # before a byte is read
    assert browser.ask("decide", b"{}", Content_Type="application/json").status == 415
    multipart = b'--x\r\nContent-Disposition: form-data; name="report"\r\n\r\nada\r\n--x--\r\n'
    assert browser.ask("decide", multipart, Content_Type="multipart/form-data; boundary=x").status == 415
    assert browser.ask("feedback/ada.html", b"report=ada").status == 405
    assert browser.ask("decide", b"report=%ff").status == 400
    assert not browser.journal.exists()


def test_server_listens_on_this_machine_with_its_own_token(serving: Serving) -> None:
    browser = serving(graded("ada"))
    other = LiveServer(browser.folder, {"": browser.grades})
    assert other._socket.getsockname()[0] == "127.0.0.1"
    other._socket.close()
    assert other.token != browser.server.token
    assert len(other.token) >= 32
