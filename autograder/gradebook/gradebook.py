"""Reports → the gradebook (`grades.csv`) and the figures of a whole class."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TextIO

from autograder.vocabulary.errors import GraderFault
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import INVISIBLE, number, visible

COLUMNS = ("student", "points", "max_points", "status")

# What makes a spreadsheet read a cell as a formula. Compatibility forms (＝ ﹢ ⁻ …) are folded into these
# before the test; the true minus sign is no compatibility form, so it is named.
_FORMULA_STARTS = frozenset("=+-@\N{MINUS SIGN}")

# Where a spreadsheet may begin a cell: one that splits at another sign than ours takes our quotes for text.
SEPARATOR = re.compile(r"([,;\t\r\n])")


class Gradebook:
    """Writes `grades.csv` row by row: one per student, in the order in which they are added."""

    def __init__(
        self, stream: TextIO, items: Sequence[str], more: Mapping[str, Callable[[str], str]] | None = None
    ) -> None:
        """Write the head: `COLUMNS`, one column per item, then `more`: from a student to the text of the cell."""
        self._items, self._more = items, dict(more or {})
        self._writer = csv.writer(stream, lineterminator="\n")
        self._writer.writerow([name_cell(name) for name in (*COLUMNS, *items, *self._more)])

    def add(self, report: Report) -> None:
        """Write a student's row; a cell is empty where the grader failed.

        Raises GraderFault if the report holds an item that no column shows: the sum would hide it.
        """
        more = (name_cell(text(report.student)) for text in self._more.values())
        self._writer.writerow([*_row(report, self._items), *more])

    def add_absent(self, student: str, status: str) -> None:
        """Write the row of somebody without a report: no points, and not even what there was to earn."""
        more = (name_cell(text(student)) for text in self._more.values())
        self._writer.writerow([name_cell(student), "", "", status, *[""] * len(self._items), *more])


def to_csv(
    reports: Iterable[Report], items: Sequence[str], more: Mapping[str, Callable[[str], str]] | None = None
) -> str:
    """`grades.csv`, its rows sorted by student; `more` are columns at its end."""
    stream = io.StringIO()
    gradebook = Gradebook(stream, items, more)
    for report in sorted(reports, key=lambda report: report.student):
        gradebook.add(report)
    return stream.getvalue()


def _row(report: Report, items: Sequence[str]) -> list[str]:
    results = {result.item: result for result in report.items}
    unknown = [item for item in results if item not in items]
    if unknown:
        raise GraderFault(
            f"The report of {visible(report.student, 80)} holds the item {visible(unknown[0], 80)}, "
            "which the assignment lacks: it was graded with another version. Grade again with --fresh."
        )
    most = number(report.max_points)
    total = [name_cell(report.student), points_cell(report.points), most, report.status]
    return total + [points_cell(results[item].points) if item in results else "" for item in items]


def points_cell(points: float | None) -> str:
    """Points as the gradebook spells them; nothing where the grader failed."""
    return "" if points is None else number(points)


def name_cell(text: str) -> str:
    """Text as a cell that a spreadsheet takes for text; line breaks stay, for the csv module to quote."""
    return visible(harmless(text), newlines=True)


def harmless(cell: str) -> str:
    """Text with a `'` before whatever a spreadsheet would run, wherever it splits cells; `as_written` takes it out."""
    return "".join(f"'{part}" if _is_formula(part.lstrip("'")) else part for part in SEPARATOR.split(cell))


def as_written(cell: str) -> str:
    """What `harmless` was given."""
    parts = SEPARATOR.split(cell)
    return "".join(part[1:] if part[:1] == "'" and _is_formula(part.lstrip("'")) else part for part in parts)


def reads_as_formula(text: str) -> bool:
    """Whether some spreadsheet would take `text`, or a part of it as a cell of its own, for a formula."""
    return any(map(_is_formula, SEPARATOR.split(text)))


def _is_formula(part: str) -> bool:
    seen = next((character for character in part if not _is_skipped(character)), "")
    return unicodedata.normalize("NFKC", seen)[:1] in _FORMULA_STARTS


def _is_skipped(character: str) -> bool:
    """Whether a spreadsheet may drop `character` before it looks for a formula."""
    return character.isspace() or unicodedata.category(character) in INVISIBLE
