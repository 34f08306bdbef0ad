"""What becomes of each variant of a solution: what it is graded on, what it lost there, what it was called.

A mistake is graded on all items of its function, for its name rests on all. What it answers there is stored with the
cases: where its text is the one that they were made with, it is judged as it is stored; the first of each function runs
again, on what uses the function too. A mutant is done with once a case fails, unless a clause names it. Results are
kept by content.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from autograder.authoring.cache import (
    MISTAKES,
    ResultCache,
    digest,
    digest_of_mistake,
    names_in,
    names_of,
    used_text,
)
from autograder.authoring.catalogue import parsed
from autograder.authoring.exam.contract import Clause
from autograder.authoring.exam.mutants import Variant
from autograder.grading.assignment import Item
from autograder.grading.compare import compare
from autograder.grading.fixtures import MANIFEST, Case, encode, plain_lines
from autograder.grading.grader import Grader, Grading
from autograder.grading.hints import NAMED
from autograder.sandbox.calls import Observation, Outcome, Program, Raised, Request, Returned
from autograder.sandbox.sandbox import Sandbox, in_sandboxes
from autograder.submissions.submission import Submission
from autograder.vocabulary.errors import GraderFault, SandboxError

NOT_HELD = "The exam could not be held"
FOR_A_SERVER = 16  # texts to grade, for which one server more is worth its start
DEFINITION = ast.FunctionDef | ast.ClassDef

Progress = Callable[[int, int], None]
# Points lost on an item, if any case failed; the names of a mistake there; of a whole submission, the verdict, the
# message's first line, whether it has a hint or name
Row = tuple[float | None, Sequence[str], str, str, bool]


@dataclass(frozen=True)
class Fate:
    """What is to become of a variant, and what became of it.

    items       that it is graded on
    in_full     whether all cases count, or it is done with once one fails
    is_stored   whether the fixtures hold what it answers
    keys        item → digest of all that its result depends on: one for those that are judged together, or named
    lost_on     item → points that it lost there; where it was done with early, of cases that were not reached as well
    named       every name that the answers of a mistake were given
    judged      of a whole submission
    """

    variant: Variant
    items: tuple[Item, ...] = ()
    in_full: bool = True
    is_stored: bool = False
    keys: Mapping[str, str] = field(default_factory=dict)
    lost_on: Mapping[str, float] = field(default_factory=dict)
    named: Collection[str] = ()
    judged: Sequence[tuple[str, str, str, bool]] = ()

    @property
    def lost(self) -> float:
        """Points lost on its own function."""
        return round(sum(self.lost_on.get(item.id, 0) for item in self._own), 2)

    @property
    def spilt(self) -> float:
        """Points lost on other functions."""
        return round(sum(self.lost_on.values()) - self.lost, 2)

    @property
    def points(self) -> tuple[float, float]:
        """Points earned on the items that it is graded on, and of how many."""
        most = sum(item.points for item in self.items)
        return round(most - sum(self.lost_on.values()), 2), round(most, 2)

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
        variant, slug, judged = self.variant, self.variant.slug, self.judged
        match variant.family:
            case "solution":
                return [f"The solution fails {item}: {why}" for item, verdict, why, _ in judged if verdict != "passed"]
            case "handout":
                started = ", ".join(item for item, verdict, *_ in judged if verdict != "missing")
                caught = "does a driver or the solution catch NotImplementedError? Let it pass"
                told = f"The untouched handout is not told that it is unfinished in {started}: {caught}."
                return [told] if started else []
            case "answer":
                wrong = [f"{item} is {told}: {why}" for item, told, why, hinted in judged if told != "passed" or hinted]
                return [f"{slug} is a right answer, but {reason}" for reason in wrong[:1]]
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


def planned(
    grader: Grader,
    solution: str,
    variants: Sequence[Variant],
    named: Collection[tuple[str, str]],
    results: ResultCache,
) -> list[Fate]:
    """Say of each variant what it is graded on, the items that can feel it, and on what its result depends.

    That is the engine and the machine, the items and their cases, what the graded functions use of the solution, and
    the text that the variant changes; of mistakes, which are named, what all others answer as well.

    named   the mutants, by name and function, that clauses rest on
    """
    assignment, fixtures = grader.assignment, grader.fixtures
    uses = {node.name: names_in(node) for node in ast.parse(solution).body if isinstance(node, DEFINITION)}
    manifest = (assignment.folder / MANIFEST).read_bytes()
    is_own = hashlib.sha256(plain_lines(manifest)).hexdigest() == fixtures.sha256  # not another term's set
    answers = json.loads(path.read_bytes()) if (path := assignment.folder / MISTAKES).is_file() and is_own else {}
    judged_here = {case.function for case in fixtures.cases if any(one.kind == "witness" for one in case.expected)}
    first = {one.function: one.slug for one in reversed(variants) if one.family == "mistake"}
    fates = []

    @functools.cache
    def held(item: Item, is_named: bool) -> str:
        cases = fixtures.of_item(item.id)
        return digest(item, encode(cases if is_named else [replace(case, mistakes={}) for case in cases]))

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
        used = used_text(solution, names) if names else grader.others  # for which a whole submission may be meant
        key = results.key("exam", used, text, in_full, is_stored)
        groups = defaultdict[str, list[Item]](list)  # judged together; a mutant that need but lose may on any
        for item in items:
            groups[item.function if variant.is_whole else "" if in_full else item.id].append(item)
        keys = dict[str, str]()
        for group in groups.values():
            cases = [held(item, variant.family == "mistake") for item in group]
            keys |= dict.fromkeys((item.id for item in group), digest(key, cases))
        fates.append(Fate(variant, items, in_full, is_stored, keys))
    return fates


def graded(
    grader: Grader, fates: Sequence[Fate], results: ResultCache, jobs: int, progress: Progress, sandbox: Sandbox
) -> list[Fate]:
    """Grade these variants, but for what is known from earlier exams, in that sandbox and in as many more as pay."""
    keys = {key for fate in fates for key in fate.keys.values()}
    known = {key: json.loads(result) for key, result in results.known(keys).items()}  # key → item → row
    waiting = dict[tuple[str, ...], Fate]()
    for fate in fates:
        is_done = not fate.in_full and any(lost is not None for lost, *_ in _rows(fate, known).values())
        if left := () if is_done else tuple(item for item in fate.items if fate.keys[item.id] not in known):
            waiting.setdefault(tuple(fate.keys[item.id] for item in left), replace(fate, items=left))
    runs, done = sum(not fate.is_stored for fate in waiting.values()), count(1)

    def grade(fate: Fate, sandbox: Sandbox) -> tuple[dict[str, Row], Collection[str]]:
        graded = _graded(grader, fate, sandbox)
        progress(next(done), len(waiting))
        return graded

    kept, tasks = set[str](), [*waiting.values()]
    if tasks:
        sandbox.start(torch=grader.assignment.needs_torch)
    outcomes = in_sandboxes(grade, tasks, min(jobs, 1 + runs // FOR_A_SERVER), first=sandbox) if tasks else []
    for fate, (rows, lasting) in zip(tasks, outcomes, strict=True):
        for item, row in rows.items():
            known.setdefault(fate.keys[item], {})[item] = row
        kept |= {fate.keys[item] for item in lasting}
    results.keep({key: json.dumps(known[key]).encode() for key in kept})
    return [_ended(fate, _rows(fate, known)) for fate in fates]


def _rows(fate: Fate, known: Mapping[str, Mapping[str, Row]]) -> dict[str, Row]:
    """Collect what is known of a variant, by item."""
    return {item: known[key][item] for item, key in fate.keys.items() if item in known.get(key, ())}


def _ended(fate: Fate, rows: Mapping[str, Row]) -> Fate:
    """Say what became of a variant that has these rows."""
    lost_on = {item: lost for item, (lost, *_) in rows.items() if lost is not None}
    named = {name for _, names, *_ in rows.values() for name in names}
    return replace(fate, lost_on=lost_on, named=named, judged=[(item, *row[2:]) for item, row in rows.items()])


def _graded(grader: Grader, fate: Fate, sandbox: Sandbox) -> tuple[dict[str, Row], Collection[str]]:
    """Grade a variant: a row for each item; the items whose rows last, which are none where a case timed out.

    Nor does that of one whose failed cases were not reached, or would have counted beside right values of another.
    """
    submission = Submission("selfcheck", "selfcheck.py", "", fate.variant.source)
    rows, lasting = dict[str, Row](), set[str]()
    if fate.variant.is_whole:
        report = grader.grade(submission, sandbox, fate.items)
        if report.status == "not_graded":
            raise GraderFault(f"{NOT_HELD}: {report.items[0].message}")
        for one in report.items:
            lost = None if one.verdict == "passed" else round(one.max_points - (one.points or 0), 2)
            line, hinted = one.message.partition("\n")[0], bool(one.hint or one.mistakes)
            rows[one.item] = lost, [], one.verdict, line, hinted
        return rows, () if any(one.verdict == "timed_out" for one in report.items) else rows.keys()
    by_id = {case.id: case for item in fate.items for case in grader.fixtures.of_item(item.id)}
    runner = Shortened(sandbox, [by_id[name] for name in grader.fixtures.requests(fate.items)], fate)
    try:
        with np.errstate(all="ignore"):
            grading = Grading(grader, replace(submission, functions={}), runner, fate.items)
    except SandboxError as error:
        raise GraderFault(f"{NOT_HELD}: {error}") from error
    for item in fate.items:
        verdicts = grading.judged[item.id]
        failed = [one for one in verdicts if not one.passed]
        lost = round(item.points - round(item.points * (1 - len(failed) / len(verdicts)), 2), 2)
        first = next((one for one in failed if not one.withheld), None)
        is_named = fate.variant.family == "mistake" and first and first.result.verdict in NAMED
        names = sorted({*grading.names.get(item.id, ())} if is_named else ())
        rows[item.id] = lost if failed else None, names, "", "", False
        if not failed or any(not one.withheld and one.result.verdict != "not_run" for one in failed):
            lasting.add(item.id)
    every = [one.result.verdict for verdicts in grading.judged.values() for one in verdicts]
    return rows, () if "timed_out" in every else lasting


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
    written = parsed(mistake).body
    felt = {name for node in written for name in ([node.name] if isinstance(node, DEFINITION) else names_in(node))}
    while (callers or len(felt) > 1) and (more := {name for name, used in uses.items() if used & felt} - felt):
        felt |= more
    return felt
