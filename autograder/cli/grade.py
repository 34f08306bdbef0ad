"""The verb `grade`: a class of submissions → reports, pages, gradebook."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from autograder.cli.console import print_json, progress_bar, standard_output
from autograder.cli.fixtures import chosen_fixtures, chosen_variants
from autograder.cli.gradebook import (
    ClassOnPagesOption,
    OverridesOption,
    PolicyOption,
    ReplaceOption,
    TimesOption,
    apply_rules,
    chosen_rules,
    show_changes,
    tell_of_class,
)
from autograder.cli.options import (
    CORES,
    AssignmentOption,
    ClassZipOption,
    DeadlineOption,
    FixturesOption,
    JobsOption,
    JsonOption,
    LayoutOption,
    QuietOption,
    RosterOption,
    VariantByOption,
    course,
)
from autograder.cli.tables import class_table
from autograder.course.batch import grade_all
from autograder.course.results import Run
from autograder.gradebook.final_grades import Final, final_of
from autograder.gradebook.grades_folder import refuse_another, tells_of_class
from autograder.gradebook.roster import named, read_roster
from autograder.gradebook.rules import keep_seen, read_rules, times_of
from autograder.grading.choice import assignment_of_submissions, refuse_unlikely
from autograder.grading.grader import Grader
from autograder.platforms.hand_in import Gathered
from autograder.platforms.layouts import gathered
from autograder.platforms.times import read_times
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import file_stem
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import STRICT, visible


class Level(StrEnum):
    """How strictly student code is kept apart."""

    strict = "strict"
    best = "best"
    none = "none"


MOST_REFUSED = 20
SUBMISSIONS = "A folder of submissions, one student's folder, or files."


def grade(
    paths: Annotated[list[Path], typer.Argument(readable=False, help=SUBMISSIONS)],
    out: Annotated[Path, typer.Option("--out", readable=False, help="Where reports, pages and grades.csv go.")],
    jobs: JobsOption = CORES,
    fresh: Annotated[bool, typer.Option("--fresh", help="Grade again what has a report already.")] = False,
    replace: ReplaceOption = False,
    isolation: Annotated[
        Level, typer.Option("--isolation", help="strict: Landlock and seccomp, or nothing runs; best: what holds here.")
    ] = Level.best,
    trusted: Annotated[bool, typer.Option("--trust-this-code", help="What --isolation none asks for as well.")] = False,
    fixtures: FixturesOption = None,
    variant_by: VariantByOption = None,
    roster: RosterOption = None,
    deadline: DeadlineOption = None,
    class_zip: ClassZipOption = False,
    layout: LayoutOption = "",
    scheduler: Annotated[
        str, typer.Option("--scheduler", metavar="ADDRESS", help="Grade on this Dask cluster: tcp://host:8786.")
    ] = "",
    policy: PolicyOption = None,
    overrides: OverridesOption = None,
    timestamps: TimesOption = None,
    class_on_pages: ClassOnPagesOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    assignment: AssignmentOption = None,
) -> None:
    """Grade a class: reports, feedback pages, grades.csv and a dashboard."""
    if isolation is Level.none and not trusted:
        raise UsageError("--isolation none runs student code with your rights: if it is your own, --trust-this-code.")
    chosen = assignment_of_submissions(course(), paths, assignment)
    refuse_another(out, chosen.name)
    grader = Grader.of(chosen, chosen_fixtures(chosen, fixtures))
    variants = chosen_variants(chosen, fixtures) if variant_by else None
    people = read_roster(roster) if roster else None
    done = count(1)
    asked = (paths, chosen.module, people, deadline)
    of_course = gathered(*asked, out=out, class_zip=class_zip, layout=layout, functions=chosen.functions)
    with of_course as class_, ExitStack() as bar:
        candidates = class_.candidates
        students = [one.student for one in candidates]
        if assignment is None:
            refuse_unlikely(chosen, candidates)
        times = read_times(timestamps, chosen, candidates, people) if timestamps else None
        seen = {one.student: one.submitted for one in candidates if one.submitted}
        files = overrides or ()
        rules = chosen_rules(out, chosen, policy, files, times, students, seen, replace=replace)  # or what is wrong

        def agree(reports: Iterable[Report]) -> dict[str, Final]:
            bar.close()  # it would be drawn over a question
            of_old = rules
            if rules and rules.policy.late:
                of_old = dataclasses.replace(rules, times=times_of(out, rules.policy.timezone, times))
            show_changes(out, reports, rules, of_old, replace=replace, silent=quiet or as_json)
            return {report.student: final_of(report, rules) for report in reports} if rules else {}

        tells = tells_of_class(out)  # now: every page is written anew
        advance = bar.enter_context(progress_bar("grading", hidden=quiet))
        run = grade_all(
            grader,
            candidates,
            out,
            jobs=jobs,
            scheduler=scheduler,
            fresh=fresh,
            isolation=isolation.value,
            progress=lambda candidate, report: advance(next(done), len(candidates)),
            fixtures_of=variants.fixtures_of if variants else None,
            agree=agree,
        )
    silent = quiet or as_json
    described = _described(out, run, class_) if as_json else {}  # before rules write into the reports
    if not silent:
        console = standard_output()
        console.print(class_table(run.reports, run.figures, chosen, console.width))
        _say_where(console, run, out)
    keep_seen(out, seen)
    rules = read_rules(out, chosen, policy, files, times, replace_decisions=replace)  # again: somebody may have decided
    finals = apply_rules(out, run.reports, chosen, rules, silent=silent)
    tell_of_class(out, asked=class_on_pages, before=tells, silent=silent)
    if as_json:
        for student in described["students"]:
            if final := finals.get(student["student"]):
                student |= {"final": final.points, "final_max": final.most}
        print_json({"assignment": chosen.name, **described})
    _say_who(class_)
    _say_isolation(run)
    _say_lost(run)
    if run.figures.graded < run.figures.students or class_.refused:
        raise SystemExit(3)


def _described(out: Path, run: Run, class_: Gathered) -> dict[str, Any]:
    """What `--json` prints; the keys are a promise."""
    return {
        "out": str(out),
        "max_points": run.figures.max_points,
        "graded": run.figures.graded,
        "unchanged": run.reused,
        "seconds": round(run.seconds, 2),
        "isolation": list(run.isolation),
        "students": [_student(out, report) for report in run.reports],
        "absent": list(class_.absent),
        "not_in_roster": list(class_.unknown),
        "refused": list(class_.refused),
        "gone": list(run.gone),
    }


def _student(out: Path, report: Report) -> dict[str, Any]:
    return {
        "student": report.student,
        "status": report.status,
        "points": report.points,
        "final": report.points,
        "final_max": report.max_points,
        "not_passed": [item.item for item in report.items if item.verdict != "passed"],
        "report": str(out / "reports" / f"{file_stem(report.student)}.json"),
        "page": str(out / "feedback" / f"{file_stem(report.student)}.html"),
    }


def _say_where(console: Console, run: Run, out: Path) -> None:
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


def _say_who(class_: Gathered) -> None:
    """Who is missing on either side, and what was taken for nobody's, on stderr."""
    for names, what in (
        (class_.absent, "Handed in nothing"),
        (class_.unknown, "NOT IN THE ROSTER, but graded"),
        (class_.ignored, "Left out, for it is no submission"),
    ):
        if names:
            print(f"autograder: {what}: {named(names)}.", file=sys.stderr)
    for sentence in class_.refused[:MOST_REFUSED]:
        print(f"autograder: NOT GRADED: {visible(sentence)}", file=sys.stderr)
    if len(class_.refused) > MOST_REFUSED:
        print(f"autograder: NOT GRADED: and {len(class_.refused) - MOST_REFUSED} more.", file=sys.stderr)


def _say_isolation(run: Run) -> None:
    """What must not be missed where the code that was graded could do more than it should."""
    if missing := [layer for layer in STRICT if layer not in run.isolation]:
        _warn(
            f"NOT STRICT: without {' and '.join(missing)}, student code can read your files and use your network. "
            "`autograder doctor` says why; grade in a container, or as a user who owns nothing else."
        )


def _say_lost(run: Run) -> None:
    if lost := run.figures.students - run.figures.graded:
        names = ", ".join(visible(student, 40) for student in run.figures.not_graded[:10])
        more = f" and {lost - 10} more" if lost > 10 else ""
        _warn(f"NOT GRADED, through no fault of theirs: {names}{more}. {visible(run.fault, 300)}")


def _warn(sentence: str) -> None:
    Console(stderr=True, emoji=False).print(escape(sentence), style="bold red", highlight=False, soft_wrap=True)
