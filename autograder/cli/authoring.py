"""The verbs for who writes an assignment: new, items, rename."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from autograder.authoring.fixtures.regenerate import load_expanded
from autograder.authoring.fixtures.verify import regenerate_into
from autograder.authoring.proofreading.proofread import authored, refuse_faults
from autograder.authoring.renaming import rename as rename_in_files
from autograder.authoring.renaming import renaming
from autograder.authoring.scaffold import example
from autograder.authoring.scaffold.assignment import check_name, new_assignment
from autograder.authoring.scaffold.solution import GUIDE, read_solution, solution_of
from autograder.cli.console import standard_output
from autograder.cli.options import AssignmentOption, course
from autograder.grading.assignments import find_assignment, find_assignments
from autograder.grading.items import Assignment
from autograder.sandbox.interpreter import run_in_subprocess
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import writing
from autograder.vocabulary.text import number

STOPPED = 130  # as Ctrl-C ends a command


def new(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="The assignment's name, which is its module's: small letters."),
    ] = None,
    solution: Annotated[
        Path | None, typer.Option("--from", readable=False, help="Your solution: a Python file with its functions.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", hidden=True, help="Nothing is asked any longer.")] = False,
    show: Annotated[bool, typer.Option("--example", help="The three-function example of the authors' guide.")] = False,
) -> None:
    """Make an assignment from a solution file: declarations, items, oracle, mistakes, text, a draft of a handout."""
    root = _course_or_here()
    if show == (solution is not None) or (name is None and not show):
        raise UsageError(
            "Give a name and a solution: autograder new NAME --from solution.py; or autograder new --example."
        )
    name = name or example.NAME
    check_name(root, name)
    found = solution_of(example.SOLUTION, Path("example")) if solution is None else read_solution(solution)
    title = example.TITLE if show else name.replace("_", " ").capitalize()
    try:
        with writing(root, ""), Console(stderr=True).status("trying the solution, drawing cases"):
            begun = new_assignment(root, name, title, found)
    except KeyboardInterrupt:
        print(f"\nNothing of {name} was written.", file=sys.stderr)
        raise typer.Exit(STOPPED) from None
    counts = ((begun.items, "item"), (begun.cases, "case"))
    made = ", ".join(f"{count} {what if count == 1 else f'{what}s'}" for count, what in counts)
    print(f"fixtures/{name}, solution/{name}: {made}.")
    if found.left_out:
        print(f"Not graded: {', '.join(found.left_out)}; see {GUIDE}.")
    for function in begun.unanswered:
        print(f"Not graded yet: {function}, which answers no draw that was tried; see fixtures/{name}/functions.py.")
    functions = ", ".join(one.name for one in found.functions)
    if begun.cases:
        print(f"handout/{name} is A DRAFT: the oracle of {functions} is the solution itself.")
    print(f"{begun.todos} lines say TODO: `autograder selfcheck --assignment {name}` lists them.")


def _course_or_here() -> Path:
    """The course, or the current folder where there is none yet."""
    try:
        return course()
    except UsageError:
        return Path.cwd()


def items(assignment: AssignmentOption = None) -> None:
    """What an assignment grades, as a table."""
    console = standard_output()
    several = authored(course(), assignment, find_assignments)
    for chosen in several:
        refuse_faults(chosen.folder)
        console.print(_items_table(run_in_subprocess(load_expanded, chosen.folder)))


def _items_table(assignment: Assignment) -> Table:
    title = f"{assignment.title} ({assignment.name})"
    table = Table(title=escape(title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, show_footer=True)
    table.add_column("item", footer="all", no_wrap=True, overflow="fold")
    table.add_column("function", no_wrap=True, overflow="fold")
    table.add_column("what is checked")
    table.add_column("points", justify="right", footer=number(assignment.max_points))
    table.add_column("public", justify="right", footer=str(sum(len(item.public) for item in assignment.items)))
    table.add_column("hidden", justify="right", footer=str(sum(len(item.hidden) for item in assignment.items)))
    for item in assignment.items:
        counts = (number(item.points), str(len(item.public)), str(len(item.hidden)))
        table.add_row(*map(escape, (item.id, item.function, item.title)), *counts)
    return table


def rename(
    old: Annotated[str, typer.Argument(metavar="OLD", help="An item or a graded function.")],
    to: Annotated[str, typer.Argument(metavar="NEW", help="What it is called from now on.")],
    grades: Annotated[
        Path | None,
        typer.Option("--grades", readable=False, help="A folder that `grade` wrote, where it is renamed too."),
    ] = None,
    assignment: AssignmentOption = None,
) -> None:
    """Give an item or a function another name, wherever the assignment's files say it, and make the fixtures anew."""
    chosen = find_assignment(course(), assignment)
    one = renaming(chosen, old, to, grades)
    if grades is None:
        print(
            f"Grades that were exported before this name it {old} still: --grades DIR renames it in what `grade` wrote."
        )
    print(f"Columns of {old} on your course's platform stay, and terms' own sets are to be made anew.")
    with Console(stderr=True).status("making the fixtures anew"):
        rename_in_files(one, lambda: regenerate_into(chosen.folder, chosen.folder))
    of_grades = f" and {len(one.grades)} of grades" if grades is not None else ""
    files = f"{len(one.files)} file{'s' * (len(one.files) != 1)}"
    print(f"{old} is {to} in {files}{of_grades}; the fixtures are made anew.")
    if one.pages:
        are = "pages of that grading named it and are" if len(one.pages) > 1 else "page of that grading named it and is"
        print(f"{len(one.pages)} {are} gone: autograder grade … --out {grades} makes them anew.")
    if chosen.handout.is_dir():
        print(f"Now: autograder release --assignment {chosen.name}.")
