"""Words, numbers and characters that the terminal, the pages and the gradebook share."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

# Control, format (bidi overrides, zero-width characters), lone surrogates, line and paragraph separators:
# what can reorder a line, move a cursor, or stand where nobody sees it.
INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# What makes a spreadsheet read a cell as a formula. Compatibility forms (＝ ﹢ ⁻ …) are folded into these
# before the test; the true minus sign is no compatibility form, so it is named.
FORMULA_STARTS = frozenset("=+-@\N{MINUS SIGN}")
# Where a spreadsheet may begin a cell: one that splits at another sign than ours takes our quotes for text.
SEPARATOR = re.compile(r"([,;\t\r\n])")
STRICT = ("landlock", "seccomp")  # layers of isolation without which it is below strict


def visible(text: str, limit: int | None = None, *, newlines: bool = False) -> str:
    """Write each character that acts without being seen as an escape: `\\x1b`, `\\u202e`.

    limit      the most characters to return; longer text ends in `…`, and no escape is cut in two
    newlines   keep line breaks (`\\r\\n` becomes `\\n`) instead of writing them as `\\n`
    """
    if text.isprintable() and (limit is None or len(text) <= limit):
        return text
    if newlines:
        text = text.replace("\r\n", "\n")
    if limit is not None:
        text = text[: limit + 1]  # each character shows as one or more, so the rest cannot matter
    shown = [
        character
        if unicodedata.category(character) not in INVISIBLE or (newlines and character == "\n")
        else character.encode("unicode-escape").decode()
        for character in text
    ]
    if limit is None or sum(map(len, shown)) <= limit:
        return "".join(shown)
    kept = ""
    for piece in shown:
        if len(kept) + len(piece) >= limit:
            break
        kept += piece
    return (kept + "…")[:limit]


def isolation_line(layers: Iterable[str]) -> str:
    """Name the layers of isolation, and below strict what is missing."""
    layers = list(layers)
    missing = [layer for layer in STRICT if layer not in layers]
    below = f" (below strict: without {' and '.join(missing)})" if missing else ""
    return f"{', '.join(visible(layer, 40) for layer in layers) or 'none'}{below}"


def counted(count: int, what: str) -> str:
    """Say `1 grade`, `2 grades`."""
    return f"{count} {what}{'s' * (count != 1)}"


def number(value: float) -> str:
    """Round to two decimals, without needless zeros: `83.5`, `100`, `4`."""
    return f"{round(value, 2) + 0.0:.2f}".rstrip("0").rstrip(".")


# Cells that a spreadsheet takes for text


def harmless(cell: str) -> str:
    """Put a `'` before whatever a spreadsheet would run, wherever it splits cells; `as_written` takes it out."""
    return "".join(f"'{part}" if _is_formula(part.lstrip("'")) else part for part in SEPARATOR.split(cell))


def as_written(cell: str) -> str:
    """Return what `harmless` was given."""
    parts = SEPARATOR.split(cell)
    return "".join(part[1:] if part[:1] == "'" and _is_formula(part.lstrip("'")) else part for part in parts)


def reads_as_formula(text: str) -> bool:
    """Tell whether some spreadsheet would take `text`, or a part of it as a cell of its own, for a formula."""
    return any(map(_is_formula, SEPARATOR.split(text)))


def _is_formula(part: str) -> bool:
    """Tell whether it begins as a formula does, after whatever a spreadsheet may drop before it looks for one."""
    shown = (letter for letter in part if not letter.isspace() and unicodedata.category(letter) not in INVISIBLE)
    return unicodedata.normalize("NFKC", next(shown, ""))[:1] in FORMULA_STARTS
