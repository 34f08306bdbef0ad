"""The contract as data: every sentence that binds a student is a clause of the assignment's `contract.toml`.

    [compute_deltas]        # or "", about all functions
    "Two maxima share the weight" = ["deltas-max", "first-maximum-only", "habit:clamp"]
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
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.authoring.exam.mutants import Variant
from autograder.authoring.faults import likely
from autograder.grading.assignment import Assignment
from autograder.vocabulary.errors import FixtureError

CONTRACT = "contract.toml"
README = "README.md"
ROW = re.compile(r" *(?:returns\b|\w+ +(?:float|int|bool|str|Tensor|list|Callable)\d*\b)")  # of shapes, in a docstring
HEADING = re.compile(r"^ *(?:(?:Args|Arguments|Parameters|Returns|Raises|Notes?|Examples?):?|-{3,}) *$", re.MULTILINE)
SHOWN = 60  # characters of a sentence, where it says which clause is meant


@dataclass(frozen=True)
class Clause:
    """One sentence that binds a student, and what holds the grader to it.

    function   the one that it is about; "" where it is about all
    place      where the clause begins, and its first words: how a complaint begins
    items      the items that are about it
    mistakes   what violates it: slugs of the catalogue, `habit:…` and `parameter:…` of generated mutants
    """

    function: str
    sentence: str
    place: str
    items: tuple[str, ...] = ()
    mistakes: tuple[str, ...] = ()
    not_graded: str = ""

    @property
    def is_open(self) -> bool:
        """Whether it is a draft: nothing violates it, and nothing says why it is not graded."""
        return not self.mistakes and not self.not_graded

    def is_about(self, function: str) -> bool:
        """Whether it binds that function."""
        return self.function in ("", function)


def read_contract(assignment: Assignment) -> tuple[Clause, ...] | None:
    """The clauses of an assignment; None where it has no contract yet.

    Raises FixtureError, one sentence with file and line, where the file cannot be used.
    """
    path = assignment.folder / CONTRACT
    if not path.is_file():
        return None
    try:
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FixtureError(f"{path} is not TOML: {error}.") from error
    of_function: dict[str, list[str]] = {}
    for item in assignment.items:
        of_function.setdefault(item.function, []).append(item.id)
    clauses = []
    for clause in clauses_in(data, text, of_function, path.parent.name):
        if not isinstance(clause, Clause):
            raise FixtureError(f"{path}:{clause[0]}: {clause[1]}.")
        clauses.append(clause)
    return tuple(clauses)


Wrong = tuple[int, str]  # the line, and what is wrong there


def clauses_in(
    data: Mapping[str, Any], text: str, of_function: Mapping[str, Sequence[str]], folder: str
) -> Iterator[Clause | Wrong]:
    """Each clause, and what is wrong in the file; `of_function` are a function's items."""
    rows = text.splitlines()
    plain = [row.strip().removeprefix('"').replace('\\"', '"').replace("\\\\", "\\") for row in rows]
    every = [item for items in of_function.values() for item in items]
    for name, table in data.items():
        heads = (f"[{name}]", f'["{name}"]')
        start = next((number for number, row in enumerate(rows, 1) if row.strip() in heads), 1)
        if not isinstance(table, dict):
            yield start, f"{name!r} is no table of sentences"
            continue
        for sentence, value in table.items():
            line = next((n for n, row in enumerate(plain, 1) if n >= start and row.startswith(sentence)), 1)
            more = " …" if len(sentence) > SHOWN else ""
            place = f"{folder}/{CONTRACT}:{line}: {sentence[:SHOWN] + more!r}"
            if isinstance(value, str) and value.strip():
                yield Clause(name, sentence, place, not_graded=value)
            elif isinstance(value, list) and all(isinstance(one, str) for one in value):
                own = of_function.get(name, ()) if name else every
                items = [one for one in value if one in own] or own
                yield Clause(name, sentence, place, tuple(items), tuple(one for one in value if one not in own))
            else:
                right = "a list of items and mistakes, or the reason"
                yield line, f"{sentence[:SHOWN]!r} of [{name}] should have {right}, but has {value!r}"


def contract_complaints(
    clauses: Sequence[Clause],
    assignment: Assignment,
    solution: str,
    variants: Sequence[Variant],
    unfinished: Collection[str] = (),
) -> list[str]:
    """What clauses lack or name wrongly, before anything is graded; `variants` are all wrong ones that there are.

    Whatever of a docstring stands in no clause is one complaint each. Drafts of clauses are none where their function
    is `unfinished`.
    """
    module, text = ast.parse(solution), text_of(assignment)
    nodes = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name in assignment.functions]
    docstrings = {node.name: ast.get_docstring(node) or "" for node in nodes}
    about_all = [ast.get_docstring(module) or "", text]
    complaints = []
    for function, docstring in docstrings.items():
        quotes = [clause.sentence for clause in clauses if clause.function == function]
        none = f"{assignment.name}/{CONTRACT}: no clause of {function} quotes"
        complaints += [f"{none}: {piece!r}." for piece in not_quoted(docstring, quotes)]
    for clause in clauses:
        texts = [text for function, text in docstrings.items() if clause.is_about(function)]
        quote = _whole(_collapsed(clause.sentence))
        if not any(re.search(quote, _collapsed(text)) for text in (*texts, *about_all)):
            docstring = f"the docstring of {clause.function or 'any function'}"
            complaints.append(f"{clause.place} stands neither in {docstring} nor in {README}.")
        if clause.is_open and clause.function not in unfinished:
            complaints.append(f"{clause.place} has neither mistakes nor a reason why it is not graded.")
        known = {variant.name for variant in variants if clause.is_about(variant.function)}
        for name in (name for name in clause.mistakes if name not in known):
            family = sorted(one for one in known if one.rpartition(":")[0] == name.rpartition(":")[0])
            complaints.append(f"{clause.place} names the unknown mistake {name!r}; {likely(name, family)}.")
    return complaints


def text_of(assignment: Assignment) -> str:
    """The assignment's text; "" where there is none."""
    path = assignment.solution / README
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def not_quoted(docstring: str, quotes: Sequence[str]) -> list[str]:
    """What of a docstring stands in none of these quotes, but for rows of shapes and what is indented below them."""
    kept, margin = [], -1
    for line in docstring.splitlines():
        indent = len(line) - len(line.lstrip())
        if ROW.match(line):
            margin = indent
        elif not (0 <= margin < indent and line.strip()):
            kept.append(line)
            margin = -1
    rest = _collapsed(HEADING.sub("", "\n".join(kept)))
    for quote in sorted((_collapsed(quote).rstrip(".:;") for quote in quotes), key=len, reverse=True):
        rest = re.sub(_whole(quote), "\0", rest)  # a longer one may hold a shorter
    pieces = [piece.strip(" .:;,-0123456789") for piece in rest.split("\0")]
    return [piece for piece in pieces if " " in piece]  # a word alone joins two sentences


def _collapsed(text: str) -> str:
    """The text with each run of white space as one blank."""
    return " ".join(text.split())


def _whole(quote: str) -> str:
    """A pattern of the quote which cuts no word."""
    return rf"(?<!\w){re.escape(quote)}(?!\w)"
