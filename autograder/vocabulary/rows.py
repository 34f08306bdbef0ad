"""CSV files that staff hand to the kit: rosters, overrides, times, gradebooks, worksheets. There is no other reader.

UTF-8 with a mark or without, or UTF-16 with one, as Blackboard writes it; between cells commas, semicolons or tabs.
What does not fit is refused with its line.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.text import visible

MAX_BYTES = 32 * 2**20
DELIMITERS = ",;\t"
MARK = b"\xef\xbb\xbf"  # which Excel puts before UTF-8


@dataclass(frozen=True)
class Table:
    """A CSV file as it was found: its cells, and what it takes to write it the same way.

    rows    each as wide as the header
    lines   of the file, where each row begins
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    delimiter: str = ","
    newline: str = "\n"
    bom: bool = False
    lines: tuple[int, ...] = ()

    def text(self, rows: Iterable[Sequence[str]]) -> str:
        """These rows in the manner of the file, header included where it is among them."""
        lines = [self._line(row) + self.newline for row in rows]
        return ("\N{BYTE ORDER MARK}" if self.bom else "") + "".join(lines)

    def _line(self, row: Sequence[str]) -> str:
        stream = io.StringIO()
        csv.writer(stream, delimiter=self.delimiter, lineterminator="\r\n").writerow(row)  # so that it quotes both
        return stream.getvalue().removesuffix("\r\n")


@dataclass(frozen=True)
class Row:
    """One row: its file and line, for sentences, and its cells by column, without white space around them."""

    place: str
    cells: dict[str, str]

    def __getitem__(self, column: str) -> str:
        """The cell of that column."""
        return self.cells[column]

    def wrong(self, sentence: str) -> UsageError:
        """What to raise where this row cannot be used."""
        return UsageError(f"{self.place}: {sentence}")


def read_rows(path: Path, columns: Sequence[str], *, others: bool = False) -> list[Row]:
    """The rows of a CSV file with just these columns, in any order; `others` allows more, which are left out.

    A row without any text is skipped. Raises UsageError naming the line of what cannot be used.
    """
    return rows_in(_bytes(path), path, columns, others=others)


def rows_in(data: bytes, path: Path, columns: Sequence[str], *, others: bool = False) -> list[Row]:
    """The rows in these bytes, which are those of `path` or are to be; otherwise as `read_rows`."""
    table = table_of(data, path, whole_rows=True)
    header = [name.strip().lower() for name in table.header]
    _check_header(path, header, columns, others=others)
    named = [dict(zip(header, map(str.strip, row), strict=True)) for row in table.rows]
    places = [f"{path}, line {line}" for line in table.lines]
    found = zip(places, named, strict=True)
    return [Row(place, {name: row[name] for name in columns}) for place, row in found if any(row.values())]


def read_table(path: Path) -> Table:
    """The CSV file at `path`; raises UsageError naming the line of what cannot be used."""
    return table_of(_bytes(path), path)


def table_of(data: bytes, path: Path, *, whole_rows: bool = False) -> Table:
    """The table in these bytes, which are those of `path`; a row is as long as the header, or filled up.

    whole_rows   refuse what would have to be filled up, where a cell too few or too many would move others
    """
    text = _decoded(data, path)
    delimiter = _delimiter(text)
    (_, header), *rows = list(_rows(text, delimiter, path)) or [(1, [])]
    if not header:
        raise UsageError(f"{path} is empty: its first line should name the columns.")
    width = len(header)
    for line, row in rows:
        if any(row[width:]) or (whole_rows and any(map(str.strip, row)) and len(row) != width):
            raise UsageError(f"{path}, line {line}: {len(row)} cells, but the first line names {width} columns.")
    even = tuple((*row, *[""] * (width - len(row)))[:width] for _, row in rows)
    newline, lines = "\r\n" if "\r\n" in text else "\n", tuple(line for line, _ in rows)
    return Table(tuple(header), even, delimiter, newline, data.startswith(MARK), lines)


def read_text(path: Path) -> str:
    """The text of a small UTF-8 file; raises UsageError where it cannot be read."""
    return _decoded(_bytes(path), path)


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{path} cannot be read ({reason}): check the path.") from error
    if len(data) > MAX_BYTES:
        raise UsageError(f"{path} is larger than {MAX_BYTES // 2**20} MiB: is it the right file?")
    return data


def _decoded(data: bytes, path: Path) -> str:
    try:
        return data.decode("utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UsageError(f"{path}, line {line}: this is not UTF-8. Save the file as UTF-8.") from error


def _delimiter(text: str) -> str:
    """What stands between the cells of the first line: whichever is there most, outside quotes."""
    first = re.match(r'(?:[^"\r\n]|"(?:[^"]|"")*")*', text)
    bare = re.sub(r'"(?:[^"]|"")*"', "", first[0] if first else "")
    return max(DELIMITERS, key=bare.count)


def _rows(text: str, delimiter: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Each row that is not an empty line, with the line on which it begins."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    start = 1
    try:
        for row in reader:
            if row:
                yield start, row
            start = reader.line_num + 1
    except csv.Error as error:
        raise UsageError(f"{path}, line {reader.line_num}: this is not CSV ({error}).") from error


def _check_header(path: Path, header: Sequence[str], columns: Sequence[str], *, others: bool) -> None:
    wrong = [name for name in columns if header.count(name) != 1]
    more = [name for name in header if name not in columns]
    if wrong or (more and not others):
        found = ", ".join(visible(name, 40) for name in header)
        raise UsageError(f"{path}, line 1: the columns should be {','.join(columns)}; found: {found}.")
