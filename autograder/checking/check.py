"""What a student runs: the public cases on their own folder, worded as in grading.

python -m autograder check [DIR] [--item ITEM] [--watch]
python -m autograder update DIR
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from autograder.checking.checker import Checker
from autograder.checking.handout import update
from autograder.checking.terminal import CLEAR_SCREEN, coloured, has_colours, print_anything, width
from autograder.vocabulary.errors import GraderFault, KitError, UsageError
from autograder.vocabulary.report import ItemResult, Report, to_json
from autograder.vocabulary.report_text import report_text
from autograder.vocabulary.text import number, visible

SUMMARY = "What a student runs: the public cases on their own folder, worded as in grading."
INTRODUCTION = "(public cases; grading runs more of the same kind)"
POLL_SECONDS = 0.03
MOST_NAMES = 6  # of items that a save has changed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line of a handout; return its exit code."""
    print_anything()
    parser = argparse.ArgumentParser(prog="python -m autograder", description=SUMMARY)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("check", help="run the public cases on your work", description=INTRODUCTION)
    verb.add_argument("dir", nargs="?", default=".", type=Path, help="the folder with your work (default: this one)")
    verb.add_argument("--item", action="append", default=[], help="this item, or all of this function; may be repeated")
    verb.add_argument("--watch", action="store_true", help="check again whenever you save, until Ctrl-C")
    verb.add_argument("--assignment", help="which assignment; needed where there are several")
    verb.add_argument("--quiet", action="store_true", help="print nothing: the exit code says it")
    verb.add_argument("--json", action="store_true", help="print one JSON document, and nothing else")
    verb.add_argument("--github", action="store_true", help=argparse.SUPPRESS)  # for the workflow of `bundle github`
    renew = verbs.add_parser("update", help="renew an older handout from this one; your work in it is kept")
    renew.add_argument("dir", type=Path, help="the folder with your work")
    options = parser.parse_args(arguments)
    try:
        if options.verb == "update":
            update(options.dir)
            return 0
        if options.github:
            return check_on_github(options.dir)
        if options.watch:
            return watch(options.dir, options.item, options.assignment)
        code = check(options.dir, options.item, options.assignment, quiet=options.quiet, as_json=options.json)
        sys.stdout.flush()
    except KitError as error:
        print(f"autograder: {visible(str(error))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever reads has seen enough, as `head` has after ten lines
        _print_no_more()
        return 141
    except OSError as error:
        _print_no_more()
        print(f"autograder: The machine failed, which is no fault of your work: {error}.", file=sys.stderr)
        return 3
    return code


def _print_no_more() -> None:
    """Drop what waits to be printed, which Python would try to print once more at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def check(
    path: Path,
    item_ids: Sequence[str] = (),
    assignment: str | None = None,
    root: Path | None = None,
    *,
    quiet: bool = False,
    as_json: bool = False,
) -> int:
    """Print the report on the public cases; return 0 where all pass, 1 where one fails.

    quiet     print nothing: the exit code says it
    as_json   print the report as grading stores it, with the notes, and nothing else
    raises    GraderFault where the checker itself failed
    """
    with Checker(path, assignment, root) as checker:
        report = _report(checker, item_ids)
        if as_json:
            print(json.dumps(to_json(report) | {"notes": list(checker.notes)}, indent=1, ensure_ascii=True))
        elif not quiet:
            _show(report, checker, each=bool(item_ids))
    return _exit_code(report)


def watch(path: Path, item_ids: Sequence[str] = (), assignment: str | None = None, root: Path | None = None) -> int:
    """Check, and check again whenever a file in the folder is saved, in a sandbox that stays warm, until Ctrl-C.

    What is wrong as it was before is told in one line. Returns what `check` would have returned the last time.
    """
    code = 0
    before: dict[str, ItemResult] = {}
    with contextlib.suppress(KeyboardInterrupt), Checker(path, assignment, root) as checker:
        for _ in _saves(path if path.is_dir() else path.parent):
            began = time.perf_counter()
            try:
                checker.read()
            except UsageError as error:  # it was there a moment ago: it may come back
                print(error, flush=True)
                continue
            report = _report(checker, item_ids)
            code = _exit_code(report)
            if sys.stdout.isatty():
                print(CLEAR_SCREEN, end="")
            known = [item for item in report.items if item.item in before]
            same = [item.item for item in known if replace(before[item.item], seconds=item.seconds) == item]
            _show(report, checker, brief=same)
            print()
            now = {item.item for item in known if item.verdict == "passed"}
            then = {item.item for item in known if before[item.item].verdict == "passed"}
            for words, names in (("Now right", now - then), ("No longer right", then - now)):
                if names:
                    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
                    print(f"{words}: {', '.join(sorted(names)[:MOST_NAMES])}{more}")
            before = {item.item: item for item in report.items}
            seconds = time.perf_counter() - began
            print(f"Checked in {seconds:.1f} s. Waiting for the next save; Ctrl-C ends.", flush=True)
    return code


def check_on_github(path: Path) -> int:
    """Check a student's repository in a step of its workflow, whose outputs become `points` and `max_points`.

    Returns 0 whatever the points; raises GraderFault, and leaves no outputs, where the grader failed.
    """
    with Checker(path) as checker:
        report = _report(checker, ())
    print(report_text(report, checker.notes))
    points, max_points = number(report.points or 0.0), number(report.max_points)
    print(f"\nPublic cases: {points} of {max_points} points.")
    rows = [f"| `{item.item}` | {number(item.points or 0.0)} of {number(item.max_points)} |" for item in report.items]
    table = ["| item | points |", "|---|---|", *rows, f"| **public cases** | **{points} of {max_points}** |", ""]
    texts = {"GITHUB_OUTPUT": f"points={points}\nmax_points={max_points}\n", "GITHUB_STEP_SUMMARY": "\n".join(table)}
    for variable, text in texts.items():
        if target := os.environ.get(variable):
            with Path(target).open("a", encoding="utf-8") as stream:
                stream.write(text)
    return 0


def _report(checker: Checker, item_ids: Sequence[str]) -> Report:
    report = checker.report(item_ids)
    if report.status == "not_graded":
        raise GraderFault(f"Nothing could be checked, which is no fault of your work. {report.fault}")
    return report


def _show(report: Report, checker: Checker, *, each: bool = False, brief: Sequence[str] = ()) -> None:
    """Print a report; see `report_text`."""
    places = checker.places(report)
    text = report_text(report, checker.notes, width=width(), places=places, each=each, brief=brief)
    is_short = len(text.rpartition("\n")[2]) + 3 + len(INTRODUCTION) <= width()
    between = "   " if is_short else "\n      "
    print(f"{coloured(text) if has_colours(sys.stdout) else text}{between}{INTRODUCTION}")


def _exit_code(report: Report) -> int:
    return 0 if all(item.verdict == "passed" for item in report.items) else 1


def _saves(folder: Path) -> Iterator[None]:
    """Yield now, and after each change of a module or notebook in the folder that lasts until it is looked at."""
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
    """Tell one state of a folder's modules and notebooks from another; empty while one is being replaced."""
    try:
        files = [(path.name, path.stat()) for path in sorted(folder.iterdir()) if path.suffix in (".py", ".ipynb")]
    except OSError:
        return []
    return [(name, stat.st_mtime_ns, stat.st_size) for name, stat in files]
