"""Ways to spoil bytes, texts and JSON a little: enough to be wrong, not so much that the first check stops it."""

from __future__ import annotations

import random
import re
from typing import Any

ODD_NUMBERS = ("0", "-1", "9" * 5000, "1e999", "9999", "0000", "10000", "-0.0", "٣", "1_000", "99999999999999999999")
ODD_TEXTS = (
    *("", " ", "\x00", "\r", "\u202e", "\u200b", "\ufeff", "\ud800", "'", '"', ",", ";", "\t", "\n", "=1+1", "-2+3"),
    *("../../x", "/etc/passwd", "C:\\x", "a" * 3000, "💥", "<script>", "[" * 2000, "{" * 2000, "(" * 2000, "nan"),
    *("+99:99", "-23:59", "+24:00", "Z", "UTC", "Europe/Berlin", "../../etc/localtime", "T24:00:00", "9999-12-31"),
    *("0001-01-01", "1970-01-01", "2027-02-30", "23:59:60", "00:00:00.9999999"),
)
DEEP: Any = None
for _ in range(800):
    DEEP = [DEEP]
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, -1, 2.5, 10**4000, 2**63, [], {}, ["x"] * 300, [-1], [10**9] * 3, DEEP),
    *("", "tensor", "none", "other", "\ud800", "x" * 5000, {"": {}}, float("1e308")),
)


def spoilt_bytes(source: random.Random, data: bytes, times: int = 3) -> bytes:
    """The bytes with one to `times` places changed, cut out or doubled."""
    changed = bytearray(data)
    for _ in range(source.randrange(1, times + 1) if changed else 0):
        if not changed:
            break
        place = source.randrange(len(changed))
        until = place + source.randrange(1, 6)
        match source.randrange(5):
            case 0:
                changed[place] = source.randrange(256)
            case 1:
                changed[place] ^= 1 << source.randrange(8)
            case 2 if len(changed) > 6:
                del changed[place:until]
            case 3:
                del changed[place:]
            case _:
                changed[place:place] = changed[place:until]
    return bytes(changed)


def spoilt_text(source: random.Random, text: str) -> str:
    """The text with a number or a piece replaced by an odd one, a line dropped or doubled, or some bytes changed."""
    match source.randrange(5):
        case 0 if numbers := list(re.finditer(r"\d+", text)):
            found = source.choice(numbers)
            return text[: found.start()] + source.choice(ODD_NUMBERS) + text[found.end() :]
        case 1:
            place = source.randrange(len(text) + 1)
            return text[:place] + source.choice(ODD_TEXTS) + text[place + source.randrange(4) :]
        case 2:
            lines = text.splitlines(keepends=True) or [""]
            place = source.randrange(len(lines))
            lines[place : place + 1] = lines[place : place + 1] * source.choice((0, 2))
            return "".join(lines)
        case 3 if words := list(re.finditer(r"[^\s,;=\"]+", text)):
            found = source.choice(words)
            return text[: found.start()] + source.choice(ODD_TEXTS) + text[found.end() :]
        case _:
            return spoilt_bytes(source, text.encode("utf-8", "replace")).decode("utf-8", "replace")


def spoilt_value(source: random.Random, value: Any) -> Any:
    """The JSON value with something odd put in the place of one of its parts, or of itself."""
    if not isinstance(value, dict | list) or not value or source.random() < 0.1:
        return source.choice(ODD_VALUES)
    copied: Any = value.copy()
    key = source.choice(list(value) if isinstance(value, dict) else range(len(value)))
    if source.random() < 0.1:
        del copied[key]
    else:
        copied[key] = spoilt_value(source, value[key])
    return copied
