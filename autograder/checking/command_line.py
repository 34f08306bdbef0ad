"""What a student runs: the public cases on their own folder, worded as in grading.

python -m autograder check [DIR] [--item ITEM] [--watch]
python -m autograder update DIR
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from autograder.checking.check import INTRODUCTION, check, watch
from autograder.checking.handout import update
from autograder.vocabulary.errors import KitError
from autograder.vocabulary.text import visible

SUMMARY = "What a student runs: the public cases on their own folder, worded as in grading."


def print_anything() -> None:
    """Let what the terminal's encoding lacks be printed as an escape; where nothing is open to print to, lose all."""
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (open until the end)
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line of a handout; its exit code."""
    print_anything()
    parser = argparse.ArgumentParser(prog="python -m autograder", description=SUMMARY)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("check", help="run the public cases on your work", description=INTRODUCTION)
    verb.add_argument("dir", nargs="?", default=".", type=Path, help="the folder with your work (default: this one)")
    verb.add_argument("--item", action="append", default=[], help="check this item only; may be repeated")
    verb.add_argument("--watch", action="store_true", help="check again whenever you save, until Ctrl-C")
    verb.add_argument("--assignment", help="which assignment; needed where there are several")
    verb.add_argument("--quiet", action="store_true", help="print nothing: the exit code says it")
    verb.add_argument("--json", action="store_true", help="print one JSON document, and nothing else")
    renew = verbs.add_parser("update", help="renew an older handout from this one; your work in it is kept")
    renew.add_argument("dir", type=Path, help="the folder with your work")
    options = parser.parse_args(arguments)
    try:
        if options.verb == "update":
            update(options.dir)
            return 0
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
    """Lose what waits to be printed, which Python would try to print once more at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
