"""The verb `grade`: a class of submissions → reports, pages, gradebook."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from datetime import datetime
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from autograder.cli.console import progress_bar, standard_output
from autograder.cli.exports import RosterOption
from autograder.cli.fixtures import chosen_fixtures, chosen_variants
from autograder.cli.gradebook import OverridesOption, PolicyOption, TimesOption, apply_rules, chosen_rules
from autograder.cli.options import CORES, AssignmentOption, FixturesOption, JobsOption, VariantByOption, course
from autograder.cli.tables import class_table
from autograder.course import batch
from autograder.gradebook.class_reports import named
from autograder.gradebook.roster import read_roster
from autograder.grading.choice import assignment_of_submissions
from autograder.grading.grader import Grader
from autograder.platforms.hand_in import Gathered
from autograder.platforms.layouts import gathered
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.text import STRICT, visible


class Level(StrEnum):
    """How strictly student code is kept apart."""

    strict = "strict"
    best = "best"
    none = "none"


SUBMISSIONS = "A folder of submissions, one student's folder, or files."


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
    chosen = assignment_of_submissions(course(), paths, assignment)
    grader = Grader.of(chosen, chosen_fixtures(chosen, fixtures))
    variants = chosen_variants(chosen, fixtures) if variant_by else None
    people = read_roster(roster) if roster else None
    moment = deadline.astimezone() if deadline else None  # of this machine's time zone, where it names none
    done = count(1)
    with ExitStack() as stack:
        class_ = stack.enter_context(gathered(paths, chosen.module, people, moment, out=out, class_zip=class_zip))
        candidates = class_.candidates
        students = [one.student for one in candidates]
        rules = chosen_rules(out, chosen, policy, overrides, timestamps, students)
        advance = stack.enter_context(progress_bar("grading"))
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
    console = standard_output()
    console.print(class_table(run.reports, run.figures, chosen))
    _say_where(console, run, out)
    apply_rules(out, run.reports, chosen, rules)
    _say_who(class_)
    _say_isolation(run)
    if run.figures.graded < run.figures.students:
        raise SystemExit(3)


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


def _say_who(class_: Gathered) -> None:
    """Who is missing on either side, and what was taken for nobody's, on stderr."""
    for names, what in (
        (class_.absent, "Handed in nothing"),
        (class_.unknown, "NOT IN THE ROSTER, but graded"),
        (class_.ignored, "Left out, for it is no submission"),
    ):
        if names:
            print(f"autograder: {what}: {named(names)}.", file=sys.stderr)


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
