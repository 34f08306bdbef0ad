"""A failed item → the line of the submission to look at: where it raised, or what makes a known mistake.

Of each known mistake, a table holds digests of what its wrong text has and the right one has not: an expression, or a
statement. `authoring.fixtures.fault_places` makes it. The line of the student's function that holds the same is the
line to mark, if there is just one. Expressions are compared as trees in one spelling; what a local variable stands for
may be any expression.

A digest tells whether a line that somebody has written is known to be wrong. It is made of no part of a right answer.
Who guesses a wrong line whole finds it, and learns no more than the public cases tell: students get the digests of
those mistakes alone that public cases know. It is short, so that many other expressions share it.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from autograder.submissions.submission import BREAK, UNPARSABLE, Submission, outlined
from autograder.vocabulary.report import NOT_REACHED, ItemResult

TABLES = {False: "public/fault_lines.json", True: "hidden/fault_lines.json"}  # by whether it is for staff
RIGHT = ""  # in place of a mistake: the statements of right texts, for staff alone
MAX_NODES, MAX_CHARACTERS = 2_500, 20_000  # of what is searched
MAX_FORMS = 256  # of one expression
LEAST_STATEMENTS = 3  # of a function that is compared with a right one
AROUND, MAX_WIDTH = 2, 120  # lines that are shown on each side, and characters of each
DIGITS = 5  # of a digest, hexadecimal: one guess in a million has it by chance
LIBRARIES = ("torch", "np", "numpy", "math", "F", "functional", "nn")
OPEN = "_"  # stands for any expression
REDUCTIONS = frozenset(
    ("mean", "std", "var", "sum", "prod", "amax", "amin", "max", "min", "argmax", "argmin", "argsort", "cumsum",
     "logsumexp", "softmax", "log_softmax")
)  # fmt: skip
KEYWORDS = {"axis": "dim", "keepdims": "keepdim", "ddof": "correction", "unbiased": "correction"}
FUNCTIONS = {"clip": "clamp", "concatenate": "cat", "absolute": "abs", "pow": "power", "power": "power"}
CORRECTIONS = {"True": 1, "False": 0}

# As `Submission.place` words it.
TOLD = re.compile(r"^(Line (\d{1,9}) of (?:your file|cell (\d{1,9}) \(text cells count\)))[.:]$", re.MULTILINE)
NUMBER = re.compile(r"\d+")

# function → mistake → places where its text differs → digests, the most telling first
Known = Mapping[str, Mapping[str, Sequence[Sequence[str]]]]


def known_places(folder: Path, *, staff: bool = False) -> Known:
    """Read the table that `regenerate` has stored beside an assignment's cases; empty where it can't be read."""
    try:
        known: Known = json.loads((folder / TABLES[staff]).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known


def marked_line(item: ItemResult, submission: Submission, known: Known) -> int | None:
    """Return the line of the source that a failed item is about; None where that is not certain."""
    if item.verdict in ("passed", "missing", "not_graded") or item.message.startswith(NOT_REACHED):
        return None
    line = line_in_message(item.message, submission)
    function = outlined(submission).get(item.function)
    if line is not None or item.verdict != "failed" or function is None:
        return line
    text = submission.source  # all of it, for a helper of theirs may be at fault; but where it is long
    if len(text) > MAX_CHARACTERS:
        lines = BREAK.split(text)[: function.last]
        text = "\n" * (function.first - 1) + "\n".join(lines[function.first - 1 :])
    return fault_line(text, item.function, item.mistakes, known)


def line_in_message(message: str, submission: Submission) -> int | None:
    """Return the line of the source that a message tells in the words of `Submission.place`."""
    for told in TOLD.finditer(message):
        number = int(told[2])
        cells = [begin + number - 1 for begin, cell in submission.cells if told[3] and cell == int(told[3])]
        saved = [begin + number - submission.lines[cell - 1] for begin, cell in submission.cells if submission.lines]
        for line in (*cells, *saved, *([] if submission.cells else [number])):
            if line >= 1 and submission.place(line) == told[1]:
                return line
    return None


def excerpt(item: ItemResult, submission: Submission, known: Known) -> list[str]:
    """Show a failed item's line and two lines around it, or say which function it is in."""
    function = outlined(submission).get(item.function)
    if item.verdict in ("passed", "missing", "not_graded") or function is None:
        return []
    line = marked_line(item, submission, known)
    if line is None:
        place = submission.place(function.last)
        begins, ends = (NUMBER.findall(submission.place(at))[0] for at in (function.head, function.last))
        return [f"Somewhere in {item.function}, lines {begins} to {ends} of {place.partition(' of ')[2]}."]
    first, last = 1, len(source := BREAK.split(submission.source))
    for begin, _ in submission.cells:  # a line before each names the cell
        first, last = (begin, last) if begin <= line else (first, min(last, begin - 2))
    shift = int(NUMBER.findall(submission.place(line))[0]) - line
    numbers = range(max(first, line - AROUND), min(last, line + AROUND) + 1)
    rows = [f"{'>' if at == line else ' '} {at + shift:>4}   {source[at - 1].expandtabs(4)}" for at in numbers]
    return [f"{submission.place(line)}:", *(row.rstrip()[:MAX_WIDTH] for row in rows)]


