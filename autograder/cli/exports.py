"""The verb `export`: grades in the formats of other platforms, for their owner alone: they are students'."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from autograder.cli.options import AssignmentOption, ReplaceFileOption, RosterOption, course
from autograder.gradebook.grades_folder import half_marked, read_grades
from autograder.gradebook.roster import Roster, named, read_roster
from autograder.grading.assignments import find_assignment
from autograder.platforms import blackboard, brightspace, canvas, moodle
from autograder.platforms.exports import Upload, json_lines, plain_csv
from autograder.vocabulary.files import PRIVATE, read_table, write_own, writing
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import counted, number, visible

export_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Grades in the format of another platform.")
GradesArgument = Annotated[
    Path, typer.Argument(metavar="GRADES_DIR", readable=False, help="The folder that `grade --out` wrote.")
]
FileOption = Annotated[Path, typer.Option("--out", readable=False, help="The file to write.")]

UploadOption = Annotated[
    Path, typer.Option("--gradebook", readable=False, help="What the platform exported: its grades, as they are.")
]
ColumnOption = Annotated[str, typer.Option("--column", help="The heading of the column, or how it begins.")]
ScaleOption = Annotated[bool, typer.Option("--scale", help="Convert to what the assignment is worth there.")]


@export_app.command("csv")
def export_csv(
    grades: GradesArgument, out: FileOption, roster: RosterOption = None, replace: ReplaceFileOption = False
) -> None:
    """A row per student; with --roster, also those who handed in nothing, without points."""
    reports = _grades(grades)
    _write(out, plain_csv(reports, _roster(roster)), replace)
    print(f"{out}: {counted(len(reports), 'student')} with a report.")


@export_app.command("jsonl")
def export_jsonl(grades: GradesArgument, out: FileOption, replace: ReplaceFileOption = False) -> None:
    """JSON Lines: one whole report a line."""
    reports = _grades(grades)
    _write(out, json_lines(reports), replace)
    print(f"{out}: {counted(len(reports), 'report')}.")


@export_app.command("canvas")
def export_canvas(
    grades: GradesArgument,
    gradebook: Annotated[
        Path, typer.Option("--gradebook", readable=False, help="What Canvas exported: Grades, Export entire gradebook.")
    ],
    column: Annotated[str, typer.Option("--assignment-column", help='A heading of it: "HW5 GRPO (123456)".')],
    out: FileOption,
    roster: RosterOption = None,
    scale: Annotated[bool, typer.Option("--scale", help="Convert to what the assignment is worth in Canvas.")] = False,
    replace: ReplaceFileOption = False,
) -> None:
    """A gradebook for Canvas to import, made from its own: no cell without a grade of ours is changed."""
    made = canvas.canvas_csv(_grades(grades), read_table(gradebook), column, _roster(roster), scale=scale)
    _write(out, made.text, replace)
    print(f"{out}: {counted(made.graded, 'grade')}; {counted(len(made.kept), 'cell')} unchanged.")
    _say_unknown(made.unknown, str(gradebook))


@export_app.command("moodle")
def export_moodle(
    grades: GradesArgument,
    worksheet: Annotated[
        Path, typer.Option("--worksheet", readable=False, help="What Moodle's Download grading worksheet gave.")
    ],
    out: FileOption,
    feedback: Annotated[
        Path | None, typer.Option("--feedback-zip", readable=False, help="Write the feedback pages for Moodle, too.")
    ] = None,
    roster: RosterOption = None,
    grade_column: Annotated[str, typer.Option("--grade-column", help="Its heading in your language.")] = "Grade",
    identifier_column: Annotated[
        str, typer.Option("--identifier-column", help="Its heading in your language.")
    ] = "Identifier",
    replace: ReplaceFileOption = False,
) -> None:
    """A grading worksheet for Moodle to import, and a zip of feedback files for it to hand out."""
    made = moodle.moodle_csv(
        _grades(grades),
        read_table(worksheet),
        _roster(roster),
        grade_column=grade_column,
        identifier_column=identifier_column,
    )
    _write(out, made.text, replace)
    print(f"{out}: {counted(made.graded, 'grade')}.")
    if feedback is not None:
        _write(feedback, moodle.feedback_zip(made.folders, grades / "feedback"), replace, "--feedback-zip")
        print(f"{feedback}: {counted(len(made.folders), 'feedback page')}.")
    if made.locked:
        _warn(
            f"NOT EXPORTED, since Moodle has locked it or would drop it as too high: the grade of {named(made.locked)}."
        )
    _say_unknown(made.unknown, str(worksheet))


def _upload_verb(platform: str, what: str, made_of: Callable[..., Upload]) -> None:
    """Make the verb that writes one column of a platform's own gradebook."""

    @export_app.command(platform, help=f"{what}; students without a grade of ours are left out.")
    def export_upload(
        grades: GradesArgument,
        gradebook: UploadOption,
        column: ColumnOption,
        out: FileOption,
        roster: RosterOption = None,
        scale: ScaleOption = False,
        replace: ReplaceFileOption = False,
    ) -> None:
        made = made_of(_grades(grades), read_table(gradebook), column, _roster(roster), scale=scale)
        _write(out, made.text, replace)
        print(f"{out}: {counted(made.graded, 'grade')}.")
        _say_unknown(made.unknown, str(gradebook))


