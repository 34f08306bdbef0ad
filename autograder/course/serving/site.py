"""The pages of a folder of grades: which address shows what, and what a form does.

    index.html  grades.csv  feedback/<student>.html     as they lie on disk, live
    questions/<question>                                the answers in words, beside the guide
    version                                             what a page asks, to know whether it has changed
    decide                                              where forms go

Of a course, the same below the folder of each assignment. Nothing else of the folder can be asked for.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from autograder.course.serving.desk import Choice, Desk, History, LargeChange, Question
from autograder.course.serving.gate import Asked, Gate, Refused, Request, form_of
from autograder.course.serving.live_page import live
from autograder.course.serving.reply import Reply, data, moved
from autograder.pages.class_page import Background, ClassPage
from autograder.pages.html import page_template, render_page
from autograder.vocabulary.errors import KitError
from autograder.vocabulary.files import file_stem, open_regular
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import visible

NO_PAGE = "There is no such page."
WHOLE = "the-whole-grade"  # the anchor of its form


@dataclass(frozen=True)
class Said:
    """What to tell at a form: what was done, what was wrong and with what, or what is asked first.

    at       the anchor of the form
    fields   what was typed into it
    """

    text: str = ""
    at: str = ""
    wrong: bool = False
    asks: bool = False
    fields: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Site:
    """What is served: the desks by their folder's name, or the only one by ""."""

    folder: Path
    desks: Mapping[str, Desk]

    def answer(self, gate: Gate, request: Request) -> Reply:
        """The reply to a request; raises Refused where it is refused."""
        asked = gate.admit(request)
        parts, root = asked.parts, f"/{gate.token}/"
        try:
            if "" in self.desks:
                return _page(self.desks[""], parts, asked, request, root)
            if parts and parts[0] in self.desks:
                root = f"{root}{urllib.parse.quote(parts[0], safe='')}/"
                return _page(self.desks[parts[0]], parts[1:], asked, request, root)
        except KitError as error:  # reports or decisions that cannot be read
            raise Refused(503, visible(str(error))) from None
        if parts in ((), ("index.html",)) and request.method != "POST":
            return live(_file(self.folder / "index.html").decode(), _bar(None, "", "", ""))
        raise Refused(404, NO_PAGE)


def _page(desk: Desk, parts: tuple[str, ...], asked: Asked, request: Request, root: str) -> Reply:
    if request.method == "POST":
        if parts != ("decide",):
            raise Refused(405, "Nothing can be written there.")
        return _decide(desk, form_of(request), root)
    match parts:
        case () | ("index.html",):
            return _class_page(desk, root)
        case ("grades.csv",):
            return Reply(200, _file(desk.folder / "grades.csv"), "text/csv; charset=utf-8")
        case ("version",):
            stem = asked.query.get("student", "")
            return data({"version": desk.version(_stem(stem)), "grading": desk.is_grading()})
        case ("feedback", name) if name.endswith(".html"):
            return _student_page(desk, name.removesuffix(".html"), root, Said("Saved.", asked.query.get("saved", "")))
        case ("questions", name):
            return _question_page(desk, name, root, Said())
    raise Refused(404, NO_PAGE)


def _class_page(desk: Desk, root: str) -> Reply:
    """The page of the class: as it lies on disk, or of the reports so far while a run is going on."""
    version, grading = desk.version(), desk.is_grading()
    if not grading and (desk.folder / "index.html").is_file():
        page = _file(desk.folder / "index.html").decode()
    else:
        made, reports = ClassPage(), desk.reports()
        for report in reports:
            made.add(report)
        page = "".join(
            made.html(reports, {"assignment": desk.assignment.name}, background=Background(title=desk.assignment.title))
        )
    said = "Grading goes on: this is what there is so far." if grading else ""
    return live(page, _bar(desk, root, version, "", said))


def _student_page(desk: Desk, stem: str, root: str, said: Said) -> Reply:
    """A student's page with a form at each item; those on the whole grade and the questions stand above."""
    report = desk.report_of(_stem(stem))
    if report is None:
        raise Refused(404, NO_PAGE)
    version = "" if said.fields else desk.version(stem)
    page = _file(desk.folder / "feedback" / f"{stem}.html").decode()
    choices = desk.choices(report)
    anchors = {f"decide-{one.item}" if one.item else WHOLE: one for one in choices}
    trouble = said.text if said.wrong and said.at not in anchors else ""
    above = []
    for anchor, one in anchors.items():
        form = _rendered("override.html", one=one, anchor=anchor, action=f"{root}decide", report=stem, said=said)
        at_item = _with_form(page, one.item, form)
        page = at_item or page
        if at_item is None:
            above.append(form)
    decided = [one for one in choices if one.item and one.decided]
    panel = _rendered("marking.html", forms=above, decided=decided, trouble=trouble)
    return live(page, _bar(desk, root, version, stem), panel, 400 if said.wrong else 200)