def fault_line(text: str, name: str, slugs: Sequence[str], known: Known) -> int | None:
    """Return the line, from 1, of a student's function that makes these mistakes; None where that is unclear.

    text   holds that function, and perhaps others that it calls, on their lines
    """
    mistakes = known.get(name, {})
    if len(text.strip()) > MAX_CHARACTERS or not any(slug in mistakes for slug in (*slugs, RIGHT)):
        return None
    found = set()
    try:
        lines = _lines_of(text, name)
        for slug in slugs:
            for place in mistakes.get(slug, ()):
                seen = next((lines[entry] for entry in place if entry in lines), set())
                if len(seen) == 1:
                    found |= seen
                    break
        if not found:  # the only line that a right text has otherwise
            statements = [
                pair for function in functions_of(text, name)[:1] for pair in statement_digests(function, name)
            ]
            for right in mistakes.get(RIGHT, ()) if len(statements) >= LEAST_STATEMENTS else ():
                others = {line for entry, line in statements if entry not in right}
                found |= others if len(others) == 1 else set()
    except UNPARSABLE:  # ValueError: a number of more digits than Python writes out
        return None
    return found.pop() if len(found) == 1 else None


@lru_cache(maxsize=8)  # several items ask for one function
def _lines_of(text: str, name: str) -> Mapping[str, set[int]]:
    """Return digest → the lines that have it; empty where there is too much to search."""
    functions = functions_of(text, name)
    lines: dict[str, set[int]] = {}
    if sum(1 for function in functions for _ in ast.walk(function)) <= MAX_NODES:
        for node, depth in (pair for function in functions for pair in nodes_of(function)):
            for form in forms(node):
                for place in (form, f"{depth} {form}"):
                    lines.setdefault(digest(name, place), set()).add(node.lineno)
    return lines


def digest(name: str, form: str) -> str:
    """Return the digest of a form of an expression in a function of that name."""
    return hashlib.sha256(f"{name}: {form}".encode()).hexdigest()[:DIGITS]


def statement_digests(function: ast.AST, name: str) -> list[tuple[str, int]]:
    """Return the digest and the line of each statement of a function."""
    return [(digest(name, written(node)), node.lineno) for node, _ in nodes_of(function) if isinstance(node, ast.stmt)]


def nodes_of(function: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, int]]:
    """Yield each expression and statement of a function, with the number of loops around it."""
    waiting: list[tuple[ast.AST, int]] = [(function, 0)]
    while waiting:
        node, depth = waiting.pop()
        if isinstance(node, ast.expr | ast.stmt) and node is not function:
            yield node, depth
        inner = depth + isinstance(node, ast.For | ast.While)
        waiting += [(child, inner) for child in ast.iter_child_nodes(node)]


@lru_cache(maxsize=MAX_NODES)  # of each node once, however deep it lies
def forms(node: ast.AST) -> frozenset[str]:
    """Return the ways to write a node in which some of its sub-expressions are left open."""
    if isinstance(node, ast.Name):
        return frozenset((node.id,))
    choices = [_choices(part) for part in _parts(node)]
    if isinstance(node, ast.Call):  # what is called is never open
        choices[0] = choices[0][:-1]
    return frozenset(f"{type(node).__name__}({','.join(chosen)})" for chosen in _products(choices))


def _parts(node: ast.AST) -> list[object]:
    """Return what a node is made of; of a statement that holds others, its head alone."""
    hidden = ("body", "orelse", "handlers", "finalbody") if isinstance(node, ast.stmt) else ()
    return [getattr(node, field, None) for field in node._fields if field not in hidden]


