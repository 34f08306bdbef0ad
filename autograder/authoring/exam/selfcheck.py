"""The grader's own exam: the solution earns all, the handout nothing, and whatever is wrong is caught.

Collect variants of the solution, grade each, judge what became of it, report:

- each mistake of the catalogue loses points on its own function and on no other, and is called by its own name;
- right answers in other styles lose nothing and get no hint;
- each mutant (a parameter ignored, a habit, one of mutmut's operators) loses points, or its line is marked;
- each sentence of the contract has a mistake that violates it and an item that catches it;
- no mistake costs more than half of its function, but where the contract gives the reason.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError
from itertools import count
from pathlib import Path
from typing import TypeVar

from autograder.authoring.cache import ResultCache, digest, engine_digest, used_text
from autograder.authoring.catalogue import marks
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
from autograder.authoring.faults import likely
from autograder.authoring.fixtures.regenerate import import_generator, solution_source
from autograder.authoring.handout.release import handout_files, not_independent
from autograder.checking.handout import COPIES
from autograder.grading.assignment import Assignment, Item, load_assignment
from autograder.grading.fixtures import MANIFEST, Case, Fixtures
from autograder.grading.grader import Grader
from autograder.sandbox.interpreter import run_in_subprocess
from autograder.sandbox.sandbox import Sandbox, in_sandboxes
from autograder.submissions.submission import Submission
from autograder.vocabulary.errors import GraderFault, ReleaseError
from autograder.vocabulary.files import RECORD, is_ignored
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import number

ROUNDED = "float32 keeps seven digits of what comes in, and what comes out is held to six"
UNGRADED = "it is the text of an exception, of which no case grades a word"
DECLARED = "call"  # the probe of declared cases, of which an exception is always the function's own
REMEDY = "Let it be called with what nothing refuses where nothing is checked"
HALF = 0.5  # of a function's points: what a mistake may cost
TODO = re.compile(r"# TODO: (.*)")

Progress = Callable[[int, int], None]
Variant = TypeVar("Variant")
DEFINITION = ast.FunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Known:
    """A mistake of the catalogue."""

    slug: str
    function: str
    source: str


@dataclass(frozen=True)
class Result:
    """What a variant lost by item, and every name that its report gave."""

    lost_on: Mapping[str, float]
    named: frozenset[str] = frozenset()

    @classmethod
    def of(cls, report: Report) -> Result:
        """Read it from a report."""
        lost = {item.item: round(item.max_points - (item.points or 0.0), 2) for item in report.items}
        named = frozenset(slug for item in report.items for slug in item.mistakes)
        return cls({item: points for item, points in lost.items() if points}, named)


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
    def of(cls, known: Known, result: Result, assignment: Assignment) -> Finding:
        """Tell the points of its own function from those of others."""
        own = {item.id for item in assignment.items if item.function == known.function}
        lost = sum(points for item, points in result.lost_on.items() if item in own)
        spilt = sum(result.lost_on.values()) - lost
        return cls(known, round(lost, 2), round(spilt, 2), result.named, result.lost_on)

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
        wrong = {
            f"{slug} is not caught.": self.lost == 0,
            f"{slug} loses {self.spilt:g} points on other functions than {self.known.function}.": self.spilt,
            f"{slug} is called {', '.join(sorted(self.named))}.": self.naming == "wrongly",
        }
        return [sentence for sentence, holds in wrong.items() if holds]


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
    """A mutant, and what it lost of its function: item → points; of public cases only, where it is an operator's."""

    mutant: Mutant
    lost_on: Mapping[str, float] = field(default_factory=dict)

    @property
    def survived(self) -> bool:
        """Whether it kept all points."""
        return not self.lost_on

    @property
    def is_equivalent(self) -> bool:
        """Whether it loses nothing, and something says why."""
        return self.survived and bool(self.mutant.reason)

    @property
    def is_open(self) -> bool:
        """Whether it loses nothing and nobody has said why."""
        return self.survived and not self.mutant.reason

    @property
    def complaints(self) -> list[str]:
        """That it loses nothing, at a line that is not marked."""
        mutant = self.mutant
        where = f"line {mutant.line}, {mutant.function}{f' ({mutant.name})' if mutant.slug else ''}"
        told = f"This change of the solution loses nothing. {where}: {mutant.before} → {mutant.after}"
        return [told] if self.is_open else []


