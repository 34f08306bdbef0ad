"""What a student runs: the public cases on their own folder, worded as in grading.

python -m autograder check [DIR] [--item ITEM] [--watch]
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from pathlib import Path

from autograder.checking.check import INTRODUCTION, check
from autograder.checking.watch import watch
from autograder.vocabulary.errors import KitError
from autograder.vocabulary.text import visible


def print_anything() -> None:
    """Let what the terminal's encoding lacks be printed as an escape, where it would be an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line of a handout; its exit code."""
    print_anything()
    parser = argparse.ArgumentParser(prog="python -m autograder", description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("check", help="run the public cases on your work", description=INTRODUCTION)
    verb.add_argument("dir", nargs="?", default=".", type=Path, help="the folder with your work (default: this one)")
    verb.add_argument("--item", action="append", default=[], help="check this item only; may be repeated")
    verb.add_argument("--watch", action="store_true", help="check again whenever you save, until Ctrl-C")
    verb.add_argument("--assignment", help="which assignment; needed where there are several")
    verb.add_argument("--quiet", action="store_true", help="print nothing: the exit code says it")
    verb.add_argument("--json", action="store_true", help="print one JSON document, and nothing else")
    options = parser.parse_args(arguments)
    try:
        if options.watch:
            return watch(options.dir, options.item, options.assignment)
        return check(options.dir, options.item, options.assignment, quiet=options.quiet, as_json=options.json)
    except KitError as error:
        print(f"autograder: {visible(str(error))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
