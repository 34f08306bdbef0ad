"""A submission's text as its page shows it: coloured lines, with marks at what failed.

Nothing here runs a line of it, everything has a cap, and all of it is escaped.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from types import MappingProxyType

from markupsafe import Markup, escape
from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType

from autograder.checking.fault_lines import Known, line_in_message, marked_line
from autograder.submissions.submission import BREAK, Submission, outlined
from autograder.vocabulary.report import ItemResult, Report
from autograder.vocabulary.text import visible

MAX_BYTES = 56_000  # of all listings of a page, as HTML
LINE_BYTES = 60  # of a line's own markup
MAX_UNREAD = 12  # cells that are shown of those that could not be read
HEAD, AROUND = 12, 8  # lines that are shown of a long piece: its first, and those around what is marked
MAX_WIDTH, TAB = 240, 4  # characters of a line, and of a tab
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
NO_MISTAKES: Known = MappingProxyType({})

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
    def is_marked(self) -> bool:
        """Whether there is something to say at it."""
        return bool(self.items or self.is_cause or self.said)

    @property
    def plain(self) -> Markup:
        """Return the markup of a line without marks, as most are; empty for others."""
        if not self.number or self.is_marked:
            return Markup("")
        return Markup(f'<span class="l" data-n="{self.number}">{self.html}\n</span>')


@dataclass(frozen=True)
class Piece:
    """Lines that stand together; `place` says which they are: `lines 40 to 62`, `cell 7`."""

    place: str
    lines: tuple[Line, ...]

    @property
    def is_marked(self) -> bool:
        """Whether anything failed at one of them."""
        return any(line.is_marked for line in self.lines)


@dataclass(frozen=True)
class Listing:
    """What is shown of a submission's text.

    pieces   function → as it was handed in
    rest     what is no graded function; None where there is nothing else
    places   item → the line that it concerns, and where that is in words
    cause    the same of what kept everything from being reached
    unread   cells of a notebook that could not be read
    """

    pieces: Mapping[str, Piece]
    rest: Piece | None
    places: Mapping[str, tuple[int, str]]
    cause: tuple[int, str] | None
    unread: tuple[Piece, ...] = ()

    def around(self, at: int, count: int = 2) -> list[Line]:
        """Return a line and those around it, as far as they are shown."""
        pieces = [*self.pieces.values(), *([self.rest] if self.rest else []), *self.unread]
        piece = next((piece for piece in pieces if any(line.at == at for line in piece.lines)), None)
        return [line for line in piece.lines if line.number and abs(line.at - at) <= count] if piece else []


NOTHING = Listing({}, None, {}, None)


def listing_of(submission: Submission, report: Report, functions: Sequence[str], known: Known = NO_MISTAKES) -> Listing:
    """List what was graded, and cells that could not be read; nothing where there is no text at all."""
    if not submission.source and not submission.unread_cells:
        return NOTHING
    lines = BREAK.split(submission.source)
    unread, unread_cause = _unread_cells(submission, report, len(lines))
    room = MAX_BYTES - sum(len(line.html.encode()) + LINE_BYTES for piece in unread for line in piece.lines)
    defined = {name: function for name, function in outlined(submission).items() if name in functions}
    found = {item.item: marked_line(item, submission, known) for item in report.items}
    marks = {item: line for item, line in found.items() if line is not None}
    items = {at: tuple(item for item in report.items if marks.get(item.item) == at) for at in marks.values()}
    cause_at = line_in_message(report.cause, submission)
    cutter = _Cutter(submission, lines, items, cause_at, room)
    spans = {name: (function.first, function.last) for name, function in defined.items()}
    # Marked functions come first: the room may not be enough for all.
    ordered = sorted(spans, key=lambda name: (not cutter.is_marked(spans[name]), functions.index(name)))
    pieces = {name: cutter.piece([spans[name]]) for name in ordered}
    rest = cutter.rest(spans.values())
    shown = {line.at for piece in (*pieces.values(), *([rest] if rest else [])) for line in piece.lines if line.number}
    places = {item: (line, submission.place(line)) for item, line in marks.items() if line in shown}
    cause = unread_cause if cause_at not in shown or cause_at is None else (cause_at, submission.place(cause_at))
    return Listing(pieces, rest, places, cause, unread)


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
        lines = BREAK.split(cell.code)
        alone = replace(submission, source=cell.code, cells=((1, cell.number),), unread_cells=())
        at = min(max(cell.line, 1), len(lines))
        is_cause = cell.note.casefold() in report.cause.casefold()
        if is_cause and cause is None:
            cause = before + at, alone.place(at)
        piece = _Cutter(alone, lines, {}, at, room // 2).piece([(1, len(lines))])
        said = "Python cannot read on from here" if cell.line else "Python cannot read this cell"
        marked = tuple(
            replace(line, at=before + line.at, is_cause=is_cause and line.at == at, said=said if line.at == at else "")
            for line in piece.lines
        )
        pieces.append(replace(piece, lines=marked))
        room -= sum(len(line.html.encode()) + LINE_BYTES for line in marked)
        before += len(lines)
    if (more := len(submission.unread_cells) - MAX_UNREAD) > 0:
        words = f"{more:,} more {'cell' if more == 1 else 'cells'} that could not be read"
        pieces.append(Piece("", (_row(f"… {words}"),)))
    return tuple(pieces), cause


# Cutting


class _Cutter:
    """Cuts pieces out of a submission until the room, in bytes, is used up."""

    def __init__(
        self,
        submission: Submission,
        lines: Sequence[str],
        items: Mapping[int, tuple[ItemResult, ...]],
        cause: int | None,
        room: int,
    ) -> None:
        self.submission, self.lines, self.items, self.cause, self.room = submission, lines, items, cause, room
        self.marked = sorted({*items, *([] if cause is None else [cause])})

    def is_marked(self, span: Span) -> bool:
        index = bisect.bisect_left(self.marked, span[0])
        return index < len(self.marked) and self.marked[index] <= span[1]

    def rest(self, taken: Iterable[Span]) -> Piece | None:
        """Cut what no span has taken, without the empty lines around; in a notebook, cell by cell."""
        begins = [begin for begin, _ in self.submission.cells]
        ends = [*(begin - 2 for begin in begins[1:]), len(self.lines)]  # without the line that names the next cell
        edges = list(zip(begins, ends, strict=True)) if begins else []
        spans: list[Span] = []
        first = 1
        for next_first, next_last in (*sorted(taken), (len(self.lines) + 1, 0)):
            last = next_first - 1
            spans += [(max(first, begin), min(last, end)) for begin, end in edges or [(first, last)]]
            first = max(first, next_last + 1)
        trimmed = []
        for begin, end in spans:
            written = [at for at in range(begin, end + 1) if self.lines[at - 1].strip()]
            trimmed += [(written[0], written[-1])] if written else []
        return self.piece(trimmed) if trimmed else None

    def piece(self, spans: Sequence[Span]) -> Piece:
        """Show these lines, with a row where lines between them are left out."""
        rows: list[Line] = []
        cell = 0
        for index, span in enumerate(spans):
            begin_cell, _ = self._number(span[0])
            if begin_cell != cell or (index and not begin_cell):
                rows.append(_row(f"Cell {begin_cell}" if begin_cell else "⋯"))
            cell = begin_cell
            rows += self._rows(span)
        return Piece(self._place(spans), tuple(rows))

    def _rows(self, span: Span) -> Iterator[Line]:
        first, last = span
        lines = self.lines[first - 1 : last]
        # Only lines that there would be room for without colours are coloured: long texts take time.
        costs = itertools.accumulate(min(len(line.rstrip()), MAX_WIDTH) + LINE_BYTES for line in lines)
        html = coloured(lines[: bisect.bisect_right(list(costs), self.room)])
        before = first - 1
        for at in self._chosen(span, html):
            if at > before + 1:
                yield _left_out(at - before - 1)
            before = at
            text = html[at - first] if at - first < len(html) else coloured([self.lines[at - 1]])[0]
            yield Line(at, self._number(at)[1], text, self.items.get(at, ()), at == self.cause)
        if last > before:
            yield _left_out(last - before)

    def _chosen(self, span: Span, html: Sequence[Markup]) -> list[int]:
        """Choose the lines of a span that there is room for: all, or the first ones and those around marks."""
        first, last = span
        cost = sum(len(line.encode()) + LINE_BYTES for line in html)
        if len(html) == last - first + 1 and cost <= self.room:
            self.room -= cost
            return list(range(first, last + 1))
        wanted = {*range(first, first + HEAD)}
        for marked in self.marked:
            wanted |= {*range(marked - AROUND, marked + AROUND + 1)}
        chosen = []
        for at in sorted(at for at in wanted if first <= at <= last):
            line = html[at - first] if at - first < len(html) else coloured([self.lines[at - 1]])[0]
            self.room -= len(line.encode()) + LINE_BYTES
            if self.room < 0:
                break
            chosen.append(at)
        return chosen

    def _number(self, at: int) -> tuple[int, int]:
        """Return the number of the cell, 0 in a file, and of the line in it."""
        cells = self.submission.cells
        index = bisect.bisect_right(cells, at, key=lambda cell: cell[0]) - 1
        if index < 0:
            return 0, at
        begin, number = cells[index]
        if self.submission.lines:
            return 0, self.submission.lines[number - 1] + at - begin
        return number, at - begin + 1

    def _place(self, spans: Sequence[Span]) -> str:
        if len(spans) != 1:
            return ""
        (cell, first), (_, last) = map(self._number, spans[0])
        lines = f"line {first}" if first == last else f"lines {first} to {last}"
        return f"cell {cell}, {lines}" if cell else lines


def _row(text: str) -> Line:
    return Line(0, 0, escape(text))


def _left_out(count: int) -> Line:
    return _row(f"… {count:,} {'line' if count == 1 else 'lines'} not shown here")


# Colours


def coloured(lines: Iterable[str]) -> list[Markup]:
    """Return each line as markup, without its break; what acts unseen is an escape, and a long line ends in `…`."""
    cut = []
    for line in lines:  # without its end: Pygments takes the square of white space over many lines
        text = line.rstrip()[: MAX_WIDTH + 1].expandtabs(TAB)
        cut.append(text if len(text) <= MAX_WIDTH else f"{text[:MAX_WIDTH]}…")
    return list(_coloured_text("\n".join(cut))[: len(cut)])


@lru_cache(128)  # in a class many texts are the same, such as imports, and functions as they were handed out
def _coloured_text(text: str) -> tuple[Markup, ...]:
    lines: list[list[str]] = [[]]
    pieces = ((_class(kind), piece) for kind, piece in LEXER.get_tokens(text))
    for name, run in itertools.groupby(pieces, key=lambda piece: piece[0]):
        for index, part in enumerate("".join(piece for _, piece in run).split("\n")):
            if index:
                lines.append([])
            html = escape(visible(part))
            lines[-1].append(f'<span class="{name}">{html}</span>' if name and html else html)
    return tuple(Markup("".join(line)) for line in lines)


@cache
def _class(kind: _TokenType) -> str:
    return next((name for known, name in CLASSES if kind in known), "")
