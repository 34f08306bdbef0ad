"""What a docstring says of an argument, or of what is returned: axes, kind, bounds, words; and its sentences."""

from __future__ import annotations

import difflib
import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Literal

Kind = Literal["array", "number", "whole", "text", "texts", "flag", "function"]
Axes = tuple[str, ...]
QUOTED = re.compile(r"(?<!\w)[\"'](\w[\w .-]*)[\"'](?!\w)")
NUMBER = r"(-?\d+(?:\.\d+)?)"
KINDS = (
    "float",
    "int",
    "bool",
    "function",
    "number",
    "array",
    "tensor",
    "list",
    "text",
    "callable",
    "vector",
    "matrix",
)
BOUNDS = (
    rf"\bfrom {NUMBER} to {NUMBER}",
    rf"\bbetween {NUMBER} and {NUMBER}",
    rf"\bin [\[(]{NUMBER}, ?{NUMBER}[\])]",
    rf"(?<![\w.-]){NUMBER} to {NUMBER}\b",
)
PREFIX = r"(?::(?:param|type)\s+(?:[\w.\[\]]+\s+)??)?"  # as Sphinx has it
KIND = rf"(?:{'|'.join(KINDS)}|probabilities|str|u?int\d+|float\d+|ndarray|np\.|torch\.)(?![a-z])"
APART = r"(?:\s*\([^)]*\))?(?:\s*:|\s{2,}|\t)\s*"  # what stands between a row's name and what it says of it
RESULT = re.compile(r"\s*(?:returns\b|Returns:\s*$|:returns?:)")
PART = r"(?:float|u?int|bool)\d*(?:\[[^\]]*\])?"
PARTS = re.compile(rf"\s*\(?{PART}(?:(?:,| and|, and)\s+{PART})*")
SHAPE = re.compile(r"(?:shape|of size|:)\s*:?\s*[\[(]([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*),?[\])]")
NUMBERED = re.compile(r"(?:\d+\.|-)\s+")
ROW = re.compile(r"[`*]*\w+(?:, *\w+)*[`*]*:? {2,}\S")
SENTENCE_END = re.compile(r"(?<![.\d])\.(?=\s|$)|:(?=\s|$)")
HEADING = re.compile(r"(?:Args|Arguments|Parameters|Returns|Yields|Raises|Notes?|Examples?):")
FIELD = re.compile(r":(?:param|type|returns?|rtype|raises)\b[^:]*:")
ARRAY = re.compile(r"\b(?:array|array_like|ndarray|Tensor|tensor|np\.ndarray|torch\.Tensor)\b")


def words(name: str, docstring: str) -> tuple[str, ...]:
    """The words that a docstring puts in quotes where it says what an argument is: `side   "up" or "down"`."""
    return tuple(dict.fromkeys(found[1] for found in QUOTED.finditer(paragraph(name, docstring))))


def paragraph(name: str, docstring: str) -> str:
    """The line of the docstring that begins with the argument, and those below it that are indented further."""
    return " ".join(_own_lines(name, docstring))


def _own_lines(name: str, docstring: str) -> list[str]:
    """The lines that are the argument's: rather those of a row, `name kind …`, than of prose that begins with it."""
    bare = rf"\s*[`*]*{re.escape(name)}\b[`*]*"
    field = rf"\s*:(?:param|type)\s+(?:[\w.\[\]]+\s+)??{re.escape(name)}\s*:"
    rows = (rf"{bare}{APART}(?:{{?[\"']|{KIND})", rf"{bare}{APART}", rf"{bare} {KIND}")
    for head in (field, *rows, rf"\s*{PREFIX}[`*]*{re.escape(name)}\b"):
        if found := _lines(re.compile(head), docstring):
            return found
    return []


def _lines(head: re.Pattern[str], docstring: str) -> list[str]:
    lines = docstring.splitlines()
    for place, line in enumerate(lines):
        if head.match(line):
            below = itertools.takewhile(functools.partial(_is_deeper, line), lines[place + 1 :])
            return [line, *map(str.strip, below)]
    return []


def _is_deeper(line: str, other: str) -> bool:
    """Whether the other line is indented further."""
    return len(other) - len(other.lstrip()) > len(line) - len(line.lstrip())


def misspelt(docstring: str, names: list[str]) -> list[tuple[str, str]]:
    """First words of rows that are nearly the name of an argument which has no row, each with that name."""
    heads = [
        found[1] for line in docstring.splitlines() if (found := re.match(r"\s*[`*]*(\w+)[`*]*\s*(?:\s{2}|:)", line))
    ]
    open_ones = [name for name in names if name not in heads]
    close = ((one, difflib.get_close_matches(one, open_ones, n=1, cutoff=0.7)) for one in heads if one not in names)
    return [(one, found[0]) for one, found in close if found]


