"""The grader's own exam: the solution earns all, the handout nothing, and whatever is wrong is caught.

Collect variants of the solution, grade each, judge what became of it, report:

- each mistake of the catalogue loses points on its own function and on no other, and is called by its own name;
- right answers in other styles lose nothing and get no hint;
- each mutant (a parameter ignored, a habit, one of mutmut's operators) loses points, or its line is marked;
- each sentence of the contract has a mistake that violates it and an item that catches it;
- no mistake costs more than half of its function, but where the contract gives the reason.

A mistake is graded on all items of its function, for its name rests on all. What it answers there is stored with the
cases: where its text is the one that they were made with, only a few run again, on what uses the function too. A mutant
is done with once a case fails, unless a clause names it. Results are kept by content.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from autograder.authoring.cache import (
    MISTAKES,
    ResultCache,
    digest,
    digest_of_mistake,
    engine_digest,
    names_in,
    used_text,
)
from autograder.authoring.catalogue import marks
from autograder.authoring.exam.contract import (
    CONTRACT,
    COSTLY,
    README,
    Contract,
    Name,
    clause_complaints,
    docstrings,
    read_contract,
    unquoted,
    untested,
)
from autograder.authoring.exam.mutants import Variant, can_mutate, mutants_of
from autograder.authoring.faults import likely
from autograder.authoring.fixtures.regenerate import import_generator, solution_source
from autograder.authoring.handout.release import handout_files, not_independent
from autograder.checking.handout import COPIES
from autograder.grading.assignment import Assignment, Item, load_assignment
from autograder.grading.compare import compare
from autograder.grading.fixtures import MANIFEST, Case, Expectation, Fixtures
from autograder.grading.grader import Grader, Grading, Runner
from autograder.grading.hints import NAMED
from autograder.sandbox.calls import Observation, Outcome, Program, Raised, Request, Returned
from autograder.sandbox.interpreter import run_in_subprocess
from autograder.sandbox.sandbox import Sandbox, in_sandboxes
from autograder.submissions.submission import Submission
from autograder.vocabulary.errors import GraderFault, ReleaseError, SandboxError
from autograder.vocabulary.files import RECORD, is_ignored
from autograder.vocabulary.report import Report, from_json, to_json
from autograder.vocabulary.text import number

ROUNDED = "float32 keeps seven digits of what comes in, and what comes out is held to six"
UNGRADED = "it is the text of an exception, of which no case grades a word"
DECLARED = "call"  # the probe of declared cases, of which an exception is always the function's own
REMEDY = "Let it be called with what nothing refuses where nothing is checked"
NOT_HELD = "The exam could not be held"
HALF = 0.5  # of a function's points: what a mistake may cost
RUN_EVERY = 24  # of a function's mistakes: run, on what uses the function too, which stand-ins keep apart for all
FOR_A_SERVER = 16  # texts to grade, for which one server more is worth its start
TODO = re.compile(r"# TODO: (.*)")
DEFINITION = ast.FunctionDef | ast.ClassDef

Progress = Callable[[int, int], None]


class Result(NamedTuple):
    """What a text lost by item, and every name that its report gave; the report where the text is no variant.

    Of a variant that is done with once a case fails, that case's share of its item alone.
    """

    lost_on: Mapping[str, float]
    named: frozenset[str] = frozenset()
    report: Report | None = None


@dataclass(frozen=True)
class Fate:
    """What became of a variant.

    lost     points lost on its own function, of so many; spilt: on other functions
    """

    variant: Variant
    lost_on: Mapping[str, float] = field(default_factory=dict)
    named: frozenset[str] = frozenset()
    lost: float = 0.0
    spilt: float = 0.0
    of: float = 0.0

    @classmethod
    def judged(cls, variant: Variant, result: Result, assignment: Assignment) -> Fate:
        """Tell the points of its own function from those of others."""
        own = {item.id: item.points for item in assignment.items if item.function == variant.function}
        lost = sum(points for item, points in result.lost_on.items() if item in own)
        spilt = sum(result.lost_on.values()) - lost
        return cls(variant, result.lost_on, result.named, round(lost, 2), round(spilt, 2), sum(own.values()))

    @property
    def survived(self) -> bool:
        """Whether it kept all points."""
        return not self.lost_on

    @property
    def is_equivalent(self) -> bool:
        """Whether it loses nothing, and something says why."""
        return self.survived and bool(self.variant.reason)

    @property
    def is_open(self) -> bool:
        """Whether it loses nothing and nobody has said why."""
        return self.survived and not self.variant.reason

    @property
    def naming(self) -> str:
        """`rightly`, `wrongly` or `not`: a name that is not its own, beside its own, means one behaviour."""
        if not self.named:
            return "not"
        return "rightly" if self.variant.slug in self.named else "wrongly"

    @property
    def share(self) -> float:
        """The share of its function's points that it costs."""
        return self.lost / self.of if self.of else 0.0

    @property
    def complaints(self) -> list[str]:
        """What should not be. A mutant need but lose; a mistake nowhere else, and under no other name."""
        variant, slug = self.variant, self.variant.slug
        if variant.family != "mistake":
            where = f"line {variant.line}, {variant.function}{f' ({variant.name})' if slug else ''}"
            change = f"{variant.before} → {variant.after}"
            return [f"This change of the solution loses nothing. {where}: {change}"] if self.is_open else []
        wrong = {
            f"{slug} is not caught.": self.lost == 0,
            f"{slug} loses {self.spilt:g} points on other functions than {variant.function}.": self.spilt,
            f"{slug} is called {', '.join(sorted(self.named))}.": self.naming == "wrongly",
        }
        return [sentence for sentence, holds in wrong.items() if holds]


