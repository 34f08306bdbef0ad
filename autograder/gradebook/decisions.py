"""Read and keep what staff decided on single grades: a journal in the folder of grades, to which rows are only added.

    decisions.csv    when,who,student,item,points,comment

The last row for a student and an item counts; one without points and comment withdraws. `student` is the name of the
report's file, which tells apart what looks alike. An item is one of the assignment's, nothing for the whole grade, a
question in words of its notebook, whose points come on top, or a line of code, which has a comment alone:
`function:line:hand-in`, the line as the student's page counts it, the hand-in as the first 8 digits of its SHA-256.
Outside graded functions the number of a cell stands in place of the function, and in a file nothing.
What cannot be read is refused with its line, and nothing is written: a grade by half a file would be worse than none.
"""

from __future__ import annotations

import datetime
import getpass
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.authoring.handout.notebook import read_extras
from autograder.grading.assignment import Assignment
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import Row, alone, file_stem, read_rows, table_of, write_atomically
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import as_written, harmless, visible

JOURNAL = "decisions.csv"
COLUMNS = ("student", "item", "points", "comment")
LINE = re.compile(r"([^\W\d]\w*|\d{0,6}):(\d{1,6}):([0-9a-f]{8})")
LIVE = "Not saved"  # the place of a row that no file has: the form of the live view


@dataclass(frozen=True)
class Override:
    """What a person decided: points for an item, or for the whole where `item` is ""; None for a comment alone.

    student  the name of the report's file
    on_top   what the question in words is worth that `item` names; None where it names none
    """

    student: str
    item: str
    points: float | None
    comment: str
    place: str
    on_top: float | None = None


@dataclass(frozen=True)
class Decisions:
    """The journal of a folder of grades, and rows that are to be added to it.

    A new row says in `seen` which line it replaces, "" where its author saw none. Where the journal has another row for
    its student and item by now, it is refused, unless `replace` says that it is meant.
    """

    folder: Path
    assignment: Assignment
    new: Sequence[Row] = ()
    replace: bool = False

    @property
    def path(self) -> Path:
        """Where the journal lies."""
        return self.folder / JOURNAL

    def rows(self) -> list[Row]:
        """Read every row of the journal, the oldest first; raises UsageError where it cannot be read, or added to."""
        if not self.path.is_file():
            return []
        data = self.path.read_bytes()
        if b"\0" in data:  # rows could be read, but not added
            raise UsageError(f"{self.path} is no UTF-8 (UTF-16?): save it as UTF-8.")
        if data and not data.endswith(b"\n"):  # half a row might read as a whole one, or withdraw
            place = f"{self.path}, line {len(data.splitlines())}"
            raise UsageError(f"{place}: the last line is cut short: complete it and end it, or delete it.")
        rows = read_rows(self.path, ("when", "who", *COLUMNS), data=data)
        return [Row(row.place, {name: as_written(cell) for name, cell in row.cells.items()}) for row in rows]

    def merged(self) -> tuple[list[Row], list[Override], list[str]]:
        """Return the rows to add, what counts with them, and a sentence for each decision that they replace.

        Raises UsageError naming the line of what cannot be.
        """
        last = {(row["student"], row["item"]): row for row in self.rows()}
        added, replaced = [], []
        for row in self.new:
            key = row["student"], row["item"]
            old = last.get(key)
            same = old is not None and (_points(row), row["comment"]) == (_points(old), old["comment"])
            if same or (old is None and _withdraws(row)):
                continue
            if old is not None and row["seen"] != line_of(old):
                replaced.append(f"{row.place}: {visible(key[0], 80)}, {key[1] or 'the whole grade'} {_described(old)}")
            added.append(row)
            last[key] = row
        if replaced and not self.replace:
            more = f"; and {len(replaced) - 10} more" if len(replaced) > 10 else ""
            how = "save again" if self.new[-1].place == LIVE else "give --replace"
            raise UsageError(f"{'; '.join(replaced[:10])}{more}. Nothing was written: {how}, if you mean it.")
        return added, _overrides([row for row in last.values() if not _withdraws(row)], self.assignment), replaced

    def keep(self) -> list[Override]:
        """Add the new rows to the journal, and return what counts then. What others added meanwhile stays."""
        with alone(self.folder / "reports", wait=True):  # another lock than a run's
            added, overrides, _ = self.merged()
            if added:
                data = self.path.read_bytes() if self.path.is_file() else f"when,who,{','.join(COLUMNS)}\n".encode()
                table = table_of(data, self.path)
                now = {"when": datetime.datetime.now(datetime.UTC).isoformat(" ", "seconds")}
                columns = [name.strip().lower() for name in table.header]
                lines = [[harmless((row.cells | now)[name]) for name in columns] for row in added]
                rows = table.text(lines).removeprefix("\N{BYTE ORDER MARK}").encode()
                write_atomically(self.path, data + rows)
        return overrides


