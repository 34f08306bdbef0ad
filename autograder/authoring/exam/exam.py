"""The grader's own exam: the solution earns all, the handout nothing, every known mistake is caught and named.

What is held against each mistake of the catalogue: it loses points on its own function, on no other, and what it is
called by is what it is. Right answers in other styles lose nothing and get no hint. Each mutant of the solution loses
points, or stands in a list of those that change nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TypeVar

from autograder.authoring.exam.mutants import Mutant, can_mutate, mutants_of
from autograder.authoring.fixtures.agreement import solution_source
from autograder.authoring.fixtures.generator import import_generator
from autograder.authoring.handout.release import COPIES, handout_files
from autograder.grading.fixtures import Fixtures
from autograder.grading.grader import Grader
from autograder.grading.items import Assignment, Item, load_assignment
from autograder.sandbox.apart import apart
from autograder.sandbox.pool import in_sandboxes
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.submission import Submission
from autograder.vocabulary.errors import GraderFault, ReleaseError
from autograder.vocabulary.folders import is_ignored
from autograder.vocabulary.report import Report

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Known:
    """A mistake of the catalogue."""

    slug: str
    function: str
    source: str


Change = TypeVar("Change", Known, Mutant)  # of the solution, in one function


@dataclass(frozen=True)
class Finding:
    """What became of one mistake.

    lost     points lost on its own function
    spilt    points lost on other functions
    named    every name that the report gave
    """

    known: Known
    lost: float
    spilt: float
    named: frozenset[str]

    @property
    def naming(self) -> str:
        """`rightly`, `wrongly` or `not`: a name that is not its own, beside its own, means one behaviour."""
        if not self.named:
            return "not"
        return "rightly" if self.known.slug in self.named else "wrongly"


@dataclass(frozen=True)
class RightAnswer:
    """A right answer in another style, from the assignment's `right_answers/`, and what it was given."""

    name: str
    report: Report

    @property
    def is_accepted(self) -> bool:
        """Whether it earned all, and was told nothing."""
        silent = not any(item.hint or item.mistakes for item in self.report.items)
        return silent and self.report.points == self.report.max_points


@dataclass(frozen=True)
class Fate:
    """A mutant, and whether it kept all points of its function."""

    mutant: Mutant
    survived: bool


@dataclass(frozen=True)
class Exam:
    """All that was found; `complaints` is empty where the kit may be released.

    fates   of the mutants; None where mutmut is not installed
    notes   what is missing without making a grade wrong
    """

    solution: Report
    handout: Report
    findings: tuple[Finding, ...]
    complaints: tuple[str, ...]
    right_answers: tuple[RightAnswer, ...] = ()
    fates: tuple[Fate, ...] | None = None
    notes: tuple[str, ...] = ()


def selfcheck(
    assignment: Assignment,
    fixtures: Fixtures,
    *,
    jobs: int = 1,
    every: int = 1,
    progress: Progress = lambda done, total: None,
) -> Exam:
    """Grade the solution, the handout, every mistake, every right answer in another style and every mutant.

    every   of mistakes and mutants the first of each function and each so many-th after it, of right answers likewise
    """
    grader = Grader.of(assignment, fixtures)
    solution = solution_source(assignment)
    catalogue = _of_each_function(known_mistakes(assignment), every)
    right_answers = {path.stem: path.read_text(encoding="utf-8") for path in right_answer_paths(assignment)[::every]}
    mutants = _of_each_function(mutants_of(solution, assignment.folder), every) if can_mutate() else []
    whole = [solution, assignment.untouched_source(), *(f"{solution}\n\n{known.source}" for known in catalogue)]
    tasks: list[str | Mutant] = [*whole, *right_answers.values(), *mutants]
    done = count(1)

    def examine(task: str | Mutant, sandbox: Sandbox) -> Report:
        return _grade_mutant(grader, task, sandbox) if isinstance(task, Mutant) else _grade(grader, task, sandbox)

    reports = in_sandboxes(examine, tasks, jobs, lambda task, report: progress(next(done), len(tasks)))
    if lost := next((report for report in reports if report.status == "not_graded"), None):
        raise GraderFault(f"The exam could not be held: {lost.items[0].message}")
    others = iter(reports[len(whole) :])
    accepted = tuple(map(RightAnswer, right_answers, others))
    fates = tuple(Fate(one, report.points == report.max_points) for one, report in zip(mutants, others, strict=True))
    findings = tuple(map(_finding, catalogue, reports[2 : len(whole)]))
    complaints = [
        *_about_solution(reports[0]),
        *_about_handout(assignment, reports[1]),
        *(complaint for finding in findings for complaint in _about(finding)),
        *(complaint for answer in accepted for complaint in _about_right_answer(answer)),
        *(complaint for fate in fates for complaint in _about_fate(fate)),
    ]
    notes = tuple(missing(assignment, catalogue))
    return Exam(reports[0], reports[1], findings, tuple(complaints), accepted, fates if can_mutate() else None, notes)


def _of_each_function(changes: Sequence[Change], every: int) -> list[Change]:
    """The first change of each function, and each `every`-th after it."""
    seen: Counter[str] = Counter()
    kept = []
    for change in changes:
        if seen[change.function] % every == 0:
            kept.append(change)
        seen[change.function] += 1
    return kept