@dataclass(frozen=True)
class Exam:
    """All that was found; `complaints` is empty where the kit may be released.

    right_answers   name → what is to be said of it; "" where it earned all, and was told nothing
    has_operators   whether mutmut's mutants are among the fates: it may not be installed
    clauses         of the contract: all, tested by a mistake, not graded; None where the assignment has no contract,
                    or only a sample was tried
    notes           what is missing without making a grade wrong
    unmarked        changes that lose nothing, at lines that are not marked, where a complaint says so
    """

    solution: Report
    handout: Report
    fates: tuple[Fate, ...]
    complaints: tuple[str, ...]
    right_answers: Mapping[str, str] = field(default_factory=dict)
    has_operators: bool = True
    clauses: tuple[int, int, int] | None = None
    notes: tuple[str, ...] = ()
    unmarked: tuple[Variant, ...] = ()

    @property
    def mistakes(self) -> list[Fate]:
        """What became of the catalogue."""
        return [fate for fate in self.fates if fate.variant.family == "mistake"]

    @property
    def mutants(self) -> list[Fate]:
        """What became of the mutants."""
        return [fate for fate in self.fates if fate.variant.family != "mistake"]

    @property
    def costs(self) -> list[Fate]:
        """The mistakes, the highest share of a function first."""
        return sorted(self.mistakes, key=lambda fate: -fate.share)


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
    function   whose mistakes and mutants alone are tried, and whose items of right answers; "" for those of all
    cache      the folder where results of mistakes and mutants are kept, to be taken over while nothing has changed
    """
    # Collect
    solution, contract = solution_source(assignment), read_contract(assignment)
    catalogue, mutants = known_mistakes(assignment), mutants_of(solution, assignment.functions)
    edited = edited_functions(assignment) if every > 1 else set()
    variants = [
        *_sample(catalogue, every, lambda mistake: mistake.function, edited),
        *_sample(mutants, every, lambda mutant: (mutant.function, mutant.family), edited),
    ]
    variants = [variant for variant in variants if function in ("", variant.function)]
    is_whole = every == 1 and not function
    answers = right_answer_paths(assignment)[::every]

    # Run
    grader = Grader.of(assignment, fixtures, counterexamples=False)
    refusals = _refusals(solution, fixtures.cases)
    tried = tuple(item for item in assignment.items if function in ("", item.function))
    texts = [_Task(text, assignment.items) for text in (solution, assignment.untouched_source())]
    texts += [_Task(path.read_text(encoding="utf-8"), tried) for path in answers]
    texts += [_Task(unchecked(solution), tried)] if refusals else []
    named = {(name, clause.function) for clause in (contract.clauses if contract else ()) for name in clause.mistakes}
    run = Run(grader, solution, named, cache)
    (own, handout, *others), results = run.graded(texts, variants, jobs, progress)

    # Judge
    fates = [
        Fate.judged(variant if result.lost_on else excused(variant, solution, fixtures.cases), result, assignment)
        for variant, result in zip(variants, results, strict=True)
    ]
    right_answers = {}
    for name, report in zip((path.stem for path in answers), others, strict=False):
        wrong = next((one for one in report.items if one.verdict != "passed" or one.hint or one.mistakes), None)
        failing = wrong and f"{wrong.item} is {wrong.verdict}: {wrong.message.partition(chr(10))[0]}"
        right_answers[name] = f"{name} is a right answer, but {failing}" if wrong else ""
    accidents = [told for report in others[len(answers) :] for told in _accidents(report, refusals)]
    lost_on: dict[Name, list[Mapping[str, float]]] = {}
    for fate in fates:
        lost_on.setdefault((fate.variant.name, fate.variant.function), []).append(fate.lost_on)
    not_tested = untested(contract, lost_on) if contract and is_whole else []
    clauses = None
    if contract and is_whole:
        graded = sum(bool(clause.mistakes) for clause in contract.clauses)
        silent = sum(bool(clause.not_graded) for clause in contract.clauses)
        clauses = len(contract.clauses), graded - len(not_tested), silent

    # Report
    drafts = not_independent(assignment)  # whose cases and clauses are still to be added to
    names = {(variant.name, variant.function) for variant in (*catalogue, *mutants)}
    survived = [fate for fate in fates if fate.is_open and fate.variant.family != "mistake"]
    pending = [  # says nothing against the assignment yet: generated changes without a contract, drafts
        fate
        for fate in fates
        if fate.variant.function in drafts or (fate in survived and fate.variant.slug and not contract)
    ]
    failed = [item for item in own.items if item.verdict != "passed"]
    started = [item.item for item in handout.items if item.verdict != "missing"]
    unnamed = [
        fate.variant.slug for fate in fates if fate.lost and fate.naming == "not" and fate.variant.family == "mistake"
    ]
    complaints = [
        *(f"The solution fails {item.item}: {item.message.splitlines()[0]}" for item in failed),
        *([f"The untouched handout is not told that it is unfinished in {', '.join(started)}."] if started else []),
        *stale_handout(assignment),
        *(
            told
            for fate in fates
            if fate not in pending or fate.variant.family == "mistake"
            for told in fate.complaints
        ),
        *filter(None, right_answers.values()),
        *(_quotes(contract, assignment, solution) if contract else ()),
        *(clause_complaints(contract, assignment, names, drafts) if contract else ()),
        *not_tested,
        *(told for told, is_item in accidents if is_item),
        *(
            f"Line {line} of the solution is marked as equivalent, but no change of it keeps all points: {reason}"
            for line, reason in (marks(solution).items() if is_whole and can_mutate() else ())
            if line not in {fate.variant.line for fate in fates if fate.survived}
        ),
        *cost_complaints(fates, contract, all_tried=is_whole),
    ]
    unfinished = [clause for clause in (contract.drafts if contract else ()) if clause.function in drafts]
    lost = sum(bool(fate.variant.slug) for fate in survived)
    costly = sum(fate.share > HALF + 1e-9 for fate in fates if fate.variant.family == "mistake")
    notes = [
        *missing(assignment, (variant.function for variant in catalogue)),
        *([f"{UNNAMED}: {', '.join(unnamed)}."] if unnamed else ()),
        *(told for told, is_item in accidents if not is_item),
        *(f"{contract.place(clause)} has no mistake yet." for clause in unfinished if contract),
        *(() if contract else [NO_CONTRACT.format(lost)]),
        *([NO_COSTLY.format(costly)] if costly and (contract is None or contract.costly is None) else ()),
        *(told for fate in pending if contract or not fate.variant.slug for told in fate.complaints),
    ]
    return Exam(
        own,
        handout,
        tuple(fates),
        tuple(complaints),
        right_answers,
        has_operators=can_mutate(),
        clauses=clauses,
        notes=tuple(notes),
        unmarked=tuple(fate.variant for fate in survived if fate not in pending),
    )


UNNAMED = "Caught but not named, so that students are not told their hints (no fault of the grading)"
NO_CONTRACT = (
    f"There is no {CONTRACT}: no sentence of the docstrings is held against the cases. Of changed parameters and "
    "habits {} lose nothing and are not marked as equivalent."
)
NO_COSTLY = f"{{}} mistakes cost more than half of their function; [{COSTLY}] in {CONTRACT} would say why."


# Collect


def known_mistakes(assignment: Assignment) -> list[Variant]:
    """The catalogue, imported in a process of its own; each mistake stands below the solution."""
    solution = solution_source(assignment)
    rows = run_in_subprocess(_catalogue, assignment.folder)
    return [Variant("mistake", slug, function, f"{solution}\n\n{source}") for slug, function, source in rows]


def _catalogue(folder: Path) -> list[tuple[str, str, str]]:
    mistakes = import_generator(load_assignment(folder))["mistakes"].MISTAKES
    return [(mistake.slug, mistake.function, mistake.source) for mistake in mistakes]


def right_answer_paths(assignment: Assignment) -> list[Path]:
    """Right answers in other styles; none where an assignment has no such folder."""
    return sorted((assignment.folder / "right_answers").glob("*.py"))


def _sample(
    variants: Iterable[Variant], every: int, kind: Callable[[Variant], Hashable], whole: Collection[str]
) -> list[Variant]:
    """Take the first of each kind and each `every`-th after it; of functions that are `whole`, all."""
    seen: Counter[Hashable] = Counter()
    kept = []
    for variant in variants:
        if seen[kind(variant)] % every == 0 or variant.function in whole:
            kept.append(variant)
        seen[kind(variant)] += 1
    return kept


def edited_functions(assignment: Assignment) -> set[str]:
    """Name the graded functions whose lines are not what git has committed; none where git does not know the file."""
    path = assignment.solution / f"{assignment.module}.py"
    diff = ["diff", "--unified=0", "--no-color", "--no-ext-diff", "HEAD", "--", path.name]
    try:
        shown = subprocess.run(["git", "-C", path.parent, *diff], capture_output=True, text=True, check=False).stdout
    except OSError:  # there is no git
        return set()
    hunks = re.findall(r"^@@ \S+ \+(\d+)(?:,(\d+))? @@", shown, re.MULTILINE)
    lines = {int(start) + k for start, length in hunks for k in range(max(1, int(length or 1)))}
    nodes = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, DEFINITION)]
    return {node.name for node in nodes if lines & {*range(node.lineno, (node.end_lineno or node.lineno) + 1)}}


# Run


class _Task(NamedTuple):
    """A text to grade on these items; `variant` is None where its whole report is wanted.

    in_full     whether all cases count, not just the first that fails
    is_stored   whether the fixtures hold what it answers
    """

    source: str
    items: tuple[Item, ...]
    variant: Variant | None = None
    in_full: bool = True
    is_stored: bool = False


class Run:
    """What grades variants of a solution, and knows the results of earlier exams.

    A result depends on the engine and the machine, the items and their stored cases, what the graded functions use of
    the solution, and the syntax tree of what the variant changes.
    """

    def __init__(self, grader: Grader, solution: str, named: Collection[Name] = (), cache: Path | None = None) -> None:
        """Take over results in the folder `cache`; `named` are variants by name and function that clauses rest on."""
        assignment, fixtures = grader.assignment, grader.fixtures
        self.grader, self.solution, self.named, self.uses = grader, solution, named, uses_in(solution)
        try:
            self._engine = engine_digest(assignment)
        except PackageNotFoundError:  # the exam itself says what is missing
            cache, self._engine = None, ""
        self._cache = ResultCache.of(cache, assignment)
        nodes = [node for node in ast.parse(solution).body if isinstance(node, ast.FunctionDef)]
        self._lines = {node.name: (node.lineno - 1, node.end_lineno or node.lineno) for node in nodes}
        manifest = (assignment.folder / MANIFEST).read_bytes()
        self._files: dict[str, str] = json.loads(manifest)["files"]
        self._is_own = hashlib.sha256(manifest).hexdigest() == fixtures.sha256
        self._stored = json.loads(texts.read_bytes()) if (texts := assignment.folder / MISTAKES).is_file() else {}
        self._has_witness = {
            case.function for case in fixtures.cases if any(one.kind == "witness" for one in case.expected)
        }

    def graded(
        self, texts: Sequence[_Task], variants: Sequence[Variant], jobs: int, progress: Progress
    ) -> tuple[list[Report], list[Result]]:
        """Grade texts, and variants on the items that can feel them, but what is known from earlier exams."""
        tasks = [*texts]
        seen: Counter[str] = Counter()
        for variant in variants:
            felt, in_full, is_stored = {variant.function}, (variant.name, variant.function) in self.named, False
            if variant.family == "mistake":
                text, in_full = variant.source[len(self.solution) :], True
                felt = felt_by(text, self.uses, callers=seen[variant.function] % RUN_EVERY == 0)
                is_stored = seen[variant.function] % RUN_EVERY > 0 and self.are_stored(variant, text, felt)
                seen[variant.function] += 1
            items = tuple(item for item in self.grader.assignment.items if item.function in felt)
            tasks.append(_Task(variant.source, items, variant, in_full or (variant.name, "") in self.named, is_stored))
        keys = [self.key(task) for task in tasks]
        known = {}
        for key, row in self._cache.known({*keys}).items():
            lost_on, named, report = json.loads(row)
            known[key] = Result(lost_on, frozenset(named), report and from_json(report))
        waiting = {key: task for key, task in zip(keys, tasks, strict=True) if key not in known}
        runs = sum(not task.is_stored for task in waiting.values())
        done, jobs, lock = count(1), min(jobs, 1 + runs // FOR_A_SERVER), threading.Lock()

        def grade(task: _Task, sandbox: Sandbox) -> tuple[Result, bool]:
            graded = self._grade(task, sandbox)
            with lock:
                progress(next(done), len(waiting))
            return graded

        outcomes = in_sandboxes(grade, [*waiting.values()], jobs)
        fresh = dict(zip(waiting, outcomes, strict=True))
        rows = {
            key: [result.lost_on, sorted(result.named), result.report and to_json(result.report)]
            for key, (result, lasts) in fresh.items()
            if lasts
        }
        self._cache.keep({key: json.dumps(row).encode() for key, row in rows.items()})
        known |= {key: result for key, (result, _) in fresh.items()}
        results = [known[key] for key in keys]
        reports = [result.report for result in results[: len(texts)] if result.report is not None]
        return reports, results[len(texts) :]

    def are_stored(self, mistake: Variant, text: str, felt: Collection[str]) -> bool:
        """Tell whether the fixtures hold what this text answers in all items of the functions that can feel it."""
        is_whole = self._is_own and {*felt} == {mistake.function} and mistake.function not in self._has_witness
        return is_whole and self._stored.get(mistake.slug) == digest_of_mistake(self.solution, mistake.function, text)

    def key(self, task: _Task) -> str:
        """Digest all that the result of a task depends on."""
        variant, names, text, used = task.variant, {item.function for item in task.items}, task.source, ""
        if variant is not None:
            if variant.family == "mistake":
                changed = ast.parse(text[len(self.solution) :])
                names |= names_in(changed)
            else:  # the function's lines; of a method those of the whole text
                lines, after = self.solution.splitlines(), text.splitlines()
                start, end = self._lines.get(variant.function, (0, len(lines)))
                changed = ast.parse("\n".join(after[start : len(after) - (len(lines) - end)]))
            text, used = ast.dump(changed), used_text(self.solution, names)
        files = [f"{kind}/{item.id}.safetensors" for item in task.items for kind in ("public", "hidden")]
        cases = [self._files.get(name) for name in files]
        return digest("exam", self._engine, self._is_own, used, text, task.in_full, task.is_stored, task.items, cases)

    def _grade(self, task: _Task, sandbox: Sandbox) -> tuple[Result, bool]:
        """Grade a text; say also whether its result may be kept: what a busy machine may have cost is graded again."""
        if not task.in_full:
            return self._first_loss(task, sandbox)
        submission, variant = Submission("selfcheck", "selfcheck.py", "", task.source), task.variant
        if variant is None:
            report = self.grader.grade(submission, sandbox, task.items)
            if report.status == "not_graded":
                raise GraderFault(f"{NOT_HELD}: {report.items[0].message}")
            return Result({}, frozenset(), report), all(item.verdict != "timed_out" for item in report.items)
        runner: Runner = sandbox
        if task.is_stored:
            submission = replace(submission, functions={})  # of which nothing is read
            runner = StoredAnswers(variant.slug, self._cases_of(task))
        with np.errstate(all="ignore"):
            try:
                grading = Grading.of(self.grader, submission, runner, task.items)
            except SandboxError as error:
                raise GraderFault(f"{NOT_HELD}: {error}") from error
        lost, names = {}, set[str]()
        for item in task.items:
            verdicts = grading.judged[item.id]
            if failed := [one for one in verdicts if not one.passed]:
                lost[item.id] = round(item.points - round(item.points * (1 - len(failed) / len(verdicts)), 2), 2)
                first = next((one for one in failed if not one.withheld), None)
                names |= {*grading.names.get(item.id, ())} if first and first.result.verdict in NAMED else set()
        return Result(lost, frozenset(names)), all(
            one.result.verdict != "timed_out" for verdicts in grading.judged.values() for one in verdicts
        )

    def _cases_of(self, task: _Task) -> list[Case]:
        """List the cases of a task in the order in which they are run."""
        fixtures = self.grader.fixtures
        cases = {case.id: case for item in task.items for case in fixtures.of_item(item.id)}
        return [cases[name] for name in fixtures.requests(task.items)]

    def _first_loss(self, task: _Task, sandbox: Sandbox) -> tuple[Result, bool]:
        """Run the cases of a mutant until one fails."""
        assignment, fixtures = self.grader.assignment, self.grader.fixtures
        requests, cases = fixtures.requests(task.items), iter(self._cases_of(task))
        failed: list[str] = []

        def fails(request: Request, outcome: Outcome) -> bool:
            seen = outcome.observation
            with np.errstate(all="ignore"):
                if seen is None or compare(next(cases).expected, seen) is not None:
                    failed.append(request.item)
            return bool(failed)

        given = (self.grader.given, self.grader.probes)
        program = Program(assignment.module, task.source, *given, assignment.needs_torch, assignment.only_packages)
        load_timeout = assignment.load_timeout
        try:
            outcomes = sandbox.run(program, [*requests.values()], load_timeout=load_timeout, enough=fails)
        except SandboxError as error:
            raise GraderFault(f"{NOT_HELD}: {error}") from error
        if outcomes[0].loading:
            failed.append(task.items[0].id)
        lost = {item.id: item.points / len(fixtures.of_item(item.id)) for item in task.items if item.id in failed}
        return Result(lost), all(outcome.status != "timed_out" for outcome in outcomes)


class StoredAnswers(NamedTuple):
    """What runs nothing: it answers as the fixtures say that a mistake does, in these cases."""

    slug: str
    cases: Sequence[Case]
    layers: tuple[str, ...] = ()

    def run(self, program: Program, requests: Sequence[Request], *, load_timeout: float) -> list[Outcome]:
        """Return what the mistake does in each case."""
        return [
            Outcome("observed", raised=wrong)
            if isinstance(wrong := case.mistakes.get(self.slug), Raised)
            else Outcome("observed", observation_with(case.expected, wrong or Observation({}, {})))
            for case in self.cases
        ]


def observation_with(expected: Sequence[Expectation], wrong: Observation) -> Observation:
    """Make up an observation of which all is as expected that is not wrong, but for an example of a student's own."""
    returned, facts = dict[str, Returned](), dict[str, Any]()
    for one in sorted(expected, key=lambda one: not one.like):
        names = [name for name in (one.like, one.name) if name]
        if one.kind == "error":
            facts |= {one.name: {"types": [one.value["type"]], "message": " ".join(one.value.get("mentions", ()))}}
        elif one.array is None:  # what must be as another thing is as that is, wrong or not
            facts |= dict.fromkeys(names, wrong.facts.get(one.like, one.value))
        else:
            dtype, graph = one.dtype or one.array.dtype.name, bool(one.attached)
            right = Returned("tensor", "", dtype, one.array.shape, graph, one.array)
            returned |= dict.fromkeys(names, wrong.returned.get(one.like, right))
    return Observation(returned | {**wrong.returned}, facts | {**wrong.facts})


