"""The verbs for who writes an assignment: new, items, rename, selfcheck."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from autograder.authoring.catalogue import SIGN
from autograder.authoring.exam.fates import Fate
from autograder.authoring.exam.selfcheck import Exam
from autograder.authoring.exam.selfcheck import selfcheck as examine_grader
from autograder.authoring.faults import likely
from autograder.authoring.fixtures.regenerate import load_expanded
from autograder.authoring.fixtures.verify import regenerate_into
from autograder.authoring.handout.notebook import template
from autograder.authoring.handout.release import not_independent
from autograder.authoring.proofreading import authored, refuse_faults
from autograder.authoring.renaming import renamed_files, write_all
from autograder.cli import options
from autograder.cli.terminal import empty_table, print_json, progress_bar, short_name, standard_output, status, table_of
from autograder.grading.assignment import Assignment, all_assignments, find_assignment
from autograder.grading.choice import assignment_of_fixtures
from autograder.grading.fixtures import read_fixtures
from autograder.sandbox.interpreter import run_in_subprocess
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import writing
from autograder.vocabulary.text import counted, number, visible

INTERRUPTED = 130  # as Ctrl-C ends a command
SAMPLED = 40  # --quick: one in so many mistakes and mutants, and the first of each function
FAMILIES = {"parameter": "changed parameters", "habit": "habits of students", "operator": "mutants"}


def new(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="The assignment's name, which is its module's: small letters."),
    ] = None,
    solution: Annotated[Path | None, options.path("--from", "Your solution: a Python file with its functions.")] = None,
    show: Annotated[bool, typer.Option("--example", help="The three-function example of the authors' guide.")] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Start again: one of that name is moved into the folder replaced/ first.")
    ] = False,
) -> None:
    """Make an assignment from a solution file: declarations, items, oracle, mistakes, text, a draft of a handout."""
    from autograder.authoring import new as making  # which other verbs need not wait for

    try:
        root = options.course()
    except UsageError:  # there is none yet
        root = Path.cwd()
    if show == (solution is not None) or (name is None and not show):
        raise UsageError(
            "Give a name and a solution: autograder new NAME --from solution.py; or autograder new --example."
        )
    name = name or making.EXAMPLE_NAME
    making.check_name(root, name, replacing=replace)
    example = template(f"{making.EXAMPLE_NAME}.py")
    found = making.read_solution(solution) if solution else making.parse_solution(example, Path("example"))
    title = making.EXAMPLE_TITLE if show else name.replace("_", " ").capitalize()
    try:
        with writing(root, ""), status("trying the solution, drawing cases"):
            made = making.new_assignment(root, name, title, found, replacing=replace)
    except KeyboardInterrupt:
        print(f"\nNothing of {name} was written.", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    print(f"fixtures/{name}, solution/{name}: {counted(made.items, 'item')}, {counted(made.cases, 'case')}.")
    for what in found.left_out:
        print(f"Not graded: {what}.")
    for function, why in made.not_graded.items():
        print(f"Not graded yet: {function} ({why}). See fixtures/{name}/functions.py.")
    if found.left_out or made.not_graded:
        print(f"The guide is {making.GUIDE}.")
    if made.cases:
        functions = ", ".join(function.name for function in found.functions if function.name not in made.not_graded)
        print(f"handout/{name} is A DRAFT: the oracle of {functions} is the solution itself.")
    listed = f": `autograder selfcheck --assignment {name}` lists them" if made.cases else f" in fixtures/{name}"
    print(f"{made.todos} lines say TODO{listed}.")


def items(assignment: options.Assignment = None) -> None:
    """What an assignment grades, as a table."""
    console = standard_output()
    for chosen in authored(options.course(), assignment, all_assignments):
        refuse_faults(chosen.folder)
        expanded = run_in_subprocess(load_expanded, chosen.folder)
        table = empty_table(escape(f"{expanded.title} ({expanded.name})"))
        table.show_footer = True
        table.add_column("item", footer="all", overflow="fold")
        table.add_column("what is checked")
        table.add_column("points", justify="right", footer=number(expanded.max_points))
        table.add_column("public", justify="right", footer=str(sum(len(item.public) for item in expanded.items)))
        table.add_column("hidden", justify="right", footer=str(sum(len(item.hidden) for item in expanded.items)))
        for function, group in groupby(expanded.items, lambda item: item.function):
            table.add_section()
            table.add_row(Text(function, "bold"))
            for item in group:
                counts = (number(item.points), str(len(item.public)), str(len(item.hidden)))
                table.add_row(*map(escape, (item.id, item.title)), *counts)
        console.print(table)


def rename(
    old: Annotated[str, typer.Argument(metavar="OLD", help="An item or a graded function.")],
    to: Annotated[str, typer.Argument(metavar="NEW", help="What it is called from now on.")],
    assignment: options.Assignment = None,
) -> None:
    """Give an item or a function another name, wherever the assignment's files say it, and make the fixtures anew."""
    chosen = find_assignment(options.course(), assignment)
    files = renamed_files(chosen, old, to)
    with status("making the fixtures anew"):
        write_all(files, lambda: regenerate_into(chosen.folder, chosen.folder))
    print(f"Grades, decisions and policies made before this name it {old} still: grade again, and edit what you wrote.")
    print(f"Columns of {old} on your course's platform stay, and terms' own sets are to be made anew.")
    print(f"{old} is {to} in {counted(len(files), 'file')}; the fixtures are made anew.")
    if chosen.handout.is_dir():
        print(f"Now: autograder release --assignment {chosen.name}.")


