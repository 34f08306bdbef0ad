"""Reports and a course's rules → final grades, each change with its reason, into gradebook, reports and pages.

The rules act in this order: overrides of items, excused items, the lowest items, the late days, an override of the
whole, an excuse of the whole. Points of items and `points` in grades.csv stay what the grader gave; what the rules
make of them is `final`, beside its reasons.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from markupsafe import Markup

from autograder.gradebook.gradebook import to_csv
from autograder.gradebook.rules import Late, Override, Policy, read_overrides, read_policy, read_times
from autograder.grading.items import Assignment
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.report import Report, file_stem, read_report, to_json, write_atomically
from autograder.vocabulary.text import number, visible

ADJUSTMENTS = "adjustments.json"
SOURCES = ("policy.toml", "overrides.csv", "timestamps.csv")
BEGIN, END = "<!-- final grade -->", "<!-- end of final grade -->"
MAIN = "<main>\n"
DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Adjustment:
    """One change of a grade, or a comment on it; `item` is "" for the whole, None stands for no grade."""

    rule: str
    item: str
    before: float | None
    after: float | None
    reason: str


@dataclass(frozen=True)
class Final:
    """The grade after all rules; None where there is none to give, and the last reason says why."""

    points: float | None
    adjustments: tuple[Adjustment, ...]

    @property
    def reasons(self) -> str:
        """All reasons in one line."""
        return "; ".join(one.reason for one in self.adjustments)


@dataclass(frozen=True)
class Rules:
    """What a course decided. `given` holds the files that are to be kept beside the grades."""

    policy: Policy = field(default_factory=Policy)
    overrides: Sequence[Override] = ()
    times: Mapping[str, datetime.datetime] | None = None
    given: Mapping[str, bytes] = field(default_factory=dict)

    def check_students(self, known: Iterable[str], out: Path) -> list[str]:
        """Raise UsageError for an override of nobody; those of the policy who handed in nothing.

        Somebody is who is `known`, or has a report in `out`.
        """
        named = {*self.policy.students, *(override.student for override in self.overrides)}
        everybody = {*known, *(name for name in named if (out / "reports" / f"{file_stem(name)}.json").is_file())}
        for override in self.overrides:
            if override.student not in everybody:
                raise UsageError(f"{override.place}: nobody called {visible(override.student, 80)} handed in.")
        return sorted(self.policy.students - everybody)


def read_rules(
    out: Path, assignment: Assignment, policy: Path | None, overrides: Path | None, times: Path | None
) -> Rules | None:
    """The rules in these files, else in those of an earlier run that `out` keeps; None where there are none."""
    named = dict(zip(SOURCES, (policy, overrides, times), strict=True))
    paths = {name: given or out / name for name, given in named.items() if given or (out / name).is_file()}
    if not paths:
        return None
    rules = read_policy(paths["policy.toml"], assignment) if "policy.toml" in paths else Policy()
    rows = read_overrides(paths["overrides.csv"], assignment) if "overrides.csv" in paths else []
    when = read_times(paths["timestamps.csv"], assignment, rules.zone) if "timestamps.csv" in paths else None
    if rules.late and when is None:
        raise UsageError(
            f"{paths['policy.toml']} has late rules, but nothing says when students handed in: give --timestamps, a "
            "CSV (student,submitted) or nbgrader's folder `submitted`. No date of a file is taken: anyone can set it."
        )
    given = {name: _to_keep(name, path, when) for name, path in paths.items()}
    return Rules(rules, rows, when, given)


def _to_keep(name: str, path: Path, times: Mapping[str, datetime.datetime] | None) -> bytes:
    if not path.is_dir():
        return path.read_bytes()
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(("student", "submitted"))
    writer.writerows((student, when.isoformat()) for student, when in sorted((times or {}).items()))
    return stream.getvalue().encode()


# The rules


def final_of(report: Report, rules: Rules) -> Final:
    """The final grade of one report."""
    working = _Working({item.item: item.points for item in report.items}, report)
    own = [override for override in rules.overrides if override.student == report.student]
    for override in own:
        if override.item:
            working.override(override)
    working.leave_out(rules.policy.excused_items.get(report.student, frozenset()), "excused")
    if rules.policy.drop_lowest:
        working.drop(rules.policy.drop_lowest)
    points = working.total()
    if rules.policy.late:
        points = _after_late(rules.policy.late, report, rules.times or {}, points, working.adjustments)
    for override in own:
        if not override.item:
            after = points if override.points is None else override.points
            rule = "comment" if override.points is None else "override"
            working.adjustments.append(Adjustment(rule, "", points, after, override.comment))
            points = after
    if report.student in rules.policy.excused:
        working.adjustments.append(Adjustment("excused", "", points, None, "excused from this assignment"))
        points = None
    return Final(points, tuple(working.adjustments))


@dataclass
class _Working:
    """The points of a report's items while rules act on them; `left` are the items that count."""

    points: dict[str, float | None]
    report: Report
    adjustments: list[Adjustment] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.most = {item.item: item.max_points for item in self.report.items}
        self.left = dict.fromkeys(self.points)

    def override(self, override: Override) -> None:
        before = self.points.get(override.item)
        after = before if override.points is None else override.points
        rule = "comment" if override.points is None else "override"
        change = "" if override.points is None else f" {_shown(before)} → {_shown(after)}"
        self.points[override.item] = after
        reason = f"{override.item}{change}: {override.comment}"
        self.adjustments.append(Adjustment(rule, override.item, before, after, reason))

    def leave_out(self, items: Iterable[str], rule: str) -> None:
        for item in sorted(items):
            if self.left.pop(item, item) is None:
                text = "excused" if rule == "excused" else "left out as one of the lowest"
                reason = f"{item} {text} ({_shown(self.points[item])} of {number(self.most[item])})"
                self.adjustments.append(Adjustment(rule, item, self.points[item], None, reason))

    def drop(self, count: int) -> None:
        """Leave out the items with the least share of their points, of equal ones those worth most; no full one."""
        order = {item: index for index, item in enumerate(self.points)}
        graded = [(item, earned) for item in self.left if (earned := self.points[item]) is not None]
        graded = [(item, earned) for item, earned in graded if earned < self.most[item]]
        lowest = sorted(graded, key=lambda one: (one[1] / self.most[one[0]], -self.most[one[0]], order[one[0]]))
        self.leave_out([item for item, _ in lowest[: min(count, len(self.left) - 1)]], "dropped")

    def total(self) -> float | None:
        """The points of the items that count, on the scale of all; None where the grader failed on one of them."""
        earned = [self.points[item] for item in self.left]
        most = sum(self.most[item] for item in self.left)
        if None in earned or not most:
            self.adjustments.append(Adjustment("none", "", None, None, "not graded, through no fault of the student's"))
            return None
        return round(sum(one or 0.0 for one in earned) * self.report.max_points / most, 2)


