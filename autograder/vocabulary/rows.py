"""CSV files that staff hand to the kit: overrides, times. Whatever does not fit is refused with its line."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.text import visible

MAX_BYTES = 32 * 2**20
DELIMITERS = ",;\t"


@dataclass(frozen=True)
class Table:
    """A CSV file as a platform wrote it: its cells, and what it takes to write it the same way."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    delimiter: str = ","
    newline: str = "\n"
    bom: bool = False

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


def read_table(path: Path) -> Table:
    """The CSV file at `path`: UTF-8, with commas, semicolons or tabs. Raises UsageError where it is not one."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise UsageError(f"{path} is larger than {MAX_BYTES // 2**20} MiB: is it the right file?")
        text = data.decode("utf-8-sig")
        return _table(text, bom=data.startswith(b"\xef\xbb\xbf"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): check the path.") from None
    except (UnicodeDecodeError, csv.Error, ValueError) as error:
        raise UsageError(f"{path} is not a CSV file in UTF-8 ({error}): save it as one.") from None


def _table(text: str, *, bom: bool) -> Table:
    first = re.match(r'(?:[^"\r\n]|"(?:[^"]|"")*")*', text)
    bare = re.sub(r'"(?:[^"]|"")*"', "", first[0] if first else "")
    delimiter = max(DELIMITERS, key=bare.count)
    rows = [tuple(row) for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True) if row]
    if not rows:
        raise ValueError("it is empty")
    width = len(rows[0])
    if long := next((number for number, row in enumerate(rows, 1) if len(row) > width and any(row[width:])), 0):
        raise ValueError(f"row {long} has more cells than the first")
    even = tuple((*row, *[""] * (width - len(row)))[:width] for row in rows)
    return Table(even[0], even[1:], delimiter, "\r\n" if "\r\n" in text else "\n", bom)


def read_rows(path: Path, columns: Sequence[str], *, others: bool = False) -> list[Row]:
    """The rows of a CSV file with just these columns, in any order; `others` allows more, which are left out.

    A row without any text is skipped. Raises UsageError naming the line of what cannot be used.
    """
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    rows: list[Row] = []
    try:
        header = [name.strip().lower() for name in next(reader, [])]
        _check_header(path, header, columns, others=others)
        start = reader.line_num + 1
        for cells in reader:
            place, start = f"{path}, line {start}", reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(header):
                raise UsageError(f"{place}: {len(cells)} cells, but the first line names {len(header)} columns.")
            named = dict(zip(header, (cell.strip() for cell in cells), strict=True))
            rows.append(Row(place, {name: named[name] for name in columns}))
    except csv.Error as error:
        raise UsageError(f"{path}, line {reader.line_num}: this is not CSV ({error}).") from error
    return rows


def read_text(path: Path) -> str:
    """The text of a small UTF-8 file; raises UsageError where it cannot be read."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    if len(data) > MAX_BYTES:
        raise UsageError(f"{path} is larger than {MAX_BYTES // 2**20} MiB.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UsageError(f"{path}, line {line}: this is not UTF-8. Save the file as UTF-8.") from error


def _check_header(path: Path, header: Sequence[str], columns: Sequence[str], *, others: bool) -> None:
    wrong = [name for name in columns if header.count(name) != 1]
    more = [name for name in header if name not in columns]
    if wrong or (more and not others):
        found = ", ".join(visible(name, 40) for name in header) or "nothing"
        raise UsageError(f"{path}, line 1: the columns should be {','.join(columns)}; found: {found}.")
