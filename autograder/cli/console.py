"""What the verbs print to: a console as wide as the terminal, a progress bar, JSON for scripts."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

PAGE_WIDTH = 110


def standard_output() -> Console:
    """Standard output: as wide as the terminal, or as a page where it goes to a file."""
    return Console(emoji=False) if sys.stdout.isatty() else Console(width=PAGE_WIDTH, emoji=False)


def print_json(document: Mapping[str, Any]) -> None:
    """One JSON document on standard output, in ASCII: no mark in a name acts on whoever prints it."""
    print(json.dumps({"schema": 1, **document}, indent=1, ensure_ascii=True, allow_nan=False))


@contextmanager
def progress_bar(what: str, *, hidden: bool = False) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on stderr, and the function that says how many of how many are done."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=hidden or not console.is_terminal) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
