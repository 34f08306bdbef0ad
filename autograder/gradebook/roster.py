"""Read who is in the course, and find students in the tables of other platforms by names, ids, logins and addresses."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from autograder.submissions.submission import Candidate
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import read_table
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import INVISIBLE, visible

# Headings as the platforms write them, in small letters and with spaces for underscores and points.
NAMES = ("student", "name", "full name", "display name")
FIRST_NAMES, LAST_NAMES = ("first name", "firstname", "given name"), ("last name", "lastname", "surname")
IDENTITIES = (
    "id", "sid", "student id", "user id", "id number", "identifier", "canvas id", "moodle id", "lms user id", "sis id",
    "sis user id", "sis login id", "login", "login id", "user", "username", "user name", "netid", "email",
    "email address", "e-mail", "mail", "github", "github username", "github id",
)  # fmt: skip
CIRCLED = re.compile("[\u24b6-\u24e9\U0001f130-\U0001f149\U0001f150-\U0001f169\U0001f170-\U0001f189]")

AnyStudent = TypeVar("AnyStudent", bound=Report | Candidate)


@dataclass(frozen=True)
class Person:
    """One line of a roster; `keys` are what other programs may call the student."""

    student: str
    group: str
    keys: frozenset[str]


@dataclass(frozen=True)
class Roster:
    """The students of a course."""

    people: tuple[Person, ...]

    def person(self, *names: str) -> Person | None:
        """Whoever is meant by the first of `names` that means somebody; None where nobody, or two, are meant."""
        position = match(names, self._positions)
        return None if position is None else self.people[position]

    @functools.cached_property
    def _positions(self) -> dict[str, int | None]:
        return index(person.keys for person in self.people)


def read_roster(path: Path) -> Roster:
    """Read a roster. Raises UsageError where no column holds names, or a student stands in it twice."""
    table = read_table(path)
    headings = [plain_heading(cell) for cell in table.header]
    people: dict[str, Person] = {}
    for line, row in zip(table.lines, table.rows, strict=True):
        person = person_of(dict(zip(headings, row, strict=True)))
        if person.student in people:
            who = visible(person.student, 80)
            raise UsageError(f"{path}, line {line}: {who} stands here twice; give each a name of their own.")
        if person.student:
            people[person.student] = person
    if not people:
        raise UsageError(f"{path} names no student: its first row needs `student`, or `first name` and `last name`.")
    return Roster(tuple(people.values()))


def person_of(cells: Mapping[str, str]) -> Person:
    """Whom a row of some table is about, by the headings that platforms write."""

    def cell(*headings: str) -> str:
        return next((cells[heading].strip() for heading in headings if cells.get(heading, "").strip()), "")

    first, last = cell(*FIRST_NAMES), cell(*LAST_NAMES)
    student = cell(*NAMES) or f"{first} {last}".strip()
    names = {student, f"{first} {last}", f"{last}, {first}"} if first and last else {student}
    identities = {text for heading, text in cells.items() if heading in IDENTITIES}
    return Person(unicodedata.normalize("NFC", student), cell("group", "team"), keys_of(names | identities))


def plain_heading(cell: str) -> str:
    """Take from a heading what differs between platforms: `GitHub_Username` is `github username`."""
    return " ".join(re.sub(r"[_.]", " ", cell).casefold().split())


# Matching


def key(name: str) -> str:
    """Take from a name what two ways of writing it may differ in: case, spacing, invisible marks, forms of letters."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    shown = "".join(letter for letter in folded if letter.isspace() or unicodedata.category(letter) not in INVISIBLE)
    return " ".join(shown.split())


def keys_of(names: Iterable[str]) -> frozenset[str]:
    """Return the keys by which somebody with these names is found; `Diaz, Ana` is also `Ana Diaz` and `diazana`."""
    keys = set()
    for name in names:
        keys |= {key(name), key(name.lstrip("'"))}
        last, comma, first = name.partition(",")
        if comma:  # run together as Canvas writes it into file names
            keys |= {key(f"{first} {last}"), "".join(filter(is_word, key(name)))}
    return frozenset(keys - {""})


def is_word(character: str) -> bool:
    """Tell whether Ruby's `[[:word:]]` has it: letters, also circled ones, marks, digits, connecting punctuation."""
    category = unicodedata.category(character)
    return category[0] in "LM" or category in ("Nd", "Nl", "Pc") or CIRCLED.fullmatch(character) is not None


def index(people: Iterable[frozenset[str]]) -> dict[str, int | None]:
    """Key → position of the one it stands for; None where it stands for several."""
    positions: dict[str, int | None] = {}
    for position, keys in enumerate(people):
        for text in keys:
            positions[text] = None if text in positions else position
    return positions


def match(names: Iterable[str], positions: Mapping[str, int | None]) -> int | None:
    """Return the position of the first of `names` with a meaning; None where that is nobody, or several."""
    return next((positions[key(name)] for name in names if key(name) in positions), None)


def alternatives(student: str, identity: str) -> list[str]:
    """List what a student of a report may be called elsewhere: by the id first, then the name with it and without it.

    identity   as a report has it: what a name ends in is an id only where the platform's own layout said so
    """
    number = identity.rpartition(":")[2]
    return [number, student, student.removesuffix(f"_{number}")] if number else [student]


def find_rows(
    reports: Iterable[AnyStudent], keys: Iterable[frozenset[str]], roster: Roster | None = None, ids: Sequence[str] = ()
) -> tuple[dict[int, AnyStudent], tuple[str, ...]]:
    """Find the report of each row, known by its `keys`: position → report, and the students whom no row is clearly of.

    Of two reports for one row, both are unknown.

    ids   of the rows, as reports of this platform have them: of such a report the id decides, or else the roster, and
          never a name; of any other report the roster decides before the name
    """
    by_key, by_id = index(keys), {identity: position for position, identity in enumerate(ids)}
    platforms = {identity.partition(":")[0] for identity in ids}
    claims: dict[int, list[AnyStudent]] = {}
    unknown = []
    for report in reports:
        names = alternatives(report.student, report.identity)
        if report.identity.partition(":")[0] in platforms:
            names = names[:1]
        person = roster.person(*names) if roster else None
        position = by_id.get(report.identity)
        if position is None and person is not None:
            rows = {by_key[text] for text in person.keys if text in by_key}
            position = rows.pop() if len(rows) == 1 else None
        if position is None:
            position = match(names[":" in report.identity :], by_key)  # a number means something on its platform alone
        if position is None:
            unknown.append(report.student)
        else:
            claims.setdefault(position, []).append(report)
    unknown += [report.student for claim in claims.values() if len(claim) > 1 for report in claim]
    return {at: claim[0] for at, claim in claims.items() if len(claim) == 1}, tuple(sorted(unknown))


def named(students: Sequence[str]) -> str:
    """List some names, as a sentence shows them."""
    more = f" and {len(students) - 10} more" if len(students) > 10 else ""
    return ", ".join(visible(student, 80) for student in students[:10]) + more