_upload_verb("blackboard", "One column of Blackboard's own gradebook for it to upload", blackboard.blackboard_csv)
_upload_verb("brightspace", "One grade item of Brightspace's own export for it to import", brightspace.brightspace_csv)


@export_app.command("nbgrader")
def export_nbgrader(
    grades: GradesArgument,
    database: Annotated[
        str, typer.Option("--db", help="The gradebook, a file or a URL; without it the one in nbgrader's settings.")
    ] = "",
    assignment: AssignmentOption = None,
) -> None:
    """Scores and comments into nbgrader's gradebook, for formgrader and `nbgrader export`; manual grades stay."""
    from autograder.platforms import nbgrader

    held = _grades(grades)[0].assignment
    chosen = find_assignment(course(), assignment or held)
    reports = nbgrader.read_reports(grades, chosen)
    done = nbgrader.export(reports, chosen, chosen.solution.parent, database)
    marked = f"to mark by hand: {named(done.waiting)}" if done.waiting else "nothing to mark by hand"
    print(f"{done.database}: {counted(done.students, 'student')}; {marked}.")
    for student, asked in done.unnamed.items():
        print(
            f"Answered in cells without nbgrader's name, so mark by hand: {visible(student, 40)}: {', '.join(asked)}."
        )
    if done.changed:
        print(f"Handed in anew since they were graded, so grade again: {named(done.changed)}.", file=sys.stderr)
    for student, reason in done.failed.items():
        _warn(f"NOT EXPORTED: {visible(student, 40)}: {reason}")
    if done.failed:
        raise SystemExit(3)


def _grades(folder: Path) -> list[Report]:
    """The reports in a folder of grades; says whose final grade is above the maximum, and what is half marked."""
    reports = read_grades(folder)
    if above := [report.student for report in reports if (report.points or 0.0) > report.max_points]:
        _warn(f"Above {number(reports[0].max_points)} points, by extra credit: {named(above)}.")
    if half := half_marked(reports):
        _warn(half)
    return reports


def _roster(path: Path | None) -> Roster | None:
    return None if path is None else read_roster(path)


def _say_unknown(students: Sequence[str], where: str) -> None:
    if students:
        advice = "Give --roster a file that says who they are."
        _warn(f"NOT EXPORTED, since {where} holds them not, or not clearly: {named(students)}. {advice}")


def _warn(sentence: str) -> None:
    print(f"autograder: {visible(sentence)}", file=sys.stderr)


def _write(out: Path, content: str | bytes, replace: bool, option: str = "--out") -> None:
    with writing(out, f"file with {option}"):
        write_own(out.parent, {out.name: content}, replace=replace, mode=PRIVATE)
