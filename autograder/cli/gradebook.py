"""The verbs `gradebook`, `serve` and `similar`, and what `grade` shares: a course's rules for final grades."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from autograder.cli.options import (
    AssignmentOption,
    ClassZipOption,
    DeadlineOption,
    LayoutOption,
    ReplaceFileOption,
    RosterOption,
    course,
)
from autograder.course.live_decisions import LiveFolder, answers_of
from autograder.course.overview import course_lines, folders_of, is_course, read_course, students_of, write_course
from autograder.course.results import settle
from autograder.course.similarity import LEAST, compare_class, similarity_page
from autograder.gradebook.class_statistics import SMALLEST_CLASS
from autograder.gradebook.decisions import login_name
from autograder.gradebook.final_grades import Final
from autograder.gradebook.grades_folder import (
    ADJUSTMENTS,
    grade_changes,
    half_marked,
    read_grades,
    stored_grades,
    stored_reports,
    tells_of_class,
    write_standings,
)
from autograder.gradebook.roster import named, read_roster
from autograder.gradebook.rules import Rules, Times, read_rules
from autograder.grading.assignments import find_assignment, find_assignments, unreadable
from autograder.grading.choice import assignment_of_submissions
from autograder.grading.items import Assignment
from autograder.platforms.layouts import gathered
from autograder.platforms.times import read_times
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import PRIVATE, alone, write_own, writing
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import number, visible

PolicyOption = Annotated[
    Path | None, typer.Option("--policy", readable=False, help="A TOML file: late days, dropped items, excuses.")
]
OverridesOption = Annotated[
    list[Path] | None,
    typer.Option("--overrides", readable=False, help="A CSV: student,item,points,comment. May be given several times."),
]
TimesOption = Annotated[
    Path | None, typer.Option("--timestamps", readable=False, help="What your platform says of times, or a CSV.")
]
ClassOnPagesOption = Annotated[
    bool | None,
    typer.Option(
        "--class-on-pages/--no-class-on-pages",
        show_default=False,
        help="Tell students the class's median, and how many have fewer points. Without either, as the last run did.",
    ),
]
ReplaceOption = Annotated[
    bool, typer.Option("--replace", help="Write also where a grade or decision that is there changes; all are shown.")
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
    roster: RosterOption = None,
    replace: ReplaceOption = False,
    class_on_pages: ClassOnPagesOption = None,
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
    students = [report.student for report in reports]
    people = read_roster(roster) if roster else None
    times = read_times(timestamps, chosen, reports, people) if timestamps else None
    rules = chosen_rules(grades, chosen, policy, overrides or (), times, students, replace=replace)
    tells = tells_of_class(grades)
    show_changes(grades, reports, rules, rules, replace=replace)
    apply_rules(grades, reports, chosen, rules)
    tell_of_class(grades, asked=class_on_pages, before=tells)


def _write_course(grades: Path, *, rules_given: bool) -> None:
    if rules_given:
        raise UsageError(f"{grades} holds several assignments: rules are applied in the folder of each.")
    titles = {name: name for name in unreadable(course())} | {one.name: one.title for one in find_assignments(course())}
    graded = read_course(grades, titles)
    write_course(grades, graded)
    print(f"{len(students_of(graded))} students, {len(graded)} assignments:")
    print("\n".join(course_lines(graded)))
    for name, what in (("index.html", "the course"), ("grades.csv", "the gradebook")):
        print(f"  {visible(str(grades / name))}  {what}")


def similar(
    paths: Annotated[list[Path], typer.Argument(readable=False, help="A folder of submissions, or files.")],
    out: Annotated[Path, typer.Option("--out", readable=False, help="Where the page goes: similar.html.")],
    least: Annotated[
        int, typer.Option("--least", min=1, max=100, help="Show pairs that share as many per cent of one's work.")
    ] = round(100 * LEAST),
    roster: RosterOption = None,
    deadline: DeadlineOption = None,
    class_zip: ClassZipOption = False,
    layout: LayoutOption = "",
    replace: ReplaceFileOption = False,
    assignment: AssignmentOption = None,
) -> None:
    """Show which submissions are alike beyond the handout: pairs to look at, never a verdict."""
    chosen = assignment_of_submissions(course(), paths, assignment)
    people = read_roster(roster) if roster else None
    with gathered(
        paths, chosen.module, people, deadline, class_zip=class_zip, layout=layout, functions=chosen.functions
    ) as class_:
        found = compare_class(chosen, class_.candidates, least / 100)
    with writing(out, "file with --out"):
        content = similarity_page(found, chosen.title, chosen.name)
        write_own(out.parent, {out.name: content}, replace=replace, mode=PRIVATE)
    pairs = f"{len(found.pairs)} pair{'s' * (len(found.pairs) != 1)} to look at"
    print(f"{len(found.texts)} submissions compared, {len(found.left_out)} left out: {pairs}.")
    for pair in found.pairs[:MAX_TOLD]:
        shares = " and ".join(f"{100 * share:.0f} %" for share in pair.shares)
        print(f"  {' and '.join(visible(name, 40) for name in pair.students)}: {shares}")
    for sentence in class_.refused:
        print(f"autograder: NOT COMPARED: {sentence}", file=sys.stderr)
    print(f"  {visible(str(out))} shows them side by side. A pair is something to look at, not a finding.")


def serve(
    grades: Annotated[
        Path,
        typer.Argument(metavar="GRADES", readable=False, help="What `grade --out` writes, or a folder of several."),
    ],
    submissions: Annotated[
        list[Path] | None,
        typer.Option("--submissions", readable=False, help="What was graded: shows the answers in words."),
    ] = None,
    name: Annotated[str, typer.Option("--as", help="Who decides, as the journal says.", show_default=False)] = "",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Of 127.0.0.1; 0 for any that is free.")] = 0,
    roster: RosterOption = None,
    deadline: DeadlineOption = None,
    class_zip: ClassZipOption = False,
    layout: LayoutOption = "",
    assignment: AssignmentOption = None,
) -> None:
    """Show the pages live in a browser of this machine, and take overrides and comments, until Ctrl-C."""
    from autograder.course.live_view import LiveServer  # the only verb that needs a web server

    folders = _live_folders(grades, assignment, name.strip() or login_name())
    if submissions:
        folder = folders.get("")
        if folder is None:
            raise UsageError(f"{grades} holds several assignments: give --submissions for the folder of one.")
        people, chosen, functions = (
            read_roster(roster) if roster else None,
            folder.assignment,
            folder.assignment.functions,
        )
        asked = (submissions, chosen.module, people, deadline)
        with gathered(*asked, out=grades, class_zip=class_zip, layout=layout, functions=functions) as class_:
            folder.answers = answers_of(chosen, class_.candidates, [question.id for question in folder.questions])
    try:
        server = LiveServer(grades, folders, port)
    except OSError as error:
        raise UsageError(f"Port {port} cannot be used ({error.strerror}): give another --port, or none.") from None
    print(f"{visible(str(grades))} at {server.address}")
    print("Whoever has this address can read and change the grades. Ctrl-C ends it.", flush=True)
    server.serve_forever()


def _live_folders(grades: Path, assignment: str | None, who: str) -> Mapping[str, LiveFolder]:
    if not grades.is_dir():
        raise UsageError(f"There is no folder {grades}: give the one that `autograder grade … --out` writes.")
    folders = {path.name: path for path in folders_of(grades)} if is_course(grades) else {"": grades}
    named = assignment if "" in folders else None
    return {
        name: LiveFolder(folder, find_assignment(course(), named or stored_reports(folder)[0].assignment), who)
        for name, folder in folders.items()
    }


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
    """The rules in these files or kept in `out`, for these students.

    Says whom they name in vain, and which decisions they replace.
    """
    rules = read_rules(out, assignment, policy, overrides, times, seen, replace_decisions=replace)
    for sentence in rules.decisions.merged()[2] if rules and rules.decisions else ():
        print(f"autograder: replaced: {sentence}.", file=sys.stderr)
    students = list(students)
    by_name = {student.rpartition("_")[0] or student: student for student in students}  # without the id
    strangers = rules.check_students(students, out) if rules else []
    for at, name in enumerate(strangers):
        if near := get_close_matches(name, by_name, 1, 0.8):
            strangers[at] = f"{name} (or is it {by_name[near[0]]}?)"
    if strangers:
        print(f"autograder: the policy names {named(strangers)}, who handed in nothing.", file=sys.stderr)
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
    changes = grade_changes(out, reports, rules, of_old)
    anew = [change.text for change in changes if change.asked]
    rest = [change.text for change in changes if not change.asked]
    can_ask = not (silent or replace) and sys.stdin.isatty() and sys.stderr.isatty()
    if anew and not silent:
        print(f"autograder: Handed in anew: {', '.join(anew)}.", file=sys.stderr)
    if not rest:
        return
    count = len(stored_grades(out)) or len(list((out / "reports").glob("*.json")))
    grades = f"{count} grade{'s' * (count != 1)} {len(rest)} change{'s' * (len(rest) == 1)}"
    sentence = f"Of {grades}: {', '.join(rest)}."
    if not silent and (replace or can_ask):
        print(f"autograder: {sentence}", file=sys.stderr)
    if not (replace or (can_ask and typer.confirm("Write these grades?", err=True))):
        raise UsageError(f"{out} holds other grades. {sentence} Nothing was written: --replace writes these grades.")


def apply_rules(
    out: Path, graded: Iterable[Report], assignment: Assignment, rules: Rules | None, *, silent: bool = False
) -> dict[str, Final]:
    """Write the final grades, or take away those of an earlier run, and say what changed; the finals by student."""
    if rules is None and not (out / ADJUSTMENTS).exists():
        return {}
    reports = list(graded)  # their files are written anew
    with writing(out, ""), alone(out):
        finals = settle(out, reports, assignment, rules)
    if rules is None and not silent:
        print("No rules are applied any more: grades.csv holds what the grader gave.")
    elif not silent:
        _say_finals(out, reports, finals)
    _say_timeless(finals)
    if rules and rules.questions and (half := half_marked(read_grades(out))):
        print(f"autograder: {half}", file=sys.stderr)
    return finals


def tell_of_class(out: Path, *, asked: bool | None, before: bool, silent: bool = False) -> None:
    """Tell students where they stand, after all rules, or take it away: as `asked`, else as it was `before`.

    Says so where nobody asked, or where the class is too small to tell.
    """
    if not (asked or before):
        return
    with writing(out, ""):
        told = write_standings(out, read_grades(out), tell=asked is not False)
    if told and asked is None and not silent:
        print("Pages tell of the class, as before; --no-class-on-pages takes that away.")
    if not told and asked is not False:
        print(f"autograder: fewer than {SMALLEST_CLASS} grades: no page tells of the class.", file=sys.stderr)


def _say_finals(out: Path, reports: Sequence[Report], finals: dict[str, Final]) -> None:
    before = {report.student: report.points for report in reports}
    changed = [name for name, final in finals.items() if final.points != before[name]]
    most = {report.student: report.max_points for report in reports}
    worth = next((number(one.most) for name, one in finals.items() if one.most != most[name]), "")
    of = f", of {worth} points with those for questions," if worth else ""
    known = sum(one.points is not None for one in finals.values())
    rest = f", none for {len(finals) - known} of {len(finals)} students" if known < len(finals) else ""
    grades = f"{known} final grade{'s' * (known != 1)}{of}"
    print(f"{grades} in {visible(str(out / 'grades.csv'))}{rest}; {len(changed)} changed:")
    for name in changed[:MAX_TOLD]:
        told = f"{_shown(before[name])} → {_shown(finals[name].points)}  {visible(finals[name].reasons, 160)}"
        print(f"  {visible(name, 40)}  {told}")
    if len(changed) > MAX_TOLD:
        print(f"  … and {len(changed) - MAX_TOLD} more, in {ADJUSTMENTS}")


def _say_timeless(finals: dict[str, Final]) -> None:
    if timeless := [name for name, final in finals.items() if any(one.rule == "no-time" for one in final.adjustments)]:
        sentence = f"NO FINAL GRADE for {named(timeless)}: nothing says when they handed in."
        print(f"autograder: {sentence}", file=sys.stderr)


def _shown(points: float | None) -> str:
    return "none" if points is None else number(points)
