"""The contract as data: every sentence that binds a student is a clause of the assignment's `contract.toml`.

    [costly]                # functions of which a mistake may cost more than half, and why
    compute_kl_penalty = "it returns one number"

    [compute_deltas]        # or "", about all functions
    "Two maxima share the weight" = ["deltas-max", "first-maximum-only", "habit:isclose-for-eq"]
    "The result has no graph" = "whether it has one changes no value"

A sentence stands in the docstring or in the assignment's text; white space may differ. It has a list of the items that
are about it, if not all of the function, and of mistakes that violate it, or the reason why it is not graded. One with
neither mistakes nor a reason is a draft. Rows of shapes need no clause: what an argument is binds the caller, and what
comes back is judged in every case.
"""

from __future__ import annotations

import ast
import difflib
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.grading.assignment import Assignment
from autograder.vocabulary.errors import FixtureError

CONTRACT = "contract.toml"
README = "README.md"
COSTLY = "costly"
ROW = re.compile(r"returns\b|\w+ (float|int|bool|str|Tensor|list|Callable)\d*\b")  # of shapes, in a docstring
NUMBERED = re.compile(r"(?:\d+\.|-)\s+")
TABLE_ROW = re.compile(r"[`*]*\w+(?:, *\w+)*[`*]*:? {2,}\S")
SENTENCE_END = re.compile(r"(?<![.\d])\.(?=\s|$)|:(?=\s|$)")
HEADING = re.compile(r"(?:Args|Arguments|Parameters|Returns|Yields|Raises|Notes?|Examples?):")
FIELD = re.compile(r":(?:param|type|returns?|rtype|raises)\b[^:]*:")
SHOWN = 60  # characters of a sentence, where it says which clause is meant


@dataclass(frozen=True)
class Clause:
    """One sentence that binds a student, and what holds the grader to it.

    function   the one that it is about; "" where it is about all
    line       where the clause begins in contract.toml
    items      the items that are about it
    mistakes   what violates it: slugs of the catalogue, `habit:…` and `parameter:…` of generated mutants
    """

    function: str
    sentence: str
    line: int
    items: tuple[str, ...] = ()
    mistakes: tuple[str, ...] = ()
    not_graded: str = ""

    @property
    def is_open(self) -> bool:
        """Whether it is a draft: nothing violates it, and nothing says why it is not graded."""
        return not self.mistakes and not self.not_graded


@dataclass(frozen=True)
class Contract:
    """The clauses of an assignment, and the file that they stand in.

    costly   function → why a mistake may cost more than half of it; None where the file says nothing of costs
    """

    path: Path
    clauses: tuple[Clause, ...]
    costly: Mapping[str, str] | None = None

    @property
    def drafts(self) -> tuple[Clause, ...]:
        """The clauses that are drafts."""
        return tuple(clause for clause in self.clauses if clause.is_open)

    def place(self, clause: Clause) -> str:
        """File, line and sentence, as a complaint begins."""
        more = " …" if len(clause.sentence) > SHOWN else ""
        return f"{self.path.parent.name}/{self.path.name}:{clause.line}: {clause.sentence[:SHOWN] + more!r}"


def read_contract(assignment: Assignment) -> Contract | None:
    """The contract of an assignment; None where it has none yet.

    Raises FixtureError, one sentence with file and line, where the file cannot be used.
    """
    path = assignment.folder / CONTRACT
    if not path.is_file():
        return None
    try:
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text)
    except OSError as error:
        raise FixtureError(f"{path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FixtureError(f"{path} is not TOML: {error}.") from error
    of_function: dict[str, list[str]] = {}
    for item in assignment.items:
        of_function.setdefault(item.function, []).append(item.id)
    clauses = []
    for found in clauses_in(data, text, of_function):
        if not isinstance(found, Clause):
            line, what = found
            raise FixtureError(f"{path}:{line}: {what}.")
        clauses.append(found)
    if not clauses:
        raise FixtureError(f"{path} holds no sentence.")
    return Contract(path, tuple(clauses), data.get(COSTLY))


Wrong = tuple[int, str]  # the line, and what is wrong there


def clauses_in(
    data: Mapping[str, Any], text: str, of_function: Mapping[str, Sequence[str]]
) -> Iterator[Clause | Wrong]:
    """Each clause, and what is wrong in the file; `of_function` are a function's items."""
    rows = text.splitlines()
    every = [item for items in of_function.values() for item in items]
    for name, table in data.items():
        start = _head(rows, name)
        if not isinstance(table, dict):
            yield start, f"{name!r} is no table of sentences"
            continue
        for sentence, value in table.items():
            line = _line_of(rows, start, sentence)
            if isinstance(value, str) and value.strip():
                if name != COSTLY:
                    yield Clause(name, sentence, line, not_graded=value)
            elif name != COSTLY and isinstance(value, list) and all(isinstance(one, str) for one in value):
                own = of_function.get(name, ()) if name else every
                items = [one for one in value if one in own] or own
                yield Clause(name, sentence, line, tuple(items), tuple(one for one in value if one not in own))
            else:
                listed = "" if name == COSTLY else "a list of items and mistakes, or "
                yield line, f"{sentence[:SHOWN]!r} of [{name}] should have {listed}the reason, but has {value!r}"


def _head(rows: Sequence[str], name: str) -> int:
    """The line at which the table of that name begins; 1 where none does."""
    heads = (f"[{name}]", f'["{name}"]')
    return next((number for number, row in enumerate(rows, 1) if row.strip() in heads), 1)


def _line_of(rows: Sequence[str], start: int, key: str) -> int:
    """The first line with that key from there on; 1 where there is none."""
    plain = [row.strip().removeprefix('"').replace('\\"', '"').replace("\\\\", "\\") for row in rows[start - 1 :]]
    return next((number for number, row in enumerate(plain, start) if row.startswith(key)), 1)


# The texts that clauses quote


def docstrings(solution: str, functions: Sequence[str]) -> dict[str, str]:
    """The docstring of each graded function, and of the module under the name ""."""
    module = ast.parse(solution)
    found = {"": ast.get_docstring(module) or ""}
    nodes = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name in functions]
    return found | {node.name: ast.get_docstring(node) or "" for node in nodes}


