"""The live view: the pages of a folder of grades over http, decisions into the journal, and nobody else let in."""

from __future__ import annotations

import csv
import errno
import html
import http.client
import json
import os
import re
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from lengths import in_short
from places import KIT
from sample_reports import NASTY_NAMES, item, report, write_report

from autograder.course.serving.answers import Answer
from autograder.course.serving.desk import Desk
from autograder.course.serving.gate import MAX_BODY
from autograder.course.serving.server import LiveServer
from autograder.course.serving.site import Site
from autograder.gradebook.decisions import JOURNAL, Decisions, line_of
from autograder.gradebook.grades_folder import read_grades
from autograder.grading.assignments import find_assignment
from autograder.pages.student_page import feedback_page
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import alone, file_stem, write_atomically
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import number

ASSIGNMENT = find_assignment(KIT, "policy_gradient")
ITEM, WORTH = ASSIGNMENT.items[0].id, ASSIGNMENT.items[0].points
LARGEST = max(ASSIGNMENT.items, key=lambda item: item.points).id
QUESTION = "question-spread"


def graded(student: str, points: float = 1.0) -> Report:
    """A report on every item of the assignment; of the first, these points."""
    rest = [item(one.id, one.points, one.points) for one in ASSIGNMENT.items[1:]]
    first = item(ITEM, points, WORTH, "passed" if points == WORTH else "failed")
    return report(student, first, *rest)


def put(folder: Path, *reports: Report) -> Path:
    for one in reports:
        write_report(one, folder / "reports" / f"{file_stem(one.student)}.json")
        write_atomically(folder / "feedback" / f"{file_stem(one.student)}.html", feedback_page(one))
    return folder


@dataclass
class Answered:
    status: int
    text: str
    headers: dict[str, str]


@dataclass
class Browser:
    """Asks a server as a browser does: its own page's origin where it writes, and no redirect followed."""

    server: LiveServer
    folder: Path

    @property
    def port(self) -> int:
        return self.server.gate.port

    def ask(
        self, path: str, fields: dict[str, str] | bytes | None = None, *, whole: str = "", **headers: str | None
    ) -> Answered:
        """The answer to GET, or to POST where there are fields; `whole` is a path that is not below the token."""
        body = urllib.parse.urlencode(fields).encode() if isinstance(fields, dict) else fields
        own: dict[str, str | None] = {"Host": f"127.0.0.1:{self.port}"}
        if body is not None:
            own |= {"Origin": f"http://127.0.0.1:{self.port}", "Content-Type": "application/x-www-form-urlencoded"}
            own |= {"Content-Length": str(len(body))}
        own |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            method = "GET" if body is None else "POST"
            connection.putrequest(method, whole or f"/{self.server.gate.token}/{path}", skip_host=True)
            for name, value in own.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(body)
            found = connection.getresponse()
            return Answered(found.status, found.read().decode(), dict(found.getheaders()))
        finally:
            connection.close()

    def decide(
        self, student: str, comment: str = "as agreed", points: str = "", item: str = ITEM, **more: str
    ) -> Answered:
        """What the form at an item sends, by somebody who has seen what was decided before."""
        seen = self.desk.history().get((file_stem(student), item), ())
        fields = {"report": file_stem(student), "item": item, "points": points, "comment": comment}
        fields |= {"seen": line_of(seen[-1]) if seen else "", **more}
        answered = self.ask("decide", fields)
        if "sure" not in more and (asked := re.search('name="sure" value="([^"]*)"', answered.text)):
            return self.ask("decide", {**fields, "sure": html.unescape(asked[1])})
        return answered

    @property
    def rows(self) -> list[list[str]]:
        """The journal without its times."""
        with (self.folder / JOURNAL).open(encoding="utf-8", newline="") as stream:
            return [row[1:] for row in csv.reader(stream)]

    @property
    def desk(self) -> Desk:
        return self.server.answering.__self__.desks[""]  # type: ignore[attr-defined, no-any-return]


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Callable[..., Browser]]:
    """A function that serves these reports."""
    running: list[tuple[LiveServer, threading.Thread]] = []

    def begin(*reports: Report, answers: dict[str, dict[str, Answer]] | None = None) -> Browser:
        folder = put(tmp_path / "grades", *reports)
        server = LiveServer(Site(folder, {"": Desk(folder, ASSIGNMENT, "anna", answers or {})}).answer)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        running.append((server, thread))
        return Browser(server, folder)

    yield begin
    for server, thread in running:
        server.shutdown()
        thread.join()
        server.server_close()


# The same pages, live


