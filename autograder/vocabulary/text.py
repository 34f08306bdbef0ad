"""The words, numbers and characters that the terminal, the pages and the gradebook share."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from autograder.vocabulary.report import INVISIBLE as INVISIBLE  # one of the words that others share
from autograder.vocabulary.report import Verdict

_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

VERDICT_WORDS: Mapping[Verdict, str] = MappingProxyType(
    {
        "passed": "passed",
        "failed": "failed",
        "raised": "raised an error",
        "missing": "not implemented yet",
        "timed_out": "ran out of time",
        "out_of_memory": "ran out of memory",
        "crashed": "crashed",
        "not_run": "not run",
        "not_graded": "could not be graded",
    }
)


PLURAL = re.compile(r"(?:the )?(?:[\w'-]+ )?[\w-]+(?<![su])s(?= |$)")  # "the weights", "rewards"; no "loss", "status"
PREPOSITION = re.compile(r" (?:with|of|to|in|for|after|before|returned|that)\b.*")
STRICT = ("landlock", "seccomp")


def isolation_line(layers: Iterable[str]) -> str:
    """What a report says of its isolation: the layers, and below strict what is missing."""
    layers = list(layers)
    missing = [layer for layer in STRICT if layer not in layers]
    below = f" (below strict: without {' and '.join(missing)})" if missing else ""
    return f"{', '.join(visible(layer, 40) for layer in layers) or 'none'}{below}"


def visible(text: str, limit: int | None = None, *, newlines: bool = False) -> str:
    """`text` with each character that acts without being seen written as an escape: `\\x1b`, `\\u202e`.

    limit      the most characters to return; longer text ends in `…`, and no escape is cut in two
    newlines   keep line breaks (`\\r\\n` becomes `\\n`) instead of writing them as `\\n`
    """
    if text.isprintable() and (limit is None or len(text) <= limit):
        return text
    if newlines:
        text = text.replace("\r\n", "\n")
    if limit is not None:
        text = text[: limit + 1]  # each character shows as one or more, so the rest cannot matter
    if text.isprintable():
        shown: list[str] = list(text) if limit is not None else [text]
    else:
        shown = [_shown(character, newlines) for character in text]
    if limit is None or sum(map(len, shown)) <= limit:
        return "".join(shown)
    return _capped(shown, limit)


def with_verb(what: str, one: str = "has", many: str = "have") -> str:
    """`the weights have`, `log_probs has`: a name in code is one thing, unless it is a plain word."""
    head = PREPOSITION.sub("", what)
    return f"{what} {many if PLURAL.fullmatch(head) and '_' not in head else one}"


def counted(count: int, what: str) -> str:
    """`1 grade`, `2 grades`."""
    return f"{count} {what}{'s' * (count != 1)}"


def number(value: float) -> str:
    """`value` to two decimals at most, without needless zeros: `83.5`, `100`, `4`."""
    return f"{round(value, 2) + 0.0:.2f}".rstrip("0").rstrip(".")


def _shown(character: str, newlines: bool) -> str:
    if unicodedata.category(character) not in INVISIBLE or (newlines and character == "\n"):
        return character
    return _SHORT_ESCAPES.get(character) or _escape(ord(character))


def _escape(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _capped(shown: Iterable[str], limit: int) -> str:
    kept: list[str] = []
    room = limit - 1
    for piece in shown:
        room -= len(piece)
        if room < 0:
            break
        kept.append(piece)
    return ("".join(kept) + "…")[:limit]
