"""What staff decided on single grades: a journal in the folder of grades, to which rows are only added.

    decisions.csv    when,who,student,item,points,comment

The last row for a student and an item counts; one without points and comment withdraws. `student` is the name of the
report's file, which tells apart what looks alike. An item is one of the assignment's, nothing for the whole grade, or a
question in words of its notebook, whose points come on top. What cannot be read is refused with its line, and nothing
is written: a grade by half a file would be worse than none.
"""

from __future__ import annotations

import contextlib
import datetime
import getpass
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.authoring.handout.source_notebook import read_extras
from autograder.gradebook.gradebook import reads_as_formula
from autograder.grading.items import Assignment
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import file_stem, write_atomically
from autograder.vocabulary.report import read_report
from autograder.vocabulary.rows import Row, read_rows, rows_in, table_of
from autograder.vocabulary.text import visible

JOURNAL = "decisions.csv"
EARLIER = "overrides.csv"  # where an earlier kit kept decisions
COLUMNS = ("student", "item", "points", "comment")
HEADER = ("when", "who", *COLUMNS)
REPLACE = "Nothing was written: --replace puts the new rows in the place of these decisions."


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

    A new row names the line of the row that it replaces in `seen`; "" where its author saw none. Where the journal has
    another row for its student and item by now, it is refused, unless `replace` says that it is meant.
    """

    folder: Path
    assignment: Assignment
    new: Sequence[Row] = ()
    replace: bool = False
    advice: str = REPLACE

    def rows(self) -> list[Row]:
        """Every row of the journal, the oldest first."""
        return _rows(self._data(), self.folder / JOURNAL)

    def overrides(self) -> list[Override]:
        """What counts once the new rows are added; raises UsageError naming the line of what cannot be."""
        return self._merged(self.rows())[1]

    def replaced(self) -> list[str]:
        """Which decisions the new rows replace: a sentence for each."""
        return self._merged(self.rows())[2]

    def keep(self) -> list[Override]:
        """Add the new rows to the journal, and return what counts then. What others added meanwhile stays."""
        with _turn(self.folder):
            data = self._data()
            rows = _rows(data, self.folder / JOURNAL)
            added, overrides, _ = self._merged(rows)
            if added:
                data = _with_rows(data, self.folder / JOURNAL, added)
                if len(_rows(data, self.folder / JOURNAL)) != len(rows) + len(added):
                    raise UsageError(f"{self.folder / JOURNAL} is not UTF-8: save it as UTF-8, as it was.")
                write_atomically(self.folder / JOURNAL, data)
            with contextlib.suppress(FileNotFoundError):
                (self.folder / EARLIER).rename(self.folder / f"{EARLIER}.taken")
        return overrides

    def _data(self) -> bytes:
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / JOURNAL).read_bytes()
        return b""

    def _merged(self, rows: Sequence[Row]) -> tuple[list[Row], list[Override], list[str]]:
        """The rows to add, what counts with them, and which decisions they replace."""
        last = {(row["student"], row["item"]): row for row in rows}
        added, conflicts = [], []
        for row in self.new:
            key = row["student"], row["item"]
            old = last.get(key)
            if _withdraws(row) if old is None else _value(row) == _value(old):
                continue
            if old is not None and row["seen"] != line_of(old):
                conflicts.append(f"{row.place}: {visible(key[0], 80)}, {key[1] or 'the whole grade'} {described(old)}")
            added.append(row)
            last[key] = row
        if conflicts and not self.replace:
            more = f"; and {len(conflicts) - 10} more" if len(conflicts) > 10 else ""
            raise UsageError(f"{'; '.join(conflicts[:10])}{more}. {self.advice}")
        return added, _overrides([row for row in last.values() if not _withdraws(row)], self.assignment), conflicts


def decisions_of(
    folder: Path,
    assignment: Assignment,
    files: Sequence[Path] = (),
    students: Iterable[str] = (),
    *,
    replace: bool = False,
) -> Decisions:
    """The decisions of a folder with the rows of these files, which are about `students` or have a report there.

    A file of an earlier kit in the folder is one of the files. UsageError names the line of what cannot be used.
    """
    earlier = [folder / EARLIER] if (folder / EARLIER).is_file() else []
    new: list[Row] = []
    if earlier or files:
        spelled = _spellings(folder, students)
        new = [row for path in (*earlier, *files) for row in _new_rows(path, spelled)]
    return Decisions(folder, assignment, new, replace)


def login_name() -> str:
    """Who runs this, as the system knows them."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container may know numbers alone
        return f"user {os.getuid()}"


def counting(overrides: Iterable[Override]) -> dict[str, float]:
    """The questions that count, with what they are worth: those for which somebody has points."""
    given = [row for row in overrides if row.points is not None]
    return {row.item: row.on_top for row in given if row.on_top is not None}


def described(row: Row) -> str:
    """A row of the journal as the end of a sentence: `has 3 points by anna on 2026-11-20`."""
    what = f"has {visible(row['points'], 40)} points" if row["points"] else "has a comment"
    when = f" on {visible(row['when'][:10], 40)}" if row["when"] else ""
    by = f" by {visible(row['who'], 80) or 'somebody'}"
    return f"{'was withdrawn' if _withdraws(row) else what}{by}{when}"


def line_of(row: Row) -> str:
    """The line of its file on which a row begins."""
    return row.place.rpartition("line ")[2]


