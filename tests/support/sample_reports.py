"""Reports and names that the tests of exports share."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from autograder.gradebook.final_grades import Final
from autograder.gradebook.grades_folder import Gradebook, with_final
from autograder.grading.assignment import Assignment, Item
from autograder.pages.class_page import Background, Change, ClassPage
from autograder.vocabulary.files import file_stem, write_atomically
from autograder.vocabulary.report import CaseResult, ItemResult, Report, SubmissionInfo, Verdict, to_bytes

# Commas, quotes, line breaks, formulas, marks that nobody sees, four scripts.
NASTY_NAMES = (
    "Diaz, Ana", 'Robert "Bob" Tables', "two\nlines", "carriage\rreturn", "=cmd|' /C calc'!A0", "+1+1", "-2+3",
    "@SUM(A1)", "\t=1+1", "＝２＋２", "\u202egnitset\u202c right-to-left", "\u200fمريم العلي", "Ольга Иванова",
    "王小明", "Łukasz Żółć", "semi;colon", "<script>alert(1)</script>", "| --- | `tick` ```", "../../etc/passwd",
    "x" * 300,
)  # fmt: skip


def item(
    name: str = "deltas-max",
    points: float | None = 4.0,
    most: float = 4.0,
    verdict: Verdict = "passed",
    cases: tuple[CaseResult, ...] | None = None,
    message: str = "",
    hint: str = "",
) -> ItemResult:
    if cases is None:
        cases = (
            CaseResult(f"{name}-small", "public", verdict, message),
            CaseResult(f"{name}-large", "hidden", verdict, message),
        )
    return ItemResult(name, "compute_deltas", f"title of {name}", points, most, verdict, (), message, hint, 0.25, cases)


def report(student: str, *items: ItemResult, identity: str = "") -> Report:
    info = SubmissionInfo("p.py", "00")
    layers = ("process", "seccomp")
    return Report(student, "policy_gradient", info, "ff", layers, items or (item(),), identity=identity)


def not_graded(student: str) -> Report:
    lost = item("a", None, 4.0, "not_graded", (), "The sandbox could not be started.")
    return report(student, lost, item("b", 2.0, 4.0, "failed", message="wrong"))


def index_page(
    reports: Iterable[Report],
    run: Mapping[str, Any],
    changes: Iterable[Change] | None = None,
    finals: Mapping[str, Final] | None = None,
    answers: Mapping[str, Mapping[str, str]] | None = None,
    background: Background | None = None,
) -> str:
    """The whole of a `ClassPage`, its reports in any order; `answers` by student."""
    ordered = sorted(reports, key=lambda one: one.student)
    of_class = background or Background()
    page = ClassPage(replace(of_class, answers_of=answers.__getitem__) if answers else of_class)
    for one in ordered:
        page.add(with_final(one, finals or {}))
    return "".join(page.html(run, changes, final=finals is not None))


def to_csv(reports: Iterable[Report], items: Sequence[str], finals: Mapping[str, Final] | None = None) -> str:
    """A gradebook of these reports."""
    stream = io.StringIO()
    gradebook = Gradebook(stream, items, final=finals is not None)
    for one in sorted(reports, key=lambda one: one.student):
        gradebook.add(with_final(one, finals or {}))
    return stream.getvalue()


def write_report(one: Report, path: Path) -> None:
    """Write a report as a run does."""
    write_atomically(path, to_bytes(one))


def write_grades(folder: Path, *reports: Report) -> Path:
    for one in reports:
        write_report(one, folder / "reports" / f"{file_stem(one.student)}.json")
    return folder


WORTH = {"a": 4.0, "b": 6.0, "c": 10.0}
THREE = Assignment(
    "toy", "Toy", "toy", Path(), (), 20,
    tuple(Item(name, "f", name, points, 5, "?", (f"{name}-1",), ()) for name, points in WORTH.items()),
)  # fmt: skip


def of_three(student: str = "ada", **earned: float | None) -> Report:
    """A report on the three items of that assignment, all points but for those given."""
    results = []
    for name, most in WORTH.items():
        points = earned.get(name, most)
        verdict: Verdict = "not_graded" if points is None else "passed" if points == most else "failed"
        results.append(ItemResult(name, "f", name, points, most, verdict, (), "", "", 0.0, ()))
    return Report(student, "toy", SubmissionInfo(f"{student}.py", ""), "0" * 64, (), tuple(results))
