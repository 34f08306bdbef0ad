"""Mismatch → sentences a student can act on.

Of a hidden case nothing is told that the student's code chose: a value, a type's name, a shape, a line, how many values
differ and where could each carry the inputs out. It is told which kind of thing is wrong, in words that stand here or
in the stored case, and what should be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from autograder.grading.cases import Case, Expectation, are_flags
from autograder.grading.compare import Mismatch, right_places
from autograder.grading.remarks.facts import about_fact, is_unseen, not_returned, table, unreadable, without_gradient
from autograder.sandbox.calls import Outcome, Raised, Returned
from autograder.sandbox.worker.calling import NUMPY, PYTHON, TORCH
from autograder.vocabulary.text import visible, with_verb

UNTOLD = " Which one and where is not told of a hidden case."
MAX_MESSAGE = 2_000
NEAR_MISS = 1e-3
REFUSED = "Graded code runs in a sandbox that refuses files, new processes and the network; the answer needs none."
SIGNS_OF_REFUSAL = ("Operation not permitted", "Permission denied", "Read-only file system", "Parent directory ")
MAX_RIGHT = 4
MAX_LISTED = 160  # characters
MAX_DIAGNOSES = 2
LISTS = ("list", "tuple")
IN_TURN = ("step", "record", "update", "epoch")  # axes of what happens one after the other

Place = Callable[[int], str]


def in_file(line: int) -> str:
    """Where a line stands that was handed in as it is graded."""
    return f"Line {line} of your file"


def about_mismatch(case: Case, mismatch: Mismatch) -> str:
    """What differs, where, and what was allowed."""
    reveal = case.visibility == "public"
    explained = mismatch.rung == "tensor" and reveal and bool(mismatch.diagnoses)
    lines = [unreadable(mismatch) if explained else _sentence(case, mismatch, reveal=reveal)]
    if mismatch.first and reveal:
        lines += table(mismatch)
    if mismatch.rung != "fact" or is_unseen(mismatch.observed):  # else the message is a cause, and the rest follows
        more = mismatch.diagnoses[: MAX_DIAGNOSES if reveal else 1]
        lines += [about_fact(expectation, observed, reveal=reveal) for expectation, observed in more]
    return visible("\n".join(lines), MAX_MESSAGE, newlines=True)


def which_case(case: Case, before: int) -> str:
    """What is special about a public case, where so many cases of its item come before it and are right."""
    if not before or case.visibility == "hidden":
        return ""
    right = "The first case is right." if before == 1 else f"The first {before} cases are right."
    return ended(f"{right} This one is not: {visible(case.title, 200)}") + "\n"


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
    return f"{function} raised an exception.{UNTOLD}"


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
            return not_returned(case, expectation, mismatch.observed, reveal=reveal)
        case "tensor":
            return _not_a_tensor(case, expectation, returned, reveal=reveal)
        case "dtype":
            if not reveal:
                return f"{with_verb(expectation.what)} a dtype other than {expectation.dtype}."
            seen = visible(returned.dtype, 40)
            return f"{with_verb(expectation.what)} dtype {seen}, but should be {expectation.dtype}."
        case "shape":
            if not reveal:
                return f"{with_verb(expectation.what)} a shape other than {named_shape(expectation)}."
            if asks_for_lists(expectation):
                asked = _rows(_shape(expectation))
                return f"{with_verb(expectation.what)} {_rows(returned.shape)}, but should have {asked}."
            if case.values != TORCH and not (_shape(expectation) and returned.shape):
                wanted, found = _wanted(case, expectation), _found(case, returned)
                return f"{expectation.what} should be {wanted}, but {found} was found."
            shape = visible(str(list(returned.shape)), 120)
            return f"{with_verb(expectation.what)} shape {shape}, but should be {named_shape(expectation)}."
        case "finite" | "values" | "gradient" if not reveal and returned.kind == "tensor":
            return _wrong_values(expectation)
        case "finite" | "values":
            head = _header(case, expectation, returned)
            return f"{head}\n{_how_many(mismatch)}{_near_miss(mismatch)}{_right(mismatch)}"
        case "graph":
            return _graph(expectation)
        case "gradient":
            return _gradient(case, mismatch, reveal=reveal)
        case "purity":
            return _changed(case, expectation)
        case "error":
            return _error(expectation, mismatch.observed, reveal=reveal)
        case "fact":
            return about_fact(expectation, mismatch.observed, reveal=reveal)


def _changed(case: Case, expectation: Expectation) -> str:
    if expectation.what.isidentifier():
        return f"{case.function} changed its argument {expectation.what}. Compute something new instead."
    return f"{case.function} changed {expectation.what}, which it should leave alone."


def _wrong_values(expectation: Expectation) -> str:
    """Of a hidden case: neither how many values nor which."""
    if not _shape(expectation):
        return f"The value of {expectation.what} is not right."
    return f"{expectation.what} {named_shape(expectation)}: not all values are right."


def _not_a_tensor(case: Case, expectation: Expectation, returned: Returned, *, reveal: bool) -> str:
    if returned.kind == "tensor" and case.values != TORCH:
        return f"The values of {expectation.what} cannot be read: there are too many."
    if returned.kind == "tensor":
        return f"The values of {expectation.what} cannot be read: the tensor is too large, or not dense."
    if case.values != TORCH:
        seen = f"this was found: {_type_of(returned)}" if reveal else "something else was found"
        return f"{expectation.what} should be {_wanted(case, expectation)}, but {seen}."
    if asks_for_lists(expectation) and len(_shape(expectation)) > 1:
        return f"{expectation.what} should be rows of {_shape(expectation)[-1]} whole numbers each; yours is not."
    if asks_for_lists(expectation):
        kind = f"of type {visible(returned.type, 80)}" if reveal else "of another type"
        return f"{expectation.what} should be numbers, but something {kind} was found."
    if not reveal:
        return f"{with_verb(expectation.what, 'is', 'are')} no torch.Tensor."
    return f"{expectation.what} should be a torch.Tensor, but this was found: {visible(returned.type, 80)}."


def _wanted(case: Case, expectation: Expectation) -> str:
    """What kind of thing should come back, in the words of NumPy or plain Python."""
    axes = len(_shape(expectation))
    if not axes:
        return "a number"
    lists = "a list of numbers" if axes == 1 else "a list of rows of numbers"
    return lists if case.values == PYTHON else "an array of numbers"


def _found(case: Case, returned: Returned) -> str:
    if not returned.shape:
        return "a number"
    kind = "an array of shape" if case.values == NUMPY else "a list of shape"
    return f"{kind} {visible(str(list(returned.shape)), 120)}"


def _type_of(returned: Returned) -> str:
    ragged = " of other things than numbers, or of rows that differ in length" if returned.type in LISTS else ""
    return f"{visible(returned.type, 80)}{ragged}"


def asks_for_lists(expectation: Expectation) -> bool:
    """Whether the student returns lists, of which the probe makes a tensor where they can be made one."""
    return "list" in expectation.what.split()


def _shape(expectation: Expectation) -> tuple[int, ...]:
    return () if expectation.array is None else expectation.array.shape


def _rows(shape: Sequence[int]) -> str:
    number = shape[0] if shape else 0
    return f"{number} {'entry' if number == 1 else 'entries'}"


def named_shape(expectation: Expectation) -> str:
    """The expected shape with the names of its axes: `[batch=4 trial=8]`."""
    sizes = zip(expectation.axes, _shape(expectation), strict=False)
    return "[" + " ".join(f"{axis}={size}" for axis, size in sizes) + "]"


def _header(case: Case, expectation: Expectation, returned: Returned) -> str:
    if case.values != TORCH and not _shape(expectation):
        return expectation.what
    flags = "dtype" in expectation.forgiven and are_flags(expectation.array)
    dtype = "" if case.values == PYTHON or flags else returned.dtype
    return f"{expectation.what}   {dtype}{named_shape(expectation)}"


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
    listed = ", ".join([*mismatch.right[:MAX_RIGHT], *more])
    return f"\nright: {listed}" if len(listed) <= MAX_LISTED else f"\nright: the {len(mismatch.right)} others"


def first_wrong(mismatch: Mismatch) -> tuple[str, int] | None:
    """The first axis and the index of the first wrong value along it, of what happens in turn and begins right."""
    axes = mismatch.expectation.axes
    if not axes or axes[0] not in IN_TURN or not mismatch.first or not mismatch.first[0].index[0]:
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


def _gradient(case: Case, mismatch: Mismatch, *, reveal: bool) -> str:
    expectation, returned = mismatch.expectation, mismatch.returned
    if returned.kind != "tensor":
        cut = f"{expectation.what} does not exist: the graph is cut."
        return without_gradient(case, mismatch, reveal=reveal) or cut
    array = returned.array
    if mismatch.first and array is not None and not array[~right_places(expectation, array)].any():
        return f"{expectation.what} is 0 where it should not be.\n{_how_many(mismatch)}"
    return f"{_header(case, expectation, returned)}\n{_how_many(mismatch)}{_near_miss(mismatch)}"


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
    texts = [repr(text) for text in expectation.value.get("mentions", ())]
    mentions = " and ".join(texts) if reveal else "what was given"
    return f"{expectation.what} should raise {wanted} and name {mentions}, but its text does not."
