"""The verb `selfcheck`: the grader's own exam."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from autograder.authoring.exam.selfcheck import Exam
from autograder.authoring.exam.selfcheck import selfcheck as examine_grader
from autograder.authoring.handout.release import not_independent
from autograder.authoring.marks import SIGN
from autograder.authoring.proofreading.fault import likely
from autograder.authoring.proofreading.proofread import authored, refuse_faults
from autograder.cli.console import print_json, progress_bar, standard_output
from autograder.cli.options import CORES, AssignmentOption, JobsOption, JsonOption, QuietOption, course
from autograder.cli.tables import answers_table, costs_table, each_cost_table, exam_table
from autograder.grading.assignments import find_assignments
from autograder.grading.fixtures import read_fixtures
from autograder.grading.items import Assignment
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.text import number, visible

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "autograder" / "selfcheck"
SAMPLED = 40  # --quick: one in so many mistakes and mutants, and the first of each function


def selfcheck(
    jobs: JobsOption = CORES,
    quick: Annotated[bool, typer.Option("--quick", help="A sample; all of functions that you edited.")] = False,
    costs: Annotated[bool, typer.Option("--costs", help="Say of each mistake what it costs.")] = False,
    function: Annotated[str, typer.Option("--function", metavar="NAME", help="Only mistakes and mutants of it.")] = "",
    fresh: Annotated[bool, typer.Option("--fresh", help="Take over no result of an earlier exam.")] = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    assignment: AssignmentOption = None,
) -> None:
    """The grader's own exam: solution, handout, mistakes, right answers, mutants, contract. Exits with 3 on a fault."""
    found: list[dict[str, Any]] = []
    several = authored(course(), assignment, find_assignments)
    for chosen in several:
        refuse_faults(chosen.folder)
        if function and function not in chosen.functions:
            raise UsageError(f"{chosen.name} does not grade {visible(function)}; {likely(function, chosen.functions)}.")
    for chosen in several:
        with progress_bar("examining", hidden=quiet) as advance:
            every = SAMPLED if quick else 1
            cache = None if fresh else CACHE
            exam = examine_grader(
                chosen, read_fixtures(chosen), jobs=jobs, every=every, function=function, cache=cache, progress=advance
            )
        if quiet and not as_json:
            for complaint in exam.complaints:
                print(f"autograder: {visible(complaint)}", file=sys.stderr)
        elif not as_json:
            say_exam(exam, chosen, standard_output(), title=len(several) > 1, costs=costs)
        found.append(_described(exam, chosen))
    if as_json:
        print_json({"assignments": found})
    if failed := [one["assignment"] for one in found if one["complaints"]]:
        what = "does not pass its exam; do not release it" if len(failed) == 1 else "do not pass; do not release them"
        print(f"autograder: {', '.join(failed)} {what}.", file=sys.stderr)
        raise SystemExit(3)


def _described(exam: Exam, assignment: Assignment) -> dict[str, Any]:
    """What `--json` says of one assignment; the keys are a promise."""
    namings = [finding.naming for finding in exam.findings]
    mutants = [fate for fate in exam.fates if not fate.is_equivalent]
    own = ((name, report) for name, report in (("solution", exam.solution), ("handout", exam.handout)))
    return {
        "assignment": assignment.name,
        "max_points": exam.solution.max_points,
        **{name: report.points for name, report in own},
        "mistakes": {
            "tried": len(exam.findings),
            "caught": sum(finding.lost > 0 for finding in exam.findings),
            "felt_elsewhere": sum(finding.spilt > 0 for finding in exam.findings),
            **{f"named_{how}": namings.count(how) for how in ("rightly", "wrongly", "not")},
        },
        "right_answers": {
            "tried": len(exam.right_answers),
            "accepted": sum(answer.is_accepted for answer in exam.right_answers),
        },
        "clauses": exam.coverage
        and {
            "all": exam.coverage.clauses,
            "tested": exam.coverage.tested,
            "not_graded": exam.coverage.not_graded,
        },
        "mutants": {"tried": len(mutants), "caught": sum(not fate.survived for fate in mutants)},
        "unmarked": [
            {"function": one.function, "line": one.line, "before": one.before, "after": one.after}
            for one in exam.unmarked
        ],
        "costs": [
            {"mistake": cost.name, "function": cost.function, "points": cost.lost, "of": cost.of} for cost in exam.costs
        ],
        "notes": list(exam.notes),
        "complaints": list(exam.complaints),
    }


def say_exam(exam: Exam, assignment: Assignment, console: Console, *, title: bool, costs: bool) -> None:
    """Print it: tables, then sentences, which a terminal gets in lines that fit and a file gets whole."""
    whole = not console.is_terminal
    if title:
        console.print(escape(assignment.title), style="bold", highlight=False)
    for name, report in (("solution", exam.solution), ("untouched handout", exam.handout)):
        points = "not graded" if report.points is None else number(report.points)
        console.print(f"{name}: {points} of {number(report.max_points)} points", highlight=False)
    console.print(exam_table(exam.findings, assignment))
    console.print(answers_table(exam))
    console.print(costs_table(exam.costs, assignment))
    if costs:
        console.print(each_cost_table(exam.costs))
    for note in exam.notes:
        console.print(f"  {escape(visible(note))}", style="yellow", highlight=False, soft_wrap=whole)
    if names := not_independent(assignment):
        note = f"The oracle of {', '.join(names)} is the solution itself: `release` refuses it."
        console.print(f"  {escape(note)}", style="yellow", highlight=False, soft_wrap=whole)
    for complaint in exam.complaints:
        console.print(f"  {escape(visible(complaint))}", style="bold red", highlight=False, soft_wrap=whole)
    if exam.unmarked:
        path = f"solution/{assignment.name}/{assignment.module}.py"
        print(f"Where a change means nothing, mark its line in {path}, or the line above it: {SIGN} why")
