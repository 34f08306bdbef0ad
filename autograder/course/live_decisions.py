"""Show and decide grades in a folder of grades: what the live view reads there, and what staff decide in its forms.

The journal in that folder is the truth. A decision is a row at its end, then what `autograder gradebook` does is done.
While a run is writing into the folder the row alone is written: the run applies it at its end, and if not, this does.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from autograder.authoring.handout.notebook import is_answer, read_extras, released, words_in
from autograder.authoring.handout.release import notebook_of
from autograder.course.results import settle
from autograder.gradebook.decisions import JOURNAL, LIVE, decisions_of, line_of
from autograder.gradebook.final_grades import final_of
from autograder.gradebook.grades_folder import stored_reports
from autograder.gradebook.rules import Rules, read_rules
from autograder.grading.assignment import Assignment
from autograder.submissions.reading import read_limited, written_cells_limited
from autograder.submissions.submission import Candidate
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import Row, alone, file_stem, writing
from autograder.vocabulary.report import Report, read_report
from autograder.vocabulary.text import number, visible

MAX_COMMENT = 2000
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


@dataclass(frozen=True)
class Answer:
    """What a student wrote below a question.

    pictures   pasted into it, each as the address of its data
    sha256     of the submission that it was read from
    """

    text: str
    pictures: tuple[str, ...]
    sha256: str


@dataclass(frozen=True)
class Choice:
    """What points can be given for: an item, a question, or "" for the whole grade.

    history   the rows of the journal about it, the oldest first
    """

    item: str
    most: float
    history: tuple[Row, ...] = ()

    @property
    def decided(self) -> Row | None:
        """The decision that counts."""
        last = self.history[-1] if self.history else None
        return last if last and (last["points"] or last["comment"]) else None

    @property
    def seen(self) -> str:
        """The line of the last row."""
        return line_of(self.history[-1]) if self.history else ""


def answers_of(
    assignment: Assignment, candidates: Iterable[Candidate], questions: Iterable[str]
) -> dict[str, Mapping[str, Answer]]:
    """Student → question → answer, of those who answered; a cell left as it was handed out is no answer.

    They are read from the submissions, text and pasted pictures alone.
    """
    asked, template = set(questions), released(notebook_of(assignment))
    answers: dict[str, Mapping[str, Answer]] = {}
    for candidate in candidates:
        sha256 = read_limited(candidate, assignment.module, assignment.untouched_source()).sha256
        words = words_in(written_cells_limited(candidate, assignment.module, assignment.functions), template)
        given = {}
        for name, text in words.written.items():
            if name in asked and (is_answer(text) or name in words.pictures):
                bundles = words.pictures.get(name, {}).values()
                pictures = [f"data:{kind};base64,{data}" for bundle in bundles for kind, data in bundle.items()]
                given[name] = Answer(text.strip(), tuple(pictures), sha256)
        answers[candidate.student] = given
    return answers


@dataclass
class LiveFolder:
    """One folder of grades, as it is now.

    who       who decides
    answers   student → question → what was answered, where submissions were given
    """

    folder: Path
    assignment: Assignment
    who: str
    answers: Mapping[str, Mapping[str, Answer]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read the questions of the assignment's notebook."""
        self._is_pending = False  # a row is written, and what it does to the grades is not
        self.questions = [
            Question(str(one["id"]), unwrapped(one["question"]), unwrapped(one["guide"]), float(one["points"]))
            for one in read_extras(self.assignment).questions
        ]

    def reports(self) -> list[Report]:
        """Everybody's report so far; nobody's before the first is there. UsageError where one cannot be read."""
        return stored_reports(self.folder) if any((self.folder / "reports").glob("*.json")) else []

    def report_of(self, stem: str) -> Report | None:
        """The report of the student whose files are called that."""
        path = self.folder / "reports" / f"{stem}.json"
        with contextlib.suppress(OSError):  # a name that is too long for any file
            report = None if path.is_symlink() else read_report(path)
            return report if report is not None and file_stem(report.student) == stem else None
        return None

    def history(self) -> History:
        """The rows of the journal by report and item, the oldest first. UsageError where it cannot be used."""
        rules = self._rules()
        decisions = rules.decisions or decisions_of(self.folder, self.assignment)
        history: History = {}
        for row in (*decisions.rows(), *decisions.new):
            key = row["student"], row["item"]
            history[key] = (*history.get(key, ()), row)
        return history

    def choices(self, report: Report) -> list[Choice]:
        """What points can be given for in this report: its items, the questions, the whole."""
        stem, history = file_stem(report.student), self.history()
        most = {item.item: item.max_points for item in report.items}
        most |= {question.id: question.points for question in self.questions}
        most |= {"": final_of(report, self._rules()).most}
        return [Choice(item, points, history.get((stem, item), ())) for item, points in most.items()]

    def is_grading(self) -> bool:
        """Whether a run is writing into the folder."""
        try:
            with alone(self.folder):
                return False
        except (UsageError, OSError):
            return True

    def version(self, stem: str = "") -> str:
        """Another text whenever what a page shows may have changed: one student's, or everybody's."""
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
        """Add the row that a form says to the journal, and do what follows from it; UsageError where it cannot be.

        report   the name of the report's file
        seen     the line of the row that it replaces; "" where there was none
        sure     the sentence of LargeChange that whoever decides has agreed to
        remove   withdraw what was decided
        """
        fields = dict.fromkeys(("report", "item", "points", "comment", "seen", "sure", "remove"), "") | dict(form)
        points, comment = fields["points"].strip(), visible(" ".join(fields["comment"].split()))
        if fields["remove"]:
            points = comment = ""
        elif not comment:
            raise UsageError("This is a change without a reason: say why, the student reads it.")
        if len(comment) > MAX_COMMENT:
            raise UsageError(f"The comment is longer than {MAX_COMMENT:,} characters: shorten it.")
        report = self.report_of(fields["report"])
        if report is None:
            raise UsageError(f"{visible(fields['report'], 80)} has no report here.")
        cells = {"student": fields["report"], "points": points, "comment": comment, "who": self.who}
        before = self._rules()
        known = before.decisions or decisions_of(self.folder, self.assignment)
        decisions = replace(known, new=[*known.new, Row(LIVE, fields | cells)])
        after = replace(before, overrides=decisions.merged()[1])
        after.check_students((), self.folder)
        question = _question(report, fields["item"], before, after)
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
        """Make final grades of all reports; whether nobody else was writing into the folder."""
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(alone(self.folder))
            except UsageError:
                return False
            rules = self._rules()
            rules.check_students((), self.folder)
            settle(self.folder, self.reports(), self.assignment, rules)
            return True


