"""The grader's own exam: the solution earns all, the handout nothing, and whatever is wrong is caught.

What is held against each mistake of the catalogue: it loses points on its own function, on no other, and what it is
called by is what it is. Right answers in other styles lose nothing and get no hint. Each mutant of the solution (a
parameter ignored, a habit, one of mutmut's operators) loses points, or its line is marked in the solution. Each
sentence of the contract has a mistake that violates it and an item that catches it; and no mistake costs more than half
of its function, but where the contract gives the reason.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import TypeVar

from autograder.authoring.exam.contract import (
    CONTRACT,
    COSTLY,
    README,
    Contract,
    Coverage,
    Name,
    clause_complaints,
    coverage,
    docstrings,
    read_contract,
    unquoted,
)
from autograder.authoring.exam.habits import names_in
from autograder.authoring.exam.mutants import Mutant, can_mutate, mutants_of
from autograder.authoring.fixtures.regenerate import import_generator, solution_source
from autograder.authoring.handout.release import handout_files, not_independent
from autograder.authoring.marks import marks
from autograder.authoring.proofreading.fault import likely
from autograder.checking.handout import COPIES
from autograder.grading.cases import Case
from autograder.grading.fixtures import Fixtures
from autograder.grading.grader import Grader
from autograder.grading.items import Assignment, Item, load_assignment
from autograder.sandbox.interpreter import run_in_subprocess
from autograder.sandbox.sandbox import Sandbox, in_sandboxes
from autograder.submissions.submission import Submission
from autograder.vocabulary.errors import GraderFault, ReleaseError
from autograder.vocabulary.files import RECORD, is_ignored
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import number

ROUNDED = "float32 keeps seven digits of what comes in, and what comes out is held to six"


@dataclass(frozen=True)
class Known:
    """A mistake of the catalogue."""

    slug: str
    function: str
    source: str


@dataclass(frozen=True)
class Finding:
    """What became of one mistake.

    lost      points lost on its own function
    spilt     points lost on other functions
    named     every name that the report gave
    lost_on   item → points lost on it
    """

    known: Known
    lost: float
    spilt: float
    named: frozenset[str]
    lost_on: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, known: Known, report: Report) -> Finding:
        """What a report on all items says of a mistake."""
        lost_on = lost_points(report)
        own = {item.item for item in report.items if item.function == known.function}
        lost = sum(points for item, points in lost_on.items() if item in own)
        named = frozenset(slug for item in report.items for slug in item.mistakes)
        return cls(known, round(lost, 2), round(sum(lost_on.values()) - lost, 2), named, lost_on)

    @property
    def naming(self) -> str:
        """`rightly`, `wrongly` or `not`: a name that is not its own, beside its own, means one behaviour."""
        if not self.named:
            return "not"
        return "rightly" if self.known.slug in self.named else "wrongly"

    @property
    def complaints(self) -> list[str]:
        """What should not be: that it costs nothing, or costs elsewhere, or is called something else."""
        slug = self.known.slug
        found = []
        if self.lost == 0:
            found.append(f"{slug} is not caught.")
        if self.spilt:
            found.append(f"{slug} loses {self.spilt:g} points on other functions than {self.known.function}.")
        if self.naming == "wrongly":
            found.append(f"{slug} is called {', '.join(sorted(self.named))}.")
        return found


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

    @property
    def complaints(self) -> list[str]:
        """What it lost first, where it was not accepted."""
        if self.is_accepted:
            return []
        first = next(item for item in self.report.items if item.verdict != "passed" or item.hint or item.mistakes)
        return [f"{self.name} is a right answer, but {first.item} is {first.verdict}: {first.message.splitlines()[0]}"]


@dataclass(frozen=True)
class Fate:
    """A mutant, and whether it kept all points of its function.

    lost_on   item → points lost on it; of public cases only, where the mutant is an operator's
    """

    mutant: Mutant
    survived: bool
    lost_on: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, mutant: Mutant, report: Report) -> Fate:
        """What a report on the items of its function says of a mutant."""
        return cls(mutant, report.points == report.max_points, lost_points(report))

    @property
    def lost(self) -> float:
        """Points lost on its function, as far as it was graded."""
        return round(sum(self.lost_on.values()), 2)

    @property
    def is_equivalent(self) -> bool:
        """Whether it loses nothing, and something says why."""
        return self.survived and bool(self.mutant.reason)

    @property
    def is_open(self) -> bool:
        """Whether it loses nothing and nobody has said why."""
        return self.survived and not self.mutant.reason

    @property
    def is_generated_and_open(self) -> bool:
        """Whether it is open, and a parameter's change or a habit."""
        return self.is_open and bool(self.mutant.slug)

    def excused(self, whole: Collection[str]) -> Fate:
        """With a reason where it only rounded an array; functions that answer `whole` numbers may choose by a digit."""
        mutant = self.mutant
        is_rounding = mutant.slug == "cast" and "np.asarray(" in mutant.after
        if not self.is_open or not is_rounding or mutant.function in whole:
            return self
        return replace(self, mutant=replace(mutant, reason=ROUNDED))

    @property
    def complaints(self) -> list[str]:
        """That it loses nothing, at a line that is not marked."""
        mutant = self.mutant
        kind = f" ({mutant.name})" if mutant.slug else ""
        where = f"line {mutant.line}, {mutant.function}{kind}"
        told = f"This change of the solution loses nothing. {where}: {mutant.before} → {mutant.after}"
        return [told] if self.is_open else []