@dataclass(frozen=True)
class Cost:
    """What one mistake, by its slug, or one generated change, `habit:…` or `parameter:…`, costs of its function."""

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
        return self.share > HALF + 1e-9


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
    cache: Path | None = None,
    progress: Progress = lambda done, total: None,
) -> Exam:
    """Grade the solution, the handout, every mistake, every right answer in another style and every mutant.

    every      of mistakes and mutants the first of each function (of mutants: of each family too) and each so many-th
               after it, of right answers likewise; of functions that are not as git has them, all
    function   whose mistakes and mutants alone are tried; "" for those of all
    cache      the folder where results of mistakes and mutants are kept, to be taken over while nothing has changed
    """
    # Collect
    solution, contract = solution_source(assignment), read_contract(assignment)
    catalogue, mutants = known_mistakes(assignment), mutants_of(solution, assignment.functions)
    edited = edited_functions(assignment) if every > 1 else set()
    mistakes = _sample(catalogue, every, lambda known: known.function, edited)
    changes = _sample(mutants, every, lambda mutant: (mutant.function, mutant.family), edited)
    if function:
        mistakes = [known for known in mistakes if known.function == function]
        changes = [mutant for mutant in changes if mutant.function == function]
    is_whole = every == 1 and not function

    # Run
    grader = Grader.of(assignment, fixtures, counterexamples=False)
    answers, refusals = right_answer_paths(assignment)[::every], _refusals(solution, fixtures.cases)
    texts = [solution, assignment.untouched_source(), *(path.read_text(encoding="utf-8") for path in answers)]
    texts += [unchecked(solution)] if refusals else []
    run = _Run(grader, solution, Results(cache, assignment, fixtures, solution))
    (own, handout, *others), results = run.graded(texts, [*mistakes, *changes], jobs, progress)

    # Judge
    findings = [Finding.of(known, result, assignment) for known, result in zip(mistakes, results, strict=False)]
    read = functions_whose_errors_are_read(fixtures.cases)
    whole_numbers = {case.function for case in fixtures.cases for one in case.expected if one.dtype.startswith("int")}
    fates = [
        Fate(excused(mutant, solution, read, whole_numbers) if not result.lost_on else mutant, result.lost_on)
        for mutant, result in zip(changes, results[len(mistakes) :], strict=True)
    ]
    right_answers = [RightAnswer(path.stem, report) for path, report in zip(answers, others, strict=False)]
    accidents = [told for report in others[len(answers) :] for told in _accidents(report, refusals)]
    shares = costs(assignment, findings, fates)
    is_covered = contract is not None and is_whole
    counts, untested = coverage(contract, _losses(findings, fates)) if contract and is_covered else (None, [])

    # Report
    drafts = not_independent(assignment)  # whose cases and clauses are still to be added to
    failed = [item for item in own.items if item.verdict != "passed"]
    names = {(known.slug, known.function) for known in catalogue} | {(one.name, one.function) for one in mutants}
    pending = [  # says nothing against the assignment yet: generated changes without a contract, drafts
        fate for fate in fates if fate.mutant.function in drafts or (fate.is_open and fate.mutant.slug and not contract)
    ]
    complaints = [
        *(f"The solution fails {item.item}: {item.message.splitlines()[0]}" for item in failed),
        *_about_handout(assignment, handout),
        *(told for finding in findings for told in finding.complaints),
        *(told for answer in right_answers for told in answer.complaints),
        *(told for fate in fates if fate not in pending for told in fate.complaints),
        *(_quotes(contract, assignment, solution) if contract else ()),
        *(clause_complaints(contract, assignment, names, drafts) if contract else ()),
        *untested,
        *(told for told, is_item in accidents if is_item),
        *(_idle_marks(solution, fates) if is_whole and can_mutate() else ()),
        *cost_complaints(shares, contract, all_tried=is_whole),
    ]
    notes = [
        *missing(assignment, (known.function for known in catalogue)),
        *_unnamed(findings),
        *(told for told, is_item in accidents if not is_item),
        *(_about_drafts(contract, drafts) if contract else _without_contract(fates)),
        *without_costly(contract, shares),
        *(told for fate in pending if contract or not fate.mutant.slug for told in fate.complaints),
    ]
    return Exam(
        own,
        handout,
        tuple(findings),
        tuple(complaints),
        tuple(right_answers),
        tuple(fates),
        has_operators=can_mutate(),
        coverage=counts,
        costs=tuple(shares),
        notes=tuple(notes),
        unmarked=tuple(fate.mutant for fate in fates if fate.is_open and fate not in pending),
    )


