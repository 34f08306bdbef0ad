"""The command line: one verb, one function, one exit code.

0 done, 1 an item failed (`check` alone), 2 usage, 3 the grader's fault.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from autograder import __version__
from autograder.checking.check import check as check_folder
from autograder.checking.check import watch as watch_folder
from autograder.checking.terminal import print_anything
from autograder.cli.authoring import items, new, rename
from autograder.cli.console import standard_output
from autograder.cli.doctor import examine
from autograder.cli.exports import export_app
from autograder.cli.fixtures import fixtures_app
from autograder.cli.grade import grade
from autograder.cli.gradebook import gradebook, serve, similar
from autograder.cli.options import (
    AssignmentOption,
    CourseOption,
    JsonOption,
    QuietOption,
    course,
    course_first,
    name_course,
    root_for,
)
from autograder.cli.release import bundle_app, release
from autograder.cli.selfcheck import selfcheck
from autograder.cli.tables import doctor_table
from autograder.grading.assignments import find_assignments, unreadable
from autograder.vocabulary.errors import KitError
from autograder.vocabulary.text import visible

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Grade assignments: student code runs sandboxed, its tensors are compared with stored ones.",
)
app.add_typer(fixtures_app, name="fixtures")
app.add_typer(export_app, name="export")
app.add_typer(bundle_app, name="bundle")


def _show_version(asked: bool) -> None:
    if asked:
        print(f"autograder {__version__}")
        raise typer.Exit


@app.callback()
def choose_course(
    course: CourseOption = None,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Print the version and end.")
    ] = False,
) -> None:
    """Remember the course that is named, before any verb runs."""
    name_course(course)


INTERRUPTED = 130  # typer's exit code for Ctrl-C


def main() -> None:
    """Run the command line; what goes wrong is one sentence on stderr and an exit code."""
    print_anything()
    try:
        app(course_first(sys.argv[1:]))
    except KitError as error:
        for line in getattr(error, "lines", [str(error)]):
            print(f"autograder: {visible(line)}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            more = " Run the same command again to go on where it stopped." if sys.argv[1:2] == ["grade"] else ""
            print(f"autograder: stopped.{more}", file=sys.stderr)
        raise


for verb in (grade, gradebook, serve, similar, new, items, rename, release, selfcheck):
    app.command()(verb)


@app.command()
def check(
    path: Annotated[
        Path, typer.Argument(metavar="[DIR]", readable=False, help="The folder with the work to check.")
    ] = Path(),
    item: Annotated[list[str] | None, typer.Option("--item", help="This item only; may be repeated.")] = None,
    watching: Annotated[
        bool, typer.Option("--watch", help="Check again whenever a file is saved, until Ctrl-C.")
    ] = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    assignment: AssignmentOption = None,
) -> None:
    """What a student runs: the public cases, with the messages of grading. Exits with 1 where an item fails."""
    if watching:
        raise SystemExit(watch_folder(path, item or (), assignment, root_for(path)))
    code = check_folder(path, item or (), assignment, root_for(path), quiet=quiet, as_json=as_json)
    raise SystemExit(code)


@app.command()
def doctor(assignment: AssignmentOption = None) -> None:
    """Which packages, isolation layers and fixtures this machine has, and what to do about what is missing."""
    here = course()
    examined = examine(here, find_assignments(here, assignment), unreadable(here))
    standard_output().print(doctor_table(examined))
    if any(one.state == "missing" for one in examined):
        raise SystemExit(3)