# The grader's own exam


def selfcheck(
    jobs: options.Jobs = options.CORES,
    quick: Annotated[bool, typer.Option("--quick", help="A sample of mistakes, answers and mutants.")] = False,
    fresh: options.Fresh = False,
    costs: Annotated[bool, typer.Option("--costs", help="Say of each mistake what it costs.")] = False,
    function: Annotated[str, typer.Option("--function", metavar="NAME", help="Only mistakes and mutants of it.")] = "",
    fixtures: options.Fixtures = None,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
    assignment: options.Assignment = None,
) -> None:
    """The grader's own exam: solution, handout, mistakes, right answers, mutants, contract. Exits with 3 on a fault."""
    root, of_term = options.course(), None
    if fixtures is None:
        assignments = authored(root, assignment, all_assignments)
    else:
        from autograder.cli.release import chosen_fixtures  # which other exams need not wait for

        assignments = [assignment_of_fixtures(root, fixtures, assignment)]
        of_term = chosen_fixtures(assignments[0], fixtures)
    for chosen in assignments:
        refuse_faults(chosen.folder)
        if function and function not in chosen.functions:
            raise UsageError(f"{chosen.name} does not grade {visible(function)}; {likely(function, chosen.functions)}.")
    exams = {}
    for chosen in assignments:
        with progress_bar("examining", hidden=quiet) as advance:
            exam = examine_grader(
                chosen,
                of_term or read_fixtures(chosen),
                jobs=jobs,
                every=SAMPLED if quick else 1,
                function=function,
                cache=None if fresh or of_term else options.CACHE,  # which keeps no result of a secret
                progress=advance,
            )
        exams[chosen.name] = exam
        if quiet and not as_json:
            for complaint in exam.complaints:
                print(f"autograder: {visible(complaint)}", file=sys.stderr)
        elif not as_json:
            say_exam(exam, chosen, standard_output(), title=len(assignments) > 1, costs=costs)
    if as_json:
        print_json({"assignments": [_described(exam, name) for name, exam in exams.items()]})
    if failed := [name for name, exam in exams.items() if exam.complaints]:
        what = "does not pass its exam; do not release it" if len(failed) == 1 else "do not pass; do not release them"
        print(f"autograder: {', '.join(failed)} {what}.", file=sys.stderr)
        raise SystemExit(3)


def _fared(fates: Sequence[Fate]) -> dict[str, int]:
    """Count how mistakes fared, by the names that `--json` promises."""
    namings = [fate.naming for fate in fates]
    return {
        "tried": len(fates),
        "caught": sum(fate.lost > 0 for fate in fates),
        **{f"named_{how}": namings.count(how) for how in ("rightly", "wrongly", "not")},
        "felt_elsewhere": sum(fate.spilt > 0 for fate in fates),
    }


