"""A student's work as data: found (a Candidate), then read (a Submission), and the functions in its source.

folder of submissions ─▶ finding.find ─▶ Candidate ─▶ reading.read ─▶ Submission

Source is parsed here and never run. Some text takes Python time and memory with the square of its length (a long
f-string, thousands of functions), so what is handed in is parsed where that may fail: see `reading.read_limited`.
"""

from __future__ import annotations

import ast
import bisect
import functools
import re
import unicodedata
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from autograder.vocabulary.text import visible

MIB = 2**20
CAPS = {".py": MIB, ".ipynb": 64 * MIB, ".zip": 64 * MIB}  # bytes, on disk or unpacked from a zip
MAX_WRITTEN = 4_000  # characters of one function, as an example
MAX_DEFAULT = 1_000  # characters of one default
BREAK = re.compile(r"\r\n|\r|\n")
UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)  # what ast, compile and symtable raise


@dataclass(frozen=True)
class Candidate:
    """Something that a student handed in, found but not yet read.

    student     name shown to staff: the folder's or the file's stem; never empty, always encodable
    path        folder, .py, .ipynb or .zip
    shown       the path in reports: relative to the folder that was given, forward slashes, nothing invisible
    files       loose files that a platform keeps apart from other students', oldest first: name as given, and path
    notes       how it was handed in
    fault       one sentence to staff: why it is not read, through no fault of the student's
    identity    see `Report.identity`
    submitted   when, where the platform says so; without a zone where the platform names none
    """

    student: str
    path: Path
    shown: str
    files: tuple[tuple[str, Path], ...] = ()
    notes: tuple[str, ...] = ()
    fault: str = ""
    identity: str = ""
    submitted: datetime | None = None


@dataclass(frozen=True)
class UnreadCell:
    """A cell of a notebook that should be Python and could not be read.

    number   of the cell; text cells count
    line     of the cell at which Python stopped reading; 0 where that is not known
    note     why, as the report says it
    """

    number: int
    code: str
    line: int
    note: str


