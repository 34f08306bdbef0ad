"""The verb `grade`: a class of submissions → reports, pages, gradebook."""

from __future__ import annotations

import dataclasses
import os
import textwrap
from collections.abc import Iterable
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from autograder.cli import options
from autograder.cli.gradebook import apply_rules, chosen_rules, show_changes
from autograder.cli.release import chosen_fixtures
from autograder.cli.terminal import empty_table, print_json, progress_bar, say, short_name, standard_output, warn
from autograder.course.batch import grade_all
from autograder.course.results import Run
from autograder.gradebook.class_statistics import stands_out
from autograder.gradebook.final_grades import Final, final_of
from autograder.gradebook.grades_folder import refuse_another
from autograder.gradebook.roster import named
from autograder.gradebook.rules import keep_seen, read_rules, times_of
from autograder.grading.assignment import Assignment
from autograder.grading.choice import assignment_of_submissions, refuse_unlikely
from autograder.grading.grader import Grader
from autograder.platforms.layouts import Gathered, gathered
from autograder.platforms.times import read_times
from autograder.sandbox.sandbox import Isolation
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import file_stem
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import STRICT, number, visible

MAX_REFUSED = 20  # sentences
MAX_ROWS = 100  # students; of a larger class the page has the table
MAX_COLUMNS = 8  # of functions: with more, no terminal has room for the rest
MAX_REMARK = 100  # characters of what stands out
WIDEST_NAME = 24
LEAST_ROOM = 30  # columns for what stands out: as long as most names of mistakes
WRITTEN = {  # what `grade` writes, for people
    "index.html": "  the class",
    "feedback": f"{os.sep}  a page for each student",
    "grades.csv": "  the gradebook",
    "reports": f"{os.sep}  JSON",
}


def grade(
    paths: Annotated[list[Path], options.argument(None, "A folder of submissions, one student's folder, or files.")],
    out: Annotated[Path, options.path("--out", "Where reports, pages and grades.csv go.")],
    jobs: options.Jobs = options.CORES,
    fresh: Annotated[bool, typer.Option("--fresh", help="Grade again what has a report already.")] = False,
    replace: options.Replace = False,
    isolation: Annotated[
        Isolation,
        typer.Option("--isolation", help="strict: Landlock and seccomp, or nothing runs; best: what holds here."),
    ] = "best",
    trusted: Annotated[bool, typer.Option("--trust-this-code", help="What --isolation none asks for as well.")] = False,
    fixtures: options.Fixtures = None,
    roster: options.Roster = None,
    deadline: options.Deadline = None,
    class_zip: options.ClassZip = False,
    layout: options.Layout = None,
    scheduler: Annotated[
        str, typer.Option("--scheduler", metavar="ADDRESS", help="Grade on this Dask cluster: tcp://host:8786.")
    ] = "",
    policy: options.Policy = None,
    overrides: options.Overrides = None,
    timestamps: options.Timestamps = None,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
    assignment: options.Assignment = None,
) -> None:
    """Grade a class: reports, feedback pages, grades.csv and a dashboard."""
    if isolation == "none" and not trusted:
        raise UsageError("--isolation none runs student code with your rights: if it is your own, --trust-this-code.")
    silent = quiet or as_json
    chosen = assignment_of_submissions(options.course(), paths, assignment)
    refuse_another(out, chosen.name)
    grader = Grader.of(chosen, chosen_fixtures(chosen, fixtures))
    asked = (paths, chosen.module, roster, deadline)
    of_course = gathered(*asked, out=out, class_zip=class_zip, layout=layout or "", functions=chosen.functions)
    with of_course as class_, ExitStack() as bar:
        candidates = class_.candidates
        students = [candidate.student for candidate in candidates]
        if assignment is None:
            refuse_unlikely(chosen, candidates)
        times = read_times(timestamps, chosen, candidates, roster) if timestamps else None
        seen = {candidate.student: candidate.submitted for candidate in candidates if candidate.submitted}
        files = overrides or ()
        rules = chosen_rules(out, chosen, policy, files, times, students, seen, replace=replace)  # or what is wrong

        agreed: dict[str, Final] = {}

        def agree(reports: Iterable[Report]) -> dict[str, Final]:
            bar.close()  # it would be drawn over a question
            of_old = rules
            if rules and rules.policy.late:
                of_old = dataclasses.replace(rules, times=times_of(out, rules.policy.timezone, times))
            show_changes(out, reports, rules, of_old, replace=replace, silent=silent)
            agreed.update({report.student: final_of(report, rules) for report in reports} if rules else {})
            return agreed

        advance, done = bar.enter_context(progress_bar("grading", hidden=quiet)), count(1)
        run = grade_all(
            grader,
            candidates,
            out,
            jobs=jobs,
            scheduler=scheduler,
            fresh=fresh,
            isolation=isolation,
            progress=lambda candidate, report: advance(next(done), len(candidates)),
            agree=agree,
        )
    described = _described(out, run, class_) if as_json else {}  # before rules write into the reports
    if not silent:
        console = standard_output()
        title = f"{chosen.title}: {run.figures.students:,} submission{'s' * (run.figures.students != 1)}"
        is_small = run.figures.students <= MAX_ROWS
        console.print(class_table(run.reports, chosen, title, console.width) if is_small else escape(title))
        again = f", {run.reused} of them unchanged since the last run" if run.reused else ""
        console.print(f"{run.figures.graded} graded in {run.seconds:.1f} s{again}.", highlight=False)
        for name, what in WRITTEN.items():
            console.print(f"  {escape(visible(str(out / name)))}{what}", highlight=False, soft_wrap=True)
    keep_seen(out, seen)
    rules = read_rules(out, chosen, policy, files, times, replace_decisions=replace)  # again: somebody may have decided
    finals = apply_rules(out, run.reports, chosen, rules, agreed, silent=silent)
    if as_json:
        for student in described["students"]:
            if final := finals.get(student["student"]):
                student |= {"final": final.points, "final_max": final.most}
        print_json({"assignment": chosen.name, **described})
    _say_what_is_wrong(run, class_)
    if run.figures.graded < run.figures.students or class_.refused:
        raise SystemExit(3)


