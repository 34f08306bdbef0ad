"""Mismatch → sentences a student can act on.

Of a hidden case no value is told, neither an expected one nor one that the student's code chose: a message, a type's
name, a line or a shape could carry the inputs out.
"""

from __future__ import annotations

import re
from collections.abc import Callable

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
MAX_RIGHT = 4
IN_TURN = ("step", "record", "update", "epoch")  # axes of what happens one after the other
PLURAL = re.compile(r"(?:the )?(?:\w+ )?\w+(?<![su])s(?= |$)")  # "the weights", "rewards"; no "loss", "status"
PREPOSITION = re.compile(r" (?:with|of|to|in|for|after|before|returned)\b.*")

Place = Callable[[int], str]


def in_file(line: int) -> str:
    """Where a line stands that was handed in as it is graded."""
    return f"Line {line} of your file"


def about_mismatch(case: Case, mismatch: Mismatch) -> str:
    """What differs, where, and what was allowed."""
    reveal = case.visibility == "public"
    lines = [_sentence(case, mismatch, reveal=reveal)]
    if mismatch.first and reveal:
        lines += _table(mismatch)
    lines += [_diagnosis(expectation, observed, reveal=reveal) for expectation, observed in mismatch.diagnoses[:2]]
    return visible("\n".join(lines), MAX_MESSAGE, newlines=True)


def about_outcome(case: Case, outcome: Outcome, timeout: float, place: Place = in_file) -> str:
    """Why there is nothing to compare; `place` says where a line of the graded text was written."""
    function, reveal = case.function, case.visibility == "public"
    if outcome.exceeded:
        return f"{function} {visible(outcome.exceeded, 200)}."
    match outcome.status:
        case "missing":
            return f"{function} is not defined."
        case "timed_out":
            return f"{function} had not finished after {timeout:g} seconds. Is there a loop that never ends?"
        case "out_of_memory":
            where = _place(outcome.raised, place) if reveal else ""
            return f"{function} asked for more memory than it may have.{where}"
        case "crashed":
            return f"{function} ended the Python process{f': {visible(outcome.detail, 200)}' if reveal else ''}."
        case "not_run":
            return f"Not run: {visible(outcome.detail, 200)}."
    if reveal or is_unfinished(outcome.raised):
        return about_exception(function, outcome.raised, place)
    return f"{function} raised an exception. Which one and where is not told of a hidden case."


def about_exception(subject: str, raised: Raised | None, place: Place = in_file) -> str:
    """The exception's type and text, and the student's line."""
    if raised is None:
        return f"{subject} could not be called."
    if is_unfinished(raised):
        return f"{subject} is not implemented yet."
    text = f": {visible(raised.message, 300)}" if raised.message else ""
    refused = f" {REFUSED}" if _is_refusal(raised) else ""
    return f"{ended(f'{subject} raised {visible(raised.types[0], 80)}{text}')}{refused}{_place(raised, place)}"


def ended(sentence: str) -> str:
    """The sentence with a full stop, where it has no end of its own."""
    return sentence if sentence.endswith((".", "!", "?", "…", ":")) else f"{sentence}."


def is_unfinished(raised: Raised | None) -> bool:
    """Whether this is the stub's own exception."""
    return raised is not None and raised.types[0] == "NotImplementedError"


def _is_refusal(raised: Raised) -> bool:
    """Whether this may be how the sandbox says no; torch makes a RuntimeError of it where a file cannot be written."""
    return "OSError" in raised.types or any(sign in raised.message for sign in SIGNS_OF_REFUSAL)


def _place(raised: Raised | None, place: Place) -> str:
    if raised is None or raised.line is None:
        return ""
    code = f":\n  {visible(raised.code, 120)}" if raised.code else "."
    return f"\n{place(raised.line)}{code}"


def _sentence(case: Case, mismatch: Mismatch, *, reveal: bool) -> str:
    expectation, returned = mismatch.expectation, mismatch.returned
    match mismatch.rung:
        case "returned":
            return f"{case.function} returned nothing where {expectation.what} should be."
        case "tensor":
            return _not_a_tensor(expectation, returned, reveal=reveal)
        case "dtype":
            if not reveal:
                return f"{with_verb(expectation.what)} a dtype other than {expectation.dtype}."
            seen = visible(returned.dtype, 40)
            return f"{with_verb(expectation.what)} dtype {seen}, but should be {expectation.dtype}."
        case "shape":
            if not reveal:
                return f"{with_verb(expectation.what)} a shape other than {named_shape(expectation)}."
            shape = visible(str(list(returned.shape)), 120)
            return f"{with_verb(expectation.what)} shape {shape}, but should be {named_shape(expectation)}."
        case "finite" | "values":
            right = _right(mismatch) if reveal else ""
            return f"{_header(expectation, returned)}\n{_how_many(mismatch)}{_near_miss(mismatch)}{right}"
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


def with_verb(what: str, one: str = "has", many: str = "have") -> str:
    """`the weights have`, `log_probs has`: a name in code is one thing, unless it is a plain word."""
    head = PREPOSITION.sub("", what)
    return f"{what} {many if PLURAL.fullmatch(head) and '_' not in head else one}"


def _not_a_tensor(expectation: Expectation, returned: Returned, *, reveal: bool) -> str:
    if returned.kind == "tensor":
        return f"The values of {expectation.what} cannot be read: the tensor is too large, or not dense."
    if not reveal:
        return f"{with_verb(expectation.what, 'is', 'are')} no torch.Tensor."
    return f"{expectation.what} should be a torch.Tensor, but this was found: {visible(returned.type, 80)}."


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
    verb = "differs" if mismatch.differing == 1 else "differ"
    return f"{mismatch.differing} of {mismatch.total} values {verb}{place}{tolerance}"


def _right(mismatch: Mismatch) -> str:
    """What else was returned, and is right."""
    if not mismatch.right:
        return ""
    more = [f"{len(mismatch.right) - MAX_RIGHT} more"] if len(mismatch.right) > MAX_RIGHT else []
    return f"\nright: {', '.join([*mismatch.right[:MAX_RIGHT], *more])}"


def first_wrong(mismatch: Mismatch) -> tuple[str, int] | None:
    """The axis and index of the first wrong value, of what happens in turn and begins right."""
    axes = mismatch.expectation.axes
    if len(axes) != 1 or axes[0] not in IN_TURN or not mismatch.first or not mismatch.first[0].index[0]:
        return None
    return axes[0], mismatch.first[0].index[0]


def is_near_miss(mismatch: Mismatch) -> bool:
    """Whether all values are finite, and right or nearly so."""
    return mismatch.relative is not None and mismatch.relative <= NEAR_MISS


def _near_miss(mismatch: Mismatch) -> str:
    return "\nalmost right: look at constants, divisors and precision" if is_near_miss(mismatch) else ""


def _graph(expectation: Expectation) -> str:
    if expectation.attached:
        return f"{with_verb(expectation.what)} the right value but no graph: nothing could be learned from it."
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
        names = [name for name in types if isinstance(name, str)] if reveal else []
        raised = visible(names[0], 80) if names else "something else"
        return f"{expectation.what} should raise {wanted}, but raised {raised}."
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
