"""The verb `check --watch`: the same again whenever a file is saved, with what the save brought about."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from autograder.checking.check import INTRODUCTION, exit_code_of, shown
from autograder.checking.checker import Checker, checked
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.report import Report

CLEAR = "\x1b[2J\x1b[3J\x1b[H"  # the screen, what has scrolled off it, and the cursor to the top
POLL_SECONDS = 0.03


def watch(path: Path, item_ids: Sequence[str] = (), assignment: str | None = None, root: Path | None = None) -> int:
    """Check, and check again whenever a file in the folder is saved, in a sandbox that stays warm, until Ctrl-C.

    Returns what `check` would have returned the last time.
    """
    code, before = 0, None
    with contextlib.suppress(KeyboardInterrupt), Checker(path, assignment, root) as checker:
        for _ in _saves(path):
            began = time.perf_counter()
            try:
                checker.read()
            except UsageError as gone:  # it was there a moment ago: it may come back
                print(gone, flush=True)
                continue
            report = checked(checker, item_ids)
            code = exit_code_of(report)
            print(f"{CLEAR if sys.stdout.isatty() else ''}{INTRODUCTION}\n")
            print(shown(report, checker.notes))
            print(f"\n{_changes(before, report)}Checked in {time.perf_counter() - began:.1f} s. ", end="")
            print("Waiting for the next save; Ctrl-C ends.", flush=True)
            before = report
    return code


def _saves(path: Path) -> Iterator[None]:
    """Now, and after each change of a file in the folder that lasts until it is looked at."""
    folder = path if path.is_dir() else path.parent
    seen: object = None
    now = _stamps(folder)
    while True:
        if now and now != seen:
            seen = now
            yield
        before = now
        while (now := _stamps(folder)) in (seen, []) or now != before:  # unchanged, or still being written
            before = now
            time.sleep(POLL_SECONDS)


def _stamps(folder: Path) -> list[tuple[str, int, int]]:
    """What tells one state of a folder's modules and notebooks from another; empty while one is being replaced."""
    try:
        found = [(one.name, one.stat()) for one in sorted(folder.iterdir()) if one.suffix in (".py", ".ipynb")]
    except OSError:
        return []
    return [(name, stat.st_mtime_ns, stat.st_size) for name, stat in found]


def _changes(before: Report | None, now: Report) -> str:
    """What the last save brought about, a line each for gains and losses; "" where nothing changed."""
    if before is None:
        return ""
    passed = [{item.item for item in report.items if item.verdict == "passed"} for report in (before, now)]
    gained, lost = sorted(passed[1] - passed[0]), sorted(passed[0] - passed[1])
    lines = [f"{words}: {', '.join(ids)}" for words, ids in (("Now right", gained), ("No longer right", lost)) if ids]
    return "".join(f"{line}\n" for line in lines)
