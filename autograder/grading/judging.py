"""What became of the cases → a verdict on each, a result of each item; what kept all from being reached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from autograder.grading.cases import Case
from autograder.grading.compare import Mismatch, compare
from autograder.grading.fixtures import Fixtures
from autograder.grading.items import Item
from autograder.grading.remarks.hints import (
    VALUES,
    hint_of_called,
    hint_of_defaults,
    hint_of_failure,
    hint_of_hidden,
    hint_of_names,
    is_of_form,
    is_of_numbers,
    may_share_a_cause,
    same_kind,
)
from autograder.grading.remarks.reasons import explain, explains
from autograder.grading.remarks.updates import about_updates
from autograder.grading.remarks.wording import (
    about_exception,
    about_mismatch,
    about_outcome,
    is_unfinished,
    which_case,
)
from autograder.sandbox.calls import OUT_OF_TIME, Outcome
from autograder.submissions.names import defines_one
from autograder.submissions.submission import Function, Submission
from autograder.vocabulary.report import NOT_REACHED, CaseResult, ItemResult, Verdict

NOT_RUN_ORDER: tuple[Verdict, ...] = ("timed_out", "crashed", "out_of_memory", "raised", "missing", "failed", "not_run")
NAMED: tuple[Verdict, ...] = ("failed", "raised")  # work that is not there, or never ended, is no known mistake
LATE = f"{NOT_REACHED}: {OUT_OF_TIME.detail}."
COUNTS_ONCE = "This is as it should be, and counts once"
NOTHING_READ = f"{NOT_REACHED}: nothing to grade could be read."


@dataclass(frozen=True)
class Judged:
    """The verdict on one case; `mismatch` is what it returned and should not have.

    withheld   nothing is wrong in this case, and it counts once the function returns right values: see `withheld`
    """

    case: Case
    result: CaseResult
    mismatch: Mismatch | None = None
    withheld: bool = False

    @property
    def passed(self) -> bool:
        """Whether nothing was wrong."""
        return self.result.verdict == "passed"


@dataclass(frozen=True)
class Judge:
    """What every case of a submission is judged with.

    load_failure   why the module could not be imported; "" where it could
    renamed        as in Assignment
    """

    module: str
    submission: Submission
    load_failure: str = ""
    renamed: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def judge(self, case: Case, outcome: Outcome, timeout: float) -> Judged:
        """The verdict on a case that ran, or was to run."""
        if outcome.observation is None:
            return self._without_answer(case, outcome, timeout)
        mismatch = compare(case.expected, outcome.observation)
        if mismatch is None:
            return _judged(case, "passed", "")
        if mismatch.rung == "error" and _is_stub(mismatch.observed):
            return self._missing(case, f"{case.function} is not implemented yet.")
        return _judged(case, "failed", about_mismatch(case, mismatch), mismatch)

    def causes(self, judged: Sequence[Judged]) -> str:
        """What kept cases from being reached, told once for all of them; "" where all were."""
        if self.load_failure:
            return self.load_failure
        lost = {one.case.function for one in judged if one.result.verdict == "not_run"}
        notes = dict.fromkeys(note for name, note in self.submission.unread.items() if name in lost)
        notes |= {OUT_OF_TIME.detail: None} if any(one.result.message == LATE for one in judged) else {}
        return "\n".join(f"{note[:1].upper()}{note[1:]}." for note in notes)

    def _without_answer(self, case: Case, outcome: Outcome, timeout: float) -> Judged:
        verdict: Verdict = "raised" if outcome.status == "observed" else outcome.status
        if self.load_failure:
            return _judged(case, verdict, f"{NOT_REACHED}: {self.module}.py could not be imported.")
        if outcome.detail == OUT_OF_TIME.detail:
            return _judged(case, verdict, LATE)
        message = about_outcome(case, outcome, timeout, self.submission.place)
        if verdict == "missing" or is_unfinished(outcome.raised):
            return self._missing(case, message)
        return _judged(case, verdict, message)

    def _missing(self, case: Case, message: str) -> Judged:
        """A function that is not there, or a stub still, unless a cell that may hold it could not be read."""
        if case.function in self.submission.unread:
            return _judged(case, "not_run", f"{NOT_REACHED}: its cell could not be read.")
        for old, (new, since) in self.renamed.items():
            if new == case.function and defines_one(self.submission.source.encode("utf-8", "replace"), [old]):
                message += f" Since {since} {old} is called {new}: rename yours."
        return _judged(case, "missing", message)


def withheld(judged: Mapping[str, Sequence[Judged]]) -> dict[str, list[Judged]]:
    """The same verdicts, where points are earned by values: cases that forgive them count beside right ones alone.

    A function that returns zeros, one constant or its argument, and refuses what it should refuse, has the right form
    and no right value: what passed of it fails then. Right values are two different numbers in passed cases, other than
    those that zeros or an argument would pass; or those of all cases that judge values.
    """
    found = {item: list(own) for item, own in judged.items()}
    for function in {one.case.function for own in judged.values() for one in own}:
        own = [one for cases in judged.values() for one in cases if one.case.function == function]
        of_values = [one for one in own if one.case.judged_numbers]
        right = {
            number for one in of_values if one.passed for every in one.case.judged_numbers.values() for number in every
        }
        if all(one.passed for one in of_values) or len(right) > 1:
            continue
        counts = f"{COUNTS_ONCE} {function} is right in a case that zeros, or an argument of its own, would not pass."
        for cases in found.values():
            for place, one in enumerate(cases):
                if one.passed and one.case.function == function and not one.case.judged_numbers:
                    cases[place] = replace(_judged(one.case, "failed", counts), withheld=True)
    return found


@dataclass(frozen=True)
class ItemJudge:
    """What the items of a submission are told with.

    judged     item → the verdicts on its cases
    outcomes   case → what became of it
    functions  of the module as it was handed out, and of the student's
    """

    items: Sequence[Item]
    fixtures: Fixtures
    judged: Mapping[str, Sequence[Judged]]
    outcomes: Mapping[str, Outcome]
    functions: tuple[Mapping[str, Function], Mapping[str, Function]]

    def result(self, item: Item, names: tuple[str, ...] = ()) -> ItemResult:
        """Points, the first failure in words and what to think about; `names` are the known mistakes that it is."""
        own = self.judged[item.id]
        results = tuple(one.result for one in own)
        points = round(item.points * sum(one.passed for one in own) / len(own), 2)
        seconds = round(sum(self.outcomes[one.case.id].seconds for one in own), 4)
        failing = [index for index, one in enumerate(own) if not one.passed]
        if not failing:
            return _result(item, points, "passed", "", "", results, seconds=seconds)
        before = next((index for index in failing if not own[index].withheld), failing[0])
        first = own[before]
        if first.withheld:
            start = wrong_item(self.items, item, self.judged)
            return _result(item, points, "failed", first.result.message, start, results, seconds=seconds)
        verdict, message, hint = _worst(results), first.result.message, ""
        listed = self.items
        simpler = simpler_item(listed, item, self.judged, first.mismatch)
        slugs = names if first.result.verdict in NAMED else ()
        updates = _of_updates(first, self.outcomes)
        message = f"{message}\n{updates}" if updates else message
        if slugs:
            hint = hint_of_names(slugs, self.fixtures.hints)
        elif default := hint_of_defaults([one.case for one in own if not one.passed], *self.functions):
            hint = default
        elif called := called_item(listed, item, self.judged):
            hint = hint_of_called(called)
        elif first.result.visibility == "hidden" and first.result.verdict in NAMED:
            elsewhere = simpler_item(listed, item, self.judged, first.mismatch, of_hidden=True)
            hint = hint_of_hidden(item, first.mismatch, elsewhere, first.case.values)
        elif first.mismatch is not None:
            reason = self._reason(own)
            message = f"{message}\n{reason}" if reason else message
            later, told = before > 0 or explains(reason), bool(updates)
            hint = hint_of_failure(item, first.case, first.mismatch, simpler, later=later, told=told)
        is_elsewhere = bool(simpler) and first.mismatch is not None and is_of_form(first.mismatch)
        is_elsewhere |= first.result.verdict == "not_run"
        message = message if is_elsewhere else f"{which_case(first.case, before)}{message}"
        results = tuple(replace(one, message=message) if one == first.result else one for one in results)
        return _result(item, points, verdict, message, hint, results, slugs, seconds)

    def _reason(self, judged: Sequence[Judged]) -> str:
        """What can be seen of a mistake that has no name."""
        own, function = {one.case.id for one in judged}, judged[0].case.function
        relatives = [case for case in self.fixtures.cases if case.function == function]
        answers = [(case, self.outcomes[case.id].observation) for case in relatives if case.id in self.outcomes]
        seen = [(case, found) for case, found in answers if found is not None]
        of_item = [(case, found) for case, found in seen if case.id in own]
        others = [(case, found) for case, found in seen if case.id not in own]
        return explain(of_item, self.fixtures.hints, relatives, others)


def simpler_item(
    items: Sequence[Item],
    item: Item,
    judged: Mapping[str, Sequence[Judged]],
    mismatch: Mismatch | None,
    *,
    of_hidden: bool = False,
) -> str:
    """The item of the function before this one that fails in a public case and in the same way; "" where there is none.

    Of a wrong gradient: the first item whose values are wrong, wherever it stands, since they have wrong gradients.
    Of an item that fails in hidden cases alone: that one too, or else the first other one, unless just one of the two
    is about arguments that should be refused.
    """
    failing = [
        (other.id, found.mismatch)
        for other in items
        if other.function == item.function
        and (found := next((one for one in judged.get(other.id, ()) if not one.passed), None)) is not None
        and found.result.visibility == "public"
    ]
    wrong = next((other for other, found in failing if found is not None and found.rung in VALUES), "")
    if wrong and wrong != item.id and is_of_numbers(mismatch) and (of_hidden or not _is_value(mismatch)):
        return wrong
    if of_hidden:
        return next((other for other, found in failing if may_share_a_cause(found, mismatch)), "")
    earlier = [one.id for one in items[: [one.id for one in items].index(item.id)]]
    return next((other for other, found in failing if other in earlier and same_kind(found, mismatch)), "")


def wrong_item(items: Sequence[Item], item: Item, judged: Mapping[str, Sequence[Judged]]) -> str:
    """The hint where an item's cases are right and count for nothing yet: the first item whose answers are wrong."""
    own = (other.id for other in items if other.function == item.function)
    wrong = (name for name in own if any(not one.passed and not one.withheld for one in judged.get(name, ())))
    return next((f"{name} fails too: start there." for name in wrong), "")


