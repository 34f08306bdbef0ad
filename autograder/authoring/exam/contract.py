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
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.authoring.exam.mutants import Variant
from autograder.authoring.faults import Fault, Faults, likely, line_in, read_toml
from autograder.grading.assignment import Assignment

CONTRACT = "contract.toml"
README = "README.md"
ROW = re.compile(r" *(?:returns\b|\w+ +(?:float|int|bool|str|Tensor|list|Callable)\d*\b)")  # of shapes, in a docstring
HEADING = re.compile(r"^ *(?:(?:Args|Arguments|Parameters|Returns|Raises|Notes?|Examples?):?|-{3,}) *$", re.MULTILINE)
FORM = "a sentence with its mistakes, or with the reason why it is not graded"
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

    Raises FixtureError, all that is wrong with file and line, where the file cannot be used.
    """
    path, faults = assignment.folder / CONTRACT, list[Fault]()
    if not path.is_file():
        return None
    of_function: dict[str, list[str]] = {curve.function: [] for curve in assignment.curves}
    for item in assignment.items:
        of_function.setdefault(item.function, []).append(item.id)
    clauses = clauses_in(path, of_function, faults)
    if faults:
        raise Faults.of(faults)
    return tuple(clauses)


def clauses_in(path: Path, of_function: Mapping[str, Sequence[str]], faults: list[Fault]) -> list[Clause]:
    """The clauses of a file, whose faults are added to those known; `of_function` are a function's items."""
    text, data = read_toml(path, faults)
    every = [item for items in of_function.values() for item in items]
    clauses = []
    for name, table in (data or {}).items():
        if not isinstance(table, dict):
            faults.append(Fault(path, 1, f"{name!r} is no table of sentences", FORM))
            continue
        if name and name not in of_function:
            faults.append(Fault(path, line_in(text, name), f"no item grades {name!r}", likely(name, of_function)))
        for sentence, value in table.items():
            line, shown = line_in(text, name, -1, sentence), repr(sentence[:SHOWN] + " …" * (len(sentence) > SHOWN))
            place = f"{path.parent.name}/{CONTRACT}:{line}: {shown}"
            if isinstance(value, str) and value.strip():
                clauses.append(Clause(name, sentence, place, not_graded=value))
            elif isinstance(value, list) and all(isinstance(one, str) for one in value):
                own = of_function.get(name, ()) if name else every
                items, mistakes = (tuple(one for one in value if (one in own) == is_own) for is_own in (True, False))
                clauses.append(Clause(name, sentence, place, items or tuple(own), mistakes))
            else:
                what = f"{shown} of [{name}] should have a list of items and mistakes, or the reason, but has {value!r}"
                faults.append(Fault(path, line, what, FORM))
    return clauses


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
    module = ast.parse(solution)
    nodes = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name in assignment.functions]
    docstrings = {node.name: ast.get_docstring(node) or "" for node in nodes}
    about_all = [ast.get_docstring(module) or "", text_of(assignment)]
    complaints = [
        f"{assignment.name}/{CONTRACT}: no clause of {function} quotes: {piece!r}."
        for function, docstring in docstrings.items()
        for piece in not_quoted(docstring, [clause.sentence for clause in clauses if clause.function == function])
    ]
    for clause in clauses:
        texts = [text for function, text in docstrings.items() if clause.is_about(function)]
        if not any(re.search(_quote(clause.sentence), " ".join(text.split())) for text in (*texts, *about_all)):
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
    rest = " ".join(HEADING.sub("", "\n".join(kept)).split())
    for quote in sorted(quotes, key=len, reverse=True):  # a longer one may hold a shorter
        rest = re.sub(_quote(quote.rstrip(".:; \n")), "\0", rest)
    pieces = [piece.strip(" .:;,-0123456789") for piece in rest.split("\0")]
    return [piece for piece in pieces if " " in piece]  # a word alone joins two sentences


def _quote(text: str) -> str:
    """A pattern of the text, each run of white space as one blank, which cuts no word."""
    return rf"(?<!\w){re.escape(' '.join(text.split()))}(?!\w)"