# Files


def _spellings(folder: Path, students: Iterable[str]) -> dict[str, set[str]]:
    """What a file may call a student → the reports that it may mean: by name, as grades.csv spells it, by file."""
    names = {file_stem(student): student for student in students}
    for path in (folder / "reports").glob("*.json"):
        if path.stem not in names and (report := read_report(path)) is not None:
            names[path.stem] = report.student
    spelled: dict[str, set[str]] = {}
    for stem, student in names.items():
        for text in (stem, student, visible(student)):
            spelled.setdefault(text, set()).add(stem)
    return spelled


def _new_rows(path: Path, spelled: Mapping[str, set[str]]) -> list[Row]:
    """The rows of an overrides file, each by the report that it is about."""
    rows: dict[tuple[str, str], Row] = {}
    who = f"{login_name()} ({visible(path.name, 80)})"
    for row in read_rows(path, COLUMNS):
        name = _plain(row["student"])
        if not name:
            raise row.wrong("a row without a student.")
        reports = sorted(spelled.get(name, ()))
        if len(reports) != 1:
            several = f"may be {' or '.join(reports)}, the names of two reports: give another spelling"
            found = f"{visible(name, 80)} {several}" if reports else f"nobody called {visible(name, 80)} handed in"
            raise row.wrong(f"{found}.")
        key = reports[0], row["item"]
        if key in rows:
            raise row.wrong(f"{visible(name, 80)} has another row for {key[1] or 'the whole'}: keep one of them.")
        cells = {"student": key[0], "comment": _plain(row["comment"]), "when": "", "who": who, "seen": ""}
        rows[key] = Row(row.place, row.cells | cells)
    return list(rows.values())


def _rows(data: bytes, path: Path) -> list[Row]:
    if not data.strip():
        return []
    if not data.endswith(b"\n"):  # half a row might read as a whole one, or withdraw
        last = data.count(b"\n") + 1
        raise UsageError(f"{path}, line {last}: the last line is cut short: complete it and end it, or delete it.")
    rows = rows_in(data, path, HEADER)
    return [Row(row.place, {name: _plain(cell) for name, cell in row.cells.items()}) for row in rows]


def _with_rows(data: bytes, path: Path, rows: Sequence[Row]) -> bytes:
    """The journal's bytes with these rows at their end, written as the others are."""
    data = data if data.strip() else (",".join(HEADER) + "\n").encode()
    table = table_of(data, path)
    when = datetime.datetime.now(datetime.UTC).isoformat(" ", "seconds")
    cells = [{**row.cells, "when": when} for row in rows]
    lines = [[_cell(row[name.strip().lower()]) for name in table.header] for row in cells]
    return data + table.text(lines).removeprefix("\N{BYTE ORDER MARK}").encode()


@contextlib.contextmanager
def _turn(folder: Path) -> Iterator[None]:
    """Keep others from adding to the journal. The lock goes with the process, and is another than a run's."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    descriptor = os.open(folder / "reports", os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a file system that has no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


# Rows


def _overrides(rows: Sequence[Row], assignment: Assignment) -> list[Override]:
    own = {item.id for item in assignment.items} | {""}
    asked = any(row["item"] not in own for row in rows)
    questions = {str(one["id"]): float(one["points"]) for one in read_extras(assignment).questions} if asked else {}
    overrides = [_override(row, assignment, questions) for row in rows]
    whole = assignment.max_points + sum(counting(overrides).values())
    for row in rows:
        if not row["item"]:
            _refuse_more(row, _points(row), whole)
    return overrides


def _override(row: Row, assignment: Assignment, questions: dict[str, float]) -> Override:
    most = questions | {item.id: item.points for item in assignment.items} | {"": math.inf}
    if not row["student"]:
        raise row.wrong("a row without a student.")
    if row["item"] not in most:
        item = visible(row["item"], 80)
        raise row.wrong(f"there is no item {item!r} in {assignment.name}; leave it empty for the whole grade.")
    if not row["comment"]:
        raise row.wrong("a change without a reason: say in `comment` why, the student reads it.")
    points = _points(row)
    _refuse_more(row, points, most[row["item"]])
    return Override(row["student"], row["item"], points, row["comment"], row.place, questions.get(row["item"]))


def _refuse_more(row: Row, points: float | None, most: float) -> None:
    if points is not None and points > most:
        raise row.wrong(f"{points:g} points, but {row['item'] or 'the assignment'} has {most:g}.")


def _withdraws(row: Row) -> bool:
    return not row["points"] and not row["comment"]


def _value(row: Row) -> tuple[float | None, str]:
    """What makes two rows of a student and an item the same decision."""
    return _points(row), row["comment"]


def _points(row: Row) -> float | None:
    """The points that a row gives; None for a comment alone."""
    if not row["points"]:
        return None
    if not re.fullmatch(r"\d{1,6}([.,]\d{1,4})?", row["points"]):
        raise row.wrong(f"{visible(row['points'], 40)!r} is no number of points: 4 or 3.5, or nothing for a comment.")
    return float(row["points"].replace(",", "."))


def _cell(text: str) -> str:
    """Text as a cell that no spreadsheet takes for a formula, as the gradebook spells it; `_plain` reads it back."""
    return f"'{text}" if reads_as_formula(text.lstrip("'")) else text


def _plain(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and reads_as_formula(cell.lstrip("'")) else cell