# Collect


def known_mistakes(assignment: Assignment) -> list[Known]:
    """The catalogue, imported in a process of its own."""
    return [Known(*row) for row in run_in_subprocess(_catalogue, assignment.folder)]


def _catalogue(folder: Path) -> list[tuple[str, str, str]]:
    mistakes = import_generator(load_assignment(folder))["mistakes"].MISTAKES
    return [(mistake.slug, mistake.function, mistake.source) for mistake in mistakes]


def right_answer_paths(assignment: Assignment) -> list[Path]:
    """Right answers in other styles; none where an assignment has no such folder."""
    return sorted((assignment.folder / "right_answers").glob("*.py"))


def _sample(
    several: Iterable[Variant], every: int, kind: Callable[[Variant], Hashable], whole: Collection[str]
) -> list[Variant]:
    """Take the first of each kind and each `every`-th after it; of functions that are `whole`, all."""
    seen: Counter[Hashable] = Counter()
    kept = []
    for variant in several:
        if seen[kind(variant)] % every == 0 or variant.function in whole:  # type: ignore[attr-defined]
            kept.append(variant)
        seen[kind(variant)] += 1
    return kept


def edited_functions(assignment: Assignment) -> set[str]:
    """Name the graded functions whose lines are not what git has committed; none where git does not know the file."""
    path = assignment.solution / f"{assignment.module}.py"
    command = [
        "git",
        "-C",
        str(path.parent),
        "diff",
        "--unified=0",
        "--no-color",
        "--no-ext-diff",
        "HEAD",
        "--",
        path.name,
    ]
    try:
        shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:  # there is no git
        return set()
    hunks = re.findall(r"^@@ \S+ \+(\d+)(?:,(\d+))? @@", shown, re.MULTILINE)
    lines = {int(start) + k for start, length in hunks for k in range(max(1, int(length or 1)))}
    nodes = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, DEFINITION)]
    return {node.name for node in nodes if lines & {*range(node.lineno, (node.end_lineno or node.lineno) + 1)}}


# Run


