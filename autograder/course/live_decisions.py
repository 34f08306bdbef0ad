"""Show and decide grades in a folder of grades: what the live view reads there, and what staff decide in its forms.

The journal in that folder is the truth. A decision is a row at its end, then what `autograder gradebook` does is done.
While a run is writing into the folder the row alone is written: the run applies it at its end, and if not, this does.

Of the submissions, where they are given, it shows the answers in words. What students ask about their grades is read
from their hand-ins, and from the table that a form has filled:

    regrade.txt     a line `ITEM: reason` for each item or question, as the student's page calls it
    FORM.csv        a row for each request, with the columns student, item, reason, and any others
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import time
import zipfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from autograder.authoring.handout.notebook import read_extras, released, words_in
from autograder.authoring.handout.release import notebook_of
from autograder.course.results import settle
from autograder.gradebook.decisions import JOURNAL, LINE, LIVE, decisions_of, is_line_of, line_of, place_of
from autograder.gradebook.final_grades import final_of
from autograder.gradebook.grades_folder import stored_reports
from autograder.gradebook.roster import Roster, alternatives, index, keys_of, match
from autograder.gradebook.rules import Rules, read_rules
from autograder.grading.assignment import Assignment
from autograder.submissions.finding import members
from autograder.submissions.handed_in import UNPACKED_BY_PIECES
from autograder.submissions.reading import read_limited, written_cells_limited
from autograder.submissions.submission import Candidate
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import (
    Row,
    alone,
    beginning,
    file_stem,
    open_regular,
    read_rows,
    write_atomically,
    writing,
)
from autograder.vocabulary.report import Report, read_report
from autograder.vocabulary.text import number, visible

MAX_COMMENT = 2000
REQUESTS, MAX_REQUESTS, MAX_REASON = "regrade.txt", 16 * 1024, 1000  # the file; bytes of it; characters of a reason
MAX_LISTED = 20  # requests of nobody, and large changes, that are told in a sentence
PRESENCE, PRESENT_SECONDS, MOST_PRESENT = ".live", 15.0, 50  # a page asks every other second
RUBRIC = re.compile(r"^- (\d+(?:\.\d+)?) points?\b:?(.+?)(?=\n- |\n\n|\Z)", re.MULTILINE | re.DOTALL)
MAX_RUBRIC = 90  # characters of a line of the guide beside its box
IN_A_PARAGRAPH = re.compile(r"(?<=\S)\n(?![ ]*(?:[-*] |\||\d+\. )|\n| {4})[ ]*")
CLASS_FILES = ("index.html", "run.json", "grades.csv", JOURNAL)
History = dict[tuple[str, str], tuple[Row, ...]]  # report and item → the journal's rows, the oldest first


class LargeChange(UsageError):  # noqa: N818 (a question, not a fault)
    """A change so large that whoever makes it is asked first: the sentence says from what to what."""


@dataclass(frozen=True)
class Question:
    """A question in words, with the guide for whoever marks the answers."""

    id: str
    text: str
    guide: str
    points: float

    @property
    def rubric(self) -> list[tuple[float, str]]:
        """What a guide gives points for, line by line; nothing where these are not the question's points together."""
        lines = [(float(points), " ".join(text.split())) for points, text in RUBRIC.findall(self.guide)]
        is_whole = sum(points for points, _ in lines) == self.points
        return [(points, visible(text, MAX_RUBRIC)) for points, text in lines] if is_whole else []


@dataclass(frozen=True)
class Answer:
    """What a student wrote below a question; pictures as addresses of their data; of which submission."""

    text: str
    pictures: tuple[str, ...]
    sha256: str


@dataclass(frozen=True)
class Choice:
    """What can be decided or commented on: an item, a question, a line of code, or "" for the whole grade.

    history   the rows of the journal about it, the oldest first
    request   what its student asks about it
    """

    item: str
    most: float
    history: tuple[Row, ...] = ()
    question: Question | None = None
    answer: Answer | None = None
    request: str = ""

    @property
    def decided(self) -> Row | None:
        """The decision that counts."""
        last = self.history[-1] if self.history else None
        return last if last and (last["points"] or last["comment"]) else None

    @property
    def points(self) -> str:
        """The points that count, as somebody wrote them; "" where nobody has given any."""
        return self.decided["points"] if self.decided else ""

    @property
    def seen(self) -> str:
        """The line of the last row."""
        return line_of(self.history[-1]) if self.history else ""

    @property
    def is_open(self) -> bool:
        """Whether it waits for staff: an answer without points, a request that nobody has decided on."""
        is_unmarked = self.answer is not None and not (self.history and self.history[-1]["points"])
        return is_unmarked or (bool(self.request) and not self.history)

    @property
    def anchor(self) -> str:
        """The id of its form on the student's page."""
        return f"decide-{self.item}" if self.item else "the-whole-grade"

    @property
    def name(self) -> str:
        """What it is called in a sentence."""
        return place_of(self.item) or self.item or "the whole grade"

    @property
    def buttons(self) -> list[float]:
        """Points to choose from: none, half, all."""
        return sorted({0.0, self.most / 2, self.most}) if self.item and self.most else []


