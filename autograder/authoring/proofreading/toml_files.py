"""A file of TOML as its author wrote it: its text and what it says, or the line at which it cannot be read."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from autograder.authoring.proofreading.fault import Fault


def read_toml(path: Path, right: str) -> tuple[str, dict[str, Any]] | Fault:
    """The text of the file, and what it says; or why it is no TOML. Raises OSError where there is nothing to read.

    right   what TOML looks like here, for who wrote something else
    """
    try:
        text = path.read_text(encoding="utf-8")
        return text, tomllib.loads(text)
    except UnicodeDecodeError as error:
        return Fault(path, 1, f"not UTF-8: {error.reason} at byte {error.start}", "text that is saved as UTF-8")
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at line (\d+)", str(error))
        return Fault(path, int(place[1]) if place else 1, f"not TOML: {error}", right)
