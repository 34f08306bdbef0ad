"""What a terminal can show: its width, its colours, letters of any script."""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
from pathlib import Path
from typing import TextIO

from autograder.vocabulary.report_text import WIDTH

NARROWEST = 60
COLOURS = {"PASS": "32", "FAIL": "31", "TODO": "33", "ERR ": "31"}  # ANSI: green, red, yellow
CLEAR_SCREEN = "\x1b[2J\x1b[3J\x1b[H"  # the screen, what has scrolled off it, and the cursor to the top
# Of the Windows console: the handle of the output, and processed | wrapped | virtual terminal.
STD_OUTPUT_HANDLE, CONSOLE_MODE = -11, 7


def print_anything() -> None:
    """Print what the terminal's encoding lacks as an escape; print nothing where nothing is open to print to."""
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (open until the end)
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def width() -> int:
    """Return the columns to write in: those of the terminal up to the usual width, which holds where there is none."""
    return max(NARROWEST, min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns))


def has_colours(stream: TextIO) -> bool:
    """Tell whether colours show there: in a terminal, unless it or the user says no (no-color.org)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty():
        return False
    if sys.platform != "win32":
        return True
    try:
        import ctypes

        kernel = ctypes.windll.kernel32  # an older console obeys colours once it is asked to
        return bool(kernel.SetConsoleMode(kernel.GetStdHandle(STD_OUTPUT_HANDLE), CONSOLE_MODE))
    except (AttributeError, OSError):
        return False


def coloured(text: str) -> str:
    """Colour the beginnings of a report's headlines."""
    words = "|".join(COLOURS)
    return re.sub(rf"^({words})(?=  )", lambda word: f"\x1b[{COLOURS[word[1]]}m{word[1]}\x1b[0m", text, flags=re.M)