@dataclass
class _Run:
    """What grades variants of a solution."""

    grader: Grader
    solution: str
    results: Results

    def graded(
        self, texts: Sequence[str], variants: Sequence[Known | Mutant], jobs: int, progress: Progress
    ) -> tuple[list[Report], list[Result]]:
        """Grade texts on all items, and variants, of which no result is known yet, on those that can feel them."""
        uses = uses_in(self.solution)
        items = []
        for variant in variants:
            felt = {variant.function} if isinstance(variant, Mutant) else felt_by(variant.source, uses)
            items.append([item for item in self.grader.assignment.items if item.function in felt])
        keys = [self.results.key(variant, own) for variant, own in zip(variants, items, strict=True)]
        tasks: list[str | tuple[Known | Mutant, list[Item]]] = [*texts]
        known = self.results.known(keys)
        unknown = [place for place, key in enumerate(keys) if key not in known]
        tasks += [(variants[place], items[place]) for place in unknown]
        done = count(1)
        reports = in_sandboxes(self._grade, tasks, jobs, lambda task, report: progress(next(done), len(tasks)))
        if lost := next((report for report in reports if report.status == "not_graded"), None):
            raise GraderFault(f"The exam could not be held: {lost.items[0].message}")
        fresh = dict(zip(unknown, reports[len(texts) :], strict=True))
        results = [Result.of(fresh[place]) if place in fresh else known[key] for place, key in enumerate(keys)]
        lasting = {  # what a busy machine may have cost is graded again
            keys[place]: results[place]
            for place, report in fresh.items()
            if all(item.verdict != "timed_out" for item in report.items)
        }
        self.results.keep(lasting)
        return reports[: len(texts)], results

    def _grade(self, task: str | tuple[Known | Mutant, list[Item]], sandbox: Sandbox) -> Report:
        if isinstance(task, str):
            return self._report(self.grader, task, sandbox, None)
        variant, items = task
        if isinstance(variant, Known):
            return self._report(self.grader, f"{self.solution}\n\n{variant.source}", sandbox, items)
        if not variant.slug:  # an operator's: no clause and no cost asks for each item, and public cases are fewer
            public = Fixtures(tuple(one for one in self.grader.fixtures.cases if one.visibility == "public"), {}, "")
            seen = [item for item in items if public.of_item(item.id)]
            report = self._report(replace(self.grader, fixtures=public), variant.source, sandbox, seen)
            if report.points != report.max_points:
                return report
        return self._report(self.grader, variant.source, sandbox, items)

    @staticmethod
    def _report(grader: Grader, source: str, sandbox: Sandbox, items: Sequence[Item] | None) -> Report:
        return grader.grade(Submission("selfcheck", "selfcheck.py", "", source), sandbox, items)


def uses_in(solution: str) -> dict[str, set[str]]:
    """Map each function and class of the solution to every name that it uses."""
    return {node.name: names_in(node) for node in ast.parse(solution).body if isinstance(node, DEFINITION)}


def felt_by(mistake: str, uses: Mapping[str, set[str]]) -> set[str]:
    """Name what a mistake's text can change of the solution: what it defines or assigns, and what uses that."""
    written = ast.parse(mistake).body
    felt = {name for node in written for name in ([node.name] if isinstance(node, DEFINITION) else names_in(node))}
    while more := {name for name, used in uses.items() if used & felt} - felt:
        felt |= more
    return felt


class Results:
    """Results of earlier exams.

    They depend on the engine and the machine, the items and their stored cases, what the graded functions use of the
    solution, and the text of the mistake or the mutant.
    """

    def __init__(self, folder: Path | None, assignment: Assignment, fixtures: Fixtures, solution: str) -> None:
        """Use those in that folder; none where it is None."""
        try:
            self._engine = engine_digest(assignment)
        except PackageNotFoundError:  # the exam itself says what is missing
            folder = None
        self.cache = ResultCache.of(folder, assignment)
        self._solution = solution
        if folder is not None:
            manifest = (assignment.folder / MANIFEST).read_bytes()
            self._files: dict[str, str] = json.loads(manifest)["files"]
            self._is_own = hashlib.sha256(manifest).hexdigest() == fixtures.sha256

    def key(self, variant: Known | Mutant, items: Sequence[Item]) -> str:
        """Digest all that the result of a variant on these items depends on; "" where none is kept."""
        if self.cache.path is None:
            return ""
        functions = {item.function for item in items}
        if isinstance(variant, Known):
            own, names = variant.source, functions | names_in(ast.parse(variant.source))
        else:
            own, names = _function_text(self._solution, variant), functions
        used = used_text(self._solution, names)
        cases = [self._files.get(f"{kind}/{item.id}.safetensors") for item in items for kind in ("public", "hidden")]
        is_operator = isinstance(variant, Mutant) and not variant.slug
        return digest("exam", self._engine, self._is_own, used, own, is_operator, items, cases)

    def known(self, keys: Collection[str]) -> dict[str, Result]:
        """Return the results that are known under these keys."""
        stored = {key: json.loads(result) for key, result in self.cache.known(keys).items()}
        return {key: Result(lost_on, frozenset(named)) for key, (lost_on, named) in stored.items()}

    def keep(self, fresh: Mapping[str, Result]) -> None:
        """Keep these too."""
        self.cache.keep({key: json.dumps([one.lost_on, sorted(one.named)]).encode() for key, one in fresh.items()})


