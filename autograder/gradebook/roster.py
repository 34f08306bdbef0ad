"""Who is in the course: a CSV file that says which student stands behind a platform's ids, logins and addresses."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import read_table
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
        found = match(names, self._known)
        return None if found is None else self.people[found]

    @functools.cached_property
    def _known(self) -> dict[str, int | None]:
        return index(person.keys for person in self.people)


def read_roster(path: Path) -> Roster:
    """The roster at `path`. Raises UsageError where no column holds names, or a student stands in it twice."""
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
    first, last = (_cell(cells, headings) for headings in (FIRST_NAMES, LAST_NAMES))
    student = _cell(cells, NAMES) or " ".join(part for part in (first, last) if part)
    names = {student, f"{first} {last}", f"{last}, {first}"} if first and last else {student}
    identities = {cell for heading, cell in cells.items() if heading in IDENTITIES}
    return Person(unicodedata.normalize("NFC", student), _cell(cells, ("group", "team")), keys_of(names | identities))


def _cell(cells: Mapping[str, str], headings: Iterable[str]) -> str:
    return next((cells[heading].strip() for heading in headings if cells.get(heading, "").strip()), "")


def plain_heading(cell: str) -> str:
    """A heading without what differs between platforms: `GitHub_Username` is `github username`."""
    return " ".join(re.sub(r"[_.]", " ", cell).casefold().split())


# Matching


def key(name: str) -> str:
    """`name` without what two ways of writing it may differ in: case, spacing, invisible marks, forms of letters."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    shown = "".join(one for one in folded if one.isspace() or unicodedata.category(one) not in INVISIBLE)
    return " ".join(shown.split())


def keys_of(names: Iterable[str]) -> frozenset[str]:
    """The keys by which somebody with these names and ids is found; `Diaz, Ana` is also `Ana Diaz` and `diazana`."""
    keys = set()
    for name in names:
        last, comma, first = name.partition(",")
        keys |= {key(name), key(name.lstrip("'")), *([key(f"{first} {last}"), _run_together(name)] if comma else [])}
    return frozenset(keys - {""})


def _run_together(name: str) -> str:
    """A sortable name as Canvas writes it into file names."""
    return "".join(filter(is_word, key(name)))


def is_word(character: str) -> bool:
    """Whether Ruby's `[[:word:]]` has it: letters, also circled ones, marks, decimal digits, connecting punctuation."""
    category = unicodedata.category(character)
    return category[0] in "LM" or category in ("Nd", "Nl", "Pc") or CIRCLED.fullmatch(character) is not None


def index(people: Iterable[frozenset[str]]) -> dict[str, int | None]:
    """Key → position of the one it stands for; None where it stands for several."""
    found: dict[str, int | None] = {}
    for position, keys in enumerate(people):
        for one in keys:
            found[one] = None if one in found else position
    return found


def match(names: Iterable[str], found: Mapping[str, int | None]) -> int | None:
    """The position that the first of `names` with a meaning stands for; None where that is nobody, or several."""
    return next((found[key(name)] for name in names if key(name) in found), None)


def alternatives(student: str, identity: str) -> list[str]:
    """What a student of a report may be called elsewhere: by the id first, then the name with it and without it.

    identity   as a report has it: what a name ends in is an id only where the platform's own layout said so
    """
    number = identity.rpartition(":")[2]
    return [number, student, student.removesuffix(f"_{number}")] if number else [student]