def answers_of(
    assignment: Assignment, candidates: Iterable[Candidate], questions: Iterable[str]
) -> dict[str, Mapping[str, Answer]]:
    """Read student → question → answer; a cell left as it was handed out is no answer.

    They are read from the submissions, text and pasted pictures alone.
    """
    asked, template = set(questions), released(notebook_of(assignment))
    answers: dict[str, Mapping[str, Answer]] = {}
    for candidate in candidates:
        sha256 = read_limited(candidate, assignment.module, assignment.untouched_source()).sha256
        words = words_in(written_cells_limited(candidate, assignment.module, assignment.functions), template)
        given = {}
        for name in asked.intersection(words.answered):
            bundles = words.pictures.get(name, {}).values()
            pictures = [f"data:{kind};base64,{data}" for bundle in bundles for kind, data in bundle.items()]
            given[name] = Answer(words.written[name].strip(), tuple(pictures), sha256)
        answers[candidate.student] = given
    return answers


def requests_of(candidates: Iterable[Candidate], items: Collection[str]) -> dict[str, dict[str, str]]:
    """Read student → item → why they ask for another look; "" holds what names no item of these.

    A line that begins with no name goes on with the one before.
    """
    requests: dict[str, dict[str, str]] = {}
    for candidate in candidates:
        text = _request_file(candidate.path).decode("utf-8-sig", "replace")
        asked, item = dict[str, str](), ""
        for line in filter(None, map(str.strip, text.splitlines())):
            name, colon, rest = line.partition(":")
            item, line = (name.strip(), rest) if colon and name.strip() in items else (item if asked else "", line)
            asked[item] = visible(f"{asked.get(item, '')} {line.strip()}".strip(), MAX_REASON)
        if asked:
            requests[candidate.student] = asked
    return requests


def add_requests(
    form: Path,
    requests: dict[str, dict[str, str]],
    reports: Sequence[Report],
    items: Collection[str],
    roster: Roster | None = None,
) -> list[str]:
    """Add the same from a form's table; return a sentence on each row of nobody.

    A student is known by name, id, login or address, as the roster has them.
    """
    known = []
    for report in reports:
        called = alternatives(report.student, report.identity)
        person = roster.person(*called) if roster else None
        known.append(keys_of(called) | (person.keys if person else frozenset()))
    by_key = index(known)
    strangers = []
    for row in read_rows(form, ("student", "item", "reason"), others=True):
        who, item, reason = row["student"], row["item"], row["reason"] or "(no reason given)"
        place = match((who, *who.split("@")[:-1]), by_key)
        if place is None:
            strangers.append(f"line {line_of(row)} is of nobody, or of several, of this class: {visible(who, 120)}")
            continue
        asked = requests.setdefault(reports[place].student, {})
        reason = reason if item in items else f"{item}: {reason}".removeprefix(": ")
        item = item if item in items else ""
        asked[item] = visible(f"{asked.get(item, '')} {reason}".strip(), MAX_REASON)
    return strangers


def _request_file(handed_in: Path) -> bytes:
    """Read what a student asks, from their folder or zip; nothing where it cannot be read, or is a link."""
    try:
        if handed_in.is_dir() and not handed_in.is_symlink():
            zips = [path for path in handed_in.glob("*.zip") if not path.is_symlink()]
            if len(zips) == 1 and not (handed_in / REQUESTS).exists():
                return _request_file(zips[0])
            with open_regular(handed_in / REQUESTS) as stream:
                return stream.read(MAX_REQUESTS)
        with open_regular(handed_in) as stream:
            named = [member for member in members(handed_in) if member.filename.rpartition("/")[2] == REQUESTS]
            if named[0].compress_type not in UNPACKED_BY_PIECES:
                return b""
            with zipfile.ZipFile(stream) as opened, opened.open(named[0]) as packed:
                return packed.read(MAX_REQUESTS)
    except Exception:  # zipfile raises a dozen types on damaged input
        return b""


