"""The grader's own exam: the solution earns all, the handout nothing, and whatever is wrong is caught.

What is held against each mistake of the catalogue: it loses points on its own function, on no other, and what it is
called by is what it is. Right answers in other styles lose nothing and get no hint. Each mutant of the solution (a
parameter ignored, a habit, one of mutmut's operators) loses points, or its line is marked in the solution. Each
sentence of the contract has a mistake that violates it and an item that catches it; and no mistake costs more than half
of its function, but where the contract gives the reason.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TypeVar

from autograder.authoring.exam.contract import CONTRACT, Contract, docstrings, read_contract, unquoted
from autograder.authoring.exam.costs import Cost, cost_complaints, costs, without_costly
from autograder.authoring.exam.coverage import Coverage, clause_complaints, coverage, losses
from autograder.authoring.exam.findings import (
    Fate,
    Finding,
    Known,
    RightAnswer,
    fates_of,
    idle_marks,
    unnamed,
)
from autograder.authoring.exam.graded_text import names_in
from autograder.authoring.exam.mutants import Mutant, can_mutate, mutants_of
from autograder.authoring.exam.refusals import (
    Accident,
    accidents,
    excused,
    functions_whose_errors_are_read,
    refusals,
    unchecked,
)
from autograder.authoring.exam.unfinished import missing, readme_of, stale_handout
from autograder.authoring.fixtures.agreement import solution_source
from autograder.authoring.fixtures.generator import import_generator
from autograder.authoring.handout.independence import not_independent
from autograder.grading.fixtures import Fixtures
from autograder.grading.grader import Grader
from autograder.grading.items import Assignment, Item, load_assignment
from autograder.sandbox.apart import apart
from autograder.sandbox.pool import in_sandboxes
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.submission import Submission
from autograder.vocabulary.errors import GraderFault
from autograder.vocabulary.report import Report

Progress = Callable[[int, int], None]
One = TypeVar("One")
DEFINITION = ast.FunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Exam:
    """All that was found; `complaints` is empty where the kit may be released.

    fates           of the mutants
    has_operators   whether mutmut's are among them: it may not be installed
    coverage        of the contract; None where the assignment has none, or only a sample was tried
    costs           the highest share of a function first
    notes           what is missing without making a grade wrong
    unmarked        changes that lose nothing, at lines that are not marked, where a complaint says so
    """

    solution: Report
    handout: Report
    findings: tuple[Finding, ...]
    complaints: tuple[str, ...]
    right_answers: tuple[RightAnswer, ...] = ()
    fates: tuple[Fate, ...] = ()
    has_operators: bool = True
    coverage: Coverage | None = None
    costs: tuple[Cost, ...] = ()
    notes: tuple[str, ...] = ()
    unmarked: tuple[Mutant, ...] = ()


def selfcheck(
    assignment: Assignment,
    fixtures: Fixtures,
    *,
    jobs: int = 1,
    every: int = 1,
    function: str = "",
    progress: Progress = lambda done, total: None,
) -> Exam:
    """Grade the solution, the handout, every mistake, every right answer in another style and every mutant.

    function   whose mistakes and mutants alone are tried; "" for those of all
    every   of mistakes and mutants the first of each function (of mutants: of each family too) and each so many-th
            after it, of right answers likewise
    """
    grader = Grader.of(assignment, fixtures, counterexamples=False)
    solution = solution_source(assignment)
    contract = read_contract(assignment)
    catalogue, mutants = known_mistakes(assignment), mutants_of(solution, assignment.functions)
    tried = _sample(catalogue, every, lambda known: known.function)
    changed = _sample(mutants, every, lambda mutant: (mutant.function, mutant.family))
    if function:
        tried = [known for known in tried if known.function == function]
        changed = [mutant for mutant in changed if mutant.function == function]
    whole = every == 1 and not function
    right_answers = right_answer_paths(assignment)[::every]
    reports = _graded(grader, solution, tried, right_answers, changed, jobs, progress)
    findings = tuple(map(Finding.of, tried, reports.mistakes))
    read = functions_whose_errors_are_read(fixtures.cases)
    fates = tuple(excused(fate, solution, read) for fate in fates_of(changed, reports.mutants, fixtures.cases))
    found = tuple(costs(assignment, findings, fates))
    counts, untested = (None, []) if contract is None or not whole else coverage(contract, losses(findings, fates))
    drafts = not_independent(assignment)  # whose cases and clauses are still to be added to
    open_still = _open_still(drafts, contract, fates)
    complaints = [
        *_about_solution(reports.solution),
        *_about_handout(assignment, reports.handout),
        *(told for finding in findings for told in finding.complaints),
        *(told for answer in reports.right_answers for told in answer.complaints),
        *(told for fate in fates if fate not in open_still for told in fate.complaints),
        *_about_contract(contract, assignment, solution, catalogue, mutants, drafts),
        *untested,
        *(str(one) for one in reports.accidents if one.whole),
        *(idle_marks(solution, fates) if whole and can_mutate() else ()),
        *cost_complaints(found, contract, all_tried=whole),
    ]
    return Exam(
        solution=reports.solution,
        handout=reports.handout,
        findings=findings,
        complaints=tuple(complaints),
        right_answers=reports.right_answers,
        fates=fates,
        has_operators=can_mutate(),
        unmarked=tuple(fate.mutant for fate in fates if fate.is_open and fate not in open_still),
        coverage=counts,
        costs=found,
        notes=(
            *missing(assignment, (known.function for known in catalogue)),
            *unnamed(findings),
            *(str(one) for one in reports.accidents if not one.whole),
            *([] if contract else _without_contract(fates)),
            *(_about_drafts(contract, drafts) if contract else ()),
            *without_costly(contract, found),
            *(told for fate in open_still if contract or not fate.is_generated_and_open for told in fate.complaints),
        ),
    )


def _open_still(drafts: Sequence[str], contract: Contract | None, fates: Sequence[Fate]) -> list[Fate]:
    """What says nothing against the assignment yet: generated changes without a contract, functions that are drafts."""
    generated = [fate for fate in fates if not contract and fate.is_generated_and_open]
    return [*generated, *(fate for fate in fates if fate.mutant.function in drafts)]


@dataclass(frozen=True)
class _Reports:
    solution: Report
    handout: Report
    mistakes: Sequence[Report]
    right_answers: tuple[RightAnswer, ...]
    mutants: Sequence[Report]
    accidents: Sequence[Accident]


def _graded(
    grader: Grader,
    solution: str,
    tried: Sequence[Known],
    answers: Sequence[Path],
    changed: Sequence[Mutant],
    jobs: int,
    progress: Progress,
) -> _Reports:
    right_answers = {path.stem: path.read_text(encoding="utf-8") for path in answers}
    whole = [solution, grader.assignment.untouched_source(), *(f"{solution}\n\n{known.source}" for known in tried)]
    tasks: list[str | Mutant] = [*whole, *right_answers.values(), *changed]
    uses = uses_in(solution)
    felt = {text: felt_by(known.source, uses) for text, known in zip(whole[2:], tried, strict=True)}
    asked = refusals(solution, grader.fixtures.cases)
    tasks += [unchecked(solution)] if asked else []
    done = count(1)

    def examine(task: str | Mutant, sandbox: Sandbox) -> Report:
        if isinstance(task, Mutant):
            return _grade_mutant(grader, task, sandbox)
        items = [item for item in grader.assignment.items if task not in felt or item.function in felt[task]]
        return _grade(grader, task, sandbox, items)

    reports = in_sandboxes(examine, tasks, jobs, lambda task, report: progress(next(done), len(tasks)))
    if lost := next((report for report in reports if report.status == "not_graded"), None):
        raise GraderFault(f"The exam could not be held: {lost.items[0].message}")
    others = reports[len(whole) :]
    accepted = tuple(map(RightAnswer, right_answers, others))
    last = len(right_answers) + len(changed)
    accidental = [one for report in others[last:] for one in accidents(report, asked)]
    of_mutants = others[len(right_answers) : last]
    return _Reports(reports[0], reports[1], reports[2 : len(whole)], accepted, of_mutants, accidental)


def uses_in(solution: str) -> dict[str, set[str]]:
    """Map each function and class of the solution to every name that it uses."""
    return {node.name: names_in(node) for node in ast.parse(solution).body if isinstance(node, DEFINITION)}


def felt_by(mistake: str, uses: Mapping[str, set[str]]) -> set[str]:
    """Name what a mistake's text can change of the solution: what it defines or assigns, and what uses that."""
    written = ast.parse(mistake).body
    found = {name for node in written for name in ([node.name] if isinstance(node, DEFINITION) else names_in(node))}
    while more := {name for name, used in uses.items() if used & found} - found:
        found |= more
    return found


