"""The verb `check`: the public cases on a student's own folder, worded as in grading; once, or after every save."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from autograder.checking.checker import Checker, checked
from autograder.checking.terminal import coloured, has_colours, width
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.report import Report, to_json
from autograder.vocabulary.report_text import report_text

INTRODUCTION = "Public cases only; grading runs more of the same kind."
CLEAR = "\x1b[2J\x1b[3J\x1b[H"  # the screen, what has scrolled off it, and the cursor to the top
POLL_SECONDS = 0.03


def check(
    path: Path,
    item_ids: Sequence[str] = (),
    assignment: str | None = None,
    root: Path | None = None,
    *,
    quiet: bool = False,
    as_json: bool = False,
) -> int:
    """Print the report on the public cases; 0 where all pass, 1 where one fails, 3 where the checker itself failed.

    quiet     print nothing: the exit code says it
    as_json   print the report as grading stores it, with the notes, and nothing else
    """
    with Checker(path, assignment, root) as checker:
        report = checked(checker, item_ids)
    if as_json:
        print(json.dumps(to_json(report) | {"notes": list(checker.notes)}, indent=1, ensure_ascii=True))
    elif not quiet:
        print(f"{INTRODUCTION}\n")
        print(_shown(report, checker.notes))
    return _exit_code(report)


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
            code = _exit_code(report)
            print(f"{CLEAR if sys.stdout.isatty() else ''}{INTRODUCTION}\n")
            print(_shown(report, checker.notes))
            print(f"\n{_changes(before, report)}Checked in {time.perf_counter() - began:.1f} s. ", end="")
            print("Waiting for the next save; Ctrl-C ends.", flush=True)
            before = report
    return code


def _shown(report: Report, notes: Sequence[str]) -> str:
    """The report as this terminal shows it best."""
    text = report_text(report, notes, width=width())
    return coloured(text) if has_colours(sys.stdout) else text


def _exit_code(report: Report) -> int:
    """0 where all items pass, else 1."""
    return 0 if all(item.verdict == "passed" for item in report.items) else 1


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
