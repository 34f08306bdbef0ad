"""Python text → lines of markup, coloured by Pygments: classes that the page's styles know, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from itertools import groupby

from markupsafe import Markup, escape
from pygments.lexer import Lexer
from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType

from autograder.vocabulary.text import visible

MAX_WIDTH = 240  # characters of a line
TAB = 4
KEPT = 128  # texts: of a class many are the same, such as imports, and functions as they were handed out

# Of the first that a token is in. f: what is defined; i: what a string interpolates, which is no text.
CLASSES: tuple[tuple[_TokenType, str], ...] = (
    (Comment, "c"),
    (String.Interpol, "i"),
    (String, "s"),
    (Number, "m"),
    (Keyword, "k"),
    (Operator.Word, "k"),
    (Name.Function, "f"),
    (Name.Class, "f"),
    (Name.Decorator, "f"),
    (Name.Builtin, "b"),
)


def coloured(lines: Iterable[str]) -> list[Markup]:
    """Each line as markup, without its break; what acts unseen is an escape, and a long line ends in `…`."""
    cut = [_cut(line.rstrip()) for line in lines]  # Pygments takes the square of white space over many lines
    return list(_of_text("\n".join(cut))[: len(cut)])


@lru_cache(KEPT)
def _of_text(text: str) -> tuple[Markup, ...]:
    pieces = [(_class(kind), piece) for kind, piece in _lexer().get_tokens(text)]
    return tuple(map(_markup, _by_line(pieces)))


def plain(line: str) -> Markup:
    """A line as markup without colours."""
    return escape(visible(_cut(line)))


def _cut(line: str) -> str:
    line = line[: MAX_WIDTH + 1].expandtabs(TAB) if len(line) > MAX_WIDTH else line.expandtabs(TAB)
    return line if len(line) <= MAX_WIDTH else f"{line[:MAX_WIDTH]}…"


@cache
def _lexer() -> Lexer:
    return PythonLexer(stripnl=False, ensurenl=False)


@cache
def _class(kind: _TokenType) -> str:
    return next((name for known, name in CLASSES if kind in known), "")


def _by_line(pieces: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    line: list[tuple[str, str]] = []
    for name, text in pieces:
        first, *others = text.split("\n")
        line.append((name, first))
        for other in others:
            yield line
            line = [(name, other)]
    yield line


def _markup(line: Iterable[tuple[str, str]]) -> Markup:
    runs = [
        (name, visible("".join(text for _, text in run))) for name, run in groupby(line, key=lambda piece: piece[0])
    ]
    return Markup("".join([_run(name, escape(text)) for name, text in runs]))


def _run(name: str, text: Markup) -> str:
    return f'<span class="{name}">{text}</span>' if name and text else text