def _function_text(solution: str, mutant: Mutant) -> str:
    """The text of the function that a mutant changes; of a method that of the whole."""
    lines, changed = solution.splitlines(), mutant.source.splitlines()
    nodes = [node for node in ast.parse(solution).body if isinstance(node, ast.FunctionDef)]
    node = next((node for node in nodes if node.name == mutant.function), None)
    if node is None or node.end_lineno is None:
        return mutant.source
    return "\n".join(changed[node.lineno - 1 : len(changed) - (len(lines) - node.end_lineno)])


# Judge


def functions_whose_errors_are_read(cases: Iterable[Case]) -> frozenset[str]:
    """The functions of which some case asks that the text of an exception mention something."""
    asked = [(case.function, one) for case in cases for one in case.expected if one.kind == "error"]
    return frozenset(function for function, one in asked if one.value.get("mentions"))


def excused(mutant: Mutant, solution: str, read: Collection[str], whole_numbers: Collection[str]) -> Mutant:
    """A mutant that lost nothing, with a reason where it changed what nothing is asked of.

    read            functions of which a case reads the text of an exception
    whole_numbers   functions that answer these: they may choose by a digit that is rounded
    """
    if mutant.reason:
        return mutant
    is_rounding = mutant.slug == "cast" and "np.asarray(" in mutant.after
    if is_rounding and mutant.function not in whole_numbers:
        return replace(mutant, reason=ROUNDED)
    if mutant.function not in read and differ_in_error_texts_alone(solution, mutant.source):
        return replace(mutant, reason=UNGRADED)
    return mutant


def differ_in_error_texts_alone(one: str, other: str) -> bool:
    """Whether the two texts are the same but for what their exceptions are made with."""

    class Wordless(ast.NodeTransformer):
        def visit_Raise(self, node: ast.Raise) -> ast.Raise:
            if isinstance(node.exc, ast.Call):
                node.exc = node.exc.func
            return node

    return ast.dump(Wordless().visit(ast.parse(one))) == ast.dump(Wordless().visit(ast.parse(other)))


def unchecked(text: str) -> str:
    """The text with `pass` in place of each exception that it raises."""

    class Unchecked(ast.NodeTransformer):
        def visit_Raise(self, node: ast.Raise) -> ast.stmt:
            return ast.copy_location(ast.Pass(), node) if node.exc is not None else node

    return ast.unparse(Unchecked().visit(ast.parse(text)))


def _refusals(solution: str, cases: Iterable[Case]) -> dict[str, str]:
    """Case → item of those that ask for an exception of the function's own: one that the solution raises, or declared.

    `np.convolve(values, [])` raises ValueError by itself: where a case asks for just that, who checks nothing is right.
    """
    nodes = [node for node in ast.walk(ast.parse(solution)) if isinstance(node, ast.Raise) and node.exc is not None]
    raised = {ast.unparse(node.exc).partition("(")[0] for node in nodes if node.exc is not None}
    asked = {}
    for case in cases:
        kinds = {one.value["type"] for one in case.expected if one.kind == "error"}
        if kinds and (case.probe == DECLARED or raised & kinds):
            asked[case.id] = case.item
    return asked