@dataclass
class LiveFolder:
    """One folder of grades, as it is now.

    who        who decides
    answers    student → question → what was answered, where submissions were given
    requests   student → item → why they ask for another look
    strangers  a sentence on each row of a form that is of nobody in this class
    """

    folder: Path
    assignment: Assignment
    who: str
    answers: Mapping[str, Mapping[str, Answer]] = field(default_factory=dict)
    requests: dict[str, dict[str, str]] = field(default_factory=dict)
    strangers: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Read the questions of the assignment's notebook."""
        self._is_pending = False  # a row is written, and what it does to the grades is not
        self.questions = []
        for entry in read_extras(self.assignment).question:
            texts = (entry.question.strip(), entry.guide.strip())  # without the breaks of the source's own lines
            text, guide = (text if "```" in text else IN_A_PARAGRAPH.sub(" ", text) for text in texts)
            self.questions.append(Question(entry.id, text, guide, entry.points))

    def reports(self) -> list[Report]:
        """Read everybody's report so far; none before the first is there. UsageError where one cannot be read."""
        return stored_reports(self.folder) if any((self.folder / "reports").glob("*.json")) else []

    def report_of(self, stem: str) -> Report | None:
        """Read the report of the student whose files are called that."""
        path = self.folder / "reports" / f"{stem}.json"
        with contextlib.suppress(OSError):  # a name that is too long for any file
            report = None if path.is_symlink() else read_report(path)
            return report if report is not None and file_stem(report.student) == stem else None
        return None

    def history(self) -> History:
        """Read the rows of the journal by report and item, the oldest first. UsageError where it cannot be used."""
        rules = self._rules()
        decisions = rules.decisions or decisions_of(self.folder, self.assignment)
        history: History = {}
        for row in (*decisions.rows(), *decisions.new):
            key = row["student"], row["item"]
            history[key] = (*history.get(key, ()), row)
        return history

    def choices(self, report: Report) -> list[Choice]:
        """List what can be decided in this report: its items, the questions, the whole, and lines with comments."""
        rows = {item: rows for (stem, item), rows in self.history().items() if stem == file_stem(report.student)}
        most = {item.item: item.max_points for item in report.items}
        most |= {question.id: question.points for question in self.questions}
        most |= {"": final_of(report, self._rules()).most}
        most |= {item: 0.0 for item in rows if is_line_of(item, report)}
        return [self._choice(report.student, item, points, rows.get(item, ())) for item, points in most.items()]

    def _choice(self, student: str, item: str, most: float, rows: tuple[Row, ...]) -> Choice:
        question = next((question for question in self.questions if question.id == item), None)
        answer = self.answers.get(student, {}).get(item)
        return Choice(item, most, rows, question, answer, self.requests.get(student, {}).get(item, ""))

    def answered(self, question: Question) -> list[dict[str, Any]]:
        """List everybody's report, with the choice of what to give for an answer, or for none."""
        history, answered = self.history(), []
        for report in self.reports():
            rows = history.get((file_stem(report.student), question.id), ())
            choice = self._choice(report.student, question.id, question.points, rows)
            answered.append({"report": report, "choice": choice, "stem": file_stem(report.student)})
        return answered

    def waiting(self) -> dict[str, list[str]]:
        """Find who waits for staff: item or question → the stems of their reports, sorted."""
        history, waiting = self.history(), dict[str, list[str]]()
        for student in sorted({*self.answers, *self.requests}, key=file_stem):
            for item in {*self.answers.get(student, {}), *self.requests.get(student, {})}:
                if self._choice(student, item, 0.0, history.get((file_stem(student), item), ())).is_open:
                    waiting.setdefault(item, []).append(file_stem(student))
        return waiting

    def around(self, stem: str) -> dict[str, str]:
        """Find the student before, the one after, and the next who waits for staff and nobody has open; "" for none."""
        stems = sorted(path.stem for path in (self.folder / "reports").glob("*.json"))
        place = stems.index(stem) if stem in stems else 0
        waiting = set[str]().union(*self.waiting().values())
        waiting -= {at.removeprefix("student ") for at in self.others().values()}  # somebody is at it
        return {
            "previous": stems[place - 1] if place else "",
            "next": stems[place + 1] if place + 1 < len(stems) else "",
            "open": next((other for other in (*stems[place + 1 :], *stems[:place]) if other in waiting), ""),
        }

    def look_at(self, place: str) -> None:
        """Note that a page is looked at: servers that several members of staff run see each other by such files."""
        with contextlib.suppress(OSError):  # a folder that is there to be read alone
            (self.folder / PRESENCE).mkdir(exist_ok=True)
            note = json.dumps({"who": self.who, "at": place, "when": time.time()})
            write_atomically(self.folder / PRESENCE / f"{file_stem(self.who)}.json", note, lasting=False)

    def others(self) -> dict[str, str]:
        """Say who else looks at what just now, by name."""
        others = {}
        for path in sorted((self.folder / PRESENCE).glob("*.json"))[:MOST_PRESENT]:
            with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
                seen = json.loads(beginning(path))
                if 0 <= time.time() - seen["when"] < PRESENT_SECONDS:
                    others[visible(str(seen["who"]), 40)] = str(seen["at"])
        others.pop(visible(self.who, 40), None)
        return others

    def is_grading(self) -> bool:
        """Tell whether a run is writing into the folder."""
        try:
            with alone(self.folder):
                return False
        except (UsageError, OSError):
            return True

    def version(self, stem: str = "") -> str:
        """Return another text whenever a page may have changed: a student's, a question's, or that of the class."""
        if self._is_pending:
            with contextlib.suppress(UsageError, OSError):
                self._is_pending = not self._apply()
        if stem:
            paths = [self.folder / "feedback" / f"{stem}.html", self.folder / JOURNAL]
        else:
            paths = [*(self.folder / name for name in CLASS_FILES), *sorted((self.folder / "reports").glob("*.json"))]
        marks = []
        for path in paths:
            with contextlib.suppress(OSError):
                marks.append((path.name, path.stat().st_mtime_ns, path.stat().st_size))
        return hashlib.sha256(repr(marks).encode()).hexdigest()[:16]

    def decide(self, form: Mapping[str, str]) -> None:
        """Add the rows that a form says to the journal, and do what follows; UsageError where it cannot be.

        report   the name of the report's file; of several, with a slash between them, each gets the same
        seen     the line of the row that it replaces; "" where there was none
        sure     the sentence of LargeChange that whoever decides has agreed to
        remove   withdraw what was decided
        """
        fields = dict.fromkeys(("report", "item", "points", "comment", "seen", "sure", "remove"), "") | dict(form)
        points, comment = fields["points"].strip(), visible(" ".join(fields["comment"].split()))
        if fields["remove"]:
            points = comment = ""
        elif not (points or comment):
            raise UsageError("There is nothing to save: choose points, or write a comment.")
        if len(comment) > MAX_COMMENT:
            raise UsageError(f"The comment is longer than {MAX_COMMENT:,} characters: shorten it.")
        rows, reports = [], []
        for stem in fields["report"].split("/"):
            report = self.report_of(stem)
            if report is None:
                raise UsageError(f"{visible(stem, 80)} has no report here.")
            if LINE.fullmatch(fields["item"]) and not is_line_of(fields["item"], report):
                raise UsageError("This is another hand-in by now: load the page again.")
            cells = {"student": stem, "points": points, "comment": comment, "who": self.who}
            rows.append(Row(LIVE, fields | cells))
            reports.append(report)
        before = self._rules()
        known = before.decisions or decisions_of(self.folder, self.assignment)
        decisions = replace(known, new=[*known.new, *rows])
        after = replace(before, overrides=decisions.merged()[1])
        after.check_students((), self.folder)
        if not LINE.fullmatch(fields["item"]):
            question = _question(reports, before, after)
            if question and fields["sure"] != question:
                raise LargeChange(question)
        with writing(decisions.path, ""):
            decisions.keep()
        self._is_pending = True
        with writing(self.folder, ""):
            self._is_pending = not self._apply()

    def _rules(self) -> Rules:
        return read_rules(self.folder, self.assignment, None, (), None) or Rules()

    def _apply(self) -> bool:
        """Make final grades of all reports, unless somebody else is writing into the folder; whether it was done."""
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(alone(self.folder))
            except UsageError:
                return False
            rules = self._rules()
            rules.check_students((), self.folder)
            settle(self.folder, self.reports(), self.assignment, rules)
            return True


def _question(reports: Sequence[Report], before: Rules, after: Rules) -> str:
    """Word the question before changes of over a tenth of a whole grade, or of its maximum; "" where nothing is asked.

    The first points for an answer in words change nothing that was there.
    """
    large = []
    for report in reports:
        was, now = final_of(report, before), final_of(report, after)
        if was.most != now.most:
            return f"Every grade is then out of {number(now.most)}, not {number(was.most)}. Save again if you mean it."
        if was.points is not None and abs(was.points - (now.points or 0.0)) > now.most / 10:
            points = f"{number(was.points)} → {number(now.points or 0.0)} of {number(now.most)}"
            large.append(f"{visible(report.student, 40)} {points}")
    more = f"; and {len(large) - MAX_LISTED} more" if len(large) > MAX_LISTED else ""
    what = f"This changes the whole grade much: {'; '.join(large[:MAX_LISTED])}{more}. Save again if you mean it."
    return what if large else ""
