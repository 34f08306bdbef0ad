"""Cut a docstring into sentences, each of which binds a student."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

NUMBERED = re.compile(r"(?:\d+\.|-)\s+")
ROW = re.compile(r"[`*]*\w+(?:, *\w+)*[`*]*:? {2,}\S")
SENTENCE_END = re.compile(r"(?<![.\d])\.(?=\s|$)|:(?=\s|$)")
HEADING = re.compile(r"(?:Args|Arguments|Parameters|Returns|Yields|Raises|Notes?|Examples?):")
FIELD = re.compile(r":(?:param|type|returns?|rtype|raises)\b[^:]*:")


def sentences(text: str) -> list[str]:
    """The sentences of a docstring, white space collapsed.

    In running text and in lists a sentence ends at a full stop, a colon or the end of its paragraph; a row of a table
    (indented, or with a gap between columns) is one sentence, with the lines that are indented below it. Text may
    follow a table at once.
    """
    blocks = [block.splitlines() for block in re.split(r"\n\s*\n", text.strip("\n"))]
    return [sentence for block in blocks for part in _tables_apart(block) for sentence in _of_block(part)]


def _tables_apart(lines: Sequence[str]) -> Iterator[list[str]]:
    """The block, cut where a table and running text follow each other without a line between."""
    part: list[str] = []
    for line in lines:
        is_start = not line.startswith(" ") and part
        if is_start and bool(ROW.match(line)) != bool(ROW.match(part[0])):
            yield part
            part = []
        part.append(line)
    yield part


def _of_block(lines: Sequence[str]) -> Iterator[str]:
    if not lines or not any(line.strip() for line in lines):
        return
    if below := _below_heading(lines):
        margin = min(len(line) - len(line.lstrip()) for line in below if line.strip())
        yield from (collapsed(row) for row in _rows(below, margin))
        return
    margin = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    if margin == 0 and NUMBERED.match(lines[0]):
        for entry in _paragraphs(lines, NUMBERED):
            yield from _cut(NUMBERED.sub("", entry, count=1))
    elif margin > 0 or _has_columns(lines):
        yield from (collapsed(row) for row in _rows(lines, margin))
    else:
        yield from _cut(" ".join(lines))


def _below_heading(lines: Sequence[str]) -> Sequence[str]:
    """The rows below `Args:` or below `Parameters` that is underlined, or that begin with `:param`; else nothing."""
    if HEADING.fullmatch(lines[0]) and len(lines) > 1 and all(line.startswith((" ", "\t")) for line in lines[1:]):
        return lines[1:]
    if len(lines) > 2 and re.fullmatch(r"\w[\w ]*", lines[0]) and re.fullmatch(r"-{3,}", lines[1].strip()):
        return lines[2:]
    return lines if FIELD.match(lines[0]) else []


def _has_columns(lines: Sequence[str]) -> bool:
    """Whether the lines that begin a row have a gap of two blanks or more."""
    starts = [line for line in lines if not line.startswith(" ")]
    return all(re.search(r"\S {2,}\S", line) for line in starts)


def _paragraphs(lines: Sequence[str], start: re.Pattern[str]) -> list[str]:
    entries: list[str] = []
    for line in lines:
        if start.match(line) or not entries:
            entries.append(line)
        else:
            entries[-1] += f" {line}"
    return entries


def _rows(lines: Sequence[str], margin: int) -> list[str]:
    rows: list[str] = []
    for line in lines:
        if len(line) - len(line.lstrip()) > margin and rows:
            rows[-1] += f" {line}"
        else:
            rows.append(line)
    return rows


def _cut(paragraph: str) -> Iterator[str]:
    for piece in SENTENCE_END.split(paragraph):
        if re.search(r"\w", piece):
            yield collapsed(piece)


def collapsed(text: str) -> str:
    """The text with each run of white space as one blank."""
    return " ".join(text.split())
