"""The verbs about what is graded: gradebook, serve, similar, export; and a course's rules, which `grade` applies."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from autograder.checking.terminal import width
from autograder.cli import options
from autograder.cli.terminal import say
from autograder.course.live_decisions import LiveFolder, add_requests, answers_of, requests_of
from autograder.course.overview import course_lines, folders_of, is_course, read_course, students_of, write_course
from autograder.course.results import settle
from autograder.course.similarity import LEAST, compare_class, similarity_page
from autograder.gradebook.decisions import login_name
from autograder.gradebook.final_grades import Final
from autograder.gradebook.grades_folder import (
    ADJUSTMENTS,
    grade_changes,
    half_marked,
    read_grades,
    stored_grades,
    stored_reports,
)
from autograder.gradebook.roster import named
from autograder.gradebook.rules import Rules, Times, read_rules
from autograder.grading.assignment import Assignment, find_assignment, find_assignments, unreadable
from autograder.grading.choice import assignment_of_submissions
from autograder.platforms.gradebooks import canvas_csv, column_csv, feedback_zip, moodle_csv, plain_csv
from autograder.platforms.layouts import gathered
from autograder.platforms.times import read_times
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import PRIVATE, alone, read_table, write_own, writing
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import counted, number, visible

MAX_SHOWN = 10  # students or pairs
MAX_REASONS = 400  # characters
NO_RULES = "No rules are applied any more: grades.csv holds what the grader gave."


def gradebook(
    grades: Annotated[Path, options.argument("DIR", "What `grade --out` wrote, or a folder of several such.")],
    policy: options.Policy = None,
    overrides: options.Overrides = None,
    timestamps: options.Timestamps = None,
    roster: options.Roster = None,
    replace: options.Replace = False,
    assignment: options.Assignment = None,
) -> None:
    """Apply late rules, dropped items, excuses and overrides to graded reports; nothing is graded again.

    Of a folder that holds the grades of several assignments, write one page and one gradebook of the whole course.
    """
    if is_course(grades):
        if policy or overrides or timestamps or assignment:
            raise UsageError(f"{grades} holds several assignments: rules are applied in the folder of each.")
        here = options.course()
        titles = {name: name for name in unreadable(here)} | {each.name: each.title for each in find_assignments(here)}
        graded = read_course(grades, titles)
        write_course(grades, graded)
        print(f"{counted(len(students_of(graded)), 'student')}, {counted(len(graded), 'assignment')}:")
        print("\n".join(course_lines(graded)))
        for name, what in (("index.html", "the course"), ("grades.csv", "the gradebook")):
            print(f"  {visible(str(grades / name))}  {what}")
        return
    reports = stored_reports(grades)
    chosen = find_assignment(options.course(), assignment or reports[0].assignment)
    if others := [report for report in reports if report.assignment != chosen.name]:
        raise UsageError(f"{grades} holds grades of {others[0].assignment!r}: name it with --assignment.")
    students = [report.student for report in reports]
    times = read_times(timestamps, chosen, reports, roster) if timestamps else None
    rules = chosen_rules(grades, chosen, policy, overrides or (), times, students, replace=replace)
    show_changes(grades, reports, rules, rules, replace=replace)
    apply_rules(grades, reports, chosen, rules)


def similar(
    paths: Annotated[list[Path], options.argument(None, "A folder of submissions, or files.")],
    out: Annotated[Path, options.path("--out", "Where the page goes: similar.html.")],
    least: Annotated[
        int, typer.Option("--least", min=1, max=100, help="Show pairs that share as many per cent of one's work.")
    ] = round(100 * LEAST),
    roster: options.Roster = None,
    deadline: options.Deadline = None,
    class_zip: options.ClassZip = False,
    layout: options.Layout = None,
    replace: options.ReplaceFile = False,
    assignment: options.Assignment = None,
) -> None:
    """Show which submissions are alike beyond the handout: pairs to look at, never a verdict."""
    chosen = assignment_of_submissions(options.course(), paths, assignment)
    asked = (paths, chosen.module, roster, deadline)
    with gathered(*asked, class_zip=class_zip, layout=layout or "", functions=chosen.functions) as class_:
        found = compare_class(chosen, class_.candidates, least / 100)
    _write(out, similarity_page(found, chosen.title, chosen.name), replace)
    pairs = f"{counted(len(found.pairs), 'pair')} to look at"
    print(f"{len(found.texts)} submissions compared, {len(found.left_out)} left out: {pairs}.")
    for pair in found.pairs[:MAX_SHOWN]:
        shares = " and ".join(f"{100 * share:.0f} %" for share in pair.shares)
        print(f"  {' and '.join(visible(name, 40) for name in pair.students)}: {shares}")
    for sentence in class_.refused:
        say(f"NOT COMPARED: {sentence}")
    print(f"  {visible(str(out))} shows them side by side. A pair is something to look at, not a finding.")


def serve(
    grades: Annotated[Path, options.argument("GRADES", "What `grade --out` writes, or a folder of several.")],
    submissions: Annotated[
        list[Path] | None, options.path("--submissions", "What was graded: shows the answers in words.")
    ] = None,
    requests: Annotated[
        Path | None, options.path("--requests", "A form's CSV, student,item,reason: who asks for a regrade.")
    ] = None,
    name: Annotated[str, typer.Option("--as", help="Who decides, as the journal says.", show_default=False)] = "",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Of 127.0.0.1; 0 for any that is free.")] = 0,
    roster: options.Roster = None,
    deadline: options.Deadline = None,
    class_zip: options.ClassZip = False,
    layout: options.Layout = None,
    assignment: options.Assignment = None,
) -> None:
    """Show the pages live in a browser of this machine, and take overrides and comments, until Ctrl-C."""
    from autograder.course.live_view import LiveServer  # the only verb that needs a web server

    if not grades.is_dir():
        raise UsageError(f"There is no folder {grades}: give the one that `autograder grade … --out` writes.")
    who, here = name.strip() or login_name(), options.course()
    if is_course(grades):
        if submissions or requests:
            raise UsageError(f"{grades} holds several assignments: give --submissions for the folder of one.")
        held = {path.name: find_assignment(here, stored_reports(path)[0].assignment) for path in folders_of(grades)}
        folders = {name: LiveFolder(grades / name, chosen, who) for name, chosen in held.items()}
    else:
        chosen = find_assignment(here, assignment or stored_reports(grades)[0].assignment)
        folder = LiveFolder(grades, chosen, who)
        folders, questions = {"": folder}, [question.id for question in folder.questions]
        items = [*(item.id for item in chosen.items), *questions]
        if submissions:
            asked = (submissions, chosen.module, roster, deadline)
            functions = chosen.functions
            with gathered(*asked, out=grades, class_zip=class_zip, layout=layout or "", functions=functions) as class_:
                folder.answers = answers_of(chosen, class_.candidates, questions)
                folder.requests = requests_of(class_.candidates, items)
        if requests:
            folder.strangers = add_requests(requests, folder.requests, folder.reports(), items, roster)
            for sentence in [*folder.strangers[:MAX_SHOWN], *(["… and more"] if folder.strangers[MAX_SHOWN:] else [])]:
                say(f"NOT SHOWN: {requests}, {sentence}")
    try:
        server = LiveServer(grades, folders, port)
    except OSError as error:
        raise UsageError(f"Port {port} cannot be used ({error.strerror}): give another --port, or none.") from None
    print(f"{visible(str(grades))} at {server.address}")
    print("Whoever has this address can read and change the grades. Ctrl-C ends it.", flush=True)
    server.serve_forever()


# A course's rules for final grades


def chosen_rules(
    out: Path,
    assignment: Assignment,
    policy: Path | None,
    overrides: Sequence[Path],
    times: Times | None,
    students: Iterable[str],
    seen: Times | None = None,
    *,
    replace: bool = False,
) -> Rules | None:
    """Read the rules in these files or kept in `out`, for these students.

    Says whom they name in vain, and which decisions they replace.
    """
    rules = read_rules(out, assignment, policy, overrides, times, seen, replace_decisions=replace)
    if rules is None:
        return None
    for sentence in rules.decisions.merged()[2] if rules.decisions else ():
        say(f"replaced: {sentence}.")
    if absent := rules.check_students(students, out):
        say(f"the policy names {named(absent)}, who handed in nothing.")
    return rules


def show_changes(
    out: Path,
    reports: Iterable[Report],
    rules: Rules | None,
    of_old: Rules | None,
    *,
    replace: bool,
    silent: bool = False,
) -> None:
    """Say whose grade in `out` these reports and rules change; UsageError where nobody agreed to it."""
    anew, rest = grade_changes(out, reports, rules, of_old)
    can_ask = not (silent or replace) and sys.stdin.isatty() and sys.stderr.isatty()
    if anew and not silent:
        say(f"Handed in anew: {', '.join(anew)}.")
    if not rest:
        return
    count = len(stored_grades(out)) or len(list((out / "reports").glob("*.json")))
    sentence = f"Of {counted(count, 'grade')} {len(rest)} change{'s' * (len(rest) == 1)}: {', '.join(rest)}."
    if not silent and (replace or can_ask):
        say(sentence)
    if not (replace or (can_ask and typer.confirm("Write these grades?", err=True))):
        raise UsageError(f"{out} holds other grades. {sentence} Nothing was written: --replace writes these grades.")


def apply_rules(
    out: Path,
    graded: Iterable[Report],
    assignment: Assignment,
    rules: Rules | None,
    shown: Mapping[str, Final] | None = None,
    *,
    silent: bool = False,
) -> dict[str, Final]:
    """Write the final grades, or take away those of an earlier run, and list them; the finals by student.

    shown    those that the page of the class has already
    """
    if rules is None and not (out / ADJUSTMENTS).exists():
        return {}
    reports = list(graded)  # their files are written anew
    with writing(out, ""), alone(out):
        finals = settle(out, reports, assignment, rules, shown)
    if not silent:
        print("\n".join(_finals_lines(out, reports, finals) if rules else [NO_RULES]))
    if timeless := [name for name, final in finals.items() if any(a.rule == "no-time" for a in final.adjustments)]:
        say(f"NO FINAL GRADE for {named(timeless)}: nothing says when they handed in.")
    if rules and rules.questions and (half := half_marked(read_grades(out))):
        say(half)
    return finals


def _finals_lines(out: Path, reports: Sequence[Report], finals: dict[str, Final]) -> list[str]:
    """Count the final grades, and list those that are not what was earned, with reasons; first who has none."""
    earned = {report.student: report.points for report in reports}
    other = [name for name, final in finals.items() if final.points != earned[name]]
    other.sort(key=lambda name: finals[name].points is not None)
    worth = {finals[report.student].most for report in reports} - {report.max_points for report in reports}
    of = f", of {number(min(worth))} points," if worth else ""
    known = sum(final.points is not None for final in finals.values())
    rest = f", none for {len(finals) - known} of {len(finals)} students" if known < len(finals) else ""
    differ = f"{len(other)} differ{'s' * (len(other) == 1)} from what was earned{':' if other else '.'}"
    lines = [f"{counted(known, 'final grade')}{of} in {visible(str(out / 'grades.csv'))}{rest}; {differ}"]
    for name in other[:MAX_SHOWN]:
        final = finals[name]
        then, now = ("none" if points is None else number(points) for points in (earned[name], final.points))
        why = final.adjustments[-1].reason if final.points is None else final.reasons
        line = f"  {visible(name, 40)}  {then} → {now}  {visible(why, MAX_REASONS)}"
        lines += textwrap.wrap(line, width(), subsequent_indent=" " * 6, break_on_hyphens=False)
    return lines + [f"  … and {len(other) - MAX_SHOWN} more, in {ADJUSTMENTS}"] * (len(other) > MAX_SHOWN)


# Grades in the formats of other platforms, for their owner alone: they are students'

export_app = options.group("Grades in the format of another platform.")
GradesArgument = Annotated[Path, options.argument("GRADES_DIR", "The folder that `grade --out` wrote.")]
FileOption = Annotated[Path, options.path("--out", "The file to write.")]


@export_app.command("csv")
def export_csv(
    grades: GradesArgument, out: FileOption, roster: options.Roster = None, replace: options.ReplaceFile = False
) -> None:
    """A row per student; with --roster, also those who handed in nothing, without points."""
    reports = _grades(grades)
    _write(out, plain_csv(reports, roster), replace)
    print(f"{out}: {counted(len(reports), 'student')} with a report.")


@export_app.command("moodle")
def export_moodle(
    grades: GradesArgument,
    worksheet: Annotated[Path, options.path("--worksheet", "What Moodle's Download grading worksheet gave.")],
    out: FileOption,
    feedback: Annotated[
        Path | None, options.path("--feedback-zip", "Write the feedback pages for Moodle, too.")
    ] = None,
    roster: options.Roster = None,
    replace: options.ReplaceFile = False,
) -> None:
    """A grading worksheet for Moodle to import, and a zip of feedback files for it to hand out."""
    reports = _grades(grades)
    made = moodle_csv(reports, read_table(worksheet), roster)
    _say_unknown(made.unknown, reports, worksheet)
    _write(out, made.text, replace)
    print(f"{out}: {counted(made.graded, 'grade')}.")
    if feedback is not None:
        _write(feedback, feedback_zip(made.folders, grades / "feedback"), replace, "--feedback-zip")
        print(f"{feedback}: {counted(len(made.folders), 'feedback page')}.")
    if made.locked:
        why = "since Moodle has locked it or would drop it as too high"
        say(f"NOT EXPORTED, {why}: the grade of {named(made.locked)}.")


def _column_verb(platform: str, what: str) -> None:
    """Make the verb that writes one column of a platform's own gradebook."""

    @export_app.command(platform.lower(), help=what)
    def export_column(
        grades: GradesArgument,
        gradebook: Annotated[Path, options.path("--gradebook", "The grades that the platform exported, as they are.")],
        column: Annotated[
            str, typer.Option("--column", "--assignment-column", help="The heading of the column, in Canvas whole.")
        ],
        out: FileOption,
        roster: options.Roster = None,
        scale: Annotated[bool, typer.Option("--scale", help="Convert to what the assignment is worth there.")] = False,
        replace: options.ReplaceFile = False,
    ) -> None:
        reports, table, people = _grades(grades), read_table(gradebook), roster
        if platform == "Canvas":
            made = canvas_csv(reports, table, column, people, scale=scale)
            unchanged = f"; {counted(len(made.kept), 'cell')} unchanged"
        else:
            made, unchanged = column_csv(platform, reports, table, column, people, scale=scale), ""
        _say_unknown(made.unknown, reports, gradebook)
        _write(out, made.text, replace)
        print(f"{out}: {counted(made.graded, 'grade')}{unchanged}.")
        if made.excused:
            say(f"NOT EXPORTED, since {platform} has excused them (EX): the grade of {named(made.excused)}.")


