"""Serve a folder of grades to a browser of this machine: the pages that lie on disk, live, with forms to decide in.

    index.html  grades.csv  feedback/<student>.html     as they lie on disk
    questions/<question>                                the answers in words, beside the guide
    version                                             what a page asks: has it changed, who else has it open
    decide                                              where forms go

Of a course, its own pages, and the same below the folder of each assignment. Nothing else of the folder can be asked
for. To add a screen, write a function and its address into `SCREENS`.

**Who may ask**: whoever holds the token in the address, from this machine, by a page of this server's own. A page
elsewhere can make a browser send requests here, under a name of its own that leads to 127.0.0.1. So a request must name
this server as its host, begin its path with the token, and, where it writes, come from a page of this server. The token
is a part of the path and no cookie: browsers send a cookie of 127.0.0.1 to every port there.
"""

from __future__ import annotations

import asyncio
import hmac
import html
import re
import secrets
import sys
import threading
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, HTTPError, RequestHandler

from autograder.course.live_decisions import LargeChange, LiveFolder
from autograder.course.overview import BY_STUDENT
from autograder.gradebook.grades_folder import span_of_line
from autograder.pages.class_page import Background, ClassPage
from autograder.pages.html import TEMPLATES, page_template, render_page, scripts_and_policy
from autograder.vocabulary.errors import KitError, UsageError
from autograder.vocabulary.files import open_regular
from autograder.vocabulary.text import visible

MAX_BODY = 64 * 1024  # bytes of what a form sends
SECONDS_TO_SEND = 30
SCRIPT, STYLE = ((TEMPLATES / name).read_text(encoding="utf-8") for name in ("live.js", "live.css"))
# A live page may ask this server, and send forms to it.
LIVE = scripts_and_policy("live.js")[1].replace("form-action 'none'", "form-action 'self'")
LIVE += "; connect-src 'self'; frame-ancestors 'none'"
HEADERS = {
    "Server": "autograder",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # a form has to say where it comes from; no other place learns the token
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": LIVE,
}
NO_PAGE = "There is no such page."
META = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
AT_LINE = "at-line"  # the anchor of the form for comments at lines
CODE = re.compile(r'<details class="listing" id="code-(\w*)">')  # a function, the number of a cell, or nothing
NO_REFERRER = '<meta name="referrer" content="no-referrer">'
# A link that skips to the main matter stays the first thing there is.
BODY = re.compile(r'<body[^>]*>\n?(?:<a class="skip"[^>]*>[^<]*</a>\n?)?')


class LiveServer:
    """Listens on a port of 127.0.0.1; `address` is where a browser begins."""

    def __init__(self, course: Path, folders: Mapping[str, LiveFolder], port: int = 0) -> None:
        """Bind the port, 0 for any that is free; raises OSError where it is taken.

        folders   by the names that they have in `course`, or the only one by ""
        """
        (self._socket,) = bind_sockets(port, "127.0.0.1")
        self.port, self.token, self.course = self._socket.getsockname()[1], secrets.token_urlsafe(24), course
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._serving, self._ended = threading.Event(), asyncio.Event()
        addresses: list[Any] = []
        if "" not in folders:
            for address in (r"(?:index\.html)?", rf"{BY_STUDENT}/([^/]+)\.html"):
                addresses.append((f"/[^/]*/{address}", Page, {"server": self, "screen": show_course}))
        for name, folder in folders.items():
            below = f"{_quoted(name)}/" if name else ""
            for address in (*SCREENS, *FORMS):
                given: dict[str, Any] = {"server": self, "grades": folder, "root": f"/{self.token}/{below}"}
                given |= {"screen": SCREENS.get(address), "form": FORMS.get(address)}
                addresses.append((f"/[^/]*/{re.escape(below)}{address}", Page, given))
        self._application = Application(
            addresses,
            default_handler_class=Page,
            default_handler_args={"server": self},
            log_function=lambda handler: None,  # an address holds the token
        )

    @property
    def address(self) -> str:
        """Where a browser begins."""
        return f"http://127.0.0.1:{self.port}/{self.token}/"

    def serve_forever(self) -> None:
        """Answer requests, one after another, until Ctrl-C or `shutdown`."""
        with self._runner:
            self._runner.run(self._serve())

    def shutdown(self) -> None:
        """End `serve_forever`, which runs in another thread."""
        self._serving.wait()  # or `get_loop` would make a loop of its own, which nobody runs
        self._runner.get_loop().call_soon_threadsafe(self._ended.set)

    async def _serve(self) -> None:
        limits = {"body_timeout": SECONDS_TO_SEND, "idle_connection_timeout": SECONDS_TO_SEND}
        server = HTTPServer(self._application, max_body_size=MAX_BODY, **limits)
        server.add_socket(self._socket)
        self._serving.set()
        try:
            await self._ended.wait()
        finally:
            server.stop()
            await server.close_all_connections()


