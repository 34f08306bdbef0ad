"""What a terminal can show: its width, its colours, a line that goes away again."""

from __future__ import annotations

import os
import re
import shutil
import sys
from typing import TextIO

from autograder.vocabulary.report_text import WIDTH

NARROWEST = 60
COLOURS = {"PASS": "32", "FAIL": "31", "TODO": "33", "ERR ": "31"}
CLEAR_LINE = "\r\x1b[K"


def width() -> int:
    """The columns to write in: those of the terminal up to the usual width, which holds where there is none."""
    return max(NARROWEST, min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns))


def has_colours(stream: TextIO) -> bool:
    """Whether colours show there: in a terminal, unless it or the user says no (no-color.org)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty():
        return False
    return sys.platform != "win32" or _windows_obeys_marks()


def coloured(text: str) -> str:
    """A report whose headlines begin in colour."""
    words = "|".join(COLOURS)
    return re.sub(rf"^({words})(?=  )", lambda word: f"\x1b[{COLOURS[word[1]]}m{word[1]}\x1b[0m", text, flags=re.M)


def _windows_obeys_marks() -> bool:
    """Ask an older console to take marks for what they are; whether it does."""
    try:
        import ctypes

        kernel = ctypes.windll.kernel32  # type: ignore[attr-defined, unused-ignore]
        return bool(kernel.SetConsoleMode(kernel.GetStdHandle(-11), 7))
    except (AttributeError, OSError):
        return False