def uses_in(solution: str) -> dict[str, set[str]]:
    """Map each function and class of the solution to every name that it uses."""
    return {node.name: names_in(node) for node in ast.parse(solution).body if isinstance(node, DEFINITION)}


def felt_by(mistake: str, uses: Mapping[str, set[str]], *, callers: bool = True) -> set[str]:
    """Name what a mistake's text can change of the solution: what it defines or assigns, and what uses that.

    Where it defines one function alone, what uses that is left out unless `callers` are asked for.
    """
    written = ast.parse(mistake).body
    felt = {name for node in written for name in ([node.name] if isinstance(node, DEFINITION) else names_in(node))}
    while (callers or len(felt) > 1) and (more := {name for name, used in uses.items() if used & felt} - felt):
        felt |= more
    return felt


# Judge


def excused(mutant: Variant, solution: str, cases: Iterable[Case]) -> Variant:
    """A variant that lost nothing, with a reason where it changed what nothing is asked of."""
    expected = [expectation for case in cases if case.function == mutant.function for expectation in case.expected]
    is_rounding = mutant.slug == "cast" and "np.asarray(" in mutant.after
    if mutant.reason or mutant.family == "mistake":
        return mutant
    if is_rounding and not any(one.dtype.startswith("int") for one in expected):  # which may turn on the last digit
        return replace(mutant, reason=ROUNDED)
    is_read = any(one.kind == "error" and one.value.get("mentions") for one in expected)
    if not is_read and differ_in_error_texts_alone(solution, mutant.source):
        return replace(mutant, reason=UNGRADED)
    return mutant