def unquoted(contract: Contract, texts: Mapping[str, str], readme: str) -> list[str]:
    """A complaint for each sentence in no clause, and for each clause whose sentence stands nowhere.

    `texts` are the docstrings by function, "" the module's; the module's own sentences need no clause.
    """
    found = []
    for function, text in texts.items():
        quotes = [collapsed(clause.sentence) for clause in contract.clauses if clause.function == function]
        for sentence in sentences(text) if function else ():
            if not ROW.match(sentence) and not any(
                _stands_in(sentence, quote) or _stands_in(quote.rstrip(".:;"), sentence) for quote in quotes
            ):
                found.append(f"{contract.path.parent.name}/{CONTRACT}: no clause of {function} quotes: {sentence!r}.")
    for clause in contract.clauses:
        own = [texts.get(clause.function, ""), texts.get("", "")] if clause.function else texts.values()
        if not any(_stands_in(collapsed(clause.sentence), collapsed(text)) for text in (*own, readme)):
            docstring = f"the docstring of {clause.function or 'any function'}"
            found.append(f"{contract.place(clause)} stands neither in {docstring} nor in {README}.")
    return found


def _stands_in(part: str, whole: str) -> bool:
    """Whether the one text stands in the other, and no word of the other is cut by it."""
    return re.search(rf"(?<!\w){re.escape(part)}(?!\w)", whole) is not None


Name = tuple[str, str]  # of a mistake or a generated change, and its function


@dataclass(frozen=True)
class Coverage:
    """How many clauses there are, how many of them a mistake tests, and how many are not graded, with the reason."""

    clauses: int
    tested: int
    not_graded: int


def clause_complaints(
    contract: Contract, assignment: Assignment, names: Iterable[Name], unfinished: Sequence[str] = ()
) -> list[str]:
    """What clauses lack or name wrongly, before anything is graded; `names` are all mistakes that there are.

    Drafts of clauses are none of it where their function is `unfinished`.
    """
    known = set(names)
    held = [clause for clause in contract.clauses if not (clause.is_open and clause.function in unfinished)]
    found = [(clause, what) for clause in held for what in _lacks(clause, assignment, known)]
    return [f"{contract.place(clause)} {what}." for clause, what in found]


def coverage(contract: Contract, lost_on: Mapping[Name, Sequence[Mapping[str, float]]]) -> tuple[Coverage, list[str]]:
    """The figures, and a complaint for each clause none of whose mistakes loses points on its items.

    `lost_on` says of each mistake that was graded, and of each place of a generated change, what it lost by item.
    """
    graded = [clause for clause in contract.clauses if not clause.not_graded and not clause.is_open]
    uncaught = [clause for clause in graded if not _is_caught(clause, lost_on)]
    silent = sum(bool(clause.not_graded) for clause in contract.clauses)
    counts = Coverage(len(contract.clauses), len(graded) - len(uncaught), silent)
    told = [
        f"{contract.place(clause)} is not tested: none of its mistakes ({', '.join(clause.mistakes)}) loses points on "
        f"{', '.join(clause.items)}."
        for clause in uncaught
    ]
    return counts, told


def _lacks(clause: Clause, assignment: Assignment, known: set[Name]) -> list[str]:
    if clause.function and clause.function not in assignment.functions:
        return [f"is about {clause.function}, which is no graded function"]
    if clause.is_open:
        return ["has neither mistakes nor a reason why it is not graded"]
    own = {name for name, function in known if function == clause.function or not clause.function}
    return [f"names the unknown mistake {name!r}{_known_of(name, own)}" for name in clause.mistakes if name not in own]


def _known_of(name: str, own: Collection[str]) -> str:
    """Which there are of its family: slugs, `habit:…` or `parameter:…`."""
    family = name.partition(":")[0] if ":" in name else ""
    several = sorted(one for one in own if one.partition(":")[0] == family or (not family and ":" not in one))
    close = difflib.get_close_matches(name, several, n=1)
    return f": {close[0]!r} is there" if close else f", and not one of {', '.join(several)}" if several else ""


def _is_caught(clause: Clause, lost_on: Mapping[Name, Sequence[Mapping[str, float]]]) -> bool:
    for (name, function), lost in lost_on.items():
        own = name in clause.mistakes and clause.function in ("", function)
        if own and any(items.get(item) for items in lost for item in clause.items):
            return True
    return False


# Cutting docstrings into sentences


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
        if is_start and bool(TABLE_ROW.match(line)) != bool(TABLE_ROW.match(part[0])):
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