def _after_late(
    late: Late,
    report: Report,
    times: Mapping[str, datetime.datetime],
    points: float | None,
    adjustments: list[Adjustment],
) -> float | None:
    submitted = times.get(report.student)
    if submitted is None:
        reason = "nothing says when this was handed in, so the late rules cannot be applied"
        adjustments.append(Adjustment("no-time", "", points, None, reason))
        return None
    due = late.deadline.astimezone(datetime.UTC) + late.extensions.get(report.student, 0.0) * DAY
    over = submitted.astimezone(datetime.UTC) - due
    if over <= late.grace or points is None:
        return points
    days = math.ceil(over / DAY)
    begun = f"{days} day{'s' * (days != 1)} late"
    if late.cutoff is not None and over > late.cutoff * DAY:
        after, reason = 0.0, f"{begun}, and nothing counts after {late.cutoff:g}"
    else:
        whole = points if late.of == "earned" else report.max_points
        cost = min(100.0, late.per_day * days)
        after = round(max(0.0, points - whole * cost / 100), 2)
        of = "the points earned" if late.of == "earned" else "all points"
        reason = f"{begun}: minus {number(cost)} % of {of}"
    adjustments.append(Adjustment("late", "", points, after, reason))
    return after


def _shown(points: float | None) -> str:
    return "not graded" if points is None else number(points)


