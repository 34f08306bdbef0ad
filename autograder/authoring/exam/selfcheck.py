"""The grader's own exam: the solution earns all, the handout nothing, and whatever is wrong is caught.

Gather variants of the solution, grade each, judge what became of it:

- each mistake of the catalogue loses points on its own function and on no other, and is called by its own name;
- right answers in other styles lose nothing and get no hint;
- each mutant (a parameter ignored, a habit, an operator) loses points, or its line is marked;
- each sentence of the contract has a mistake that violates it and an item that catches it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from autograder.authoring.cache import ResultCache, texts_of
from autograder.authoring.catalogue import marks
from autograder.authoring.exam.contract import CONTRACT, contract_complaints, read_contract, text_of
from autograder.authoring.exam.fates import Fate, Progress, graded, is_tested, planned
from autograder.authoring.exam.mutants import Variant, mutants_of
from autograder.authoring.faults import todos
from autograder.authoring.fixtures.regenerate import catalogue_of, solution_source
from autograder.authoring.handout.release import handout_files, not_independent
from autograder.checking.handout import COPIES
from autograder.grading.assignment import Assignment
from autograder.grading.fixtures import Fixtures
from autograder.grading.grader import Grader
from autograder.sandbox.interpreter import run_in_subprocess
from autograder.sandbox.sandbox import Sandbox
from autograder.vocabulary.errors import ReleaseError
from autograder.vocabulary.files import RECORD, is_ignored

UNNAMED = "Caught but not named, so that students are not told their hints (no fault of the grading): {}."
UNKNOWN = "No mistake is known of {}: who gets one wrong reads its item's hint alone."
UNTESTED = "{} is not tested: none of its mistakes ({}) loses points on {}."
NO_CONTRACT = f"There is no {CONTRACT}: no sentence of the docstrings is held against the cases."
UNMARKED = " Of changed parameters and habits {} lose nothing and are not marked as equivalent."
NEEDLESS = "Line {} of the solution is marked as equivalent, but no change of it keeps all points: {}"
MOST_LISTED = 10  # of these, without a contract


@dataclass(frozen=True)
class Exam:
    """All that was found; `complaints` is empty where the kit may be released.

    fates       of the solution, the untouched handout, mistakes, mutants, right answers
    clauses     of the contract: all, tested by a mistake, not graded; None where the assignment has no contract,
                or only a sample was tried
    notes       what is missing without making a grade wrong
    unmarked    changes that lose nothing, at lines that are not marked: all, though notes list a few
    """

    fates: tuple[Fate, ...]
    complaints: tuple[str, ...] = ()
    clauses: tuple[int, int, int] | None = None
    notes: tuple[str, ...] = ()
    unmarked: tuple[Variant, ...] = ()

    def of(self, *families: str) -> list[Fate]:
        """What became of the variants of these families."""
        return [fate for fate in self.fates if fate.variant.family in families]

    def points(self, family: str) -> tuple[float, float]:
        """What the solution or the untouched handout earned, and of how much."""
        [fate] = self.of(family)
        return fate.points

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
    results = ResultCache.of(cache, assignment, Fate.__module__)
    with Sandbox() as sandbox:
        if not results.known([run := results.key("texts", fixtures.sha256, function, *texts_of(assignment))]):
            sandbox.start(torch=assignment.needs_torch)  # it gets warm while variants are made

        # Gather
        catalogue = known_mistakes(assignment)
        solution, contract, stale = solution_source(assignment), read_contract(assignment), stale_handout(assignment)
        wrong = [*catalogue, *mutants_of(solution, assignment.functions, driven(assignment))]
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
        fates = graded(grader, planned(grader, solution, variants, named, results), results, jobs, progress, sandbox)
        results.keep({run: b""})

    # Judge
    drafts = not_independent(assignment)  # functions whose cases and clauses are still to be added to
    mistakes = [fate for fate in fates if fate.variant.family == "mistake"]
    unnamed = [fate.variant.slug for fate in mistakes if fate.lost and fate.naming == "not"]
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
        *stale,
        *(contract_complaints(clauses, assignment, solution, wrong, drafts) if contract else ()),
        *(UNTESTED.format(c.place, ", ".join(c.mistakes), ", ".join(c.items)) for c in untested),
        *(NEEDLESS.format(line, reason) for line, reason in needless.items()),
    ]
    notes = [
        *missing(assignment, {variant.function for variant in wrong if variant.family == "mistake"}),
        *([UNNAMED.format(", ".join(unnamed))] if unnamed else ()),
        *(f"{clause.place} has no mistake yet." for clause in clauses if clause.is_open and clause.function in drafts),
        *(() if contract else [NO_CONTRACT + UNMARKED.format(len(changed)) * bool(changed)]),
        *(told for fate in listed for told in fate.complaints),
        *(
            [f"So do {len(changed) - MOST_LISTED} more: `--json` lists all as `unmarked`."]
            if len(changed) > MOST_LISTED
            else ()
        ),
    ]
    counts = len(clauses), len(bound) - len(untested), sum(bool(clause.not_graded) for clause in clauses)
    unmarked = tuple(fate.variant for fate in survivors)
    return Exam(tuple(fates), tuple(complaints), counts if contract and is_whole else None, tuple(notes), unmarked)


# Gather


def known_mistakes(assignment: Assignment) -> list[Variant]:
    """The catalogue, imported in a process of its own; each mistake stands below the solution."""
    solution = solution_source(assignment)
    rows = run_in_subprocess(catalogue_of, assignment.folder)
    return [Variant("mistake", slug, function, f"{solution}\n\n{text}", text) for slug, function, text in rows]


def driven(assignment: Assignment) -> list[str]:
    """List the functions of which no item judges the signature: drivers call them by place."""
    judged: dict[str, set[str]] = {item.function: set() for item in assignment.items if item.laws}
    for item in assignment.items:
        judged.get(item.function, set()).update(item.laws)
    return [name for name, laws in judged.items() if "signature" not in laws]


def right_answer_paths(assignment: Assignment) -> list[Path]:
    """Right answers in other styles; none where an assignment has no such folder."""
    return sorted((assignment.folder / "right_answers").glob("*.py"))


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
        *([UNKNOWN.format(", ".join(unknown))] if (unknown := [f for f in functions if f not in known]) else ()),
        *(f"The assignment's text does not name {f}." for f in functions if f not in text),
        *(f"{item.id} has no public case: students cannot check it." for item in listing if not item.public),
        *(f"{item.id} has no hidden case: its public outputs earn it." for item in listing if not item.hidden),
        *(todo.text for todo in todos(assignment.folder)),
    ]
