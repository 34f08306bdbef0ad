"""Which of a term's variants is whose: a keyed hash of the student's name chooses one.

<set>/manifest.json          "term": {"variants": {"count": 8, "key": "…"}}
<set>/per-student/01/        a whole set: public cases of its own, the hidden ones of the term
"""

from __future__ import annotations

import hashlib
import hmac
import json
import unicodedata
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from autograder.grading.fixtures import MANIFEST, Fixtures, read_fixtures
from autograder.grading.items import Assignment
from autograder.vocabulary.errors import FixtureError, UsageError

OWN = "per-student"


def variant_folder(folder: Path, number: int) -> Path:
    """Where the set's variant of that number lies, counted from 1."""
    return folder / OWN / f"{number:02}"


@dataclass(frozen=True)
class Variants:
    """The variants of a set of fixtures. The key lets nobody but staff say who shares a variant with whom."""

    assignment: Assignment
    folder: Path
    count: int
    key: str = field(repr=False)

    def number_of(self, student: str) -> int:
        """The variant of this student, from 1: the same for every spelling of a name that looks the same."""
        name = unicodedata.normalize("NFKC", student).strip()
        digest = hmac.new(self.key.encode(), name.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
        return int.from_bytes(digest, "big") % self.count + 1

    def folder_of(self, student: str) -> Path:
        """The folder of this student's set."""
        return variant_folder(self.folder, self.number_of(student))

    def fixtures_of(self, student: str) -> Fixtures:
        """This student's set."""
        return self.all[self.number_of(student) - 1]

    @cached_property
    def all(self) -> tuple[Fixtures, ...]:
        """Every variant's set, read once."""
        numbers = range(1, self.count + 1)
        return tuple(read_fixtures(self.assignment, folder=variant_folder(self.folder, n)) for n in numbers)


def read_variants(assignment: Assignment, folder: Path) -> Variants:
    """The variants that lie in `folder`; raises UsageError where there are none."""
    try:
        term = json.loads((folder / MANIFEST).read_text(encoding="utf-8")).get("term", {})
    except (OSError, ValueError, AttributeError) as error:
        raise FixtureError(f"{folder / MANIFEST} cannot be read: {error}.") from error
    made = term.get("variants", {}) if isinstance(term, dict) else {}
    if not isinstance(made, dict) or not {"count", "key"} <= made.keys():
        raise UsageError(
            f"{folder} holds no variants: `autograder fixtures regenerate --term … --secret-file … --variants 8` "
            "makes them."
        )
    variants = Variants(assignment, folder, int(made["count"]), str(made["key"]))
    if variants.count < 1:
        raise FixtureError(f"{folder / MANIFEST} counts {variants.count} variants: make the set anew.")
    return variants
