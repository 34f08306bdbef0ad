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
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.authoring.faults import likely
from autograder.grading.assignment import Assignment
from autograder.vocabulary.errors import FixtureError

CONTRACT = "contract.toml"
README = "README.md"
COSTLY = "costly"
ROW = re.compile(r" *(?:returns\b|\w+ +(?:float|int|bool|str|Tensor|list|Callable)\d*\b)")  # of shapes, in a docstring
HEADING = re.compile(r"^ *(?:(?:Args|Arguments|Parameters|Returns|Raises|Notes?|Examples?):?|-{3,}) *$", re.MULTILINE)
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
        heads = (f"[{name}]", f'["{name}"]')
        start = next((number for number, row in enumerate(rows, 1) if row.strip() in heads), 1)
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
    """A complaint for whatever of a docstring stands in no clause, and for each clause whose sentence stands nowhere.

    `texts` are the docstrings by function, "" the module's; the module's own sentences need no clause.
    """
    complaints = []
    for function, text in texts.items():
        quotes = {
            collapsed(clause.sentence).rstrip(".:;") for clause in contract.clauses if clause.function == function
        }
        rest = collapsed(HEADING.sub("", _without_rows(text))) if function else ""
        for quote in sorted(quotes, key=len, reverse=True):  # a longer one may hold a shorter
            rest = re.sub(_whole(quote), "\0", rest)
        pieces = [piece.strip(" .:;,-0123456789") for piece in rest.split("\0")]
        where = f"{contract.path.parent.name}/{CONTRACT}: no clause of {function} quotes"
        complaints += [f"{where}: {piece!r}." for piece in pieces if " " in piece]  # a word alone joins two sentences
    for clause in contract.clauses:
        several = [texts.get(clause.function, ""), texts.get("", "")] if clause.function else texts.values()
        quote = _whole(collapsed(clause.sentence))
        if not any(re.search(quote, collapsed(text)) for text in (*several, readme)):
            docstring = f"the docstring of {clause.function or 'any function'}"
            complaints.append(f"{contract.place(clause)} stands neither in {docstring} nor in {README}.")
    return complaints


def collapsed(text: str) -> str:
    """The text with each run of white space as one blank."""
    return " ".join(text.split())


def _whole(quote: str) -> str:
    """A pattern of the quote which cuts no word."""
    return rf"(?<!\w){re.escape(quote)}(?!\w)"


def _without_rows(docstring: str) -> str:
    """The docstring without rows of shapes and the lines that are indented below them."""
    kept, margin = [], -1
    for line in docstring.splitlines():
        indent = len(line) - len(line.lstrip())
        if ROW.match(line):
            margin = indent
        elif not (0 <= margin < indent and line.strip()):
            kept.append(line)
            margin = -1
    return "\n".join(kept)


# What clauses lack, and whether their mistakes are caught

Name = tuple[str, str]  # of a mistake or a generated change, and its function


def clause_complaints(
    contract: Contract, assignment: Assignment, names: Iterable[Name], unfinished: Sequence[str] = ()
) -> list[str]:
    """What clauses lack or name wrongly, before anything is graded; `names` are all mistakes that there are.

    Drafts of clauses are none of it where their function is `unfinished`.
    """
    known = set(names)
    complaints = []
    for clause in contract.clauses:
        if clause.is_open and clause.function in unfinished:
            continue
        if clause.function and clause.function not in assignment.functions:
            lacks = [f"is about {clause.function}, which is no graded function"]
        elif clause.is_open:
            lacks = ["has neither mistakes nor a reason why it is not graded"]
        else:
            there = {name for name, function in known if function == clause.function or not clause.function}
            lacks = []
            for name in (name for name in clause.mistakes if name not in there):
                family = sorted(one for one in there if one.rpartition(":")[0] == name.rpartition(":")[0])
                lacks.append(f"names the unknown mistake {name!r}; {likely(name, family)}")
        complaints += [f"{contract.place(clause)} {lack}." for lack in lacks]
    return complaints


def untested(contract: Contract, lost_on: Mapping[Name, Sequence[Mapping[str, float]]]) -> list[str]:
    """A complaint for each clause none of whose mistakes loses points on its items.

    `lost_on` says of each mistake that was graded, and of each place of a generated change, what it lost by item.
    """
    complaints = []
    for clause in (clause for clause in contract.clauses if clause.mistakes):
        lost = {
            item
            for (name, function), several in lost_on.items()
            if name in clause.mistakes and clause.function in ("", function)
            for items in several
            for item in items
        }
        if not lost & {*clause.items}:
            none = f"none of its mistakes ({', '.join(clause.mistakes)}) loses points on {', '.join(clause.items)}"
            complaints.append(f"{contract.place(clause)} is not tested: {none}.")
    return complaints