def slips(docstring: str, names: list[str]) -> Iterator[str]:
    """What its rows seem to say and are not read to: names, kinds and bounds, each as a phrase."""
    for wrong, right in misspelt(docstring, names):
        yield f"{wrong!r} where {right!r} is an argument"
    for name in names:
        text = paragraph(name, docstring)
        for word in re.findall(r"^\W*\w+\W+([A-Za-z]+)", text):
            if meant := next((kind for kind in KINDS if _is_a_slip(word, kind)), ""):
                yield f"{word!r} of {name}, where {meant!r} may be meant"
        for found in re.finditer(BOUNDS[0], text):
            if float(found[1]) >= float(found[2]):
                yield f"{found[0]!r} of {name}: the lesser number first"


def _is_a_slip(word: str, kind: str) -> bool:
    """Whether a word is the other with its letters in another order, or one of them left out: `factor` is no vector."""
    if word in KINDS:
        return False
    return sorted(word) == sorted(kind) or any(word == kind[:n] + kind[n + 1 :] for n in range(1, len(kind) - 1))


def bounds(text: str) -> tuple[float, float] | None:
    """The least and the greatest number that it names."""
    for pattern in BOUNDS:
        if (found := re.search(pattern, text)) and float(found[1]) < float(found[2]):
            return float(found[1]), float(found[2])
    return None


def within(pair: tuple[float, float] | None) -> tuple[float, float] | None:
    """The same bounds drawn in by a tenth: at them a function may refuse."""
    if pair is None:
        return None
    low, high = pair
    return round(low + (high - low) / 10, 6), round(high - (high - low) / 10, 6)


def below(text: str) -> str:
    """The axis whose places an array counts, as in `int[token]   below label`; "" where it says nothing of the kind."""
    found = re.search(r"\bbelow (?:the size of )?`*([A-Za-z_]\w*)", text)
    return found[1] if found else ""


def likely(text: str) -> str:
    """What an array's numbers are like; "" where it says nothing."""
    if re.search(r"\bu?int\d*\[|\bdtype int|\b(?:array|tensor|list)s? of (?:ints?|integers|whole numbers)\b", text):
        return "whole"
    if "probabilit" in text:
        return "probabilities"
    return "positive" if re.search(r"\bpositive\b|\babove 0\b|> ?0\b", text) else ""


def described(name: str, docstring: str) -> tuple[Axes, Kind | None]:
    """Axes, or what kind of thing it is, as the docstring says: `x   float[batch trial]`, `x: shape (n, d)`."""
    return _read(name, _own_lines(name, docstring))


def returned(docstring: str) -> tuple[Axes, ...]:
    """The axes of each part that is returned, as the docstring says: `returns   float[state], float`."""
    lines = _lines(RESULT, docstring)
    several = PARTS.match(RESULT.sub("", lines[0])) if lines else None
    if several and "[" in several[0]:
        return tuple(_axes(one) for one in re.findall(PART, several[0]))
    axes, _ = _read("returns", lines)
    return (axes,) if axes else ()


def _axes(text: str) -> Axes:
    brackets = re.search(r"\[([^\]]*)\]", text)
    return tuple(re.findall(r"[A-Za-z_]\w*", brackets[1])) if brackets else ()


def _read(name: str, lines: list[str]) -> tuple[Axes, Kind | None]:
    """The same of the lines that are about it: of the first, and of those below it the shape of an array."""
    if not lines:
        return (), None
    head = re.match(rf"\s*(?:{RESULT.pattern}|{PREFIX}[`*]*{re.escape(name)}[`*]*)\s*:?\s*(.*)", lines[0])
    first = head[1] if head else ""
    whole = " ".join([first, *lines[1:]]).strip()
    rest = first or whole
    if re.match(r"\(?Callable\b", rest):
        return (), "function"
    if brackets := re.match(r"\(?\w*\[([^\]]*)\]", rest):
        return tuple(re.findall(r"[A-Za-z_]\w*", brackets[1])), "number" if not brackets[1].strip() else None
    if ARRAY.search(rest) or re.search(r"\bshape\b|matrix|vector", rest):
        if shape := SHAPE.search(whole):
            return tuple(re.findall(r"[A-Za-z_]\w*", shape[1])), None
        if ARRAY.search(rest) and not re.search(r"matrix|vector", whole):
            return (), "array"
    for word, axes in (("matrix", ("row", "column")), ("vector", ("entry",)), ("list", ("entry",))):
        if re.search(rf"\b{word}\b", rest):
            return axes, None
    if re.match(rf"\(?(?:str|text)\b|{QUOTED.pattern}", rest):
        return (), "text"
    if re.match(r"\(?bool\b", rest):
        return (), "flag"
    for word, kind in (
        ("function", "function"),
        ("callable", "function"),
        ("int", "whole"),
        ("float", "number"),
        ("number", "number"),
    ):
        if re.search(rf"\b{word}", rest):
            return (), kind  # type: ignore[return-value]
    return (), None


# Sentences


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
