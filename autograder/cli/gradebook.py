"""The verbs `autograder gradebook` and `similar`, and what `grade` shares: a course's rules for final grades."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from autograder.cli.options import AssignmentOption, course
from autograder.course.overview import is_course, read_course, students_of, told, write_course
from autograder.course.similarity import compare_class, page
from autograder.gradebook.final_grades import Final
from autograder.gradebook.grades_folder import ADJUSTMENTS, stored_reports, without_finals, write_finals
from autograder.gradebook.rules import Rules, read_rules
from autograder.grading.assignments import find_assignment, find_assignments
from autograder.grading.choice import assignment_of_submissions
from autograder.grading.items import Assignment
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import write_atomically, writing
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import number, visible

PolicyOption = Annotated[
    Path | None, typer.Option("--policy", readable=False, help="A TOML file: late days, dropped items, excuses.")
]
OverridesOption = Annotated[
    Path | None, typer.Option("--overrides", readable=False, help="A CSV: student,item,points,comment.")
]
TimesOption = Annotated[
    Path | None, typer.Option("--timestamps", readable=False, help="A CSV: student,submitted; or nbgrader's folder.")
]
MAX_TOLD = 10


def gradebook(
    grades: Annotated[
        Path,
        typer.Argument(metavar="DIR", readable=False, help="What `grade --out` wrote, or a folder of several such."),
    ],
    policy: PolicyOption = None,
    overrides: OverridesOption = None,
    timestamps: TimesOption = None,
    assignment: AssignmentOption = None,
) -> None:
    """Apply late rules, dropped items, excuses and overrides to graded reports; nothing is graded again.

    Of a folder that holds the grades of several assignments, write one page and one gradebook of the whole course.
    """
    if is_course(grades):
        _write_course(grades, rules_given=any((policy, overrides, timestamps, assignment)))
        return
    reports = stored_reports(grades)
    chosen = find_assignment(course(), assignment or reports[0].assignment)
    if others := [report for report in reports if report.assignment != chosen.name]:
        raise UsageError(f"{grades} holds grades of {others[0].assignment!r}: name it with --assignment.")
    rules = chosen_rules(grades, chosen, policy, overrides, timestamps, [report.student for report in reports])
    apply_rules(grades, reports, chosen, rules)


def _write_course(grades: Path, *, rules_given: bool) -> None:
    if rules_given:
        raise UsageError(f"{grades} holds several assignments: rules are applied in the folder of each.")
    graded = read_course(grades, {one.name: one.title for one in find_assignments(course())})
    write_course(grades, graded)
    print(f"{len(students_of(graded))} students, {len(graded)} assignments:")
    print("\n".join(told(graded)))
    for name, what in (("index.html", "the course"), ("grades.csv", "the gradebook")):
        print(f"  {visible(str(grades / name))}  {what}")


def similar(
    paths: Annotated[list[Path], typer.Argument(readable=False, help="A folder of submissions, or files.")],
    out: Annotated[Path, typer.Option("--out", readable=False, help="Where the page goes: similar.html.")],
    assignment: AssignmentOption = None,
) -> None:
    """Show which submissions are alike beyond the handout: pairs to look at, never a verdict."""
    chosen = assignment_of_submissions(course(), paths, assignment)
    found = compare_class(chosen, paths)
    with writing(out, "file with --out"):
        write_atomically(out, page(found, chosen.title))
    print(
        f"{len(found.texts)} submissions compared, {len(found.left_out)} left out: {len(found.pairs)} pairs to look at."
    )
    for pair in found.pairs[:MAX_TOLD]:
        shares = " and ".join(f"{100 * share:.0f} %" for share in pair.shares)
        print(f"  {' and '.join(visible(name, 40) for name in pair.students)}: {shares}")
    print(f"  {visible(str(out))} shows them side by side. A pair is something to look at, not a finding.")


def chosen_rules(
    out: Path,
    assignment: Assignment,
    policy: Path | None,
    overrides: Path | None,
    timestamps: Path | None,
    students: Iterable[str],
) -> Rules | None:
    """The rules in these files or kept in `out`, for these students; says whom they name in vain."""
    rules = read_rules(out, assignment, policy, overrides, timestamps)
    strangers = rules.check_students(students, out) if rules else []
    if strangers:
        print(f"autograder: the policy names {_some(strangers)}, who handed in nothing.", file=sys.stderr)
    return rules


def apply_rules(out: Path, graded: Iterable[Report], assignment: Assignment, rules: Rules | None) -> None:
    """Write the final grades, or take away those of an earlier run, and say what changed."""
    if rules is None and not (out / ADJUSTMENTS).exists():
        return
    reports = list(graded)  # their files are written anew
    with writing(out, ""):
        if rules is None:
            without_finals(out, reports, assignment)
            print("No rules are applied any more: grades.csv holds what the grader gave.")
            return
        finals = write_finals(out, reports, assignment, rules)
    _say_finals(out, reports, finals)


def _say_finals(out: Path, reports: Sequence[Report], finals: dict[str, Final]) -> None:
    before = {report.student: report.points for report in reports}
    changed = [name for name, final in finals.items() if final.points != before[name]]
    print(f"{len(finals)} final grades in {visible(str(out / 'grades.csv'))}, {len(changed)} of them changed:")
    for name in changed[:MAX_TOLD]:
        told = f"{_shown(before[name])} → {_shown(finals[name].points)}  {visible(finals[name].reasons, 160)}"
        print(f"  {visible(name, 40)}  {told}")
    if len(changed) > MAX_TOLD:
        print(f"  … and {len(changed) - MAX_TOLD} more, in {ADJUSTMENTS}")
    if timeless := [name for name, final in finals.items() if any(one.rule == "no-time" for one in final.adjustments)]:
        sentence = f"NO FINAL GRADE for {_some(timeless)}: nothing says when they handed in."
        print(f"autograder: {sentence}", file=sys.stderr)


def _shown(points: float | None) -> str:
    return "none" if points is None else number(points)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_TOLD} more" if len(names) > MAX_TOLD else ""
    return ", ".join(visible(name, 40) for name in names[:MAX_TOLD]) + more
