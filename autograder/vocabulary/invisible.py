"""Characters that act without being seen, and JSON without them."""

from __future__ import annotations

import unicodedata

# Control, format (bidi overrides, zero-width characters), lone surrogates, line and paragraph separators:
# what can reorder a line, move a cursor, or stand where nobody sees it.
INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def plain_json(text: str) -> str:
    """JSON with each character in it that acts without being seen as JSON's own escape: what it says is the same.

    Outside strings JSON holds none of them but line breaks and spaces, and `json` has escaped those inside.
    """
    if text.replace("\n", "").isprintable():
        return text
    return "".join(_json_escape(one) if one != "\n" and unicodedata.category(one) in INVISIBLE else one for one in text)


def _json_escape(character: str) -> str:
    code = ord(character)
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD800 + (code - 0x10000 >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