def _is_value(mismatch: Mismatch | None) -> bool:
    return mismatch is not None and mismatch.rung in VALUES


def called_item(items: Sequence[Item], item: Item, judged: Mapping[str, Sequence[Judged]]) -> Item | None:
    """The first item of a function that an answer may call whose values fail in a public case."""
    for other in items if item.calls else ():
        found = next((one for one in judged.get(other.id, ()) if not one.passed), None)
        if other.function not in item.calls or found is None or found.result.visibility == "hidden":
            continue
        if found.mismatch is None or found.mismatch.rung in VALUES:
            return other
    return None


def load_failure(module: str, submission: Submission, outcomes: Sequence[Outcome]) -> str:
    """What kept the module from loading; "" where it loaded.

    Where it loaded once, and not again after a process had ended, nothing is told that its code chose: it may say by
    the clock what a hidden case was asked before.
    """
    failed = next((outcome for outcome in outcomes if outcome.loading), None)
    if failed is None:
        return ""
    name = f"{module}.py"
    if not outcomes[0].loading:
        return f"{name} was imported, and could not be imported again after a call had ended its process."
    if failed.raised is not None:
        how = about_exception("Importing it", failed.raised, submission.place)
        return f"{name} could not be imported. {how}"
    if failed.exceeded:
        return f"{name} could not be imported: importing it {failed.exceeded}."
    if failed.status == "timed_out":
        return f"{name} had not finished importing in time. Does code at its top level train a model or wait?"
    return f"{name} could not be imported: it ended the Python process ({failed.detail})."