def test_a_students_page_is_the_one_on_disk_with_a_form_and_the_file_stays_as_it_was(
    serving: Callable[..., Browser],
) -> None:
    browser = serving(graded("o'brien, sean"))
    path = browser.folder / "feedback" / "o'brien, sean.html"
    before = path.read_bytes()
    found = browser.ask(f"feedback/{urllib.parse.quote(path.name)}")
    assert found.status == 200
    without = re.sub(r'<details class="override.*?</details>', "", found.text, flags=re.DOTALL)
    assert re.sub(r"\s+", "", before.decode().partition("<main>")[2].partition("</main>")[0]) in re.sub(
        r"\s+", "", without
    )
    assert path.read_bytes() == before
    assert b"overrides" not in before


def test_the_page_may_run_the_scripts_named_by_hash_and_ask_this_server_alone(
    serving: Callable[..., Browser],
) -> None:
    browser = serving(graded("ada"))
    found = browser.ask("feedback/ada.html")
    policy = {rule.split()[0]: rule for rule in found.headers["Content-Security-Policy"].split("; ")}
    assert "'unsafe-inline'" not in policy["script-src"]
    assert "'sha256-" in policy["script-src"]
    assert policy["connect-src"] == "connect-src 'self'"
    assert policy["form-action"] == "form-action 'self'"
    assert policy["frame-ancestors"] == "frame-ancestors 'none'"
    assert found.headers["Referrer-Policy"] == "same-origin"
    assert found.headers["X-Content-Type-Options"] == "nosniff"
    assert found.headers["Cache-Control"] == "no-store"
    assert browser.server.gate.token not in found.headers.get("Set-Cookie", "")


def test_a_gradebook_is_served_and_nothing_else_of_the_folder(serving: Callable[..., Browser]) -> None:
    browser = serving(graded("ada"))
    (browser.folder / "grades.csv").write_text("student\nada\n")
    (browser.folder / "secret.txt").write_text("x")
    assert browser.ask("grades.csv").text == "student\nada\n"
    assert {browser.ask(path).status for path in ("secret.txt", "reports/ada.json", JOURNAL, "feedback")} == {404}


# Deciding


def test_points_and_a_reason_become_a_row_and_a_final_grade(serving: Callable[..., Browser]) -> None:
    browser = serving(graded("ada"), graded("bela"))
    done = browser.decide("ada", "half: the copy is right", "2,5")
    place = f"/{browser.server.gate.token}/feedback/ada.html?saved=decide-{ITEM}#decide-{ITEM}"
    assert (done.status, done.headers["Location"]) == (303, place)
    assert browser.rows == [
        ["who", "student", "item", "points", "comment"],
        ["anna", "ada", ITEM, "2,5", "half: the copy is right"],
    ]
    stored = json.loads((browser.folder / "reports" / "ada.json").read_bytes())
    assert stored["final"] == stored["points"] + 1.5
    page = browser.ask(f"feedback/ada.html?saved=decide-{ITEM}").text
    assert "1 → 2.5: half: the copy is right" in page
    assert "Saved." in page


def test_the_journal_is_only_added_to_and_a_page_shows_what_was_there(serving: Callable[..., Browser]) -> None:
    browser = serving(graded("ada"), graded("bela"))
    typed = (
        f'\ufeffcomment;student;item;points;who;when\r\n"2 ""marks""";bela;;90;by hand;\r\nfirst;ada;{ITEM};1;me;\r\n'
    )
    (browser.folder / JOURNAL).write_bytes(typed.encode())
    assert browser.decide("ada", "second", "2").status == 303
    assert browser.decide("ada", remove="1").status == 303
    kept = (browser.folder / JOURNAL).read_bytes().decode()
    assert kept.startswith(typed)
    assert [line.rpartition(";")[0] for line in kept.removeprefix(typed).splitlines()] == [
        f"second;ada;{ITEM};2;anna",
        f";ada;{ITEM};;anna",
    ]
    assert [row.student for row in Decisions(browser.folder, ASSIGNMENT).merged()[1]] == ["bela"]
    own = browser.ask("feedback/ada.html").text.partition(f'id="decide-{ITEM}"')[2].partition("</ol>")[0]
    assert re.findall(r"<strong>(.*?)</strong>", own) == ["1 points", "2 points", "taken back"]


