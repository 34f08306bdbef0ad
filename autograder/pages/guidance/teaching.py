"""What a class page says besides figures: what a mistake goes against, code that made it, what to teach next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from autograder.gradebook.class_statistics import Summary
from autograder.gradebook.mistake_statistics import MistakeSummary, Who

MOST_TAUGHT = 3
MOST_TRIED = 5  # students whose code is looked for

ENTRY = """\
    Mistake(
        slug="…",          # what is wrong, as an id
        code="…",          # the letter of {function} in the catalogue, and the next number
        function="{function}",
        hint="…",          # a question or a pointer, never the corrected line
        source='''\\
{source}
''',
    ),
"""
OF_A_STUDENT = "def {function}(…):     # the wrong text, in your own words: ask {student} how it is written"


def no_code(student: str, function: str) -> str:
    """What is known of students' code where none is kept: nothing."""
    return ""


@dataclass(frozen=True)
class Background:
    """What is known of an assignment besides its reports; the default is nothing.

    title      what people call the assignment; "" leaves its module's name
    clauses    mistake → the sentence of the contract that it goes against
    sections   function → the section of the handout's text that it belongs to
    code_of    (student, function) → that function as the student wrote it; "" where that is not known
    """

    clauses: Mapping[str, str] = field(default_factory=dict)
    sections: Mapping[str, str] = field(default_factory=dict)
    code_of: Callable[[str, str], str] = no_code
    title: str = ""


@dataclass(frozen=True)
class Example:
    """How a student wrote a wrong answer, "" where that is not known; `entry` is for the catalogue, to complete."""

    student: str
    text: str
    entry: str


@dataclass(frozen=True)
class Lesson:
    """A misunderstanding, what it cost, and where the text speaks of it; `anchor` is its place on the page."""

    name: str
    anchor: str
    function: str
    count: int
    cost: float
    sentence: str
    section: str


def costliest_first(figures: Summary) -> list[MistakeSummary]:
    """The known mistakes by what they cost the class."""
    return sorted(figures.mistakes, key=lambda one: (-one.cost, -one.count, one.mistake))


def lessons(figures: Summary, background: Background) -> list[Lesson]:
    """The misunderstandings that cost most; of names that fit the same answers, the first stands for all."""
    found: dict[tuple[object, ...], Lesson] = {}
    for place, one in enumerate(costliest_first(figures), start=1):
        key = (one.function, one.items, one.count, one.students, one.cost)
        if key in found:
            continue
        sentence = background.clauses.get(one.mistake, "")
        section = background.sections.get(one.function, "")
        anchor = f"mistake-{place}"
        found[key] = Lesson(one.mistake, anchor, one.function, one.count, one.cost, sentence, section)
    for place, shared in enumerate(figures.shared, start=1):
        name, section = "an answer without a name", background.sections.get(shared.function, "")
        anchor = f"shared-{place}"
        found[(anchor,)] = Lesson(name, anchor, shared.function, shared.count, shared.cost, "", section)
    ordered = sorted(found.values(), key=lambda lesson: (-lesson.cost, -lesson.count, lesson.anchor))
    return [lesson for lesson in ordered if lesson.cost > 0][:MOST_TAUGHT]


def examples(figures: Summary, background: Background) -> dict[str, Example]:
    """By its place on the page, how a student wrote each wrong answer: the shortest of the first few."""
    found = {f"mistake-{place}": one for place, one in enumerate(costliest_first(figures), start=1)}
    shared = {f"shared-{place}": one for place, one in enumerate(figures.shared, start=1)}
    return {anchor: _example(one.who, one.function, background) for anchor, one in (found | shared).items()}


def _example(who: Sequence[Who], function: str, background: Background) -> Example:
    texts = [(background.code_of(one.student, function), one.student) for one in who[:MOST_TRIED]]
    written = [(text, student) for text, student in texts if text]
    text, student = min(written, key=lambda one: (len(one[0]), one[1])) if written else ("", who[0].student)
    source = text or OF_A_STUDENT.format(function=function, student=student)
    return Example(student, text, ENTRY.format(function=function, source=_quoted(source)))


def _quoted(source: str) -> str:
    """The text as it stands between three quotes of Python."""
    return source.rstrip().replace("\\", "\\\\").replace("'''", "\\'\\'\\'")