def _accidents(report: Report, refusals: Collection[str]) -> list[tuple[str, bool]]:
    """What to say of cases that the solution passes without its checks, and whether a whole item is earned so."""
    found = []
    for item in report.items:
        passed = [case.case for case in item.cases if case.case in refusals and case.verdict == "passed"]
        if passed and item.verdict == "passed":
            what = "the solution without a single `raise` earns it all, since what it calls refuses the same"
            found.append((f"{item.item} asks for no check: {what}. {REMEDY}.", True))
        else:
            what = "without one, what the solution calls refuses the same"
            found += [(f"{case} asks for no check: {what}. {REMEDY}.", False) for case in passed]
    return found


def _losses(findings: Iterable[Finding], fates: Iterable[Fate]) -> dict[Name, list[Mapping[str, float]]]:
    """What each mistake and each generated change lost, by name and function."""
    losses: dict[Name, list[Mapping[str, float]]] = {}
    for finding in findings:
        losses.setdefault((finding.known.slug, finding.known.function), []).append(finding.lost_on)
    for fate in (fate for fate in fates if fate.mutant.slug):
        losses.setdefault((fate.mutant.name, fate.mutant.function), []).append(fate.lost_on)
    return losses


def costs(assignment: Assignment, findings: Iterable[Finding], fates: Iterable[Fate]) -> list[Cost]:
    """What each mistake of the catalogue, each changed parameter and each habit costs; the highest share first."""
    whole: Counter[str] = Counter()
    for item in assignment.items:
        whole[item.function] += item.points  # type: ignore[assignment]
    shares = [Cost(one.known.slug, one.known.function, one.lost, whole[one.known.function]) for one in findings]
    for fate in (fate for fate in fates if fate.mutant.slug and not fate.survived):
        lost = round(sum(fate.lost_on.values()), 2)
        shares.append(Cost(fate.mutant.name, fate.mutant.function, lost, whole[fate.mutant.function]))
    return sorted(shares, key=lambda cost: -cost.share)


def cost_complaints(shares: Sequence[Cost], contract: Contract | None, *, all_tried: bool) -> list[str]:
    """A complaint for each function with a mistake of more than half that is not listed, or listed without one."""
    if contract is None or contract.costly is None:
        return []
    costly = [cost for cost in shares if cost.is_costly]
    told = []
    for function in dict.fromkeys(cost.function for cost in costly if cost.function not in contract.costly):
        most: dict[str, str] = {}
        for cost in costly:
            if cost.function == function:
                most.setdefault(cost.name, f"{cost.name} ({number(cost.lost)} of {number(cost.of)} points)")
        more = f" and {len(most) - 3} more" if len(most) > 3 else ""
        advice = f"Where that is right, say why in [{COSTLY}] of {CONTRACT}."
        told.append(f"Mistakes cost more than half of {function}: {', '.join([*most.values()][:3])}{more}. {advice}")
    idle = sorted(contract.costly.keys() - {cost.function for cost in costly}) if all_tried else []
    where = f"is listed in [{COSTLY}] of {CONTRACT}, but no mistake costs more than half of it."
    return [*told, *(f"{function} {where}" for function in idle)]


def without_costly(contract: Contract | None, shares: Iterable[Cost]) -> list[str]:
    """What an assignment that says nothing of costs is not held to."""
    several = sum(cost.is_costly for cost in shares)
    if not several or (contract is not None and contract.costly is not None):
        return []
    return [f"{several} mistakes cost more than half of their function; [{COSTLY}] in {CONTRACT} would say why."]


def _idle_marks(solution: str, fates: Iterable[Fate]) -> list[str]:
    """A complaint for each marked line of the solution at which no change keeps all points."""
    survived = {fate.mutant.line for fate in fates if fate.survived}
    return [
        f"Line {line} of the solution is marked as equivalent, but no change of it keeps all points: {reason}"
        for line, reason in marks(solution).items()
        if line not in survived
    ]


