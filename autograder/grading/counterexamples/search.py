"""The search: draw small trials, run them in the sandbox, keep the simplest that goes wrong, and make it simpler.

All that is random is keyed by the submission and the item, and what limits the search is counted in calls, so the
same submission gets the same words on every machine and at any number of jobs. What is left of the submission's time
besides is for calls that wait: usual searches come nowhere near it. No stored case has a part in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from autograder.grading.cases import Case
from autograder.grading.compare import Mismatch, compare
from autograder.grading.counterexamples.drawing import Drawing
from autograder.grading.counterexamples.shrinking import simpler
from autograder.grading.counterexamples.telling import told
from autograder.grading.counterexamples.trials import Trial
from autograder.grading.items import Item
from autograder.grading.remarks.hints import PUBLIC_PASS
from autograder.grading.remarks.wording import UNTOLD, Place, in_file
from autograder.sandbox.calls import Outcome, Program, Raised, Request
from autograder.vocabulary.errors import GraderFault
from autograder.vocabulary.report import ItemResult

DRAWN = 24  # trials of an item
TRIED = 12  # simpler ones in a round
ROUNDS = 6
CALLS = 600  # of one submission, over all items

Kind = tuple[str, ...]


class Runner(Protocol):
    """What runs a program on requests."""

    def run(self, program: Program, requests: Sequence[Request], *, load_timeout: float) -> list[Outcome]:
        """The outcome of each request, in order."""


@dataclass
class _Chase:
    """The search for one item; `best` is the simplest trial so far that went wrong, and `kind` is how.

    A simpler trial that goes wrong in another way shows another fault, which may be no fault of a usual call at all.
    """

    item: Item
    best: Trial | None = None
    kind: Kind = ()
    over: bool = False
    seen: set[tuple[object, ...]] = field(default_factory=set)


@dataclass
class Search:
    """One submission's search.

    key       the submission's hash
    place     says where a line of the graded text was written
    calls     how many it has left
    """

    drawing: Drawing
    program: Program
    runner: Runner
    load_timeout: float
    key: str
    place: Place = in_file
    calls: int = CALLS

    def counterexamples(self, items: Sequence[Item]) -> dict[str, str]:
        """Item → the text of its counterexample, where one was found."""
        known = self.drawing.items()
        chases = [_Chase(item) for item in items if item.id in known]
        self._round([(c, self.drawing.trial(c.item.id, self.key, n)) for c in chases for n in range(DRAWN)])
        for _ in range(ROUNDS):
            open_chases = [chase for chase in chases if chase.best is not None and not chase.over]
            asked = [(chase, trial) for chase in open_chases for trial in self._next(chase)]
            if not asked:
                break
            self._round(asked)
        texts = {chase.item.id: self._confirmed(chase) for chase in chases if chase.best is not None}
        return {item: text for item, text in texts.items() if text}

    def _next(self, chase: _Chase) -> list[Trial]:
        """The simpler trials to run next, none twice; where there are none the chase is over."""
        assert chase.best is not None
        fresh = [trial for trial in simpler(chase.best) if _identity(trial) not in chase.seen][:TRIED]
        chase.seen |= {_identity(trial) for trial in fresh}
        chase.over = not fresh
        return fresh

    def _round(self, asked: Sequence[tuple[_Chase, Trial]]) -> None:
        """Run these, as far as the calls reach, and let each chase keep the simplest that went wrong."""
        ready = [(chase, trial, case) for chase, trial in asked if (case := trial.as_case(chase.item)) is not None]
        ready = ready[: self.calls]
        outcomes = self._run([(chase.item, case) for chase, _, case in ready])
        found: dict[str, list[tuple[Trial, Kind]]] = {}
        for (chase, trial, case), outcome in zip(ready, outcomes, strict=True):
            chase.over = chase.over or is_lost(outcome)
            if (fault := wrong(case, outcome)) is not None:
                found.setdefault(chase.item.id, []).append((trial, _kind(fault)))
        for chase in {id(chase): chase for chase, _, _ in ready}.values():
            _keep_simplest(chase, found.get(chase.item.id, []))

    def _confirmed(self, chase: _Chase) -> str:
        """The text, if the trial goes wrong where nothing was called before it, as it will when it is pasted."""
        trial = chase.best
        case = None if trial is None else trial.as_case(chase.item)
        if trial is None or case is None or not self.calls:
            return ""
        outcome = self._run([(chase.item, case)])[0]
        found = None if is_lost(outcome) else wrong(case, outcome)
        return "" if found is None or _kind(found) != chase.kind else told(trial, case, found, self.place)

    def _run(self, calls: Sequence[tuple[Item, Case]]) -> list[Outcome]:
        if not calls:
            return []
        requests = [case.request(item) for item, case in calls]
        outcomes = self.runner.run(self.program, requests, load_timeout=self.load_timeout)
        self.calls -= len(outcomes)
        return outcomes


def _keep_simplest(chase: _Chase, found: Sequence[tuple[Trial, Kind]]) -> None:
    """Let a chase keep the simplest trial of its kind, or, of the trials that were drawn, of the most frequent kind."""
    if chase.over:
        chase.best = None
    elif found:
        chase.kind = chase.kind or Counter(kind for _, kind in found).most_common(1)[0][0]
        same = [trial for trial, kind in found if kind == chase.kind]
        chase.best = min([*([chase.best] if chase.best else []), *same], key=lambda trial: trial.cost)


def _kind(fault: Mismatch | Raised) -> Kind:
    """What goes wrong: the exception's type, or the rung and the name of what breaks it."""
    return ("raised", fault.types[0]) if isinstance(fault, Raised) else (fault.rung, fault.expectation.name)


