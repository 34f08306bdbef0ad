"""Reports, exams and examinations → the tables of the terminal. Text of others is never taken for markup."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from autograder.authoring.exam.selfcheck import Cost, Exam, Finding
from autograder.cli.doctor import Examined
from autograder.gradebook.class_statistics import Summary, stands_out
from autograder.grading.items import Assignment
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import number, visible

MAX_ROWS = 100
MOST_COLUMNS = 8  # of functions: with more, no terminal has room for the rest
MOST_MISTAKES = 3
MOST_TOLD = 100  # characters of what stands out
WIDEST_NAME = 24
LEAST_ROOM = 30  # columns for what stands out: as long as most names of mistakes
GAP = 2  # columns between two
FAMILIES = {"parameter": "changed parameters", "habit": "habits of students", "operator": "mutants"}
STYLES = {"ok": "green", "absent": "dim", "warning": "yellow", "missing": "bold red"}


def class_table(reports: Iterable[Report], figures: Summary, assignment: Assignment, width: int) -> Table:
    """One row per student: points, points by function, what stands out. Of a large class, one row per function.

    Of many functions, or where the last column would have no room, it says how many are complete.
    """
    if figures.students > MAX_ROWS:
        return _large_class_table(figures, assignment)
    reports = list(reports)
    names = max([len("student"), *(len(visible(report.student, 40)) for report in reports)])
    used = min(names, WIDEST_NAME) + max([len("points"), *(len(_points(report)) for report in reports)]) + 3 * GAP
    columns = [_short(function).replace("_", "\n") for function in assignment.functions]
    room = width - used - sum(_width(name) + GAP for name in columns)
    whole = len(columns) <= MOST_COLUMNS and room >= LEAST_ROOM
    if not whole:
        columns = ["functions\ncomplete"]
        room = width - used - _width(columns[0]) - GAP
    table = _table(_title(figures, assignment))
    table.add_column("student", overflow="fold", max_width=WIDEST_NAME)
    table.add_column("points", justify="right")
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("what stands out", overflow="fold")
    for report in reports:
        table.add_row(*map(Text, _row(report, assignment, room, whole=whole)))
    return table


def _width(head: str) -> int:
    """How wide a column of points is."""
    return max(5, *map(len, head.split("\n")))


def _large_class_table(figures: Summary, assignment: Assignment) -> Table:
    table = _table(_title(figures, assignment))
    table.add_column("function", no_wrap=True)
    table.add_column("mean", justify="right")
    table.add_column("of", justify="right")
    table.add_column("most common mistakes", overflow="fold")
    for function in assignment.functions:
        table.add_row(*map(Text, _function_row(figures, function)))
    table.add_section()
    median = "" if figures.median is None else f"median {number(figures.median)}, "
    full_marks = f"{median}full marks {figures.full_marks:,}"
    table.add_row("all", _sum([figures.mean]), number(figures.max_points), full_marks)
    table.caption = f"Each of the {figures.students:,} students has a row in index.html and grades.csv."
    return table


def _function_row(figures: Summary, function: str) -> list[str]:
    items = [item for item in figures.items if item.function == function]
    names = {item.item for item in items}
    made = [mistake for mistake in figures.mistakes if names & set(mistake.items)][:MOST_MISTAKES]
    mistakes = ", ".join(f"{mistake.mistake} ({mistake.count:,})" for mistake in made)
    return [_short(function), _sum(item.mean for item in items), _sum(item.max_points for item in items), mistakes]


def _title(figures: Summary, assignment: Assignment) -> str:
    return f"{assignment.title}: {figures.students:,} submission{'s' * (figures.students != 1)}"


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)


def _short(function: str) -> str:
    return function.removeprefix("compute_").removeprefix("run_")


def _row(report: Report, assignment: Assignment, room: int, *, whole: bool) -> list[str]:
    by_function = [_sum(item.points for item in report.items if item.function == name) for name in assignment.functions]
    if not whole:
        open_ = {item.function for item in report.items if item.verdict != "passed"}
        by_function = ["" if report.points is None else f"{len(by_function) - len(open_)} of {len(by_function)}"]
    return [visible(report.student, 40), _points(report), *by_function, _in_lines(stands_out(report), room)]


def _points(report: Report) -> str:
    return "not graded" if report.points is None else number(report.points)


def _in_lines(text: str, room: int) -> str:
    """A text of 100 characters at most in lines of that width, which end after a word, or a hyphen of a long one."""
    shown = textwrap.shorten(visible(text, 400), MOST_TOLD, placeholder=" …", break_on_hyphens=False)
    too_long = any(len(word) > room for word in shown.split())
    return "\n".join(textwrap.wrap(shown, max(room, 1), break_on_hyphens=too_long))


def _sum(points: Iterable[float | None]) -> str:
    found = list(points)
    return "" if None in found else number(sum(one or 0.0 for one in found))


def exam_table(findings: Iterable[Finding], assignment: Assignment) -> Table:
    """How the catalogue of mistakes fared, by function."""
    findings = list(findings)
    table = _table("Known mistakes")
    table.add_column("function", no_wrap=True)
    for heading in ("tried", "caught", "named rightly", "named wrongly", "not named", "felt elsewhere"):
        table.add_column(heading, justify="right")
    for function in assignment.functions:
        table.add_row(_short(function), *_counts([f for f in findings if f.known.function == function]))
    table.add_section()
    table.add_row("all", *_counts(findings))
    return table


def _counts(findings: Sequence[Finding]) -> list[str]:
    namings = [finding.naming for finding in findings]
    caught = sum(finding.lost > 0 for finding in findings)
    spilt = sum(finding.spilt > 0 for finding in findings)
    return [str(n) for n in (len(findings), caught, *map(namings.count, ("rightly", "wrongly", "not")), spilt)]


def answers_table(exam: Exam) -> Table:
    """How right answers in other styles, changes of the solution and the clauses of the contract fared."""
    table = _table("Right answers, changes of the solution, clauses")
    table.add_column("", no_wrap=True)
    for heading in ("tried", "as it should be", "not"):
        table.add_column(heading, justify="right")
    accepted = sum(answer.is_accepted for answer in exam.right_answers)
    table.add_row("right answers that earn all", *_shares(accepted, len(exam.right_answers)))
    for family, what in FAMILIES.items():
        lost = [not fate.survived for fate in exam.fates if fate.mutant.family == family and not fate.is_equivalent]
        table.add_row(f"{what} that lose points", *_shares(sum(lost), len(lost)))
    equal = sum(fate.is_equivalent for fate in exam.fates)
    table.add_row("equivalent changes that lose none", *_shares(equal, equal))
    if (clauses := exam.coverage) is not None:
        graded = clauses.clauses - clauses.not_graded
        table.add_row("clauses that a mistake tests", *_shares(clauses.tested, graded))
        table.add_row("clauses not graded, with a reason", str(clauses.not_graded), str(clauses.not_graded), "0")
    if not exam.has_operators:
        table.caption = "no mutants: mutmut is not installed (python -m pip install -e '.[test]')"
    return table


def _shares(good: int, tried: int) -> list[str]:
    return [str(tried), str(good), str(tried - good)]


def costs_table(found: Sequence[Cost], assignment: Assignment) -> Table:
    """How many mistakes cost which share of their function."""
    table = _table("What a mistake costs: the share of its function")
    table.add_column("function", no_wrap=True)
    for heading in ("tried", "up to 1/4", "up to 1/2", "up to 3/4", "more"):
        table.add_column(heading, justify="right")
    for function in assignment.functions:
        table.add_row(_short(function), *_bands([cost for cost in found if cost.function == function]))
    table.add_section()
    table.add_row("all", *_bands(found))
    return table


def _bands(found: Sequence[Cost]) -> list[str]:
    """How many there are, and how many in each quarter."""
    bounds = (0.25, 0.5, 0.75, 1.0)
    up_to = [sum(cost.share <= bound + 1e-9 for cost in found) for bound in bounds]
    return [str(len(found)), *(str(more - less) for more, less in zip(up_to, [0, *up_to], strict=False))]


def each_cost_table(found: Sequence[Cost]) -> Table:
    """Every mistake with what it costs, the highest share first; of a change made in several places, the costliest."""
    table = _table("What each mistake costs of its function, at most")
    table.add_column("mistake", overflow="fold")
    table.add_column("function", no_wrap=True)
    for heading in ("points", "of", "share"):
        table.add_column(heading, justify="right")
    most = {(cost.name, cost.function): cost for cost in sorted(found, key=lambda cost: cost.share)}
    for cost in sorted(most.values(), key=lambda cost: -cost.share):
        share = f"{100 * cost.share:.0f} %"
        table.add_row(Text(visible(cost.name)), _short(cost.function), number(cost.lost), number(cost.of), share)
    return table


def doctor_table(examined: Iterable[Examined]) -> Table:
    """What the machine has, and what to do where something is missing."""
    table = _table("What grading needs here")
    table.add_column("", no_wrap=True)
    for heading in ("state", "found", "what to do"):
        table.add_column(heading, overflow="fold")
    for one in examined:
        state = Text(one.state, STYLES[one.state])
        table.add_row(Text(one.what), state, Text(visible(one.found)), Text(visible(one.advice)))
    return table
