"""Mismatch → sentences a student can act on.

Of a hidden case no value is told, neither an expected one nor one that the student's code chose: a message, a type's
name or a shape could carry the inputs out.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from autograder.grading.cases import Case, Expectation
from autograder.grading.compare import Difference, Mismatch
from autograder.sandbox.calls import Outcome
from autograder.sandbox.observation import Raised, Returned
from autograder.vocabulary.text import visible

MAX_MESSAGE = 2_000
NEAR_MISS = 1e-3
MAX_DEPTH = 8
NOT_SHOWN = "(not shown)"
REFUSED = "Graded code runs in a sandbox that refuses files, new processes and the network; the answer needs none."
SIGNS_OF_REFUSAL = ("Operation not permitted", "Permission denied", "Read-only file system", "Parent directory ")
BUILT_IN = frozenset(
    name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)
)


def about_mismatch(case: Case, mismatch: Mismatch) -> str:
    """What differs, where, and what was allowed."""
    reveal = case.visibility == "public"
    lines = [_sentence(case, mismatch, reveal=reveal)]
    if mismatch.first and reveal:
        lines += _table(mismatch)
    lines += [_diagnosis(expectation, observed, reveal=reveal) for expectation, observed in mismatch.diagnoses[:2]]
    return visible("\n".join(lines), MAX_MESSAGE, newlines=True)


def about_outcome(case: Case, outcome: Outcome, timeout: float) -> str:
    """Why there is nothing to compare."""
    function, reveal = case.function, case.visibility == "public"
    if outcome.exceeded:
        return f"{function} {visible(outcome.exceeded, 200)}."
    match outcome.status:
        case "missing":
            return f"{function} is not defined."
        case "timed_out":
            return f"{function} had not finished after {timeout:g} seconds. Is there a loop that never ends?"
        case "out_of_memory":
            return f"{function} asked for more memory than it may have.{_place(outcome.raised, reveal=reveal)}"
        case "crashed":
            return f"{function} ended the Python process: {visible(outcome.detail, 200)}."
        case "not_run":
            return f"Not run: {visible(outcome.detail, 200)}."
    return about_exception(function, outcome.raised, reveal=reveal)


def about_exception(subject: str, raised: Raised | None, *, reveal: bool) -> str:
    """The exception's type and the number of the student's line; text and code too where the inputs may be seen."""
    if raised is None:
        return f"{subject} could not be called."
    if raised.types[0] == "NotImplementedError":
        return f"{subject} is not implemented yet."
    text = f": {visible(raised.message, 300)}" if reveal and raised.message else ""
    refused = f" {REFUSED}" if _is_refusal(raised, reveal=reveal) else ""
    return f"{subject} raised {_type_name(raised.types, reveal=reveal)}{text}.{refused}{_place(raised, reveal=reveal)}"


def _is_refusal(raised: Raised, *, reveal: bool) -> bool:
    """Whether this may be how the sandbox says no; of a hidden case only the type is asked, which is told anyway.

    torch makes a RuntimeError of it where a file cannot be written.
    """
    return "OSError" in raised.types or (reveal and any(sign in raised.message for sign in SIGNS_OF_REFUSAL))


def _type_name(types: Sequence[object], *, reveal: bool) -> str:
    """The most derived type; of a hidden case the most derived that Python brings along."""
    names = [name for name in types if isinstance(name, str) and (reveal or name in BUILT_IN)]
    return visible(names[0], 80) if names else "an exception"


def _place(raised: Raised | None, *, reveal: bool) -> str:
    if raised is None or raised.line is None:
        return ""
    code = f"\n  {visible(raised.code, 120)}" if raised.code and reveal else ""
    return f"\nLine {raised.line} of your file:{code}" if code else f" Line {raised.line} of your file."


def _sentence(case: Case, mismatch: Mismatch, *, reveal: bool) -> str:
    expectation, returned = mismatch.expectation, mismatch.returned
    match mismatch.rung:
        case "returned":
            return f"{case.function} returned nothing where {expectation.what} should be."
        case "tensor":
            return _not_a_tensor(expectation, returned, reveal=reveal)
        case "dtype":
            if not reveal and returned.array is None:
                return f"{expectation.what} has a dtype other than {expectation.dtype}."
            return f"{expectation.what} has dtype {visible(returned.dtype, 40)}, but should be {expectation.dtype}."
        case "shape":
            if not reveal:
                return f"{expectation.what} has a shape other than {named_shape(expectation)}."
            shape = visible(str(list(returned.shape)), 120)
            return f"{expectation.what} has shape {shape}, but should be {named_shape(expectation)}."
        case "finite" | "values":
            return f"{_header(expectation, returned)}\n{_how_many(mismatch)}{_near_miss(mismatch)}"
        case "graph":
            return _graph(expectation)
        case "gradient":
            return _gradient(mismatch)
        case "purity":
            return f"{case.function} changed its argument {expectation.what}. Compute something new instead."
        case "error":
            return _error(expectation, mismatch.observed, reveal=reveal)
        case "fact":
            return _diagnosis(expectation, mismatch.observed, reveal=reveal)


def _not_a_tensor(expectation: Expectation, returned: Returned, *, reveal: bool) -> str:
    if returned.kind == "tensor":
        return f"{expectation.what} is a tensor whose values cannot be read (too large, or not dense)."
    if not reveal:
        return f"{expectation.what} is not a torch.Tensor."
    return f"{expectation.what} should be a torch.Tensor, but is of type {visible(returned.type, 80)}."


def named_shape(expectation: Expectation) -> str:
    """The expected shape with the names of its axes: `[batch=4 trial=8]`."""
    sizes = () if expectation.array is None else expectation.array.shape
    return "[" + " ".join(f"{axis}={size}" for axis, size in zip(expectation.axes, sizes, strict=False)) + "]"


def _header(expectation: Expectation, returned: Returned) -> str:
    return f"{expectation.what}   {returned.dtype}{named_shape(expectation)}"


def _how_many(mismatch: Mismatch) -> str:
    allowed = mismatch.expectation.rtol
    place = f", all at {mismatch.shared[0]} {mismatch.shared[1]}" if mismatch.shared else ""
    tolerance = f" (allowed: {allowed:g} relative)" if allowed else ""
    if mismatch.total == 1:
        return f"its value differs{tolerance}"
    return f"{mismatch.differing} of {mismatch.total} values differ{place}{tolerance}"


def _near_miss(mismatch: Mismatch) -> str:
    if mismatch.relative is None or not mismatch.relative <= NEAR_MISS:
        return ""
    return "\nalmost right: look at constants, divisors and precision"


def _graph(expectation: Expectation) -> str:
    if expectation.attached:
        return f"{expectation.what} has the right value but carries no graph: nothing could be learned from it."
    return f"{expectation.what} should not require a gradient."


def _gradient(mismatch: Mismatch) -> str:
    expectation, returned = mismatch.expectation, mismatch.returned
    if returned.kind != "tensor":
        return f"{expectation.what} does not exist: the graph is cut."
    if mismatch.first and all(value.observed == 0 for value in mismatch.first):
        return f"{expectation.what} is 0 where it should not be.\n{_how_many(mismatch)}"
    return f"{_header(expectation, returned)}\n{_how_many(mismatch)}{_near_miss(mismatch)}"


def _error(expectation: Expectation, observed: object, *, reveal: bool) -> str:
    wanted = expectation.value["type"]
    if not isinstance(observed, dict):
        return f"{expectation.what} should raise {wanted}, but raised nothing."
    types = observed.get("types")
    types = types if isinstance(types, list) else []
    if wanted not in types:
        return f"{expectation.what} should raise {wanted}, but raised {_type_name(types, reveal=reveal)}."
    mentions = " and ".join(repr(text) if reveal else NOT_SHOWN for text in expectation.value.get("mentions", ()))
    return f"{expectation.what} should raise {wanted} and name {mentions}, but its text does not."


def _diagnosis(expectation: Expectation, observed: object, *, reveal: bool) -> str:
    if expectation.diagnosis and not reveal:
        return f"Look at this: {expectation.what}."
    wanted, seen = (_plain(expectation.value), visible(_plain(observed), 200)) if reveal else (NOT_SHOWN, NOT_SHOWN)
    return expectation.message.replace("{expected}", wanted).replace("{observed}", seen)


def _plain(value: object, depth: int = MAX_DEPTH) -> str:
    """JSON as a sentence shows it; what is nested deeper than `depth` is left out."""
    if isinstance(value, list | dict) and not depth:
        return "…"
    if isinstance(value, list):
        return "[" + ", ".join(_plain(entry, depth - 1) for entry in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_plain(entry, depth - 1)}" for key, entry in value.items()) + "}"
    return "nothing" if value is None else str(value)


def _table(mismatch: Mismatch) -> list[str]:
    axes = "[" + " ".join(mismatch.expectation.axes) + "]" if mismatch.expectation.axes else ""
    rows = [(axes, "yours", "expected"), *(_row(difference) for difference in mismatch.first)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [f"  {a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows]
    more = mismatch.differing - len(mismatch.first)
    return lines + ([f"  … {more} more"] if more > 0 else [])


def _row(difference: Difference) -> tuple[str, str, str]:
    index = "[" + " ".join(str(n) for n in difference.index) + "]" if difference.index else ""
    return index, f"{difference.observed:.7g}", f"{difference.expected:.7g}"


def hint_for(slugs: Sequence[str], hints: dict[str, str], fallback: str) -> str:
    """The hints of the recognised mistakes, each once, else what the item has to say."""
    found = list(dict.fromkeys(hints[slug] for slug in slugs if slug in hints))
    return " Or: ".join(found[:2]) if found else fallback