def right_answer_paths(assignment: Assignment) -> list[Path]:
    """Right answers in other styles; none where an assignment has no such folder."""
    return sorted((assignment.folder / "right_answers").glob("*.py"))


def _grade(grader: Grader, source: str, sandbox: Sandbox, items: Sequence[Item] | None = None) -> Report:
    return grader.grade(Submission("selfcheck", "selfcheck.py", "", source), sandbox, items)


def _grade_mutant(grader: Grader, mutant: Mutant, sandbox: Sandbox) -> Report:
    """The report on its function: of the public cases, which are fewer, where they lose points, else of all."""
    public = Fixtures(tuple(one for one in grader.fixtures.cases if one.visibility == "public"), {}, "")
    items = [item for item in grader.assignment.items if item.function == mutant.function]
    seen = [item for item in items if public.of_item(item.id)]
    report = _grade(replace(grader, fixtures=public), mutant.source, sandbox, seen)
    return report if report.points != report.max_points else _grade(grader, mutant.source, sandbox, items)


def missing(assignment: Assignment, catalogue: Sequence[Known]) -> list[str]:
    """What an addition to the assignment may still lack: nothing that grades wrongly, but what a course would miss."""
    text = _bytes(assignment.solution / "README.md") or b""
    known = {mistake.function for mistake in catalogue}
    functions = assignment.functions
    return [
        *(
            f"No mistake is known of {name}: nobody who gets it wrong is told why."
            for name in functions
            if name not in known
        ),
        *(f"The assignment's text does not name {name}." for name in functions if name.encode() not in text),
        *(f"{item.id} has no public case: students cannot check it." for item in assignment.items if not item.public),
        *(f"{item.id} has no hidden case: its public outputs earn it." for item in assignment.items if not item.hidden),
    ]


def known_mistakes(assignment: Assignment) -> list[Known]:
    """The catalogue, imported in a process of its own."""
    return [Known(*row) for row in apart(_catalogue, assignment.folder)]


def _catalogue(folder: Path) -> list[tuple[str, str, str]]:
    mistakes = import_generator(load_assignment(folder))["mistakes"].MISTAKES
    return [(mistake.slug, mistake.function, mistake.source) for mistake in mistakes]


def _finding(known: Known, report: Report) -> Finding:
    lost = {True: 0.0, False: 0.0}
    for item in report.items:
        lost[item.function == known.function] += item.max_points - (item.points or 0.0)
    named = frozenset(slug for item in report.items for slug in item.mistakes)
    return Finding(known, round(lost[True], 2), round(lost[False], 2), named)


def _about_solution(report: Report) -> list[str]:
    failed = [item for item in report.items if item.verdict != "passed"]
    return [f"The solution fails {item.item}: {item.message.splitlines()[0]}" for item in failed]


def _about_handout(assignment: Assignment, report: Report) -> list[str]:
    started = [item.item for item in report.items if item.verdict != "missing"]
    unfinished = f"The untouched handout is not told that it is unfinished in {', '.join(started)}."
    return [*([unfinished] if started else []), *stale_handout(assignment)]


def stale_handout(assignment: Assignment) -> list[str]:
    """A complaint where the handout is not what `release` would make now; the copies in it need not be there at all."""
    try:
        files = handout_files(assignment)
    except ReleaseError as error:
        return [str(error)]
    absent = tuple(f"{name}/" for name in COPIES if not (assignment.handout / name).exists())
    files = {name: data for name, data in files.items() if not name.startswith(absent)}
    stale = [name for name, data in files.items() if _bytes(assignment.handout / name) != data]
    more = _unexpected(assignment.handout, files)
    if not stale and not more:
        return []
    return [f"The handout is not what release makes ({_some([*stale, *more])}): run `autograder release`."]


def _unexpected(folder: Path, files: dict[str, bytes]) -> list[str]:
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    names = (path.as_posix() for path in found if not any(is_ignored(part) for part in path.parts))
    return sorted(name for name in names if name not in files)


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _about(finding: Finding) -> list[str]:
    slug = finding.known.slug
    complaints = []
    if finding.lost == 0:
        complaints.append(f"{slug} is not caught.")
    if finding.spilt:
        complaints.append(f"{slug} loses {finding.spilt:g} points on other functions than {finding.known.function}.")
    if finding.naming == "wrongly":
        complaints.append(f"{slug} is called {', '.join(sorted(finding.named))}.")
    return complaints


def _about_right_answer(answer: RightAnswer) -> list[str]:
    if answer.is_accepted:
        return []
    first = next(item for item in answer.report.items if item.verdict != "passed" or item.hint or item.mistakes)
    return [f"{answer.name} is a right answer, but {first.item} is {first.verdict}: {first.message.splitlines()[0]}"]


def _about_fate(fate: Fate) -> list[str]:
    mutant = fate.mutant
    change = f"{mutant.function}: {mutant.before} → {mutant.after}"
    if fate.survived and not mutant.reason:
        return [f"This change of the solution loses nothing, and is not listed as equivalent. {change}"]
    if mutant.reason and not fate.survived:
        return [f"This change of the solution is listed as equivalent, but loses points. {change}"]
    return []