# Into the files


def stored_reports(out: Path) -> list[Report]:
    """Every report in a folder of grades; raises UsageError where there is none, or one cannot be read."""
    paths = sorted((out / "reports").glob("*.json"))
    reports = [(path, read_report(path)) for path in paths]
    if broken := [path for path, report in reports if report is None]:
        raise UsageError(f"{broken[0]} is no report: grade again with --fresh.")
    if not reports:
        raise UsageError(f"{out} holds no reports: `autograder grade … --out {out}` makes them.")
    return sorted((report for _, report in reports if report is not None), key=lambda report: report.student)


def without_finals(out: Path, reports: Sequence[Report], assignment: Assignment) -> None:
    """Write gradebook, reports and pages as they are without rules, where an earlier run had some."""
    for report in reports:
        _write_final(out, report, None)
    _write_if_new(out / "grades.csv", to_csv(reports, [item.id for item in assignment.items]))
    (out / ADJUSTMENTS).unlink(missing_ok=True)


def write_finals(out: Path, reports: Sequence[Report], assignment: Assignment, rules: Rules) -> dict[str, Final]:
    """Write what the rules make of the reports: gradebook, reports, pages, adjustments.json; the finals by student."""
    finals = {report.student: final_of(report, rules) for report in reports}
    for name, data in rules.given.items():
        _write_if_new(out / name, data.decode("utf-8-sig"))
    for report in reports:
        _write_final(out, report, finals[report.student])
    columns: dict[str, Callable[[str], str]] = {
        "final": lambda student: "" if (points := finals[student].points) is None else number(points),
        "adjustments": lambda student: finals[student].reasons,
    }
    items = [item.id for item in assignment.items]
    _write_if_new(out / "grades.csv", to_csv(reports, items, columns))
    students = {student: {"final": one.points, "adjustments": _listed(one)} for student, one in sorted(finals.items())}
    described = {"schema": 1, "assignment": assignment.name, "students": students}
    _write_if_new(out / ADJUSTMENTS, json.dumps(described, indent=1, ensure_ascii=True) + "\n")
    return finals


def _write_final(out: Path, report: Report, final: Final | None) -> None:
    stem = file_stem(report.student)
    data = to_json(report)
    if final is not None:
        data |= {"final": final.points, "adjustments": _listed(final)}
    text = json.dumps(data, indent=1, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()
    _write_if_new(out / "reports" / f"{stem}.json", text + "\n")
    page = out / "feedback" / f"{stem}.html"
    with contextlib.suppress(FileNotFoundError):
        _write_if_new(page, with_final(page.read_bytes().decode(), final or Final(None, ()), report.max_points))


def _listed(final: Final) -> list[dict[str, Any]]:
    return [asdict(one) for one in final.adjustments]


def _write_if_new(path: Path, text: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        if path.read_bytes() == text.encode():
            return
    write_atomically(path, text)


def with_final(page: str, final: Final, max_points: float) -> str:
    """A feedback page that says first what the rules made of the grade; instead of what it said of it before."""
    page = re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}\n", "", page, count=1, flags=re.DOTALL)
    if not final.adjustments:
        return page
    points = "no grade yet" if final.points is None else f"{number(final.points)} of {number(max_points)} points"
    rows = Markup("").join(Markup("<li>{}</li>\n").format(visible(one.reason)) for one in final.adjustments)
    section = Markup(
        '{begin}<section class="look" aria-labelledby="final">\n<h2 id="final">Final grade: {points}</h2>\n'
        "<ul>\n{rows}</ul>\n</section>{end}\n"
    ).format(begin=Markup(BEGIN), end=Markup(END), points=points, rows=rows)
    return page.replace(MAIN, f"{MAIN}{section}", 1)
