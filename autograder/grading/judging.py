"""Give each case that ran, or was to run, a verdict; say what kept cases from being reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from autograder.grading.compare import Mismatch, compare
from autograder.grading.fixtures import Case
from autograder.grading.wording import about_exception, about_mismatch, about_outcome, is_unfinished
from autograder.sandbox.calls import OUT_OF_TIME, Outcome
from autograder.submissions.names import defines_one
from autograder.submissions.submission import Submission
from autograder.vocabulary.report import NOT_REACHED, RIGHT_FORM, CaseResult, Verdict

WORST_FIRST: tuple[Verdict, ...] = ("timed_out", "crashed", "out_of_memory", "raised", "missing", "failed", "not_run")
LATE = f"{NOT_REACHED}: {OUT_OF_TIME.detail}."


@dataclass(frozen=True)
class Judged:
    """The verdict on one case; `mismatch` is what it returned and should not have.

    withheld   nothing is wrong in this case, and it counts once the function returns right values: see `withhold`
    """

    case: Case
    result: CaseResult
    mismatch: Mismatch | None = None
    withheld: bool = False

    @classmethod
    def of(cls, case: Case, verdict: Verdict, message: str, mismatch: Mismatch | None = None) -> Judged:
        """Give a case this verdict."""
        return cls(case, CaseResult(case.id, case.visibility, verdict, message), mismatch)

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
        """Judge a case that ran, or was to run."""
        if outcome.observation is not None:
            mismatch = compare(case.expected, outcome.observation)
            if mismatch is None:
                return Judged.of(case, "passed", "")
            types = mismatch.observed.get("types") if isinstance(mismatch.observed, dict) else None
            if mismatch.rung == "error" and isinstance(types, list) and types[:1] == ["NotImplementedError"]:
                return self._unfinished(case, mismatch.observed.get("message"))
            return Judged.of(case, "failed", about_mismatch(case, mismatch), mismatch)
        verdict: Verdict = "raised" if outcome.status == "observed" else outcome.status
        if self.load_failure:
            return Judged.of(case, verdict, f"{NOT_REACHED}: {self.module}.py could not be imported.")
        if outcome.detail == OUT_OF_TIME.detail:
            return Judged.of(case, verdict, LATE)
        message = about_outcome(case, outcome, timeout, self.submission.place)
        if outcome.raised is not None and is_unfinished(outcome.raised):
            return self._unfinished(case, outcome.raised.message)
        return self._missing(case, message) if verdict == "missing" else Judged.of(case, verdict, message)

    def _unfinished(self, case: Case, stub: Any) -> Judged:
        """Judge a call that came to a stub, which a handout's names in its exception: the function's own or another."""
        if stub == case.function or stub not in self.submission.functions:
            return self._missing(case, f"{case.function} is not implemented yet.")
        other = stub if case.visibility == "public" else "another function"
        return Judged.of(case, "raised", f"{case.function} calls {other}, which is not implemented yet.")

    def _missing(self, case: Case, message: str) -> Judged:
        """Judge a function that is not there, or a stub still, unless a cell that may hold it could not be read."""
        if case.function in self.submission.unread:
            return Judged.of(case, "not_run", f"{NOT_REACHED}: its cell could not be read.")
        for old, (new, since) in self.renamed.items():
            if new == case.function and defines_one(self.submission.source.encode("utf-8", "replace"), [old]):
                message += f" Since {since} {old} is called {new}: rename yours."
        return Judged.of(case, "missing", message)

    def causes(self, judged: Sequence[Judged]) -> str:
        """Say what kept cases from being reached, once for all of them; "" where all were."""
        if self.load_failure:
            return self.load_failure
        lost = {one.case.function for one in judged if one.result.verdict == "not_run"}
        notes = dict.fromkeys(note for name, note in self.submission.unread.items() if name in lost)
        notes |= {OUT_OF_TIME.detail: None} if any(one.result.message == LATE for one in judged) else {}
        return "\n".join(f"{note[:1].upper()}{note[1:]}." for note in notes)


def load_failure(module: str, submission: Submission, outcomes: Sequence[Outcome]) -> str:
    """Say what kept the module from loading; "" where it loaded.

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


def withhold(judged: Mapping[str, Sequence[Judged]]) -> dict[str, list[Judged]]:
    """Let cases that forgive values count beside right ones alone: item → its verdicts.

    A function that returns zeros, one constant or its argument, and refuses what it should refuse, has the right form
    and no right value: what passed of it fails then. Right values are two different numbers in passed cases, other than
    those that zeros or an argument would pass; or those of all cases that judge values. A text beside a number counts
    as one, unless all cases have it.
    """
    by_function: dict[str, list[Judged]] = {}
    for one in (one for verdicts in judged.values() for one in verdicts):
        by_function.setdefault(one.case.function, []).append(one)
    empty = set()  # functions without a right value
    for function, verdicts in by_function.items():
        of_values = [one for one in verdicts if one.case.judged_numbers]
        values = [frozenset().union(*one.case.judged_numbers.values()) for one in of_values]
        seen = frozenset().union(*(each for one, each in zip(of_values, values, strict=True) if one.passed))
        telling = {each for each in seen if isinstance(each, float) or not all(each in other for other in values)}
        if not all(one.passed for one in of_values) and len(telling) < 2:
            empty.add(function)

    def counted(one: Judged) -> Judged:
        if not one.passed or one.case.function not in empty or one.case.judged_numbers:
            return one
        message = f"{RIGHT_FORM} {one.case.function} is right in a case where zeros, or its argument, would be wrong."
        return replace(Judged.of(one.case, "failed", message), withheld=True)

    return {item: [counted(one) for one in verdicts] for item, verdicts in judged.items()}
