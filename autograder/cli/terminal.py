"""What verbs print to: a console as wide as the terminal, tables, a progress bar, JSON for scripts.

Text of others is never taken for markup.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from autograder.vocabulary.text import visible

PAGE_WIDTH = 110


def standard_output() -> Console:
    """Standard output: as wide as the terminal, or as a page where it goes to a file."""
    return Console(emoji=False) if sys.stdout.isatty() else Console(width=PAGE_WIDTH, emoji=False)


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document, in ASCII: no mark in a name acts on whoever prints it."""
    print(json.dumps({"schema": 1, **document}, indent=1, ensure_ascii=True, allow_nan=False))


def say(sentence: str) -> None:
    """Print a sentence for whoever runs this, on standard error."""
    sys.stdout.flush()  # what was printed before comes first, also where both go into one pipe
    print(f"autograder: {visible(sentence)}", file=sys.stderr)


def warn(sentence: str) -> None:
    """Print in red, on standard error, what nobody should miss."""
    Console(stderr=True, emoji=False).print(escape(sentence), style="bold red", highlight=False, soft_wrap=True)


def status(sentence: str) -> AbstractContextManager[object]:
    """Say on standard error what is under way, for as long as it is."""
    return Console(stderr=True).status(sentence)


@contextmanager
def progress_bar(what: str, *, hidden: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on standard error; yields the function that says how many of how many are done."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=hidden or not console.is_terminal) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def table_of(
    title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], *, total: Sequence[str] | None = None
) -> Table:
    """Make a table whose first column holds names, and whose others hold numbers; `total` is its last row."""
    table = empty_table(title)
    table.add_column(headings[0], no_wrap=True)
    for heading in headings[1:]:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*map(Text, row))
    if total is not None:
        table.add_section()
        table.add_row(*total)
    return table


def empty_table(title: str) -> Table:
    """Make a table without columns, as all tables of the verbs look."""
    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)


def short_name(function: str) -> str:
    """Shorten the name of a function, as a narrow column shows it."""
    return function.removeprefix("compute_").removeprefix("run_")