def decisions_of(
    folder: Path, assignment: Assignment, files: Sequence[Path] = (), *, replace: bool = False
) -> Decisions:
    """Gather the decisions of a folder, with the rows of these files, which name students and are to be added."""
    new = []
    for path in files:
        seen: set[tuple[str, str]] = set()
        for row in read_rows(path, COLUMNS):
            if not (name := as_written(row["student"])):
                raise row.wrong("a row without a student.")
            key = file_stem(name), row["item"]
            if key in seen:
                raise row.wrong(f"{visible(name, 80)} has another row for {key[1] or 'the whole'}: keep one of them.")
            if row["points"] and not row["comment"]:
                raise row.wrong("a change without a reason: say in `comment` why, the student reads it.")
            seen.add(key)
            who = f"{login_name()} ({visible(path.name, 80)})"
            cells = {"student": key[0], "comment": as_written(row["comment"]), "when": "", "who": who, "seen": ""}
            new.append(Row(row.place, row.cells | cells))
    return Decisions(folder, assignment, new, replace)


def is_line_of(item: str, report: Report) -> bool:
    """Tell whether an item of the journal is a line of just this hand-in: another one has other lines."""
    line = LINE.fullmatch(item)
    return line is not None and report.submission.sha256.startswith(line[3])


def place_of(item: str) -> str:
    """Word an item that is a line of code: `compute_loss, line 12`, `cell 5, line 3`, `line 1`; "" for any other."""
    line = LINE.fullmatch(item)
    where = f"cell {line[1]}" if line and line[1].isdigit() else line[1] if line else ""
    return f"{where}, line {line[2]}".removeprefix(", ") if line else ""


def login_name() -> str:
    """Name who runs this, as the system knows them."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container may know numbers alone
        return "unknown"


def line_of(row: Row) -> str:
    """Return the line of its file on which a row begins."""
    return row.place.rpartition("line ")[2]


def _overrides(rows: Sequence[Row], assignment: Assignment) -> list[Override]:
    """Read the overrides that rows say, all of which count; raises UsageError naming the line of what cannot be."""
    most = {item.id: item.points for item in assignment.items}
    for line in filter(None, (LINE.fullmatch(row["item"]) for row in rows)):
        if not line[1] or line[1].isdigit() or line[1] in assignment.functions:
            most[line[0]] = 0.0
    asked = any(row["item"] not in {*most, ""} for row in rows)
    extras = read_extras(assignment).question if asked else ()
    questions = {entry.id: entry.points for entry in extras}
    marked = {row["item"] for row in rows if row["points"]} & set(questions)
    most = questions | most | {"": assignment.max_points + sum(questions[name] for name in marked)}
    overrides = []
    for row in rows:
        item, points = row["item"], _points(row)
        if not row["student"]:
            raise row.wrong("a row without a student.")
        if item not in most:
            shown = visible(item, 80)
            raise row.wrong(f"there is no item {shown!r} in {assignment.name}; leave it empty for the whole grade.")
        if points is not None and points > most[item]:
            raise row.wrong(f"{points:g} points, but {item or 'the assignment'} has {most[item]:g}.")
        overrides.append(Override(row["student"], item, points, row["comment"], row.place, questions.get(item)))
    return overrides


def _withdraws(row: Row) -> bool:
    return not row["points"] and not row["comment"]


def _described(row: Row) -> str:
    """Word a row of the journal as the end of a sentence: `has 3 points ("half") by anna on 2026-11-20`."""
    points = f"{visible(row['points'], 40)} point{'s' * (row['points'] != '1')}"
    what = f"has {points if row['points'] else 'a comment'}"
    what += f' ("{visible(row["comment"], 200)}")' if row["comment"] else ""
    when = f" on {visible(row['when'][:10], 40)}" if row["when"] else ""
    return f"{'was withdrawn' if _withdraws(row) else what} by {visible(row['who'], 80) or 'somebody'}{when}"


def _points(row: Row) -> float | None:
    """Read the points that a row gives; None for a comment alone."""
    if not row["points"]:
        return None
    if not re.fullmatch(r"\d{1,6}([.,]\d{1,4})?", row["points"]):
        raise row.wrong(f"{visible(row['points'], 40)!r} is no number of points: 4 or 3.5, or nothing for a comment.")
    return float(row["points"].replace(",", "."))
