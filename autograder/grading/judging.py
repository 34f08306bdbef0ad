"""One case and what became of it → a verdict and a message; what kept all from being reached; where to start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autograder.grading.cases import Case
from autograder.grading.compare import Mismatch, compare
from autograder.grading.items import Item
from autograder.grading.remarks.hints import VALUES, is_of_numbers, may_share_a_cause, same_kind
from autograder.grading.remarks.wording import about_exception, about_mismatch, about_outcome, is_unfinished
from autograder.sandbox.calls import Outcome
from autograder.submissions.submission import Submission
from autograder.vocabulary.report import NOT_REACHED, CaseResult, Verdict

NOTHING_READ = f"{NOT_REACHED}: nothing to grade could be read."


@dataclass(frozen=True)
class Judged:
    """The verdict on one case; `mismatch` is what it returned and should not have."""

    case: Case
    result: CaseResult
    mismatch: Mismatch | None = None

    @property
    def passed(self) -> bool:
        """Whether nothing was wrong."""
        return self.result.verdict == "passed"


@dataclass(frozen=True)
class Judge:
    """What every case of a submission is judged with.

    load_failure   why the module could not be imported; "" where it could
    """

    module: str
    submission: Submission
    load_failure: str = ""

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
        return "\n".join(f"{note[:1].upper()}{note[1:]}." for note in notes)

    def _without_answer(self, case: Case, outcome: Outcome, timeout: float) -> Judged:
        verdict: Verdict = "raised" if outcome.status == "observed" else outcome.status
        if self.load_failure:
            return _judged(case, verdict, f"{NOT_REACHED}: {self.module}.py could not be imported.")
        message = about_outcome(case, outcome, timeout, self.submission.place)
        if verdict == "missing" or is_unfinished(outcome.raised):
            return self._missing(case, message)
        return _judged(case, verdict, message)

    def _missing(self, case: Case, message: str) -> Judged:
        """A function that is not there, or a stub still, unless a cell that may hold it could not be read."""
        if case.function in self.submission.unread:
            return _judged(case, "not_run", f"{NOT_REACHED}: its cell could not be read.")
        return _judged(case, "missing", message)


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
