"""The contract as data: every sentence that binds a student is a clause of the assignment's `contract.toml`.

    [[clause]]
    id = "deltas-max-ties"
    function = "compute_deltas"        # "" where it is about all of them
    where = "docstring"                # or "README", the assignment's text
    sentence = "…"                     # verbatim; white space may differ
    items = ["deltas-max"]
    mistakes = ["first-maximum-only", "habit:isclose-for-eq"]
    separates = "two equal maxima in one row"

or, in place of the last three, `not_graded = "the reason"`. Sentences of a docstring may be written shorter, each with
its mistakes or with the reason; they are about all items of their function, and one without mistakes is a draft:

    [compute_deltas]
    "Two maxima share the weight" = ["first-maximum-only"]
    "The result has no graph" = "whether it has one changes no value"
    "rewards float[batch trial]" = []
"""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from autograder.authoring.docstrings import collapsed, sentences
from autograder.grading.items import Assignment
from autograder.vocabulary.errors import FixtureError

CONTRACT = "contract.toml"
README = "README.md"
WHERE = ("docstring", "README")
TEXTS = frozenset({"id", "function", "where", "sentence", "separates", "not_graded"})
LISTS = frozenset({"items", "mistakes"})
SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True)
class Clause:
    """One sentence that binds a student, and what holds the grader to it.

    line       where the clause begins in contract.toml
    items      the items that are about it
    mistakes   what violates it: slugs of the catalogue, `habit:…` and `parameter:…` of generated mutants
    """

    id: str
    function: str
    where: str
    sentence: str
    line: int
    items: tuple[str, ...] = ()
    mistakes: tuple[str, ...] = ()
    separates: str = ""
    not_graded: str = ""

    @property
    def is_open(self) -> bool:
        """Whether it is a draft: nothing violates it, and nothing says why it is not graded."""
        return not self.mistakes and not self.not_graded


@dataclass(frozen=True)
class Contract:
    """The clauses of an assignment, and the file that they stand in."""

    path: Path
    clauses: tuple[Clause, ...]

    @property
    def drafts(self) -> tuple[Clause, ...]:
        """The clauses that are drafts."""
        return tuple(clause for clause in self.clauses if clause.is_open)

    def place(self, clause: Clause) -> str:
        """File, line and id, as a complaint begins."""
        return f"{self.path.parent.name}/{self.path.name}:{clause.line}: {clause.id}"


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
    of_function: dict[str, tuple[str, ...]] = {}
    for item in assignment.items:
        of_function[item.function] = (*of_function.get(item.function, ()), item.id)
    clauses = [make() for make in clauses_in(data, text, path, of_function)]
    _refuse_twice(clauses, path)
    return Contract(path, tuple(clauses))


def clauses_in(
    data: Mapping[str, Any], text: str, path: Path, of_function: Mapping[str, tuple[str, ...]]
) -> Iterator[Callable[[], Clause]]:
    """What makes each clause, or raises FixtureError where it cannot be one; `of_function` are a function's items."""
    shorter = {name: one for name, one in data.items() if name != "clause"}
    for name, one in shorter.items():
        if not isinstance(one, dict):
            raise FixtureError(f"{path} has the unknown entry {name!r}; clauses are [[clause]] tables.")
    listed = data.get("clause", [])
    if not isinstance(listed, list) or not (listed or shorter) or not all(isinstance(one, dict) for one in listed):
        raise FixtureError(f"{path} lists no [[clause]].")
    rows = text.splitlines()
    lines = [number for number, row in enumerate(rows, 1) if row.strip().startswith("[[clause]]")]
    numbers = lines if len(lines) == len(listed) else [1] * len(listed)
    for entry, line in zip(listed, numbers, strict=True):
        yield functools.partial(_clause, entry, path, line)
    for name, one in shorter.items():
        for place, (sentence, value) in enumerate(one.items(), 1):
            slug = "-".join(re.findall(r"[a-z0-9]+", f"{name} {place}".lower()))
            line = _line_of(rows, name, sentence)
            items = of_function.get(name, ())
            short = Clause(slug, name, "docstring", sentence, line, items, separates="the cases of its items")
            yield functools.partial(_short_clause, short, value, path)