def right_answer_paths(assignment: Assignment) -> list[Path]:
    """Right answers in other styles; none where an assignment has no such folder."""
    return sorted((assignment.folder / "right_answers").glob("*.py"))


def _sample(several: Iterable[One], every: int, kind: Callable[[One], Hashable]) -> list[One]:
    """The first of each kind, and each `every`-th after it."""
    seen: Counter[Hashable] = Counter()
    kept = []
    for one in several:
        if seen[kind(one)] % every == 0:
            kept.append(one)
        seen[kind(one)] += 1
    return kept


def _grade(grader: Grader, source: str, sandbox: Sandbox, items: Sequence[Item] | None = None) -> Report:
    return grader.grade(Submission("selfcheck", "selfcheck.py", "", source), sandbox, items)


def _grade_mutant(grader: Grader, mutant: Mutant, sandbox: Sandbox) -> Report:
    """The report on its function. An operator's: of the public cases, which are fewer, where they lose points."""
    items = [item for item in grader.assignment.items if item.function == mutant.function]
    if mutant.slug:  # clauses and costs ask for each item
        return _grade(grader, mutant.source, sandbox, items)
    public = Fixtures(tuple(one for one in grader.fixtures.cases if one.visibility == "public"), {}, "")
    seen = [item for item in items if public.of_item(item.id)]
    report = _grade(replace(grader, fixtures=public), mutant.source, sandbox, seen)
    return report if report.points != report.max_points else _grade(grader, mutant.source, sandbox, items)