def test_a_decision_that_somebody_made_meanwhile_is_shown_and_not_replaced(serving: Callable[..., Browser]) -> None:
    browser = serving(graded("ada"))
    browser.decide("ada", "by bela", "2")
    found = browser.decide("ada", "by cleo", "1.5", seen="")
    assert (found.status, len(browser.rows)) == (400, 2)
    assert f"ada, {ITEM} has 2 points by anna on 20" in found.text
    assert "by cleo</textarea>" in found.text
    assert browser.decide("ada", "by bela", "2", seen="").status == 303  # the same form, sent twice
    assert len(browser.rows) == 2


@pytest.mark.parametrize(
    ("item", "points", "asked"),
    [
        ("", "3", "the whole grade 98 → 3 of 100"),
        ("", "88.1", ""),
        ("", "", ""),
        (ITEM, "0", ""),
        (ITEM, "3", ""),
        (LARGEST, "1", ""),
        (LARGEST, "0", f"{LARGEST} 6 → 0 of 6, the whole grade 98 → 92 of 100"),
        (QUESTION, "5", "Every grade is then out of 1"),
    ],
)
def test_a_large_change_is_asked_once_more_from_what_to_what(
    serving: Callable[..., Browser], item: str, points: str, asked: str
) -> None:
    browser = serving(graded("ada"))
    found = browser.decide("ada", "typed", points, item, sure="")
    assert (found.status, asked in found.text) == (200 if asked else 303, True)
    assert (browser.folder / JOURNAL).exists() == (not asked)
    if asked:
        assert "typed</textarea>" in found.text
        assert browser.decide("ada", "typed", points, item).status == 303
        assert "Save again if you mean it" in browser.decide("ada", item=item, remove="1", sure="").text
        assert browser.decide("ada", item=item, remove="1").status == 303
        assert Decisions(browser.folder, ASSIGNMENT).merged()[1] == []


