"""The command line: one verb, one function, one exit code.

0 done, 1 an item failed (`check` alone), 2 usage, 3 the grader's fault.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from autograder.authoring.exam import Exam
from autograder.authoring.exam import selfcheck as examine_grader
from autograder.authoring.release import (
    handout_files,
    write_handout,
    write_source_notebook,
    write_student_zips,
    zip_bytes,
)
from autograder.authoring.variants import Variants
from autograder.checking.check import check as check_folder
from autograder.checking.command_line import print_anything
from autograder.checking.watch import watch as watch_folder
from autograder.cli.doctor import examine
from autograder.cli.exports import RosterOption, bundle_app, export_app
from autograder.cli.fixtures import chosen_fixtures, chosen_variants, fixtures_app
from autograder.cli.gradebook import (
    OverridesOption,
    PolicyOption,
    TimesOption,
    apply_rules,
    chosen_rules,
    gradebook,
    similar,
)
from autograder.cli.options import AssignmentOption, FixturesOption
from autograder.cli.tables import answers_table, class_table, doctor_table, exam_table
from autograder.course import batch
from autograder.gradebook.class_reports import named
from autograder.gradebook.roster import read_roster
from autograder.grading.choice import assignment_of_fixtures, assignment_of_submissions, assignments_to_release
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.grading.items import Assignment, find_assignments
from autograder.platforms.layouts import Gathered, gathered
from autograder.submissions.submission import Candidate
from autograder.vocabulary.errors import KitError, UsageError
from autograder.vocabulary.files import write_atomically, writing
from autograder.vocabulary.text import STRICT, number, visible

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Grade a policy-gradient assignment: student code runs sandboxed, its tensors are compared with stored ones.",
)
app.add_typer(fixtures_app, name="fixtures")
app.add_typer(export_app, name="export")
app.add_typer(bundle_app, name="bundle")


class VariantBy(StrEnum):
    """Whose own public cases a submission is held against."""

    student = "student"


class Level(StrEnum):
    """How strictly student code is kept apart."""

    strict = "strict"
    best = "best"
    none = "none"


SUBMISSIONS = "A folder of submissions, one student's folder, or files."
PAGE_WIDTH = 110
INTERRUPTED = 130  # typer's exit code for Ctrl-C
CORES = max(1, os.cpu_count() or 1)
VariantByOption = Annotated[
    VariantBy | None, typer.Option("--variant-by", help="Public cases of each student's own, from --fixtures.")
]


def _at_least_one(jobs: int) -> int:
    if jobs < 1:
        raise UsageError(f"--jobs {jobs} would grade nothing: give 1 or more.")
    return jobs


JobsOption = Annotated[int, typer.Option("--jobs", callback=_at_least_one, help="Submissions at a time, 1 or more.")]


def main() -> None:
    """Run the command line; what goes wrong is one sentence on stderr and an exit code."""
    print_anything()
    try:
        app()
    except KitError as error:
        print(f"autograder: {visible(str(error))}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            more = " Run the same command again to go on where it stopped." if sys.argv[1:2] == ["grade"] else ""
            print(f"autograder: stopped.{more}", file=sys.stderr)
        raise


@app.command()
def grade(
    paths: Annotated[list[Path], typer.Argument(readable=False, help=SUBMISSIONS)],
    out: Annotated[Path, typer.Option("--out", readable=False, help="Where reports, pages and grades.csv go.")],
    jobs: JobsOption = CORES,
    fresh: Annotated[bool, typer.Option("--fresh", help="Grade again what has a report already.")] = False,
    isolation: Annotated[
        Level, typer.Option("--isolation", help="strict: Landlock and seccomp, or nothing runs; best: what holds here.")
    ] = Level.best,
    trusted: Annotated[bool, typer.Option("--trust-this-code", help="What --isolation none asks for as well.")] = False,
    fixtures: FixturesOption = None,
    variant_by: VariantByOption = None,
    roster: RosterOption = None,
    deadline: Annotated[
        datetime | None, typer.Option("--deadline", help="Of several submissions, the latest until then counts.")
    ] = None,
    class_zip: Annotated[
        bool, typer.Option("--class-zip", help="PATH is a zip of the class that you downloaded from your platform.")
    ] = False,
    scheduler: Annotated[
        str, typer.Option("--scheduler", metavar="ADDRESS", help="Grade on this Dask cluster: tcp://host:8786.")
    ] = "",
    policy: PolicyOption = None,
    overrides: OverridesOption = None,
    timestamps: TimesOption = None,
    assignment: AssignmentOption = None,
) -> None:
    """Grade a class: reports, feedback pages, grades.csv and a dashboard."""
    if isolation is Level.none and not trusted:
        raise UsageError("--isolation none runs student code with your rights: if it is your own, --trust-this-code.")
    chosen = assignment_of_submissions(paths, assignment)
    grader = Grader.of(chosen, chosen_fixtures(chosen, fixtures))
    variants = chosen_variants(chosen, fixtures) if variant_by else None
    people = read_roster(roster) if roster else None
    moment = deadline.astimezone() if deadline else None  # of this machine's time zone, where it names none
    done = count(1)
    with ExitStack() as stack:
        class_ = stack.enter_context(gathered(paths, chosen.module, people, moment, class_zip=class_zip))
        candidates = _candidates(class_, out)
        students = [one.student for one in candidates]
        rules = chosen_rules(out, chosen, policy, overrides, timestamps, students)
        advance = stack.enter_context(_progress("grading"))
        run = batch.grade_all(
            grader,
            candidates,
            out,
            jobs=jobs,
            scheduler=scheduler,
            fresh=fresh,
            untouched=chosen.untouched_source(),
            isolation=isolation.value,
            progress=lambda candidate, report: advance(next(done), len(candidates)),
            fixtures_of=variants.fixtures_of if variants else None,
        )
    console = _console()
    console.print(class_table(run.reports, run.figures, chosen))
    _say_where(console, run, out)
    apply_rules(out, run.reports, chosen, rules)
    _say_roster(class_)
    _say_isolation(run)
    if run.figures.graded < run.figures.students:
        raise SystemExit(3)


def _candidates(class_: Gathered, out: Path) -> list[Candidate]:
    """What was handed in; the results of an earlier run may lie among it."""
    candidates = [one for one in class_.candidates if one.path.resolve() != out.resolve()]
    if not candidates:
        raise UsageError(f"There is nothing to grade but {out}, which is where the results go.")
    return candidates


def _console() -> Console:
    """Standard output: as wide as the terminal, or as a page where it goes to a file."""
    return Console(emoji=False) if sys.stdout.isatty() else Console(width=PAGE_WIDTH, emoji=False)


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on stderr, and the function that says how many of how many are done."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _say_where(console: Console, run: batch.Run, out: Path) -> None:
    again = f", {run.reused} of them unchanged since the last run" if run.reused else ""
    console.print(f"{run.figures.graded} graded in {run.seconds:.1f} s{again}.", highlight=False)
    for name, what in (
        ("index.html", "the class"),
        ("feedback", "a page for each student"),
        ("grades.csv", "the gradebook"),
        ("reports", "JSON"),
    ):
        path = f"{out / name}{'' if '.' in name else os.sep}"
        console.print(f"  {escape(visible(path))}  {what}", highlight=False, soft_wrap=True)
    if run.figures.not_graded:
        _say_lost(run)


def _say_roster(class_: Gathered) -> None:
    """Who is missing on either side, on stderr."""
    for students, what in ((class_.absent, "Handed in nothing"), (class_.unknown, "NOT IN THE ROSTER, but graded")):
        if students:
            print(f"autograder: {what}: {named(students)}.", file=sys.stderr)


def _say_isolation(run: batch.Run) -> None:
    """What must not be missed where the code that was graded could do more than it should."""
    missing = [layer for layer in STRICT if layer not in run.isolation]
    if missing:
        sentence = (
            f"NOT STRICT: without {' and '.join(missing)}, student code can read your files and use your network. "
            "`autograder doctor` says why; grade in a container, or as a user who owns nothing else."
        )
        Console(stderr=True).print(escape(sentence), style="bold red", highlight=False, soft_wrap=True)


def _say_lost(run: batch.Run) -> None:
    names = ", ".join(visible(student, 40) for student in run.figures.not_graded[:10])
    lost = run.figures.students - run.figures.graded
    more = f" and {lost - 10} more" if lost > 10 else ""
    sentence = f"NOT GRADED, through no fault of theirs: {names}{more}. {visible(run.fault, 300)}"
    Console(stderr=True, emoji=False).print(escape(sentence), style="bold red", highlight=False, soft_wrap=True)


app.command()(gradebook)
app.command()(similar)


@app.command()
def check(
    path: Annotated[
        Path, typer.Argument(metavar="[DIR]", readable=False, help="The folder with the work to check.")
    ] = Path(),
    item: Annotated[list[str] | None, typer.Option("--item", help="This item only; may be repeated.")] = None,
    watching: Annotated[
        bool, typer.Option("--watch", help="Check again whenever a file is saved, until Ctrl-C.")
    ] = False,
    assignment: AssignmentOption = None,
) -> None:
    """What a student runs: the public cases, with the messages of grading. Exits with 1 where an item fails."""
    raise SystemExit((watch_folder if watching else check_folder)(path, item or (), assignment))


@app.command()
def release(
    zip_file: Annotated[
        Path | None, typer.Option("--zip", readable=False, help="Write the handout as a zip, too.")
    ] = None,
    fixtures: FixturesOption = None,
    variant_by: VariantByOption = None,
    roster: Annotated[
        Path | None, typer.Option("--roster", readable=False, help="A CSV with a column `student`, for --variant-by.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", readable=False, help="Where each student's zip goes, for --variant-by.")
    ] = None,
    assignment: AssignmentOption = None,
) -> None:
    """Make the handout from the solution: stubs, notebook, given files, public cases, the checker."""
    if variant_by or fixtures:
        several = [assignment_of_fixtures([fixtures] if fixtures else [], assignment)]
    else:
        several = assignments_to_release(zip_file, assignment)
    if variant_by:
        _release_variants(chosen_variants(several[0], fixtures), roster, out)
        return
    for chosen in several:
        _release(chosen, fixtures, zip_file)


def _release(chosen: Assignment, fixtures: Path | None, zip_file: Path | None) -> None:
    chosen_fixtures(chosen, fixtures)
    files = handout_files(chosen, fixtures)
    write_source_notebook(chosen)
    write_handout(files, chosen.handout)
    print(f"{chosen.handout}: {len(files)} files. No line of the solution and no hidden case is in them.")
    if zip_file is not None:
        with writing(zip_file, "file with --zip"):
            write_atomically(zip_file, zip_bytes(files, chosen.name))
        print(f"{zip_file}: {zip_file.stat().st_size:,} bytes. Students need it and nothing else.")


def _release_variants(variants: Variants, roster: Path | None, out: Path | None) -> None:
    if roster is None or out is None:
        raise UsageError("--variant-by student makes a zip for each student: give --roster FILE and --out FOLDER.")
    students = [person.student for person in read_roster(roster).people]
    with writing(out):
        count = write_student_zips(variants, students, out)
    print(f"{out}: {count} zips, each with the public cases of one of {variants.count} variants.")


@app.command()
def selfcheck(jobs: JobsOption = CORES, assignment: AssignmentOption = None) -> None:
    """The grader's own exam: solution, handout, known mistakes, right answers, mutants. Exits with 3 where it fails."""
    complaints = 0
    several = find_assignments(assignment)
    for chosen in several:
        with _progress("examining") as advance:
            exam = examine_grader(chosen, read_fixtures(chosen), jobs=jobs, progress=advance)
        _say_exam(exam, chosen, _console(), title=len(several) > 1)
        complaints += len(exam.complaints)
    if complaints:
        print("autograder: the kit does not pass its own exam; do not release it.", file=sys.stderr)
        raise SystemExit(3)


def _say_exam(exam: Exam, assignment: Assignment, console: Console, *, title: bool) -> None:
    if title:
        console.print(escape(assignment.title), style="bold", highlight=False)
    for name, report in (("solution", exam.solution), ("untouched handout", exam.handout)):
        points = "not graded" if report.points is None else number(report.points)
        console.print(f"{name}: {points} of {number(report.max_points)} points", highlight=False)
    console.print(exam_table(exam.findings, assignment))
    console.print(answers_table(exam))
    for note in exam.notes:
        console.print(f"  {escape(visible(note))}", style="yellow", highlight=False, soft_wrap=True)
    for complaint in exam.complaints:
        console.print(f"  {escape(visible(complaint))}", style="bold red", highlight=False, soft_wrap=True)


@app.command()
def doctor(assignment: AssignmentOption = None) -> None:
    """Which packages, isolation layers and fixtures this machine has, and what to do about what is missing."""
    examined = examine(find_assignments(assignment))
    _console().print(doctor_table(examined))
    if any(one.state == "missing" for one in examined):
        raise SystemExit(3)