_column_verb("Canvas", "A gradebook for Canvas to import: no cell without a grade of ours changes.")
_column_verb("Blackboard", "One column of Blackboard's own gradebook for it to upload.")
_column_verb("Brightspace", "One grade item of Brightspace's own export for it to import.")


@export_app.command("nbgrader")
def export_nbgrader(
    grades: GradesArgument,
    database: Annotated[
        str, typer.Option("--db", help="The gradebook, a file or a URL; without it the one in nbgrader's settings.")
    ] = "",
    assignment: options.Assignment = None,
) -> None:
    """Scores and comments into nbgrader's gradebook, for formgrader and `nbgrader export`; manual grades stay."""
    from autograder.platforms import nbgrader

    held = _grades(grades)[0].assignment
    chosen = find_assignment(options.course(), assignment or held)
    reports = [report for report in stored_reports(grades) if report.assignment == chosen.name]
    if not reports:
        raise UsageError(f"{grades} holds no report on {chosen.name}: give the folder that `grade --out` wrote.")
    done = nbgrader.export(reports, chosen, chosen.solution.parent, database)
    marked = f"to mark by hand: {named(done.waiting)}" if done.waiting else "nothing to mark by hand"
    print(f"{done.database}: {counted(done.students, 'student')}; {marked}.")
    for student, asked in done.unnamed.items():
        print(
            f"Answered in cells without nbgrader's name, so mark by hand: {visible(student, 40)}: {', '.join(asked)}."
        )
    if done.changed:
        say(f"Handed in anew since they were graded, so grade again: {named(done.changed)}.")
    for student, reason in done.failed.items():
        say(f"NOT EXPORTED: {visible(student, 40)}: {reason}")
    if done.failed:
        raise SystemExit(3)


def _grades(folder: Path) -> list[Report]:
    """Read the reports in a folder of grades; says whose final grade is above the maximum, and what is half marked."""
    reports = read_grades(folder)
    if above := [report.student for report in reports if (report.points or 0.0) > report.max_points]:
        say(f"Above {number(reports[0].max_points)} points, by extra credit: {named(above)}.")
    if half := half_marked(reports):
        say(half)
    return reports


def _say_unknown(students: Sequence[str], reports: Sequence[Report], where: Path) -> None:
    """Say whom a gradebook does not hold; raises UsageError where that is everybody."""
    if len(students) == len(reports):
        advice = "give --roster a file that says who they are"
        raise UsageError(f"{where} has no row, or more than one, for each of {len(reports)} students: {advice}.")
    if students:
        advice = "Give --roster a file that says who they are."
        say(f"NOT EXPORTED, since {where} has no row, or more than one, for: {named(students)}. {advice}")


def _write(out: Path, content: str | bytes, replace: bool, option: str = "--out") -> None:
    with writing(out, f"file with {option}"):
        write_own(out.parent, {out.name: content}, replace=replace, mode=PRIVATE)