def _with_form(page: str, item: str, form: Markup) -> str | None:
    """The page with the form where the item ends: its card, its line in a list, the cell that names it; None without.

    No text of a student holds a tag.
    """
    begin = re.search(rf'<(article|li|span)\b[^>]* id="item-{re.escape(item)}">', page) if item else None
    if begin is None:
        return None
    end = page.index("</td>" if begin[1] == "span" else f"</{begin[1]}>", begin.end())
    return f"{page[:end]}{form}{page[end:]}"


def _question_page(desk: Desk, name: str, root: str, said: Said) -> Reply:
    question = next((one for one in desk.questions if one.id == name), None)
    if question is None:
        raise Refused(404, NO_PAGE)
    reports, history = desk.reports(), desk.history()
    rows = [_answered(desk, question, report, history) for report in reports]
    page = render_page(
        "questions.html",
        title=desk.assignment.title,
        module=desk.assignment.name,
        question=question,
        rows=rows,
        marked=sum(row["points"] != "" for row in rows),
        first_open=next((row["anchor"] for row in rows if row["points"] == ""), ""),
        has_answers=bool(desk.answers),
        action=f"{root}decide",
        feedback=f"{root}feedback/",
        said=said,
    )
    return live(page, _bar(desk, root, "", ""), status=400 if said.wrong else 200)


def _answered(desk: Desk, question: Question, report: Report, history: History) -> dict[str, object]:
    """A student's answer with what was decided on it."""
    stem = file_stem(report.student)
    choice = Choice(question.id, None, question.points, history.get((stem, question.id), ()))
    answer = desk.answers.get(report.student, {}).get(question.id)
    return {
        "student": report.student,
        "report": stem,
        "choice": choice,
        "page": f"{urllib.parse.quote(stem, safe='')}.html",
        "anchor": _answer_anchor(stem),
        "answer": answer,
        "other": answer is not None and answer.sha256 != report.submission.sha256,
        "points": choice.decided["points"] if choice.decided else "",
    }


def _answer_anchor(stem: str) -> str:
    return f"answer-{urllib.parse.quote(stem, safe='')}"


def _decide(desk: Desk, fields: Mapping[str, str], root: str) -> Reply:
    """Take a form; back to the page that it stands on. `report` is the name of the report's file, as the page said."""
    stem, item, on_question = _stem(fields.get("report", "")), fields.get("item", ""), fields.get("back") == "question"
    anchor = _answer_anchor(stem) if on_question else f"decide-{item}" if item else WHOLE
    try:
        desk.decide(fields)
    except KitError as error:
        asks = isinstance(error, LargeChange)
        said = Said(visible(str(error)), anchor, not asks, asks, fields)
        return _question_page(desk, item, root, said) if on_question else _student_page(desk, stem, root, said)
    if on_question:
        return moved(f"{root}questions/{urllib.parse.quote(item, safe='')}#{anchor}")
    quoted = urllib.parse.quote(anchor, safe="")
    return moved(f"{root}feedback/{urllib.parse.quote(stem, safe='')}.html?saved={quoted}#{quoted}")


def _bar(desk: Desk | None, root: str, version: str, stem: str, said: str = "") -> Markup:
    """What stands above a page that is shown live; `desk` is None above a course's own page."""
    poll = f"{root}version" + (f"?student={urllib.parse.quote(stem, safe='')}" if stem else "")
    title, questions = (desk.assignment.title, desk.questions) if desk else ("", ())
    return _rendered("live.html", title=title, root=root, version=version, poll=poll, questions=questions, said=said)


def _rendered(template: str, **context: object) -> Markup:
    return Markup(page_template(template).render(**context))  # autoescaped as every template is


def _stem(stem: str) -> str:
    """The name of a student's files as it came; Refused where it would be a path."""
    if any(mark in stem for mark in "/\\\0") or stem in (".", ".."):
        raise Refused(404, NO_PAGE)
    return stem


def _file(path: Path) -> bytes:
    """The bytes of a regular file in a folder that is no link; Refused where there is none."""
    try:
        if path.parent.is_symlink() and path.parent.name == "feedback":
            raise Refused(404, NO_PAGE)
        with open_regular(path) as stream:
            return stream.read()
    except (OSError, ValueError):
        raise Refused(404, NO_PAGE) from None