def _choices(part: object) -> list[str]:
    """Return the forms of one part: itself first, the open one last where it can be open; "" leaves a keyword out."""
    if isinstance(part, ast.AST):
        exact = written(part)
        if isinstance(part, ast.keyword):
            return [exact, *sorted(forms(part) - {exact}), ""]
        return [exact, *sorted(forms(part) - {exact, OPEN}), *([OPEN] if isinstance(part, ast.expr) else [])]
    if isinstance(part, list):
        choices = _products([_choices(entry) for entry in part])
        return list(dict.fromkeys(f"[{','.join(filter(None, chosen))}]" for chosen in choices))
    return [repr(part)]


def _products(choices: Sequence[Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """Combine the choices; where these are too many, only the first and the last of each."""
    for limited in (choices, [list(dict.fromkeys((some[0], some[-1]))) for some in choices]):
        if math.prod(map(len, limited)) <= MAX_FORMS:
            return itertools.product(*limited)
    return iter([tuple(some[0] for some in choices), tuple(some[-1] for some in choices)])


def written(node: object) -> str:
    """Write a node as it is, with each local variable open."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, list):
        return f"[{','.join(map(written, node))}]"
    if isinstance(node, ast.AST):
        return f"{type(node).__name__}({','.join(map(written, _parts(node)))})"
    return repr(node)


# One spelling


def functions_of(text: str, name: str = "") -> list[ast.FunctionDef]:
    """Return the function of that name, or the first, and those that it calls, in one spelling."""
    defined = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    names = [name or next(iter(defined), "")]
    functions: list[ast.FunctionDef] = []
    for each in names:
        if each in defined:
            used = (node.id for node in ast.walk(defined[each]) if isinstance(node, ast.Name))
            names += {other: 0 for other in used if other not in names}
            spelling = Spelling(defined[each], is_helper=bool(functions))
            functions.append(spelling.visit(defined[each]))
    return functions


class Spelling(ast.NodeTransformer):
    """Writes `torch.exp(x)` like `x.exp()`, an axis by name, keywords in order, each local variable as OPEN."""

    def __init__(self, function: ast.FunctionDef, *, is_helper: bool) -> None:
        """Collect the local names of a function; its parameters are among them if it is a student's own helper."""
        arguments = function.args
        parameters = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        names = (node for node in ast.walk(function) if isinstance(node, ast.Name))
        stored = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        self.locals = stored | parameters if is_helper else stored - parameters

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Drop what is not computed."""
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.copy_location(ast.Pass(), node.body[0])]
        node.returns, node.decorator_list = None, []
        self.generic_visit(node)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        """Drop the annotation."""
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Write `x: int = 1` like `x = 1`."""
        plain = node if node.value is None else ast.copy_location(ast.Assign([node.target], node.value), node)
        return self.generic_visit(plain)

    def visit_Name(self, node: ast.Name) -> ast.Name:
        """Write any local variable alike."""
        name = OPEN if node.id in self.locals else node.id
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def visit_Call(self, node: ast.Call) -> ast.Call:
        """Write methods like functions of a library, and arguments by name where both ways are usual."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute):
            owner = node.func.value
            root = owner
            while isinstance(root, ast.Attribute):
                root = root.value
            if not (isinstance(root, ast.Name) and root.id in LIBRARIES):
                node.args = [owner, *node.args]
            name = FUNCTIONS.get(node.func.attr, node.func.attr)
            node.func = ast.copy_location(ast.Name(name, ast.Load()), node)
        if isinstance(node.func, ast.Name) and node.func.id in REDUCTIONS:
            if (
                len(node.args) == 2
                and not isinstance(node.args[1], ast.Starred)
                and not any(keyword.arg in ("dim", "axis") for keyword in node.keywords)
            ):
                node.keywords.append(ast.keyword("dim", node.args.pop()))
            for keyword in node.keywords:
                if keyword.arg == "unbiased":
                    number = CORRECTIONS.get(ast.unparse(keyword.value))
                    plain = keyword.value if number is None else ast.Constant(number)
                    keyword.value = ast.copy_location(plain, keyword.value)
                keyword.arg = KEYWORDS.get(keyword.arg or "", keyword.arg)
        node.keywords.sort(key=lambda keyword: keyword.arg or "")
        return node