def losses(findings: Iterable[Finding], fates: Iterable[Fate]) -> dict[Name, list[Mapping[str, float]]]:
    """What each mistake and each generated change lost, by name and function."""
    found: dict[Name, list[Mapping[str, float]]] = {}
    for finding in findings:
        found.setdefault((finding.known.slug, finding.known.function), []).append(finding.lost_on)
    for fate in fates:
        if fate.mutant.slug:
            found.setdefault((fate.mutant.name, fate.mutant.function), []).append(fate.lost_on)
    return found


def idle_marks(solution: str, fates: Iterable[Fate]) -> list[str]:
    """A complaint for each marked line of the solution at which no change keeps all points."""
    survived = {fate.mutant.line for fate in fates if fate.survived}
    return [
        f"Line {line} of the solution is marked as equivalent, but no change of it keeps all points: {reason}"
        for line, reason in marks(solution).items()
        if line not in survived
    ]


def fates_of(mutants: Iterable[Mutant], reports: Iterable[Report], cases: Iterable[Case]) -> list[Fate]:
    """What became of each mutant; of what only rounds an array the reason, but where whole numbers are answered."""
    whole = {case.function for case in cases for one in case.expected if one.dtype.startswith("int")}
    return [Fate.of(mutant, report).excused(whole) for mutant, report in zip(mutants, reports, strict=True)]


def lost_points(report: Report) -> dict[str, float]:
    """Item → points lost on it, for those that lost any."""
    lost = {item.item: round(item.max_points - (item.points or 0.0), 2) for item in report.items}
    return {item: points for item, points in lost.items() if points}


def unnamed(findings: Iterable[Finding]) -> list[str]:
    """Which mistakes lose points without being called by their names."""
    slugs = [one.known.slug for one in findings if one.lost and one.naming == "not"]
    told = "Caught but not named, so that students are not told their hints (no fault of the grading)"
    return [f"{told}: {', '.join(slugs)}."] if slugs else []


MOST = 0.5
TOLD = 3  # mistakes of one function


@dataclass(frozen=True)
class Cost:
    """What one mistake, or one generated change, costs of its function.

    name   the slug of a mistake; `habit:…` or `parameter:…` of a change
    """

    name: str
    function: str
    lost: float
    of: float

    @property
    def share(self) -> float:
        """The share of the function's points."""
        return self.lost / self.of

    @property
    def is_costly(self) -> bool:
        """Whether it is more than half."""
        return self.share > MOST + 1e-9


def costs(assignment: Assignment, findings: Iterable[Finding], fates: Iterable[Fate]) -> list[Cost]:
    """What each mistake of the catalogue, each changed parameter and each habit costs; the highest share first."""
    whole: dict[str, float] = {}
    for item in assignment.items:
        whole[item.function] = whole.get(item.function, 0.0) + item.points
    known = [Cost(f.known.slug, f.known.function, f.lost, whole[f.known.function]) for f in findings]
    changes = [
        Cost(f.mutant.name, f.mutant.function, f.lost, whole[f.mutant.function])
        for f in fates
        if f.mutant.slug and not f.survived
    ]
    return sorted([*known, *changes], key=lambda cost: -cost.share)


