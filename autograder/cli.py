"""The command line: one verb, one function, one exit code. 0 done, 1 an item failed (check), 2 usage, 3 grader's fault."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from autograder import batch
from autograder.errors import KitError
from autograder.fixtures import Fixtures, read_fixtures
from autograder.grading import Grader
from autograder.items import Assignment, find_assignment
from autograder.report import Report
from autograder.submission import find
from autograder.text import number, visible

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Grade a policy-gradient assignment: student code runs in a sandbox, its tensors are compared with stored ones.",
)
MAX_ROWS = 60

AssignmentOption = Annotated[str | None, typer.Option("--assignment", help="Which assignment; needed where there are several.")]


@app.callback()
def _root() -> None:
    """Keep `grade` a verb while it stands alone."""


def main() -> None:
    """Run the command line; what goes wrong is one sentence on stderr and an exit code."""
    try:
        app()
    except KitError as error:
        print(f"autograder: {visible(str(error))}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    except KeyboardInterrupt:
        print("autograder: stopped. Run the same command again to go on where it stopped.", file=sys.stderr)
        raise SystemExit(130) from None


@app.command()
def grade(
    paths: Annotated[list[Path], typer.Argument(help="A folder of submissions, one student's folder, or files.")],
    out: Annotated[Path, typer.Option("--out", help="Where reports, pages and grades.csv go.")],
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Submissions at a time.")] = max(1, os.cpu_count() or 1),
    fresh: Annotated[bool, typer.Option("--fresh", help="Grade again what has a report already.")] = False,
    fixtures: Annotated[Path | None, typer.Option("--fixtures", help="A folder with another set of fixtures.")] = None,
    assignment: AssignmentOption = None,
) -> None:
    """Grade a class: reports, feedback pages, grades.csv and a dashboard."""
    chosen = find_assignment(assignment)
    stored = read_fixtures(chosen, folder=fixtures)
    candidates = find(paths, chosen.module)
    run = _with_progress(chosen, stored, candidates, out, jobs=jobs, fresh=fresh)
    console = Console()
    console.print(_table(run.reports, chosen))
    _say_where(console, run, out)
    if any(report.status == "not_graded" for report in run.reports):
        raise SystemExit(3)


def _with_progress(
    assignment: Assignment, stored: Fixtures, candidates: list[batch.Candidate], out: Path, *, jobs: int, fresh: bool
) -> batch.Run:
    grader = Grader.of(assignment, stored)
    columns = (TextColumn("grading"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("grading", total=len(candidates))
        return batch.grade_all(
            grader,
            candidates,
            out,
            jobs=jobs,
            fresh=fresh,
            untouched=_untouched(assignment),
            progress=lambda candidate, report: progress.advance(task),
        )


def _untouched(assignment: Assignment) -> str:
    path = assignment.handout / f"{assignment.module}.py"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _table(reports: tuple[Report, ...], assignment: Assignment) -> Table:
    table = Table(title=f"{assignment.title}: {len(reports)} submissions", title_justify="left")
    table.add_column("student", overflow="fold")
    table.add_column("points", justify="right")
    for function in assignment.functions:
        table.add_column(function.removeprefix("compute_").removeprefix("run_"), justify="right")
    table.add_column("what stands out", overflow="fold")
    for report in reports[:MAX_ROWS]:
        table.add_row(*(escape(cell) for cell in _row(report, assignment)))
    if len(reports) > MAX_ROWS:
        table.caption = f"… and {len(reports) - MAX_ROWS} more, in index.html and grades.csv"
    return table


def _row(report: Report, assignment: Assignment) -> list[str]:
    points = "not graded" if report.points is None else number(report.points)
    by_function = [
        number(sum(item.points or 0.0 for item in report.items if item.function == function))
        for function in assignment.functions
    ]
    return [visible(report.student, 40), points, *by_function, visible(_stands_out(report), 70)]


def _stands_out(report: Report) -> str:
    failed = [item for item in report.items if item.verdict != "passed"]
    if not failed:
        return ""
    first_lines = {item.message.split("\n")[0] for item in failed}
    if len(failed) == len(report.items) and len(first_lines) == 1:
        return first_lines.pop()
    named = list(dict.fromkeys(slug for item in failed for slug in item.mistakes))
    verdicts = list(dict.fromkeys(item.verdict.replace("_", " ") for item in failed if item.verdict != "failed"))
    return ", ".join([*verdicts, *named]) or f"{len(failed)} items failed"


def _say_where(console: Console, run: batch.Run, out: Path) -> None:
    again = f", {run.reused} of them unchanged since the last run" if run.reused else ""
    console.print(f"{len(run.reports)} graded in {run.seconds:.1f} s{again}.", highlight=False)
    for name, what in (
        ("index.html", "the class"),
        ("feedback/", "a page for each student"),
        ("grades.csv", "the gradebook"),
        ("reports/", "JSON"),
    ):
        console.print(f"  {escape(str(out / name))}  {what}", highlight=False, soft_wrap=True)
    lost = [report for report in run.reports if report.status == "not_graded"]
    if lost:
        names = ", ".join(visible(report.student, 40) for report in lost[:10])
        reason = visible(lost[0].items[0].message, 300)
        Console(stderr=True).print(
            escape(f"NOT GRADED, through no fault of theirs: {names}. {reason}"), style="bold red", highlight=False
        )