def test_a_full_disk_leaves_the_journal_as_it_was(
    serving: Callable[..., Browser], monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = serving(graded("ada"))
    browser.decide("ada", "first", "2")
    before = (browser.folder / JOURNAL).read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    found = browser.decide("ada", "second", "1")
    assert (found.status, (browser.folder / JOURNAL).read_bytes()) == (400, before)
    assert "decisions.csv cannot be written: No space left on device" in found.text
    assert not list(browser.folder.glob(".writing-*"))


def test_an_answer_in_words_is_marked_beside_its_guide_and_counts_on_top(serving: Callable[..., Browser]) -> None:
    words = Answer("Both are <b>standard</b> deviations.", ("data:image/png;base64,AAAA",), "00")
    browser = serving(graded("ada", WORTH), graded("bela"), answers={"ada": {QUESTION: words}})
    page = browser.ask(f"questions/{QUESTION}").text
    assert "Both are &lt;b&gt;standard&lt;/b&gt; deviations." in page
    assert 'src="data:image/png;base64,AAAA"' in page
    assert "5.323 and 1.155 are standard deviations" in page
    assert "0 of 2 marked" in page
    assert f"<title>Marking {QUESTION}: {ASSIGNMENT.title}</title>" in page
    assert f'{ASSIGNMENT.title} <code class="module">{ASSIGNMENT.name}</code>: a question in words' in " ".join(
        page.split()
    )
    done = browser.decide("ada", "no word of the gradient", "3", QUESTION, back="question")
    assert done.headers["Location"].endswith(f"/questions/{QUESTION}#answer-ada")
    assert "1 of 2 marked" in browser.ask(f"questions/{QUESTION}").text
    stored = json.loads((browser.folder / "reports" / "ada.json").read_bytes())
    assert stored["final"] == stored["points"] + 3
    assert f"{QUESTION} 3 of 5 on top: no word of the gradient" in browser.ask("feedback/ada.html").text
    most = f"of {number(stored['max_points'] + 5)} points, the final grade"
    assert most in browser.ask("feedback/ada.html").text
    assert stored["final_max"] == stored["max_points"] + 5


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"points": "7000"}, "7000 points, but"),
        ({"points": "=1"}, "is no number of points"),
        ({"comment": " "}, "a change without a reason"),
        ({"comment": "x" * 2001}, "longer than 2,000 characters"),
        ({"item": "nothing"}, "there is no item"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence_and_nothing_is_written(
    serving: Callable[..., Browser], fields: dict[str, str], sentence: str
) -> None:
    browser = serving(graded("ada"))
    found = browser.decide("ada", **{"comment": "typed <i>", **fields})
    assert found.status == 400
    assert sentence in found.text
    assert 'role="alert"' in found.text
    assert ("typed &lt;i&gt;" in found.text) == ({"comment", "item"}.isdisjoint(fields))  # it stays in the form
    assert not (browser.folder / JOURNAL).exists()


@pytest.mark.parametrize("comment", ["=cmd|' /C calc'!A0", "+1", "@SUM(A1)", "'=1", "-2"])
def test_no_comment_is_a_formula_in_the_file_and_the_student_reads_what_was_typed(
    serving: Callable[..., Browser], comment: str
) -> None:
    browser = serving(graded("ada"))
    assert browser.decide("ada", comment).status == 303
    assert browser.rows[1][4] == f"'{comment}"
    (row,) = Decisions(browser.folder, ASSIGNMENT).merged()[1]
    assert row.comment == comment


def test_a_comment_is_one_line_whatever_was_typed(serving: Callable[..., Browser]) -> None:
    browser = serving(graded("ada"))
    browser.decide("ada", 'one\r\nada,,100,"hacked"\nthree\x00\u202e,"')
    assert browser.rows[1:] == [["anna", "ada", ITEM, "", 'one ada,,100,"hacked" three\\x00\\u202e,"']]
    assert len((browser.folder / JOURNAL).read_text().splitlines()) == 2


ALIKE = (
    "eve",
    "eve\u200b",
    "e\u0301ve",
    "\u00e9ve",
    "еve",
    "eve\\u200b",
    "eve ",
    "\u202eeve",
    "a(b",
    "a%28b",
    "0\u0000",
)
SCRIPTS = ("می\u200cخواهم رضا", "สมชาย ใจดี", "İpek", "हिन्दी", "李小龍", "김철수", "Ελένη", "דנה", "Հայկ", "ქეთი", "አበበ")


@pytest.mark.parametrize(
    ("page", "names"), in_short([("student", ALIKE), ("question", SCRIPTS), ("student", (*SCRIPTS, *NASTY_NAMES))], 2)
)
def test_a_form_reaches_its_own_student_however_names_look(
    serving: Callable[..., Browser], page: str, names: Sequence[str]
) -> None:
    browser = serving(*map(graded, names))
    item = QUESTION if page == "question" else ITEM
    for place, name in enumerate(names):
        at = "questions/" + QUESTION if page == "question" else f"feedback/{urllib.parse.quote(file_stem(name))}.html"
        keys = re.findall('name="report" value="(.*?)"', browser.ask(at).text)
        (key,) = {html.unescape(one) for one in keys} & {file_stem(name)}
        fields = {"report": key, "item": item, "points": "1.5", "comment": f"of {place}"}
        reply = browser.ask("decide", {**fields, "back": page})
        if asked := re.search('name="sure" value="(.*?)"', reply.text):  # the first marks of all for a question
            reply = browser.ask("decide", {**fields, "back": page, "sure": html.unescape(asked[1])})
        assert reply.status == 303
    decided = Decisions(browser.folder, ASSIGNMENT).merged()[1]
    assert {one.student: one.comment for one in decided} == {
        file_stem(name): f"of {place}" for place, name in enumerate(names)
    }
    reports = {one.student: one for one in read_grades(browser.folder)}
    for place, name in enumerate(names):
        assert f"of {place}" in reports[name].final.reasons  # type: ignore[attr-defined]


def test_a_row_of_nobody_is_refused(serving: Callable[..., Browser]) -> None:
    browser = serving(graded("ada"))
    assert browser.ask("decide", {"report": "../reports/ada", "item": ITEM, "comment": "x"}).status == 404
    assert browser.decide("x" * 300).status == 404
    assert browser.decide("mallory").status == 404
    assert not (browser.folder / JOURNAL).exists()


def test_decisions_that_come_at_once_are_all_kept(serving: Callable[..., Browser]) -> None:
    students = [f"student-{place}" for place in range(6)]
    browser = serving(*map(graded, students))
    threads = [threading.Thread(target=browser.decide, args=(student, f"for {student}")) for student in students]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(row[4] for row in browser.rows[1:]) == sorted(f"for {student}" for student in students)


def test_what_is_decided_while_a_run_is_going_on_is_kept_and_counts_at_its_end(
    serving: Callable[..., Browser],
) -> None:
    browser = serving(graded("ada"))
    with alone(browser.folder):
        assert browser.decide("ada", "meanwhile", "2").status == 303
        assert "final" not in json.loads((browser.folder / "reports" / "ada.json").read_bytes())
    browser.ask("version")  # as the open page does every other second
    assert json.loads((browser.folder / "reports" / "ada.json").read_bytes())["final"] > 0


# Who is not let in


def untouched(browser: Browser) -> bool:
    return not (browser.folder / JOURNAL).exists()


@pytest.mark.parametrize(
    "path", ["/", "/wrong/", "/wrong/feedback/ada.html", "/%00/", "//", "/index.html", "/?token=x"]
)
def test_without_the_token_there_is_nothing(serving: Callable[..., Browser], path: str) -> None:
    browser = serving(graded("ada"))
    found = browser.ask("", whole=path)
    assert found.status == 404
    assert "ada" not in found.text
    assert browser.server.gate.token not in found.text


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", None, "[::1]:{port}"]
)
def test_another_name_for_this_machine_is_refused(serving: Callable[..., Browser], host: str | None) -> None:
    browser = serving(graded("ada"))
    found = browser.ask("feedback/ada.html", Host=host and host.format(port=browser.port))
    assert found.status == 421
    assert "form" not in found.text


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": None},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "none"},
    ],
)
def test_no_page_of_another_origin_writes(serving: Callable[..., Browser], headers: dict[str, str | None]) -> None:
    browser = serving(graded("ada"))
    filled = {name: value and value.format(port=browser.port) for name, value in headers.items()}
    found = browser.ask("decide", {"report": "ada", "item": ITEM, "points": "1", "comment": "x"}, **filled)
    assert found.status == 403
    assert untouched(browser)