# Report


def _quotes(contract: Contract, assignment: Assignment, solution: str) -> list[str]:
    return unquoted(contract, docstrings(solution, assignment.functions), readme_of(assignment))


def contract_slips(assignment: Assignment, slugs: Collection[str]) -> list[str]:
    """What the contract quotes and stands nowhere, and the other way round; mistakes of it that are not `slugs`."""
    contract = read_contract(assignment)
    if contract is None:
        return []
    named = [(clause, name) for clause in contract.clauses for name in clause.mistakes if ":" not in name]
    unknown = [(clause, name) for clause, name in named if name not in slugs]
    return [
        *_quotes(contract, assignment, solution_source(assignment)),
        *(f"{contract.place(clause)} names {name!r}; {likely(name, slugs)}." for clause, name in unknown),
    ]


def _about_drafts(contract: Contract, drafts: Sequence[str]) -> list[str]:
    """Which sentences of unfinished functions nothing violates yet."""
    several = [clause for clause in contract.drafts if clause.function in drafts]
    return [f"{contract.place(clause)} has no mistake yet." for clause in several]


def _without_contract(fates: Iterable[Fate]) -> list[str]:
    """What an assignment that has no contract yet is not held to."""
    lost = sum(fate.is_open and bool(fate.mutant.slug) for fate in fates)
    return [
        f"There is no {CONTRACT}: no sentence of the docstrings is held against the cases. Of changed parameters and "
        f"habits {lost} lose nothing and are not marked as equivalent."
    ]


def _unnamed(findings: Iterable[Finding]) -> list[str]:
    """Which mistakes lose points without being called by their names."""
    slugs = [one.known.slug for one in findings if one.lost and one.naming == "not"]
    told = "Caught but not named, so that students are not told their hints (no fault of the grading)"
    return [f"{told}: {', '.join(slugs)}."] if slugs else []


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
    folder = assignment.handout
    absent = tuple(f"{name}/" for name in COPIES if not (folder / name).exists())
    files = {name: data for name, data in files.items() if not name.startswith(absent) and not name.endswith(RECORD)}
    there = {name: folder / name for name in files}
    stale = [name for name, path in there.items() if not path.is_file() or path.read_bytes() != files[name]]
    copies = [path for name in COPIES for path in (folder / name).rglob("*") if path.is_file() and path.name != RECORD]
    names = sorted(path.relative_to(folder).as_posix() for path in copies)
    strange = [name for name in names if name not in files and not any(map(is_ignored, name.split("/")))]
    complaints = [f"The handout is not what release makes ({_few(stale)}): run `autograder release`."] if stale else []
    more = [f"The handout holds what release did not put there ({_few(strange)}): take it away."] if strange else []
    return [*complaints, *more]


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def missing(assignment: Assignment, known: Iterable[str]) -> list[str]:
    """What an addition to the assignment may still lack: nothing that grades wrongly, but what a course would miss.

    known   the functions that a mistake is known of
    """
    text, functions, explained = readme_of(assignment), assignment.functions, {*known}
    heading = next((line.removeprefix("# ").strip() for line in text.splitlines() if line.startswith("# ")), "")
    title = assignment.title
    is_titled = not heading or heading.startswith(title) or title.startswith(heading)  # either may be the longer one
    listing = [item for item in assignment.items if not item.laws]
    unexplained = [name for name in functions if name not in explained]
    return [
        *([] if is_titled else [f"The assignment's text is headed {heading!r}, and items.toml says {title!r}."]),
        *(f"No mistake is known of {name}: nobody who gets it wrong is told why." for name in unexplained),
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


def readme_of(assignment: Assignment) -> str:
    """The assignment's text; "" where there is none."""
    path = assignment.solution / README
    return path.read_text(encoding="utf-8") if path.is_file() else ""
