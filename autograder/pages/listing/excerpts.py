"""A submission → the lines that its page shows: a piece for each graded function, and the rest of it."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from autograder.pages.listing.changes import Change, changes_of
from autograder.pages.listing.colours import MAX_WIDTH, coloured
from autograder.pages.listing.marks import line_of_cause, marked_lines
from autograder.pages.listing.wrong_expressions import Known
from autograder.submissions.submission import Submission
from autograder.submissions.syntax import BREAK, outlined
from autograder.vocabulary.report import ItemResult, Report

MAX_BYTES = 56_000  # of all listings of a page, as HTML
OF_LINE = 60  # bytes of a line's own markup
MOST_UNREAD = 12  # cells that are shown of those that could not be read
HEAD, AROUND = 12, 8  # lines that are shown of a long piece: its first, and those around what is marked
CAUSE = ""  # stands for no item: what kept all of them from being reached

Span = tuple[int, int]


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
        """How it stands on the page where there is nothing to say of it, as most; empty where there is, or no line."""
        if not self.number or self.items or self.is_cause or self.said:
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
        return any(line.items or line.is_cause or line.said for line in self.lines)


@dataclass(frozen=True)
class Listing:
    """What is shown of a submission's text.

    pieces   function → as it was handed in
    rest     what is no graded function; None where there is nothing else
    unread   cells of a notebook that could not be read
    places   item → the line that it concerns, and where that is in words
    cause    the same of what kept everything from being reached
    """

    pieces: Mapping[str, Piece]
    rest: Piece | None
    places: Mapping[str, tuple[int, str]]
    cause: tuple[int, str] | None
    changes: tuple[Change, ...]
    unread: tuple[Piece, ...] = ()


NOTHING = Listing({}, None, {}, None, ())


def listing_of(
    submission: Submission, report: Report, functions: Sequence[str], handout: str = "", known: Known | None = None
) -> Listing:
    """The listing of what was graded, and of cells that could not be read; nothing where there is no text at all."""
    if not submission.source and not submission.unread_cells:
        return NOTHING
    lines = BREAK.split(submission.source)
    unread, told = _unread(submission, report, len(lines))
    room = MAX_BYTES - sum(len(line.html.encode()) + OF_LINE for piece in unread for line in piece.lines)
    defined = {name: found for name, found in outlined(submission).items() if name in functions}
    marks = marked_lines(report, submission, defined, known or {}, lines)
    desk = _Desk(submission, lines, _items_by_line(report, marks), line_of_cause(report, submission), room)
    spans = {name: (found.first, found.last) for name, found in defined.items()}
    first = sorted(spans, key=lambda name: (not desk.is_marked(spans[name]), functions.index(name)))
    pieces = {name: desk.piece([spans[name]]) for name in first}
    rest = desk.rest(spans.values())
    shown = {line.at for piece in (*pieces.values(), *([rest] if rest else [])) for line in piece.lines if line.number}
    places = {item: (line, submission.place(line)) for item, line in marks.items() if line in shown}
    cause = told if desk.cause not in shown or desk.cause is None else (desk.cause, submission.place(desk.cause))
    changes = changes_of(handout, submission, lines, spans) if submission.source else ()
    return Listing(pieces, rest, places, cause, changes, unread)


def _unread(submission: Submission, report: Report, before: int) -> tuple[tuple[Piece, ...], tuple[int, str] | None]:
    """The cells that could not be read, each marked where Python stopped; and the first that the report gives as cause.

    Their lines are counted on from `before`, since an anchor names one line of a page.
    """
    pieces: list[Piece] = []
    cause: tuple[int, str] | None = None
    room = MAX_BYTES // 2
    for cell in submission.unread_cells[:MOST_UNREAD]:
        lines = BREAK.split(cell.code)
        alone = replace(submission, source=cell.code, cells=((1, cell.number),), unread_cells=())
        at = min(max(cell.line, 1), len(lines))
        desk = _Desk(alone, lines, {}, at, room // 2)
        is_cause = cell.note.casefold() in report.cause.casefold()
        if is_cause and cause is None:
            cause = before + at, alone.place(at)
        piece = desk.piece([(1, len(lines))])
        said = "Python cannot read on from here" if cell.line else "Python cannot read this cell"
        marked = tuple(
            replace(line, at=before + line.at, is_cause=is_cause and line.at == at, said=said if line.at == at else "")
            for line in piece.lines
        )
        pieces.append(replace(piece, lines=marked))
        room -= sum(len(line.html.encode()) + OF_LINE for line in marked)
        before += len(lines)
    if (more := len(submission.unread_cells) - MOST_UNREAD) > 0:
        words = f"{more:,} more {'cell' if more == 1 else 'cells'} that could not be read"
        pieces.append(Piece("", (_row(f"… {words}"),)))
    return tuple(pieces), cause


def _items_by_line(report: Report, marks: Mapping[str, int]) -> dict[int, tuple[ItemResult, ...]]:
    return {at: tuple(one for one in report.items if marks.get(one.item) == at) for at in set(marks.values())}


class _Desk:
    """Cuts pieces out of a submission until the room is used up."""

    def __init__(
        self,
        submission: Submission,
        lines: Sequence[str],
        items: Mapping[int, tuple[ItemResult, ...]],
        cause: int | None,
        room: int = MAX_BYTES,
    ) -> None:
        self._submission, self._lines, self._items, self.cause = submission, lines, items, cause
        self._room = room
        self._marked = sorted({*items, *([] if cause is None else [cause])})

    def is_marked(self, span: Span) -> bool:
        index = bisect.bisect_left(self._marked, span[0])
        return index < len(self._marked) and self._marked[index] <= span[1]

    def rest(self, taken: Iterable[Span]) -> Piece | None:
        """What no span has taken, without the empty lines around; in a notebook, cell by cell."""
        spans, begin = [], 1
        for first, last in (*sorted(taken), (len(self._lines) + 1, 0)):
            spans += self._by_cell((begin, first - 1))
            begin = max(begin, last + 1)
        trimmed = [span for span in map(self._trimmed, spans) if span[0] <= span[1]]
        return self.piece(trimmed) if trimmed else None

    def piece(self, spans: Sequence[Span]) -> Piece:
        """These lines as they are shown, with a row where lines between them are left out."""
        rows: list[Line] = []
        cell = 0
        for index, span in enumerate(spans):
            begin_cell, _ = self._number(span[0])
            if begin_cell != cell or (index and not begin_cell):
                rows.append(_row(f"Cell {begin_cell}" if begin_cell else "⋯"))
            cell = begin_cell
            rows += self._span_rows(span)
        return Piece(self._place(spans), tuple(rows))

    def _span_rows(self, span: Span) -> Iterator[Line]:
        first, last = span
        html = coloured(self._that_may_fit(span))
        chosen = self._chosen(span, html)
        before = first - 1
        for at in chosen:
            if at > before + 1:
                yield _left_out(at - before - 1)
            before = at
            number = self._number(at)[1]
            text = html[at - first] if at - first < len(html) else coloured([self._lines[at - 1]])[0]
            yield Line(at, number, text, self._items.get(at, ()), at == self.cause)
        if last > before:
            yield _left_out(last - before)

    def _that_may_fit(self, span: Span) -> Sequence[str]:
        """The lines of a span that there would be room for without colours, which take time for what is not shown."""
        lines = self._lines[span[0] - 1 : span[1]]
        costs = itertools.accumulate(min(len(line.rstrip()), MAX_WIDTH) + OF_LINE for line in lines)
        return lines[: bisect.bisect_right(list(costs), self._room)]

    def _chosen(self, span: Span, html: Sequence[Markup]) -> list[int]:
        """The lines of a span that there is room for: all, or the first ones and those around what is marked."""
        first, last = span
        cost = sum(len(line.encode()) + OF_LINE for line in html)
        if len(html) == last - first + 1 and cost <= self._room:
            self._room -= cost
            return list(range(first, last + 1))
        wanted = [*range(first, first + HEAD)]
        for marked in self._marked:
            wanted += range(marked - AROUND, marked + AROUND + 1)
        chosen = []
        for at in sorted({at for at in wanted if first <= at <= last}):
            line = html[at - first] if at - first < len(html) else coloured([self._lines[at - 1]])[0]
            self._room -= len(line.encode()) + OF_LINE
            if self._room < 0:
                break
            chosen.append(at)
        return chosen

    def _by_cell(self, span: Span) -> list[Span]:
        """A span cut where cells of the notebook begin, without the line that names each cell."""
        first, last = span
        begins = [begin for begin, _ in self._submission.cells]
        if not begins:
            return [span]
        edges = zip(begins, [*(begin - 2 for begin in begins[1:]), len(self._lines)], strict=True)
        return [(max(first, begin), min(last, end)) for begin, end in edges]

    def _trimmed(self, span: Span) -> Span:
        first, last = span
        while first <= last and not self._lines[first - 1].strip():
            first += 1
        while last >= first and not self._lines[last - 1].strip():
            last -= 1
        return first, last

    def _number(self, at: int) -> tuple[int, int]:
        """The number of the cell, 0 in a file, and of the line in it."""
        cells = self._submission.cells
        index = bisect.bisect_right(cells, at, key=lambda cell: cell[0]) - 1
        if index < 0:
            return 0, at
        begin, number = cells[index]
        if self._submission.lines:
            return 0, self._submission.lines[number - 1] + at - begin
        return number, at - begin + 1

    def _place(self, spans: Sequence[Span]) -> str:
        if len(spans) != 1:
            return ""
        (cell, first), (_, last) = map(self._number, spans[0])
        lines = f"line {first}" if first == last else f"lines {first} to {last}"
        return f"cell {cell}, {lines}" if cell else lines


def _row(text: str) -> Line:
    return Line(0, 0, Markup("{}").format(text))


def _left_out(count: int) -> Line:
    return _row(f"… {count:,} {'line' if count == 1 else 'lines'} not shown here")