def _judged(case: Case, verdict: Verdict, message: str, mismatch: Mismatch | None = None) -> Judged:
    return Judged(case, CaseResult(case.id, case.visibility, verdict, message), mismatch)


def _is_stub(error: object) -> bool:
    """Whether an error that a probe caught is the stub's own."""
    types = error.get("types") if isinstance(error, dict) else None
    return isinstance(types, list) and types[:1] == ["NotImplementedError"]


def not_graded(item: Item, reason: str) -> ItemResult:
    """The grader's own fault: no points and no zero."""
    return _result(item, None, "not_graded", reason, "", ())


def nothing_to_grade(item: Item, cases: Iterable[Case]) -> ItemResult:
    """A zero, for nothing could be read."""
    lost = tuple(CaseResult(case.id, case.visibility, "missing", NOTHING_READ) for case in cases)
    return _result(item, 0.0, "missing", NOTHING_READ, "", lost)


def _of_updates(first: Judged, outcomes: Mapping[str, Outcome]) -> str:
    """What the weights of a public case's run say, update by update."""
    seen = outcomes[first.case.id].observation if first.result.visibility == "public" else None
    return "" if seen is None or first.mismatch is None else about_updates(first.case, seen)


def _worst(results: Sequence[CaseResult]) -> Verdict:
    verdicts = {result.verdict for result in results}
    return next(verdict for verdict in NOT_RUN_ORDER if verdict in verdicts)


def _result(
    item: Item,
    points: float | None,
    verdict: Verdict,
    message: str,
    hint: str,
    cases: tuple[CaseResult, ...],
    mistakes: tuple[str, ...] = (),
    seconds: float = 0.0,
) -> ItemResult:
    return ItemResult(
        item=item.id,
        function=item.function,
        title=item.title,
        points=points,
        max_points=item.points,
        verdict=verdict,
        mistakes=mistakes,
        message=message,
        hint=hint,
        seconds=seconds,
        cases=cases,
    )