def _described(exam: Exam, name: str) -> dict[str, Any]:
    """Describe one assignment for `--json`; the keys are a promise."""
    (points, max_points), answers = exam.points("solution"), exam.of("answer")
    mutants = [fate for fate in exam.mutants if not fate.is_equivalent]
    return {
        "assignment": name,
        "max_points": max_points,
        "solution": points,
        "handout": exam.points("handout")[0],
        "mistakes": _fared(exam.mistakes),
        "right_answers": {"tried": len(answers), "accepted": sum(not fate.complaints for fate in answers)},
        "clauses": exam.clauses and dict(zip(("all", "tested", "not_graded"), exam.clauses, strict=True)),
        "mutants": {"tried": len(mutants), "caught": sum(not fate.survived for fate in mutants)},
        "unmarked": [
            {key: getattr(one, key) for key in ("function", "line", "before", "after")} for one in exam.unmarked
        ],
        "costs": [
            {"mistake": fate.variant.slug, "function": fate.variant.function, "points": fate.lost, "of": fate.of}
            for fate in exam.costs
        ],
        "notes": list(exam.notes),
        "complaints": list(exam.complaints),
    }


def say_exam(exam: Exam, assignment: Assignment, console: Console, *, title: bool, costs: bool) -> None:
    """Print it: tables, then sentences, which a terminal gets in lines that fit and a file gets whole."""

    def say(sentence: str, style: str) -> None:
        line = f"  {escape(visible(sentence))}"
        console.print(line, style=style, highlight=False, soft_wrap=not console.is_terminal)

    if title:
        console.print(escape(assignment.title), style="bold", highlight=False)
    for family, name in (("solution", "solution"), ("handout", "untouched handout")):
        points, most = exam.points(family)
        console.print(f"{name}: {number(points)} of {number(most)} points", highlight=False)
    tried = {fate.variant.function for fate in exam.fates}  # of one function, where --function names it
    console.print(exam_table(exam.mistakes, [name for name in assignment.functions if name in tried]))
    console.print(answers_table(exam))
    if costs:
        table = table_of(
            "What each mistake costs of its function", ("mistake", "function", "points", "of", "share"), ()
        )
        table.columns[0].no_wrap, table.columns[0].overflow = False, "fold"  # some are too long for a narrow terminal
        for fate in exam.costs:
            row = (fate.variant.slug, short_name(fate.variant.function), number(fate.lost), number(fate.of))
            table.add_row(*(escape(visible(cell)) for cell in row), f"{100 * fate.share:.0f} %")
        console.print(table)
    for note in exam.notes:
        say(note, "yellow")
    if names := not_independent(assignment):
        say(f"The oracle of {', '.join(names)} is the solution itself: `release` refuses it.", "yellow")
    if exam.unmarked:
        path = f"solution/{assignment.name}/{assignment.module}.py"
        print(f"Where a change means nothing, mark its line in {path}, or the line above it: {SIGN} why")
    for sentence in ("It fails for this:", *exam.complaints) if exam.complaints else ():
        say(sentence, "bold red")


def exam_table(mistakes: Sequence[Fate], functions: Sequence[str]) -> Table:
    """Show how the catalogue of mistakes fared, by function."""
    rows = []
    for name in (*functions, ""):
        fared = _fared([fate for fate in mistakes if name in ("", fate.variant.function)])
        rows.append([short_name(name) if name else "all", *map(str, fared.values())])
    headings = ("function", "tried", "caught", "named rightly", "named wrongly", "not named", "felt elsewhere")
    return table_of("Known mistakes", headings, rows[:-1], total=rows[-1])


def answers_table(exam: Exam) -> Table:
    """Show how right answers in other styles, changes of the solution and the clauses of the contract fared."""
    right = [not fate.complaints for fate in exam.of("answer")]
    shares = [("right answers that earn all", sum(right), len(right))]
    for family, what in FAMILIES.items():
        lost = [not fate.survived for fate in exam.fates if fate.variant.family == family and not fate.is_equivalent]
        shares.append((f"{what} that lose points", sum(lost), len(lost)))
    equal = sum(fate.is_equivalent for fate in exam.mutants)
    shares.append(("equivalent changes that lose none", equal, equal))
    if exam.clauses is not None:
        clauses, tested, not_graded = exam.clauses
        shares.append(("clauses that a mistake tests", tested, clauses - not_graded))
        shares.append(("clauses not graded, with a reason", not_graded, not_graded))
    rows = [(what, str(tried), str(good), str(tried - good)) for what, good, tried in shares]
    headings = ("", "tried", "as it should be", "not")
    return table_of("Right answers, changes of the solution, clauses", headings, rows)