@pytest.mark.parametrize(
    "path",
    [
        "../secret.html",
        "feedback/../../secret.html",
        "feedback/..%2f..%2fsecret.html",
        "feedback/%2e%2e/%2e%2e/secret.html",
        "feedback/..%5c..%5csecret.html",
        "feedback/%252e%252e%252fsecret.html",
        "feedback/ada.html%00.html",
        "feedback//ada.html",
        "feedback/%ff.html",
        "feedback/link.html",
        "feedback/folder.html",
        "linked/ada.html",
        "version?student=../../secret",
        "questions/..",
        "questions/%2e%2e%2fdecide",
    ],
)
def test_no_path_leads_out_of_the_folder(serving: Callable[..., Browser], path: str) -> None:
    browser = serving(graded("ada"), graded("link"))
    secret = browser.folder.parent / "secret.html"
    secret.write_text("<body>the secret</body>")
    link = browser.folder / "feedback" / "link.html"
    link.unlink()
    link.symlink_to(secret)
    (browser.folder / "feedback" / "folder.html").mkdir()
    (browser.folder / "linked").symlink_to(browser.folder / "feedback")
    found = browser.ask(path)
    assert found.status == 404
    assert "the secret" not in found.text


def test_a_folder_of_pages_that_is_a_link_is_not_followed(serving: Callable[..., Browser]) -> None:
    browser = serving(graded("ada"))
    moved = (browser.folder / "feedback").rename(browser.folder.parent / "elsewhere")
    (browser.folder / "feedback").symlink_to(moved)
    assert browser.ask("feedback/ada.html").status == 404


def test_a_body_that_is_too_large_or_of_unknown_length_is_refused(serving: Callable[..., Browser]) -> None:
    browser = serving(graded("ada"))
    assert browser.ask("decide", b"comment=" + b"x" * MAX_BODY).status == 413
    assert browser.ask("decide", b"", Content_Length="9" * 11).status == 413
    assert browser.ask("decide", b"", Content_Length=None).status == 411
    assert browser.ask("decide", b"", Content_Length="-1").status == 411
    assert browser.ask("decide", b"report=ada", Transfer_Encoding="chunked").status == 411
    assert browser.ask("decide", b"{}", Content_Type="application/json").status == 415
    assert browser.ask("decide", b"&".join([b"a=b"] * 30)).status == 400
    assert untouched(browser)


def test_nothing_is_written_but_where_forms_go(serving: Callable[..., Browser]) -> None:
    browser = serving(graded("ada"))
    found = browser.ask("feedback/ada.html", {"report": "ada", "comment": "x"})
    assert (found.status, untouched(browser)) == (405, True)
    connection = http.client.HTTPConnection("127.0.0.1", browser.port, timeout=60)
    connection.request("DELETE", f"/{browser.server.gate.token}/feedback/ada.html")
    assert connection.getresponse().status == 501
    connection.close()


def test_it_listens_on_this_machine_alone_and_every_start_has_another_token(serving: Callable[..., Browser]) -> None:
    one = serving(graded("ada"))
    assert one.server.server_address[0] == "127.0.0.1"
    with LiveServer(one.server.answering) as other:
        assert other.gate.token != one.server.gate.token
        assert len(other.gate.token) >= 32


def test_the_lock_of_a_folder_is_one_runs(tmp_path: Path) -> None:
    with alone(tmp_path), pytest.raises(UsageError, match="Another run is writing"), alone(tmp_path):
        pass