def cost_complaints(found: Sequence[Cost], contract: Contract | None, *, all_tried: bool) -> list[str]:
    """A complaint for each function with a mistake of more than half that is not listed, or listed without one."""
    if contract is None or contract.costly is None:
        return []
    costly = _by_function(found)
    told = [
        f"Mistakes cost more than half of {function}: {_costliest(several)}. "
        f"Where that is right, say why in [{COSTLY}] of {CONTRACT}."
        for function, several in costly.items()
        if function not in contract.costly
    ]
    idle = sorted(contract.costly.keys() - costly.keys()) if all_tried else []
    where = f"is listed in [{COSTLY}] of {CONTRACT}, but no mistake costs more than half of it."
    return [*told, *(f"{function} {where}" for function in idle)]


def _by_function(found: Iterable[Cost]) -> dict[str, list[Cost]]:
    """The costly ones of each function that has any."""
    costly: dict[str, list[Cost]] = {}
    for cost in found:
        if cost.is_costly:
            costly.setdefault(cost.function, []).append(cost)
    return costly


def _costliest(several: Sequence[Cost]) -> str:
    """The costliest by name, and how many more there are."""
    most = {cost.name: cost for cost in reversed(several)}
    told = [f"{name} ({number(cost.lost)} of {number(cost.of)} points)" for name, cost in reversed(most.items())]
    more = f" and {len(told) - TOLD} more" if len(told) > TOLD else ""
    return ", ".join(told[:TOLD]) + more


def without_costly(contract: Contract | None, found: Iterable[Cost]) -> list[str]:
    """What an assignment that says nothing of costs is not held to."""
    costly = _by_function(found)
    if not costly or (contract is not None and contract.costly is not None):
        return []
    several = sum(map(len, costly.values()))
    return [f"{several} mistakes cost more than half of their function; [{COSTLY}] in {CONTRACT} would say why."]


UNGRADED = "it is the text of an exception, of which no case grades a word"
REFUSAL = "ValueError"
DECLARED = "call"  # the probe of declared cases, of which an exception is always the function's own
REMEDY = "Let it be called with what nothing refuses where nothing is checked"


# Texts


def excused(fate: Fate, solution: str, read: Collection[str]) -> Fate:
    """The fate, with a reason where it changed nothing but the text of an error that no case reads."""
    mutant = fate.mutant
    if not fate.is_open or mutant.function in read or not differ_in_error_texts_alone(solution, mutant.source):
        return fate
    return replace(fate, mutant=replace(mutant, reason=UNGRADED))


def functions_whose_errors_are_read(cases: Iterable[Case]) -> frozenset[str]:
    """The functions of which some case asks that the text of an exception mention something."""
    return frozenset(
        case.function
        for case in cases
        if any(one.kind == "error" and one.value.get("mentions") for one in case.expected)
    )


def differ_in_error_texts_alone(one: str, other: str) -> bool:
    """Whether the two texts are the same but for what their exceptions are made with."""
    return _without_texts(one) == _without_texts(other)


def _without_texts(text: str) -> str:
    return ast.dump(_Wordless().visit(ast.parse(text)))


class _Wordless(ast.NodeTransformer):
    def visit_Raise(self, node: ast.Raise) -> ast.Raise:
        if isinstance(node.exc, ast.Call):
            node.exc = node.exc.func
        return node


# Checks


@dataclass(frozen=True)
class Accident:
    """A case that the solution passes without its checks; `whole` where its item has no other that it fails."""

    case: str
    item: str
    whole: bool

    def __str__(self) -> str:
        """What to say of it."""
        if self.whole:
            return (
                f"{self.item} asks for no check: the solution without a single `raise` earns it all, since what it "
                f"calls refuses the same. {REMEDY}."
            )
        return f"{self.case} asks for no check: without one, what the solution calls refuses the same. {REMEDY}."


def unchecked(text: str) -> str:
    """The text with `pass` in place of each exception that it raises."""
    return ast.unparse(_Unchecked().visit(ast.parse(text)))


def refusals(solution: str, cases: Iterable[Case]) -> list[Case]:
    """The cases that ask for an exception of the function's own: of a type that the solution raises, or declared."""
    nodes = [node for node in ast.walk(ast.parse(solution)) if isinstance(node, ast.Raise)]
    raised = {ast.unparse(node.exc).partition("(")[0] for node in nodes if node.exc is not None}
    return [
        case
        for case in cases
        for kinds in [[one.value["type"] for one in case.expected if one.kind == "error"]]
        if kinds and (case.probe == DECLARED or raised & {*kinds})
    ]