def known_mistakes(assignment: Assignment) -> list[Known]:
    """The catalogue, imported in a process of its own."""
    return [Known(*row) for row in apart(_catalogue, assignment.folder)]


def _catalogue(folder: Path) -> list[tuple[str, str, str]]:
    mistakes = import_generator(load_assignment(folder))["mistakes"].MISTAKES
    return [(mistake.slug, mistake.function, mistake.source) for mistake in mistakes]


# What to say of it all


def _about_solution(report: Report) -> list[str]:
    failed = [item for item in report.items if item.verdict != "passed"]
    return [f"The solution fails {item.item}: {item.message.splitlines()[0]}" for item in failed]


def _about_handout(assignment: Assignment, report: Report) -> list[str]:
    started = [item.item for item in report.items if item.verdict != "missing"]
    unfinished = f"The untouched handout is not told that it is unfinished in {', '.join(started)}."
    return [*([unfinished] if started else []), *stale_handout(assignment)]


def _about_contract(
    contract: Contract | None,
    assignment: Assignment,
    solution: str,
    catalogue: Iterable[Known],
    mutants: Iterable[Mutant],
    drafts: Sequence[str],
) -> list[str]:
    """What is wrong with the contract before anything is graded; `drafts` are functions that are not finished."""
    if contract is None:
        return []
    names = {(known.slug, known.function) for known in catalogue} | {(one.name, one.function) for one in mutants}
    texts = docstrings(solution, assignment.functions)
    return [*unquoted(contract, texts, readme_of(assignment)), *clause_complaints(contract, assignment, names, drafts)]


def _about_drafts(contract: Contract, drafts: Sequence[str]) -> list[str]:
    """Which sentences of unfinished functions nothing violates yet."""
    several = [clause for clause in contract.drafts if clause.function in drafts]
    return [f"{contract.place(clause)} has no mistake yet." for clause in several]


def _without_contract(fates: Iterable[Fate]) -> list[str]:
    """What an assignment that has no contract yet is not held to."""
    lost = sum(fate.is_generated_and_open for fate in fates)
    return [
        f"There is no {CONTRACT}: no sentence of the docstrings is held against the cases. Of changed parameters and "
        f"habits {lost} lose nothing and are not marked as equivalent."
    ]
