"""A submission's text as its page shows it: coloured lines, with marks at what failed.

Nothing here runs a line of it, everything has a cap, and all of it is escaped.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType

from markupsafe import Markup, escape
from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType

from autograder.checking.fault_lines import line_in_message
from autograder.submissions.submission import BREAK, Submission
from autograder.vocabulary.report import ItemResult, Report
from autograder.vocabulary.text import counted, visible

MAX_BYTES = 80_000  # of all listings of a page, as HTML
LINE_BYTES = 60  # of a line's own markup
MAX_UNREAD = 12  # cells that are shown of those that could not be read
HEAD, AROUND = 12, 8  # lines that are shown of a long piece: its first, and those around what is marked
MAX_WIDTH, TAB = 240, 4  # characters of a line, and of a tab
PLACE = re.compile(r"Line (\d+) of (?:cell (\d+)|your file)")  # as `Submission.place` words it
# The first that a token is in gives its class. f: what is defined; i: what a string interpolates, which is no text.
CLASSES: tuple[tuple[_TokenType, str], ...] = (
    (Comment, "c"),
    (String.Interpol, "i"),
    (String, "s"),
    (Number, "m"),
    (Keyword, "k"),
    (Operator.Word, "k"),
    (Name.Function, "f"),
    (Name.Class, "f"),
    (Name.Decorator, "f"),
    (Name.Builtin, "b"),
)
NO_LINES: Mapping[str, int] = MappingProxyType({})

Span = tuple[int, int]
LEXER = PythonLexer(stripnl=False, ensurenl=False)


@dataclass(frozen=True)
class Line:
    """A line that is shown, or a row in its place.

    at        of the source, from 1: its anchor
    number    as the handed-in file, or the cell, counts; 0 for a row that is no line
    items     whose failure concerns it
    is_cause  whether it kept everything from being reached
    said      what is to be said at it besides
    """

    at: int
    number: int
    html: Markup
    items: tuple[ItemResult, ...] = ()
    is_cause: bool = False
    said: str = ""

    @property
    def plain(self) -> Markup:
        """Return the markup of a line without marks, as most are; empty for others."""
        if not self.number or self.items or self.is_cause or self.said:
            return Markup("")
        return Markup(f'<span class="l" data-n="{self.number}">{self.html}\n</span>')


@dataclass(frozen=True)
class Piece:
    """Lines that stand together; `place` says which they are: `lines 40 to 62`, `cell 7, line 3`."""

    place: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Listing:
    """What is shown of a submission's text.

    pieces   function → as it was handed in
    rest     what is no graded function: number of the cell → its lines; of a file, "" → all of them
    helped   functions that call others of the student's, which are not graded
    places   item → the line that it concerns, and where that is in words
    cause    the same of what kept everything from being reached
    unread   cells of a notebook that could not be read
    """

    pieces: Mapping[str, Piece] = field(default_factory=dict)
    rest: Mapping[str, Piece] = field(default_factory=dict)
    helped: Sequence[str] = ()
    places: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    cause: tuple[int, str] | None = None
    unread: tuple[Piece, ...] = ()

    def around(self, at: int, count: int = 2) -> list[Line]:
        """Return a line and those around it, as far as they are shown."""
        for piece in (*self.pieces.values(), *self.rest.values(), *self.unread):
            if any(line.at == at for line in piece.lines):
                return [line for line in piece.lines if line.number and abs(line.at - at) <= count]
        return []


NOTHING = Listing()


def listing_of(
    submission: Submission, report: Report, functions: Sequence[str], found: Mapping[str, int] = NO_LINES
) -> Listing:
    """List what was graded, and cells that could not be read; nothing where there is no text at all.

    found   item → the line that it concerns
    """
    if not submission.source and not submission.unread_cells:
        return NOTHING
    count = len(BREAK.split(submission.source))
    unread, unread_cause = _unread_cells(submission, report, count)
    room = MAX_BYTES - sum(_size(line.html) for piece in unread for line in piece.lines)
    said = {item.item: found.get(item.item) or line_in_message(item.message, submission) for item in report.items}
    marks = {item: line for item, line in said.items() if line is not None and 1 <= line <= count}
    items = {at: tuple(item for item in report.items if marks.get(item.item) == at) for at in marks.values()}
    cause_at = line_in_message(report.cause, submission)
    text = _Text(submission, items, cause_at, room)
    defined = {name: function for name, function in submission.functions.items() if name in functions}
    spans = {name: (function.first, function.last) for name, function in defined.items()}

    def is_marked(name: str) -> bool:
        return any(spans[name][0] <= at <= spans[name][1] for at in text.marked)

    # Marked functions come first: the room may not be enough for all.
    ordered = sorted(spans, key=lambda name: (not is_marked(name), functions.index(name)))
    pieces = {name: text.piece([spans[name]]) for name in ordered}
    rest = {cell: text.piece(left) for cell, left in text.left_by(spans.values()).items()}
    shown = {line.at for piece in (*pieces.values(), *rest.values()) for line in piece.lines if line.number}
    places = {item: (line, submission.place(line)) for item, line in marks.items() if line in shown}
    cause = unread_cause if cause_at not in shown or cause_at is None else (cause_at, submission.place(cause_at))
    return Listing(pieces, rest, [*filter(submission.has_helpers, pieces)], places, cause, unread)


def _unread_cells(
    submission: Submission, report: Report, before: int
) -> tuple[tuple[Piece, ...], tuple[int, str] | None]:
    """List cells that could not be read, each marked where Python stopped, and find the one that the report blames.

    Their lines are counted on from `before`, since an anchor names one line of a page.
    """
    pieces: list[Piece] = []
    cause: tuple[int, str] | None = None
    room = MAX_BYTES // 2
    for cell in submission.unread_cells[:MAX_UNREAD]:
        count = len(BREAK.split(cell.code))
        alone = replace(submission, source=cell.code, cells=((1, cell.number),), unread_cells=())
        at = min(max(cell.line, 1), count)
        is_cause = cell.note.casefold() in report.cause.casefold()
        if is_cause and cause is None:
            cause = before + at, alone.place(at)
        piece = _Text(alone, {}, at, room // 2).piece([(1, count)])
        said = "Python cannot read on from here" if cell.line else "Python cannot read this cell"
        marked = [
            replace(line, at=before + line.at, is_cause=is_cause and line.at == at, said=said if line.at == at else "")
            for line in piece.lines
        ]
        pieces.append(replace(piece, lines=tuple(marked)))
        room -= sum(_size(line.html) for line in marked)
        before += count
    if (more := len(submission.unread_cells) - MAX_UNREAD) > 0:
        pieces.append(Piece("", (_row(f"… {counted(more, 'more cell')} that could not be read"),)))
    return tuple(pieces), cause


class _Text:
    """A text to cut pieces out of: in colours, unless that takes more room, in bytes, than there is."""

    def __init__(
        self, submission: Submission, items: Mapping[int, tuple[ItemResult, ...]], cause: int | None, room: int
    ) -> None:
        self.submission, self.items, self.cause, self.room = submission, items, cause, room
        self.marked = {*items, *([] if cause is None else [cause])}
        # A line is cut where it is too wide, and at its end: Pygments takes the square of white space over many lines.
        self.lines = [line.rstrip()[: MAX_WIDTH + 1].expandtabs(TAB) for line in BREAK.split(submission.source)]
        lines = [line if len(line) <= MAX_WIDTH else f"{line[:MAX_WIDTH]}…" for line in self.lines]
        # Colours cost a long text time, and more room than it has by itself.
        self.html = coloured(lines) if sum(map(_size, lines)) <= room else ()
        self.is_whole = bool(self.html) and sum(map(_size, self.html)) <= room
        if not self.is_whole:
            self.html = [escape(visible(line)) for line in lines]

    def left_by(self, taken: Iterable[Span]) -> dict[str, list[Span]]:
        """Find what no span has taken, without the empty lines around, by the number of its cell."""
        begins = [begin for begin, _ in self.submission.cells] or [1]
        ends = [*(begin - 2 for begin in begins[1:]), len(self.lines)]  # without the line that names the next cell
        left: dict[str, list[Span]] = {}
        first = 1
        for next_first, next_last in (*sorted(taken), (len(self.lines) + 1, 0)):
            for begin, end in zip(begins, ends, strict=True):
                span = range(max(first, begin), min(next_first - 1, end) + 1)
                if written := [at for at in span if self.lines[at - 1].strip()]:
                    left.setdefault(self._numbered(written[0])[0], []).append((written[0], written[-1]))
            first = max(first, next_last + 1)
        return left

    def piece(self, spans: Sequence[Span]) -> Piece:
        """Show these lines, or where there is no room for all the first ones and those around marks.

        A row stands where lines are left out.
        """
        rows: list[Line] = []
        near = {at + offset for at in self.marked for offset in range(-AROUND, AROUND + 1)}
        for first, last in spans:
            rows += [_row("⋯")] if rows else []
            before = first - 1
            for at in range(first, last + 1):
                if not (self.is_whole or at < first + HEAD or at in near):
                    continue
                self.room -= _size(self.html[at - 1])
                if self.room < 0:
                    break
                rows += [_left_out(at - before - 1)] if at > before + 1 else []
                before, number = at, self._numbered(at)[1]
                rows.append(Line(at, number, self.html[at - 1], self.items.get(at, ()), at == self.cause))
            rows += [_left_out(last - before)] if last > before else []
        (cell, start), (_, end) = self._numbered(spans[0][0]), self._numbered(spans[-1][1])
        lines = "" if len(spans) > 1 else f"line {start}" if start == end else f"lines {start} to {end}"
        return Piece(", ".join(filter(None, [f"cell {cell}" if cell else "", lines])), tuple(rows))

    def _numbered(self, at: int) -> tuple[str, int]:
        """Return the number of the cell, "" in a file, and of the line in it."""
        place = PLACE.match(self.submission.place(at))
        return (place[2] or "", int(place[1])) if place else ("", at)


def _size(line: str) -> int:
    return len(line.encode(errors="replace")) + LINE_BYTES


def _row(text: str) -> Line:
    return Line(0, 0, escape(text))


def _left_out(count: int) -> Line:
    return _row(f"… {counted(count, 'line')} not shown here")


# Colours


def coloured(source: Sequence[str]) -> Sequence[Markup]:
    """Return each line as markup, without its break; what acts unseen is an escape."""
    lines: list[list[str]] = [[]]
    pieces = ((_class(kind), piece) for kind, piece in LEXER.get_tokens("\n".join(source)))
    for name, run in itertools.groupby(pieces, key=lambda piece: piece[0]):
        for index, part in enumerate("".join(piece for _, piece in run).split("\n")):
            if index:
                lines.append([])
            html = escape(visible(part))
            lines[-1].append(f'<span class="{name}">{html}</span>' if name and html else html)
    return [Markup("".join(line)) for line in lines[: len(source)]]


@cache
def _class(kind: _TokenType) -> str:
    return next((name for known, name in CLASSES if kind in known), "")