def accidents(report: Report, asked: Sequence[Case]) -> list[Accident]:
    """Of these cases those that the solution without its checks passes, as its report says; an item's as one."""
    of = {case.id: case.item for case in asked}
    found = []
    for item in report.items:
        passed = [case.case for case in item.cases if case.case in of and case.verdict == "passed"]
        if passed and item.verdict == "passed":
            found.append(Accident(passed[0], item.item, whole=True))
        else:
            found += [Accident(case, item.item, whole=False) for case in passed]
    return found


class _Unchecked(ast.NodeTransformer):
    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        return ast.copy_location(ast.Pass(), node) if node.exc is not None else node


TODO = re.compile(r"# TODO: (.*)")


def stale_handout(assignment: Assignment) -> list[str]:
    """A complaint where the handout is not what `release` would make now; the copies in it need not be there at all."""
    try:
        files = handout_files(assignment)
    except ReleaseError as error:
        return [str(error)]
    absent = tuple(f"{name}/" for name in COPIES if not (assignment.handout / name).exists())
    files = {name: data for name, data in files.items() if not name.startswith(absent) and not name.endswith(RECORD)}
    stale = [name for name, data in files.items() if _bytes(assignment.handout / name) != data]
    found = [path for name in COPIES for path in (assignment.handout / name).rglob("*") if path.is_file()]
    names = [path.relative_to(assignment.handout) for path in found if path.name != RECORD]
    strange = sorted(
        name.as_posix() for name in names if name.as_posix() not in files and not any(map(is_ignored, name.parts))
    )
    complaints = [f"The handout is not what release makes ({_few(stale)}): run `autograder release`."] if stale else []
    more = [f"The handout holds what release did not put there ({_few(strange)}): take it away."] if strange else []
    return [*complaints, *more]


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def missing(assignment: Assignment, known: Iterable[str]) -> list[str]:
    """What an addition to the assignment may still lack: nothing that grades wrongly, but what a course would miss.

    known   the functions that a mistake is known of
    """
    text = readme_of(assignment)
    explained = set(known)
    functions = assignment.functions
    listing = [item for item in assignment.items if not item.laws]
    return [
        *_another_title(assignment, text),
        *(
            f"No mistake is known of {name}: nobody who gets it wrong is told why."
            for name in functions
            if name not in explained
        ),
        *(f"The assignment's text does not name {name}." for name in functions if name not in text),
        *(f"{item.id} has no public case: students cannot check it." for item in listing if not item.public),
        *(f"{item.id} has no hidden case: its public outputs earn it." for item in listing if not item.hidden),
        *todos(assignment.folder),
    ]


def todos(folder: Path) -> list[str]:
    """List what `# TODO: …` leaves to the author, with file and line."""
    files = [*sorted(folder.glob("*.py")), *sorted(folder.glob("*.toml"))]
    return [
        f"{path.parent.name}/{path.name}:{number}: {found[1].strip()}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (found := TODO.search(line))
    ]


def contract_slips(assignment: Assignment, slugs: Collection[str]) -> list[str]:
    """What the contract quotes and stands nowhere, and the other way round; mistakes of it that are not `slugs`."""
    contract = read_contract(assignment)
    if contract is None:
        return []
    quotes = unquoted(contract, docstrings(solution_source(assignment), assignment.functions), readme_of(assignment))
    named = [(clause, name) for clause in contract.clauses for name in clause.mistakes if ":" not in name]
    unknown = [(clause, name) for clause, name in named if name not in slugs]
    return [*quotes, *(f"{contract.place(clause)} names {name!r}; {likely(name, slugs)}." for clause, name in unknown)]


def readme_of(assignment: Assignment) -> str:
    """The assignment's text; "" where there is none."""
    path = assignment.solution / README
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _another_title(assignment: Assignment, text: str) -> list[str]:
    """That the text is headed by another title than items.toml says; either may be the longer one."""
    heading = next((line.removeprefix("# ").strip() for line in text.splitlines() if line.startswith("# ")), "")
    if not heading or heading.startswith(assignment.title) or assignment.title.startswith(heading):
        return []
    return [f"The assignment's text is headed {heading!r}, and items.toml says {assignment.title!r}."]


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
    return [Known(*row) for row in run_in_subprocess(_catalogue, assignment.folder)]


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
