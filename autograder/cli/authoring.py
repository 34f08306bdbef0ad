"""The verbs for who writes an assignment: new, items, rename."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from autograder.authoring.beginning import example
from autograder.authoring.beginning.answers import Unanswered
from autograder.authoring.beginning.arguments import RANGES
from autograder.authoring.beginning.assignment import Begun, check_name, new_assignment
from autograder.authoring.beginning.signatures import KINDS, Argument, Function, Solution, read_solution, solution_of
from autograder.authoring.fixtures.verify import regenerate_into
from autograder.authoring.proofreading.proofread import authored, refuse_faults
from autograder.authoring.renaming import rename as rename_in_files
from autograder.authoring.renaming import renaming
from autograder.cli.console import standard_output
from autograder.cli.options import AssignmentOption, course
from autograder.grading.assignments import find_assignment, find_assignments
from autograder.grading.items import Assignment
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import writing
from autograder.vocabulary.text import number

STOPPED = 130  # as Ctrl-C ends a command; Ctrl-D is the same answer to a question


def new(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="The assignment's name, which is its module's: small letters."),
    ] = None,
    solution: Annotated[
        Path | None, typer.Option("--from", readable=False, help="Your solution: a Python file with its functions.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Ask nothing, as without a terminal; take what the file says.")
    ] = False,
    show: Annotated[bool, typer.Option("--example", help="The three-function example of the authors' guide.")] = False,
) -> None:
    """Make a complete assignment from a solution file: items, cases, mistakes, text, notebook, a draft of a handout."""
    root = _course_or_here()
    if show == (solution is not None) or (name is None and not show):
        raise UsageError(
            "Give a name and a solution: autograder new NAME --from solution.py; or autograder new --example."
        )
    name = name or example.NAME
    check_name(root, name)
    found = solution_of(example.SOLUTION, Path("example")) if solution is None else read_solution(solution)
    title = example.TITLE if show else name.replace("_", " ").capitalize()
    asks = not yes and not show and sys.stdin.isatty()
    try:
        found, title = _asked(found, title) if asks else (found, title)
        begun = _begun(root, name, title, found, asks=asks)
    except (typer.Abort, KeyboardInterrupt):
        print(f"\nNothing of {name} was written.", file=sys.stderr)
        raise typer.Exit(STOPPED) from None
    counts = ((begun.items, "item"), (begun.cases, "case"), (begun.mistakes, "known mistake"))
    made = ", ".join(f"{count} {what if count == 1 else f'{what}s'}" for count, what in counts)
    print(f"fixtures/{name}, solution/{name}: {made}.")
    if found.left_out:
        print(f"Not graded: {', '.join(found.left_out)}.")
    for one in found.functions:
        for slip in one.slips:
            print(f"The docstring of {one.name} has {slip}: that was not read.")
        for line, phrase in one.unbound:
            where = f"fixtures/{name}/cases.py says what is"
            print(f"{found.path}:{line}: {phrase} binds nothing that is drawn; {where}.")
    for function in begun.without:
        print(f"No likely mistake of {function} was found: write some into fixtures/{name}/mistakes.py.")
    for function in begun.alike:
        print(f"All cases of {function} have the same answer: add one to fixtures/{name}/cases.py that has another.")
    for place in begun.open_clauses:
        print(f"No mistake yet of fixtures/{name}/contract.toml:{place}.")
    functions = ", ".join(one.name for one in found.functions)
    print(f"handout/{name} is A DRAFT: the oracle of {functions} is the solution itself.")
    print(f"Next: autograder items --assignment {name}, then write fixtures/{name}/oracle.py, which says how.")


def _begun(root: Path, name: str, title: str, solution: Solution, *, asks: bool) -> Begun:
    """What was written; a person is asked about the arguments of a function that answers none of those tried."""
    try:
        with writing(root, ""), Console(stderr=True).status("trying the solution, choosing cases and mistakes"):
            return new_assignment(root, name, title, solution)
    except Unanswered as told:
        if not asks:
            raise
        print(told)
        functions = tuple(_asked_what_it_answers(one) if one in told.functions else one for one in solution.functions)
        return _begun(root, name, title, replace(solution, functions=functions), asks=asks)


def _asked_what_it_answers(function: Function) -> Function:
    """The function with what a person says that its numbers, arrays and words may be."""
    return replace(function, arguments=tuple(_asked_what_it_may_be(function, one) for one in function.arguments))


def _asked_what_it_may_be(function: Function, argument: Argument) -> Argument:
    subject = f"{argument.name} of {function.name}"
    match argument.kind:
        case "number" | "whole":
            return replace(argument, range=_asked_bounds(subject, *argument.range or (1, 9)))
        case "array":
            question = f"{subject}: one of {', '.join(RANGES)}"
            while (likely := typer.prompt(question, default=argument.likely or RANGES[0]).strip()) not in RANGES:
                print(f"One of: {' '.join(RANGES)}.")
            return replace(argument, likely=likely)
        case "text":
            words = typer.prompt(f"{subject}: which words", default=" ".join(argument.words) or "text")
            return replace(argument, words=tuple(words.replace(",", " ").split()))
        case _:
            return argument


def _asked_bounds(subject: str, low: float, high: float) -> tuple[float, float]:
    """The least and the greatest number that a person says, in this order."""
    while True:
        least = typer.prompt(f"{subject}: from", default=f"{low:g}", type=float)
        greatest = typer.prompt(f"{subject}: to", default=f"{max(high, least):g}", type=float)
        if least <= greatest:
            return least, greatest
        print(f"From {least:g} to {greatest:g} there is no number: the lesser one first.")


def _course_or_here() -> Path:
    """The course, or the current folder where there is none yet."""
    try:
        return course()
    except UsageError:
        return Path.cwd()


def _asked(solution: Solution, title: str) -> tuple[Solution, str]:
    """The solution and the title, as a person answers; each question shows what is taken otherwise."""
    title = typer.prompt("Title", default=title)
    names = [function.name for function in solution.functions]
    while True:
        answer = typer.prompt("Functions to grade", default=" ".join(names)).replace(",", " ").split()
        if answer and set(answer) <= set(names):
            break
        print(f"Some of: {' '.join(names)}.")
    chosen = solution.only(answer)
    functions = tuple(
        replace(one, arguments=tuple(a if a.known else _asked_about(one, a) for a in one.arguments))
        for one in chosen.functions
    )
    open_ones = [one.name for one in functions if not one.marked]
    if open_ones and not typer.confirm(f"Students write the whole body of {', '.join(open_ones)}?", default=True):
        raise UsageError("Put ### BEGIN SOLUTION and ### END SOLUTION around what students write, and start again.")
    return replace(chosen, functions=functions), title


def _asked_about(function: Function, argument: Argument) -> Argument:
    """What an argument is, where nothing says: a kind, or the names of an array's axes."""
    kinds = ", ".join(KINDS[1:])
    question = f"{argument.name} of {function.name}: names of its axes, or one of {kinds}"
    while True:
        words = typer.prompt(question, default="entry").replace(",", " ").split()
        if len(words) == 1 and words[0] in KINDS[1:]:
            return replace(argument, kind=words[0], known=True)
        if words and all(map(str.isidentifier, words)) and len(set(words)) == len(words):
            return replace(argument, kind="array", axes=tuple(words), known=True)
        print("Names of axes are words of letters, digits and _, no two the same: row column.")


def items(assignment: AssignmentOption = None) -> None:
    """What an assignment grades, as a table."""
    console = standard_output()
    several = authored(course(), assignment, find_assignments)
    for chosen in several:
        refuse_faults(chosen.folder)
        console.print(_items_table(chosen))


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
