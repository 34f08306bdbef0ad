"""What nbgrader collected: submitted/<student>/<assignment>/…, with timestamp.txt (its docs, exchange_api.rst)."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from autograder.platforms.hand_in import is_folder
from autograder.vocabulary.files import entries_of, open_regular
from autograder.vocabulary.times import moment_or_none

TIMESTAMP = "timestamp.txt"


def collected(folder: Path, module: str) -> datetime | None:
    """When nbgrader collected what lies in <student>/<assignment>/, as far as it is clear which assignment counts."""
    names = {f"{module}.py", f"{module}.ipynb"}
    inner = [entry for entry in _safe_entries(folder) if is_folder(entry)]
    having = [entry for entry in inner if names & {one.name for one in _safe_entries(Path(entry.path))}]
    return _timestamp(having[0]) if len(having) == 1 else None


def _safe_entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        return entries_of(folder)
    except OSError:
        return []


def _timestamp(folder: os.DirEntry[str]) -> datetime | None:
    try:
        with open_regular(Path(folder.path) / TIMESTAMP) as stream:
            return moment_or_none(stream.read(100).decode("utf-8", "replace"))
    except OSError:
        return None