@dataclass(frozen=True)
class Function:
    """A top-level function of a module, by its lines from 1.

    first       where it begins, decorators included
    head        where its name stands
    docstring   the first and the last line of its docstring, where there is more in it
    defaults    parameter → its default in the shortest spelling, where that is a literal
    """

    first: int
    head: int
    last: int
    docstring: tuple[int, ...] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Submission:
    """A candidate, read; `source` is "" exactly where there is a problem or a fault.

    path           `shown` and what was chosen inside: "ada/policy_gradient.py", "eve.zip/policy_gradient.ipynb"
    sha256         of the chosen file's bytes, as far as they were read
    source         Python text of the module: to be compiled as text, since a coding line in it has done its work
    problem        one sentence to the student: why there is nothing to grade
    fault          one sentence to staff: why the grader could not read it
    notes          what the report says beside the grade
    cells          of a notebook: at which line of `source` each cell begins, and its number
    lines          of a script saved from a notebook: at which of its lines each cell begins
    unread         functions that an unreadable cell would define → why it could not be read
    unread_cells   those cells, whatever they would define
    identity       see `Report.identity`
    answered       questions in words that have an answer
    defines        functions of the course that the file seems to define, before anything was cut out
    functions      what `source` defines, each where it is defined last; in what was handed in, what is graded
    """

    student: str
    path: str
    sha256: str
    source: str
    problem: str = ""
    fault: str = ""
    notes: tuple[str, ...] = ()
    cells: tuple[tuple[int, int], ...] = ()
    lines: tuple[int, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    unread_cells: tuple[UnreadCell, ...] = ()
    identity: str = ""
    answered: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    functions: Mapping[str, Function] = field(default=None)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        """Look for the functions of a text that was never handed in."""
        if self.functions is None:
            object.__setattr__(self, "functions", outline(self.source))

    def has_helpers(self, name: str) -> bool:
        """Tell whether this function names another one of the text that is not graded."""
        words = set(re.findall(r"\w+", written(self.source, {name: self.functions[name]})[name]))
        defined = set(re.findall(r"^def (\w+)", self.source, re.MULTILINE))
        return not words.isdisjoint(defined - self.functions.keys())

    def place(self, line: int) -> str:
        """Say where a line of `source` was written: `Line 3 of your file`, `Line 2 of cell 7 (text cells count)`."""
        index = bisect.bisect_right(self.cells, line, key=lambda cell: cell[0]) - 1
        if index < 0:
            return f"Line {line} of your file"
        begin, number = self.cells[index]
        if self.lines:
            return f"Line {self.lines[number - 1] + line - begin} of your file"
        return f"Line {line - begin + 1} of cell {number} (text cells count)"


# Names of files and students as text


def shown_name(name: str) -> str:
    """Write the name of a file or folder as reports show it."""
    return visible(decodable(name)) or "."


def student_name(name: str) -> str:
    """Make a student's name of what a file system or a platform gives: never empty, always encodable."""
    return unicodedata.normalize("NFC", decodable(name)) or "submission"


def decodable(name: str) -> str:
    """Write each byte of a file name that is not UTF-8 as an escape: `\\xff`."""
    escaped = re.sub("[\udc80-\udcff]", lambda byte: f"\\x{ord(byte[0]) - 0xDC00:02x}", name)
    return escaped.encode("utf-8", "backslashreplace").decode()


def quoted(name: str) -> str:
    """Write a name as a sentence shows it: one line, not too long."""
    return visible(decodable(name), 300)


# Functions


def parsed(text: str) -> ast.Module:
    """Parse `text`, and check what Python checks without running it; raises one of UNPARSABLE."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an odd escape in a string is the student's, not the grader's
        tree = ast.parse(text)
        compile(tree, "<cell>", "exec", dont_inherit=True)
    return tree


def is_stub(node: ast.AST) -> bool:
    """Tell whether a function, or a class's method, only raises NotImplementedError, as all are handed out."""
    if isinstance(node, ast.ClassDef):
        return any(map(is_stub, node.body))
    if not isinstance(node, ast.FunctionDef):
        return False
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    raised = body[0].exc if len(body) == 1 and isinstance(body[0], ast.Raise) else None
    name = raised.func if isinstance(raised, ast.Call) else raised
    return isinstance(name, ast.Name) and name.id == "NotImplementedError"


@functools.lru_cache(maxsize=4)  # the handout is the same for a whole class
def functions_of(source: str) -> Mapping[str, str]:
    """Dump the top-level functions of `source` by name, without docstrings and positions; "" for a stub.

    A class is among them while it is to be completed, with all that it holds but its stubs.
    """
    body = parsed(source).body
    classes = {
        node.name: "".join(ast.dump(part) for part in node.body if not isinstance(part, ast.Expr) and not is_stub(part))
        for node in body
        if isinstance(node, ast.ClassDef) and is_stub(node)
    }
    functions = [statement for statement in body if isinstance(statement, ast.FunctionDef)]
    for function in functions:
        if ast.get_docstring(function, clean=False) is not None:
            del function.body[0]
    return classes | {function.name: "" if is_stub(function) else ast.dump(function) for function in functions}


@functools.lru_cache(maxsize=4)
def outline(source: str, names: tuple[str, ...] = ()) -> Mapping[str, Function]:
    """Find the top-level functions of these names, or all; none in what cannot be parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            statements = ast.parse(source).body
    except UNPARSABLE:
        return {}
    functions = {}
    for node in statements:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (not names or node.name in names):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            text = node.body[0] if ast.get_docstring(node, clean=False) is not None and len(node.body) > 1 else None
            docstring = (text.lineno, text.end_lineno or text.lineno) if text else ()
            parameters = [*node.args.posonlyargs, *node.args.args]
            parameters = [*parameters[len(parameters) - len(node.args.defaults) :], *node.args.kwonlyargs]
            literals = {}
            for parameter, default in zip(parameters, [*node.args.defaults, *node.args.kw_defaults], strict=True):
                try:
                    written_out = repr(ast.literal_eval(default)) if default is not None else ""
                    ast.literal_eval(written_out)  # an infinity and an ellipsis are literals, their spellings are none
                except (*UNPARSABLE, TypeError):
                    continue
                if len(written_out) <= MAX_DEFAULT:
                    literals[parameter.arg] = written_out
            functions[node.name] = Function(first, node.lineno, node.end_lineno or node.lineno, docstring, literals)
    return functions


def written(source: str, functions: Mapping[str, Function]) -> dict[str, str]:
    """Return the text of these functions of a source, without docstrings, each cut where it is long."""
    lines = BREAK.split(source)
    texts = {}
    for name, function in functions.items():
        begin, end = function.docstring or (function.first, function.first - 1)
        kept = [*lines[function.first - 1 : begin - 1], *lines[end : function.last]]
        text = "\n".join(line.rstrip() for line in kept).rstrip() + "\n"
        texts[name] = text if len(text) <= MAX_WRITTEN else text[:MAX_WRITTEN] + "…\n"
    return texts