def wrong(case: Case, outcome: Outcome) -> Mismatch | Raised | None:
    """What is wrong with an answer; None where nothing is, or where nothing is written yet."""
    if outcome.raised is not None:
        return None if outcome.raised.types[0] == "NotImplementedError" else outcome.raised
    return None if outcome.observation is None else compare(case.expected, outcome.observation)


class Finder(Protocol):
    """What looks for counterexamples of one submission."""

    def counterexamples(self, items: Sequence[Item]) -> dict[str, str]:
        """Item → the text of its counterexample, where one was found."""


def with_counterexamples(
    results: Sequence[ItemResult], items: Sequence[Item], finder: Finder | None, *, unseen: bool
) -> list[ItemResult]:
    """The results, with a counterexample where one is found: what it shows need not be looked for elsewhere.

    unseen   one is looked for where an item fails in hidden cases alone; else wherever it fails
    """
    wanted = [one for one in results if one.verdict in ("failed", "raised") and (one.fails_unseen or not unseen)]
    chased = {result.item for result in wanted if _is_chased(result)}
    if finder is None or not chased:
        return list(results)
    try:
        found = finder.counterexamples([item for item in items if item.id in chased])
    except (GraderFault, OSError):  # the points are known already, and hold without an example
        return list(results)
    return [_with(result, found.get(result.item, "")) for result in results]


def _with(result: ItemResult, counterexample: str) -> ItemResult:
    if not counterexample:
        return result
    hint, message = "" if result.hint == PUBLIC_PASS else result.hint, result.message.replace(UNTOLD, "")
    return replace(result, counterexample=counterexample, hint=hint, message=message)


def _is_chased(result: ItemResult) -> bool:
    """Whether wrong answers and exceptions are all that went wrong: what never ends would not end here either."""
    return {case.verdict for case in result.cases} <= {"passed", "failed", "raised"}


def is_lost(outcome: Outcome) -> bool:
    """Whether the call ended otherwise than by an answer or an exception."""
    return outcome.status not in ("observed", "raised")


def _identity(trial: Trial) -> tuple[object, ...]:
    inputs = tuple((name, array.dtype.name, array.shape, array.tobytes()) for name, array in trial.inputs.items())
    return trial.probe, repr(trial.params), inputs