def _described(out: Path, run: Run, class_: Gathered) -> dict[str, Any]:
    """Make what `--json` prints; the keys are a promise."""
    students = [
        {
            "student": report.student,
            "status": report.status,
            "points": report.points,
            "final": report.points,
            "final_max": report.max_points,
            "not_passed": [item.item for item in report.items if item.verdict != "passed"],
            "report": str(out / "reports" / f"{file_stem(report.student)}.json"),
            "page": str(out / "feedback" / f"{file_stem(report.student)}.html"),
        }
        for report in run.reports
    ]
    return {
        "out": str(out),
        "max_points": run.figures.max_points,
        "graded": run.figures.graded,
        "unchanged": run.reused,
        "seconds": round(run.seconds, 2),
        "isolation": list(run.isolation),
        "students": students,
        "absent": list(class_.absent),
        "not_in_roster": list(class_.unknown),
        "refused": list(class_.refused),
        "gone": list(run.gone),
    }


def _say_what_is_wrong(run: Run, class_: Gathered) -> None:
    """Say who is missing on either side, what was taken for nobody's, whose grade is lost, and which wall is."""
    for names, what in (
        (class_.absent, "Handed in nothing"),
        (class_.unknown, "NOT IN THE ROSTER, but graded"),
        (class_.ignored, "Left out, for it is no submission"),
    ):
        if names:
            say(f"{what}: {named(names)}.")
    for sentence in class_.refused[:MAX_REFUSED]:
        say(f"NOT GRADED: {sentence}")
    if len(class_.refused) > MAX_REFUSED:
        say(f"NOT GRADED: and {len(class_.refused) - MAX_REFUSED} more.")
    if missing := [layer for layer in STRICT if layer not in run.isolation]:
        warn(
            f"NOT STRICT: without {' and '.join(missing)}, student code can read your files and use your network. "
            "`autograder doctor` says why; grade in a container, or as a user who owns nothing else."
        )
    if lost := run.figures.students - run.figures.graded:
        students = ", ".join(visible(student, 40) for student in run.figures.not_graded[:10])
        more = f" and {lost - 10} more" if lost > 10 else ""
        warn(f"NOT GRADED, through no fault of theirs: {students}{more}. {visible(run.fault, 300)}")


# The class in the terminal


def class_table(reports: Iterable[Report], assignment: Assignment, title: str, width: int) -> Table:
    """One row per student: points, points by function, what stands out.

    Of many functions, or where the last column would have no room, it says how many are complete.
    """
    reports = list(reports)
    columns = [short_name(function).replace("_", "\n") for function in assignment.functions]
    names = max([len("student"), *(len(visible(report.student, 40)) for report in reports)])
    used = min(names, WIDEST_NAME) + 2 + sum(2 + max(5, *map(len, name.split("\n"))) for name in ("points", *columns))
    is_whole = len(columns) <= MAX_COLUMNS and width - used >= LEAST_ROOM
    table = empty_table(title)
    table.add_column("student", overflow="fold", max_width=WIDEST_NAME)
    for name in ("points", *(columns if is_whole else ["functions\ncomplete"])):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("what stands out", overflow="fold")
    for report in reports:
        total = "not graded" if report.points is None else number(report.points)
        incomplete = {item.function for item in report.items if item.verdict != "passed"}
        of = len(assignment.functions)
        by_function = ["" if report.points is None else f"{of - len(incomplete)} of {of}"]
        if is_whole:
            points = [[item.points for item in report.items if item.function == name] for name in assignment.functions]
            by_function = ["" if None in some else number(sum(value or 0.0 for value in some)) for some in points]
        remark = textwrap.shorten(
            visible(stands_out(report), 400), MAX_REMARK, placeholder=" …", break_on_hyphens=False
        )
        table.add_row(*map(Text, (visible(report.student, 40), total, *by_function, remark)))
    return table
