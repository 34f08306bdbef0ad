"""The command line: one verb, one function, one exit code.

0 done, 1 an item failed (`check` alone), 2 usage, 3 the grader's fault.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from autograder import __version__
from autograder.checking.terminal import print_anything
from autograder.cli import options
from autograder.vocabulary.errors import KitError
from autograder.vocabulary.text import visible

# The verb, where it is, and what `autograder --help` says. A verb's module is imported once that verb is asked for.
VERBS = {
    "grade": ("grade:grade", "Grade a class: reports, feedback pages, grades.csv and a dashboard."),
    "gradebook": ("gradebook:gradebook", "Apply late rules, dropped items, excuses and overrides to graded reports."),
    "serve": ("gradebook:serve", "Show the pages live in a browser of this machine, and take overrides and comments."),
    "similar": ("gradebook:similar", "Show which submissions are alike beyond the handout: pairs to look at."),
    "export": ("gradebook:export_app", "Grades in the format of another platform."),
    "check": ("main:check", "What a student runs: the public cases, with the messages of grading."),
    "new": ("authoring:new", "Make an assignment from a solution file."),
    "items": ("authoring:items", "What an assignment grades, as a table."),
    "rename": ("authoring:rename", "Give an item or a function another name, wherever the assignment's files say it."),
    "selfcheck": ("authoring:selfcheck", "The grader's own exam: solution, handout, mistakes, right answers, mutants."),
    "fixtures": ("release:fixtures_app", "The stored tensors: make, verify, compare or read them."),
    "release": ("release:release", "Make the handout from the solution."),
    "bundle": ("release:bundle_app", "What to upload to a platform so that it grades by itself."),
    "doctor": ("doctor:doctor", "Which packages, isolation layers and fixtures this machine has."),
}
INTERRUPTED = 130  # typer's exit code for Ctrl-C


class Verbs(TyperGroup):
    """The verbs by name; the one that is asked for takes the place of its name."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Find the verb that the arguments name, and import it."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and load_verb(str(name)), rest


def load_verb(verb: str) -> Any:
    """Import a verb's module, and make its command."""
    module, _, name = VERBS[verb][0].partition(":")
    found: typer.Typer | Callable[..., None] = getattr(import_module(f"autograder.cli.{module}"), name)
    if not isinstance(found, typer.Typer):
        function, found = found, typer.Typer(add_completion=False, rich_markup_mode=None)
        found.command(verb)(function)
    return typer.main.get_command(found)


app = typer.Typer(
    cls=Verbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Grade assignments: student code runs sandboxed, its tensors are compared with stored ones.",
)
for _verb, (_, _help) in VERBS.items():
    app.command(_verb, help=_help)(lambda: None)


def _show_version(asked: bool) -> None:
    if asked:
        print(f"autograder {__version__}")
        raise typer.Exit


@app.callback()
def choose_course(
    course: options.Course = None,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Print the version and end.")
    ] = False,
) -> None:
    """Remember the course that is named, before any verb runs."""
    options.name_course(course)


def check(
    path: Annotated[Path, options.argument("[DIR]", "The folder with the work to check.")] = Path(),
    item: Annotated[list[str] | None, typer.Option("--item", help="This item or function; may be repeated.")] = None,
    watching: Annotated[
        bool, typer.Option("--watch", help="Check again whenever a file is saved, until Ctrl-C.")
    ] = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
    assignment: options.Assignment = None,
) -> None:
    """What a student runs: the public cases, with the messages of grading. Exits with 1 where an item fails."""
    from autograder.checking import check as checking

    root = options.root_for(path)
    if watching:
        raise SystemExit(checking.watch(path, item or (), assignment, root))
    raise SystemExit(checking.check(path, item or (), assignment, root, quiet=quiet, as_json=as_json))


def main() -> None:
    """Run the command line; what goes wrong is one sentence on stderr and an exit code."""
    print_anything()
    words = sys.argv[1:]
    try:
        app(options.course_first(words))
    except KitError as error:
        for line in getattr(error, "lines", [str(error)]):
            print(f"autograder: {visible(line)}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    except OSError as error:
        if error.filename is None:  # a fault of the kit's own pipes and processes
            raise
        path = os.fsdecode(error.filename)
        given = [os.path.abspath(word.rpartition("=")[2]) for word in words if word]  # noqa: PTH100 (it looks nowhere)
        is_given = any(Path(os.path.abspath(path)).is_relative_to(each) for each in given)  # noqa: PTH100
        advice = "check the path, and its permissions" if is_given else "the machine failed, and nothing that you gave"
        print(f"autograder: {visible(path)} cannot be used ({error.strerror}): {advice}.", file=sys.stderr)
        raise SystemExit(2 if is_given else 3) from None
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            more = " Run the same command again to go on where it stopped." if words[:1] == ["grade"] else ""
            print(f"autograder: stopped.{more}", file=sys.stderr)
        raise
