"""The grader's own exam: the solution earns all, the handout nothing, and whatever is wrong is caught.

Gather variants of the solution, grade each, judge what became of it:

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
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    names_of,
    used_text,
)
from autograder.authoring.catalogue import marks
from autograder.authoring.exam.contract import CONTRACT, Clause, contract_complaints, read_contract, text_of
from autograder.authoring.exam.mutants import Variant, mutants_of
from autograder.authoring.fixtures.regenerate import import_generator, solution_source
from autograder.authoring.handout.release import handout_files, not_independent
from autograder.checking.handout import COPIES
from autograder.grading.assignment import Assignment, Item, load_assignment
from autograder.grading.compare import compare
from autograder.grading.fixtures import MANIFEST, Case, Fixtures, plain_lines
from autograder.grading.grader import Grader, Grading
from autograder.grading.hints import NAMED
from autograder.sandbox.calls import Observation, Outcome, Program, Raised, Request, Returned
from autograder.sandbox.interpreter import run_in_subprocess
from autograder.sandbox.sandbox import Sandbox, in_sandboxes
from autograder.submissions.submission import Submission
from autograder.vocabulary.errors import GraderFault, ReleaseError, SandboxError
from autograder.vocabulary.files import RECORD, is_ignored
from autograder.vocabulary.report import Report, from_json, to_json

NOT_HELD = "The exam could not be held"
UNNAMED = "Caught but not named, so that students are not told their hints (no fault of the grading): {}."
UNTESTED = "{} is not tested: none of its mistakes ({}) loses points on {}."
NO_CONTRACT = (
    f"There is no {CONTRACT}: no sentence of the docstrings is held against the cases. Of changed parameters and "
    "habits {} lose nothing and are not marked as equivalent."
)
NEEDLESS = "Line {} of the solution is marked as equivalent, but no change of it keeps all points: {}"
MOST_LISTED = 10  # of these, without a contract
FOR_A_SERVER = 16  # texts to grade, for which one server more is worth its start
TODO = "# TODO: "
DEFINITION = ast.FunctionDef | ast.ClassDef

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Fate:
    """What is to become of a variant, and what became of it.

    items       that it is graded on
    in_full     whether all cases count, or it is done with once one fails
    is_stored   whether the fixtures hold what it answers
    key         digest of all that the result depends on
    lost_on     item → points that it lost there; where it was done with early, of cases that were not reached as well
    named       every name that its answers were given
    report      of a whole submission
    """

    variant: Variant
    items: tuple[Item, ...] = ()
    in_full: bool = True
    is_stored: bool = False
    key: str = ""
    lost_on: Mapping[str, float] = field(default_factory=dict)
    named: Collection[str] = ()
    report: Report | None = None

    @property
    def lost(self) -> float:
        """Points lost on its own function."""
        return round(sum(self.lost_on.get(item.id, 0) for item in self._own), 2)

    @property
    def spilt(self) -> float:
        """Points lost on other functions."""
        return round(sum(self.lost_on.values()) - self.lost, 2)

    @property
    def of(self) -> float:
        """The points of its function."""
        return sum(item.points for item in self._own)

    @property
    def _own(self) -> list[Item]:
        return [item for item in self.items if item.function == self.variant.function]

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
        return "not" if not self.named else "rightly" if self.variant.slug in self.named else "wrongly"

    @property
    def complaints(self) -> list[str]:
        """What should not be. A mutant need but lose; a mistake nowhere else, and under no other name."""
        variant, slug, items = self.variant, self.variant.slug, self.report.items if self.report else ()
        match variant.family:
            case "solution":
                wrong = [item for item in items if item.verdict != "passed"]
                return [f"The solution fails {item.item}: {item.message.partition(chr(10))[0]}" for item in wrong]
            case "handout":
                started = ", ".join(item.item for item in items if item.verdict != "missing")
                return [f"The untouched handout is not told that it is unfinished in {started}."] if started else []
            case "answer":
                wrong = [item for item in items if item.verdict != "passed" or item.hint or item.mistakes]
                why = [f"{item.item} is {item.verdict}: {item.message.partition(chr(10))[0]}" for item in wrong]
                return [f"{slug} is a right answer, but {reason}" for reason in why[:1]]
            case "mistake":
                sentences = {
                    f"{slug} is not caught.": self.lost == 0,
                    f"{slug} loses {self.spilt:g} points on other functions than {variant.function}.": self.spilt,
                    f"{slug} is called {', '.join(sorted(self.named))}.": self.naming == "wrongly",
                }
                return [sentence for sentence, holds in sentences.items() if holds]
        where = f"line {variant.line}, {variant.function}{f' ({variant.name})' if slug else ''}"
        is_open = self.survived and not variant.reason
        change = f"{variant.before} → {variant.after}"
        return [f"This change of the solution loses nothing. {where}: {change}"] if is_open else []


@dataclass(frozen=True)
class Exam:
    """All that was found; `complaints` is empty where the kit may be released.

    fates       of the solution, the untouched handout, mistakes, mutants, right answers
    clauses     of the contract: all, tested by a mistake, not graded; None where the assignment has no contract,
                or only a sample was tried
    notes       what is missing without making a grade wrong
    unmarked    changes that lose nothing, at lines that are not marked, where a complaint says so
    """

    fates: tuple[Fate, ...]
    complaints: tuple[str, ...] = ()
    clauses: tuple[int, int, int] | None = None
    notes: tuple[str, ...] = ()
    unmarked: tuple[Variant, ...] = ()

    def of(self, *families: str) -> list[Fate]:
        """What became of the variants of these families."""
        return [fate for fate in self.fates if fate.variant.family in families]

    def points(self, family: str) -> tuple[float | None, float]:
        """What the solution or the untouched handout earned, and of how much."""
        (report,) = (fate.report for fate in self.of(family) if fate.report)
        return report.points, report.max_points

    @property
    def mistakes(self) -> list[Fate]:
        """What became of the catalogue."""
        return self.of("mistake")

    @property
    def mutants(self) -> list[Fate]:
        """What became of the mutants."""
        return self.of("parameter", "habit", "operator")

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
    """Grade the solution, the handout, every mistake, every mutant and every right answer in another style.

    every      of mistakes and mutants the first of each function and family and each so many-th after it, of right
               answers likewise
    function   whose mistakes and mutants alone are tried, and whose items of right answers; "" for those of all
    cache      the folder where results are kept, to be taken over while nothing has changed
    """
    # Gather
    solution, contract = solution_source(assignment), read_contract(assignment)
    wrong = [*known_mistakes(assignment), *mutants_of(solution, assignment.functions)]
    places = defaultdict[tuple[str, str], Iterator[int]](count)  # among those of a function and a family
    sample = [one for one in wrong if next(places[one.function, one.family]) % every == 0]
    answers = right_answer_paths(assignment)[::every]
    variants = [
        Variant("solution", "solution", "", solution),
        Variant("handout", "handout", "", assignment.untouched_source()),
        *(one for one in sample if function in ("", one.function)),
        *(Variant("answer", path.stem, function, path.read_text(encoding="utf-8")) for path in answers),
    ]

    # Grade
    clauses, is_whole = contract or (), every == 1 and not function
    named = {(name, clause.function) for clause in clauses for name in clause.mistakes}
    grader = Grader.of(assignment, fixtures, counterexamples=False)
    fates = graded(
        grader, planned(grader, solution, variants, named), ResultCache.of(cache, assignment), jobs, progress
    )

    # Judge
    drafts = not_independent(assignment)  # functions whose cases and clauses are still to be added to
    unnamed = [fate.variant.slug for fate in fates if fate.lost and fate.naming == "not" and not fate.variant.line]
    survivors = [fate for fate in fates if fate.variant.line and fate.complaints]
    changed = [fate for fate in survivors if fate.variant.slug and not contract]  # a clause would ask for them
    pending = [fate for fate in survivors if fate.variant.function in drafts or fate in changed]
    listed = [fate for fate in pending if fate not in changed[MOST_LISTED:]]
    bound = [clause for clause in clauses if clause.mistakes]
    untested = [clause for clause in bound if is_whole and not is_tested(clause, fates)]
    kept = {fate.variant.line for fate in fates if fate.survived}
    needless = {line: reason for line, reason in marks(solution).items() if is_whole and line not in kept}
    complaints = [
        *(told for fate in fates if fate not in pending for told in fate.complaints),
        *stale_handout(assignment),
        *(contract_complaints(clauses, assignment, solution, wrong, drafts) if contract else ()),
        *(UNTESTED.format(c.place, ", ".join(c.mistakes), ", ".join(c.items)) for c in untested),
        *(NEEDLESS.format(line, reason) for line, reason in needless.items()),
    ]
    notes = [
        *missing(assignment, {variant.function for variant in wrong if variant.family == "mistake"}),
        *([UNNAMED.format(", ".join(unnamed))] if unnamed else ()),
        *(f"{clause.place} has no mistake yet." for clause in clauses if clause.is_open and clause.function in drafts),
        *(() if contract else [NO_CONTRACT.format(len(changed))]),
        *(told for fate in listed for told in fate.complaints),
        *([f"So do {len(changed) - MOST_LISTED} more."] if len(changed) > MOST_LISTED else ()),
    ]
    counts = len(clauses), len(bound) - len(untested), sum(bool(clause.not_graded) for clause in clauses)
    unmarked = tuple(fate.variant for fate in survivors if fate not in pending)
    return Exam(tuple(fates), tuple(complaints), counts if contract and is_whole else None, tuple(notes), unmarked)


# Gather


def known_mistakes(assignment: Assignment) -> list[Variant]:
    """The catalogue, imported in a process of its own; each mistake stands below the solution."""
    solution = solution_source(assignment)
    rows = run_in_subprocess(_catalogue, assignment.folder)
    return [Variant("mistake", slug, function, f"{solution}\n\n{text}", text) for slug, function, text in rows]


def _catalogue(folder: Path) -> list[tuple[str, str, str]]:
    mistakes = import_generator(load_assignment(folder))["mistakes"].MISTAKES
    return [(mistake.slug, mistake.function, mistake.source) for mistake in mistakes]


def right_answer_paths(assignment: Assignment) -> list[Path]:
    """Right answers in other styles; none where an assignment has no such folder."""
    return sorted((assignment.folder / "right_answers").glob("*.py"))


# Grade


def planned(
    grader: Grader, solution: str, variants: Sequence[Variant], named: Collection[tuple[str, str]]
) -> list[Fate]:
    """Say of each variant what it is graded on, the items that can feel it, and on what its result depends.

    That is the engine and the machine, the items and their stored cases, what the graded functions use of the solution,
    and the text that the variant changes.

    named   the mutants, by name and function, that clauses rest on
    """
    assignment, fixtures = grader.assignment, grader.fixtures
    uses = {node.name: names_in(node) for node in ast.parse(solution).body if isinstance(node, DEFINITION)}
    manifest = (assignment.folder / MANIFEST).read_bytes()
    is_own = hashlib.sha256(plain_lines(manifest)).hexdigest() == fixtures.sha256  # not another term's set
    digests: Mapping[str, str] = json.loads(manifest)["files"]
    answers = json.loads(path.read_bytes()) if (path := assignment.folder / MISTAKES).is_file() and is_own else {}
    judged_here = {case.function for case in fixtures.cases if any(one.kind == "witness" for one in case.expected)}
    first = {one.function: one.slug for one in reversed(variants) if one.family == "mistake"}
    engine, fates = engine_digest(assignment), []
    for variant in variants:
        function, text = variant.function, variant.text
        felt, names, is_stored = {function}, {function}, False
        in_full = not variant.line or not {(variant.name, function), (variant.name, "")}.isdisjoint(named)
        if variant.family == "mistake":
            callers = first[function] == variant.slug
            felt = felt_by(text, uses, callers=callers)
            names = felt | names_of(text)
            if felt == {function} - judged_here and not callers:
                is_stored = answers.get(variant.slug) == digest_of_mistake(solution, function, text)
        elif variant.is_whole:
            felt, names, text = {function} if function else {*assignment.functions}, set(), variant.source
        items = tuple(item for item in assignment.items if item.function in felt)
        cases = [digests.get(f"{kind}/{item.id}.safetensors") for item in items for kind in ("public", "hidden")]
        used = used_text(solution, names) if names else ""
        key = digest("exam", engine, is_own or fixtures.sha256, used, text, in_full, is_stored, items, cases)
        fates.append(Fate(variant, items, in_full, is_stored, key))
    return fates


def graded(grader: Grader, fates: Sequence[Fate], results: ResultCache, jobs: int, progress: Progress) -> list[Fate]:
    """Grade these variants, but for what is known from earlier exams."""
    known = results.known({fate.key for fate in fates})
    waiting = {fate.key: fate for fate in fates if fate.key not in known}
    runs, done = sum(not fate.is_stored for fate in waiting.values()), count(1)

    def grade(fate: Fate, sandbox: Sandbox) -> tuple[bytes, bool]:
        result, timed_out = _graded(grader, fate, sandbox)
        progress(next(done), len(waiting))
        return json.dumps(result).encode(), timed_out

    outcomes = in_sandboxes(grade, [*waiting.values()], min(jobs, 1 + runs // FOR_A_SERVER))
    fresh = dict(zip(waiting, outcomes, strict=True))
    results.keep({key: result for key, (result, timed_out) in fresh.items() if not timed_out})  # of a busy machine
    known |= {key: result for key, (result, _) in fresh.items()}
    rows = (json.loads(known[fate.key]) for fate in fates)
    return [
        replace(fate, lost_on=lost_on, named=names, report=report and from_json(report))
        for fate, (lost_on, names, report) in zip(fates, rows, strict=True)
    ]


def _graded(grader: Grader, fate: Fate, sandbox: Sandbox) -> tuple[list[Any], bool]:
    """Grade a variant: what it lost by item, its names, the report of a whole submission; whether a case timed out."""
    submission = Submission("selfcheck", "selfcheck.py", "", fate.variant.source)
    if fate.variant.is_whole:
        report = grader.grade(submission, sandbox, fate.items)
        if report.status == "not_graded":
            raise GraderFault(f"{NOT_HELD}: {report.items[0].message}")
        return [{}, [], to_json(report)], any(item.verdict == "timed_out" for item in report.items)
    by_id = {case.id: case for item in fate.items for case in grader.fixtures.of_item(item.id)}
    runner = Shortened(sandbox, [by_id[name] for name in grader.fixtures.requests(fate.items)], fate)
    try:
        with np.errstate(all="ignore"):
            grading = Grading(grader, replace(submission, functions={}), runner, fate.items)
    except SandboxError as error:
        raise GraderFault(f"{NOT_HELD}: {error}") from error
    lost, names = {}, set[str]()
    for item in fate.items:
        verdicts = grading.judged[item.id]
        if failed := [one for one in verdicts if not one.passed]:
            lost[item.id] = round(item.points - round(item.points * (1 - len(failed) / len(verdicts)), 2), 2)
            first = next((one for one in failed if not one.withheld), None)
            names |= {*grading.names.get(item.id, ())} if first and first.result.verdict in NAMED else set()
    every = [one.result.verdict for verdicts in grading.judged.values() for one in verdicts]
    return [lost, sorted(names), None], "timed_out" in every


class Shortened(NamedTuple):
    """A sandbox that runs no more of these cases than a variant needs: none where its answers are stored."""

    sandbox: Sandbox
    cases: Sequence[Case]
    fate: Fate
    layers: tuple[str, ...] = ()

    def run(self, program: Program, requests: Sequence[Request], *, load_timeout: float) -> list[Outcome]:
        """Return the outcomes; those after the first that is wrong, if that is enough, are `not_run`."""
        if self.fate.is_stored:
            return [stored_outcome(case, self.fate.variant.slug) for case in self.cases]
        cases = iter(() if self.fate.in_full else self.cases)

        def enough(request: Request, outcome: Outcome) -> bool:
            case, seen = next(cases, None), outcome.observation
            return case is not None and (seen is None or compare(case.expected, seen) is not None)

        return self.sandbox.run(program, requests, load_timeout=load_timeout, enough=enough)


def stored_outcome(case: Case, slug: str) -> Outcome:
    """What a mistake does in a case as the case says, which holds what differs from the truth.

    All else is as expected, but for an example of a student's own.
    """
    wrong = case.mistakes.get(slug, Observation({}, {}))
    if isinstance(wrong, Raised):
        return Outcome("observed", raised=wrong)
    returned, facts = dict[str, Returned](), dict[str, Any]()
    for one in sorted(case.expected, key=lambda one: not one.like):
        names = [name for name in (one.like, one.name) if name]
        if one.kind == "error":
            facts |= {one.name: {"types": [one.value["type"]], "message": " ".join(one.value.get("mentions", ()))}}
        elif one.array is None:  # what must be as another thing is as that is, wrong or not
            facts |= dict.fromkeys(names, wrong.facts.get(one.like, one.value))
        else:
            dtype, graph = one.dtype or one.array.dtype.name, bool(one.attached)
            right = Returned("tensor", "", dtype, one.array.shape, graph, one.array)
            returned |= dict.fromkeys(names, wrong.returned.get(one.like, right))
    return Outcome("observed", Observation(returned | {**wrong.returned}, facts | {**wrong.facts}))


def is_tested(clause: Clause, fates: Sequence[Fate]) -> bool:
    """Whether a mistake that violates the clause loses points on one of its items."""
    own = [fate for fate in fates if fate.variant.name in clause.mistakes and clause.is_about(fate.variant.function)]
    return not all(fate.lost_on.keys().isdisjoint(clause.items) for fate in own)


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


# The handout, and what may be missing


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
        *(f"No mistake is known of {f}: nobody who gets it wrong is told why." for f in functions if f not in known),
        *(f"The assignment's text does not name {f}." for f in functions if f not in text),
        *(f"{item.id} has no public case: students cannot check it." for item in listing if not item.public),
        *(f"{item.id} has no hidden case: its public outputs earn it." for item in listing if not item.hidden),
        *todos(assignment.folder),
    ]


def todos(folder: Path) -> list[str]:
    """List what `# TODO: …` leaves to the author, with file and line."""
    return [
        f"{path.parent.name}/{path.name}:{number}: {line.partition(TODO)[2].strip()}"
        for path in (*sorted(folder.glob("*.py")), *sorted(folder.glob("*.toml")))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if TODO in line
    ]
