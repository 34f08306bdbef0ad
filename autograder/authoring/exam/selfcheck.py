"""The grader's own exam: the solution earns all, the handout nothing, and whatever is wrong is caught.

Collect variants of the solution, grade each, judge what became of it, report:

- each mistake of the catalogue loses points on its own function and on no other, and is called by its own name;
- right answers in other styles lose nothing and get no hint;
- each mutant (a parameter ignored, a habit, an operator) loses points, or its line is marked;
- each sentence of the contract has a mistake that violates it and an item that catches it.

A mistake is graded on all items of its function, for its name rests on all. What it answers there is stored with the
cases: where its text is the one that they were made with, it is judged as it is stored; the first of each function runs
again, on what uses the function too. A mutant is done with once a case fails, unless a clause names it. Results are
kept by content.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
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
from autograder.authoring.exam.contract import CONTRACT, contract_complaints, read_contract, text_of
from autograder.authoring.exam.mutants import Variant, mutants_of
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

NOT_HELD = "The exam could not be held"
UNNAMED = "Caught but not named, so that students are not told their hints (no fault of the grading)"
NO_CONTRACT = (
    f"There is no {CONTRACT}: no sentence of the docstrings is held against the cases. Of changed parameters and "
    "habits {} lose nothing and are not marked as equivalent."
)
FOR_A_SERVER = 16  # texts to grade, for which one server more is worth its start
TODO = re.compile(r"# TODO: (.*)")
DEFINITION = ast.FunctionDef | ast.ClassDef

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Fate:
    """What became of a variant.

    lost_on   item → points that it lost there; of a mutant that is done with once a case fails, that case's share
    named     every name that its report gave
    own       item → points, of its function
    report    of a whole submission
    """

    variant: Variant
    lost_on: Mapping[str, float] = field(default_factory=dict)
    named: frozenset[str] = frozenset()
    own: Mapping[str, float] = field(default_factory=dict)
    report: Report | None = None

    @property
    def lost(self) -> float:
        """Points lost on its own function."""
        return round(sum(points for item, points in self.lost_on.items() if item in self.own), 2)

    @property
    def spilt(self) -> float:
        """Points lost on other functions."""
        return round(sum(self.lost_on.values()) - self.lost, 2)

    @property
    def of(self) -> float:
        """The points of its function."""
        return sum(self.own.values())

    @property
    def share(self) -> float:
        """The share of its function's points that it costs."""
        return self.lost / self.of if self.of else 0.0

    @property
    def survived(self) -> bool:
        """Whether it kept all points."""
        return not self.lost_on

    @property
    def is_equivalent(self) -> bool:
        """Whether it loses nothing, and its line says why."""
        return self.survived and bool(self.variant.reason)

    @property
    def naming(self) -> str:
        """`rightly`, `wrongly` or `not`: a name that is not its own, beside its own, means one behaviour."""
        if not self.named:
            return "not"
        return "rightly" if self.variant.slug in self.named else "wrongly"

    @property
    def complaints(self) -> list[str]:
        """What should not be. A mutant need but lose; a mistake nowhere else, and under no other name."""
        variant, slug = self.variant, self.variant.slug
        if variant.family != "mistake":
            where = f"line {variant.line}, {variant.function}{f' ({variant.name})' if slug else ''}"
            is_open = self.survived and not variant.reason
            change = f"{variant.before} → {variant.after}"
            return [f"This change of the solution loses nothing. {where}: {change}"] if is_open else []
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

    every      of mistakes and mutants the first of each function and family and each so many-th after it, of right
               answers likewise
    function   whose mistakes and mutants alone are tried, and whose items of right answers; "" for those of all
    cache      the folder where results of mistakes and mutants are kept, to be taken over while nothing has changed
    """
    # Collect
    solution, contract = solution_source(assignment), read_contract(assignment)
    every_variant = [*known_mistakes(assignment), *mutants_of(solution, assignment.functions)]
    tried, seen = list[Variant](), Counter[tuple[str, str]]()
    for variant in every_variant:
        kind = variant.function, variant.family
        if seen[kind] % every == 0 and function in ("", variant.function):
            tried.append(variant)
        seen[kind] += 1
    is_whole = every == 1 and not function
    texts = {"solution": solution, "handout": assignment.untouched_source()}
    submissions = [Variant("text", name, "", text) for name, text in texts.items()]
    submissions += [
        Variant("text", path.stem, function, path.read_text(encoding="utf-8"))
        for path in right_answer_paths(assignment)[::every]
    ]

    # Run
    clauses = contract or ()
    named = {(name, clause.function) for clause in clauses for name in clause.mistakes}
    run = Run(Grader.of(assignment, fixtures, counterexamples=False), solution, named, cache)
    every_fate = run.fates([*submissions, *tried], jobs, progress)
    own, handout, *others = (fate.report for fate in every_fate if fate.report is not None)
    fates = every_fate[len(submissions) :]

    # Judge
    right_answers = {}
    for variant, report in zip(submissions[2:], others, strict=True):
        wrong = next((one for one in report.items if one.verdict != "passed" or one.hint or one.mistakes), None)
        failing = wrong and f"{wrong.item} is {wrong.verdict}: {wrong.message.partition(chr(10))[0]}"
        right_answers[variant.slug] = f"{variant.slug} is a right answer, but {failing}" if wrong else ""
    graded, not_tested = [clause for clause in clauses if clause.mistakes], list[str]()
    for clause in graded if is_whole else ():
        lost_on = {
            item
            for fate in fates
            if fate.variant.name in clause.mistakes and clause.is_about(fate.variant.function)
            for item in fate.lost_on
        }
        if lost_on.isdisjoint(clause.items):
            none = f"none of its mistakes ({', '.join(clause.mistakes)}) loses points on {', '.join(clause.items)}"
            not_tested.append(f"{clause.place} is not tested: {none}.")
    needless = marks(solution) if is_whole else {}
    for fate in fates:
        if fate.survived:
            needless.pop(fate.variant.line, None)

    # Report
    drafts = not_independent(assignment)  # functions whose cases and clauses are still to be added to
    mistakes = [fate for fate in fates if fate.variant.family == "mistake"]
    unnamed = [fate.variant.slug for fate in mistakes if fate.lost and fate.naming == "not"]
    open_mutants = [fate for fate in fates if fate.complaints and fate.variant.family != "mistake"]
    changed = [fate for fate in open_mutants if fate.variant.slug]
    pending = [fate for fate in open_mutants if fate.variant.function in drafts]  # which says nothing against it yet
    pending += [] if contract else [fate for fate in changed if fate not in pending]
    started = [item.item for item in handout.items if item.verdict != "missing"]
    complaints = [
        *(
            f"The solution fails {item.item}: {item.message.splitlines()[0]}"
            for item in own.items
            if item.verdict != "passed"
        ),
        *([f"The untouched handout is not told that it is unfinished in {', '.join(started)}."] if started else []),
        *stale_handout(assignment),
        *(told for fate in fates if fate not in pending for told in fate.complaints),
        *filter(None, right_answers.values()),
        *(contract_complaints(clauses, assignment, solution, every_variant, drafts) if contract else ()),
        *not_tested,
        *(
            f"Line {line} of the solution is marked as equivalent, but no change of it keeps all points: {reason}"
            for line, reason in needless.items()
        ),
    ]
    notes = [
        *missing(assignment, {variant.function for variant in every_variant if variant.family == "mistake"}),
        *([f"{UNNAMED}: {', '.join(unnamed)}."] if unnamed else ()),
        *(f"{clause.place} has no mistake yet." for clause in clauses if clause.is_open and clause.function in drafts),
        *(() if contract else [NO_CONTRACT.format(len(changed))]),
        *(told for fate in pending if contract or not fate.variant.slug for told in fate.complaints),
    ]
    counted = len(clauses), len(graded) - len(not_tested), sum(bool(clause.not_graded) for clause in clauses)
    return Exam(
        own,
        handout,
        tuple(fates),
        tuple(complaints),
        right_answers,
        clauses=counted if contract and is_whole else None,
        notes=tuple(notes),
        unmarked=tuple(fate.variant for fate in open_mutants if fate not in pending),
    )


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


# Run


class _Task(NamedTuple):
    """A variant to grade on these items.

    in_full     whether all cases count, not just the first that fails
    is_stored   whether the fixtures hold what it answers
    key         digest of all that the result depends on
    """

    variant: Variant
    items: tuple[Item, ...]
    in_full: bool
    is_stored: bool
    key: str


class Run:
    """What grades variants of a solution, and knows the results of earlier exams.

    A result depends on the engine and the machine, the items and their stored cases, what the graded functions use of
    the solution, and the text that the variant changes.
    """

    def __init__(
        self, grader: Grader, solution: str, named: Collection[tuple[str, str]] = (), cache: Path | None = None
    ) -> None:
        """Take over results in the folder `cache`; `named` are variants by name and function that clauses rest on."""
        assignment, fixtures = grader.assignment, grader.fixtures
        self.grader, self.solution, self.named = grader, solution, named
        try:
            self._engine = engine_digest(assignment)
        except PackageNotFoundError:  # the exam itself says what is missing
            cache, self._engine = None, ""
        self._cache = ResultCache.of(cache, assignment)
        self._definitions = {node.name: node for node in ast.parse(solution).body if isinstance(node, DEFINITION)}
        self._uses = {name: names_in(node) for name, node in self._definitions.items()}
        manifest = (assignment.folder / MANIFEST).read_bytes()
        self._files: dict[str, str] = json.loads(manifest)["files"]
        self._is_own = hashlib.sha256(manifest).hexdigest() == fixtures.sha256
        self._stored = json.loads(texts.read_bytes()) if (texts := assignment.folder / MISTAKES).is_file() else {}
        self._has_witness = {
            case.function for case in fixtures.cases if any(one.kind == "witness" for one in case.expected)
        }

    def fates(self, variants: Sequence[Variant], jobs: int, progress: Progress) -> list[Fate]:
        """Grade variants on the items that can feel them, but what is known from earlier exams."""
        first = {variant.function: variant.slug for variant in reversed(variants) if variant.family == "mistake"}
        tasks = [self._task(one, callers=first.get(one.function) == one.slug) for one in variants]
        known = self._cache.known({task.key for task in tasks})
        waiting = {task.key: task for task in tasks if task.key not in known}
        runs, done = sum(not task.is_stored for task in waiting.values()), count(1)

        def grade(task: _Task, sandbox: Sandbox) -> tuple[list[Any], bool]:
            graded = self._grade(task, sandbox)
            progress(next(done), len(waiting))
            return graded

        outcomes = in_sandboxes(grade, [*waiting.values()], min(jobs, 1 + runs // FOR_A_SERVER))
        fresh = dict(zip(waiting, outcomes, strict=True))
        rows = {key: json.dumps(row).encode() for key, (row, _) in fresh.items()}
        self._cache.keep({key: row for key, row in rows.items() if fresh[key][1]})
        known |= rows
        fates = []
        for variant, task in zip(variants, tasks, strict=True):
            lost_on, names, report = json.loads(known[task.key])
            own = {item.id: item.points for item in task.items if item.function == variant.function}
            fates.append(Fate(variant, lost_on, frozenset(names), own, report and from_json(report)))
        return fates

    def _task(self, variant: Variant, *, callers: bool) -> _Task:
        felt, text, used, function = {variant.function}, variant.source, "", variant.function
        in_full, is_stored = not {(variant.name, function), (variant.name, "")}.isdisjoint(self.named), False
        if variant.family == "text":
            felt, in_full = ({function} if function else {*self.grader.assignment.functions}), True
        elif variant.family == "mistake":
            text, in_full = text[len(self.solution) :], True
            felt = felt_by(text, self._uses, callers=callers)
            if self._is_own and felt == {function} - self._has_witness and not callers:
                is_stored = self._stored.get(variant.slug) == digest_of_mistake(self.solution, function, text)
            used = used_text(self.solution, {*felt, *names_in(ast.parse(text))})
        else:  # the function's lines; of a method those of the whole text
            if node := self._definitions.get(function):
                rest = len(self.solution.splitlines()) - (node.end_lineno or 0)
                lines = text.splitlines()
                text = "\n".join(lines[node.lineno - 1 : len(lines) - rest])
            used = used_text(self.solution, felt)
        items = tuple(item for item in self.grader.assignment.items if item.function in felt)
        cases = [self._files.get(f"{kind}/{item.id}.safetensors") for item in items for kind in ("public", "hidden")]
        parts = self._engine, self._is_own, used, text, in_full, is_stored, items, cases
        return _Task(variant, items, in_full, is_stored, digest("exam", *parts))

    def _grade(self, task: _Task, sandbox: Sandbox) -> tuple[list[Any], bool]:
        """Grade a variant: what it lost by item, its names, its report as data.

        Say also whether the result may be kept: what a busy machine may have cost is graded again.
        """
        if not task.in_full:
            return self._first_loss(task, sandbox)
        variant, submission = task.variant, Submission("selfcheck", "selfcheck.py", "", task.variant.source)
        if variant.family == "text":
            report = self.grader.grade(submission, sandbox, task.items)
            if report.status == "not_graded":
                raise GraderFault(f"{NOT_HELD}: {report.items[0].message}")
            return [{}, [], to_json(report)], all(item.verdict != "timed_out" for item in report.items)
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
        timed_out = [
            one for verdicts in grading.judged.values() for one in verdicts if one.result.verdict == "timed_out"
        ]
        return [lost, sorted(names), None], not timed_out

    def _cases_of(self, task: _Task) -> list[Case]:
        """List the cases of a task in the order in which they are run."""
        fixtures = self.grader.fixtures
        cases = {case.id: case for item in task.items for case in fixtures.of_item(item.id)}
        return [cases[name] for name in fixtures.requests(task.items)]

    def _first_loss(self, task: _Task, sandbox: Sandbox) -> tuple[list[Any], bool]:
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
        source, allowed = task.variant.source, assignment.only_packages
        program = Program(assignment.module, source, *given, assignment.needs_torch, allowed)
        try:
            outcomes = sandbox.run(program, [*requests.values()], load_timeout=assignment.load_timeout, enough=fails)
        except SandboxError as error:
            raise GraderFault(f"{NOT_HELD}: {error}") from error
        if outcomes[0].loading:
            failed.append(task.items[0].id)
        lost = {item.id: item.points / len(fixtures.of_item(item.id)) for item in task.items if item.id in failed}
        return [lost, [], None], all(outcome.status != "timed_out" for outcome in outcomes)


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


def felt_by(mistake: str, uses: Mapping[str, set[str]], *, callers: bool = True) -> set[str]:
    """Name what a mistake's text can change of the solution: what it defines or assigns, and what uses that.

    Where it defines one function alone, what uses that is left out unless `callers` are asked for.

    uses   each function and class of the solution → every name that it uses
    """
    written = ast.parse(mistake).body
    felt = {name for node in written for name in ([node.name] if isinstance(node, DEFINITION) else names_in(node))}
    while (callers or len(felt) > 1) and (more := {name for name, used in uses.items() if used & felt} - felt):
        felt |= more
    return felt


# Report


def stale_handout(assignment: Assignment) -> list[str]:
    """A complaint where the handout is not what `release` would make now; the copies in it need not be there at all."""
    try:
        made = handout_files(assignment)
    except ReleaseError as error:
        return [str(error)]
    folder = assignment.handout
    absent = tuple(f"{name}/" for name in COPIES if not (folder / name).exists())
    files = {name: data for name, data in made.items() if not name.startswith(absent) and not name.endswith(RECORD)}
    stale = [name for name in files if not (path := folder / name).is_file() or path.read_bytes() != files[name]]
    copies = [path for name in COPIES for path in (folder / name).rglob("*") if path.is_file() and path.name != RECORD]
    names = sorted(path.relative_to(folder).as_posix() for path in copies)
    strange = [name for name in names if name not in files and not any(map(is_ignored, name.split("/")))]
    complaints = [f"The handout is not what release makes ({_few(stale)}): run `autograder release`."] if stale else []
    more = [f"The handout holds what release did not put there ({_few(strange)}): take it away."] if strange else []
    return [*complaints, *more]


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def missing(assignment: Assignment, known: Collection[str]) -> list[str]:
    """What an addition to the assignment may still lack: nothing that grades wrongly, but what a course would miss.

    known   the functions that a mistake is known of
    """
    text, functions = text_of(assignment), assignment.functions
    listing = [item for item in assignment.items if not item.laws]
    return [
        *(
            f"No mistake is known of {name}: nobody who gets it wrong is told why."
            for name in functions
            if name not in known
        ),
        *(f"The assignment's text does not name {name}." for name in functions if name not in text),
        *(f"{item.id} has no public case: students cannot check it." for item in listing if not item.public),
        *(f"{item.id} has no hidden case: its public outputs earn it." for item in listing if not item.hidden),
        *todos(assignment.folder),
    ]


def todos(folder: Path) -> list[str]:
    """List what `# TODO: …` leaves to the author, with file and line."""
    return [
        f"{path.parent.name}/{path.name}:{number}: {found[1].strip()}"
        for path in (*sorted(folder.glob("*.py")), *sorted(folder.glob("*.toml")))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (found := TODO.search(line))
    ]