def unwrapped(text: str) -> str:
    """A text without the line breaks that its source has for the width of a page alone."""
    return text.strip() if "```" in text else IN_A_PARAGRAPH.sub(" ", text.strip())


def _question(report: Report, item: str, before: Rules, after: Rules) -> str:
    """What to ask before a large change: of more than a tenth of the whole grade, or of more than half of an item's
    points and a twentieth of the whole.

    "" where there is nothing to ask. The first points for an answer in words change nothing that was there.
    """
    was, whole_before = _points(report, before)
    now, whole = _points(report, after)
    if whole_before != whole:
        return f"Every grade is then out of {number(whole)}, not {number(whole_before)}. Save again if you mean it."
    most = {each.item: each.max_points for each in report.items} | before.questions | after.questions | {"": whole}
    changes = {name: (was.get(name), now.get(name) or 0.0) for name in dict.fromkeys((item, ""))}
    moved = {name: 0.0 if had is None else abs(has - had) for name, (had, has) in changes.items()}
    large = moved[""] > whole / 10 or moved[item] > max(most[item] / 2, whole / 20)
    if was.get(item) is None or not large:
        return ""
    shown = [
        f"{name or 'the whole grade'} {number(had or 0.0)} → {number(has)} of {number(most[name])}"
        for name, (had, has) in changes.items()
    ]
    return f"This is a large change: {', '.join(shown)}. Save again if you mean it."


def _points(report: Report, rules: Rules) -> tuple[dict[str, float | None], float]:
    """The points of items and of the whole, "", as people have decided, None where there are none; the maximum."""
    final = final_of(report, rules)
    decided = {change.item: change.after for change in final.adjustments if change.rule in ("override", "question")}
    return {item.item: item.points for item in report.items} | decided | {"": final.points}, final.most