@dataclass(frozen=True)
class Notice:
    """What to tell at a form: what was done, what was wrong and with what, or what is asked first.

    at       the anchor of the form
    fields   what was typed into it
    """

    text: str = ""
    at: str = ""
    wrong: bool = False
    asks: bool = False
    fields: Mapping[str, str] | None = None


class Page(RequestHandler):
    """One request: who is let in, the headers, and how a page becomes live."""

    grades: Any  # a LiveFolder, but on the pages of a course

    def initialize(self, server: LiveServer, root: str = "", **given: Any) -> None:
        """Take the `grades` whose page this is, the address below which its pages lie, its `screen` or its `form`."""
        self.server, self.root, self._given = server, root, given
        self.grades = given.get("grades")

    def get(self, *parts: str) -> None:
        """Show the screen."""
        self._answer("screen", parts)

    head = get

    def post(self, *parts: str) -> None:
        """Take the form."""
        self._answer("form", parts)

    def _answer(self, kind: str, parts: Sequence[str]) -> None:
        if self._given.get(kind) is None:
            raise HTTPError(405, "Nothing can be written there.") if self._given else HTTPError(404, NO_PAGE)
        self._given[kind](self, *parts)

    def prepare(self) -> None:
        """Refuse a request that is not for this server's own pages, or not by them."""
        headers, port = self.request.headers, self.server.port
        hosts = headers.get_list("Host")
        if hosts not in ([f"127.0.0.1:{port}"], [f"localhost:{port}"]):
            raise HTTPError(421, "This server answers to its own address alone.")
        token = self.request.path.split("/")[1] if self.request.path.startswith("/") else ""
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            raise HTTPError(404, "There is nothing here: take the address that `autograder serve` printed.")
        if self.request.method not in ("GET", "HEAD"):
            is_ours = headers.get_list("Origin") == [f"http://{hosts[0]}"]
            if not is_ours or headers.get_list("Sec-Fetch-Site") not in ([], ["same-origin"]):
                raise HTTPError(403, "Only a page of this server may write here.")
            if headers.get("Content-Type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
                raise HTTPError(415, "This is no form.")

    def set_default_headers(self) -> None:
        """Give every reply the headers that keep other pages out."""
        for name, value in HEADERS.items():
            self.set_header(name, value)

    def compute_etag(self) -> None:
        """Give no tag: the browser keeps nothing."""

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Send a sentence to whoever is not answered."""
        error = kwargs["exc_info"][1] if "exc_info" in kwargs else None
        sentence = error.log_message if isinstance(error, HTTPError) else None
        if isinstance(error, KitError):  # reports or decisions that cannot be read
            self.set_status(503)
            sentence = visible(str(error))
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"{sentence or self._reason}\n")

    def log_exception(self, typ: Any, value: BaseException | None, tb: Any) -> None:
        """Say in one line, without the address, what could not be answered through a fault of ours."""
        if not isinstance(value, HTTPError | KitError):
            print(f"autograder: a request could not be answered ({type(value).__name__}).", file=sys.stderr)

    def show(self, page: str, bar: Markup, panel: str = "", status: int = 200) -> None:
        """Send the page with `bar` at its top and `panel`, which is markup, where its matter begins.

        The page as it lies on disk stays as it is. What is sent has one script and one style more; its policy lets it
        run that script, and its own.
        """
        own = " ".join(re.findall("'sha256-[^']+'", html.unescape("".join(META.findall(page)[:1]))))
        self.set_header("Content-Security-Policy", LIVE.replace("script-src ", f"script-src {own} "))
        page = META.sub("", page, 1)
        page = page.replace(NO_REFERRER, NO_REFERRER.replace("no-referrer", "same-origin"), 1)
        page = page.replace("</head>", f"<style>{STYLE}</style>\n</head>", 1)
        page = BODY.sub(lambda body: f"{body[0]}{bar}", page, 1)
        page = page.replace("<main>\n", f"<main>\n{panel}", 1)
        before, end, after = page.rpartition("</body>")
        self.set_status(status)
        self.finish(f"{before}<script>{SCRIPT}</script>\n{end}{after}")

    def bar(self, version: str = "", status: str = "", *, stem: str = "", question: str = "") -> Markup:
        """Render what stands above a page; one with a version asks whether there is another."""
        place = f"?student={_quoted(stem)}" if stem else f"?question={_quoted(question)}" if question else ""
        known: dict[str, Any] = {}
        if self.root:
            waiting, questions = self.grades.waiting(), self.grades.questions
            of_questions = {question.id: len(waiting.pop(question.id, ())) for question in questions}
            known = {"title": self.grades.assignment.title, "questions": questions, "unmarked": of_questions}
            known["asking"] = [f"{_quoted(other)}.html" for other in sorted(set[str]().union(*waiting.values()))]
            around = self.grades.around(stem) if stem else {}
            known["around"] = {way: f"{_quoted(other)}.html" for way, other in around.items() if other}
        poll = f"{self.root}version{place}"
        return _rendered("live.html", root=self.root, version=version, poll=poll, status=status, **known)


# Screens


def show_course(page: Page, stem: str = "") -> None:
    """Show the page of a course, or a student's page over it, as it lies on disk."""
    name = f"{BY_STUDENT}/{_stem(stem)}.html" if stem else "index.html"
    page.show(_file(page.server.course / name).decode(), page.bar())


def show_class(page: Page) -> None:
    """Show the page of the class: as it lies on disk, or of the reports so far while a run is going on."""
    grades = page.grades
    version, grading = grades.version(), grades.is_grading()
    if not grading and (grades.folder / "index.html").is_file():
        text = _file(grades.folder / "index.html").decode()
    else:
        class_page = ClassPage(Background(title=grades.assignment.title))
        for report in grades.reports():
            class_page.add(report)
        text = "".join(class_page.html({"assignment": grades.assignment.name}))
    bar = page.bar(version, "Grading goes on: this is what there is so far." if grading else "")
    page.show(text, bar, _rendered("strangers.html", strangers=grades.strangers) if grades.strangers else "")


def send_gradebook(page: Page) -> None:
    """Send the gradebook, to be saved."""
    page.set_header("Content-Type", "text/csv; charset=utf-8")
    page.finish(_file(page.grades.folder / "grades.csv"))


def tell_version(page: Page) -> None:
    """Say whether an open page has changed, who else has it open, and whether a run is going on; it asks all along."""
    stem, question = _stem(page.get_query_argument("student", "")), page.get_query_argument("question", "")
    place = f"student {stem}" if stem else f"question {question}" if question else "the class"
    page.grades.look_at(place)
    others = page.grades.others()
    here = ", ".join(name for name, at in others.items() if at == place)
    sentence = f"Open here, too: {here}." if here else ""
    if place == "the class" and others:
        sentence = f"Marking now: {', '.join(f'{name} ({visible(at, 80)})' for name, at in others.items())}."
    # On the page of a question all marks stand together: it changes with each of them.
    version = page.grades.version(stem or question)
    page.finish({"version": version, "grading": page.grades.is_grading(), "others": sentence})


def show_student(page: Page, stem: str, notice: Notice | None = None) -> None:
    """Show a student's page with a form at each item; those on the whole grade, questions and lines stand above.

    The query says at which form something was saved.
    """
    notice, grades = notice or Notice("Saved.", page.get_query_argument("saved", "")), page.grades
    report = grades.report_of(_stem(stem))
    if report is None:
        raise HTTPError(404, NO_PAGE)
    version = "" if notice.fields else grades.version(stem)
    text = _file(grades.folder / "feedback" / f"{stem}.html").decode()
    choices = grades.choices(report)
    above, action = [], f"{page.root}decide"
    for choice in choices:
        form = _rendered("override.html", choice=choice, action=action, report=stem, notice=notice)
        # The form stands where the item ends: its card, its line in a list, the cell that names it.
        place = rf'<(article|li|span)\b[^>]* id="item-{re.escape(choice.item)}">' if choice.item else "$^"
        if begin := re.search(place, text):  # no text of a student holds a tag
            end = text.index("</td>" if begin[1] == "span" else f"</{begin[1]}>", begin.end())
            text = f"{text[:end]}{form}{text[end:]}"
        else:
            above.append(form)
    panel = _rendered(
        "marking.html",
        forms=above,
        waiting=[choice for choice in choices if choice.is_open],
        decided=[choice for choice in choices if choice.item and choice.decided],
        notice=notice,
        trouble=notice.wrong and notice.at not in {AT_LINE, *(choice.anchor for choice in choices)},
        pieces=CODE.findall(text),
        hand_in=report.submission.sha256[:8],
        action=action,
        report=stem,
    )
    page.show(text, page.bar(version, stem=stem), panel, 400 if notice.wrong else 200)


def show_question(page: Page, name: str, notice: Notice | None = None) -> None:
    """Show the answers of the class to a question in words, beside the guide, each with a form."""
    notice, grades = notice or Notice(), page.grades
    question = next((question for question in grades.questions if question.id == name), None)
    if question is None:
        raise HTTPError(404, NO_PAGE)
    text = render_page(
        "questions.html",
        title=grades.assignment.title,
        module=grades.assignment.name,
        question=question,
        rows=grades.answered(question),
        has_answers=bool(grades.answers),
        action=f"{page.root}decide",
        root=page.root,
        notice=notice,
    )
    version = "" if notice.fields else grades.version(question.id)
    page.show(text, page.bar(version, question=question.id), status=400 if notice.wrong else 200)


def take_decision(page: Page) -> None:
    """Take a form; back to the page that it stands on.

    report           the name of the report's file, or several with a slash between them
    function, line   of the student's code, in place of an item
    """
    fields = dict.fromkeys(("report", "item", "points", "comment"), "")
    fields |= {name: page.get_body_argument(name, strip=False) for name in page.request.body_arguments}
    (stem, *_), item = [_stem(name) for name in fields["report"].split("/")], fields["item"]
    anchor = f"decide-{item}" if item else "the-whole-grade"
    on_question = fields.get("back") == "question"
    if on_question:
        anchor = f"answer-{_quoted(stem)}"
    elif "function" in fields:
        anchor, item = AT_LINE, ":".join(fields.get(name, "").strip() for name in ("function", "line", "hand_in"))
        fields["item"] = item
    try:
        if anchor == AT_LINE:
            shown = _file(page.grades.folder / "feedback" / f"{stem}.html").decode()
            if span_of_line(shown, fields["function"], fields.get("line", "").strip()) is None:
                raise UsageError(f"The page shows no line {fields.get('line', '')} of {fields['function']}.")
        page.grades.decide(fields)
    except KitError as error:
        asks = isinstance(error, LargeChange)
        notice = Notice(visible(str(error)), anchor, not asks, asks, fields)
        return show_question(page, item, notice) if on_question else show_student(page, stem, notice)
    if on_question:
        place = f"questions/{_quoted(item)}#{anchor}"
    else:
        at = f"comment-{fields['function']}-{fields['line'].strip()}" if anchor == AT_LINE else anchor
        place = f"feedback/{_quoted(stem)}.html?saved={_quoted(anchor)}#{_quoted(at)}"
    return page.redirect(f"{page.root}{place}", status=303)


SCREENS: dict[str, Callable[..., None]] = {
    r"(?:index\.html)?": show_class,
    r"grades\.csv": send_gradebook,
    r"version": tell_version,
    r"feedback/([^/]+)\.html": show_student,
    r"questions/([^/]+)": show_question,
}
FORMS: dict[str, Callable[..., None]] = {r"decide": take_decision}


def _rendered(template: str, **context: object) -> Markup:
    return Markup(page_template(template).render(**context))  # autoescaped as every template is


def _quoted(name: str) -> str:
    return urllib.parse.quote(name, safe="")


def _stem(stem: str) -> str:
    """Check the name of a student's files; 404 where it would be a path, or has what no name of ours has."""
    if any(mark in stem for mark in "/\\\0") or stem in (".", "..") or not stem.isprintable():
        raise HTTPError(404, NO_PAGE)
    return stem


def _file(path: Path) -> bytes:
    """Read a regular file in a folder that is no link; 404 where there is none."""
    try:
        if path.parent.is_symlink() and path.parent.name in ("feedback", BY_STUDENT):
            raise HTTPError(404, NO_PAGE)
        with open_regular(path) as stream:
            return stream.read()
    except (OSError, ValueError):
        raise HTTPError(404, NO_PAGE) from None