def differ_in_error_texts_alone(text: str, other: str) -> bool:
    """Whether the two texts are the same but for what their exceptions are made with."""

    class Wordless(ast.NodeTransformer):
        def visit_Raise(self, node: ast.Raise) -> ast.Raise:
            if isinstance(node.exc, ast.Call):
                node.exc = node.exc.func
            return node

    return ast.dump(Wordless().visit(ast.parse(text))) == ast.dump(Wordless().visit(ast.parse(other)))


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
    exceptions = [node.exc for node in ast.walk(ast.parse(solution)) if isinstance(node, ast.Raise)]
    raised = {ast.unparse(exception).partition("(")[0] for exception in exceptions if exception is not None}
    asked = {}
    for case in cases:
        kinds = {expectation.value["type"] for expectation in case.expected if expectation.kind == "error"}
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


def cost_complaints(fates: Iterable[Fate], contract: Contract | None, *, all_tried: bool) -> list[str]:
    """A complaint for each function with a mistake of more than half that is not listed, or listed without one."""
    if contract is None or contract.costly is None:
        return []
    costly: dict[str, list[str]] = {}
    for fate in sorted(fates, key=lambda fate: -fate.share):
        if fate.variant.family == "mistake" and fate.share > HALF + 1e-9:
            points = f"{number(fate.lost)} of {number(fate.of)} points"
            costly.setdefault(fate.variant.function, []).append(f"{fate.variant.name} ({points})")
    advice = f"Where that is right, say why in [{COSTLY}] of {CONTRACT}."
    idle = sorted(contract.costly.keys() - costly.keys()) if all_tried else []
    where = f"is listed in [{COSTLY}] of {CONTRACT}, but no mistake costs more than half of it."
    return [
        *(
            f"Mistakes cost more than half of {function}: {_few(several)}. {advice}"
            for function, several in costly.items()
            if function not in contract.costly
        ),
        *(f"{function} {where}" for function in idle),
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
    listing = [item for item in assignment.items if not item.laws]
    unexplained = [name for name in functions if name not in explained]
    return [
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