def _line_of(rows: Sequence[str], function: str, sentence: str) -> int:
    """The line of a sentence below its function's name."""
    heads = (f"[{function}]", f'["{function}"]')
    start = next((number for number, row in enumerate(rows) if row.strip() in heads), 0)
    plain = [row.strip()[1:].replace('\\"', '"').replace("\\\\", "\\") for row in rows]
    return next((n for n, row in enumerate(plain[start:], start + 1) if row.startswith(sentence)), 1)


def _short_clause(short: Clause, value: Any, path: Path) -> Clause:
    """The clause that `"sentence" = [mistakes]` or `"sentence" = "why it is not graded"` is."""
    if isinstance(value, str) and value.strip():
        return replace(short, not_graded=value, items=(), separates="")
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return replace(short, mistakes=tuple(value))
    raise FixtureError(
        f"{path}:{short.line}: {short.sentence[:60]!r} of [{short.function}] should have a list of mistakes, or the "
        f"reason why it is not graded, but has {value!r}."
    )


def _clause(entry: Mapping[str, Any], path: Path, line: int) -> Clause:
    def refuse(what: str) -> NoReturn:
        raise FixtureError(f"{path}:{line}: {what}.")

    name = entry.get("id")
    if not isinstance(name, str) or not SLUG.fullmatch(name):
        refuse(f"'id' of a clause should be a slug such as deltas-max-ties, but is {name!r}")
    if unknown := sorted(entry.keys() - TEXTS - LISTS):
        refuse(f"{name} has the unknown entry {unknown[0]!r}")
    for key in TEXTS & entry.keys():
        if not isinstance(entry[key], str) or not (entry[key].strip() or key == "function"):
            refuse(f"{key!r} of {name} should be text, but is {entry[key]!r}")
    for key in LISTS & entry.keys():
        if not isinstance(entry[key], list) or not all(isinstance(one, str) for one in entry[key]):
            refuse(f"{key!r} of {name} should be a list of text, but is {entry[key]!r}")
    if missing := sorted({"function", "where", "sentence"} - entry.keys()):
        refuse(f"{name} has no {missing[0]!r}")
    if entry["where"] not in WHERE:
        refuse(f"'where' of {name} should be one of {', '.join(WHERE)}, but is {entry['where']!r}")
    lists = {key: tuple(entry.get(key, ())) for key in LISTS}
    texts = {key: entry.get(key, "") for key in TEXTS}
    return Clause(**{**texts, **lists}, line=line)


def _refuse_twice(clauses: Sequence[Clause], path: Path) -> None:
    seen: dict[str, int] = {}
    for clause in clauses:
        if clause.id in seen:
            raise FixtureError(
                f"{path}:{clause.line}: {clause.id} is the id of the clause in line {seen[clause.id]} too."
            )
        seen[clause.id] = clause.line


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
        quotes = [collapsed(c.sentence) for c in contract.clauses if c.where == "docstring" and c.function == function]
        for sentence in sentences(text) if function else ():
            if not any(_stands_in(sentence, quote) or _stands_in(quote.rstrip(".:;"), sentence) for quote in quotes):
                found.append(f"{contract.path.parent.name}/{CONTRACT}: no clause of {function} quotes: {sentence!r}.")
    for clause in contract.clauses:
        quoted = readme if clause.where == "README" else " ".join([texts.get(clause.function, ""), texts.get("", "")])
        if clause.where == "docstring" and not clause.function:
            quoted = " ".join(texts.values())
        if not _stands_in(collapsed(clause.sentence), collapsed(quoted)):
            place = README if clause.where == "README" else f"the docstring of {clause.function or 'any function'}"
            found.append(f"{contract.place(clause)} quotes what does not stand in {place}: {clause.sentence!r}.")
    return found


def _stands_in(part: str, whole: str) -> bool:
    """Whether the one text stands in the other, and no word of the other is cut by it."""
    return re.search(rf"(?<!\w){re.escape(part)}(?!\w)", whole) is not None
