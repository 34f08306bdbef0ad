"""What was found and what should be: of a fact as a sentence, in the stored case's words; of numbers, side by side."""

from __future__ import annotations

import itertools
import re

from autograder.grading.cases import Case, Expectation
from autograder.grading.compare import Difference, Mismatch
from autograder.vocabulary.text import visible

MAX_DEPTH = 8
MAX_SEEN = 200
MORE_DIGITS = (7, 10, 13, 17)  # as many as it takes to tell two numbers apart
LONG = 20  # characters of an entry that is not written twice in a row
LISTED = ("a list", "a dictionary")  # kinds of what has several parts
ONE = ("a tensor", "a number", "a NumPy array")  # kinds of what is one part
NO_KIND = ("nothing", "NoneType")  # in the words of probes
_ASIDE = re.compile(r", \{expected\} times here| \(\{expected\}(?: in all)?\)")  # what a claim says as well without


def about_fact(expectation: Expectation, observed: object, *, reveal: bool) -> str:
    """What should be and what is; of a hidden case neither.

    Where nothing was seen of what the fact is about, words that tell how it was done would be untrue.
    """
    if not reveal:
        return f"Look at this: {expectation.what}." if expectation.diagnosis else _hidden(expectation)
    if is_unseen(observed) and "{observed}" not in expectation.message:
        return f"Nothing was seen of this: {expectation.what}."
    wanted, seen = plain(expectation.value), visible(plain(observed), MAX_SEEN)
    return expectation.message.replace("{expected}", wanted).replace("{observed}", seen).replace("….", "…")


def is_unseen(observed: object) -> bool:
    """Whether a probe saw nothing of what a fact is about."""
    return observed is None or observed == []


def unreadable(mismatch: Mismatch) -> str:
    """Of values in whose place something else was found, where the reason follows."""
    found = visible(mismatch.returned.type, 80)
    return f"{mismatch.expectation.what} cannot be read: in its place there is something else ({found})."


def not_returned(case: Case, expectation: Expectation, kind: object, *, reveal: bool) -> str:
    """`kind`: what came back in place of several parts, where a probe says so."""
    names = case.params.get("returns", ())
    if not isinstance(kind, str) or kind in NO_KIND or len(names) < 2:
        return f"{case.function} returned nothing where {expectation.what} should be."
    came = f"this came back: {visible(kind, 80)}" if reveal else "something else came back"
    return f"{case.function} should return {_several(case)}, but {came}."


def _several(case: Case) -> str:
    """The parts that a case asks for, of their kind if it judges that: `2 values (low, high)`, `a list of 2 (…)`."""
    names = case.params.get("returns", ())
    kind = next((one.value for one in case.expected if one.name == "kind"), f"{len(names)} values")
    return f"{kind}{f' of {len(names)}' if kind in LISTED else ''} ({', '.join(names)})"


def without_gradient(case: Case, mismatch: Mismatch, *, reveal: bool) -> str:
    """Why there is no gradient where something came back that can have none, or in another number of parts; else ""."""
    kind, names = mismatch.observed, case.params.get("returns", ())
    if not isinstance(kind, str) or kind in ONE:
        return not_returned(case, mismatch.expectation, kind, reveal=reveal) if kind in ONE and len(names) > 1 else ""
    if len(names) > 1 and kind in (f"a tuple of {len(names)}", *LISTED):
        return ""
    asked = "one tensor" if len(names) < 2 else _several(case)
    came = f"{visible(kind, 80)} came back" if reveal else "something else came back"
    return f"{mismatch.expectation.what} does not exist: {case.function} should return {asked}, but {came}."


def _hidden(expectation: Expectation) -> str:
    """The claim of a fact without what was expected and what was found: `Model is built with the sizes …`."""
    if "{" not in expectation.message:
        return expectation.message
    claim = expectation.message.split("; ")[0]
    if expectation.kind == "witness" or "{observed}" in claim:
        return f"In a hidden case this is not as it should be: {expectation.what}."
    claim = _ASIDE.sub("", claim).replace("{expected}", "…").rstrip(".")
    return f"In a hidden case this does not hold: {claim}{'' if claim.endswith('…') else '.'}"


def plain(value: object, depth: int = MAX_DEPTH) -> str:
    """JSON as a sentence shows it; what is nested deeper than `depth` is left out."""
    if isinstance(value, list | dict) and not depth:
        return "…"
    if isinstance(value, list):
        entries = _counted([plain(entry, depth - 1) for entry in value])
        return "[" + ", ".join(entries) + "]" if entries else "nothing"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {plain(entry, depth - 1)}" for key, entry in value.items()) + "}"
    if isinstance(value, float):
        return f"{value:.10g}" if value % 1 else str(value)
    return "nothing" if value is None else str(value)


def _counted(entries: list[str]) -> list[str]:
    """Entries, where long ones that are equal and stand in a row are counted: `3 times: a rollout, its rewards`."""
    groups = [(entry, len(list(group))) for entry, group in itertools.groupby(entries)]
    told = [
        [f"{number} times: {entry}"] if number > 1 and len(entry) > LONG else [entry] * number
        for entry, number in groups
    ]
    return [entry for group in told for entry in group]


def table(mismatch: Mismatch) -> list[str]:
    """A headline, one line for each of the first places that differ, and how many more there are."""
    axes = "[" + " ".join(mismatch.expectation.axes) + "]" if mismatch.expectation.axes else ""
    rows = [(axes, "yours", "expected"), *(_row(difference) for difference in mismatch.first)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [f"  {a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows]
    more = mismatch.differing - len(mismatch.first)
    return lines + ([f"  … {more} more"] if more > 0 else [])


def _row(difference: Difference) -> tuple[str, str, str]:
    index = "[" + " ".join(str(n) for n in difference.index) + "]" if difference.index else ""
    observed, expected = difference.observed + 0.0, difference.expected + 0.0  # which makes 0 of -0
    pairs = [(f"{observed:.{digits}g}", f"{expected:.{digits}g}") for digits in MORE_DIGITS]
    return index, *next((pair for pair in pairs if pair[0] != pair[1]), pairs[0])
